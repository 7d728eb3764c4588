//! Interface addresses and the routes that they add.

use crate::route::{Path, PathKind, Source, Table, settle_later};
use crate::{AddressesChanged, Ip4, RouteError, publish_interface};
use std::net::Ipv4Addr;
use thalweg_device::{DeviceError, SwIfIndex, interface};
use thalweg_feat_arp as arp;
use thalweg_graph::Control;
use thalweg_tables::Ipv4Prefix;

/// Why an address cannot be added or removed.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The subnet overlaps another one.
    #[error("{new} overlaps with {old} on `{interface}`")]
    Overlap {
        /// The new address.
        new: String,
        /// The existing address.
        old: String,
        /// Interface of the existing address.
        interface: String,
    },
    /// No interface can have the address.
    #[error("{0} cannot be an interface address: {1}")]
    Unusable(String, &'static str),
    /// The interface does not have the address.
    #[error("`{interface}` has no address {address}{has}")]
    Missing {
        /// Name of the interface.
        interface: String,
        /// The address to remove.
        address: String,
        /// Addresses that the interface has.
        has: String,
    },
    /// The routes of the address could not be added.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The interface has addresses, so it cannot move to another table.
    #[error("`{0}` has addresses; remove them before it moves to another table")]
    HasAddresses(String),
}

fn prefix(addr: Ipv4Addr, len: u8) -> Result<Ipv4Prefix, AddressError> {
    Ipv4Prefix::new(addr.to_bits(), len).map_err(|_| {
        AddressError::Unusable(format!("{addr}/{len}"), "the prefix length must be 0 to 32")
    })
}

pub(crate) fn check(addr: Ipv4Addr, len: u8) -> Result<Ipv4Prefix, AddressError> {
    let p = prefix(addr, len)?;
    let why = if len == 0 {
        "the prefix length must be 1 to 32"
    } else if addr.is_multicast() {
        "it is a multicast address"
    } else if addr.is_loopback() {
        "it is a loopback address"
    } else if addr.octets()[0] == 0 || addr.octets()[0] >= 240 {
        "it is a reserved address"
    } else if len < 31 && addr.to_bits() == p.addr() {
        "it is the subnet address"
    } else if len < 31 && addr.to_bits() == p.last() {
        "it is the subnet's broadcast address"
    } else {
        return Ok(p);
    };
    Err(AddressError::Unusable(format!("{addr}/{len}"), why))
}

/// Routes that an address adds.
fn routes(sw_if: SwIfIndex, addr: Ipv4Addr, subnet: Ipv4Prefix) -> Vec<(Ipv4Prefix, Path)> {
    let mut all = Vec::new();
    if subnet.len() < 32 {
        all.push((subnet, Path::connected(sw_if)));
    }
    if subnet.len() < 31 {
        let drop = Path::special(PathKind::Drop);
        all.push((Ipv4Prefix::host(subnet.addr()), drop));
        all.push((Ipv4Prefix::host(subnet.last()), drop));
    }
    all.push((Ipv4Prefix::host(addr.to_bits()), Path::special(PathKind::Local)));
    all
}

/// Adds an address to an interface.
///
/// # Errors
/// [`AddressError`]; nothing has changed then.
pub fn add(c: &mut Control, sw_if: SwIfIndex, addr: Ipv4Addr, len: u8) -> Result<(), AddressError> {
    let subnet = check(addr, len)?;
    interface::view(c, sw_if)?;
    let ip4 = c.state::<Ip4>();
    {
        let mut ip4 = ip4.borrow_mut();
        if ip4.stale.remove(&(sw_if, addr, len)) {
            // It was stale, and stays.
            return Ok(());
        }
        let id = ip4.table_of(sw_if);
        overlap(c, &ip4, sw_if, addr, len, subnet)?;
        let t = ip4.tables.get_mut(&id).ok_or(RouteError::NoTable(id))?;
        let all = routes(sw_if, addr, subnet);
        for (i, (p, path)) in all.iter().enumerate() {
            // A second address in the same subnet adds only its own host route.
            if let Err(e) = t.set(c, *p, Source::Interface, vec![*path]) {
                for (p, _) in &all[..i] {
                    t.unset(c, *p, Source::Interface);
                }
                return Err(RouteError::from(e).into());
            }
        }
        ip4.addresses.entry(sw_if).or_default().push((addr, len));
    }
    changed(c, sw_if);
    Ok(())
}

fn overlap(
    c: &Control,
    ip4: &Ip4,
    sw_if: SwIfIndex,
    addr: Ipv4Addr,
    len: u8,
    subnet: Ipv4Prefix,
) -> Result<(), AddressError> {
    let id = ip4.table_of(sw_if);
    for (other, list) in &ip4.addresses {
        if ip4.table_of(*other) != id {
            continue;
        }
        for (a, l) in list {
            let Ok(old) = prefix(*a, *l) else { continue };
            let meets = old.contains(subnet.addr()) || subnet.contains(old.addr());
            // One interface may have several addresses in one subnet.
            let sister = *other == sw_if && old == subnet && *a != addr;
            if meets && !sister {
                return Err(AddressError::Overlap {
                    new: format!("{addr}/{len}"),
                    old: format!("{a}/{l}"),
                    interface: c.interface_name(*other),
                });
            }
        }
    }
    Ok(())
}

/// Removes an address from an interface.
///
/// # Errors
/// [`AddressError::Missing`] if the interface does not have it.
pub fn remove(
    c: &mut Control,
    sw_if: SwIfIndex,
    addr: Ipv4Addr,
    len: u8,
) -> Result<(), AddressError> {
    let view = interface::view(c, sw_if)?;
    let ip4 = c.state::<Ip4>();
    {
        let mut ip4 = ip4.borrow_mut();
        let id = ip4.table_of(sw_if);
        let list = ip4.addresses.entry(sw_if).or_default();
        let Some(i) = list.iter().position(|x| *x == (addr, len)) else {
            let has: Vec<String> = list.iter().map(|(a, l)| format!("{a}/{l}")).collect();
            let has =
                if has.is_empty() { String::new() } else { format!("; it has {}", has.join(", ")) };
            let address = format!("{addr}/{len}");
            return Err(AddressError::Missing { interface: view.name, address, has });
        };
        list.remove(i);
        ip4.stale.remove(&(sw_if, addr, len));
        let list = ip4.addresses.entry(sw_if).or_default();
        let subnet = prefix(addr, len)?;
        let stays: Vec<Ipv4Prefix> = list
            .iter()
            .filter_map(|(a, l)| Some((*a, prefix(*a, *l).ok()?)))
            .flat_map(|(a, p)| routes(sw_if, a, p))
            .map(|(p, _)| p)
            .collect();
        if let Some(t) = ip4.tables.get_mut(&id) {
            for (p, _) in routes(sw_if, addr, subnet) {
                if !stays.contains(&p) {
                    t.unset(c, p, Source::Interface);
                }
            }
        }
    }
    changed(c, sw_if);
    Ok(())
}

/// Marks all interface addresses. [`finish_replacing`] removes those that were not added again.
pub fn begin_replacing(c: &mut Control) {
    let ip4 = c.state::<Ip4>();
    let mut ip4 = ip4.borrow_mut();
    let each = |(i, list): (&SwIfIndex, &Vec<(Ipv4Addr, u8)>)| {
        let i = *i;
        list.iter().map(move |(addr, len)| (i, *addr, *len)).collect::<Vec<_>>()
    };
    ip4.stale = ip4.addresses.iter().flat_map(each).collect();
}

/// Removes the addresses that were present at [`begin_replacing`] and not added again.
///
/// # Errors
/// If one cannot be removed; others may be removed already.
pub fn finish_replacing(c: &mut Control) -> Result<(), AddressError> {
    let stale = std::mem::take(&mut c.state::<Ip4>().borrow_mut().stale);
    for (sw_if, addr, len) in stale {
        remove(c, sw_if, addr, len)?;
    }
    Ok(())
}

/// Removes all addresses from an interface.
///
/// # Errors
/// If the interface does not exist.
pub fn remove_all(c: &mut Control, sw_if: SwIfIndex) -> Result<(), AddressError> {
    let all = c.state::<Ip4>().borrow().addresses(sw_if).to_vec();
    for (a, l) in all {
        remove(c, sw_if, a, l)?;
    }
    Ok(())
}

/// Moves an interface to another table.
///
/// # Errors
/// If the interface has addresses, or the table does not exist.
pub fn set_table(c: &mut Control, sw_if: SwIfIndex, table: u32) -> Result<(), AddressError> {
    let view = interface::view(c, sw_if)?;
    let ip4 = c.state::<Ip4>();
    {
        let mut ip4 = ip4.borrow_mut();
        if !ip4.tables.contains_key(&table) {
            return Err(RouteError::NoTable(table).into());
        }
        if !ip4.addresses(sw_if).is_empty() {
            return Err(AddressError::HasAddresses(view.name));
        }
        ip4.bound.insert(sw_if, table);
    }
    publish_interface(c, sw_if);
    Ok(())
}

/// Publishes a change to workers, ARP and subscribers.
fn changed(c: &mut Control, sw_if: SwIfIndex) {
    publish_interface(c, sw_if);
    let list = c.state::<Ip4>().borrow().addresses(sw_if).to_vec();
    arp::set_addresses(c, sw_if, &list);
    c.publish(AddressesChanged(sw_if));
}

/// Removes addresses and routes of a deleted interface.
pub(crate) fn interface_gone(c: &mut Control, sw_if: SwIfIndex) {
    let _ = remove_all(c, sw_if);
    let ip4 = c.state::<Ip4>();
    let known = {
        let mut ip4 = ip4.borrow_mut();
        let idle = ip4.tables.values().all(Table::is_settled);
        let mut gone = true;
        for t in ip4.tables.values_mut() {
            gone &= t.interface_gone(c, sw_if);
        }
        if idle && !gone {
            c.remote().submit(settle_later);
        }
        ip4.addresses.remove(&sw_if).is_some() | ip4.bound.remove(&sw_if).is_some()
    };
    if known {
        publish_interface(c, sw_if);
    }
}

/// Adds a host route for each resolved neighbour, so that packets to it bypass the subnet's glean
/// entry.
pub(crate) fn follow_neighbors(c: &mut Control) {
    c.subscribe(|c, change: &arp::NeighborChange| {
        let ip4 = c.state::<Ip4>();
        let mut ip4 = ip4.borrow_mut();
        let id = ip4.table_of(change.sw_if);
        let Some(t) = ip4.tables.get_mut(&id) else { return };
        let host = Ipv4Prefix::host(change.ip.to_bits());
        if change.fib_entry {
            let path = Path::via(change.ip, Some(change.sw_if));
            if let Err(e) = t.set(c, host, Source::Adjacency, vec![path]) {
                tracing::warn!("neighbour {}: {e}", change.ip);
            }
        } else {
            t.unset(c, host, Source::Adjacency);
        }
    });
}
