//! Types shared by messages of several features.

pub mod fib;

pub use thalweg_wire::ethernet::MacAddr;

use crate::schema::{TypeDef, TypeKind, TypeRef};
use crate::wire::{Reader, Truncated};
use crate::{ApiType, Retval, Wire, api_alias, api_enum, api_union};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

api_alias! {
    /// Index of an interface; by default [`NONE`](InterfaceIndex::NONE).
    #[derive(Eq, Hash)]
    pub struct InterfaceIndex(u32) = "interface_index";
    /// An IPv4 address.
    #[derive(Default, Eq, Hash)]
    pub struct Ip4Address([u8; 4]) = "ip4_address";
    /// An IPv6 address.
    #[derive(Default, Eq, Hash)]
    pub struct Ip6Address([u8; 16]) = "ip6_address";
    /// An address with the length of its network's prefix: host bits are kept.
    #[derive(Default, Eq, Hash)]
    pub struct AddressWithPrefix(Prefix) = "address_with_prefix";
    /// Seconds since 1970.
    #[derive(Default)]
    pub struct Timestamp(f64) = "timestamp";
}

impl Wire for MacAddr {
    const TYPE: TypeRef = TypeRef::Def(&TypeDef {
        name: "mac_address",
        kind: TypeKind::Alias { of: u8::TYPE, length: Some(6) },
    });
    fn encode(&self, out: &mut Vec<u8>) {
        self.octets().encode(out);
    }
    fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        <[u8; 6]>::decode(input).map(Self)
    }
}

impl InterfaceIndex {
    /// No interface, or any.
    pub const NONE: Self = Self(u32::MAX);
}

impl Default for InterfaceIndex {
    fn default() -> Self {
        Self::NONE
    }
}

api_enum! {
    /// IPv4 or IPv6.
    pub struct AddressFamily: u8 = "address_family" {
        /// IPv4.
        IP4 = 0, "ADDRESS_IP4";
        /// IPv6.
        IP6 = 1, "ADDRESS_IP6";
    }
    /// State of an interface.
    pub struct IfStatusFlags: u32 = "if_status_flags" {
        /// Administratively up.
        ADMIN_UP = 1, "IF_STATUS_API_FLAG_ADMIN_UP";
        /// The link is up.
        LINK_UP = 2, "IF_STATUS_API_FLAG_LINK_UP";
    }
}

api_union! {
    /// An IPv4 or IPv6 address.
    pub struct AddressUnion(16) = "address_union" {
        ip4: Ip4Address, case "ADDRESS_IP4";
        ip6: Ip6Address, case "ADDRESS_IP6";
    }
}

impl AddressUnion {
    /// Returns the address, if `af` is valid.
    pub fn ip(self, af: AddressFamily) -> Option<IpAddr> {
        let [a, b, c, d, ..] = self.0;
        match af {
            AddressFamily::IP4 => Some(Ipv4Addr::new(a, b, c, d).into()),
            AddressFamily::IP6 => Some(Ipv6Addr::from(self.0).into()),
            _ => None,
        }
    }
}

impl From<IpAddr> for AddressUnion {
    fn from(ip: IpAddr) -> Self {
        let mut bytes = [0; 16];
        match ip {
            IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes = ip.octets(),
        }
        Self(bytes)
    }
}

/// An IPv4 or IPv6 address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ApiType)]
pub struct Address {
    /// Address family.
    pub af: AddressFamily,
    /// The address.
    #[api(discriminator = "af")]
    pub un: AddressUnion,
}

impl Address {
    /// Returns the address.
    ///
    /// # Errors
    /// [`Retval::INVALID_ADDRESS_FAMILY`].
    pub fn ip(self) -> Result<IpAddr, Retval> {
        self.un.ip(self.af).ok_or(Retval::INVALID_ADDRESS_FAMILY)
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        let af = if ip.is_ipv4() { AddressFamily::IP4 } else { AddressFamily::IP6 };
        Self { af, un: ip.into() }
    }
}

/// A network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ApiType)]
pub struct Prefix {
    /// Its address.
    pub address: Address,
    /// Prefix length in bits.
    pub len: u8,
}

impl Prefix {
    /// Returns address and length.
    ///
    /// # Errors
    /// [`Retval::INVALID_ADDRESS_FAMILY`], or [`Retval::INVALID_PREFIX_LENGTH`] if the length is
    /// too large.
    pub fn parts(self) -> Result<(IpAddr, u8), Retval> {
        let ip = self.address.ip()?;
        match self.len <= if ip.is_ipv4() { 32 } else { 128 } {
            true => Ok((ip, self.len)),
            false => Err(Retval::INVALID_PREFIX_LENGTH),
        }
    }
}

impl From<(IpAddr, u8)> for Prefix {
    fn from((ip, len): (IpAddr, u8)) -> Self {
        Self { address: ip.into(), len }
    }
}
