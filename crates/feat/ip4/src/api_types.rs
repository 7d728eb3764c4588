//! Types and helpers shared by the IPv4 API messages.

use crate::address::AddressError;
use crate::prefixes::Prefixes;
use crate::route::{Path, PathKind, RouteError, RouteView, Source};
use crate::{Ip4, cli_args};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::task::Poll;
use thalweg_api::schema::Module;
use thalweg_api::types::Prefix;
use thalweg_api::types::fib::{FibPath, FibPathNh, FibPathNhProto, FibPathType};
use thalweg_api::{ApiType, Details, Later, Message, Retval, Text, Walk};
use thalweg_graph::Control;
use thalweg_tables::Ipv4Prefix;

/// The API module.
pub static IP: Module = Module { name: "ip", folder: "core", version: "3.2.0" };

/// Routes sent between checks that the client keeps reading.
const ROUTES_AT_ONCE: usize = 64;

/// A routing table.
#[derive(Clone, Debug, Default, ApiType)]
pub struct IpTable {
    /// Table id.
    pub table_id: u32,
    /// IPv6 table.
    pub is_ip6: bool,
    /// User-given name.
    pub name: Text<64>,
}

/// A route.
#[derive(Clone, Debug, Default, ApiType)]
pub struct IpRoute {
    /// Table id.
    pub table_id: u32,
    /// Index of its counters.
    pub stats_index: u32,
    /// Prefix.
    pub prefix: Prefix,
    /// Paths.
    #[api(count = "n_paths: u8")]
    pub paths: Vec<FibPath>,
}

/// A route with its source.
#[derive(Clone, Debug, Default, ApiType)]
pub struct IpRouteV2 {
    /// Table id.
    pub table_id: u32,
    /// Index of its counters.
    pub stats_index: u32,
    /// Prefix.
    pub prefix: Prefix,
    /// Number of its source.
    pub src: u8,
    /// Paths.
    #[api(count = "n_paths: u8", at = "src")]
    pub paths: Vec<FibPath>,
}

impl From<IpRoute> for IpRouteV2 {
    fn from(route: IpRoute) -> Self {
        let IpRoute { table_id, stats_index, prefix, paths } = route;
        Self { table_id, stats_index, prefix, src: 0, paths }
    }
}

impl From<IpRouteV2> for IpRoute {
    fn from(route: IpRouteV2) -> Self {
        let IpRouteV2 { table_id, stats_index, prefix, src: _, paths } = route;
        Self { table_id, stats_index, prefix, paths }
    }
}

impl From<RouteError> for Retval {
    fn from(error: RouteError) -> Self {
        let error = cli_args::route_failed(error);
        Retval(error.code()).because(error)
    }
}

impl From<AddressError> for Retval {
    fn from(error: AddressError) -> Self {
        let error = cli_args::address_failed(error);
        Retval(error.code()).because(error)
    }
}

/// Number of a route source; 0 stands for any.
pub(crate) fn source_id(source: Source) -> u8 {
    match source {
        Source::Interface => 1,
        Source::Static => 2,
        Source::Adjacency => 3,
        Source::Default => 4,
    }
}

/// Every source, the one that counts most first.
pub(crate) const SOURCES: [Source; 4] =
    [Source::Interface, Source::Static, Source::Adjacency, Source::Default];

/// User-given names of tables.
#[derive(Default)]
pub(crate) struct Names(pub(crate) BTreeMap<u32, String>);

/// Converts a table to its API type.
pub(crate) fn table(c: &Control, table_id: u32) -> IpTable {
    let names = c.state::<Names>();
    let names = names.borrow();
    let usual = || format!("ipv4-VRF:{table_id}");
    let name = names.0.get(&table_id).cloned().unwrap_or_else(usual);
    IpTable { table_id, is_ip6: false, name: name.as_str().into() }
}

/// Adds or deletes a table.
pub(crate) fn add_del_table(c: &mut Control, add: bool, table: &IpTable) -> Result<(), Retval> {
    only_ip4(table.is_ip6)?;
    match add {
        true => crate::add_table(c, table.table_id)?,
        false => crate::del_table(c, table.table_id)?,
    }
    let names = c.state::<Names>();
    let mut names = names.borrow_mut();
    match table.name.as_str() {
        name if add && !name.is_empty() => drop(names.0.insert(table.table_id, name.to_owned())),
        _ if add => {}
        _ => drop(names.0.remove(&table.table_id)),
    }
    Ok(())
}

/// Completion callback.
type Done = Box<dyn FnOnce()>;

/// Replies when `work` on a table is done, which may take several slices.
pub(crate) fn finish<R: Message + Default>(
    c: &mut Control,
    table: &IpTable,
    later: Later<R>,
    work: impl FnOnce(&mut Control, u32, Done) -> Result<(), RouteError>,
) {
    let later = Rc::new(RefCell::new(Some(later)));
    let answer = |later: &RefCell<Option<Later<R>>>, retval: i32| {
        if let Some(later) = later.take() {
            later.answer(retval, &R::default());
        }
    };
    let known = later.clone();
    let done = Box::new(move || answer(&known, 0));
    let begun = only_ip4(table.is_ip6);
    let begun = begun.and_then(|()| Ok(work(c, table.table_id, done)?));
    if let Err(retval) = begun {
        answer(&later, retval.0);
    }
}

/// Refuses IPv6.
pub(crate) fn only_ip4(is_ip6: bool) -> Result<(), Retval> {
    match is_ip6 {
        true => Err(Retval::UNIMPLEMENTED.because("IPv6 is not supported yet")),
        false => Ok(()),
    }
}

/// Address and length of an IPv4 prefix, host bits kept.
pub(crate) fn ip4(prefix: Prefix) -> Result<(Ipv4Addr, u8), Retval> {
    match prefix.parts()? {
        (IpAddr::V4(ip), len) => Ok((ip, len)),
        (IpAddr::V6(_), _) => Err(Retval::UNIMPLEMENTED.because("IPv6 is not supported yet")),
    }
}

/// An IPv4 prefix with its host bits cleared.
pub(crate) fn masked(prefix: Prefix) -> Result<Ipv4Prefix, Retval> {
    let (ip, len) = ip4(prefix)?;
    Ipv4Prefix::new(ip.to_bits(), len).map_err(|e| Retval::INVALID_PREFIX_LENGTH.because(e))
}

/// Converts a path of a message.
fn path(p: &FibPath, table: u32) -> Result<Path, Retval> {
    let unimplemented = |what: &str| {
        Err(Retval::UNIMPLEMENTED.because(format_args!("{what} are not supported yet")))
    };
    if p.n_labels > 0 {
        return unimplemented("label stacks");
    }
    let kind = match p.r#type {
        FibPathType::NORMAL => PathKind::Normal,
        FibPathType::LOCAL => PathKind::Local,
        FibPathType::DROP => PathKind::Drop,
        FibPathType::ICMP_UNREACH => PathKind::Unreachable,
        FibPathType::ICMP_PROHIBIT => PathKind::Prohibit,
        known if known.known() => return unimplemented("paths of this type"),
        _ => return Err(Retval::INVALID_VALUE),
    };
    if kind != PathKind::Normal {
        return Ok(Path::special(kind));
    }
    let sw_if = (p.sw_if_index != u32::MAX).then_some(p.sw_if_index);
    let [a, b, c, d, ..] = p.nh.address.0;
    let next_hop = Some(Ipv4Addr::new(a, b, c, d)).filter(|ip| !ip.is_unspecified());
    let next_hop = next_hop.map(IpAddr::V4);
    if next_hop.is_some() && p.proto != FibPathNhProto::IP4 {
        return unimplemented("next hops other than IPv4");
    }
    match (next_hop, sw_if) {
        (None, None) => unimplemented("lookups in another table"),
        _ => {
            let other = (sw_if.is_none() && p.table_id != table).then_some(p.table_id);
            let weight = p.weight.max(1);
            Ok(Path { next_hop, sw_if, weight, table: other, ..Path::special(kind) })
        }
    }
}

/// Adds or deletes a route or paths of it; returns the index of its counters.
pub(crate) fn add_del_route(
    c: &mut Control,
    add: bool,
    multipath: bool,
    route: &IpRoute,
) -> Result<u32, Retval> {
    let (prefix, table) = (masked(route.prefix)?, route.table_id);
    let paths = || route.paths.iter().map(|p| path(p, table)).collect::<Result<Vec<_>, _>>();
    if add {
        if route.paths.is_empty() {
            return Err(Retval::INVALID_VALUE.because("a route needs a path"));
        }
        crate::add_route(c, table, prefix, paths()?, !multipath)?;
    } else {
        // Unless single paths are requested, the whole route is deleted.
        let paths = if multipath { paths()? } else { Vec::new() };
        crate::del_route(c, table, prefix, &paths)?;
    }
    let view = c.state::<Ip4>().borrow().route(table, prefix);
    Ok(view.map_or(u32::MAX, |view| view.dpo))
}

/// Converts a route to its API type.
pub(crate) fn describe(table: u32, view: &RouteView) -> IpRoute {
    let prefix = (Ipv4Addr::from_bits(view.prefix.addr()).into(), view.prefix.len());
    let paths = view.paths.iter().map(|p| describe_path(p, table)).collect();
    IpRoute { table_id: table, stats_index: view.dpo, prefix: prefix.into(), paths }
}

fn describe_path(p: &Path, table_id: u32) -> FibPath {
    let r#type = match p.kind {
        PathKind::Normal | PathKind::Lookup(_) | PathKind::Group(_) => FibPathType::NORMAL,
        PathKind::Local => FibPathType::LOCAL,
        PathKind::Drop => FibPathType::DROP,
        PathKind::Unreachable => FibPathType::ICMP_UNREACH,
        PathKind::Prohibit => FibPathType::ICMP_PROHIBIT,
    };
    let address = p.next_hop.map(Into::into).unwrap_or_default();
    let table_id = match p.kind {
        PathKind::Lookup(table) => table,
        _ => p.table.unwrap_or(table_id),
    };
    FibPath {
        sw_if_index: p.sw_if.unwrap_or(u32::MAX),
        table_id,
        weight: p.weight,
        r#type,
        proto: FibPathNhProto::IP4,
        nh: FibPathNh { address, ..FibPathNh::default() },
        ..FibPath::default()
    }
}

/// Calls `each` for all routes of a table in order, a batch at a time. Every table has a default
/// route.
pub(crate) fn walk<D: Message>(
    c: &Control,
    wanted: &IpTable,
    mut out: Details<D>,
    mut each: impl FnMut(&RouteView, &mut Details<D>) + 'static,
) -> Walk<Control> {
    let table = wanted.table_id;
    if wanted.is_ip6 || !c.state::<Ip4>().borrow().table_ids().contains(&table) {
        return Box::new(|_| false);
    }
    let (mut prefixes, mut first) = (Prefixes::new(table), true);
    Box::new(move |c| {
        let ip4 = c.state::<Ip4>();
        let ip4 = ip4.borrow();
        let mut send = |prefix| {
            if let Some(view) = route(&ip4, table, prefix) {
                each(&view, &mut out);
            }
        };
        match prefixes.next(&ip4) {
            Poll::Pending => return true,
            Poll::Ready(next) => {
                if std::mem::take(&mut first) && next != Some(Ipv4Prefix::DEFAULT) {
                    send(Ipv4Prefix::DEFAULT);
                }
                let Some(next) = next else { return false };
                send(next);
            }
        }
        for _ in 0..ROUTES_AT_ONCE {
            match prefixes.next(&ip4) {
                Poll::Ready(Some(next)) => send(next),
                Poll::Ready(None) => return false,
                Poll::Pending => {}
            }
        }
        true
    })
}

/// Looks up a route by exact prefix.
pub(crate) fn route(ip4: &Ip4, table: u32, prefix: Ipv4Prefix) -> Option<RouteView> {
    let nowhere = || RouteView {
        prefix,
        source: Source::Default,
        paths: vec![Path::special(PathKind::Drop)],
        dpo: 0,
        sources: vec![Source::Default],
    };
    let none = || (prefix == Ipv4Prefix::DEFAULT).then(nowhere);
    ip4.route(table, prefix).or_else(none)
}

/// Looks up a route: exact match, or longest prefix match.
pub(crate) fn lookup(
    c: &Control,
    table: u32,
    exact: bool,
    prefix: Prefix,
) -> Result<RouteView, Retval> {
    let (ip, len) = ip4(prefix)?;
    let ip4 = c.state::<Ip4>();
    let ip4 = ip4.borrow();
    if !ip4.table_ids().contains(&table) {
        return Err(Retval::NO_SUCH_TABLE);
    }
    let shortest = if exact { len } else { 0 };
    let mut lengths = (shortest..=len).rev();
    let at = |len| route(&ip4, table, Ipv4Prefix::new(ip.to_bits(), len).ok()?);
    lengths.find_map(at).ok_or(Retval::NO_SUCH_ENTRY)
}
