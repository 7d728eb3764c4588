//! IP versions, and the protocols that implement them.

use crate::address::AddressError;
use crate::ping::Echo;
use crate::{Ip, Path, RouteError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thalweg_device::SwIfIndex;
use thalweg_fib::TableId;
pub use thalweg_fib::Version;
use thalweg_graph::Control;
use thalweg_tables::{Address, Lpm, LpmError, Prefix, PrefixLenError};

/// An address with the length of its subnet's prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IfAddress<A> {
    /// The address.
    pub addr: A,
    /// Prefix length in bits.
    pub len: u8,
}

impl<A: Address> IfAddress<A> {
    /// Returns its subnet.
    ///
    /// # Errors
    /// If the length is too large.
    pub fn subnet(self) -> Result<Prefix<A>, PrefixLenError> {
        Prefix::new(self.addr, self.len)
    }
}

impl<A: Address> std::fmt::Display for IfAddress<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.addr.to_ip(), self.len)
    }
}

/// A table in which workers look addresses up.
pub type Leaves<A> = Box<dyn Lpm<A> + Send>;

/// A protocol's part of its tables, routes, addresses and the rest. [`register`] takes it, and its
/// [`Settings`](crate::Settings).
pub trait Family<A: Address>: Sync {
    /// Creates the table that workers read for a table of routes. `serial` distinguishes it from an
    /// earlier one with the same id.
    ///
    /// # Errors
    /// If there is no memory.
    fn leaves(&self, c: &Control, id: TableId, serial: u32) -> Result<Leaves<A>, LpmError>;

    /// Publishes a table to workers that has come, has gone, or answers packets without a route
    /// otherwise than before.
    fn publish(&self, c: &mut Control, id: TableId);

    /// Publishes an interface to workers: its table or its addresses have changed.
    fn publish_interface(&self, c: &mut Control, sw_if: SwIfIndex);

    /// Returns the prefixes that every table drops unless there is a better route, each an address
    /// and a length.
    fn dropped(&self) -> &'static [(A, u8)];

    /// Returns why no interface can have an address; `None` if one can.
    fn unusable(&self, addr: A, subnet: Prefix<A>) -> Option<&'static str>;

    /// Returns the routes that an address of an interface adds.
    fn routes(&self, sw_if: SwIfIndex, addr: A, subnet: Prefix<A>) -> Vec<(Prefix<A>, Path)>;

    /// Changes the paths of these routes, or takes some out, as the interface's settings say.
    fn adjust(
        &self,
        _c: &Control,
        _sw_if: SwIfIndex,
        _subnet: Prefix<A>,
        _routes: &mut Vec<(Prefix<A>, Path)>,
    ) {
    }

    /// Called when the routes of an address have been added.
    fn routed(&self, _c: &Control, _sw_if: SwIfIndex, _subnet: Prefix<A>) {}

    /// Returns the addresses of the resolved neighbours on an interface, in a prefix, that need
    /// host routes, each with whether it is written (static).
    fn neighbors(&self, _c: &Control, _sw_if: SwIfIndex, _prefix: Prefix<A>) -> Vec<(A, bool)> {
        Vec::new()
    }

    /// Returns the node that looks up the router's own packets.
    fn lookup_node(&self) -> &'static str;

    /// Returns the maximum data in bytes of an echo request.
    fn max_echo(&self) -> u16;

    /// Returns whether an address means something on one link only.
    fn is_of_link(&self, _addr: A) -> bool {
        false
    }

    /// Returns the source of packets to such addresses by an interface.
    fn link_source(&self, _c: &Control, _sw_if: SwIfIndex) -> Option<A> {
        None
    }

    /// Gives an interface such an address, or takes it away.
    ///
    /// # Errors
    /// [`AddressError`]; nothing has changed then.
    fn set_link_address(
        &self,
        _c: &mut Control,
        _sw_if: SwIfIndex,
        addr: A,
        _add: bool,
    ) -> Result<(), AddressError> {
        let why = "it is not routed".to_owned();
        Err(AddressError::Unusable(addr.to_ip().to_string(), why))
    }

    /// Returns the addresses of that kind that users gave to an interface.
    fn link_addresses(&self, _c: &Control, _sw_if: SwIfIndex) -> Vec<IfAddress<A>> {
        Vec::new()
    }

    /// Builds an echo request, from its IP header on; `None` if it is too long.
    fn echo_request(&self, from: A, to: A, echo: Echo<'_>) -> Option<Vec<u8>>;
}

/// Registers the protocol of a version. To be called by the `init` of its feature, which is listed
/// after `ip`.
pub fn register<A: Address>(c: &mut Control, family: &'static dyn Family<A>) {
    c.state::<Ip<A>>().borrow_mut().family = Some(family);
}

/// Returns the protocol of a version.
///
/// # Errors
/// [`RouteError::NoFamily`] if there is none.
pub(crate) fn family<A: Address>(c: &Control) -> Result<&'static dyn Family<A>, RouteError> {
    c.state::<Ip<A>>().borrow().family.ok_or(RouteError::NoFamily(Version::of::<A>()))
}

/// Returns whether there is a protocol of a version.
pub(crate) fn is_registered(c: &Control, version: Version) -> bool {
    match version {
        Version::V4 => family::<u32>(c).is_ok(),
        Version::V6 => family::<u128>(c).is_ok(),
    }
}

/// Returns an address as a number of 128 bits, for arithmetic.
pub(crate) fn to_number<A: Address>(addr: A) -> u128 {
    match addr.to_ip() {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Returns the address of a number; `None` if it has too many bits.
pub(crate) fn from_number<A: Address>(number: u128) -> Option<A> {
    A::from_ip(match Version::of::<A>() {
        Version::V4 => Ipv4Addr::from_bits(u32::try_from(number).ok()?).into(),
        Version::V6 => Ipv6Addr::from_bits(number).into(),
    })
}

/// Calls a function that is generic in the type of addresses for a [`Version`].
macro_rules! for_version {
    ($version:expr, $($function:ident)::+ ( $($argument:expr),* $(,)? )) => {
        match $version {
            $crate::Version::V4 => $($function)::+::<u32>($($argument),*),
            $crate::Version::V6 => $($function)::+::<u128>($($argument),*),
        }
    };
}
pub(crate) use for_version;

/// The text of a version's command: literals, `NAME` for the version's name, and `WORD` for the
/// word of its commands.
macro_rules! version_text {
    ($address:ty: $($part:tt),+ $(,)?) => {
        match $crate::Version::of::<$address>() {
            $crate::Version::V4 => {
                concat!($($crate::family::version_part!("IPv4" "ip" $part)),+)
            }
            $crate::Version::V6 => {
                concat!($($crate::family::version_part!("IPv6" "ip6" $part)),+)
            }
        }
    };
}
pub(crate) use version_text;

/// A part of a [`version_text`].
macro_rules! version_part {
    ($name:literal $word:literal NAME) => {
        $name
    };
    ($name:literal $word:literal WORD) => {
        $word
    };
    ($name:literal $word:literal $text:literal) => {
        $text
    };
}
pub(crate) use version_part;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn addresses_are_numbers(a: u32, b: u128) {
            prop_assert_eq!(from_number(to_number(a)), Some(a));
            prop_assert_eq!(from_number(to_number(b)), Some(b));
            prop_assert_eq!(from_number::<u32>(b), u32::try_from(b).ok());
        }
    }
}
