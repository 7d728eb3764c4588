//! Helpers shared by the neighbour API messages.

use crate::message_types::{
    IpNeighbor, IpNeighborEvent, IpNeighborEventFlags, IpNeighborEventV2, IpNeighborFlags,
};
use crate::{Config, Neighbor, NeighborChange, NeighborError, Neighbors, Version};
use thalweg_api::types::{Address, AddressFamily, InterfaceIndex, MacAddr};
use thalweg_api::{Caller, Clients, Retval, Subscribers};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

impl From<NeighborError> for Retval {
    fn from(error: NeighborError) -> Self {
        use NeighborError::{
            Address, AllFull, Fib, Full, InterfaceFull, Mac, NoInterface, NoResolver, NotEthernet,
            Range, Statics, Unknown,
        };
        let number = match &error {
            NoResolver(_) => Retval::UNIMPLEMENTED,
            NoInterface(_) => Retval::INVALID_SW_IF_INDEX,
            NotEthernet(_) => Retval::UNSUPPORTED,
            Unknown { .. } => Retval::NO_SUCH_ENTRY,
            Full { .. } | InterfaceFull { .. } | AllFull => Retval::LIMIT_EXCEEDED,
            Mac(_) | Address { .. } | Range { .. } | Statics { .. } => Retval::INVALID_VALUE,
            Fib(_) => Retval::UNSPECIFIED,
        };
        number.because(error)
    }
}

/// Returns an address family.
///
/// # Errors
/// [`Retval::INVALID_ADDRESS_FAMILY`].
pub(crate) fn family(af: AddressFamily) -> Result<Version, Retval> {
    match af {
        AddressFamily::IP4 => Ok(Version::V4),
        AddressFamily::IP6 => Ok(Version::V6),
        _ => Err(Retval::INVALID_ADDRESS_FAMILY),
    }
}

/// Returns an address family and its settings.
pub(crate) fn config(c: &Control, af: AddressFamily) -> Result<(Version, Config), Retval> {
    let family = family(af)?;
    Ok((family, c.state::<Neighbors>().borrow().config(family)?))
}

/// Converts a neighbour to its API type; `None` without a MAC address.
pub(crate) fn describe(n: &Neighbor) -> Option<IpNeighbor> {
    let bit = |on, flag: IpNeighborFlags| if on { flag.0 } else { 0 };
    Some(IpNeighbor {
        sw_if_index: InterfaceIndex(n.sw_if.get()),
        flags: IpNeighborFlags(
            bit(n.is_static, IpNeighborFlags::STATIC)
                | bit(n.no_fib_entry, IpNeighborFlags::NO_FIB_ENTRY),
        ),
        mac_address: MacAddr(n.mac?.0),
        ip_address: n.ip.into(),
    })
}

/// Filter of a subscription: address and interface; unspecified ones match any.
pub(crate) type Filter = (Address, InterfaceIndex);

/// Subscribed clients.
#[derive(Default)]
pub(crate) struct Watchers {
    pub(crate) first: Subscribers<Filter>,
    pub(crate) second: Subscribers<Filter>,
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Watchers::default());
    c.subscribe(notify);
}

fn notify(c: &mut Control, change: &NeighborChange) {
    let watchers = c.state::<Watchers>();
    let mut watchers = watchers.borrow_mut();
    if watchers.first.is_empty() && watchers.second.is_empty() {
        return;
    }
    let clients = c.state::<Clients>().borrow().clone();
    let neighbor = IpNeighbor {
        sw_if_index: InterfaceIndex(change.sw_if.get()),
        flags: IpNeighborFlags(u8::from(change.is_static)),
        mac_address: MacAddr(change.mac.unwrap_or_default().0),
        ip_address: change.ip.into(),
    };
    let concerns = |(ip, sw_if): &Filter| {
        (ip.un.0 == [0; 16] || *ip == neighbor.ip_address)
            && [InterfaceIndex::NONE, neighbor.sw_if_index].contains(sw_if)
    };
    watchers.first.notify(&clients, |pid, filter| {
        let wanted = change.mac.is_some() && concerns(filter);
        wanted.then_some(IpNeighborEvent { pid, neighbor })
    });
    watchers.second.notify(&clients, |pid, filter| {
        let flags = match change.mac {
            Some(_) => IpNeighborEventFlags::ADDED,
            None => IpNeighborEventFlags::REMOVED,
        };
        concerns(filter).then_some(IpNeighborEventV2 { pid, flags, neighbor })
    });
}

/// Subscribes a client, or unsubscribes it.
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

/// Looks up the neighbour that a message names.
pub(crate) fn find(c: &Control, n: &IpNeighbor) -> Option<Neighbor> {
    let ip = n.ip_address.ip().ok()?;
    c.state::<Neighbors>().borrow().find(SwIfIndex(n.sw_if_index.0), ip)
}
