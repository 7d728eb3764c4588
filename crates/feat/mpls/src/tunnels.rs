//! Tunnels of labels: interfaces that put labels before what they send. A tunnel for layer 2 is an
//! end of pseudowires (RFC 4448); what comes back is received by it where a label says so
//! ([`Via::Layer2`]).

use crate::error::MplsError;
use crate::nodes::mpls_tunnel_tx;
use crate::via::Via;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use thalweg_device::interface::{self, Device, InterfaceSpec, Kind};
use thalweg_device::{Caps, DeviceError, InterfaceEvent, MacAddr, SwIfIndex, Transmit};
use thalweg_feat_ip::table::{Followed, follow, unfollow};
use thalweg_fib::rib::{Before, Labels, Path, PathKind};
use thalweg_fib::{Dpo, DpoTable, Forwarding, LinkType};
use thalweg_graph::Control;
use thalweg_tables::CowTable;
use thalweg_tables::snapshot;

/// Maximum number of tunnels: as of any kind of interface with numbers.
pub const MAX_TUNNELS: u32 = 16_384;
/// Device type, as VPP's clients know it.
const DEV_TYPE: &str = "MPLS tunnel device";
/// Start of the names of tunnels.
pub(crate) const PREFIX: &str = "mpls-tunnel";

/// A tunnel.
#[derive(Clone, Debug)]
pub struct Tunnel {
    /// Its number, which is a part of its name.
    pub number: u32,
    /// Its interface.
    pub sw_if: SwIfIndex,
    /// True if it carries Ethernet frames.
    pub layer2: bool,
    /// True if it puts a control word before frames (RFC 4385).
    pub control_word: bool,
    /// Its paths, in order.
    pub paths: Vec<Path>,
    /// Followed paths, by the kind of packets that the tunnel carries.
    held: Vec<(LinkType, Followed)>,
}

impl Tunnel {
    /// Returns the object that packets without labels meet; a drop while there is none.
    #[must_use]
    pub fn object(&self) -> Dpo {
        self.held.first().map_or(thalweg_fib::forwarding::DROP, |(_, followed)| followed.dpo)
    }
}

/// Properties of a new tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelKind {
    /// True if it carries Ethernet frames.
    pub layer2: bool,
    /// True if it puts a control word before them.
    pub control_word: bool,
}

/// The wire of a tunnel for layer 2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    /// Frames get a control word.
    pub(crate) control_word: bool,
    /// The object that frames meet.
    pub(crate) frames: Dpo,
}

/// The wires of tunnels for layer 2, as workers read them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wires(CowTable<Option<Wire>>);

impl Wires {
    /// Returns the wire of a tunnel, if it is one for layer 2.
    #[inline]
    pub(crate) fn get(&self, sw_if: SwIfIndex) -> Option<Wire> {
        self.0.get(sw_if).copied().flatten()
    }
}

/// All tunnels.
pub struct Tunnels {
    all: BTreeMap<SwIfIndex, Tunnel>,
    /// The tunnels with a path by an interface, that interface first.
    by_path: BTreeSet<(SwIfIndex, SwIfIndex)>,
    wires: snapshot::Writer<Wires>,
}

impl Tunnels {
    /// All of them, in the order of their interfaces.
    pub fn iter(&self) -> impl Iterator<Item = &Tunnel> {
        self.all.values()
    }

    /// Returns the tunnel of an interface.
    #[must_use]
    pub fn get(&self, sw_if: SwIfIndex) -> Option<&Tunnel> {
        self.all.get(&sw_if)
    }

    /// Replaces the paths of a tunnel in the list of those by an interface.
    fn note_paths(&mut self, sw_if: SwIfIndex, old: &[Path], new: &[Path]) {
        let by =
            |paths: &[Path]| -> Vec<SwIfIndex> { paths.iter().filter_map(|p| p.sw_if).collect() };
        by(old).into_iter().for_each(|path| _ = self.by_path.remove(&(path, sw_if)));
        self.by_path.extend(by(new).into_iter().map(|path| (path, sw_if)));
    }

    fn set_wire(&mut self, c: &Control, sw_if: SwIfIndex, wire: Option<Wire>) {
        let mut wires = self.wires.get().clone();
        wires.0.set(sw_if, wire);
        self.wires.publish(c.domain(), wires);
    }
}

/// Tunnels and what their packets meet, for descriptions of packets.
#[derive(Debug, Default)]
pub(crate) struct Ends(Mutex<BTreeMap<SwIfIndex, Vec<Dpo>>>);

/// Tunnels that are looked at for one packet.
const MAX_NAMED: usize = 1024;

impl Ends {
    fn set(&self, sw_if: SwIfIndex, ends: Vec<Dpo>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match ends.is_empty() {
            true => drop(all.remove(&sw_if)),
            false => drop(all.insert(sw_if, ends)),
        }
    }

    /// Returns the tunnel by one of whose paths packets leave that meet an adjacency.
    pub(crate) fn tunnel(&self, dpos: &DpoTable, entry: Dpo) -> Option<SwIfIndex> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let leads = |ends: &[Dpo]| ends.iter().any(|end| dpos.may_meet(*end, entry));
        all.iter().take(MAX_NAMED).find(|(_, ends)| leads(ends)).map(|(sw_if, _)| *sw_if)
    }
}

struct TunnelDevice {
    number: u32,
}

impl Device for TunnelDevice {
    fn dev_type(&self) -> &'static str {
        DEV_TYPE
    }
    fn kind(&self) -> Kind {
        Kind::Tunnel
    }
    fn set_mac(&self, _c: &mut Control, _mac: MacAddr) -> Result<bool, DeviceError> {
        Ok(true)
    }
    fn hardware(&self, _c: &Control, _verbose: bool) -> Vec<String> {
        vec!["no hardware: packets get labels".into()]
    }
    fn delete(&self, c: &mut Control, _sw_if: SwIfIndex) {
        interface::free_instance(c, PREFIX, self.number);
    }
}

pub(crate) fn init(c: &mut Control) {
    let (wires, snapshot) = snapshot::channel(Wires::default());
    c.share(snapshot);
    c.insert(Tunnels { all: BTreeMap::new(), by_path: BTreeSet::new(), wires });
    c.subscribe(|c, event: &InterfaceEvent| {
        if let InterfaceEvent::Deleted(sw_if) = *event {
            interface_gone(c, sw_if);
        }
    });
}

/// Creates a tunnel with the lowest free number, or this one.
///
/// # Errors
/// If a path has no labels or leads nowhere ever, there are too many tunnels, or the number is
/// taken.
pub fn create(
    c: &mut Control,
    number: Option<u32>,
    kind: TunnelKind,
    paths: Vec<Path>,
) -> Result<SwIfIndex, MplsError> {
    check(&paths)?;
    let tunnels = c.state::<Tunnels>();
    let number = number.or_else(|| interface::next_instance(c, PREFIX));
    let number = number.filter(|n| *n < MAX_TUNNELS).ok_or(MplsError::TooManyTunnels)?;
    let [.., high, low] = number.to_be_bytes();
    // Without an address, an interface carries no Ethernet frames.
    let mac = match kind.layer2 {
        true => MacAddr([0x02, 0xfe, 0x6d, 0x70, high, low]),
        false => MacAddr([0; 6]),
    };
    let spec = InterfaceSpec {
        name: format!("{PREFIX}{number}"),
        mac,
        mtu: 9000,
        speed_kbps: 0,
        link_up: true,
        caps: Caps::default(),
        device: Box::new(TunnelDevice { number }),
        input: None,
    };
    let sw_if = interface::create(c, spec, Transmit::Shared(mpls_tunnel_tx::NODE.name))?;
    let (layer2, control_word) = (kind.layer2, kind.control_word);
    let (held, none) = (Vec::new(), Vec::new());
    let tunnel = Tunnel { number, sw_if, layer2, control_word, paths: none, held };
    tunnels.borrow_mut().all.insert(sw_if, tunnel);
    interface::take_instance(c, PREFIX, number);
    if let Err(e) = set_paths(c, sw_if, paths) {
        // The interface was made just now.
        let _ = interface::delete(c, sw_if);
        return Err(e);
    }
    Ok(sw_if)
}

const NO_WAY: &str = "a path of a tunnel is one to a next hop, or `via-label <label>'";

/// Returns the path of a tunnel that is written as one of a label.
///
/// # Errors
/// If only labels have such a path.
pub fn path(via: Via) -> Result<Path, MplsError> {
    match via {
        Via::Path(path) => Ok(path),
        _ => Err(MplsError::Unsuitable(NO_WAY)),
    }
}

fn check(paths: &[Path]) -> Result<(), MplsError> {
    if paths.is_empty() {
        return Err(MplsError::NoPaths);
    }
    for path in paths {
        let leads = path.next_hop.is_some() || path.sw_if.is_some() || path.via_label.is_some();
        if path.kind != PathKind::Normal || !leads {
            return Err(MplsError::Unsuitable(NO_WAY));
        }
        if path.labels.sent().as_slice().is_empty() {
            return Err(MplsError::NoLabels);
        }
    }
    Ok(())
}

/// Sets the paths of a tunnel. Packets take the old ones or the new ones.
///
/// # Errors
/// If there are none, one has no labels, leads by the tunnel itself, or nowhere ever; nothing has
/// changed then.
pub fn set_paths(c: &mut Control, sw_if: SwIfIndex, mut paths: Vec<Path>) -> Result<(), MplsError> {
    check(&paths)?;
    if paths.iter().any(|path| path.sw_if == Some(sw_if)) {
        return Err(MplsError::Unsuitable("a path of a tunnel cannot lead by the tunnel itself"));
    }
    paths.sort_unstable();
    let tunnels = c.state::<Tunnels>();
    let mut tunnels = tunnels.borrow_mut();
    let tunnels = &mut *tunnels;
    let Some(tunnel) = tunnels.all.get_mut(&sw_if) else {
        return Err(MplsError::NoTunnel(c.interface_name(sw_if)));
    };
    let before = |before| {
        let put = |p: &Path| Path { labels: p.labels.put_before(before), ..*p };
        follow::<u32>(c, paths.iter().map(put).collect())
    };
    let mut held = vec![(LinkType::Ip4, before(Before::Packet)?)];
    if !tunnel.layer2 {
        match before(Before::Labels) {
            Ok(followed) => held.push((LinkType::Mpls, followed)),
            Err(e) => {
                held.into_iter().for_each(|(_, followed)| unfollow::<u32>(c, followed));
                return Err(e.into());
            }
        }
    }
    let f = c.state::<Forwarding>();
    let mut wire = None;
    for (link, followed) in &held {
        if tunnel.layer2 {
            wire = Some(Wire { control_word: tunnel.control_word, frames: followed.dpo });
            continue;
        }
        f.borrow_mut().set_tunnel(c, sw_if, *link, followed.dpo)?;
        if *link == LinkType::Ip4 {
            // The adjacencies are the same before the labels.
            f.borrow_mut().set_tunnel(c, sw_if, LinkType::Ip6, followed.dpo)?;
        }
    }
    c.shared::<Ends>().set(sw_if, held.iter().map(|(_, followed)| followed.dpo).collect());
    let old = std::mem::replace(&mut tunnel.held, held);
    let old_paths = std::mem::replace(&mut tunnel.paths, paths.clone());
    tunnels.note_paths(sw_if, &old_paths, &paths);
    if wire.is_some() {
        tunnels.set_wire(c, sw_if, wire);
    }
    old.into_iter().for_each(|(_, followed)| unfollow::<u32>(c, followed));
    Ok(())
}

/// Adds paths to a tunnel.
///
/// # Errors
/// See [`set_paths`].
pub fn add_paths(c: &mut Control, sw_if: SwIfIndex, paths: Vec<Path>) -> Result<(), MplsError> {
    let mut all = paths_of(c, sw_if)?;
    all.retain(|old| !paths.iter().any(|path| path.is_same(old)));
    set_paths(c, sw_if, [paths, all].concat())
}

/// Removes paths of a tunnel, which goes with its last one; without any, the tunnel goes.
///
/// # Errors
/// If there is no such tunnel or path.
pub fn del_paths(c: &mut Control, sw_if: SwIfIndex, paths: &[Path]) -> Result<(), MplsError> {
    let mut left = paths_of(c, sw_if)?;
    for path in paths {
        let n = left.len();
        left.retain(|old| {
            let place = |p: &Path| (p.next_hop, p.via_label, p.sw_if);
            let same = place(old) == place(path);
            !(same && (path.labels == Labels::NONE || path.labels == old.labels))
        });
        if left.len() == n {
            return Err(MplsError::Unsuitable("the tunnel has no such path"));
        }
    }
    if paths.is_empty() || left.is_empty() {
        return Ok(interface::delete(c, sw_if)?);
    }
    set_paths(c, sw_if, left)
}

fn paths_of(c: &Control, sw_if: SwIfIndex) -> Result<Vec<Path>, MplsError> {
    let tunnels = c.state::<Tunnels>();
    let tunnels = tunnels.borrow();
    let tunnel = tunnels.get(sw_if);
    let tunnel = tunnel.ok_or_else(|| MplsError::NoTunnel(c.interface_name(sw_if)))?;
    Ok(tunnel.paths.clone())
}

/// Forgets a tunnel whose interface goes, and takes the interface out of the paths of others: a
/// tunnel goes with its last path.
fn interface_gone(c: &mut Control, sw_if: SwIfIndex) {
    let tunnels = c.state::<Tunnels>();
    let gone = tunnels.borrow_mut().all.remove(&sw_if);
    if let Some(gone) = &gone {
        c.shared::<Ends>().set(sw_if, Vec::new());
        let mut tunnels = tunnels.borrow_mut();
        tunnels.note_paths(sw_if, &gone.paths, &[]);
        if gone.layer2 {
            tunnels.set_wire(c, sw_if, None);
        }
    }
    for (_, followed) in gone.into_iter().flat_map(|tunnel| tunnel.held) {
        unfollow::<u32>(c, followed);
    }
    let users: Vec<SwIfIndex> = {
        let all = tunnels.borrow();
        all.by_path
            .range((sw_if, SwIfIndex(0))..=(sw_if, SwIfIndex(u32::MAX)))
            .map(|(_, user)| *user)
            .collect()
    };
    for user in users {
        let left = paths_of(c, user).unwrap_or_default();
        let left: Vec<Path> = left.into_iter().filter(|p| p.sw_if != Some(sw_if)).collect();
        if left.is_empty() {
            // The tunnel goes once all subscribers have heard of this one.
            c.after(Duration::ZERO, move |c| {
                if c.state::<Tunnels>().borrow().get(user).is_some() {
                    let _ = interface::delete(c, user);
                }
            });
        } else if let Err(e) = set_paths(c, user, left) {
            tracing::warn!("{}: {e}", c.interface_name(user));
        }
    }
}
