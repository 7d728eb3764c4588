//! Interface addresses and the routes that they add.

use crate::family::{Family, IfAddress, Version, family};
use crate::table::{Table, delete_leaving, settle_later, tables_over};
use crate::{
    AddressesChanged, FoundDisplaced, FoundDisplacing, InterfaceTableChanged, Ip, RouteError,
    Source, table,
};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use thalweg_device::{DeviceError, SwIfIndex, interface};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix};

/// Reason why an address cannot be added or removed.
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
    /// The interface has the address already.
    #[error("`{interface}` has the address {address} already")]
    Present {
        /// Name of the interface.
        interface: String,
        /// The address.
        address: String,
    },
    /// No interface can have the address.
    #[error("{0} cannot be an interface address: {1}")]
    Unusable(String, String),
    /// The interface is a sub-interface that receives frames of several tags. VPP's words.
    #[error("sub-interface without exact-match doesn't support IP addressing")]
    NotExact,
    /// The interface is that of packets that the router makes. VPP's words.
    #[error("local0 interface doesn't support IP addressing")]
    Local,
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
    /// The interface got the address automatically.
    #[error("`{0}` has {1} by itself; another link-local address replaces it")]
    NotDeletable(String, String),
    /// A configured route leads the subnet elsewhere.
    #[error("{0} is not taken: the route {1} leads elsewhere")]
    Routed(String, String),
    /// The routes of the address could not be added.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// An interface cannot borrow its own addresses.
    #[error("another interface expected: `{0}` cannot use its own addresses")]
    OwnLender(String),
    /// The interface borrows no addresses.
    #[error("`{0}` is not unnumbered")]
    NotUnnumbered(String),
    /// The interface has addresses, so it cannot move to another table.
    #[error("`{0}` has addresses; remove them before it moves to another table")]
    HasAddresses(String),
}

/// Checks that an interface can have an address; returns its subnet.
pub(crate) fn check<A: Address>(
    family: &dyn Family<A>,
    address: IfAddress<A>,
) -> Result<Prefix<A>, AddressError> {
    let unusable = |why: String| AddressError::Unusable(address.to_string(), why);
    let Ok(subnet) = address.subnet() else {
        return Err(unusable(format!("the prefix length must be 0 to {}", A::BITS)));
    };
    if address.len == 0 {
        return Err(unusable(format!("the prefix length must be 1 to {}", A::BITS)));
    }
    match family.unusable(address.addr, subnet) {
        Some(why) => Err(unusable(why.to_owned())),
        None => Ok(subnet),
    }
}

/// Adds an address to an interface. Addresses of other interfaces that a protocol has found make
/// way for it, as does one of the interface itself in a subnet of another length.
///
/// # Errors
/// [`AddressError`]; nothing has changed then.
pub fn add<A: Address>(
    c: &mut Control,
    sw_if: SwIfIndex,
    addr: A,
    len: u8,
) -> Result<(), AddressError> {
    let subnet = check(family::<A>(c)?, IfAddress { addr, len })?;
    check_interface(c, sw_if)?;
    while displace_found(c, sw_if, subnet) {}
    put(c, sw_if, addr, len)
}

/// Checks that an interface can have addresses.
fn check_interface(
    c: &Control,
    sw_if: SwIfIndex,
) -> Result<interface::InterfaceView, AddressError> {
    let view = interface::view(c, sw_if)?;
    match view.sub {
        Some((_, of)) if of.tags().is_none() => Err(AddressError::NotExact),
        _ if view.kind == interface::Kind::Local => Err(AddressError::Local),
        _ => Ok(view),
    }
}

/// Takes away the addresses in a subnet that meets the one of a written address, if a protocol has
/// found all of them. Returns whether it did, and another subnet may meet that as well.
fn displace_found<A: Address>(c: &mut Control, sw_if: SwIfIndex, subnet: Prefix<A>) -> bool {
    let (other, gone) = {
        let ip = c.state::<Ip<A>>();
        let ip = ip.borrow();
        let all = ip.subnets.get(&ip.table_of(sw_if));
        let Some((theirs, other)) = all.and_then(|all| all.meeting(subnet)) else { return false };
        let of_it: Vec<IfAddress<A>> = {
            let all = ip.addresses(*other).iter().copied();
            all.filter(|a| a.subnet() == Ok(theirs)).collect()
        };
        let is_found = of_it.iter().all(|a| ip.is_found(*other, *a));
        if (*other, theirs) == (sw_if, subnet) || !is_found || of_it.is_empty() {
            return false;
        }
        (*other, of_it)
    };
    tracing::info!("{}: {} makes way for {subnet}", c.interface_name(other), gone[0]);
    take_found_away(c, other, &gone);
    true
}

/// Removes addresses that a protocol has found, for what a user has written.
fn take_found_away<A: Address>(c: &mut Control, sw_if: SwIfIndex, gone: &[IfAddress<A>]) {
    c.publish(FoundDisplacing { sw_if });
    for address in gone {
        // The address is there: removal cannot fail.
        let _ = remove(c, sw_if, address.addr, address.len);
    }
    c.publish(FoundDisplaced { version: Version::of::<A>(), sw_if });
}

fn put<A: Address>(
    c: &mut Control,
    sw_if: SwIfIndex,
    addr: A,
    len: u8,
) -> Result<(), AddressError> {
    let (family, address) = (family::<A>(c)?, IfAddress { addr, len });
    let subnet = check(family, address)?;
    let view = check_interface(c, sw_if)?;
    if family.is_of_link(addr) {
        return family.set_link_address(c, sw_if, addr, true);
    }
    let is_up = view.admin_up;
    let ip = c.state::<Ip<A>>();
    {
        let mut ip = ip.borrow_mut();
        if ip.stale.remove(&(sw_if, address)) {
            // The address was stale, and stays.
            return Ok(());
        }
        if ip.found.remove(&(sw_if, address)) {
            // The address is there, and a user's from now on.
            return Ok(());
        }
        let id = ip.table_of(sw_if);
        overlap(c, &ip, (sw_if, id), address, subnet)?;
        match is_up {
            true => put_routes(c, family, ip.table_mut(id)?, (sw_if, addr, subnet))?,
            false => _ = ip.down.insert(sw_if),
        }
        ip.addresses.entry(sw_if).or_default().push(address);
        ip.subnets.entry(id).or_default().insert(subnet, sw_if);
    }
    changed::<A>(c, sw_if);
    Ok(())
}

/// Adds an address that a protocol has found, which is not part of the configuration.
///
/// # Errors
/// The errors of [`add`]; also if the interface has it already, or a configured route leads the
/// subnet elsewhere.
pub fn add_found<A: Address>(
    c: &mut Control,
    sw_if: SwIfIndex,
    addr: A,
    len: u8,
) -> Result<(), AddressError> {
    let address = IfAddress { addr, len };
    if let Some(route) = routed_elsewhere(c, sw_if, address) {
        return Err(AddressError::Routed(address.to_string(), route.to_string()));
    }
    put(c, sw_if, addr, len)?;
    c.state::<Ip<A>>().borrow_mut().found.insert((sw_if, IfAddress { addr, len }));
    Ok(())
}

/// Returns the configured route that leads the subnet of an address elsewhere than to the
/// interface: a protocol may not find the address then, nor keep it.
pub fn routed_elsewhere<A: Address>(
    c: &Control,
    sw_if: SwIfIndex,
    address: IfAddress<A>,
) -> Option<Prefix<A>> {
    let ip = c.state::<Ip<A>>();
    let ip = ip.borrow();
    ip.tables.get(&ip.table_of(sw_if))?.configured_elsewhere(address.subnet().ok()?, sw_if)
}

/// Adds the routes of an address; none if one fails.
fn put_routes<A: Address>(
    c: &Control,
    family: &dyn Family<A>,
    t: &mut Table<A>,
    (sw_if, addr, subnet): (SwIfIndex, A, Prefix<A>),
) -> Result<(), RouteError> {
    let usual = family.routes(sw_if, addr, subnet);
    let mut all = usual.clone();
    family.adjust(c, sw_if, subnet, &mut all);
    for (gone, _) in usual.iter().filter(|(p, _)| all.iter().all(|(other, _)| p != other)) {
        t.unset(c, *gone, Source::Interface);
    }
    for (i, (p, path)) in all.iter().enumerate() {
        // A second address in the same subnet adds only its own host route.
        if let Err(e) = t.set(c, *p, Source::Interface, vec![*path]) {
            for (p, _) in &all[..i] {
                t.unset(c, *p, Source::Interface);
            }
            return Err(RouteError::from(e));
        }
    }
    family.routed(c, sw_if, subnet);
    Ok(())
}

/// Sets the routes of an interface's addresses once more, after the family has changed its mind.
///
/// # Errors
/// If a route cannot be set.
pub fn refresh_routes<A: Address>(c: &Control, sw_if: SwIfIndex) -> Result<(), RouteError> {
    let family = family::<A>(c)?;
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    if ip.down.contains(&sw_if) {
        return Ok(());
    }
    let (id, all) = (ip.table_of(sw_if), ip.addresses(sw_if).to_vec());
    let t = ip.table_mut(id)?;
    for (address, subnet) in all.into_iter().filter_map(|a| Some((a, a.subnet().ok()?))) {
        put_routes(c, family, t, (sw_if, address.addr, subnet))?;
    }
    Ok(())
}

/// Takes the routes of an interface's addresses away while it is administratively down.
pub(crate) fn state_changed<A: Address>(c: &mut Control, sw_if: SwIfIndex) {
    let (Ok(family), Ok(view)) = (family::<A>(c), interface::view(c, sw_if)) else { return };
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    let all = ip.addresses(sw_if).to_vec();
    let changed = match view.admin_up {
        true => ip.down.remove(&sw_if),
        false => !all.is_empty() && ip.down.insert(sw_if),
    };
    let id = ip.table_of(sw_if);
    let Some(t) = ip.tables.get_mut(&id).filter(|_| changed) else { return };
    for (address, subnet) in all.into_iter().filter_map(|a| Some((a, a.subnet().ok()?))) {
        if !view.admin_up {
            for (p, _) in family.routes(sw_if, address.addr, subnet) {
                t.unset(c, p, Source::Interface);
            }
        } else if let Err(e) = put_routes(c, family, t, (sw_if, address.addr, subnet)) {
            tracing::error!("{}: the routes of {address} are missing: {e}", view.name);
        }
    }
}

fn overlap<A: Address>(
    c: &Control,
    ip: &Ip<A>,
    (sw_if, table): (SwIfIndex, TableId),
    new: IfAddress<A>,
    subnet: Prefix<A>,
) -> Result<(), AddressError> {
    let found = ip.subnets.get(&table).and_then(|all| all.meeting(subnet));
    let Some((theirs, other)) = found.map(|(theirs, other)| (theirs, *other)) else {
        return Ok(());
    };
    // One interface may have several addresses in one subnet.
    if other == sw_if && theirs == subnet {
        return match ip.addresses(sw_if).iter().any(|old| old.addr == new.addr) {
            true => Err(AddressError::Present {
                interface: c.interface_name(sw_if),
                address: new.to_string(),
            }),
            false => Ok(()),
        };
    }
    Err(overlapping(c, ip, new, (theirs, other)))
}

fn overlapping<A: Address>(
    c: &Control,
    ip: &Ip<A>,
    new: IfAddress<A>,
    (theirs, other): (Prefix<A>, SwIfIndex),
) -> AddressError {
    let old = ip.addresses(other).iter().find(|old| old.subnet() == Ok(theirs));
    AddressError::Overlap {
        new: new.to_string(),
        old: old.map_or_else(|| theirs.to_string(), IfAddress::to_string),
        interface: c.interface_name(other),
    }
}

/// Removes an address from an interface.
///
/// # Errors
/// [`AddressError::Missing`] if the interface does not have it.
pub fn remove<A: Address>(
    c: &mut Control,
    sw_if: SwIfIndex,
    addr: A,
    len: u8,
) -> Result<(), AddressError> {
    let (family, address) = (family::<A>(c)?, IfAddress { addr, len });
    let view = interface::view(c, sw_if)?;
    if family.is_of_link(addr) {
        return family.set_link_address(c, sw_if, addr, false);
    }
    let ip = c.state::<Ip<A>>();
    {
        let mut ip = ip.borrow_mut();
        let id = ip.table_of(sw_if);
        let list = ip.addresses.entry(sw_if).or_default();
        let (Some(i), Ok(subnet)) = (list.iter().position(|x| *x == address), address.subnet())
        else {
            let has: Vec<String> = list.iter().map(IfAddress::to_string).collect();
            let has =
                if has.is_empty() { String::new() } else { format!("; it has {}", has.join(", ")) };
            let address = address.to_string();
            return Err(AddressError::Missing { interface: view.name, address, has });
        };
        list.remove(i);
        let is_last = list.iter().all(|a| a.subnet() != Ok(subnet));
        // Subnets do not overlap: addresses of others add other routes.
        let stays: Vec<Prefix<A>> = list
            .iter()
            .filter(|a| a.subnet() == Ok(subnet))
            .flat_map(|a| family.routes(sw_if, a.addr, subnet))
            .map(|(p, _)| p)
            .collect();
        if is_last && let Some(all) = ip.subnets.get_mut(&id) {
            all.remove(subnet);
        }
        ip.stale.remove(&(sw_if, address));
        ip.found.remove(&(sw_if, address));
        if let Ok(t) = ip.table_mut(id) {
            for (p, _) in family.routes(sw_if, addr, subnet) {
                if !stays.contains(&p) {
                    t.unset(c, p, Source::Interface);
                }
            }
        }
    }
    changed::<A>(c, sw_if);
    Ok(())
}

/// Marks all interface addresses. [`finish_replacing`] removes those that were not added again.
pub fn begin_replacing(c: &mut Control) {
    mark::<u32>(c);
    mark::<u128>(c);
}

fn mark<A: Address>(c: &mut Control) {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    let each = |(i, list): (&SwIfIndex, &Vec<IfAddress<A>>)| {
        let i = *i;
        list.iter().map(move |address| (i, *address)).collect::<Vec<_>>()
    };
    let all: BTreeSet<_> = ip.addresses.iter().flat_map(each).collect();
    ip.stale = all.difference(&ip.found).copied().collect();
}

/// Removes the addresses that were present at [`begin_replacing`] and not added again.
///
/// # Errors
/// If one cannot be removed; others may be removed already.
pub fn finish_replacing(c: &mut Control) -> Result<(), AddressError> {
    sweep::<u32>(c)?;
    sweep::<u128>(c)
}

fn sweep<A: Address>(c: &mut Control) -> Result<(), AddressError> {
    let stale = std::mem::take(&mut c.state::<Ip<A>>().borrow_mut().stale);
    for (sw_if, address) in stale {
        remove(c, sw_if, address.addr, address.len)?;
    }
    Ok(())
}

/// Removes all addresses from an interface, of both versions.
///
/// # Errors
/// If the interface does not exist.
pub fn remove_all(c: &mut Control, sw_if: SwIfIndex) -> Result<(), AddressError> {
    clear::<u32>(c, sw_if)?;
    clear::<u128>(c, sw_if)
}

fn clear<A: Address>(c: &mut Control, sw_if: SwIfIndex) -> Result<(), AddressError> {
    let all = c.state::<Ip<A>>().borrow().addresses(sw_if).to_vec();
    all.into_iter().try_for_each(|a| remove(c, sw_if, a.addr, a.len))
}

/// Moves an interface to another table, and with it the host routes of its neighbours. Other owners
/// of routes over the interface follow [`InterfaceTableChanged`].
///
/// # Errors
/// If a user has given the interface addresses, or the table does not exist.
pub fn set_table<A: Address>(
    c: &mut Control,
    sw_if: SwIfIndex,
    table: TableId,
) -> Result<(), AddressError> {
    family::<A>(c)?;
    let view = interface::view(c, sw_if)?;
    let ip = c.state::<Ip<A>>();
    let found = {
        let mut ip = ip.borrow_mut();
        ip.table_mut(table)?;
        let all = ip.addresses(sw_if);
        if !all.iter().all(|a| ip.is_found(sw_if, *a)) {
            return Err(AddressError::HasAddresses(view.name));
        }
        if ip.table_of(sw_if) == table { Vec::new() } else { all.to_vec() }
    };
    if !found.is_empty() {
        take_found_away(c, sw_if, &found);
    }
    let before = {
        let mut ip = ip.borrow_mut();
        let before = ip.table_of(sw_if);
        ip.bound.set(sw_if, Some(table));
        before
    };
    publish::<A>(c, sw_if);
    if before != table {
        table::move_neighbor_routes::<A>(c, sw_if, before);
        c.publish(InterfaceTableChanged { version: Version::of::<A>(), sw_if });
    }
    delete_leaving::<A>(c);
    Ok(())
}

/// Moves an interface to another table with the addresses that a user has given it, as one follows
/// its twin in Linux into a VRF. Addresses of others there that a protocol has found make way, and
/// its own such ones are taken away, as by [`set_table`].
///
/// # Errors
/// If the table does not exist, or another interface there has one of the subnets; nothing has
/// changed then.
pub fn move_to_table<A: Address>(
    c: &mut Control,
    sw_if: SwIfIndex,
    table: TableId,
) -> Result<(), AddressError> {
    interface::view(c, sw_if)?;
    let ip = c.state::<Ip<A>>();
    let (before, written, stale) = {
        let mut ip = ip.borrow_mut();
        ip.table_mut(table)?;
        let before = ip.table_of(sw_if);
        if before == table {
            return Ok(());
        }
        let own = ip.addresses(sw_if).iter().copied().filter(|a| !ip.is_found(sw_if, *a));
        let written: Vec<IfAddress<A>> = own.collect();
        written.iter().try_for_each(|a| has_room(c, &ip, table, *a))?;
        let of_it = |a: &IfAddress<A>| ip.stale.contains(&(sw_if, *a));
        let stale: Vec<IfAddress<A>> = written.iter().copied().filter(of_it).collect();
        (before, written, stale)
    };
    written.iter().try_for_each(|a| remove(c, sw_if, a.addr, a.len))?;
    let put = |c: &mut Control| written.iter().try_for_each(|a| add(c, sw_if, a.addr, a.len));
    let moved = set_table::<A>(c, sw_if, table).and_then(|()| put(c));
    if moved.is_err() {
        // No room for a route: what was there before has room again.
        let _ = clear::<A>(c, sw_if);
        if let Err(e) = set_table::<A>(c, sw_if, before).and_then(|()| put(c)) {
            tracing::error!("{} has lost addresses: {e}", c.interface_name(sw_if));
        }
    }
    ip.borrow_mut().stale.extend(stale.into_iter().map(|address| (sw_if, address)));
    moved
}

/// Checks that no interface in a table has a written address whose subnet meets that of a new one.
fn has_room<A: Address>(
    c: &Control,
    ip: &Ip<A>,
    table: TableId,
    new: IfAddress<A>,
) -> Result<(), AddressError> {
    let (Some(all), Ok(subnet)) = (ip.subnets.get(&table), new.subnet()) else { return Ok(()) };
    let is_written = |(theirs, other): &(Prefix<A>, &SwIfIndex)| {
        let mut of_it = ip.addresses(**other).iter().filter(|a| a.subnet() == Ok(*theirs));
        of_it.any(|a| !ip.is_found(**other, *a))
    };
    match all.all_meeting(subnet).find(is_written) {
        Some((theirs, other)) => Err(overlapping(c, ip, new, (theirs, *other))),
        None => Ok(()),
    }
}

/// Makes an interface speak a version of IP without an address, or only with one. The interface
/// drops the packets of a version that it does not speak.
///
/// # Errors
/// If the interface does not exist.
pub fn set_enabled<A: Address>(
    c: &mut Control,
    sw_if: SwIfIndex,
    on: bool,
) -> Result<(), AddressError> {
    speak::<A>(c, sw_if, on, |ip| &mut ip.enabled)
}

/// Makes an interface speak a version of IP for a feature's sake, such as its twin in Linux, which
/// may have no address either: the configuration does not include this. The setting ends with the
/// interface.
///
/// # Errors
/// If the interface does not exist.
pub fn set_spoken<A: Address>(
    c: &mut Control,
    sw_if: SwIfIndex,
    on: bool,
) -> Result<(), AddressError> {
    speak::<A>(c, sw_if, on, |ip| &mut ip.spoken)
}

/// Enters an interface into one of the lists of those that speak a version, or takes it out.
fn speak<A: Address>(
    c: &mut Control,
    sw_if: SwIfIndex,
    on: bool,
    list: fn(&mut Ip<A>) -> &mut BTreeSet<SwIfIndex>,
) -> Result<(), AddressError> {
    family::<A>(c)?;
    interface::view(c, sw_if)?;
    let is_new = {
        let ip = c.state::<Ip<A>>();
        let mut ip = ip.borrow_mut();
        let list = list(&mut ip);
        if on { list.insert(sw_if) } else { list.remove(&sw_if) }
    };
    if is_new {
        changed::<A>(c, sw_if);
    }
    Ok(())
}

/// Makes an interface unnumbered: it uses the addresses of another one, of both versions, behind
/// its own, as sources of ARP and ICMP and as its subnets. Without a lender it borrows no more.
///
/// # Errors
/// If an interface does not exist, or borrows from itself, or borrowed nothing.
pub fn set_unnumbered(
    c: &mut Control,
    sw_if: SwIfIndex,
    lender: Option<SwIfIndex>,
) -> Result<(), AddressError> {
    let view = interface::view(c, sw_if)?;
    match lender {
        Some(lender) if lender == sw_if => return Err(AddressError::OwnLender(view.name)),
        Some(lender) => drop(interface::view(c, lender)?),
        None if c.state::<Ip<u32>>().borrow().lender(sw_if).is_none() => {
            return Err(AddressError::NotUnnumbered(view.name));
        }
        None => {}
    }
    borrow::<u32>(c, sw_if, lender);
    borrow::<u128>(c, sw_if, lender);
    Ok(())
}

fn borrow<A: Address>(c: &mut Control, sw_if: SwIfIndex, lender: Option<SwIfIndex>) {
    let old = {
        let ip = c.state::<Ip<A>>();
        let mut ip = ip.borrow_mut();
        ip.lenders.set(sw_if, lender)
    };
    if old != lender {
        table::follow_lender::<A>(c, sw_if);
        changed::<A>(c, sw_if);
    }
}

/// Publishes a change to workers and subscribers.
fn changed<A: Address>(c: &mut Control, sw_if: SwIfIndex) {
    publish::<A>(c, sw_if);
    c.publish(AddressesChanged { version: Version::of::<A>(), sw_if });
    let borrowers = c.state::<Ip<A>>().borrow().lenders.of(sw_if).collect();
    inform::<A>(c, borrowers);
}

/// Notifies subscribers that unnumbered interfaces use other addresses: there may be many.
fn inform<A: Address>(c: &mut Control, borrowers: Vec<SwIfIndex>) {
    let is_first = {
        let ip = c.state::<Ip<A>>();
        let due = &mut ip.borrow_mut().borrowers_due;
        let idle = due.is_empty();
        due.extend(borrowers);
        idle && !due.is_empty()
    };
    if is_first {
        inform_borrowers::<A>(c);
    }
}

/// Maximum time per slice.
const SLICE: Duration = Duration::from_millis(1);

/// Publishes the addresses of unnumbered interfaces that have changed with those of their lender.
fn inform_borrowers<A: Address>(c: &mut Control) {
    let began = Instant::now();
    loop {
        let next = c.state::<Ip<A>>().borrow().borrowers_due.first().copied();
        let Some(sw_if) = next else { return };
        publish::<A>(c, sw_if);
        c.publish(AddressesChanged { version: Version::of::<A>(), sw_if });
        // Last: until then others leave what they add to this.
        let ip = c.state::<Ip<A>>();
        let mut ip = ip.borrow_mut();
        ip.borrowers_due.remove(&sw_if);
        if !ip.borrowers_due.is_empty() && began.elapsed() >= SLICE {
            c.after(Duration::ZERO, inform_borrowers::<A>);
            return;
        }
    }
}

fn publish<A: Address>(c: &mut Control, sw_if: SwIfIndex) {
    c.state::<Ip<A>>().borrow_mut().note_addresses(sw_if);
    if let Ok(family) = family::<A>(c) {
        family.publish_interface(c, sw_if);
    }
}

/// Removes addresses and routes of a deleted interface.
pub(crate) fn interface_gone<A: Address>(c: &mut Control, sw_if: SwIfIndex) {
    let _ = clear::<A>(c, sw_if);
    let ip = c.state::<Ip<A>>();
    let (borrowed, borrowers) = {
        let mut ip = ip.borrow_mut();
        let borrowed = ip.lenders.set(sw_if, None).is_some();
        ip.borrowers_due.remove(&sw_if);
        let of_it: Vec<SwIfIndex> = ip.lenders.of(sw_if).collect();
        of_it.iter().for_each(|borrower| _ = ip.lenders.set(*borrower, None));
        (borrowed, of_it)
    };
    for borrower in &borrowers {
        table::follow_lender::<A>(c, *borrower);
    }
    inform::<A>(c, borrowers);
    let known = {
        let mut ip = ip.borrow_mut();
        let was_settled = ip.is_resolved();
        let ip = &mut *ip;
        for id in tables_over::<A>(c, sw_if) {
            let Some(t) = ip.tables.get_mut(&id) else { continue };
            match t.interface_gone(c, sw_if) {
                true => ip.unsettled.remove(&id),
                false => ip.unsettled.insert(id),
            };
            // Subscribers know that it goes.
            let _ = t.take_changed_peers();
        }
        if was_settled && !ip.is_resolved() {
            c.remote().submit(settle_later);
        }
        ip.down.remove(&sw_if);
        ip.enabled.remove(&sw_if);
        ip.spoken.remove(&sw_if);
        let (id, had) = (ip.table_of(sw_if), ip.addresses.remove(&sw_if));
        if let Some(all) = ip.subnets.get_mut(&id) {
            let own = had.iter().flatten().filter_map(|a| a.subnet().ok());
            own.for_each(|subnet| all.remove(subnet));
        }
        borrowed | had.is_some() | ip.bound.set(sw_if, None)
    };
    if known {
        publish::<A>(c, sw_if);
        delete_leaving::<A>(c);
    }
}

/// Returns the interface that has an address in a table.
pub(crate) fn owner<A: Address>(ip: &Ip<A>, table: TableId, addr: A) -> Option<SwIfIndex> {
    let owns = |i: &SwIfIndex| ip.addresses(*i).iter().any(|a| a.addr == addr);
    ip.addressed.with_own(table).find(owns)
}

/// Returns the version's address of an interface that is nearest to a destination: the one in the
/// smallest subnet around it, else the first.
pub(crate) fn nearest<A: Address>(ip: &Ip<A>, sw_if: SwIfIndex, to: A) -> Option<A> {
    let mut all = ip.usable_addresses(sw_if);
    let near = all.clone().filter(|a| a.subnet().is_ok_and(|p| p.contains(to)));
    near.max_by_key(|a| a.len).or(all.next()).map(|a| a.addr)
}
