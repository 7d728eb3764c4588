//! Link-local addresses (RFC 4291 section 2.5.6): one for each interface that speaks IPv6, and the
//! neighbours of each link.
//!
//! All links share one table for workers: a key is the interface's number in the upper 32 bits, and
//! the address's identifier in the lower 64. The interface's own entry covers the neighbours that
//! are still to be resolved.

use crate::dad;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;
use thalweg_device::{InterfaceEvent, InterfaceView, MacAddr, SwIfIndex, interface};
use thalweg_feat_ip::address::{AddressError, set_enabled};
use thalweg_feat_ip::{AddressesChanged, IfAddress, Ip6, Version};
use thalweg_feat_nd as nd;
use thalweg_feat_neighbor::NeighborChange;
use thalweg_fib::forwarding::{DROP, LOCAL};
use thalweg_fib::{Dpo, Forwarding, LinkType};
use thalweg_graph::Control;
use thalweg_tables::hash::random_seed;
use thalweg_tables::{Ipv6Prefix, Leaf, Lpm6, Lpm6Config, Lpm6Reader, LpmError, Pages, Prefix};

/// An interface that speaks IPv6.
struct On {
    own: Ipv6Addr,
    /// Address that it got automatically; it stays when the MAC address changes.
    automatic: Ipv6Addr,
    glean: Option<Dpo>,
}

/// State on the main thread.
struct LinkLocals {
    /// Addresses that users have chosen.
    configured: BTreeMap<SwIfIndex, Ipv6Addr>,
    /// Addresses of interfaces' twins in Linux, which replace automatic ones.
    followed: BTreeMap<SwIfIndex, Ipv6Addr>,
    on: BTreeMap<SwIfIndex, On>,
    table: Lpm6,
}

/// The table as workers read it.
pub struct LinkTable(Lpm6Reader);

impl LinkTable {
    /// Looks a link-local address up; 0 if the interface does not speak IPv6, or the address is
    /// none that a host can have.
    pub(crate) fn lookup(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> Dpo {
        key(sw_if, ip).map_or(Dpo(0), |key| Dpo(self.0.lookup(key)))
    }
}

/// Returns the key of an address; `None` if its bits 10 to 63 are not all zero.
fn key(sw_if: SwIfIndex, ip: Ipv6Addr) -> Option<u128> {
    let bits = ip.to_bits();
    let sound = bits >> 64 == 0xfe80 << 48;
    sound.then_some(u128::from(sw_if.get()) << 96 | bits & u128::from(u64::MAX))
}

/// The prefix of an interface's keys.
fn all_of(sw_if: SwIfIndex) -> Option<Ipv6Prefix> {
    Prefix::new(u128::from(sw_if.get()) << 96, 32).ok()
}

/// Makes the address of a MAC address (RFC 4291 appendix A).
pub(crate) fn eui64(mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.octets();
    let id = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(id))
}

/// Returns the automatic address of an interface.
fn automatic(view: &InterfaceView) -> Ipv6Addr {
    match view.ethernet {
        true => eui64(view.mac),
        // The identifier is not unique by its making: the bit for unique ones is clear.
        false => {
            let id = random_seed() & !(1 << 57);
            Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(id))
        }
    }
}

pub(crate) fn init(c: &mut Control) -> Result<(), LpmError> {
    let config = Lpm6Config { pages: Pages::Normal, ..Lpm6Config::default() };
    let table = Lpm6::new(config)?;
    c.share(Arc::new(LinkTable(table.reader())));
    c.insert(LinkLocals {
        configured: BTreeMap::new(),
        followed: BTreeMap::new(),
        on: BTreeMap::new(),
        table,
    });
    c.subscribe(|c, change: &AddressesChanged| {
        if change.version == Version::V6 {
            update(c, change.sw_if);
        }
    });
    c.subscribe(|c, event: &InterfaceEvent| {
        if let InterfaceEvent::Deleted(i) = *event {
            switch_off(c, i);
            let state = c.state::<LinkLocals>();
            state.borrow_mut().configured.remove(&i);
            state.borrow_mut().followed.remove(&i);
        }
    });
    c.subscribe(follow_neighbor);
    c.every(Duration::from_millis(500), |c| {
        c.state::<LinkLocals>().borrow_mut().table.reclaim(c.domain());
        true
    });
    Ok(())
}

/// Returns the link-local address of an interface that speaks IPv6.
pub fn of(c: &Control, sw_if: SwIfIndex) -> Option<Ipv6Addr> {
    c.state::<LinkLocals>().borrow().on.get(&sw_if).map(|on| on.own)
}

/// Returns the link-local address of an interface if it may be used: it has been tested.
pub fn usable(c: &Control, sw_if: SwIfIndex) -> Option<Ipv6Addr> {
    of(c, sw_if).filter(|ip| !dad::holds(c, sw_if, *ip))
}

/// Returns the interfaces that speak IPv6, with their link-local addresses.
pub fn all(c: &Control) -> Vec<(SwIfIndex, Ipv6Addr)> {
    c.state::<LinkLocals>().borrow().on.iter().map(|(i, on)| (*i, on.own)).collect()
}

/// Returns the address that a user has chosen for an interface.
pub(crate) fn configured(c: &Control, sw_if: SwIfIndex) -> Option<Ipv6Addr> {
    c.state::<LinkLocals>().borrow().configured.get(&sw_if).copied()
}

/// Chooses the link-local address of an interface, which speaks IPv6 from then on, or returns to
/// the automatic one.
///
/// # Errors
/// If the interface does not exist or the address is none that a host can have; in the way back, if
/// nobody has chosen it.
pub fn change(
    c: &mut Control,
    sw_if: SwIfIndex,
    ip: Ipv6Addr,
    add: bool,
) -> Result<(), AddressError> {
    let view = interface::view(c, sw_if)?;
    if key(sw_if, ip).is_none() || ip.to_bits() as u64 == 0 {
        let why = "the address of an interface on its link is in fe80::/64".to_owned();
        return Err(AddressError::Unusable(ip.to_string(), why));
    }
    {
        let state = c.state::<LinkLocals>();
        let mut s = state.borrow_mut();
        let (own, chosen) = (s.on.get(&sw_if).map(|on| on.own), s.configured.get(&sw_if));
        match (add, chosen) {
            (true, _) => _ = s.configured.insert(sw_if, ip),
            (false, Some(chosen)) if *chosen == ip => _ = s.configured.remove(&sw_if),
            (false, _) if own == Some(ip) => {
                return Err(AddressError::NotDeletable(view.name, ip.to_string()));
            }
            (false, _) => {
                let has = own.map_or_else(String::new, |own| format!("; it has {own}"));
                let (interface, address) = (view.name, ip.to_string());
                return Err(AddressError::Missing { interface, address, has });
            }
        }
    }
    if add && !c.state::<Ip6>().borrow().is_enabled(sw_if) {
        return set_enabled::<u128>(c, sw_if, true);
    }
    update(c, sw_if);
    dad::follow(c, sw_if);
    Ok(())
}

/// Gives an interface the link-local address of its twin in Linux in place of the automatic one,
/// or the automatic one again. One that a user has chosen stays. The address is no part of the
/// configuration.
///
/// # Errors
/// If the interface does not exist, or the address is none that a host can have.
pub fn follow(c: &mut Control, sw_if: SwIfIndex, ip: Option<Ipv6Addr>) -> Result<(), AddressError> {
    interface::view(c, sw_if)?;
    if let Some(odd) = ip.filter(|ip| key(sw_if, *ip).is_none() || ip.to_bits() as u64 == 0) {
        let why = "the address of an interface on its link is in fe80::/64".to_owned();
        return Err(AddressError::Unusable(odd.to_string(), why));
    }
    let before = {
        let state = c.state::<LinkLocals>();
        let followed = &mut state.borrow_mut().followed;
        match ip {
            Some(ip) => followed.insert(sw_if, ip),
            None => followed.remove(&sw_if),
        }
    };
    if before != ip {
        update(c, sw_if);
        dad::follow(c, sw_if);
    }
    Ok(())
}

/// Follows an interface's addresses.
pub(crate) fn update(c: &mut Control, sw_if: SwIfIndex) {
    let Ok(view) = interface::view(c, sw_if) else { return };
    if !c.state::<Ip6>().borrow().is_enabled(sw_if) {
        switch_off(c, sw_if);
        nd::set_addresses(c, sw_if, None, &[]);
        return;
    }
    let before = c.state::<LinkLocals>().borrow().on.get(&sw_if).map(|on| on.automatic);
    let automatic = before.unwrap_or_else(|| automatic(&view));
    let followed = c.state::<LinkLocals>().borrow().followed.get(&sw_if).copied();
    let own = configured(c, sw_if).or(followed).unwrap_or(automatic);
    switch_on(c, sw_if, own, automatic);
    let list: Vec<nd::IfAddr> = {
        let ip6 = c.state::<Ip6>();
        let ip6 = ip6.borrow();
        let each = |a: &IfAddress<u128>| nd::IfAddr { ip: Ipv6Addr::from_bits(a.addr), len: a.len };
        ip6.usable_addresses(sw_if).map(each).collect()
    };
    nd::set_addresses(c, sw_if, Some(own), &list);
}

fn switch_on(c: &mut Control, sw_if: SwIfIndex, own: Ipv6Addr, automatic: Ipv6Addr) {
    let before = c.state::<LinkLocals>().borrow_mut().on.remove(&sw_if);
    let glean = before.as_ref().and_then(|on| on.glean).or_else(|| {
        let forwarding = c.state::<Forwarding>();
        let made = forwarding.borrow_mut().glean(c, sw_if, LinkType::Ip6);
        made.inspect_err(|e| tracing::error!("{}: {e}", c.interface_name(sw_if))).ok()
    });
    let reached = if dad::holds(c, sw_if, own) { DROP } else { LOCAL };
    let state = c.state::<LinkLocals>();
    let mut s = state.borrow_mut();
    if let Some(old) = before.filter(|on| on.own != own)
        && let Some(key) = key(sw_if, old.own)
    {
        s.table.remove(Prefix::host(key));
    }
    let own_entry = key(sw_if, own).map(|key| (Prefix::host(key), reached));
    let others = all_of(sw_if).zip(glean);
    for (prefix, dpo) in own_entry.into_iter().chain(others) {
        s.put(c, prefix, dpo);
    }
    s.on.insert(sw_if, On { own, automatic, glean });
}

fn switch_off(c: &mut Control, sw_if: SwIfIndex) {
    let state = c.state::<LinkLocals>();
    let Some(gone) = state.borrow_mut().on.remove(&sw_if) else { return };
    {
        let table = &mut state.borrow_mut().table;
        let own = key(sw_if, gone.own).map(Prefix::host);
        for prefix in own.into_iter().chain(all_of(sw_if)) {
            table.remove(prefix);
        }
    }
    if let Some(glean) = gone.glean {
        c.state::<Forwarding>().borrow_mut().release(c, glean);
    }
}

impl LinkLocals {
    fn put(&mut self, c: &Control, prefix: Ipv6Prefix, dpo: Dpo) {
        let Some(leaf) = Leaf::new(dpo.get()) else { return };
        if let Err(e) = self.table.insert(prefix, leaf, c.domain()) {
            tracing::warn!("link-local table: {e}");
        }
    }
}

/// Neighbours by link-local addresses are reached by the table of their link.
fn follow_neighbor(c: &mut Control, change: &NeighborChange) {
    let IpAddr::V6(ip) = change.ip else { return };
    if !ip.is_unicast_link_local() {
        return;
    }
    let Some(key) = key(change.sw_if, ip) else { return };
    let found = c.state::<Forwarding>().borrow().find(change.sw_if, LinkType::Ip6, change.ip);
    let state = c.state::<LinkLocals>();
    let mut s = state.borrow_mut();
    // An address of our own that another host claims stays ours.
    if s.on.get(&change.sw_if).is_some_and(|on| on.own == ip) {
        return;
    }
    match found.filter(|_| change.mac.is_some()) {
        Some(adjacency) => s.put(c, Prefix::host(key), adjacency.dpo),
        None => _ = s.table.remove(Prefix::host(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_from_mac_addresses() {
        let mac = MacAddr::new(0xde, 0xad, 0, 0, 0, 0);
        assert_eq!(eui64(mac).to_string(), "fe80::dcad:ff:fe00:0");
        assert_eq!(key(SwIfIndex(1), eui64(mac)), Some(1 << 96 | 0xdcad_00ff_fe00_0000));
        for odd in ["fe80:0:0:1::1", "febf::1", "2001:db8::1"] {
            assert_eq!(key(SwIfIndex(1), odd.parse().unwrap()), None, "{odd}");
        }
    }
}
