//! Directed broadcasts: packets from elsewhere to a subnet's broadcast address, which an interface
//! sends to all hosts of its link. Off by default (RFC 2644).

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use thalweg_device::{InterfaceEvent, MacAddr, SwIfIndex, interface};
use thalweg_feat_ip::{AddressError, refresh_routes};
use thalweg_fib::Forwarding;
use thalweg_graph::Control;
use thalweg_tables::Ipv4Prefix;

/// Interfaces that send directed broadcasts.
#[derive(Default)]
struct Directed(BTreeSet<SwIfIndex>);

pub(crate) fn init(c: &mut Control) {
    c.insert(Directed::default());
    c.subscribe(|c, event: &InterfaceEvent| {
        if let InterfaceEvent::Deleted(i) = *event {
            c.state::<Directed>().borrow_mut().0.remove(&i);
        }
    });
}

/// Returns whether an interface sends directed broadcasts.
pub fn is_on(c: &Control, sw_if: SwIfIndex) -> bool {
    c.state::<Directed>().borrow().0.contains(&sw_if)
}

/// Returns the interfaces that send directed broadcasts.
pub(crate) fn all(c: &Control) -> BTreeSet<SwIfIndex> {
    c.state::<Directed>().borrow().0.clone()
}

/// Makes an interface send directed broadcasts, or drop them.
///
/// # Errors
/// If the interface does not exist, or a route cannot be set; nothing has changed then.
pub fn set(c: &mut Control, sw_if: SwIfIndex, on: bool) -> Result<(), AddressError> {
    interface::view(c, sw_if)?;
    let put = |c: &Control, on: bool| {
        let state = c.state::<Directed>();
        let all = &mut state.borrow_mut().0;
        if on { all.insert(sw_if) } else { all.remove(&sw_if) }
    };
    if !put(c, on) {
        return Ok(());
    }
    if let Err(e) = refresh_routes::<u32>(c, sw_if) {
        put(c, !on);
        // The previous routes are set again.
        let _ = refresh_routes::<u32>(c, sw_if);
        return Err(e.into());
    }
    Ok(())
}

/// Completes the adjacency of a subnet's broadcast address: nobody is asked for it.
pub(crate) fn routed(c: &Control, sw_if: SwIfIndex, subnet: Ipv4Prefix) {
    if subnet.len() < 31 && is_on(c, sw_if) {
        let address = IpAddr::V4(Ipv4Addr::from_bits(subnet.last()));
        let forwarding = c.state::<Forwarding>();
        forwarding.borrow_mut().set_neighbor(c, sw_if, address, Some(MacAddr::BROADCAST));
    }
}
