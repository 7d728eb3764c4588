//! What API messages about neighbours have in common.

use crate::{ArpError, Config, Neighbor, NeighborChange, Neighbors, neighbors};
use std::net::{IpAddr, Ipv4Addr};
use thalweg_api::schema::Module;
use thalweg_api::types::{Address, AddressFamily, InterfaceIndex, MacAddress};
use thalweg_api::{ApiType, Caller, Clients, Message, Retval, Subscribers, api_enum};
use thalweg_graph::Control;

/// The module that describes them.
pub static IP_NEIGHBOR: Module = Module { name: "ip_neighbor", folder: "core", version: "1.0.1" };

api_enum! {
    /// What an operator says of a neighbour.
    pub struct IpNeighborFlags: u8 = "ip_neighbor_flags" {
        /// Nothing.
        NONE = 0, "IP_API_NEIGHBOR_FLAG_NONE";
        /// It stays until deleted.
        STATIC = 1, "IP_API_NEIGHBOR_FLAG_STATIC";
        /// It gets no route of its own.
        NO_FIB_ENTRY = 2, "IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY";
    }
    /// What happened to a neighbour.
    pub struct IpNeighborEventFlags: u32 = "ip_neighbor_event_flags" {
        /// It is known.
        ADDED = 1, "IP_NEIGHBOR_API_EVENT_FLAG_ADDED";
        /// It is no longer known.
        REMOVED = 2, "IP_NEIGHBOR_API_EVENT_FLAG_REMOVED";
    }
}

/// A neighbour.
#[derive(Clone, Debug, ApiType)]
pub struct IpNeighbor {
    /// Its interface.
    pub sw_if_index: InterfaceIndex,
    /// What an operator said of it.
    pub flags: IpNeighborFlags,
    /// Its MAC address.
    pub mac_address: MacAddress,
    /// Its address.
    pub ip_address: Address,
}

impl From<ArpError> for Retval {
    fn from(error: ArpError) -> Self {
        let number = match &error {
            ArpError::NoInterface(_) => Retval::INVALID_SW_IF_INDEX,
            ArpError::NotEthernet(_) => Retval::UNSUPPORTED,
            ArpError::Unknown { .. } => Retval::NO_SUCH_ENTRY,
            ArpError::Full(_) => Retval::LIMIT_EXCEEDED,
            ArpError::Mac(_) | ArpError::Address { .. } | ArpError::Range { .. } => {
                Retval::INVALID_VALUE
            }
            ArpError::Fib(_) => Retval::UNSPECIFIED,
        };
        number.because(error)
    }
}

/// An IPv4 address.
///
/// # Errors
/// [`Retval::UNIMPLEMENTED`] for one of IPv6.
pub(crate) fn ipv4(address: Address) -> Result<Ipv4Addr, Retval> {
    match address.ip()? {
        IpAddr::V4(ip) => Ok(ip),
        IpAddr::V6(_) => Err(Retval::UNIMPLEMENTED.because("there are no IPv6 neighbours yet")),
    }
}

/// The settings, if the family is one that has any.
pub(crate) fn config(c: &Control, af: AddressFamily) -> Result<Config, Retval> {
    match af {
        AddressFamily::IP4 => Ok(c.state::<Neighbors>().borrow().config()),
        AddressFamily::IP6 => Err(Retval::UNIMPLEMENTED),
        _ => Err(Retval::INVALID_ADDRESS_FAMILY),
    }
}

/// A neighbour as messages tell it.
pub(crate) fn describe(n: &Neighbor) -> Option<IpNeighbor> {
    let bit = |on, flag: IpNeighborFlags| if on { flag.0 } else { 0 };
    Some(IpNeighbor {
        sw_if_index: InterfaceIndex(n.sw_if),
        flags: IpNeighborFlags(
            bit(n.is_static, IpNeighborFlags::STATIC)
                | bit(n.no_fib_entry, IpNeighborFlags::NO_FIB_ENTRY),
        ),
        mac_address: MacAddress(n.mac?),
        ip_address: IpAddr::V4(n.ip).into(),
    })
}

/// Which neighbours a client wants to hear of: an address and an interface; unspecified ones mean
/// any.
pub(crate) type Filter = (Address, InterfaceIndex);

/// Clients that want to hear of neighbours.
#[derive(Default)]
pub(crate) struct Watchers {
    pub(crate) first: Subscribers<Filter>,
    pub(crate) second: Subscribers<Filter>,
}

/// Tells of a neighbour that became known.
#[derive(Debug, Message)]
#[api(event, deprecated)]
pub struct IpNeighborEvent {
    /// What the client said when it asked.
    pub pid: u32,
    /// The neighbour.
    pub neighbor: IpNeighbor,
}

/// Tells of a neighbour that became known or unknown.
#[derive(Debug, Message)]
#[api(event)]
pub struct IpNeighborEventV2 {
    /// What the client said when it asked.
    pub pid: u32,
    /// What happened.
    pub flags: IpNeighborEventFlags,
    /// The neighbour.
    pub neighbor: IpNeighbor,
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Watchers::default());
    c.state::<Neighbors>().borrow_mut().on_change(notify);
}

fn notify(c: &mut Control, change: &NeighborChange) {
    let watchers = c.state::<Watchers>();
    let mut watchers = watchers.borrow_mut();
    if watchers.first.is_empty() && watchers.second.is_empty() {
        return;
    }
    let clients = c.state::<Clients>().borrow().clone();
    let neighbor = IpNeighbor {
        sw_if_index: InterfaceIndex(change.sw_if),
        flags: IpNeighborFlags(u8::from(change.is_static)),
        mac_address: MacAddress(change.mac.unwrap_or_default()),
        ip_address: IpAddr::V4(change.ip).into(),
    };
    let concerns = |(ip, sw_if): &Filter| {
        (ip.un.0 == [0; 16] || *ip == neighbor.ip_address)
            && [InterfaceIndex::NONE, neighbor.sw_if_index].contains(sw_if)
    };
    watchers.first.tell(&clients, |pid, filter| {
        let wanted = change.mac.is_some() && concerns(filter);
        wanted.then(|| IpNeighborEvent { pid, neighbor: neighbor.clone() })
    });
    watchers.second.tell(&clients, |pid, filter| {
        let flags = match change.mac {
            Some(_) => IpNeighborEventFlags::ADDED,
            None => IpNeighborEventFlags::REMOVED,
        };
        concerns(filter).then(|| IpNeighborEventV2 { pid, flags, neighbor: neighbor.clone() })
    });
}

/// Lists a client, or no longer.
pub(crate) fn want(
    c: &Control,
    caller: &Caller,
    (on, pid): (bool, u32),
    filter: Filter,
    choose: fn(&mut Watchers) -> &mut Subscribers<Filter>,
) -> Result<(), Retval> {
    let clients = c.state::<Clients>().borrow().clone();
    let watchers = c.state::<Watchers>();
    choose(&mut watchers.borrow_mut()).want(&clients, caller, on, pid, filter)
}

/// The neighbour that a message names.
pub(crate) fn find(c: &Control, n: &IpNeighbor) -> Option<Neighbor> {
    let ip = ipv4(n.ip_address).ok()?;
    c.state::<neighbors::Neighbors>().borrow().find(n.sw_if_index.0, ip)
}
