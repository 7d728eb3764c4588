//! Helpers shared by the API messages.

use crate::address::AddressError;
use crate::family::{Version, family, for_version, is_registered};
use crate::message_types::{IpRoute, IpRouteV2, IpTable, PuntRedirectV2};
use crate::path_mtu::PathMtuError;
use crate::prefixes::Prefixes;
use crate::redirect::{self, RedirectError};
use crate::replace::Done;
use crate::{Ip, Path, PathKind, RouteError, RouteView, Source, api_path, cli_args};
use std::cell::RefCell;
use std::rc::Rc;
use std::task::Poll;
use thalweg_api::types::fib::{FibPath, FibPathFlags, FibPathNhProto};
use thalweg_api::types::{AddressFamily, InterfaceIndex, Prefix};
use thalweg_api::{Details, Later, Message, Retval, Walk};
use thalweg_device::SwIfIndex;
use thalweg_device::api_types::view;
use thalweg_fib::{Dpo, LookIn, PathText, Place, TableId};
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix as IpPrefix};

/// Routes sent between checks that the client keeps reading.
const ROUTES_AT_ONCE: usize = 64;

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

impl From<RedirectError> for Retval {
    fn from(error: RedirectError) -> Self {
        let error = crate::cli::ip_punt_redirect::failed(error);
        Retval(error.code()).because(error)
    }
}

impl From<PathMtuError> for Retval {
    fn from(error: PathMtuError) -> Self {
        let error = crate::cli::set_ip_pmtu::failed(error);
        Retval(error.code()).because(error)
    }
}

impl PuntRedirectV2 {
    /// Version of the packets.
    pub(crate) fn version(&self) -> Result<Version, Retval> {
        match self.af {
            AddressFamily::IP4 => Ok(Version::V4),
            AddressFamily::IP6 => Ok(Version::V6),
            _ => Err(Retval::INVALID_ADDRESS_FAMILY),
        }
    }
}

/// The interface of a redirect.
pub(crate) fn rx_of(c: &Control, index: InterfaceIndex) -> Result<SwIfIndex, Retval> {
    match index {
        InterfaceIndex(0) | InterfaceIndex::NONE => Ok(redirect::ALL),
        one => Ok(view(c, one)?.sw_if),
    }
}

/// Adds or removes a redirect.
pub(crate) fn put_redirect<A: Address>(
    c: &mut Control,
    rx_if: SwIfIndex,
    add: bool,
    paths: Vec<Path>,
) -> Result<(), Retval> {
    family::<A>(c)?;
    match add {
        true => redirect::set::<A>(c, rx_if, paths)?,
        // A missing redirect is no error: clients repeat removals.
        false => match redirect::remove::<A>(c, rx_if) {
            Err(RedirectError::Unknown(..)) => {}
            done => done?,
        },
    }
    Ok(())
}

/// Does the work of [`put_redirect`] with paths of a message.
pub(crate) fn put_redirect_v2<A: Address>(
    c: &mut Control,
    add: bool,
    punt: &PuntRedirectV2,
) -> Result<(), Retval> {
    let rx_if = rx_of(c, punt.rx_sw_if_index)?;
    let one = |p: &FibPath| path::<A>(c, p, TableId(0));
    let paths = match add {
        true => punt.paths.iter().map(one).collect::<Result<Vec<_>, _>>()?,
        false => Vec::new(),
    };
    put_redirect::<A>(c, rx_if, add, paths)
}

/// The redirects of one interface, or all of them.
pub(crate) fn redirects<A: Address>(
    c: &Control,
    wanted: InterfaceIndex,
) -> Vec<(InterfaceIndex, Vec<Path>)> {
    let all = redirect::all::<A>(c).into_iter();
    let is_wanted = |i: SwIfIndex| match wanted {
        InterfaceIndex(0) | InterfaceIndex::NONE => true,
        InterfaceIndex(one) => i.get() == one,
    };
    let index = |rx_if| match rx_if {
        redirect::ALL => InterfaceIndex::NONE,
        SwIfIndex(one) => InterfaceIndex(one),
    };
    all.filter(|r| is_wanted(r.0)).map(|(rx_if, paths, _)| (index(rx_if), paths)).collect()
}

/// Paths as messages have them.
pub(crate) fn describe_paths(paths: &[Path], version: Version) -> Vec<FibPath> {
    paths.iter().map(|p| describe_path(p, version, TableId(0))).collect()
}

/// Number of a route source; 0 stands for any.
pub(crate) fn source_id(source: Source) -> u8 {
    match source {
        Source::Interface => 1,
        Source::Static => 2,
        Source::Adjacency => 3,
        Source::Default => 4,
        Source::ProxyNd => 5,
        Source::Nd => 6,
        Source::KernelStatic => 7,
        Source::KernelDynamic => 8,
    }
}

/// Every source, the one that counts most first.
pub(crate) const SOURCES: [Source; 8] = Source::ALL;

/// Converts a table to its API type.
pub(crate) fn table<A: Address>(ip: &Ip<A>, id: TableId) -> IpTable {
    let is_ip6 = Version::of::<A>() == Version::V6;
    IpTable { table_id: id.0, is_ip6, name: ip.table_name(id).as_str().into() }
}

/// Adds or deletes a table.
pub(crate) fn add_del_table(c: &mut Control, add: bool, table: &IpTable) -> Result<(), Retval> {
    fn change<A: Address>(c: &mut Control, add: bool, table: &IpTable) -> Result<(), Retval> {
        let name = table.name.as_str();
        if add && let Err(expected) = crate::check_table_name(name) {
            return Err(Retval::INVALID_VALUE.because(expected));
        }
        match add {
            true => crate::add_table::<A>(c, TableId(table.table_id))?,
            false => crate::table::retire::<A>(c, TableId(table.table_id))?,
        }
        if add && !name.is_empty() {
            c.state::<Ip<A>>().borrow_mut().name_table(TableId(table.table_id), name);
        }
        Ok(())
    }
    for_version!(Version::of_flag(table.is_ip6), change(c, add, table))
}

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
    if let Err(error) = work(c, table.table_id, done) {
        answer(&later, Retval::from(error).0);
    }
}

/// Address and length of a prefix, host bits kept.
pub(crate) fn parts<A: Address>(prefix: Prefix) -> Result<(A, u8), Retval> {
    let (ip, len) = prefix.parts()?;
    Ok((A::from_ip(ip).ok_or(Retval::INVALID_ADDRESS_FAMILY)?, len))
}

/// A prefix with its host bits cleared.
fn masked<A: Address>(prefix: Prefix) -> Result<IpPrefix<A>, Retval> {
    let (addr, len) = parts(prefix)?;
    IpPrefix::new(addr, len).map_err(|e| Retval::INVALID_PREFIX_LENGTH.because(e))
}

pub(crate) fn version(prefix: Prefix) -> Result<Version, Retval> {
    Ok(Version::of_ip(prefix.parts()?.0))
}

/// Returns whether a path names a next hop that is not an IP address.
fn has_other_hop(p: &FibPath) -> bool {
    let is_ip = [FibPathNhProto::IP4, FibPathNhProto::IP6].contains(&p.proto);
    !is_ip && p.nh.address.0.iter().any(|byte| *byte != 0)
}

/// Converts a path of a message.
fn path<A: Address>(c: &Control, p: &FibPath, table: TableId) -> Result<Path, Retval> {
    let invalid = |why: &str| Err(Retval::INVALID_VALUE.because(why));
    if p.flags != FibPathFlags::NONE {
        return api_path::unimplemented("flags of paths");
    }
    let (own, mut path) = (Version::of::<A>(), api_path::read(p)?);
    let is_normal = path.place.kind() == Some(PathKind::Normal);
    if !is_normal && !matches!((p.weight, p.preference), (0 | 1, 0)) {
        return invalid("a path without a next hop shares with no other: weight 1, preference 0");
    }
    match &mut path.place {
        Place::NextHop { address, table: of_hop, .. } => {
            if !is_registered(c, Version::of_ip(*address)) {
                return api_path::unimplemented("next hops of this protocol");
            }
            // The route's own table need not be named.
            *of_hop = of_hop.filter(|id| *id != table || A::from_ip(*address).is_none());
        }
        Place::Interface(_) | Place::Lookup(..) if has_other_hop(p) => {
            return api_path::unimplemented("next hops of this protocol");
        }
        Place::Lookup(of, _) if *of != LookIn::Ip(own) => {
            return api_path::unimplemented("look-ups in tables of another protocol");
        }
        Place::Lookup(_, id) if c.state::<Ip<A>>().borrow().serial(*id).is_none() => {
            return Err(Retval::NO_SUCH_FIB);
        }
        _ => {}
    }
    path.route_path(own).map_err(|why| Retval::INVALID_VALUE.because(why))
}

/// Adds or deletes a route or paths of it; returns the index of its counters.
pub(crate) fn add_del_route(
    c: &mut Control,
    add: bool,
    multipath: bool,
    route: &IpRoute,
) -> Result<u32, Retval> {
    for_version!(version(route.prefix)?, change_route(c, add, multipath, route))
}

fn change_route<A: Address>(
    c: &mut Control,
    add: bool,
    multipath: bool,
    route: &IpRoute,
) -> Result<u32, Retval> {
    family::<A>(c)?;
    let (prefix, table) = (masked::<A>(route.prefix)?, route.table_id);
    let paths = |c: &Control| {
        route.paths.iter().map(|p| path::<A>(c, p, TableId(table))).collect::<Result<Vec<_>, _>>()
    };
    if add {
        if route.paths.is_empty() {
            return Err(Retval::NO_PATHS_IN_ROUTE);
        }
        let paths = paths(c)?;
        crate::add_route(c, TableId(table), prefix, paths, !multipath)?;
    } else {
        // Unless single paths are requested, the whole route is deleted.
        let paths = if multipath { paths(c)? } else { Vec::new() };
        match crate::del_route(c, TableId(table), prefix, &paths) {
            // A missing route is no error: clients repeat deletions.
            Err(RouteError::NoRoute { .. }) => {}
            done => done?,
        }
    }
    let view = c.state::<Ip<A>>().borrow().route(TableId(table), prefix);
    Ok(view.map_or(u32::MAX, |view| view.dpo.get()))
}

/// Converts a route to its API type.
pub(crate) fn describe<A: Address>(table: TableId, view: &RouteView<A>) -> IpRoute {
    let prefix = (view.prefix.addr().to_ip(), view.prefix.len());
    let version = Version::of::<A>();
    let paths = view.paths.iter().map(|p| describe_path(p, version, table)).collect();
    IpRoute { table_id: table.get(), stats_index: view.dpo.get(), prefix: prefix.into(), paths }
}

fn describe_path(p: &Path, version: Version, table: TableId) -> FibPath {
    let written = api_path::write(&PathText::of(p, version), version, table);
    // Routes of the router's own addresses have an interface, too.
    FibPath { sw_if_index: p.sw_if.unwrap_or(SwIfIndex::MAX).get(), ..written }
}

/// A route, as replies and details have it.
pub(crate) struct Shown {
    /// The route.
    pub(crate) route: IpRoute,
    /// Number of its source.
    pub(crate) src: u8,
}

impl Shown {
    fn new<A: Address>(table: TableId, view: &RouteView<A>) -> Shown {
        Shown { route: describe(table, view), src: source_id(view.source) }
    }

    /// The route with its source.
    pub(crate) fn with_source(self) -> IpRouteV2 {
        IpRouteV2 { src: self.src, ..self.route.into() }
    }
}

/// Calls `each` for all routes of a table in order, a batch at a time. Every table has a default
/// route.
pub(crate) fn walk<D: Message>(
    c: &Control,
    wanted: &IpTable,
    out: Details<D>,
    each: impl FnMut(Shown, &mut Details<D>) + 'static,
) -> Walk<Control> {
    match Version::of_flag(wanted.is_ip6) {
        Version::V4 => walk_in::<u32, D>(c, TableId(wanted.table_id), out, each),
        Version::V6 => walk_in::<u128, D>(c, TableId(wanted.table_id), out, each),
    }
}

fn walk_in<A: Address, D: Message>(
    c: &Control,
    table: TableId,
    mut out: Details<D>,
    mut each: impl FnMut(Shown, &mut Details<D>) + 'static,
) -> Walk<Control> {
    if c.state::<Ip<A>>().borrow().serial(table).is_none() {
        return Box::new(|_| false);
    }
    let default = IpPrefix::new(A::default(), 0).unwrap_or(IpPrefix::host(A::default()));
    let (mut prefixes, mut first) = (Prefixes::<A>::new(table), true);
    Box::new(move |c| {
        let ip = c.state::<Ip<A>>();
        let ip = ip.borrow();
        let mut send = |prefix| {
            if let Some(view) = route(&ip, table, prefix) {
                each(Shown::new(table, &view), &mut out);
            }
        };
        match prefixes.next(&ip) {
            Poll::Pending => return true,
            Poll::Ready(next) => {
                if std::mem::take(&mut first) && next != Some(default) {
                    send(default);
                }
                let Some(next) = next else { return false };
                send(next);
            }
        }
        for _ in 0..ROUTES_AT_ONCE {
            match prefixes.next(&ip) {
                Poll::Ready(Some(next)) => send(next),
                Poll::Ready(None) => return false,
                Poll::Pending => {}
            }
        }
        true
    })
}

/// Looks up a route by exact prefix.
fn route<A: Address>(ip: &Ip<A>, table: TableId, prefix: IpPrefix<A>) -> Option<RouteView<A>> {
    let nowhere = || RouteView {
        prefix,
        source: Source::Default,
        paths: vec![Path::special(PathKind::Drop)],
        dpo: Dpo(0),
        sources: vec![Source::Default],
    };
    let none = || (prefix.len() == 0).then(nowhere);
    ip.route(table, prefix).or_else(none)
}

/// Looks up a route: exact match, or longest prefix match.
pub(crate) fn lookup(
    c: &Control,
    table: TableId,
    exact: bool,
    prefix: Prefix,
) -> Result<Shown, Retval> {
    for_version!(version(prefix)?, lookup_in(c, table, exact, prefix))
}

fn lookup_in<A: Address>(
    c: &Control,
    table: TableId,
    exact: bool,
    prefix: Prefix,
) -> Result<Shown, Retval> {
    family::<A>(c)?;
    let (addr, len) = parts::<A>(prefix)?;
    let ip = c.state::<Ip<A>>();
    let ip = ip.borrow();
    if ip.serial(table).is_none() {
        return Err(Retval::NO_SUCH_TABLE);
    }
    let shortest = if exact { len } else { 0 };
    let mut lengths = (shortest..=len).rev();
    let at = |len| route(&ip, table, IpPrefix::new(addr, len).ok()?);
    lengths.find_map(at).map(|view| Shown::new(table, &view)).ok_or(Retval::NO_SUCH_ENTRY)
}
