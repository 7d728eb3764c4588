//! Types and helpers shared by the API messages.

use crate::address::AddressError;
use crate::family::{Version, family, for_version, is_registered};
use crate::path_mtu::PathMtuError;
use crate::prefixes::Prefixes;
use crate::redirect::{self, RedirectError};
use crate::replace::Done;
use crate::{Ip, Path, PathKind, RouteError, RouteView, Source, cli_args};
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Poll;
use thalweg_api::schema::Module;
use thalweg_api::types::fib::{
    FibMplsLabel, FibPath, FibPathFlags, FibPathNh, FibPathNhProto, FibPathType,
};
use thalweg_api::types::{Address as ApiAddress, AddressFamily, InterfaceIndex, Prefix};
use thalweg_api::{ApiType, Details, Later, Message, Retval, Text, Walk};
use thalweg_device::SwIfIndex;
use thalweg_device::api_types::view;
use thalweg_fib::rib::{Labels, MAX_LABELS, Mark, Mode};
use thalweg_fib::{Dpo, TableId};
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix as IpPrefix};
use thalweg_wire::mpls::{Label, MAX_LABEL};

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

/// The path MTU of an address.
#[derive(Clone, Debug, ApiType)]
pub struct IpPathMtu {
    /// Unused.
    pub client_index: u32,
    /// Unused.
    pub context: u32,
    /// Table of the address.
    pub table_id: u32,
    /// The address.
    pub nh: ApiAddress,
    /// Path MTU in bytes.
    pub path_mtu: u16,
}

/// A redirect of punted packets by one path.
#[derive(Clone, Debug, ApiType)]
pub struct PuntRedirect {
    /// Interface that receives the packets; all ones for those without a redirect of their own.
    pub rx_sw_if_index: InterfaceIndex,
    /// Interface by which they leave; all ones if the next hop's route says.
    pub tx_sw_if_index: InterfaceIndex,
    /// Next hop; zero for the packets' own destination.
    pub nh: ApiAddress,
}

/// A redirect of punted packets.
#[derive(Clone, Debug, ApiType)]
pub struct PuntRedirectV2 {
    /// Interface that receives the packets; all ones for those without a redirect of their own.
    #[api(default = 0xffff_ffff)]
    pub rx_sw_if_index: InterfaceIndex,
    /// Version of the packets.
    pub af: AddressFamily,
    /// Paths by which they leave.
    #[api(count = "n_paths: u32")]
    pub paths: Vec<FibPath>,
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
        // What is gone need not be removed: clients repeat what they are not sure of.
        false => match redirect::remove::<A>(c, rx_if) {
            Err(RedirectError::Unknown(..)) => {}
            done => done?,
        },
    }
    Ok(())
}

/// As [`put_redirect`], with paths of a message.
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
    }
}

/// Every source, the one that counts most first.
pub(crate) const SOURCES: [Source; 6] = Source::ALL;

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

/// Version of a prefix.
pub(crate) fn version(prefix: Prefix) -> Result<Version, Retval> {
    Ok(Version::of_ip(prefix.parts()?.0))
}

/// Returns the label whose paths a path of a message follows, if it follows one.
///
/// # Errors
/// If the label is one that has no paths, or the protocol is another one.
pub fn via_label(p: &FibPath) -> Result<Option<Label>, Retval> {
    // Clients leave it zero, or write VPP's words for "none".
    let number = p.nh.via_label;
    if number == 0 || number > MAX_LABEL.get() {
        return Ok(None);
    }
    if p.proto != FibPathNhProto::MPLS {
        let why = "a path that follows a label (`via_label') has the protocol MPLS";
        return Err(Retval::INVALID_VALUE.because(why));
    }
    let why = "labels up to 15 are reserved, and have no paths that a path could follow";
    thalweg_fib::via_label_of(number).map(Some).ok_or_else(|| Retval::INVALID_VALUE.because(why))
}

/// Converts a path of a message.
fn path<A: Address>(c: &Control, p: &FibPath, table: TableId) -> Result<Path, Retval> {
    let unimplemented = |what: &str| {
        Err(Retval::UNIMPLEMENTED.because(format_args!("{what} are not supported yet")))
    };
    let labels = labels(p)?;
    // Clients leave these zero, or write VPP's words for "none".
    let none = |n: u32| n == 0 || n == u32::MAX;
    if !none(p.rpf_id) || !none(p.nh.obj_id) || !none(p.nh.classify_table_index) {
        return unimplemented("RPF ids, tunnels and classifier tables of paths");
    }
    let via_label = via_label(p)?;
    if p.flags != FibPathFlags::NONE {
        return unimplemented("flags of paths");
    }
    let kind = match p.r#type {
        FibPathType::NORMAL => PathKind::Normal,
        FibPathType::LOCAL => PathKind::Local,
        FibPathType::DROP => PathKind::Drop,
        FibPathType::ICMP_UNREACH => PathKind::Unreachable,
        FibPathType::ICMP_PROHIBIT => PathKind::Prohibit,
        FibPathType::INTERFACE_RX => PathKind::InterfaceRx,
        known if known.known() => return unimplemented("paths of this type"),
        _ => return Err(Retval::INVALID_VALUE),
    };
    let invalid = |why: &str| Err(Retval::INVALID_VALUE.because(why));
    if !p.proto.known() {
        return invalid("the next hop's protocol is none of 0 to 4");
    }
    let sw_if = (p.sw_if_index != u32::MAX).then_some(SwIfIndex(p.sw_if_index));
    let alone = |path: Path| match (p.weight, p.preference) {
        (0 | 1, 0) => Ok(path),
        _ => invalid("a path without a next hop shares with no other: weight 1, preference 0"),
    };
    match kind {
        PathKind::Normal => {}
        PathKind::InterfaceRx if sw_if.is_none() => return Err(Retval::NO_MATCHING_INTERFACE),
        PathKind::InterfaceRx => return alone(Path { sw_if, ..Path::special(kind) }),
        _ => return alone(Path::special(kind)),
    }
    // A message that says nothing of weights has zeros.
    let (weight, preference) = (p.weight.max(1), p.preference);
    if let Some(label) = via_label {
        return Ok(Path { weight, preference, labels, ..Path::via_label(label) });
    }
    let [n1, n2, n3, n4, ..] = p.nh.address.0;
    let next_hop = match p.proto {
        FibPathNhProto::IP4 => IpAddr::V4([n1, n2, n3, n4].into()),
        _ => IpAddr::V6(p.nh.address.0.into()),
    };
    let next_hop = Some(next_hop).filter(|ip| !ip.is_unspecified());
    let known = |version| is_registered(c, version);
    match (p.proto, next_hop) {
        (_, None) => {}
        (FibPathNhProto::IP4, Some(_)) if known(Version::V4) => {}
        (FibPathNhProto::IP6, Some(_)) if known(Version::V6) => {}
        _ => return unimplemented("next hops of this protocol"),
    }
    match (next_hop, sw_if) {
        (None, None) => {
            let own = if Version::of::<A>() == Version::V4 {
                FibPathNhProto::IP4
            } else {
                FibPathNhProto::IP6
            };
            if p.proto != own {
                return unimplemented("look-ups in tables of another protocol");
            }
            if c.state::<Ip<A>>().borrow().serial(TableId(p.table_id)).is_none() {
                return Err(Retval::NO_SUCH_FIB);
            }
            alone(Path::special(PathKind::Lookup(TableId(p.table_id))))
        }
        _ => {
            let foreign = next_hop.is_some_and(|hop| A::from_ip(hop).is_none());
            let elsewhere = sw_if.is_none() && (foreign || p.table_id != table.0);
            let other = elsewhere.then_some(TableId(p.table_id));
            let path = Path { next_hop, sw_if, weight, preference, ..Path::special(kind) };
            Ok(Path { table: other, labels, ..path })
        }
    }
}

/// Returns the labels of a path in a message.
///
/// # Errors
/// If there are too many, or they ask for what there is not.
pub fn labels(p: &FibPath) -> Result<Labels, Retval> {
    let sent = p.label_stack.get(..usize::from(p.n_labels));
    let sent = sent.ok_or_else(|| Retval::INVALID_VALUE.because("a path has up to 16 labels"))?;
    if sent.iter().any(|l| l.exp > 7) {
        return Err(Retval::INVALID_VALUE.because("the class of a label is up to 7"));
    }
    // 64 is what 0 stands for.
    let mark = |l: &FibMplsLabel| Mark { ttl: if l.ttl == 64 { 0 } else { l.ttl }, class: l.exp };
    let marks: Vec<Mark> = sent.iter().map(mark).collect();
    let uniform = sent.iter().any(|l| l.is_uniform != 0);
    let mode = if uniform { Mode::Uniform } else { Mode::Pipe };
    let all: Vec<Label> = sent.iter().map(|l| Label(l.label)).collect();
    let labels = Labels::new(&all).map(|labels| labels.marked(&marks).in_mode(mode));
    labels.ok_or_else(|| {
        let limit = format_args!("a path has up to {MAX_LABELS} labels of 20 bits");
        Retval::INVALID_VALUE.because(limit)
    })
}

/// Sets the labels of a path in a message.
pub fn put_labels(p: &mut FibPath, labels: &Labels) {
    for (to, (label, mark)) in p.label_stack.iter_mut().zip(labels.iter()) {
        (to.label, to.ttl, to.exp) = (label.get(), mark.ttl, mark.class);
        to.is_uniform = (labels.mode() == Mode::Uniform).into();
    }
    p.n_labels = labels.as_slice().len() as u8;
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
            // What is gone need not be deleted: clients repeat what they are not sure of.
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
    let r#type = match p.kind {
        PathKind::Normal | PathKind::Lookup(_) | PathKind::Group(_) => FibPathType::NORMAL,
        PathKind::Local => FibPathType::LOCAL,
        PathKind::Drop => FibPathType::DROP,
        PathKind::Unreachable => FibPathType::ICMP_UNREACH,
        PathKind::Prohibit => FibPathType::ICMP_PROHIBIT,
        PathKind::InterfaceRx => FibPathType::INTERFACE_RX,
    };
    let address = p.next_hop.map(Into::into).unwrap_or_default();
    let table_id = match p.kind {
        PathKind::Lookup(table) => table,
        _ => p.table.unwrap_or(table),
    };
    let proto = match (p.via_label, p.next_hop.map_or(version, Version::of_ip)) {
        (Some(_), _) => FibPathNhProto::MPLS,
        (None, Version::V4) => FibPathNhProto::IP4,
        (None, Version::V6) => FibPathNhProto::IP6,
    };
    let via_label = p.via_label.unwrap_or_default().get();
    let mut path = FibPath {
        sw_if_index: p.sw_if.unwrap_or(SwIfIndex::MAX).get(),
        table_id: table_id.get(),
        weight: p.weight,
        preference: p.preference,
        r#type,
        proto,
        nh: FibPathNh { address, via_label, ..FibPathNh::default() },
        ..FibPath::default()
    };
    put_labels(&mut path, &p.labels);
    path
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
