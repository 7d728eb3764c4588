//! TAPs on the main thread.

use crate::Error;
use crate::config::{Flags, MAX_ID, TapConfig};
use crate::host::{Host, Places};
use crate::nodes::tap_input::{self, Queue, ToInput, scratch};
use crate::nodes::{tap_tx, tun_input};
use crate::store::Store;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use thalweg_device::queues::{Queues, count_missed};
use thalweg_device::{
    Caps, Device, DeviceError, InterfaceSpec, MacAddr, RxQueue, SwIfIndex, SystemDevice, Transmit,
    interface,
};
use thalweg_device_linux::follow::{self, LinkBy};
use thalweg_device_linux::{Framing, IfInfo, Namespace, NamespaceError, default_mac};
use thalweg_engine::{Absent, absent};
use thalweg_graph::{Control, FileInfo, NodeId, RxMode};
use thalweg_netlink::Port;

/// Device type: VPP's clients know TAPs by this one.
pub(crate) const DEV_TYPE: &str = "virtio";
/// Interval of looking for devices and namespaces that went away.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// TAPs whose losses are asked for at a time, each by a request to the kernel.
const ASKED_AT_ONCE: usize = 64;

/// All TAPs.
#[derive(Default)]
pub(crate) struct Taps(BTreeMap<SwIfIndex, Rc<Tap>>);

impl Taps {
    /// Returns all, by index.
    pub(crate) fn all(c: &Control) -> Vec<(SwIfIndex, Rc<Tap>)> {
        c.state::<Taps>().borrow().0.iter().map(|(i, t)| (*i, t.clone())).collect()
    }

    /// Returns one.
    pub(crate) fn get(c: &Control, sw_if: SwIfIndex) -> Option<Rc<Tap>> {
        c.state::<Taps>().borrow().0.get(&sw_if).cloned()
    }
}

/// One TAP.
pub(crate) struct Tap {
    /// Name of the interface.
    pub(crate) name: String,
    /// Number.
    pub(crate) id: u32,
    /// The options that it was made by, with the name of the device.
    pub(crate) config: TapConfig,
    /// The device, as of now, or as it was when it went away.
    pub(crate) info: RefCell<IfInfo>,
    /// None while there is no device.
    host: RefCell<Option<Host>>,
    /// Longest packet that is sent, as the workers know it.
    mtu: Arc<AtomicU32>,
    /// MTU set by the user, which the device's limits when that changes.
    wanted_mtu: Cell<Option<u32>>,
    rx: Queues,
    /// Frames dropped by the kernel that are accounted for.
    missed: Cell<u64>,
    /// The interface is up: what the kernel drops is a loss.
    is_up: Cell<bool>,
    /// Carrier of the device while the interface is up.
    carrier: Cell<bool>,
    /// Index of the device that says a speed, and that in Mbit/s.
    speed: Cell<(u32, u32)>,
    /// Times that losses were not asked for, as there are many TAPs.
    unasked: Cell<usize>,
    /// Reason why the device is missing, as it was last reported.
    trouble: RefCell<String>,
    input: NodeId,
}

/// Driver of one TAP.
struct TapDevice(Rc<Tap>);

pub(crate) fn init(c: &mut Control) {
    c.insert(Taps::default());
    c.insert(Places::default());
    Store::begin(c);
    let files = |c: &Control| Taps::all(c).iter().flat_map(|(_, tap)| tap.files()).collect();
    c.describe_files(files);
    follow::init(c);
    tun_input::init(c);
}

pub(crate) fn ready(c: &mut Control) {
    tun_input::ready(c);
    c.every(LOOK_EVERY, |c| {
        for (sw_if, tap) in Taps::all(c) {
            tap.look_after(c, sw_if);
        }
        true
    });
}

/// Opens a device, by the name of before if it was there before.
fn open(c: &Control, config: &TapConfig, name: Option<&str>) -> Result<Host, Error> {
    let (places, store) = (c.state::<Places>(), c.state::<Store>());
    Host::open(&mut places.borrow_mut(), &mut store.borrow_mut(), config, name)
}

/// Reports the thing that a TAP lacks, so that the TAP is made when it comes.
fn say_absent(c: &mut Control, config: &TapConfig, e: &Error) {
    let namespace = config.host.namespace.clone();
    match (e, namespace) {
        (
            Error::Namespace(NamespaceError::Unknown { path, .. } | NamespaceError::NotOne(path)),
            Some(name),
        ) => absent(c, Absent::Namespace(name, path.clone())),
        (Error::NoDevice(name) | Error::NoBridge { bridge: name, .. }, None) => {
            follow::expect(c, name);
        }
        (Error::NoDevice(name) | Error::NoBridge { bridge: name, .. }, Some(_)) => {
            absent(c, Absent::Device(name.clone()));
        }
        _ => {}
    }
}

/// Returns the number of a new TAP.
fn new_id(c: &Control, wanted: Option<u32>, least: u32) -> Option<u32> {
    let taps = c.state::<Taps>();
    let taps = taps.borrow();
    let used: std::collections::BTreeSet<u32> = taps.0.values().map(|t| t.id).collect();
    match wanted {
        Some(id) => (!used.contains(&id)).then_some(id),
        None => (least..=MAX_ID).find(|id| !used.contains(id)),
    }
}

/// Returns number and name of a new TAP.
fn naming(c: &Control, config: &TapConfig) -> Result<(u32, String), Error> {
    let kind = if config.framing() == Framing::Ip { "tun" } else { "tap" };
    let taken = || Error::IdTaken(format!("{kind}{}", config.id.unwrap_or_default()));
    let id = match new_id(c, config.id, config.least_id) {
        Some(id) => id,
        None if config.id.is_some() => return Err(taken()),
        None => return Err(DeviceError::Full.into()),
    };
    let name = config.if_name.clone().unwrap_or_else(|| format!("{kind}{id}"));
    match interface::find(c, &name) {
        Ok(_) => Err(Error::IdTaken(name)),
        Err(_) => Ok((id, name)),
    }
}

/// Creates `tap<id>`, or `tun<id>`, and its device.
///
/// # Errors
/// If an option is out of range, the number or a name is in use, the namespace, driver or
/// privileges are missing, or the kernel refuses a setting. Nothing has changed then.
pub fn create(c: &mut Control, mut config: TapConfig) -> Result<SwIfIndex, Error> {
    config.check()?;
    if let Some(mac) = config.mac {
        interface::check_mac(mac)?;
    }
    let (id, name) = naming(c, &config)?;
    let framing = config.framing();
    let node = |name: &str| {
        let missing = || DeviceError::Failed(format!("{name} is not in the graph"));
        c.node(name).ok_or_else(missing)
    };
    let input = node(tap_input::NODE.name)?;
    let first = match framing {
        Framing::Ethernet => None,
        Framing::Ip => Some(node(tun_input::NODE.name)?),
    };
    let host = match open(c, &config, None) {
        Ok(host) => host,
        Err(e) => {
            say_absent(c, &config, &e);
            return Err(e);
        }
    };
    let info = host.info.clone();
    config.host.name = Some(info.name.clone());
    let mac = match framing {
        Framing::Ethernet => config.mac.unwrap_or_else(|| default_mac(info.mac)),
        Framing::Ip => MacAddr::ZERO,
    };
    let rx = Queues::place(c, tap_input::NODE.name, u32::from(config.rx_queues));
    let tap = Rc::new(Tap {
        name: name.clone(),
        id,
        missed: Cell::new(info.tx_dropped),
        mtu: Arc::new(AtomicU32::new(info.mtu)),
        config,
        info: RefCell::new(info.clone()),
        host: RefCell::new(Some(host)),
        wanted_mtu: Cell::new(None),
        rx,
        is_up: Cell::new(false),
        carrier: Cell::new(true),
        speed: Cell::default(),
        unasked: Cell::new(0),
        trouble: RefCell::default(),
        input,
    });
    let made = make_interface(c, &tap, mac, first).inspect_err(|_| {
        if let Some(host) = tap.host.take() {
            host.undo();
        }
    });
    let sw_if = made?;
    c.state::<Taps>().borrow_mut().0.insert(sw_if, tap.clone());
    tap.poll_by(c, sw_if);
    count_missed(c, sw_if, true);
    tap.follow(c, sw_if);
    Ok(sw_if)
}

fn make_interface(
    c: &mut Control,
    tap: &Rc<Tap>,
    mac: MacAddr,
    input: Option<NodeId>,
) -> Result<SwIfIndex, Error> {
    let info = tap.info.borrow().clone();
    let spec = InterfaceSpec {
        name: tap.name.clone(),
        mac,
        mtu: info.mtu,
        speed_kbps: 0,
        link_up: info.is_up(),
        caps: tap.capabilities(),
        device: Box::new(TapDevice(tap.clone())),
        input,
    };
    let joins = tap.config.flags.has(Flags::GRO_COALESCE);
    let framing = tap.config.framing();
    let mut build = |sw_if, worker| {
        let queue = tap.sender(worker);
        tap_tx::build(sw_if, framing, joins, queue, tap.mtu.clone())
    };
    let made = interface::create(c, spec, Transmit::Own(&tap_tx::NODE, &mut build));
    Ok(made.inspect_err(|_| tap.rx.release(c))?)
}

/// Deletes a TAP, and its device unless that is persistent.
///
/// # Errors
/// If there is no such interface, or it is none.
pub fn delete(c: &mut Control, sw_if: SwIfIndex) -> Result<(), DeviceError> {
    let name = interface::view(c, sw_if)?.name;
    let Some(tap) = Taps::get(c, sw_if) else {
        return Err(DeviceError::Failed(format!("`{name}' is not a tap interface")));
    };
    match &tap.config.owner {
        Some(owner) => Err(DeviceError::Failed(format!("`{name}' belongs to {owner}"))),
        None => interface::delete(c, sw_if),
    }
}

/// The event that the kernel's end of a TAP went away, or is there again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostChanged(pub SwIfIndex);

/// The kernel's end of a TAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostView {
    /// Name of the device.
    pub name: String,
    /// Its index in its namespace.
    pub ifindex: u32,
    /// True if the device is gone: name and index are those that it had.
    pub is_away: bool,
    /// True if the device was there before this router.
    pub was_there: bool,
}

/// Returns the kernel's end of a TAP; `None` if the interface is none.
pub fn host(c: &Control, sw_if: SwIfIndex) -> Option<HostView> {
    let tap = Taps::get(c, sw_if)?;
    let info = tap.info.borrow();
    let (name, ifindex) = (info.name.clone(), info.ifindex);
    let was_there = tap.host.borrow().as_ref().is_some_and(Host::was_there);
    Some(HostView { name, ifindex, is_away: tap.is_away(), was_there })
}

/// Returns where the kernel's end of a TAP is: its namespace, unless that is the router's own, and
/// its index there. `None` if there is no such device now.
pub fn place(c: &Control, sw_if: SwIfIndex) -> Option<(Option<Namespace>, u32)> {
    let tap = Taps::get(c, sw_if)?;
    let host = tap.host.borrow();
    let host = host.as_ref()?;
    // Without a descriptor left, the device cannot be watched.
    let namespace = host.namespace().map(Namespace::try_clone).transpose().ok()?;
    Some((namespace, host.info.ifindex))
}

/// Gives the kernel's end of a TAP a carrier, or takes it away, for as long as the interface is up;
/// without one it has none in any case.
///
/// # Errors
/// If the interface is no TAP, or the kernel refuses.
pub fn set_carrier(c: &Control, sw_if: SwIfIndex, on: bool) -> Result<(), DeviceError> {
    let Some(tap) = Taps::get(c, sw_if) else {
        let name = c.interface_name(sw_if);
        return Err(DeviceError::Failed(format!("`{name}' is not a tap interface")));
    };
    tap.carrier.set(on);
    if tap.is_up.get() { tap.set_carrier(on) } else { Ok(()) }
}

/// Has the kernel's device say a speed in Mbit/s, by which routing daemons reckon costs: its driver
/// knows none. Nothing is done if it says that already, or the kernel does not let it.
pub fn set_speed(c: &Control, sw_if: SwIfIndex, mbits: u32) {
    let Some(tap) = Taps::get(c, sw_if) else { return };
    let host = tap.host.borrow();
    let Some(host) = host.as_ref() else { return };
    let ifindex = host.info.ifindex;
    if tap.speed.replace((ifindex, mbits)) == (ifindex, mbits) {
        return;
    }
    let set = || thalweg_netlink::ethtool::set_speed(ifindex, mbits);
    let done = match host.namespace() {
        Some(namespace) => namespace.run(set).map_err(|e| e.to_string()),
        None => Ok(set()),
    };
    if let Err(e) = done.and_then(|done| done.map_err(|e| e.to_string())) {
        tracing::debug!("{}: the device does not say its speed: {e}", tap.name);
    }
}

/// Makes requests to the kernel about the other end of a TAP, in its namespace; `None` without such
/// a device. The job gets a port and the device's index.
pub fn ask_host<T>(c: &Control, sw_if: SwIfIndex, job: impl FnOnce(&Port, u32) -> T) -> Option<T> {
    let tap = Taps::get(c, sw_if)?;
    let host = tap.host.borrow();
    let host = host.as_ref()?;
    Some(job(host.port(), host.info.ifindex))
}

impl Tap {
    /// Offloads available on transmit.
    fn capabilities(&self) -> Caps {
        let flags = self.config.flags;
        let gso = flags.has(Flags::GSO);
        let splits_udp = self.host.borrow().as_ref().is_some_and(|h| h.splits_udp);
        Caps {
            tx_csum: gso || flags.has(Flags::CSUM_OFFLOAD),
            tx_tso: gso,
            tx_uso: gso && splits_udp,
        }
    }

    /// Returns whether there is no device.
    pub(crate) fn is_away(&self) -> bool {
        self.host.borrow().is_none()
    }

    /// Descriptors of all queues.
    pub(crate) fn descriptors(&self) -> Vec<i32> {
        let host = self.host.borrow();
        let queues = host.iter().flat_map(|h| &h.queues);
        queues.map(|q| q.as_fd().as_raw_fd()).collect()
    }

    fn files(&self) -> Vec<FileInfo> {
        let describe = |(i, fd): (usize, i32)| FileInfo {
            fd,
            thread: 1 + self.rx.get(i as u32).map_or(i, |q| q.worker),
            description: format!("{} queue {i}", self.name),
            counts: None,
        };
        self.descriptors().into_iter().enumerate().map(describe).collect()
    }

    /// The queue by which a worker sends: the kernel takes frames from any thread, and has the
    /// answers of a flow come by the queue that it was sent by.
    fn sender(&self, worker: usize) -> Option<Arc<crate::sys::Tun>> {
        let host = self.host.borrow();
        let queues = &host.as_ref()?.queues;
        queues.get(worker % queues.len()).cloned()
    }

    /// Makes workers poll the queues.
    fn poll_by(&self, c: &mut Control, sw_if: SwIfIndex) {
        let queues: Vec<_> = self.host.borrow().iter().flat_map(|h| h.queues.clone()).collect();
        for (tun, q) in queues.into_iter().zip(self.rx.all()) {
            let queue = Box::new(Queue {
                sw_if,
                queue: q.queue,
                framing: self.config.framing(),
                tun,
                up: false,
                mode: q.mode,
                long: false,
            });
            let add = ToInput::Add { queue, scratch: scratch() };
            c.message(q.worker, self.input, Box::new(add));
        }
    }

    /// Makes workers send by the queues, or by none.
    fn send_by(&self, c: &mut Control, sw_if: SwIfIndex) {
        let Some(node) = interface::transmit_node(c, sw_if) else { return };
        for worker in 0..c.workers() {
            c.message(worker, node, Box::new(tap_tx::ToTx(self.sender(worker))));
        }
    }

    fn follow(&self, c: &mut Control, sw_if: SwIfIndex) {
        let host = self.host.borrow();
        let Some(host) = host.as_ref() else { return };
        follow::follow_in(c, sw_if, &host.info, host.place.namespace.as_ref(), LinkBy::Admin);
    }

    /// Returns the MTU on a device with this one.
    fn limited_mtu(&self, device: u32) -> u32 {
        self.wanted_mtu.get().map_or(device, |mtu| mtu.min(device))
    }

    /// Counts what the kernel has dropped since it was last asked.
    fn count_dropped(&self, c: &mut Control, sw_if: SwIfIndex, dropped: u64) {
        let frames = dropped.saturating_sub(self.missed.replace(dropped));
        if frames > 0
            && self.is_up.get()
            && let Some(q) = self.rx.get(0)
        {
            c.message(q.worker, self.input, Box::new(ToInput::Missed { sw_if, frames }));
        }
    }

    fn ask_dropped(&self, c: &mut Control, sw_if: SwIfIndex) {
        let now = self.host.borrow().as_ref().and_then(Host::look);
        if let Some(now) = now {
            self.count_dropped(c, sw_if, now.tx_dropped);
        }
    }

    fn set_carrier(&self, on: bool) -> Result<(), DeviceError> {
        let host = self.host.borrow();
        let Some(queue) = host.as_ref().and_then(|h| h.queues.first()) else { return Ok(()) };
        match queue.set_carrier(on) {
            // The device went away, of which the kernel's event may still be to come.
            Err(e) if e.raw_os_error() == Some(libc::EBADFD) => Ok(()),
            done => done.map_err(|e| Error::system(&self.name, "switch the carrier", e).into()),
        }
    }

    /// Takes the device away from workers, and closes it.
    fn close(&self, c: &mut Control, sw_if: SwIfIndex) {
        self.rx.notify(c, self.input, || ToInput::Remove { sw_if });
        if let Some(host) = self.host.take() {
            host.close();
        }
        self.send_by(c, sw_if);
        self.missed.set(0);
        c.publish(HostChanged(sw_if));
    }

    /// Uses a device in place of the one that went away.
    fn install(&self, c: &mut Control, sw_if: SwIfIndex, host: Host) -> Result<(), DeviceError> {
        let mtu = self.info.borrow().mtu;
        // The interface has the MTU of the device that went away, until it follows this one.
        self.info.replace(IfInfo { mtu, ..host.info.clone() });
        self.missed.set(host.info.tx_dropped);
        self.host.replace(Some(host));
        self.trouble.borrow_mut().clear();
        self.poll_by(c, sw_if);
        self.send_by(c, sw_if);
        if interface::view(c, sw_if)?.admin_up {
            self.set_admin(c, sw_if, true)?;
        }
        c.publish(HostChanged(sw_if));
        Ok(())
    }

    fn set_admin(&self, c: &mut Control, sw_if: SwIfIndex, up: bool) -> Result<(), DeviceError> {
        if !up {
            self.set_carrier(false)?;
        }
        // Drops while the interface was down are no loss.
        self.ask_dropped(c, sw_if);
        self.is_up.set(up);
        self.rx.notify(c, self.input, || ToInput::Admin { sw_if, up });
        if up { self.set_carrier(self.carrier.get()) } else { Ok(()) }
    }

    /// Leaves a namespace whose name leads to it no longer, so that it can go, and makes the device
    /// again that went away.
    fn look_after(&self, c: &mut Control, sw_if: SwIfIndex) {
        let is_left = {
            let host = self.host.borrow();
            host.as_ref()
                .and_then(|h| h.place.namespace.as_ref())
                .is_some_and(|ns| !ns.is_current())
        };
        if is_left {
            let name = self.config.host.namespace.as_deref().unwrap_or_default();
            tracing::warn!("network namespace {name} went away; {} waits for it", self.name);
            self.ask_dropped(c, sw_if);
            follow::forget(c, sw_if);
            self.close(c, sw_if);
            let _ = interface::set_link(c, sw_if, false);
            return;
        }
        if !self.is_away() {
            return;
        }
        let again = open(c, &self.config, None).map_err(DeviceError::from);
        match again {
            Ok(host) => {
                let info = host.info.clone();
                if let Err(e) = self.install(c, sw_if, host) {
                    tracing::warn!("{}: {e}", self.name);
                }
                tracing::info!("{} has its device {} again", self.name, info.name);
                self.follow(c, sw_if);
                let _ = interface::set_link(c, sw_if, info.is_up());
                if let Some(mtu) = self.changed(&described(&info)) {
                    let _ = interface::follow_link_mtu(c, sw_if, mtu);
                }
                let _ = interface::refresh_caps(c, sw_if);
            }
            Err(e) => {
                let text = e.to_string();
                if *self.trouble.borrow() != text {
                    tracing::warn!("{} is without its device: {text}", self.name);
                    self.trouble.replace(text);
                }
            }
        }
    }

    /// Follows changes of the device; returns the MTU if that has changed.
    fn changed(&self, now: &SystemDevice) -> Option<u32> {
        let mut info = self.info.borrow_mut();
        if info.name != now.name {
            tracing::info!("device {} has been renamed to {}", info.name, now.name);
            info.name.clone_from(&now.name);
        }
        info.mac = now.mac;
        if std::mem::replace(&mut info.mtu, now.mtu) == now.mtu {
            return None;
        }
        let mtu = self.limited_mtu(now.mtu);
        self.mtu.store(mtu, Ordering::Relaxed);
        Some(mtu)
    }
}

fn described(info: &IfInfo) -> SystemDevice {
    let name = info.name.clone();
    SystemDevice { name, mac: info.mac, mtu: info.mtu, tx_dropped: info.tx_dropped }
}

impl Device for TapDevice {
    fn dev_type(&self) -> &'static str {
        DEV_TYPE
    }

    fn set_admin(&self, c: &mut Control, sw_if: SwIfIndex, up: bool) -> Result<(), DeviceError> {
        self.0.set_admin(c, sw_if, up)
    }

    fn set_mac(&self, _c: &mut Control, _mac: MacAddr) -> Result<bool, DeviceError> {
        // The kernel sends all frames to the other end of the link.
        Ok(self.0.config.framing() == Framing::Ethernet)
    }

    fn set_mtu(&self, _c: &mut Control, mtu: u32) -> Result<bool, DeviceError> {
        self.0.wanted_mtu.set(Some(mtu));
        self.0.mtu.store(mtu, Ordering::Relaxed);
        Ok(true)
    }

    fn hardware(&self, _c: &Control, _verbose: bool) -> Vec<String> {
        let tap = &self.0;
        let info = tap.info.borrow();
        let mut lines = vec![format!("Linux device {} (ifindex {})", info.name, info.ifindex)];
        if tap.is_away() {
            lines.insert(0, format!("the device {} is away: {}", info.name, tap.why_away()));
        }
        if let Some(namespace) = &tap.config.host.namespace {
            lines.push(format!("network namespace {namespace}"));
        }
        let onoff = |on: bool| if on { "enabled" } else { "disabled" };
        let caps = tap.capabilities();
        lines.push(format!("gso {}, checksum offload {}", onoff(caps.tx_tso), onoff(caps.tx_csum)));
        lines
    }

    fn hardware_json(&self, _c: &Control) -> serde_json::Value {
        let tap = &self.0;
        let info = tap.info.borrow();
        serde_json::json!({
            "device": info.name,
            "away": tap.is_away(),
            "ifindex": info.ifindex,
            "namespace": tap.config.host.namespace,
            "gso": tap.capabilities().tx_tso,
            "checksum_offload": tap.capabilities().tx_csum,
        })
    }

    fn is_of_another(&self) -> bool {
        self.0.config.owner.is_some()
    }

    fn tx_queues(&self) -> u32 {
        u32::from(self.0.config.tx_queues)
    }

    fn rx_queues(&self) -> Vec<RxQueue> {
        self.0.rx.rows()
    }

    fn set_rx_mode(
        &self,
        c: &mut Control,
        sw_if: SwIfIndex,
        queue: Option<u32>,
        mode: RxMode,
    ) -> Result<(), DeviceError> {
        self.0.rx.set_mode(queue, mode);
        self.0.rx.notify(c, self.0.input, || ToInput::Mode { sw_if, queue, mode });
        Ok(())
    }

    fn set_rx_placement(
        &self,
        c: &mut Control,
        sw_if: SwIfIndex,
        queue: u32,
        worker: Option<usize>,
    ) -> Result<(), DeviceError> {
        let tap = &self.0;
        tap.rx.assign(c, queue, worker, |c, from, to| {
            if tap.is_away() {
                return Ok(());
            }
            let give = |to| ToInput::Give { sw_if, queue, to };
            let take = |queue| ToInput::Add { queue, scratch: scratch() };
            Queues::hand_over(c, tap.input, (from, to), give, take)
        })
    }

    fn system_device(&self) -> Option<String> {
        Some(self.0.info.borrow().name.clone())
    }

    fn system_gone(&self, c: &mut Control, sw_if: SwIfIndex, last: &SystemDevice) {
        self.0.count_dropped(c, sw_if, last.tx_dropped);
    }

    fn detach(&self, c: &mut Control, sw_if: SwIfIndex) {
        self.0.close(c, sw_if);
    }

    fn attach(&self, c: &mut Control, sw_if: SwIfIndex, to: &str) -> Result<(), DeviceError> {
        let host = open(c, &self.0.config, Some(to))?;
        self.0.install(c, sw_if, host)
    }

    fn system_changed(&self, now: &SystemDevice) -> Option<u32> {
        self.0.changed(now)
    }

    fn caps(&self) -> Option<Caps> {
        Some(self.0.capabilities())
    }

    fn poll_missed(&self, c: &mut Control, sw_if: SwIfIndex) {
        let tap = &self.0;
        let every = c.state::<Taps>().borrow().0.len() / ASKED_AT_ONCE;
        if tap.unasked.get() < every {
            tap.unasked.set(tap.unasked.get() + 1);
            return;
        }
        tap.unasked.set(0);
        tap.ask_dropped(c, sw_if);
    }

    fn delete(&self, c: &mut Control, sw_if: SwIfIndex) {
        self.0.rx.notify(c, self.0.input, || ToInput::Remove { sw_if });
        self.0.rx.release(c);
        count_missed(c, sw_if, false);
        follow::forget(c, sw_if);
        if let Some(host) = self.0.host.take() {
            host.close();
        }
        c.state::<Taps>().borrow_mut().0.remove(&sw_if);
    }
}

impl Tap {
    /// Returns the reason why the device is missing.
    pub(crate) fn why_away(&self) -> String {
        match self.trouble.borrow().as_str() {
            "" => "waits for it to come back".into(),
            why => why.into(),
        }
    }

    /// Returns whether the device shows a carrier.
    pub(crate) fn has_carrier(&self) -> bool {
        !self.is_away() && self.is_up.get() && self.carrier.get()
    }
}
