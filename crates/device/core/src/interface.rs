//! The registry of interfaces.
//!
//! The main thread owns it; workers read [`IfTable`], republished on each change. Features learn of
//! changes by [`InterfaceEvent`].

mod delete;
mod family;
mod fuzz;
mod indices;
mod kind;
mod macs;
mod rewrite;
mod rows;
mod set;
mod subs;

pub use delete::{before_delete, delete};
pub use family::create_sub;
pub use fuzz::fuzz_subs;
pub use kind::{Kind, Mode, Mtu, MtuOf};
pub use macs::{MAX_SECONDARY_MACS, add_secondary_mac, remove_secondary_mac, secondary_macs};
pub use rewrite::{MAX_REWRITTEN, TagEdit, TagRewrite};
pub use rows::{IfRow, IfTable};
pub use set::{
    MTU_RANGE, accept_all, check_mac, clear_counters, follow_link_mtu, refresh_caps, set_admin,
    set_link, set_link_mtu, set_mac, set_mode, set_mtu, set_mtus, set_output_end, set_promiscuous,
    set_rx_mode, set_rx_placement, set_speed, set_tag, set_tag_rewrite,
};
pub use subs::{NoInterface, Subs, TagKind, TagMatch, Tags, VlanTag, header_len};

use crate::output::{self, Scratch};
use delete::Leaver;
use family::{Children, Follow};
use indices::Indices;
use kind::MODES;
use rows::{NO_ROW, row};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
pub use thalweg_buffer::SwIfIndex;
use thalweg_config::declare::Name;
use thalweg_graph::stats::MAX_INTERFACES;
use thalweg_graph::{Built, Control, NodeDecl, NodeId, RxMode, clock};
use thalweg_tables::snapshot::{self, Snapshot};
pub use thalweg_wire::MacAddr;

/// Why an operation on an interface failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DeviceError {
    /// The interface does not exist.
    #[error("unknown interface `{0}`")]
    Unknown(String),
    /// The name is in use.
    #[error("interface `{0}` already exists")]
    Exists(String),
    /// The table is full.
    #[error("no room for another interface: the limit is {MAX_INTERFACES}")]
    Full,
    /// The driver does not support the operation.
    #[error("interface `{name}` ({kind}): {what} is not supported")]
    Unsupported {
        /// Name of the interface.
        name: String,
        /// Device type.
        kind: String,
        /// The operation.
        what: String,
    },
    /// A value is out of range.
    #[error("{what} must be between {min} and {max}, not {found}")]
    Range {
        /// Name of the value.
        what: &'static str,
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
        /// Value given.
        found: u64,
    },
    /// Another sub-interface receives these frames.
    #[error("`{name}` receives the frames with tags {matches} already")]
    TagsInUse {
        /// Its name.
        name: String,
        /// The tags.
        matches: TagMatch,
    },
    /// A tag rewrite removes tags that the interface's frames need not have.
    #[error("`{name}` is known by {has} VLAN tags: a rewrite cannot remove {pop}")]
    TooFewTags {
        /// Name of the interface.
        name: String,
        /// Number of tags that all its frames have.
        has: usize,
        /// Number of tags to remove.
        pop: u8,
    },
    /// The system or the driver failed.
    #[error("{0}")]
    Failed(String),
}

impl DeviceError {
    /// Return code for the binary API.
    pub fn code(&self) -> i32 {
        match self {
            DeviceError::Unknown(_) => -2,
            DeviceError::Exists(_) => -81,
            DeviceError::Range { .. } => -7,
            DeviceError::Unsupported { .. } => -126,
            DeviceError::Full => -162,
            DeviceError::TagsInUse { .. } => -56,
            DeviceError::TooFewTags { .. } => -72,
            DeviceError::Failed(_) => -1,
        }
    }
}

/// Transmit offloads of a device.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Caps {
    /// Completes partial TCP and UDP checksums.
    pub tx_csum: bool,
    /// Segments TCP GSO packets.
    pub tx_tso: bool,
    /// Segments UDP GSO packets.
    pub tx_uso: bool,
}

/// A receive queue, as `show interface rx-placement` lists it.
#[derive(Clone, Debug)]
pub struct RxQueue {
    /// Queue number.
    pub queue: u32,
    /// Worker that polls it, from 0.
    pub worker: usize,
    /// Name of the input node.
    pub node: String,
    /// Receive mode.
    pub mode: RxMode,
    /// The user assigned the queue to its worker.
    pub pinned: bool,
}

/// Driver of one interface, on the main thread.
pub trait Device: 'static {
    /// Device type, as VPP's clients know it: `af-packet`, `pg`, `Loopback` …
    fn dev_type(&self) -> &'static str;
    /// What the interface is made of.
    fn kind(&self) -> Kind {
        Kind::Hardware
    }
    /// Starts or stops receiving and transmitting.
    ///
    /// # Errors
    /// If the system fails.
    fn set_admin(
        &mut self,
        _c: &mut Control,
        _sw_if: SwIfIndex,
        _up: bool,
    ) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Switches promiscuous mode.
    ///
    /// # Errors
    /// If the system fails.
    fn set_promiscuous(&mut self, _c: &mut Control, _on: bool) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Sets the MAC address. False if the driver cannot.
    ///
    /// # Errors
    /// If the system fails.
    fn set_mac(&mut self, _c: &mut Control, _mac: MacAddr) -> Result<bool, DeviceError> {
        Ok(false)
    }
    /// Sets the device's MTU (without Ethernet header). False if the driver cannot.
    ///
    /// # Errors
    /// If the system fails.
    fn set_mtu(&mut self, _c: &mut Control, _mtu: u32) -> Result<bool, DeviceError> {
        Ok(true)
    }
    /// Driver's lines in `show hardware-interfaces`.
    fn hardware(&self, _c: &Control, _verbose: bool) -> Vec<String> {
        Vec::new()
    }
    /// The same as JSON.
    fn hardware_json(&self, _c: &Control) -> serde_json::Value {
        serde_json::Value::Null
    }
    /// Receive queues.
    fn rx_queues(&self) -> Vec<RxQueue> {
        Vec::new()
    }
    /// Number of transmit queues: the first belongs to the first worker, and so on.
    fn tx_queues(&self) -> u32 {
        0
    }
    /// Switches a driver option.
    ///
    /// # Errors
    /// If the driver has no such option or the system fails.
    fn set_option(&mut self, option: &str, _on: bool) -> Result<(), DeviceError> {
        Err(DeviceError::Failed(format!("{}: no option `{option}`", self.dev_type())))
    }
    /// Sets the receive mode of a queue (`None`: all); called only with a queue listed by
    /// [`Device::rx_queues`].
    ///
    /// # Errors
    /// If the driver supports one mode only.
    fn set_rx_mode(
        &mut self,
        _c: &mut Control,
        _sw_if: SwIfIndex,
        _queue: Option<u32>,
        _mode: RxMode,
    ) -> Result<(), DeviceError> {
        Err(DeviceError::Failed(format!("{}: the receive mode is fixed", self.dev_type())))
    }
    /// Assigns a receive queue to a worker (`None`: to the one with the fewest); called only with a
    /// queue listed by [`Device::rx_queues`] and an existing worker.
    ///
    /// # Errors
    /// If queues cannot move, or a worker does not answer.
    fn set_rx_placement(
        &mut self,
        _c: &mut Control,
        _sw_if: SwIfIndex,
        _queue: u32,
        _worker: Option<usize>,
    ) -> Result<(), DeviceError> {
        Err(DeviceError::Failed(format!("{}: receive queues cannot be moved", self.dev_type())))
    }
    /// Follows changes of the system's device behind the interface; returns the MTU of the link if
    /// that has changed.
    fn system_changed(&mut self, _now: &SystemDevice) -> Option<u32> {
        None
    }
    /// Current offloads, if they can change while the device is in use.
    fn caps(&self) -> Option<Caps> {
        None
    }
    /// Called periodically: passes the device's drop counts to workers, which own the counters.
    fn poll_missed(&mut self, _c: &mut Control, _sw_if: SwIfIndex) {}
    /// Stops everything before the interface is deleted.
    fn delete(&mut self, _c: &mut Control, _sw_if: SwIfIndex) {}
}

/// The system's device behind an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemDevice {
    /// Its name, which may change.
    pub name: String,
    /// Its own MAC address.
    pub mac: MacAddr,
    /// Its MTU in bytes.
    pub mtu: u32,
}

/// Parameters of a new interface.
pub struct InterfaceSpec {
    /// Interface name: `host-eth0`, `pg0`, `loop3` …
    pub name: String,
    /// MAC address; all zero if the interface is not Ethernet.
    pub mac: MacAddr,
    /// MTU in bytes, without Ethernet header.
    pub mtu: u32,
    /// Speed in kbit/s, 0 if unknown.
    pub speed_kbps: u32,
    /// Initial link state.
    pub link_up: bool,
    /// Offloads of the device.
    pub caps: Caps,
    /// The driver.
    pub device: Box<dyn Device>,
    /// Declaration of the transmit node.
    pub tx: &'static NodeDecl,
    /// Next node of received frames by default; `None` for `ethernet-input`.
    pub input: Option<NodeId>,
}

/// The event that an interface has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterfaceEvent {
    /// Created.
    Created(SwIfIndex),
    /// About to be deleted.
    Deleted(SwIfIndex),
    /// Administrative state, link state or link speed changed.
    State(SwIfIndex),
    /// MAC address changed.
    Mac(SwIfIndex),
    /// MTU changed.
    Mtu(SwIfIndex),
    /// Tag changed.
    Tag(SwIfIndex),
}

/// An interface, for display and for features.
#[derive(Clone, Debug)]
pub struct InterfaceView {
    /// Interface index.
    pub sw_if: SwIfIndex,
    /// Name.
    pub name: String,
    /// What it is made of.
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
    /// Carries Ethernet frames.
    pub ethernet: bool,
    /// User tag, such as the managing program's name; may be empty.
    pub tag: String,
    /// What becomes of received frames.
    pub mode: Mode,
    /// The interface that it is a part of. Its link is up while that interface is.
    pub parent: Option<SwIfIndex>,
    /// Number among the sub-interfaces of its parent, and the frames that it receives.
    pub sub: Option<(u32, TagMatch)>,
    /// Tags of the frames that it sends.
    pub tags: Tags,
    /// What it changes about tags in layer 2.
    pub rewrite: TagRewrite,
}

impl InterfaceView {
    /// Returns whether it is administratively up with its link up.
    pub fn is_up(&self) -> bool {
        self.admin_up && self.link_up
    }
}

type DeviceCell = Rc<RefCell<Box<dyn Device>>>;

struct Interface {
    view: InterfaceView,
    /// Number of features that need all frames.
    accept_all: u32,
    /// Number of its sub-interfaces that accept all frames of theirs.
    subs_accept_all: u32,
    device: DeviceCell,
    tx: Option<NodeId>,
    children: Option<Box<Children>>,
    /// It goes as soon as its sub-interfaces have gone.
    is_going: bool,
}

impl Interface {
    fn new(view: InterfaceView, device: DeviceCell, tx: Option<NodeId>) -> Interface {
        Interface {
            view,
            accept_all: 0,
            subs_accept_all: 0,
            device,
            tx,
            children: None,
            is_going: false,
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

/// The registry on the main thread.
pub struct Interfaces {
    list: Vec<Option<Interface>>,
    by_name: HashMap<String, SwIfIndex>,
    /// Interfaces whose deletion has begun.
    ending: BTreeSet<SwIfIndex>,
    leavers: Vec<Leaver>,
    writer: snapshot::Writer<IfTable>,
    indices: Indices,
    /// Instances of numbered interfaces (`loop3`) by prefix.
    instances: HashMap<&'static str, Indices>,
    /// Nodes of frames received, by mode.
    mode_inputs: [Option<NodeId>; MODES],
    /// Interfaces whose sub-interfaces follow a change.
    follow: Follow,
    /// The driver of all sub-interfaces.
    sub_device: DeviceCell,
    /// Workers have their memory for cutting GSO packets.
    can_segment: bool,
    #[allow(clippy::type_complexity)]
    describers: Vec<Rc<dyn Fn(&Control, SwIfIndex) -> Vec<String>>>,
}

impl Interfaces {
    pub(crate) fn init(c: &mut Control) {
        let (writer, snapshot) = snapshot::channel(IfTable::default());
        c.share(snapshot);
        c.insert(Interfaces {
            list: Vec::new(),
            by_name: HashMap::new(),
            ending: BTreeSet::new(),
            leavers: Vec::new(),
            writer,
            indices: Indices::new(MAX_INTERFACES as u32),
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
            ethernet: false,
            tag: String::new(),
            mode: Mode::Routed,
            parent: None,
            sub: None,
            tags: Tags::NONE,
            rewrite: TagRewrite::NONE,
        };
        let device: Box<dyn Device> = Box::new(Local);
        self.by_name.insert("local0".into(), SwIfIndex(0));
        self.indices.take("local0", SwIfIndex(0).get());
        self.list.push(Some(Interface::new(view, Rc::new(RefCell::new(device)), None)));
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
            let mut tagged = self.iter().filter(|v| !word.is_empty() && v.tag == word);
            let first = tagged.next()?.sw_if;
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

    /// Driver of an interface.
    pub fn device(&self, sw_if: SwIfIndex) -> Option<DeviceCell> {
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
    fn set_mtu(&mut self, _c: &mut Control, _mtu: u32) -> Result<bool, DeviceError> {
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

/// Checks that a document and a command line can have a name.
///
/// # Errors
/// If they cannot.
fn check_name(name: &str) -> Result<(), DeviceError> {
    if Name::Any.takes(name) {
        return Ok(());
    }
    let text = "the name of an interface has 1 to 63 bytes, without blanks, quotes, braces, `|', \
                `#', backslashes and control characters";
    Err(DeviceError::Failed(format!("{}: {text}", name.escape_debug())))
}

/// Ends the reservation of an index.
///
/// # Errors
/// If none is reserved for this name.
pub fn release_index(c: &mut Control, name: &str) -> Result<(), DeviceError> {
    let all = c.state::<Interfaces>();
    match all.borrow_mut().indices.release(name) {
        true => Ok(()),
        false => Err(DeviceError::Failed(format!("no index is reserved for `{name}'"))),
    }
}

/// Reserves an index for the next interface of this name, so that it keeps the same index.
///
/// # Errors
/// If the interface exists, or the index is in use or out of range.
pub fn reserve_index(c: &mut Control, name: &str, sw_if: SwIfIndex) -> Result<(), DeviceError> {
    check_name(name)?;
    let all = c.state::<Interfaces>();
    let mut all = all.borrow_mut();
    if let Ok(there) = all.find(name) {
        let text = format!("interface `{name}` already exists; its index is {there}");
        return Err(DeviceError::Failed(text));
    }
    let (max, found) = (MAX_INTERFACES as u64 - 1, u64::from(sw_if.get()));
    if found == 0 || found > max {
        return Err(DeviceError::Range { what: "index", min: 1, max, found });
    }
    let holder = all.indices.holder(sw_if.get()).filter(|holder| *holder != name);
    if let Some(holder) = all.get(sw_if).map(|v| v.name.as_str()).or(holder) {
        return Err(DeviceError::Failed(format!("index {sw_if} belongs to `{holder}`")));
    }
    all.indices.reserve(name, sw_if.get());
    Ok(())
}

/// Returns the lowest free instance number of interfaces with this prefix (`loop`).
pub(crate) fn next_instance(c: &Control, prefix: &'static str) -> Option<u32> {
    let all = c.state::<Interfaces>();
    all.borrow_mut().instances(prefix).next("")
}

/// Notes that an instance exists.
pub(crate) fn take_instance(c: &Control, prefix: &'static str, instance: u32) {
    c.state::<Interfaces>().borrow_mut().instances(prefix).take("", SwIfIndex(instance).get());
}

/// Notes that an instance was deleted.
pub(crate) fn free_instance(c: &Control, prefix: &'static str, instance: u32) {
    c.state::<Interfaces>().borrow_mut().instances(prefix).give_back(SwIfIndex(instance).get());
}

/// Registers the node of frames received on interfaces of a mode: of any value of this mode. To be
/// called from the `ready` of the feature that switches interfaces to it.
pub fn register_mode(c: &Control, mode: Mode, node: &str) {
    let all = c.state::<Interfaces>();
    all.borrow_mut().mode_inputs[mode.place()] = c.node(node);
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

/// Creates an interface: its nodes, its place on the arcs, its row in the table. `tx` builds the
/// transmit node of each worker.
///
/// # Errors
/// If the name is in use or the table is full; nothing has changed then.
pub fn create(
    c: &mut Control,
    spec: InterfaceSpec,
    tx: impl FnMut(SwIfIndex, usize) -> Built,
) -> Result<SwIfIndex, DeviceError> {
    let all = c.state::<Interfaces>();
    let sw_if = {
        let a = all.borrow();
        if a.by_name.contains_key(&spec.name) {
            return Err(DeviceError::Exists(spec.name));
        }
        check_name(&spec.name)?;
        if spec.mac != MacAddr([0; 6]) {
            check_mac(spec.mac)?;
        }
        a.indices.next(&spec.name).ok_or(DeviceError::Full)?
    };
    let (output, tx) = add_nodes(c, SwIfIndex(sw_if), &spec, tx)?;
    let view = InterfaceView {
        sw_if: SwIfIndex(sw_if),
        name: spec.name.clone(),
        kind: spec.device.kind(),
        dev_type: spec.device.dev_type(),
        mac: spec.mac,
        secondary_macs: Arc::default(),
        admin_up: false,
        link_up: spec.link_up,
        state_since: clock::ticks(),
        link_mtu: spec.mtu,
        mtu: Mtu { l3: spec.mtu, ..Mtu::default() },
        speed_kbps: spec.speed_kbps,
        promiscuous: false,
        caps: spec.caps,
        output,
        ethernet: !spec.mac.is_zero(),
        tag: String::new(),
        mode: Mode::Routed,
        parent: None,
        sub: None,
        tags: Tags::NONE,
        rewrite: TagRewrite::NONE,
    };
    let can_segment = {
        let mut a = all.borrow_mut();
        a.add(Interface::new(view, Rc::new(RefCell::new(spec.device)), Some(tx)));
        a.publish(c, SwIfIndex(sw_if));
        std::mem::replace(&mut a.can_segment, true)
    };
    if !can_segment {
        c.message_all(output, |_| Box::new(Scratch::new()));
    }
    c.make_interface_ready(SwIfIndex(sw_if));
    c.publish(InterfaceEvent::Created(SwIfIndex(sw_if)));
    Ok(SwIfIndex(sw_if))
}

fn add_nodes(
    c: &mut Control,
    sw_if: SwIfIndex,
    spec: &InterfaceSpec,
    mut tx: impl FnMut(SwIfIndex, usize) -> Built,
) -> Result<(NodeId, NodeId), DeviceError> {
    let failed = |e: &dyn std::fmt::Display| DeviceError::Failed(e.to_string());
    let (table, scratch) = (c.shared::<Snapshot<IfTable>>(), c.per_worker());
    let name = format!("{}-output", spec.name);
    let output = c
        .add_node(&name, &output::NODE, |_| output::build(sw_if, table.clone(), scratch))
        .map_err(|e| failed(&e))?;
    let name = format!("{}-tx", spec.name);
    let tx = c.add_node(&name, spec.tx, |w| tx(sw_if, w)).map_err(|e| failed(&e))?;
    c.set_arc_end("interface-output", sw_if, Some(tx)).map_err(|e| failed(&e))?;
    c.set_arc_end("device-input", sw_if, spec.input).map_err(|e| failed(&e))?;
    Ok((output, tx))
}
