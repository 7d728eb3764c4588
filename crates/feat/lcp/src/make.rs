//! Making pairs and deleting them.

use crate::error::Error;
use crate::pairs::{Made, Pair, Pairs, VlanLink};
use crate::table::{self, Original, Twin};
use crate::{gate, options, pairs, sync};
use std::collections::BTreeSet;
use std::io;
use thalweg_config::declare::Name;
use thalweg_device::{
    InterfaceEvent, InterfaceView, Interfaces, SwIfIndex, TagMatch, VlanTag, interface,
};
use thalweg_device_tap::{self as tap, Flags, HostSide, TapConfig};
use thalweg_engine::punt;
use thalweg_fib::{Dpo, Forwarding, LinkType, Peer};
use thalweg_graph::Control;
use thalweg_netlink::{Link, Port, add_vlan, delete_link};

/// First number of a twin's TAP, as in VPP.
const FIRST_TAP: u32 = 4096;
/// MTUs that the kernel takes for a TAP.
const TAP_MTU: (u32, u32) = (68, 65_521);
/// Longest name of a device.
pub(crate) const LONGEST_NAME: usize = 15;

/// A pair to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The interface.
    pub phy: SwIfIndex,
    /// Name of the twin.
    pub name: String,
    /// Its network namespace, if not the one for all.
    pub namespace: Option<String>,
    /// A TUN device, for an interface without Ethernet frames.
    pub tun: bool,
}

/// The arcs on which a pair's interface and its router's end have features, and the nodes there.
type Features = &'static [(&'static str, &'static str)];

/// Features of an interface with a TAP or VLAN twin.
const PHY: Features = &[
    ("ip4-punt", "linux-cp-punt"),
    ("ip6-punt", "linux-cp-punt"),
    ("ip4-multicast", "linux-cp-mcast-ip4"),
    ("ip6-multicast", "linux-cp-mcast-ip6"),
    ("ip6-local", "linux-cp-nd-phy"),
    ("arp", "linux-cp-arp-phy"),
];
/// Features of its router's end.
const HOST: Features = &[
    ("ip4-unicast", "linux-cp-xc-ip4"),
    ("ip4-multicast", "linux-cp-xc-ip4"),
    ("ip6-unicast", "linux-cp-xc-ip6"),
    ("ip6-multicast", "linux-cp-xc-ip6"),
    ("mpls-input", "linux-cp-xc-mpls"),
    ("arp", "linux-cp-arp-host"),
];
/// Features of an interface with a TUN twin.
const PHY_L3: Features = &[
    ("ip4-punt", "linux-cp-punt-l3"),
    ("ip6-punt", "linux-cp-punt-l3"),
    ("ip4-multicast", "linux-cp-mcast-ip4"),
    ("ip6-multicast", "linux-cp-mcast-ip6"),
];
/// Features of its router's end.
const HOST_L3: Features = &[
    ("ip4-unicast", "linux-cp-xc-l3-ip4"),
    ("ip4-multicast", "linux-cp-xc-l3-ip4"),
    ("ip6-unicast", "linux-cp-xc-l3-ip6"),
    ("ip6-multicast", "linux-cp-xc-l3-ip6"),
];

fn features(made: &Made) -> [Features; 2] {
    if *made == Made::Tun { [PHY_L3, HOST_L3] } else { [PHY, HOST] }
}

pub(crate) fn init(c: &mut Control) {
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::Created(i) => follow_new(c, i),
        InterfaceEvent::Deleted(i) => {
            let of_host = c.state::<Pairs>().borrow().of_host(i).map(|pair| pair.phy);
            unmake(c, of_host.unwrap_or(i), Some(i));
        }
        _ => {}
    });
}

/// Makes a pair; returns the router's end.
///
/// # Errors
/// [`Error`]; nothing has changed then.
pub fn create(c: &mut Control, wanted: &Wanted) -> Result<SwIfIndex, Error> {
    let view = check(c, wanted)?;
    let number = c.state::<Pairs>().borrow().next()?;
    let (host, made, namespace) = match view.sub {
        Some((_, of)) => make_vlan(c, wanted, &view, of)?,
        None => make_tap(c, wanted, &view)?,
    };
    let name = wanted.name.clone();
    join(c, &view, (number, host, name), made, namespace)?;
    Ok(host)
}

/// Makes an interface and its twin, with the router's end of it, a pair of this number.
pub(crate) fn join(
    c: &mut Control,
    view: &InterfaceView,
    (number, host, name): (u32, SwIfIndex, String),
    made: Made,
    namespace: Option<String>,
) -> Result<(), Error> {
    if matches!(made, Made::Tap | Made::Tun) {
        // Tables are seen at once, nodes of a new TAP once a worker has installed them: a worker
        // that still runs the features of an earlier pair would send to a node it does not know.
        c.sync();
    }
    let begun = begin(c, view, host, &made);
    let to = begun.inspect_err(|_| unmake_twin(c, host, &made, None))?;
    let counts = gate::counters(c);
    gate::make_room(c, number);
    let phy = view.sw_if;
    let owner = view.parent.and_then(|parent| interface::view(c, parent).ok());
    let kind = owner.as_ref().unwrap_or(view).kind;
    let has_no_device = matches!(kind, interface::Kind::Loopback | interface::Kind::Tunnel);
    let twin = Twin { host, number, counts: counts.clone(), has_no_device };
    table::update(c, |table| {
        table.set_twin(phy, Some(twin));
        table.set_original(host, Some(Original { phy, to }));
    });
    let pair = Pair { phy, host, name, namespace, made, to, counts, stale: false };
    c.state::<Pairs>().borrow_mut().add(number, pair.clone());
    set_features(c, &pair, true, None);
    publish_hosts(c);
    sync::made(c, &pair);
    name_twin(c, phy);
    Ok(())
}

/// Deletes the pair of an interface, with those of its sub-interfaces.
///
/// # Errors
/// If it has none.
pub fn delete(c: &mut Control, phy: SwIfIndex) -> Result<(), Error> {
    if c.state::<Pairs>().borrow().of_phy(phy).is_none() {
        interface::view(c, phy)?;
        return Err(Error::NotPaired(c.interface_name(phy)));
    }
    unmake(c, phy, None);
    Ok(())
}

/// Returns whether a pair is what [`create`] would make: its name, its namespace, and its kind.
pub(crate) fn is_same(c: &Control, pair: &Pair, wanted: &Wanted) -> bool {
    let namespace = match pair.made {
        // The one of the parent's twin, which may be named.
        Made::Vlan { .. } => wanted.namespace.clone().or_else(|| pair.namespace.clone()),
        Made::Tap | Made::Tun => namespace_of(c, wanted),
    };
    let is_tun = pair.made == Made::Tun;
    (&pair.name, &pair.namespace, is_tun) == (&wanted.name, &namespace, wanted.tun)
}

/// Returns the namespace of a new TAP, if it is not the router's own.
fn namespace_of(c: &Control, wanted: &Wanted) -> Option<String> {
    let namespace = wanted.namespace.clone().or_else(|| options::get(c).namespace);
    namespace.filter(|name| name != options::OWN_NAMESPACE)
}

/// Checks what does not depend on the system; returns the interface.
fn check(c: &Control, wanted: &Wanted) -> Result<InterfaceView, Error> {
    let view = interface::view(c, wanted.phy)?;
    let name = view.name.clone();
    if view.sw_if == SwIfIndex(0) {
        return Err(Error::Local(name));
    }
    let pairs = c.state::<Pairs>();
    let pairs = pairs.borrow();
    if let Some(pair) = pairs.of_phy(view.sw_if) {
        return Err(Error::Paired { phy: name, name: pair.name.clone() });
    }
    if pairs.of_host(view.parent.unwrap_or(view.sw_if)).is_some() {
        return Err(Error::IsHost(name));
    }
    options::check_namespace(wanted.namespace.as_deref())?;
    if !is_name(&wanted.name) {
        return Err(Error::BadName(wanted.name.clone()));
    }
    match (view.ethernet, wanted.tun) {
        (false, false) => Err(Error::NeedsTun(name)),
        (true, true) => Err(Error::NeedsTap(name)),
        _ => Ok(view),
    }
}

/// A new twin: the router's end, how it was made, and the namespace.
type Twins = (SwIfIndex, Made, Option<String>);

/// Makes the TAP of an interface, or its TUN.
fn make_tap(c: &mut Control, wanted: &Wanted, view: &InterfaceView) -> Result<Twins, Error> {
    let (options, namespace) = (options::get(c), namespace_of(c, wanted));
    let mut flags = Flags::GSO;
    flags.set(Flags::GRO_COALESCE, true);
    flags.set(Flags::TUN, wanted.tun);
    let (least, most) = TAP_MTU;
    let config = TapConfig {
        least_id: FIRST_TAP,
        owner: Some(format!("the twin of {0} (`lcp delete {0}' deletes both)", view.name)),
        rx_queues: options.rx_queues.unwrap_or(c.workers().clamp(1, 64) as u16),
        tx_queues: options.tx_queues.unwrap_or(1).max(c.workers().min(64) as u16),
        flags,
        host: HostSide {
            name: Some(wanted.name.clone()),
            namespace: namespace.clone(),
            mac: (!wanted.tun).then_some(view.mac),
            mtu: Some(view.mtu.l3).filter(|mtu| *mtu > 0).map(|mtu| mtu.clamp(least, most)),
            down: !view.admin_up,
            ..HostSide::default()
        },
        ..TapConfig::default()
    };
    let host = tap::create(c, config)?;
    let made = if wanted.tun { Made::Tun } else { Made::Tap };
    Ok((host, made, namespace))
}

/// Finds the interface on whose twin the VLAN link of a sub-interface is, and the link's tag.
fn upper(c: &Control, view: &InterfaceView, of: TagMatch) -> Result<(SwIfIndex, VlanTag), Error> {
    let parent = view.parent.unwrap_or_default();
    let not_exact = || Error::NotExact(view.name.clone());
    match of {
        TagMatch::Outer { tag, exact: true } => Ok((parent, tag)),
        TagMatch::Pair { outer, inner, exact: true } => {
            let first = TagMatch::Outer { tag: outer, exact: true };
            let all = c.state::<Interfaces>();
            let all = all.borrow();
            let is_outer = |v: &&InterfaceView| {
                v.parent == Some(parent) && v.sub.is_some_and(|(_, of)| of == first)
            };
            let pairs = c.state::<Pairs>();
            let pairs = pairs.borrow();
            let sub = all.iter().find(is_outer).filter(|v| pairs.of_phy(v.sw_if).is_some());
            let none = || Error::NoOuter {
                sub: view.name.clone(),
                parent: c.interface_name(parent),
                outer: format!("{} {}", outer.kind, outer.id),
            };
            Ok((sub.ok_or_else(none)?.sw_if, inner))
        }
        _ => Err(not_exact()),
    }
}

/// The kernel's rules for the names of devices (`dev_valid_name`); `%` stands for a number there. A
/// document must be able to express it, too.
fn is_name(name: &str) -> bool {
    let odd = |b: u8| b.is_ascii_whitespace() || b.is_ascii_control() || b"/:%".contains(&b);
    (1..=LONGEST_NAME).contains(&name.len())
        && ![".", ".."].contains(&name)
        && !name.bytes().any(odd)
        && Name::Any.takes(name)
}

/// Makes the VLAN link of a sub-interface, on the twin of its parent or of its outer tag, and the
/// sub-interface of the TAP that carries the same frames.
fn make_vlan(
    c: &mut Control,
    wanted: &Wanted,
    view: &InterfaceView,
    of: TagMatch,
) -> Result<Twins, Error> {
    let (upper, tag) = upper(c, view, of)?;
    let parent = c.state::<Pairs>().borrow().of_phy(upper).cloned();
    let none = || Error::NoParent { parent: c.interface_name(upper) };
    let parent = parent.ok_or_else(none)?;
    if wanted.namespace.as_ref().is_some_and(|ns| Some(ns) != parent.namespace.as_ref()) {
        return Err(Error::OtherNamespace(view.name.clone()));
    }
    let (tap, lower) = match parent.made {
        Made::Vlan { tap, link, .. } => {
            let link = link.ok_or_else(|| Error::Away(c.interface_name(parent.host)))?;
            (tap, Some(link.ifindex))
        }
        Made::Tap | Made::Tun => (parent.host, None),
    };
    let link = make_link(c, &wanted.name, tap, lower, tag)?;
    let made = Made::Vlan { tag, upper, tap, link: Some(link) };
    let number = view.sub.map_or(0, |(number, _)| number);
    match interface::create_sub(c, tap, number, of) {
        Ok(host) => Ok((host, made, parent.namespace)),
        Err(e) => {
            delete_vlan(c, &made);
            Err(e.into())
        }
    }
}

/// Makes a VLAN link on the device of a TAP, or on another link on that, or takes over the one of
/// that name that is like it.
pub(crate) fn make_link(
    c: &Control,
    name: &str,
    tap: SwIfIndex,
    lower: Option<u32>,
    tag: VlanTag,
) -> Result<VlanLink, Error> {
    let failed = |what| move |source| Error::Kernel { name: name.to_owned(), what, source };
    let Some((namespace, device)) = tap::place(c, tap) else {
        return Err(Error::Away(c.interface_name(tap)));
    };
    let lower = lower.unwrap_or(device);
    let on = (sync::id_of(namespace.as_ref()), lower);
    // Links on a device that outlived a router were that router's.
    let is_own = tap::host(c, tap).is_some_and(|host| host.was_there) && !sync::has_started(c);
    let job = |port: &Port, _| -> Result<VlanLink, Error> {
        let find = || Link::named_by(port, name).map_err(failed("look for it"));
        if let Some(link) = find()? {
            let is_alike = link.vlan == Some((tag.kind.tpid(), tag.id.0))
                && link.kind == "vlan"
                && link.lower == Some(lower);
            return match is_alike {
                true => Ok(VlanLink { ifindex: link.index, on, adopted: !is_own }),
                false => Err(Error::NameTaken(name.to_owned())),
            };
        }
        add_vlan(port, name, lower, tag.kind.tpid(), tag.id.0).map_err(|e| {
            match e.raw_os_error() {
                Some(EOPNOTSUPP) => Error::NoVlans,
                _ => failed("make it")(e),
            }
        })?;
        let gone = || failed("find it")(io::ErrorKind::NotFound.into());
        Ok(VlanLink { ifindex: find()?.ok_or_else(gone)?.index, on, adopted: false })
    };
    let away = || Error::Away(c.interface_name(tap));
    tap::ask_host(c, tap, job).ok_or_else(away)?
}

/// The kernel's answer for a kind of link that it does not know.
const EOPNOTSUPP: i32 = 95;

/// Deletes the VLAN link of a twin, unless it was there before: while such links get interfaces, it
/// would get one again.
fn delete_vlan(c: &Control, made: &Made) {
    let Made::Vlan { tap, link: Some(link), .. } = made else { return };
    if link.adopted && !options::get(c).auto_subint {
        return;
    }
    // Its number may be another link's in a namespace that came back.
    let there = tap::place(c, *tap).is_some_and(|(ns, _)| sync::id_of(ns.as_ref()) == link.on.0);
    if there {
        // One that is gone already needs no deletion.
        let _ = tap::ask_host(c, *tap, |port, _| delete_link(port, link.ifindex));
    }
}

/// Brings up the router's end, and makes what packets of the twin leave by.
fn begin(
    c: &mut Control,
    view: &InterfaceView,
    host: SwIfIndex,
    made: &Made,
) -> Result<[Dpo; 2], Error> {
    if *made != Made::Tun {
        interface::accept_all(c, host, true)?;
    }
    interface::set_admin(c, host, true)?;
    let peer = if view.ethernet { Peer::AsWritten } else { Peer::PointToPoint };
    let forwarding = c.state::<Forwarding>();
    let mut forwarding = forwarding.borrow_mut();
    let ip4 = forwarding.adjacency(c, view.sw_if, LinkType::Ip4, peer)?;
    let ip6 = forwarding.adjacency(c, view.sw_if, LinkType::Ip6, peer);
    Ok([ip4, ip6.inspect_err(|_| forwarding.release(c, ip4))?])
}

/// Enables or disables the features of a pair; those of an interface that is `gone` have gone with
/// it.
fn set_features(c: &mut Control, pair: &Pair, on: bool, gone: Option<SwIfIndex>) {
    let [phy, host] = features(&pair.made);
    for (sw_if, all) in [(pair.phy, phy), (pair.host, host)] {
        if gone == Some(sw_if) {
            continue;
        }
        for (arc, node) in all {
            if let Err(e) = c.enable_feature(arc, node, sw_if, on) {
                tracing::error!("{}: {e}", c.interface_name(sw_if));
            }
        }
    }
}

/// Sets the kernel's index of an interface's twin, or none.
pub(crate) fn name_twin(c: &mut Control, phy: SwIfIndex) {
    let ifindex = pairs::ifindex(c, phy);
    // The interface may be gone.
    let _ = interface::set_twin(c, phy, ifindex);
}

/// Punts packets that interfaces with twins receive.
fn publish_hosts(c: &mut Control) {
    let all: BTreeSet<SwIfIndex> = c.state::<Pairs>().borrow().phys().collect();
    punt::set_hosts(c, all);
}

/// Deletes a pair, if there is one, after those whose twins are on its twin. `gone` is the
/// interface whose deletion is the reason.
fn unmake(c: &mut Control, phy: SwIfIndex, gone: Option<SwIfIndex>) {
    let above = c.state::<Pairs>().borrow().above(phy);
    for sub in above {
        unmake(c, sub, gone);
    }
    let Some(pair) = c.state::<Pairs>().borrow_mut().remove(phy) else { return };
    sync::unmade(c, pair.phy, gone == Some(pair.phy));
    set_features(c, &pair, false, gone);
    table::update(c, |table| {
        table.set_twin(pair.phy, None);
        table.set_original(pair.host, None);
    });
    publish_hosts(c);
    gate::keep(c, &pair.counts);
    for dpo in pair.to {
        c.state::<Forwarding>().borrow_mut().release(c, dpo);
    }
    if gone != Some(pair.phy) {
        name_twin(c, pair.phy);
    }
    unmake_twin(c, pair.host, &pair.made, gone);
}

/// Deletes a twin with the router's end of it.
fn unmake_twin(c: &mut Control, host: SwIfIndex, made: &Made, gone: Option<SwIfIndex>) {
    delete_vlan(c, made);
    if gone != Some(host)
        && let Err(e) = interface::delete(c, host)
    {
        tracing::error!("{}: {e}", c.interface_name(host));
    }
}

/// Gives a new sub-interface a twin if all get one: with the name of its parent's and its number.
fn follow_new(c: &mut Control, sw_if: SwIfIndex) {
    if !options::get(c).auto_subint || sync::is_making(c) {
        return;
    }
    let Ok(view) = interface::view(c, sw_if) else { return };
    let (Some((number, of)), Some(parent)) = (view.sub, view.parent) else { return };
    let name = c.state::<Pairs>().borrow().of_phy(parent).map(|p| format!("{}.{number}", p.name));
    let Some(name) = name.filter(|_| of.tags().is_some()) else { return };
    if name.len() > LONGEST_NAME {
        tracing::warn!("{}: no twin {name}, as a name has up to 15 characters", view.name);
        return;
    }
    let wanted = Wanted { phy: sw_if, name, namespace: None, tun: false };
    if let Err(e) = create(c, &wanted) {
        tracing::warn!("{}: no twin: {e}", view.name);
    }
}
