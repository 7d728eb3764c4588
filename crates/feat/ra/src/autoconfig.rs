//! Addresses and default routes by other routers' advertisements (RFC 4862 section 5.5, RFC 4861
//! section 6.3, RFC 4191).

use crate::config::{Preference, RaError, usable};
use crate::solicit::{self, Pace};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};
use thalweg_device::{InterfaceEvent, SwIfIndex, interface};
use thalweg_feat_ip::{
    FoundDisplaced, IfAddress, InterfaceTableChanged, Ip6, Path, Source, TableId, Version, address,
    set_found_route,
};
use thalweg_feat_ip6::link_local;
use thalweg_feat_nd::{RouterHeard, RouterPrefix};
use thalweg_graph::{Control, clock};
use thalweg_tables::Prefix;

/// Most addresses of an interface by advertisements.
pub const MAX_ADDRESSES: usize = 16;
/// Most routers of an interface.
pub const MAX_ROUTERS: usize = 8;
/// Lifetimes below this are not believed where a longer one is left, as nobody has signed them
/// (RFC 4862 section 5.5.3).
const TWO_HOURS: Duration = Duration::from_secs(7200);

/// Parts of advertisements that an interface takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Takes {
    /// Routes to routers that offer themselves as default routers, besides addresses.
    pub default_route: bool,
}

/// Routers and prefixes that have not been heard for longer give way where room is needed, whatever
/// lifetime was advertised: two of the longest intervals between advertisements (RFC 4861 section
/// 6.2.1).
const SILENCE: Duration = Duration::from_secs(3600);

/// An address by an advertisement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The address, of a subnet of 64 bits.
    pub ip: Ipv6Addr,
    /// Time when it ends; `None`: never.
    pub until: Option<Instant>,
    /// Time of the last advertisement of it.
    pub heard: Instant,
}

/// A default router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Router {
    /// Its link-local address.
    pub ip: Ipv6Addr,
    /// Time when it stops being one.
    pub until: Instant,
    /// Preference among routers.
    pub preference: Preference,
    /// Time when it last advertised itself.
    pub heard: Instant,
}

#[derive(Default)]
struct Port {
    takes: Option<Takes>,
    addresses: Vec<Found>,
    routers: Vec<Router>,
    /// Table in which the default route is.
    routed_in: Option<TableId>,
}

/// State on the main thread.
#[derive(Default)]
struct Ports {
    all: BTreeMap<SwIfIndex, Port>,
    /// Addresses and routers for which there was no room.
    full: u64,
}

/// Interval of checks for what has ended.
const TICK: Duration = Duration::from_millis(500);

pub(crate) fn init(c: &mut Control) {
    c.insert(Ports::default());
    c.subscribe(|c, heard: &RouterHeard| heed(c, heard));
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::Deleted(i) => {
            clear(c, i);
            c.state::<Ports>().borrow_mut().all.remove(&i);
        }
        // The link may be another one when it comes up.
        InterfaceEvent::State(i) if takes(c, i).is_some() => {
            let is_up = interface::view(c, i).is_ok_and(|view| view.is_up());
            if is_up {
                let _ = solicit::start(c, i, Pace::default());
            } else {
                clear(c, i);
            }
        }
        _ => {}
    });
    c.subscribe(|c, &InterfaceTableChanged { version, sw_if }: &InterfaceTableChanged| {
        if version == Version::V6 {
            route(c, sw_if);
        }
    });
    c.subscribe(|c, &FoundDisplaced { version, sw_if }: &FoundDisplaced| {
        if version == Version::V6 {
            forget_displaced(c, sw_if);
        }
    });
    c.every(TICK, |c| {
        expire(c);
        true
    });
}

/// Returns what an interface takes from advertisements.
pub fn takes(c: &Control, sw_if: SwIfIndex) -> Option<Takes> {
    c.state::<Ports>().borrow().all.get(&sw_if)?.takes
}

/// Returns the interfaces that take something from advertisements.
pub fn all(c: &Control) -> Vec<(SwIfIndex, Takes)> {
    let (ip6, ports) = (c.state::<Ip6>(), c.state::<Ports>());
    let (ip6, ports) = (ip6.borrow(), ports.borrow());
    let on = ports.all.iter().filter_map(|(i, port)| Some((*i, port.takes?)));
    on.filter(|(i, _)| ip6.is_enabled(*i)).collect()
}

/// Returns the addresses and routers that an interface has by advertisements.
pub fn found(c: &Control, sw_if: SwIfIndex) -> (Vec<Found>, Vec<Router>) {
    let ports = c.state::<Ports>();
    let ports = ports.borrow();
    let port = ports.all.get(&sw_if);
    port.map(|port| (port.addresses.clone(), port.routers.clone())).unwrap_or_default()
}

/// Returns the number of addresses and routers for which there was no room.
pub fn overflows(c: &Control) -> u64 {
    c.state::<Ports>().borrow().full
}

/// Makes an interface take addresses from advertisements, and default routes if wanted; or ends
/// that, and removes what it has by them.
///
/// # Errors
/// If the interface does not speak IPv6.
pub fn set(c: &mut Control, sw_if: SwIfIndex, takes: Option<Takes>) -> Result<(), RaError> {
    let Some(now) = takes else {
        interface::view(c, sw_if)?;
        clear(c, sw_if);
        solicit::stop(c, sw_if);
        c.state::<Ports>().borrow_mut().all.remove(&sw_if);
        return Ok(());
    };
    usable(c, sw_if)?;
    {
        let state = c.state::<Ports>();
        let mut state = state.borrow_mut();
        let port = state.all.entry(sw_if).or_default();
        if port.takes == takes {
            return Ok(());
        }
        port.takes = takes;
        if !now.default_route {
            port.routers.clear();
        }
    }
    route(c, sw_if);
    solicit::start(c, sw_if, Pace::default())
}

/// Takes away what an interface has by advertisements.
fn clear(c: &mut Control, sw_if: SwIfIndex) {
    let gone = {
        let state = c.state::<Ports>();
        let mut state = state.borrow_mut();
        let Some(port) = state.all.get_mut(&sw_if) else { return };
        port.routers.clear();
        std::mem::take(&mut port.addresses)
    };
    for found in gone {
        remove(c, sw_if, found.ip);
    }
    route(c, sw_if);
}

/// Takes an address away, unless a user has chosen it meanwhile.
fn remove(c: &mut Control, sw_if: SwIfIndex, ip: Ipv6Addr) {
    let of_it = IfAddress { addr: ip.to_bits(), len: 64 };
    if c.state::<Ip6>().borrow().is_found(sw_if, of_it) {
        // The address is there: removal cannot fail.
        let _ = address::remove(c, sw_if, ip.to_bits(), 64);
    }
}

/// Forgets addresses that have made way for what a user wrote: the next advertisement may bring
/// them back once there is room again.
fn forget_displaced(c: &Control, sw_if: SwIfIndex) {
    let (ip6, ports) = (c.state::<Ip6>(), c.state::<Ports>());
    let (ip6, mut ports) = (ip6.borrow(), ports.borrow_mut());
    if let Some(port) = ports.all.get_mut(&sw_if) {
        let has = ip6.addresses(sw_if);
        port.addresses.retain(|found| has.iter().any(|a| a.addr == found.ip.to_bits()));
    }
}

/// Writes the default route over an interface: by all routers of the best preference.
fn route(c: &mut Control, sw_if: SwIfIndex) {
    let table = c.state::<Ip6>().borrow().table_of(sw_if);
    let before = {
        let state = c.state::<Ports>();
        let mut state = state.borrow_mut();
        let Some(port) = state.all.get_mut(&sw_if) else { return };
        let is_routed = !port.routers.is_empty();
        std::mem::replace(&mut port.routed_in, is_routed.then_some(table))
    };
    let tables = before.into_iter().filter(|before| *before != table).chain([table]);
    for table in tables.collect::<Vec<_>>() {
        let paths = paths(c, table);
        let Ok(all) = Prefix::new(0, 0) else { return };
        if let Err(e) = set_found_route::<u128>(c, table, all, Source::Nd, paths) {
            tracing::warn!("default route by {}: {e}", c.interface_name(sw_if));
        }
    }
}

/// The paths of a table's default route.
fn paths(c: &Control, table: TableId) -> Vec<Path> {
    let state = c.state::<Ports>();
    let state = state.borrow();
    let here = state.all.iter().filter(|(_, port)| port.routed_in == Some(table));
    let routers = || here.clone().flat_map(|(i, port)| port.routers.iter().map(|r| (*i, *r)));
    let best = routers().map(|(_, r)| r.preference).max();
    let used = routers().filter(|(_, r)| Some(r.preference) == best);
    used.map(|(i, r)| Path::via(IpAddr::V6(r.ip), Some(i))).collect()
}

/// Takes what an advertisement says.
fn heed(c: &mut Control, heard: &RouterHeard) {
    let Some(takes) = takes(c, heard.sw_if) else { return };
    let now = clock::now();
    for prefix in &heard.prefixes {
        take_prefix(c, heard.sw_if, *prefix, now);
    }
    if !takes.default_route {
        return;
    }
    {
        let state = c.state::<Ports>();
        let mut state = state.borrow_mut();
        let Ports { all, full } = &mut *state;
        let Some(port) = all.get_mut(&heard.sw_if) else { return };
        let before = port.routers.clone();
        port.routers.retain(|r| r.ip != heard.router);
        if heard.lifetime > 0 {
            let silent = silent(&port.routers, MAX_ROUTERS, now, |r| r.heard);
            if let Some(at) = silent {
                port.routers.remove(at);
            }
            if port.routers.len() >= MAX_ROUTERS {
                *full += 1;
            } else {
                port.routers.push(Router {
                    ip: heard.router,
                    until: now + Duration::from_secs(heard.lifetime.into()),
                    preference: Preference::of(heard.flags),
                    heard: now,
                });
                port.routers.sort_unstable_by_key(|r| r.ip);
            }
        }
        let key = |all: &[Router]| all.iter().map(|r| (r.ip, r.preference)).collect::<Vec<_>>();
        let table = c.state::<Ip6>().borrow().table_of(heard.sw_if);
        let is_written = port.routed_in == (!port.routers.is_empty()).then_some(table);
        if key(&before) == key(&port.routers) && is_written {
            return;
        }
    }
    route(c, heard.sw_if);
}

/// The address of a prefix: with the interface's identifier, which its link-local address has.
fn made(prefix: &RouterPrefix, link_local: Ipv6Addr) -> Ipv6Addr {
    let (high, low) = (prefix.prefix.to_bits() >> 64 << 64, link_local.to_bits() as u64);
    Ipv6Addr::from_bits(high | u128::from(low))
}

/// Returns whether hosts may have addresses of a prefix: not if these mean something else, as those
/// that begin with 64 zeros do (RFC 4291 section 2.5).
fn is_for_hosts(net: Ipv6Addr) -> bool {
    !net.is_unicast_link_local() && !net.is_multicast() && net.to_bits() >> 64 != 0
}

/// Returns the time when an address ends by an advertisement, given its end so far.
fn ends(valid: u32, before: Option<Option<Instant>>, now: Instant) -> Option<Instant> {
    if valid == u32::MAX {
        return None;
    }
    let until = now + Duration::from_secs(valid.into());
    let least = now + TWO_HOURS;
    match before {
        // A little is left: it stays so.
        Some(Some(old)) if old <= least && until <= old => Some(old),
        Some(Some(old)) if until > least || until > old => Some(until),
        Some(_) => Some(until.max(least)),
        None => Some(until),
    }
}

/// Returns which of these makes room for another one where `most` fit: the one that has not been
/// heard for longest, if it is silent.
fn silent<T>(all: &[T], most: usize, now: Instant, heard: impl Fn(&T) -> Instant) -> Option<usize> {
    let (at, oldest) = all.iter().map(heard).enumerate().min_by_key(|(_, heard)| *heard)?;
    let is_silent = now.saturating_duration_since(oldest) > SILENCE;
    (all.len() >= most && is_silent).then_some(at)
}

/// Makes an address of a prefix, or changes when it ends.
fn take_prefix(c: &mut Control, sw_if: SwIfIndex, prefix: RouterPrefix, now: Instant) {
    let RouterPrefix { prefix: net, len, flags, valid, preferred } = prefix;
    if flags & 0x40 == 0 || len != 64 || preferred > valid || !is_for_hosts(net) {
        return;
    }
    let Some(link_local) = link_local::of(c, sw_if) else { return };
    let ip = made(&prefix, link_local);
    let state = c.state::<Ports>();
    let gone = {
        let mut state = state.borrow_mut();
        let Ports { all, full } = &mut *state;
        let Some(port) = all.get_mut(&sw_if) else { return };
        if let Some(found) = port.addresses.iter_mut().find(|a| a.ip == ip) {
            (found.until, found.heard) = (ends(valid, Some(found.until), now), now);
            return;
        }
        if valid == 0 {
            return;
        }
        let silent = silent(&port.addresses, MAX_ADDRESSES, now, |a| a.heard);
        if port.addresses.len() >= MAX_ADDRESSES && silent.is_none() {
            *full += 1;
            return;
        }
        silent.map(|at| port.addresses.remove(at))
    };
    if let Some(found) = gone {
        remove(c, sw_if, found.ip);
    }
    // A user may have chosen the same, or a subnet around it elsewhere, or a route to it.
    match address::add_found(c, sw_if, ip.to_bits(), 64) {
        Ok(()) => {
            let found = Found { ip, until: ends(valid, None, now), heard: now };
            if let Some(port) = state.borrow_mut().all.get_mut(&sw_if) {
                port.addresses.push(found);
            }
        }
        Err(e) => tracing::debug!("{}: {ip}/64 is not taken: {e}", c.interface_name(sw_if)),
    }
}

/// Takes away what has ended.
fn expire(c: &mut Control) {
    let now = clock::now();
    let (mut gone, mut changed) = (Vec::new(), Vec::new());
    {
        let state = c.state::<Ports>();
        let mut state = state.borrow_mut();
        for (sw_if, port) in &mut state.all {
            port.addresses.retain(|a| {
                // Routes that are configured later count, too.
                let of_it = IfAddress { addr: a.ip.to_bits(), len: 64 };
                let stays = a.until.is_none_or(|until| until > now)
                    && address::routed_elsewhere(c, *sw_if, of_it).is_none();
                if !stays {
                    gone.push((*sw_if, a.ip));
                }
                stays
            });
            let before = port.routers.len();
            port.routers.retain(|r| r.until > now);
            if port.routers.len() < before {
                changed.push(*sw_if);
            }
        }
    }
    for (sw_if, ip) in gone {
        remove(c, sw_if, ip);
    }
    for sw_if in changed {
        route(c, sw_if);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lifetimes_are_believed_with_care() {
        let now = clock::now();
        let after = |secs: u64| Some(now + Duration::from_secs(secs));
        for (valid, before, want) in [
            (60, None, after(60)),
            (u32::MAX, None, None),
            // Longer than is left, or than two hours.
            (60, Some(after(30)), after(60)),
            (8000, Some(after(90_000)), after(8000)),
            // Less than two hours is left, or advertised.
            (10, Some(after(30)), after(30)),
            (10, Some(after(90_000)), after(7200)),
            (0, Some(None), after(7200)),
        ] {
            assert_eq!(ends(valid, before, now), want, "{valid} {before:?}");
        }
    }

    #[test]
    fn special_prefixes_are_not_taken() {
        for (net, taken) in [
            ("2001:db8::", true),
            ("fd00::", true),
            ("fe80::", false),
            ("febf::", false),
            ("ff02::", false),
            ("::", false),
            ("::1", false),
            ("::ffff:10.0.0.0", false),
        ] {
            assert_eq!(is_for_hosts(net.parse().unwrap()), taken, "{net}");
        }
    }

    #[test]
    fn addresses_have_the_identifier_of_the_interface() {
        let at = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let prefix = RouterPrefix {
            prefix: at("2001:db8:1:2:3::"),
            len: 64,
            flags: 0xc0,
            valid: 1,
            preferred: 1,
        };
        assert_eq!(made(&prefix, at("fe80::12:34")), at("2001:db8:1:2::12:34"));
    }
}
