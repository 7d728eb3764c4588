//! The registry of interfaces.
//!
//! The main thread owns it; workers read [`IfTable`], published anew on each change. Features learn
//! of changes by [`Interfaces::subscribe`].

mod set;

pub use set::{
    MTU_RANGE, accept_all, clear_counters, refresh_caps, set_admin, set_l2, set_link, set_link_mtu,
    set_mac, set_mtu, set_mtus, set_promiscuous, set_rx_mode, set_rx_placement, set_speed, set_tag,
};

use crate::output;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use thalweg_graph::stats::MAX_INTERFACES;
use thalweg_graph::{Built, Control, NodeDecl, NodeId, RxMode};
use thalweg_tables::snapshot::{self, Snapshot};

/// A MAC address.
pub type Mac = [u8; 6];
/// Index of an interface: `local0` is 0.
pub type SwIfIndex = u32;

/// Why something about an interface cannot be done.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DeviceError {
    /// No such interface.
    #[error("unknown interface `{0}`")]
    Unknown(String),
    /// The name is taken.
    #[error("interface `{0}` exists already")]
    Exists(String),
    /// The table is full.
    #[error("no room for another interface: {MAX_INTERFACES} is the limit")]
    Full,
    /// The driver cannot do that.
    #[error("interface `{name}` ({kind}): {what} is not supported")]
    Unsupported {
        /// The interface.
        name: String,
        /// Its driver.
        kind: String,
        /// What was asked for.
        what: String,
    },
    /// A value is out of range.
    #[error("{what} must be between {min} and {max}, not {found}")]
    Range {
        /// Which value.
        what: &'static str,
        /// Least legal value.
        min: u64,
        /// Greatest legal value.
        max: u64,
        /// What was given.
        found: u64,
    },
    /// The system or the driver refused.
    #[error("{0}")]
    Failed(String),
}

impl DeviceError {
    /// The number by which the binary API knows it.
    pub fn code(&self) -> i32 {
        match self {
            DeviceError::Unknown(_) => -2,
            DeviceError::Exists(_) => -81,
            DeviceError::Range { .. } => -7,
            DeviceError::Unsupported { .. } => -126,
            DeviceError::Full => -162,
            DeviceError::Failed(_) => -1,
        }
    }
}

/// What a device can do for us on transmission.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Caps {
    /// Completes partial TCP and UDP checksums.
    pub tx_csum: bool,
    /// Cuts TCP super-packets into segments.
    pub tx_tso: bool,
    /// Cuts UDP super-packets into datagrams.
    pub tx_uso: bool,
}

/// One receive queue, as `show interface rx-placement` lists it.
#[derive(Clone, Debug)]
pub struct RxQueue {
    /// Its number.
    pub queue: u32,
    /// The worker that polls it, from 0.
    pub worker: usize,
    /// The input node.
    pub node: String,
    /// How it is waited for.
    pub mode: RxMode,
    /// True if the user chose the worker.
    pub pinned: bool,
}

/// A driver's side of one interface, on the main thread.
pub trait Device: 'static {
    /// Device type as VPP's clients know it: `af-packet`, `pg`, `Loopback` …
    fn dev_type(&self) -> &'static str;
    /// Starts or stops the flow of packets.
    ///
    /// # Errors
    /// If the system refuses.
    fn set_admin(
        &mut self,
        _c: &mut Control,
        _sw_if: SwIfIndex,
        _up: bool,
    ) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Receives frames for any MAC address, or no longer.
    ///
    /// # Errors
    /// If the system refuses.
    fn set_promiscuous(&mut self, _c: &mut Control, _on: bool) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Takes another MAC address. False if the driver cannot.
    ///
    /// # Errors
    /// If the system refuses.
    fn set_mac(&mut self, _c: &mut Control, _mac: Mac) -> Result<bool, DeviceError> {
        Ok(false)
    }
    /// Takes another maximum frame size (without Ethernet header). False if the driver cannot.
    ///
    /// # Errors
    /// If the system refuses.
    fn set_mtu(&mut self, _c: &mut Control, _mtu: u32) -> Result<bool, DeviceError> {
        Ok(true)
    }
    /// Lines below the interface's heading in `show hardware-interfaces`.
    fn hardware(&self, _c: &Control, _verbose: bool) -> Vec<String> {
        Vec::new()
    }
    /// The same for machines.
    fn hardware_json(&self, _c: &Control) -> serde_json::Value {
        serde_json::Value::Null
    }
    /// Its receive queues.
    fn rx_queues(&self) -> Vec<RxQueue> {
        Vec::new()
    }
    /// How many transmit queues it has, if it has any: the first is the first worker's alone, and so on.
    fn tx_queues(&self) -> u32 {
        0
    }
    /// Switches an option of the driver.
    ///
    /// # Errors
    /// If the driver has no such option or the system refuses.
    fn set_option(&mut self, option: &str, _on: bool) -> Result<(), DeviceError> {
        Err(DeviceError::Failed(format!("{}: no option `{option}`", self.dev_type())))
    }
    /// Sets how a receive queue (`None`: each) is waited for; called with a queue that
    /// [`Device::rx_queues`] lists.
    ///
    /// # Errors
    /// If the driver knows one mode only.
    fn set_rx_mode(
        &mut self,
        _c: &mut Control,
        _sw_if: SwIfIndex,
        _queue: Option<u32>,
        _mode: RxMode,
    ) -> Result<(), DeviceError> {
        Err(DeviceError::Failed(format!("{}: the mode is fixed", self.dev_type())))
    }
    /// Gives a receive queue to a worker (`None`: to the one with the fewest); called with a queue
    /// that [`Device::rx_queues`] lists and a worker that is there.
    ///
    /// # Errors
    /// If the driver's queues stay where they are, or a worker does not answer.
    fn set_rx_placement(
        &mut self,
        _c: &mut Control,
        _sw_if: SwIfIndex,
        _queue: u32,
        _worker: Option<usize>,
    ) -> Result<(), DeviceError> {
        Err(DeviceError::Failed(format!("{}: queues do not move", self.dev_type())))
    }
    /// What the device does for us now, if that can change while it is in use.
    fn caps(&self) -> Option<Caps> {
        None
    }
    /// Called now and then: tell workers, who own the counters, what the device has lost.
    fn poll_missed(&mut self, _c: &mut Control, _sw_if: SwIfIndex) {}
    /// Stops everything; the interface is about to go.
    fn delete(&mut self, _c: &mut Control, _sw_if: SwIfIndex) {}
}

/// What a driver says of an interface that it creates.
pub struct InterfaceSpec {
    /// `host-eth0`, `pg0`, `loop3` …
    pub name: String,
    /// MAC address; all zero if the interface is no Ethernet.
    pub mac: Mac,
    /// Largest packet behind the Ethernet header in bytes.
    pub mtu: u32,
    /// Speed in kbit/s, 0 if unknown.
    pub speed_kbps: u32,
    /// True if the link is up from the start.
    pub link_up: bool,
    /// What the device does for us.
    pub caps: Caps,
    /// The driver's side.
    pub device: Box<dyn Device>,
    /// Declaration of the node that transmits.
    pub tx: &'static NodeDecl,
    /// Where received frames go if no feature says otherwise; `None`: `ethernet-input`.
    pub input: Option<NodeId>,
}

/// What happened to an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterfaceEvent {
    /// It exists.
    Created(SwIfIndex),
    /// It is about to go.
    Deleted(SwIfIndex),
    /// Its administrative state, its link or the speed of that changed.
    State(SwIfIndex),
    /// Its MAC address changed.
    Mac(SwIfIndex),
    /// Its MTU changed.
    Mtu(SwIfIndex),
}

/// An interface as `show` commands and features see it.
#[derive(Clone, Debug)]
pub struct InterfaceView {
    /// Its index.
    pub sw_if: SwIfIndex,
    /// Its name.
    pub name: String,
    /// Device type.
    pub dev_type: &'static str,
    /// MAC address.
    pub mac: Mac,
    /// Administratively up.
    pub admin_up: bool,
    /// The link is up.
    pub link_up: bool,
    /// Largest packet of the device.
    pub link_mtu: u32,
    /// L3, IPv4, IPv6, MPLS; 0 in the last three means "as L3".
    pub mtu: [u32; 4],
    /// Speed in kbit/s, 0 if unknown.
    pub speed_kbps: u32,
    /// Takes frames for any MAC address.
    pub promiscuous: bool,
    /// What the device does for us.
    pub caps: Caps,
    /// The node in front of its device.
    pub output: NodeId,
    /// Carries Ethernet frames.
    pub ethernet: bool,
    /// What its owner has labelled it with, such as the program that manages it; may be empty.
    pub tag: String,
    /// How it takes part in layer 2, as a feature says it: `xconnect host-b`.
    pub l2: Option<String>,
}

impl InterfaceView {
    /// Largest IPv4 packet.
    pub fn ip4_mtu(&self) -> u32 {
        if self.mtu[1] != 0 { self.mtu[1] } else { self.mtu[0] }
    }
    /// Up, and its link too.
    pub fn is_up(&self) -> bool {
        self.admin_up && self.link_up
    }
}

/// What workers know of an interface.
#[derive(Clone, Debug, Default)]
pub struct IfRow {
    /// The interface exists.
    pub present: bool,
    /// Administratively up.
    pub admin_up: bool,
    /// Takes frames for any MAC address (bridged, or told so).
    pub accept_all: bool,
    /// MAC address.
    pub mac: Mac,
    /// The node in front of its device.
    pub output: NodeId,
    /// What the device does for us.
    pub caps: Caps,
}

/// All interfaces as workers read them.
#[derive(Clone, Debug, Default)]
pub struct IfTable {
    rows: Vec<IfRow>,
}

impl IfTable {
    /// An interface's row; an empty one if there is none.
    #[inline]
    pub fn get(&self, sw_if: SwIfIndex) -> &IfRow {
        static NONE: IfRow = IfRow {
            present: false,
            admin_up: false,
            accept_all: false,
            mac: [0; 6],
            output: NodeId(0),
            caps: Caps { tx_csum: false, tx_tso: false, tx_uso: false },
        };
        self.rows.get(sw_if as usize).unwrap_or(&NONE)
    }
}

struct Interface {
    view: InterfaceView,
    accept_all: u32,
    device: Rc<RefCell<Box<dyn Device>>>,
    tx: Option<NodeId>,
}

type Subscriber = Rc<dyn Fn(&mut Control, InterfaceEvent)>;

/// The main thread's registry.
pub struct Interfaces {
    list: Vec<Option<Interface>>,
    by_name: HashMap<String, SwIfIndex>,
    writer: snapshot::Writer<IfTable>,
    /// Indices that interfaces to come shall have.
    reserved: BTreeMap<String, SwIfIndex>,
    subscribers: Vec<Subscriber>,
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
            writer,
            reserved: BTreeMap::new(),
            subscribers: Vec::new(),
            describers: Vec::new(),
        });
        c.set_namer(crate::namer);
        c.state::<Interfaces>().borrow_mut().add_local0();
    }

    /// `local0`, which is what packets of the router's own come from.
    fn add_local0(&mut self) {
        let view = InterfaceView {
            sw_if: 0,
            name: "local0".into(),
            dev_type: "local",
            mac: [0; 6],
            admin_up: false,
            link_up: false,
            link_mtu: 0,
            mtu: [0; 4],
            speed_kbps: 0,
            promiscuous: false,
            caps: Caps::default(),
            output: NodeId(0),
            ethernet: false,
            tag: String::new(),
            l2: None,
        };
        let device: Box<dyn Device> = Box::new(Local);
        self.by_name.insert("local0".into(), 0);
        self.list.push(Some(Interface {
            view,
            accept_all: 0,
            device: Rc::new(RefCell::new(device)),
            tx: None,
        }));
    }

    /// The table that workers read, from a node's build function.
    pub fn table(cx: &thalweg_graph::BuildCx<'_>) -> Arc<Snapshot<IfTable>> {
        cx.shared::<Snapshot<IfTable>>()
    }

    /// An interface by index.
    pub fn get(&self, sw_if: SwIfIndex) -> Option<&InterfaceView> {
        self.list.get(sw_if as usize)?.as_ref().map(|i| &i.view)
    }

    /// An interface by name.
    ///
    /// # Errors
    /// [`DeviceError::Unknown`].
    pub fn find(&self, name: &str) -> Result<SwIfIndex, DeviceError> {
        self.by_name.get(name).copied().ok_or_else(|| DeviceError::Unknown(name.into()))
    }

    /// All interfaces by index.
    pub fn iter(&self) -> impl Iterator<Item = &InterfaceView> {
        self.list.iter().flatten().map(|i| &i.view)
    }

    /// The driver's side of an interface.
    pub fn device(&self, sw_if: SwIfIndex) -> Option<Rc<RefCell<Box<dyn Device>>>> {
        Some(self.list.get(sw_if as usize)?.as_ref()?.device.clone())
    }

    /// Calls `f` on each change, on the main thread.
    pub fn subscribe(&mut self, f: impl Fn(&mut Control, InterfaceEvent) + 'static) {
        self.subscribers.push(Rc::new(f));
    }

    /// Adds lines to what `show interface address` says of an interface (addresses, layer 2).
    pub fn describe_addresses(&mut self, f: impl Fn(&Control, SwIfIndex) -> Vec<String> + 'static) {
        self.describers.push(Rc::new(f));
    }

    /// The index that a new interface gets: that which was reserved for its name, else the lowest
    /// that is free and nobody else's.
    fn free(&self, name: &str) -> Option<SwIfIndex> {
        let is_free = |i: SwIfIndex| self.get(i).is_none();
        let own = self.reserved.get(name).copied().filter(|i| is_free(*i));
        let mut all = (0..MAX_INTERFACES as SwIfIndex).filter(|i| is_free(*i));
        let others = |i: &SwIfIndex| self.reserved.values().any(|r| r == i);
        own.or_else(|| all.clone().find(|i| !others(i))).or_else(|| all.next())
    }

    fn row(&mut self, sw_if: SwIfIndex) -> Result<&mut Interface, DeviceError> {
        let found = self.list.get_mut(sw_if as usize).and_then(Option::as_mut);
        found.ok_or_else(|| DeviceError::Unknown(format!("index {sw_if}")))
    }

    fn publish(&mut self, c: &Control) {
        let rows = self.list.iter().map(|i| match i {
            None => IfRow::default(),
            Some(i) => IfRow {
                present: true,
                admin_up: i.view.admin_up,
                accept_all: i.view.promiscuous || i.accept_all > 0,
                mac: i.view.mac,
                output: i.view.output,
                caps: i.view.caps,
            },
        });
        let table = IfTable { rows: rows.collect() };
        self.writer.publish(c.domain(), table);
    }
}

struct Local;
impl Device for Local {
    fn dev_type(&self) -> &'static str {
        "local"
    }
    fn set_mtu(&mut self, _c: &mut Control, _mtu: u32) -> Result<bool, DeviceError> {
        Ok(false)
    }
}

/// What `show interface address` says of an interface.
pub fn addresses(c: &Control, sw_if: SwIfIndex) -> Vec<String> {
    let describers = c.state::<Interfaces>().borrow().describers.clone();
    describers.iter().flat_map(|d| d(c, sw_if)).collect()
}

/// Finds an interface and copies what there is to know of it.
///
/// # Errors
/// [`DeviceError::Unknown`].
pub fn view(c: &Control, sw_if: SwIfIndex) -> Result<InterfaceView, DeviceError> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    all.get(sw_if).cloned().ok_or_else(|| DeviceError::Unknown(format!("index {sw_if}")))
}

/// An interface's index by name.
///
/// # Errors
/// [`DeviceError::Unknown`].
pub fn find(c: &Control, name: &str) -> Result<SwIfIndex, DeviceError> {
    c.state::<Interfaces>().borrow().find(name)
}

/// Gives the next interface of a name an index of its own, so that it is known by the same number
/// as before.
///
/// # Errors
/// If there is such an interface, or the index is taken or out of range.
pub fn reserve_index(c: &mut Control, name: &str, sw_if: SwIfIndex) -> Result<(), DeviceError> {
    let all = c.state::<Interfaces>();
    let mut all = all.borrow_mut();
    if let Ok(there) = all.find(name) {
        let text = format!("interface `{name}` exists already; its index is {there}");
        return Err(DeviceError::Failed(text));
    }
    let (max, found) = (MAX_INTERFACES as u64 - 1, u64::from(sw_if));
    if found == 0 || found > max {
        return Err(DeviceError::Range { what: "index", min: 1, max, found });
    }
    let holder = all.reserved.iter().find(|(n, i)| **i == sw_if && *n != name).map(|(n, _)| n);
    if let Some(holder) = all.get(sw_if).map(|v| &v.name).or(holder) {
        return Err(DeviceError::Failed(format!("index {sw_if} is that of `{holder}`")));
    }
    all.reserved.insert(name.to_owned(), sw_if);
    Ok(())
}

fn notify(c: &mut Control, event: InterfaceEvent) {
    let subscribers = c.state::<Interfaces>().borrow().subscribers.clone();
    for s in subscribers {
        s(c, event);
    }
}

/// Creates an interface: its nodes, its place on the arcs, its row in the table. `tx` makes the
/// transmitting node for each worker.
///
/// # Errors
/// If the name is taken or the table full; nothing is left behind then.
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
        a.free(&spec.name).ok_or(DeviceError::Full)?
    };
    let (output, tx) = add_nodes(c, sw_if, &spec, tx)?;
    let view = InterfaceView {
        sw_if,
        name: spec.name.clone(),
        dev_type: spec.device.dev_type(),
        mac: spec.mac,
        admin_up: false,
        link_up: spec.link_up,
        link_mtu: spec.mtu,
        mtu: [spec.mtu, 0, 0, 0],
        speed_kbps: spec.speed_kbps,
        promiscuous: false,
        caps: spec.caps,
        output,
        ethernet: spec.mac != [0; 6],
        tag: String::new(),
        l2: None,
    };
    {
        let mut a = all.borrow_mut();
        let row = Interface {
            view,
            accept_all: 0,
            device: Rc::new(RefCell::new(spec.device)),
            tx: Some(tx),
        };
        let end = a.list.len().max(sw_if as usize + 1);
        a.list.resize_with(end, || None);
        a.list[sw_if as usize] = Some(row);
        a.reserved.remove(&spec.name);
        a.by_name.insert(spec.name, sw_if);
        a.publish(c);
    }
    notify(c, InterfaceEvent::Created(sw_if));
    Ok(sw_if)
}

fn add_nodes(
    c: &mut Control,
    sw_if: SwIfIndex,
    spec: &InterfaceSpec,
    mut tx: impl FnMut(SwIfIndex, usize) -> Built,
) -> Result<(NodeId, NodeId), DeviceError> {
    let failed = |e: &dyn std::fmt::Display| DeviceError::Failed(e.to_string());
    let table = c.shared::<Snapshot<IfTable>>();
    let name = format!("{}-output", spec.name);
    let output = c
        .add_node(&name, &output::NODE, |_| output::build(sw_if, table.clone()))
        .map_err(|e| failed(&e))?;
    let name = format!("{}-tx", spec.name);
    let tx = c.add_node(&name, spec.tx, |w| tx(sw_if, w)).map_err(|e| failed(&e))?;
    c.set_arc_end("interface-output", sw_if, Some(tx)).map_err(|e| failed(&e))?;
    c.set_arc_end("device-input", sw_if, spec.input).map_err(|e| failed(&e))?;
    Ok((output, tx))
}

/// Deletes an interface: down, events, then its nodes and rows.
///
/// # Errors
/// If there is no such interface, or it is `local0`.
pub fn delete(c: &mut Control, sw_if: SwIfIndex) -> Result<(), DeviceError> {
    let v = view(c, sw_if)?;
    if sw_if == 0 {
        return Err(DeviceError::Failed("local0 cannot be deleted".into()));
    }
    let _ = set_admin(c, sw_if, false);
    notify(c, InterfaceEvent::Deleted(sw_if));
    let all = c.state::<Interfaces>();
    let gone = {
        let mut a = all.borrow_mut();
        let gone = a.list[sw_if as usize].take();
        a.by_name.remove(&v.name);
        a.publish(c);
        gone
    };
    if let Some(i) = gone {
        i.device.borrow_mut().delete(c, sw_if);
        c.remove_interface(sw_if);
        c.remove_node(i.view.output);
        if let Some(tx) = i.tx {
            c.remove_node(tx);
        }
    }
    Ok(())
}
