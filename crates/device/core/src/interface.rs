//! The registry of interfaces.
//!
//! The main thread owns it; workers read [`IfTable`], republished on each change. Features learn of
//! changes by [`InterfaceEvent`].

mod create;
mod delete;
mod device;
mod error;
mod family;
mod fuzz;
mod indices;
mod kind;
mod macs;
mod rewrite;
mod rows;
mod set;
mod subs;

use create::TX_END;
pub use create::{
    InterfaceSpec, OUTPUT_END, Transmit, create, free_index, free_instance, keep_index,
    next_instance, release_index, reserve_index, take_instance,
};
pub use delete::{before_delete, delete};
pub use device::{Caps, Device, RxQueue, SystemDevice};
pub use error::DeviceError;
pub use family::create_sub;
pub use fuzz::fuzz_subs;
pub use kind::{Kind, Mode, Mtu, MtuOf};
pub(crate) use macs::is_found as is_found_mac;
pub use macs::{
    MAX_SECONDARY_MACS, add_secondary_mac, remove_secondary_mac, secondary_macs, set_found_macs,
};
pub use rewrite::{MAX_REWRITTEN, TagEdit, TagRewrite};
pub use rows::{IfRow, IfTable};
pub use set::{
    MTU_RANGE, accept_all, check_mac, clear_counters, follow_link_mtu, refresh_caps, set_admin,
    set_input_end, set_link, set_link_mtu, set_mac, set_mode, set_mtu, set_mtus, set_output_end,
    set_promiscuous, set_rx_mode, set_rx_placement, set_speed, set_tag, set_tag_rewrite, set_twin,
};
pub use subs::{NoInterface, Subs, TagKind, TagMatch, Tags, VlanTag, header_len};

use delete::Leaver;
use family::{Children, Follow};
use indices::Indices;
use kind::MODES;
use rows::{NO_ROW, row};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
pub use thalweg_buffer::SwIfIndex;
use thalweg_graph::stats::MAX_INTERFACES;
use thalweg_graph::{Control, NodeId};
use thalweg_tables::qsbr::Tag;
use thalweg_tables::snapshot::{self, Snapshot};
pub use thalweg_wire::MacAddr;

/// The event that an interface has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterfaceEvent {
    /// Created.
    Created(SwIfIndex),
    /// The interface will be deleted now.
    Deleted(SwIfIndex),
    /// Administrative state, link state or link speed changed.
    State(SwIfIndex),
    /// MAC address changed.
    Mac(SwIfIndex),
    /// MTU changed.
    Mtu(SwIfIndex),
    /// Tag changed.
    Tag(SwIfIndex),
    /// Promiscuous mode changed.
    Promiscuous(SwIfIndex),
    /// The system's device for it changed.
    Twin(SwIfIndex),
}

/// A device of the system has come, after an interface on it could not be created: what failed for
/// its absence can be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCame {
    /// The device's name.
    pub name: String,
}

/// An interface, for display and for features.
#[derive(Clone, Debug)]
pub struct InterfaceView {
    /// Interface index.
    pub sw_if: SwIfIndex,
    /// Name.
    pub name: String,
    /// Hardware, sub-interface or another kind.
    pub kind: Kind,
    /// Device type.
    pub dev_type: &'static str,
    /// MAC address.
    pub mac: MacAddr,
    /// Other addresses whose frames are its own; sub-interfaces have those of their parent.
    pub secondary_macs: Arc<[MacAddr]>,
    /// Administratively up.
    pub admin_up: bool,
    /// Link is up.
    pub link_up: bool,
    /// Ticks (see [`thalweg_graph::clock`]) at which it last went up or down.
    pub state_since: u64,
    /// MTU of the device.
    pub link_mtu: u32,
    /// MTUs of packets.
    pub mtu: Mtu,
    /// Speed in kbit/s, 0 if unknown.
    pub speed_kbps: u32,
    /// Promiscuous mode.
    pub promiscuous: bool,
    /// Offloads of the device.
    pub caps: Caps,
    /// Output node.
    pub output: NodeId,
    /// The output node is that of others, too, and finds the interface in the tx column.
    pub shares_output: bool,
    /// Carries Ethernet frames.
    pub ethernet: bool,
    /// User tag, such as the managing program's name; may be empty.
    pub tag: String,
    /// Fate of received frames.
    pub mode: Mode,
    /// The interface that it is a part of. Its link is up while that interface is.
    pub parent: Option<SwIfIndex>,
    /// Number among the sub-interfaces of its parent, and the frames that it receives.
    pub sub: Option<(u32, TagMatch)>,
    /// Tags of the frames that it sends.
    pub tags: Tags,
    /// Changes of tags in layer 2.
    pub rewrite: TagRewrite,
    /// Index of the system's device for it, which programs use that know the system's devices.
    pub twin: Option<u32>,
}

impl InterfaceView {
    /// Returns whether it is administratively up with its link up.
    pub fn is_up(&self) -> bool {
        self.admin_up && self.link_up
    }
}

type DeviceRef = Rc<dyn Device>;

struct Interface {
    view: InterfaceView,
    /// Number of features that need all frames.
    accept_all: u32,
    /// Number of its sub-interfaces that accept all frames of theirs.
    subs_accept_all: u32,
    device: DeviceRef,
    tx: Option<NodeId>,
    children: Option<Box<Children>>,
    /// Set until its last sub-interface has gone, when the interface follows.
    is_going: bool,
    /// When it went down last; `None` if it never was up.
    down_since: Option<Tag>,
}

impl Interface {
    fn new(view: InterfaceView, device: DeviceRef, tx: Option<NodeId>) -> Interface {
        Interface {
            view,
            accept_all: 0,
            subs_accept_all: 0,
            device,
            tx,
            children: None,
            is_going: false,
            down_since: None,
        }
    }

    /// Returns whether frames for any MAC address are its own.
    fn accepts_all(&self) -> bool {
        self.view.promiscuous || self.accept_all > 0
    }

    /// Returns whether its device has to receive frames for any MAC address.
    fn needs_all(&self) -> bool {
        self.accepts_all() || self.subs_accept_all > 0 || !self.view.secondary_macs.is_empty()
    }
}

/// Names of interfaces by index, and of those that had an index before.
#[derive(Clone, Debug, Default)]
pub struct Names {
    present: BTreeMap<SwIfIndex, String>,
    former: BTreeMap<SwIfIndex, (String, u64)>,
}

impl Names {
    /// Name of the interface that had an index at a time, in ticks.
    pub fn at(&self, sw_if: SwIfIndex, at: u64) -> String {
        name_at(self.present.get(&sw_if), self.former.get(&sw_if), sw_if, at)
    }
}

/// Name of the interface that had an index at a time: of the present one or the one before.
fn name_at(
    present: Option<&String>,
    former: Option<&(String, u64)>,
    sw_if: SwIfIndex,
    at: u64,
) -> String {
    match (present, former) {
        (_, Some((name, until))) if at <= *until => format!("{name} (deleted)"),
        (Some(name), _) => name.clone(),
        (None, _) => format!("deleted-{sw_if}"),
    }
}

/// The registry on the main thread.
pub struct Interfaces {
    list: Vec<Option<Interface>>,
    /// A hash table of very many names would move all of them when it grows.
    by_name: BTreeMap<String, SwIfIndex>,
    /// Interfaces with a tag.
    by_tag: HashMap<String, BTreeSet<SwIfIndex>>,
    /// Interfaces whose deletion has begun.
    ending: BTreeSet<SwIfIndex>,
    leavers: Vec<Leaver>,
    writer: snapshot::Writer<IfTable>,
    indices: Indices,
    /// Time by which what workers had under way has ended.
    drained: Option<Tag>,
    /// Time when the last interface of an index went, until another one has it.
    left: BTreeMap<SwIfIndex, Tag>,
    /// The name of the last interface of an index that went, and when, in ticks.
    former: BTreeMap<SwIfIndex, (String, u64)>,
    /// Indices that are not free yet: see [`keep_index`].
    kept: BTreeSet<SwIfIndex>,
    /// Instances of numbered interfaces (`loop3`) by prefix.
    instances: HashMap<&'static str, Indices>,
    /// Nodes of frames received, by mode.
    mode_inputs: [Option<NodeId>; MODES],
    /// Interfaces whose sub-interfaces follow a change.
    follow: Follow,
    /// The driver of all sub-interfaces.
    sub_device: DeviceRef,
    /// Workers have their memory for cutting GSO packets.
    can_segment: bool,
    #[allow(clippy::type_complexity)]
    describers: Vec<Rc<dyn Fn(&Control, SwIfIndex) -> Vec<String>>>,
}

impl Interfaces {
    pub(crate) fn init(c: &mut Control) {
        let (writer, snapshot) = snapshot::channel(IfTable::default());
        c.share(snapshot);
        c.insert(macs::FoundMacs::default());
        c.insert(Interfaces {
            list: Vec::new(),
            by_name: BTreeMap::new(),
            by_tag: HashMap::new(),
            ending: BTreeSet::new(),
            leavers: Vec::new(),
            writer,
            indices: Indices::new(MAX_INTERFACES as u32),
            drained: None,
            left: BTreeMap::new(),
            former: BTreeMap::new(),
            kept: BTreeSet::new(),
            instances: HashMap::new(),
            mode_inputs: [None; MODES],
            follow: Follow::default(),
            sub_device: family::device(),
            can_segment: false,
            describers: Vec::new(),
        });
        c.set_namer(crate::namer);
        c.state::<Interfaces>().borrow_mut().add_local0();
    }

    /// Adds `local0`, the rx interface of locally originated packets.
    fn add_local0(&mut self) {
        let view = InterfaceView {
            sw_if: SwIfIndex(0),
            name: "local0".into(),
            kind: Kind::Local,
            dev_type: "local",
            mac: MacAddr::ZERO,
            secondary_macs: Arc::default(),
            admin_up: false,
            link_up: false,
            state_since: 0,
            link_mtu: 0,
            mtu: Mtu::default(),
            speed_kbps: 0,
            promiscuous: false,
            caps: Caps::default(),
            output: NodeId(0),
            shares_output: false,
            ethernet: false,
            tag: String::new(),
            mode: Mode::Routed,
            parent: None,
            sub: None,
            tags: Tags::NONE,
            rewrite: TagRewrite::NONE,
            twin: None,
        };
        let device: DeviceRef = Rc::new(Local);
        self.by_name.insert("local0".into(), SwIfIndex(0));
        self.indices.take("local0", SwIfIndex(0).get());
        self.list.push(Some(Interface::new(view, device, None)));
    }

    /// Returns the table that workers read, for a node's build function.
    pub fn table(cx: &thalweg_graph::BuildCx<'_>) -> Arc<Snapshot<IfTable>> {
        cx.shared::<Snapshot<IfTable>>()
    }

    /// Looks up an interface by index.
    pub fn get(&self, sw_if: SwIfIndex) -> Option<&InterfaceView> {
        self.list.get(sw_if.index())?.as_ref().map(|i| &i.view)
    }

    /// Looks up an interface by name.
    ///
    /// # Errors
    /// [`DeviceError::Unknown`].
    pub fn find(&self, name: &str) -> Result<SwIfIndex, DeviceError> {
        self.by_name.get(name).copied().ok_or_else(|| DeviceError::Unknown(name.into()))
    }

    /// Looks up an interface by what people call it: its name, that of its device in the kernel
    /// (`eth0` for `host-eth0`), or its tag if no other has the same.
    pub fn resolve(&self, word: &str) -> Option<SwIfIndex> {
        let exact = |name: &str| self.by_name.get(name).copied();
        exact(word).or_else(|| exact(&format!("host-{word}"))).or_else(|| {
            let mut tagged = self.by_tag.get(word)?.iter();
            let first = *tagged.next()?;
            tagged.next().is_none().then_some(first)
        })
    }

    /// Reserved indices, by the name of the future interface.
    pub fn reserved(&self) -> impl Iterator<Item = (&str, SwIfIndex)> {
        self.indices.reserved().map(|(name, index)| (name, SwIfIndex(index)))
    }

    /// All interfaces by index.
    pub fn iter(&self) -> impl Iterator<Item = &InterfaceView> {
        self.list.iter().flatten().map(|i| &i.view)
    }

    /// One more than the greatest index that an interface ever had.
    pub fn end(&self) -> usize {
        self.list.len()
    }

    /// Name of the interface that had an index at a time, in ticks.
    pub fn name_at(&self, sw_if: SwIfIndex, at: u64) -> String {
        let present = self.get(sw_if).map(|view| &view.name);
        name_at(present, self.former.get(&sw_if), sw_if, at)
    }

    /// Returns all names, for later use.
    pub fn names(&self) -> Names {
        let present = self.iter().map(|view| (view.sw_if, view.name.clone())).collect();
        Names { present, former: self.former.clone() }
    }

    /// Driver of an interface.
    pub fn device(&self, sw_if: SwIfIndex) -> Option<DeviceRef> {
        Some(self.list.get(sw_if.index())?.as_ref()?.device.clone())
    }

    /// Registers lines for `show interface address` (addresses, layer 2).
    pub fn describe_addresses(&mut self, f: impl Fn(&Control, SwIfIndex) -> Vec<String> + 'static) {
        self.describers.push(Rc::new(f));
    }

    fn instances(&mut self, prefix: &'static str) -> &mut Indices {
        let new = || Indices::new(SwIfIndex(MAX_INTERFACES as u32).get());
        self.instances.entry(prefix).or_insert_with(new)
    }

    fn row(&mut self, sw_if: SwIfIndex) -> Result<&mut Interface, DeviceError> {
        let found = self.list.get_mut(sw_if.index()).and_then(Option::as_mut);
        found.ok_or_else(|| DeviceError::Unknown(format!("index {sw_if}")))
    }

    /// Publishes an interface's row to workers.
    fn publish(&mut self, c: &Control, sw_if: SwIfIndex) {
        self.publish_all(c, &[sw_if]);
    }

    /// Publishes the rows of some interfaces, at once.
    fn publish_all(&mut self, c: &Control, changed: &[SwIfIndex]) {
        let (list, inputs) = (&self.list, &self.mode_inputs);
        self.writer.update(c.domain(), |table| {
            let mut table = table.clone();
            for &sw_if in changed {
                let i = list.get(sw_if.index()).and_then(Option::as_ref);
                let subs = i.and_then(|i| Some(Arc::clone(&i.children.as_ref()?.subs)));
                let macs = i.map(|i| Arc::clone(&i.view.secondary_macs));
                table.set(sw_if, i.map_or(NO_ROW, |i| row(i, inputs)), subs);
                table.set_macs(sw_if, macs.filter(|macs| !macs.is_empty()));
            }
            table
        });
    }

    /// Notes that the tag of an interface has changed; an empty one is no tag.
    fn follow_tag(&mut self, sw_if: SwIfIndex, old: &str, new: &str) {
        if let Some(tagged) = self.by_tag.get_mut(old) {
            tagged.remove(&sw_if);
            if tagged.is_empty() {
                self.by_tag.remove(old);
            }
        }
        if !new.is_empty() {
            self.by_tag.entry(new.to_owned()).or_default().insert(sw_if);
        }
    }

    /// Puts an interface into the list.
    fn add(&mut self, new: Interface) {
        let at = new.view.sw_if.index();
        self.indices.take(&new.view.name, new.view.sw_if.get());
        self.by_name.insert(new.view.name.clone(), new.view.sw_if);
        self.list.resize_with(self.list.len().max(at + 1), || None);
        self.list[at] = Some(new);
    }
}

struct Local;
impl Device for Local {
    fn dev_type(&self) -> &'static str {
        "local"
    }
    fn kind(&self) -> Kind {
        Kind::Local
    }
    fn set_mtu(&self, _c: &mut Control, _mtu: u32) -> Result<bool, DeviceError> {
        Ok(false)
    }
}

/// Lines of `show interface address` for an interface.
pub fn addresses(c: &Control, sw_if: SwIfIndex) -> Vec<String> {
    let describers = c.state::<Interfaces>().borrow().describers.clone();
    describers.iter().flat_map(|d| d(c, sw_if)).collect()
}

/// Returns a copy of an interface's view.
///
/// # Errors
/// [`DeviceError::Unknown`].
pub fn view(c: &Control, sw_if: SwIfIndex) -> Result<InterfaceView, DeviceError> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    all.get(sw_if).cloned().ok_or_else(|| DeviceError::Unknown(format!("index {sw_if}")))
}

/// Returns the node by which an interface's device sends, if it has one of its own.
pub fn transmit_node(c: &Control, sw_if: SwIfIndex) -> Option<NodeId> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    all.list.get(sw_if.index())?.as_ref()?.tx
}

/// Returns whether what a worker reported at `at` (ticks) of an interface still holds: it is up, as
/// is its parent, and neither has been down since. Reports wait in a queue, and packets in rings,
/// while the interface or its link goes down.
pub fn is_current(c: &Control, sw_if: SwIfIndex, at: u64) -> bool {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let since_then = |v: &InterfaceView| v.is_up() && at >= v.state_since;
    let parent = |v: &InterfaceView| v.parent.is_none_or(|p| all.get(p).is_some_and(since_then));
    all.get(sw_if).is_some_and(|v| since_then(v) && parent(v))
}

/// Looks up an interface's index by name.
///
/// # Errors
/// [`DeviceError::Unknown`].
pub fn find(c: &Control, name: &str) -> Result<SwIfIndex, DeviceError> {
    c.state::<Interfaces>().borrow().find(name)
}

/// Registers the node of frames received on interfaces of a mode: of any value of this mode. To be
/// called from the `ready` of the feature that switches interfaces to it.
pub fn register_mode(c: &Control, mode: Mode, node: &str) {
    let all = c.state::<Interfaces>();
    all.borrow_mut().mode_inputs[mode.place()] = c.named_node(node, "a mode of interfaces");
}

/// The node by which an interface sends, by the name that it would have if it were its own:
/// `loop0-output`, `loop0-tx`.
pub(crate) fn node_of_name(c: &Control, name: &str) -> Option<NodeId> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let of = |end: &str| all.find(name.strip_suffix(end)?).ok();
    match of(OUTPUT_END) {
        Some(sw_if) => all.get(sw_if).map(|view| view.output),
        None => all.list.get(of(TX_END)?.index())?.as_ref()?.tx,
    }
}

/// Returns the interface whose output or transmit node has a name, which goes with it.
pub fn owner_of_node(c: &Control, name: &str) -> Option<SwIfIndex> {
    let of = name.strip_suffix(OUTPUT_END).or_else(|| name.strip_suffix(TX_END))?;
    find(c, of).ok()
}

/// Returns an interface's layer 2 membership as text, `xconnect host-b`, if it has one.
pub fn l2_text(c: &Control, view: &InterfaceView) -> Option<String> {
    match view.mode {
        Mode::Routed => None,
        Mode::CrossConnect(peer) => Some(format!("xconnect {}", c.interface_name(peer))),
        Mode::Bridged { domain, number, group, bvi } => {
            let bvi = if bvi { " bvi" } else { "" };
            Some(format!("bridge bd-id {domain} idx {number} shg {group}{bvi}"))
        }
        Mode::BondMember(bond) => Some(format!("bond {}", c.interface_name(bond))),
    }
}
