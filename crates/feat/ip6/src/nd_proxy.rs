//! Proxy neighbour discovery (RFC 4389): addresses of hosts behind one interface that the router
//! answers for on all others of its table, and routes to them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use thalweg_config::declare::{
    Doc, Draft, Dump, Item, Kind, Problem, Rule, Section, interface_key, rank,
};
use thalweg_device::{DeviceError, InterfaceEvent, SwIfIndex, interface};
use thalweg_feat_ip::{
    InterfaceTableChanged, Ip6, Path, RouteError, Source, TableId, Version, set_found_route,
};
use thalweg_feat_nd::{Proxy, set_proxies, set_table};
use thalweg_graph::Control;
use thalweg_tables::Prefix;

/// Maximum number of addresses.
pub const MAX_PROXIES: usize = 1024;

/// Reason why a change is refused.
#[derive(Debug, thiserror::Error)]
pub enum NdProxyError {
    /// The address is no host's of other links.
    #[error("{0} is not the address of a host that others can reach")]
    Unusable(Ipv6Addr),
    /// The table is full.
    #[error("no room for another proxied address: the limit is {MAX_PROXIES}")]
    Full,
    /// The address is not proxied.
    #[error("{0} is not proxied for `{1}'; `show ip6 nd proxy' lists those that are")]
    Unknown(Ipv6Addr, String),
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No room is left for its route.
    #[error(transparent)]
    Route(#[from] RouteError),
}

/// State on the main thread.
#[derive(Default)]
struct Proxied {
    /// Addresses, each with the table that has its route.
    all: BTreeMap<(Ipv6Addr, SwIfIndex), TableId>,
    /// The same by interface.
    by_interface: BTreeSet<(SwIfIndex, Ipv6Addr)>,
}

impl Proxied {
    fn insert(&mut self, ip: Ipv6Addr, sw_if: SwIfIndex, table: TableId) {
        self.all.insert((ip, sw_if), table);
        self.by_interface.insert((sw_if, ip));
    }

    fn remove(&mut self, ip: Ipv6Addr, sw_if: SwIfIndex) -> Option<TableId> {
        self.by_interface.remove(&(sw_if, ip));
        self.all.remove(&(ip, sw_if))
    }

    /// Addresses of hosts behind an interface.
    fn behind(&self, sw_if: SwIfIndex) -> Vec<Ipv6Addr> {
        let all = (sw_if, Ipv6Addr::UNSPECIFIED)..=(sw_if, Ipv6Addr::from_bits(u128::MAX));
        self.by_interface.range(all).map(|(_, ip)| *ip).collect()
    }

    /// Interfaces of a table that a host is configured behind.
    fn of_host(&self, ip: Ipv6Addr, table: TableId) -> impl Iterator<Item = SwIfIndex> + '_ {
        let all = self.all.range((ip, SwIfIndex(0))..=(ip, SwIfIndex(u32::MAX)));
        all.filter(move |(_, at)| **at == table).map(|((_, sw_if), _)| *sw_if)
    }
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Proxied::default());
    c.subscribe(|c, event: &InterfaceEvent| {
        if let InterfaceEvent::Deleted(i) = *event {
            let of_it = c.state::<Proxied>().borrow().behind(i);
            // The addresses exist.
            of_it.into_iter().for_each(|ip| _ = remove(c, i, ip));
        }
    });
    c.subscribe(|c, &InterfaceTableChanged { version, sw_if }: &InterfaceTableChanged| {
        if version == Version::V6 {
            let table = c.state::<Ip6>().borrow().table_of(sw_if);
            set_table(c, sw_if, table.get());
            follow_table(c, sw_if);
        }
    });
}

/// Returns all addresses and the interfaces where the hosts are, in order.
pub fn list(c: &Control) -> Vec<(Ipv6Addr, SwIfIndex)> {
    c.state::<Proxied>().borrow().all.keys().copied().collect()
}

/// Writes a table's route to a host, by all interfaces that it is configured behind.
fn route(c: &mut Control, table: TableId, ip: Ipv6Addr) -> Result<(), RouteError> {
    let paths = {
        let proxied = c.state::<Proxied>();
        let proxied = proxied.borrow();
        let by = proxied.of_host(ip, table);
        by.map(|sw_if| Path::via(IpAddr::V6(ip), Some(sw_if))).collect()
    };
    set_found_route(c, table, Prefix::host(ip.to_bits()), Source::ProxyNd, paths)
}

/// Moves the routes over an interface to its table.
fn follow_table(c: &mut Control, sw_if: SwIfIndex) {
    let table = c.state::<Ip6>().borrow().table_of(sw_if);
    let moved: Vec<(Ipv6Addr, TableId)> = {
        let state = c.state::<Proxied>();
        let mut state = state.borrow_mut();
        let mut moved = Vec::new();
        for ip in state.behind(sw_if) {
            let before = state.all.insert((ip, sw_if), table);
            moved.extend(before.filter(|before| *before != table).map(|before| (ip, before)));
        }
        moved
    };
    if !moved.is_empty() {
        let each = moved.iter().flat_map(|(ip, before)| {
            [answer(*ip, sw_if, *before, false), answer(*ip, sw_if, table, true)]
        });
        set_proxies(c, &each.collect::<Vec<_>>());
    }
    for (ip, before) in moved {
        for table in [before, table] {
            if let Err(e) = route(c, table, ip) {
                tracing::warn!("route to {ip} in table {table}: {e}");
            }
        }
    }
}

/// Starts or stops answers of neighbour discovery for a host of a table.
fn answer(ip: Ipv6Addr, sw_if: SwIfIndex, table: TableId, is: bool) -> (Proxy, bool) {
    (Proxy { ip, sw_if, table: table.get() }, is)
}

/// Answers for a host behind an interface; one that is there stays.
///
/// # Errors
/// [`NdProxyError`]; nothing has changed then.
pub fn add(c: &mut Control, sw_if: SwIfIndex, ip: Ipv6Addr) -> Result<(), NdProxyError> {
    interface::view(c, sw_if)?;
    if ip.is_multicast() || ip.is_unspecified() || ip.is_loopback() || ip.is_unicast_link_local() {
        return Err(NdProxyError::Unusable(ip));
    }
    let table = c.state::<Ip6>().borrow().table_of(sw_if);
    {
        let state = c.state::<Proxied>();
        let mut state = state.borrow_mut();
        if state.all.contains_key(&(ip, sw_if)) {
            return Ok(());
        }
        if state.all.len() >= MAX_PROXIES {
            return Err(NdProxyError::Full);
        }
        state.insert(ip, sw_if, table);
    }
    if let Err(e) = route(c, table, ip) {
        c.state::<Proxied>().borrow_mut().remove(ip, sw_if);
        return Err(e.into());
    }
    set_proxies(c, &[answer(ip, sw_if, table, true)]);
    Ok(())
}

/// Answers for a host no more.
///
/// # Errors
/// [`NdProxyError::Unknown`].
pub fn remove(c: &mut Control, sw_if: SwIfIndex, ip: Ipv6Addr) -> Result<(), NdProxyError> {
    let gone = c.state::<Proxied>().borrow_mut().remove(ip, sw_if);
    let Some(table) = gone else {
        return Err(NdProxyError::Unknown(ip, c.interface_name(sw_if)));
    };
    // The route has one path less, or none; the table may be gone, and the route with it.
    let _ = route(c, table, ip);
    set_proxies(c, &[answer(ip, sw_if, table, false)]);
    Ok(())
}

/// Section of proxies.
pub(crate) struct ProxySettings;

pub(crate) static SETTINGS: ProxySettings = ProxySettings;

const KEY: &str = "nd-proxies";

const RULES: &[Rule] = &[
    Rule::new("thalweg.interfaces.*.nd-proxies", Kind::List(0, MAX_PROXIES)),
    Rule::new("thalweg.interfaces.*.nd-proxies.[]", Kind::Ip),
];

impl Section<Control> for ProxySettings {
    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        for (ip, sw_if) in list(c) {
            let name = c.interface_name(sw_if);
            out.push(&["thalweg", "interfaces", &name, KEY], ip.to_string());
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for i in doc.interfaces() {
            let Some(found) = i.get(KEY) else { continue };
            for node in found.node.list() {
                let Some(text) = node.text() else { continue };
                let Ok(ip) = text.parse::<Ipv6Addr>() else {
                    let text = format!("an IPv6 address expected, not `{text}'");
                    out.problem(Problem::at(node, &found.path, text));
                    continue;
                };
                let name = &*i.name;
                let key = format!("nd proxy {name} {ip}");
                let set = format!("set ip6 nd proxy {name} {ip}");
                let item = Item::new(rank::NEIGHBOR, key, &found.path, set);
                let item = item.unset(format!("set ip6 nd proxy {name} del {ip}"));
                out.add(item.needs(interface_key(name)));
            }
        }
    }
}
