//! Addresses of interfaces, of either version.

use std::net::IpAddr;
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::{AddressError, IfAddress, Ip, address};
use thalweg_graph::Control;
use thalweg_tables::Address;

/// Returns whether an interface has an address.
pub(super) fn has(c: &Control, phy: SwIfIndex, ip: IpAddr, length: u8) -> bool {
    fn has<A: Address>(c: &Control, phy: SwIfIndex, addr: A, len: u8) -> bool {
        c.state::<Ip<A>>().borrow().addresses(phy).contains(&IfAddress { addr, len })
    }
    match ip {
        IpAddr::V4(ip) => has(c, phy, ip.to_bits(), length),
        IpAddr::V6(ip) => has(c, phy, ip.to_bits(), length),
    }
}

/// Returns whether an interface has an address that nobody has written.
pub(super) fn is_found(c: &Control, phy: SwIfIndex, ip: IpAddr, length: u8) -> bool {
    fn is<A: Address>(c: &Control, phy: SwIfIndex, addr: A, len: u8) -> bool {
        c.state::<Ip<A>>().borrow().is_found(phy, IfAddress { addr, len })
    }
    match ip {
        IpAddr::V4(ip) => is(c, phy, ip.to_bits(), length),
        IpAddr::V6(ip) => is(c, phy, ip.to_bits(), length),
    }
}

/// Adds an address that the configuration does not include.
pub(super) fn add_found(
    c: &mut Control,
    phy: SwIfIndex,
    ip: IpAddr,
    length: u8,
) -> Result<(), AddressError> {
    match ip {
        IpAddr::V4(ip) => address::add_found(c, phy, ip.to_bits(), length),
        IpAddr::V6(ip) => address::add_found(c, phy, ip.to_bits(), length),
    }
}

/// Removes an address.
pub(super) fn remove(
    c: &mut Control,
    phy: SwIfIndex,
    ip: IpAddr,
    length: u8,
) -> Result<(), AddressError> {
    match ip {
        IpAddr::V4(ip) => address::remove(c, phy, ip.to_bits(), length),
        IpAddr::V6(ip) => address::remove(c, phy, ip.to_bits(), length),
    }
}

/// Makes an interface with a twin speak both versions, whatever addresses it has, or as its
/// addresses say: Linux may ask for one by DHCP.
pub(super) fn speak(c: &mut Control, phy: SwIfIndex, on: bool) {
    let done = address::set_spoken::<u32>(c, phy, on);
    let done = done.and_then(|()| address::set_spoken::<u128>(c, phy, on));
    if let Err(e) = done {
        tracing::error!("{}: {e}", c.interface_name(phy));
    }
}
