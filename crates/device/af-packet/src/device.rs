//! Host interfaces on the main thread.

use crate::link::{IfInfo, LinkEvent, LinkMonitor};
use crate::nodes::af_packet_input::ToInput;
use crate::nodes::{af_packet_input, af_packet_tx};
use crate::ring::{Framing, HostPort, Options, RingSize, RxRing, Version};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::mpsc;
use std::time::Duration;
use thalweg_device::{
    Caps, Device, DeviceError, InterfaceSpec, MacAddr, RxQueue, SwIfIndex, SystemDevice, Transmit,
    interface,
};
use thalweg_graph::{Control, FileInfo, NodeId, Remote, RxMode};

/// Parameters of a new host interface.
#[derive(Clone, Debug, Default)]
pub struct HostConfig {
    /// Linux device.
    pub name: String,
    /// MAC address of the interface; by default `02:fe` and the device's last four bytes.
    pub mac: Option<MacAddr>,
    /// Rings and offloads.
    pub options: Options,
}

/// State of all host interfaces on the main thread.
pub(crate) struct Hosts {
    /// Options of each interface.
    pub(crate) options: BTreeMap<SwIfIndex, Options>,
    by_ifindex: BTreeMap<u32, SwIfIndex>,
    /// Descriptors of each interface.
    files: BTreeMap<SwIfIndex, Vec<FileInfo>>,
    /// Receive queues per worker, to assign the next to the least loaded.
    load: Vec<usize>,
    watching: bool,
}

impl Hosts {
    /// Returns the worker with the fewest queues, not counting the queue on `from`; `from` itself
    /// if it is no worse than others.
    fn idlest(&self, from: usize) -> usize {
        let load = |w: &usize| (self.load[*w] - usize::from(*w == from), *w != from);
        (0..self.load.len()).min_by_key(load).unwrap_or(from)
    }

    fn moved(&mut self, from: usize, to: usize) {
        if let Some(n) = self.load.get_mut(from) {
            *n -= 1;
        }
        if let Some(n) = self.load.get_mut(to) {
            *n += 1;
        }
    }
}

/// Driver of one host interface.
struct HostInterface {
    /// Name of the interface, which a renamed device does not change.
    name: String,
    port: HostPort,
    /// The device, as of now.
    info: RefCell<IfInfo>,
    options: RefCell<Options>,
    /// MAC address of the interface; all zero without Ethernet.
    mac: Cell<MacAddr>,
    /// All frames are wanted, whatever their destination is.
    all: Cell<bool>,
    /// MTU set by the user, which the device's limits.
    wanted_mtu: Cell<Option<u32>>,
    rx: RefCell<Vec<QueueInfo>>,
    tx_size: Option<RingSize>,
    /// Frames lost by the kernel that were passed to workers.
    missed: Cell<u64>,
    input: NodeId,
}

#[derive(Clone, Copy)]
struct QueueInfo {
    queue: u32,
    worker: usize,
    size: Option<RingSize>,
    mode: RxMode,
    /// The user assigned the queue to its worker.
    pinned: bool,
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Hosts {
        options: BTreeMap::new(),
        by_ifindex: BTreeMap::new(),
        files: BTreeMap::new(),
        load: Vec::new(),
        watching: false,
    });
    c.describe_files(|c| c.state::<Hosts>().borrow().files.values().flatten().cloned().collect());
}

pub(crate) fn ready(c: &mut Control) {
    c.state::<Hosts>().borrow_mut().load = vec![0; c.workers()];
    c.every(Duration::from_secs(1), |c| {
        report_missed(c);
        true
    });
}

/// Default MAC address: derived from the device's own, so that it is the same after a restart, but
/// different, so that the kernel's stack ignores our frames.
fn default_mac(device: MacAddr) -> MacAddr {
    let [_, _, c, d, e, f] = device.octets();
    let mac = MacAddr::new(0x02, 0xfe, c, d, e, f);
    if mac == device { MacAddr::new(0x02, 0xfd, c, d, e, f) } else { mac }
}

/// Creates `host-<name>`.
///
/// # Errors
/// If the device does not exist or is in use, privileges or memory are missing, or an option is out
/// of range. Nothing has changed then.
pub fn create(c: &mut Control, config: HostConfig) -> Result<SwIfIndex, DeviceError> {
    let failed = |e: crate::Error| DeviceError::Failed(with_source(&e));
    if let Some(mac) = config.mac {
        interface::check_mac(mac)?;
    }
    let mut options = config.options;
    let asked = options.clone();
    // Each worker has its own transmit ring, so they share nothing.
    options.tx_queues = options.tx_queues.max(c.workers() as u16);
    let mut port = HostPort::open(&config.name, &options).map_err(failed)?;
    let device_mac = port.info.mac;
    let framing = options.framing;
    let (mac, first) = match (framing, config.mac) {
        (Framing::Ethernet, mac) => (mac.unwrap_or_else(|| default_mac(device_mac)), None),
        (Framing::Ip, None) => (MacAddr::ZERO, Some("ip4-input")),
        (Framing::Ip, Some(_)) => {
            let why = "`hw-addr' cannot be used with `mode ip': there is no Ethernet header";
            return Err(DeviceError::Failed(why.into()));
        }
    };
    let first = match first {
        Some(name) => Some(c.node(name).ok_or_else(|| {
            DeviceError::Failed(format!("`mode ip' needs the node {name}, which does not exist"))
        })?),
        None => None,
    };
    if framing == Framing::Ethernet && mac != device_mac {
        port.set_promiscuous(true).map_err(failed)?;
    }
    // What comes before the interface is up is not received.
    port.refuse().map_err(failed)?;
    let info = port.info.clone();
    let rx = std::mem::take(&mut port.rx);
    let mut tx: Vec<_> = std::mem::take(&mut port.tx).into_iter().map(Some).collect();
    let queues = place(c, &rx);
    let input = c
        .node(af_packet_input::NODE.name)
        .ok_or_else(|| DeviceError::Failed("af-packet-input is not in the graph".into()))?;
    let device = HostInterface {
        tx_size: port.sockets().iter().find_map(|s| s.tx_size()),
        name: format!("host-{}", config.name),
        port,
        options: RefCell::new(options),
        mac: Cell::new(mac),
        all: Cell::new(false),
        wanted_mtu: Cell::new(None),
        rx: RefCell::new(queues.clone()),
        missed: Cell::new(0),
        info: RefCell::new(info.clone()),
        input,
    };
    let caps = device.capabilities();
    let files = device.files();
    let spec = InterfaceSpec {
        name: format!("host-{}", config.name),
        mac,
        mtu: info.mtu,
        speed_kbps: kbps(&info),
        link_up: info.is_running(),
        caps,
        device: Box::new(device),
        input: first,
    };
    let mut build = |sw_if, worker| {
        af_packet_tx::build(sw_if, framing, tx.get_mut(worker).and_then(Option::take))
    };
    let sw_if = interface::create(c, spec, Transmit::Own(&af_packet_tx::NODE, &mut build))?;
    for (ring, q) in rx.into_iter().zip(queues) {
        let m = ToInput::Add { sw_if, queue: q.queue, framing, ring: Box::new(ring) };
        c.message(q.worker, input, Box::new(m));
    }
    let hosts = c.state::<Hosts>();
    hosts.borrow_mut().by_ifindex.insert(info.ifindex, sw_if);
    hosts.borrow_mut().files.insert(sw_if, files);
    hosts.borrow_mut().options.insert(sw_if, asked);
    watch(c);
    Ok(sw_if)
}

fn with_source(e: &crate::Error) -> String {
    match std::error::Error::source(e) {
        Some(s) => format!("{e}: {s}"),
        None => e.to_string(),
    }
}

/// Assigns each queue to the worker with the fewest.
fn place(c: &Control, rx: &[RxRing]) -> Vec<QueueInfo> {
    let hosts = c.state::<Hosts>();
    let mut hosts = hosts.borrow_mut();
    let place_one = |(i, ring): (usize, &RxRing)| {
        let worker = (0..hosts.load.len()).min_by_key(|w| hosts.load[*w]).unwrap_or(0);
        if let Some(n) = hosts.load.get_mut(worker) {
            *n += 1;
        }
        QueueInfo {
            queue: i as u32,
            worker,
            size: ring.socket().rx_size(),
            mode: RxMode::default(),
            pinned: false,
        }
    };
    rx.iter().enumerate().map(place_one).collect()
}

/// Deletes `host-<name>`.
///
/// # Errors
/// If the host interface does not exist.
pub fn delete(c: &mut Control, name: &str) -> Result<(), DeviceError> {
    let sw_if = find(c, name)?;
    c.state::<Hosts>().borrow_mut().by_ifindex.retain(|_, i| *i != sw_if);
    c.state::<Hosts>().borrow_mut().files.remove(&sw_if);
    c.state::<Hosts>().borrow_mut().options.remove(&sw_if);
    interface::delete(c, sw_if)
}

fn find(c: &Control, name: &str) -> Result<SwIfIndex, DeviceError> {
    let full = if name.starts_with("host-") { name.into() } else { format!("host-{name}") };
    let sw_if = interface::find(c, &full)?;
    let view = interface::view(c, sw_if)?;
    if view.dev_type != DEV_TYPE {
        return Err(DeviceError::Failed(format!("`{full}` is not a host interface")));
    }
    Ok(sw_if)
}

/// Switches the queueing discipline bypass of `host-<name>`.
///
/// # Errors
/// If the host interface does not exist or the kernel fails.
pub fn set_qdisc_bypass(c: &mut Control, name: &str, on: bool) -> Result<(), DeviceError> {
    let sw_if = find(c, name)?;
    set_option(c, sw_if, QDISC_BYPASS, on, |options| options.qdisc_bypass = on)
}

/// Switches checksum and segmentation offload of packets sent by `host-<name>`. Received packets
/// may carry pending offload work either way.
///
/// # Errors
/// If the host interface does not exist, or was created without offload.
pub fn set_checksum_offload(c: &mut Control, name: &str, on: bool) -> Result<(), DeviceError> {
    let sw_if = find(c, name)?;
    set_option(c, sw_if, CHECKSUM_OFFLOAD, on, |options| options.offload = on)
}

const QDISC_BYPASS: &str = "qdisc-bypass";
const CHECKSUM_OFFLOAD: &str = "checksum-offload";

fn set_option(
    c: &mut Control,
    sw_if: SwIfIndex,
    option: &str,
    on: bool,
    note: impl FnOnce(&mut Options),
) -> Result<(), DeviceError> {
    let device = c.state::<thalweg_device::Interfaces>().borrow().device(sw_if);
    let done = device.map(|d| d.set_option(option, on));
    done.unwrap_or_else(|| Err(DeviceError::Unknown(c.interface_name(sw_if))))?;
    if let Some(options) = c.state::<Hosts>().borrow_mut().options.get_mut(&sw_if) {
        note(options);
    }
    interface::refresh_caps(c, sw_if)
}

pub(crate) const DEV_TYPE: &str = "af-packet";

impl HostInterface {
    /// Offloads available on transmit. When the queueing discipline is bypassed, the kernel drops a
    /// GSO packet that the device cannot segment (`__dev_direct_xmit` hands back only whole
    /// packets); only for TCP does a device report that in one flag.
    fn capabilities(&self) -> Caps {
        let offload = self.offloads();
        let queued = !self.options.borrow().qdisc_bypass;
        Caps {
            tx_csum: offload,
            tx_tso: offload && (queued || self.port.segments_tcp()),
            tx_uso: offload && queued,
        }
    }

    /// Returns whether offload is enabled.
    fn offloads(&self) -> bool {
        self.options.borrow().offload && self.port.sockets().iter().all(|s| s.offload())
    }

    /// Sockets of the interface; each worker sends on one, and receive queues are spread over
    /// workers.
    fn files(&self) -> Vec<FileInfo> {
        let describe = |(i, socket): (usize, &std::sync::Arc<crate::ring::Socket>)| FileInfo {
            fd: socket.as_fd().as_raw_fd(),
            thread: 1 + self.rx.borrow().get(i).map_or(i, |q| q.worker),
            description: format!("{} queue {i}", self.name),
            counts: None,
        };
        self.port.sockets().iter().enumerate().map(describe).collect()
    }

    fn notify_inputs(&self, c: &mut Control, make: impl Fn() -> ToInput) {
        let mut workers: Vec<usize> = self.rx.borrow().iter().map(|q| q.worker).collect();
        workers.sort_unstable();
        workers.dedup();
        for w in workers {
            c.message(w, self.input, Box::new(make()));
        }
    }

    fn failed(e: crate::Error) -> DeviceError {
        DeviceError::Failed(with_source(&e))
    }

    /// Makes the device promiscuous as long as frames to other MAC addresses than its own are
    /// wanted: all, or those to an address of the interface's own.
    fn needs_all(&self, mac: MacAddr, all: bool) -> Result<(), DeviceError> {
        let is_ethernet = self.options.borrow().framing == Framing::Ethernet;
        let other = is_ethernet && mac != MacAddr(self.info.borrow().mac.0);
        self.port.set_promiscuous(all || other).map_err(Self::failed)?;
        self.mac.set(mac);
        self.all.set(all);
        Ok(())
    }
}

fn ring_line(what: &str, queue: u32, size: Option<RingSize>) -> Vec<String> {
    let Some(s) = size else { return Vec::new() };
    vec![
        format!("{what} Queue {queue}:"),
        format!(
            "  block size:{} nblocks:{} frame size:{} nframes:{}",
            s.block,
            s.blocks,
            s.slot,
            s.slots()
        ),
    ]
}

impl Device for HostInterface {
    fn dev_type(&self) -> &'static str {
        DEV_TYPE
    }

    fn set_admin(&self, c: &mut Control, sw_if: SwIfIndex, up: bool) -> Result<(), DeviceError> {
        if up && let Some(s) = self.port.sockets().first() {
            s.switch_on().map_err(Self::failed)?;
        }
        self.notify_inputs(c, || ToInput::Admin { sw_if, up });
        Ok(())
    }

    fn set_promiscuous(&self, _c: &mut Control, on: bool) -> Result<(), DeviceError> {
        self.needs_all(self.mac.get(), on)
    }

    fn set_mac(&self, _c: &mut Control, mac: MacAddr) -> Result<bool, DeviceError> {
        if self.options.borrow().framing == Framing::Ip {
            return Ok(false);
        }
        self.needs_all(mac, self.all.get())?;
        Ok(true)
    }

    fn set_mtu(&self, _c: &mut Control, mtu: u32) -> Result<bool, DeviceError> {
        if mtu > self.info.borrow().mtu {
            return Err(DeviceError::Range {
                what: "MTU (the device's own is the limit: `ip link set mtu`)",
                min: u64::from(interface::MTU_RANGE.0),
                max: u64::from(self.info.borrow().mtu),
                found: u64::from(mtu),
            });
        }
        self.wanted_mtu.set(Some(mtu));
        Ok(true)
    }

    fn set_option(&self, option: &str, on: bool) -> Result<(), DeviceError> {
        match option {
            "unqueued" => self.port.set_unqueued(on).map_err(Self::failed),
            QDISC_BYPASS => {
                self.options.borrow_mut().qdisc_bypass = on;
                self.port.set_qdisc_bypass(on).map_err(Self::failed)
            }
            CHECKSUM_OFFLOAD if on && !self.port.sockets().iter().all(|s| s.offload()) => {
                Err(DeviceError::Unsupported {
                    name: self.name.clone(),
                    kind: DEV_TYPE.into(),
                    what:
                        "checksum offload (it was created without: delete it and create it again)"
                            .into(),
                })
            }
            CHECKSUM_OFFLOAD => {
                self.options.borrow_mut().offload = on;
                Ok(())
            }
            other => Err(DeviceError::Failed(format!("no option `{other}`"))),
        }
    }

    fn hardware(&self, _c: &Control, _verbose: bool) -> Vec<String> {
        let onoff =
            |on: bool, name: &str| format!("  {name}-{}", if on { "enabled" } else { "disabled" });
        let offload = self.offloads();
        let mut lines = vec![
            format!("Linux PACKET socket interface {}", self.options.borrow().version),
            "FEATURES:".into(),
            onoff(self.options.borrow().qdisc_bypass, "qdisc-bypass"),
            onoff(offload, "cksum-gso"),
        ];
        if self.options.borrow().version == Version::V3 {
            lines.push("  partly filled blocks are delivered after 1 ms".into());
        }
        for q in self.rx.borrow().iter() {
            lines.extend(ring_line("RX", q.queue, q.size));
        }
        for q in 0..self.options.borrow().tx_queues {
            lines.extend(ring_line("TX", u32::from(q), self.tx_size));
        }
        let k = self.port.kernel_stats();
        lines.push("Kernel counters:".into());
        lines.push(format!("  rx frames {}", k.packets));
        lines.push(format!("  rx missed {}", k.drops));
        lines.push(format!("  rx ring freezes {}", k.freezes));
        lines
    }

    fn hardware_json(&self, _c: &Control) -> serde_json::Value {
        let k = self.port.kernel_stats();
        serde_json::json!({
            "device": self.info.borrow().name,
            "ifindex": self.info.borrow().ifindex,
            "version": self.options.borrow().version.to_string(),
            "qdisc_bypass": self.options.borrow().qdisc_bypass,
            "offload": self.offloads(),
            "kernel_rx_frames": k.packets,
            "kernel_rx_missed": k.drops,
        })
    }

    fn tx_queues(&self) -> u32 {
        self.options.borrow().tx_queues.into()
    }

    fn rx_queues(&self) -> Vec<RxQueue> {
        let node = af_packet_input::NODE.name.to_string();
        let row = |q: &QueueInfo| RxQueue {
            queue: q.queue,
            worker: q.worker,
            node: node.clone(),
            mode: q.mode,
            pinned: q.pinned,
        };
        self.rx.borrow().iter().map(row).collect()
    }

    fn set_rx_mode(
        &self,
        c: &mut Control,
        sw_if: SwIfIndex,
        queue: Option<u32>,
        mode: RxMode,
    ) -> Result<(), DeviceError> {
        for q in self.rx.borrow_mut().iter_mut().filter(|q| queue.is_none_or(|n| n == q.queue)) {
            q.mode = mode;
        }
        self.notify_inputs(c, || ToInput::Mode { sw_if, queue, mode });
        Ok(())
    }

    fn set_rx_placement(
        &self,
        c: &mut Control,
        sw_if: SwIfIndex,
        queue: u32,
        worker: Option<usize>,
    ) -> Result<(), DeviceError> {
        let Some(at) = self.rx.borrow().iter().position(|q| q.queue == queue) else {
            return Ok(());
        };
        let from = self.rx.borrow()[at].worker;
        let to = worker.unwrap_or_else(|| c.state::<Hosts>().borrow().idlest(from));
        if to != from {
            let (give, given) = mpsc::sync_channel(1);
            c.message(from, self.input, Box::new(ToInput::Give { sw_if, queue, to: give }));
            // The request follows earlier messages in the worker's queue; it replies between two
            // loops.
            c.sync();
            let Ok(moving) = given.try_recv() else {
                let why = format!("worker {from} did not release the queue");
                return Err(DeviceError::Failed(why));
            };
            c.message(to, self.input, Box::new(ToInput::Take(moving)));
            self.rx.borrow_mut()[at].worker = to;
            let hosts = c.state::<Hosts>();
            hosts.borrow_mut().moved(from, to);
            hosts.borrow_mut().files.insert(sw_if, self.files());
        }
        self.rx.borrow_mut()[at].pinned = worker.is_some();
        Ok(())
    }

    fn system_changed(&self, now: &SystemDevice) -> Option<u32> {
        let mut info = self.info.borrow_mut();
        if info.name != now.name {
            tracing::info!("device {} has been renamed to {}", info.name, now.name);
            info.name.clone_from(&now.name);
        }
        let has_new_mac = std::mem::replace(&mut info.mac, now.mac) != now.mac;
        let has_new_mtu = std::mem::replace(&mut info.mtu, now.mtu) != now.mtu;
        if has_new_mac && let Err(e) = self.needs_all(self.mac.get(), self.all.get()) {
            tracing::warn!("{e}");
        }
        if !has_new_mtu {
            return None;
        }
        self.port.set_mtu(now.mtu);
        Some(self.wanted_mtu.get().map_or(now.mtu, |mtu| mtu.min(now.mtu)))
    }

    fn caps(&self) -> Option<Caps> {
        Some(self.capabilities())
    }

    fn poll_missed(&self, c: &mut Control, sw_if: SwIfIndex) {
        let all = self.port.kernel_stats().drops;
        let frames = all - self.missed.get();
        if frames > 0
            && let Some(q) = self.rx.borrow().first().copied()
        {
            self.missed.set(all);
            c.message(q.worker, self.input, Box::new(ToInput::Missed { sw_if, frames }));
        }
    }

    fn delete(&self, c: &mut Control, sw_if: SwIfIndex) {
        self.notify_inputs(c, || ToInput::Remove { sw_if });
        let hosts = c.state::<Hosts>();
        let mut hosts = hosts.borrow_mut();
        for q in self.rx.borrow().iter() {
            if let Some(n) = hosts.load.get_mut(q.worker) {
                *n -= 1;
            }
        }
    }
}

/// Passes the kernel's loss counts to workers, which own the counters.
fn report_missed(c: &mut Control) {
    let all: Vec<SwIfIndex> = c.state::<Hosts>().borrow().by_ifindex.values().copied().collect();
    for sw_if in all {
        let device = c.state::<thalweg_device::Interfaces>().borrow().device(sw_if);
        if let Some(d) = device {
            d.poll_missed(c, sw_if);
        }
    }
}

/// Starts the thread that watches links, once.
fn watch(c: &mut Control) {
    let hosts = c.state::<Hosts>();
    if std::mem::replace(&mut hosts.borrow_mut().watching, true) {
        return;
    }
    let monitor = match LinkMonitor::open() {
        Ok(m) => m,
        Err(e) => {
            tracing::warn!("link changes will not be detected: {}", with_source(&e));
            return;
        }
    };
    let remote = c.remote();
    let spawned = std::thread::Builder::new()
        .name("links".into())
        .spawn(move || follow_links(monitor, &remote));
    if let Err(e) = spawned {
        tracing::warn!("link changes will not be detected: {e}");
    }
}

fn follow_links(mut monitor: LinkMonitor, remote: &Remote) {
    loop {
        let events: Vec<LinkEvent> = monitor.events().collect();
        for e in events.into_iter().flat_map(completed) {
            if !remote.submit(move |c| link_event(c, &e)) {
                return;
            }
        }
        let fd = monitor.as_fd();
        let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let _ = rustix::event::poll(&mut fds, None);
    }
}

/// Adds the link speed, which events do not carry; queried here, as drivers are slow.
fn completed(e: LinkEvent) -> Vec<LinkEvent> {
    let changed = |mut info: IfInfo| {
        info.find_speed();
        LinkEvent::Changed(info)
    };
    match e {
        LinkEvent::Changed(info) => vec![changed(info)],
        LinkEvent::Lost => IfInfo::list().unwrap_or_default().into_iter().map(changed).collect(),
        gone @ LinkEvent::Gone { .. } => vec![gone],
    }
}

fn kbps(info: &IfInfo) -> u32 {
    info.speed_mbps.unwrap_or(0).saturating_mul(1000)
}

fn link_event(c: &mut Control, e: &LinkEvent) {
    let find =
        |c: &Control, ifindex: u32| c.state::<Hosts>().borrow().by_ifindex.get(&ifindex).copied();
    match e {
        LinkEvent::Changed(info) => {
            if let Some(sw_if) = find(c, info.ifindex) {
                let _ = interface::set_speed(c, sw_if, kbps(info));
                let _ = interface::set_link(c, sw_if, info.is_running());
                let device = c.state::<thalweg_device::Interfaces>().borrow().device(sw_if);
                let Some(device) = device else { return };
                // A device gets its queueing discipline when it first comes up.
                let _ = device.set_option("unqueued", info.unqueued);
                let (name, mac, mtu) = (info.name.clone(), info.mac.0, info.mtu);
                let mtu = device.system_changed(&SystemDevice { name, mac: MacAddr(mac), mtu });
                if let Some(mtu) = mtu {
                    let _ = interface::follow_link_mtu(c, sw_if, mtu);
                }
                let _ = interface::refresh_caps(c, sw_if);
            }
        }
        LinkEvent::Gone { ifindex, name } => {
            if let Some(sw_if) = find(c, *ifindex) {
                tracing::warn!(
                    "device {name} was removed; delete {} and create it again once the device is back",
                    c.interface_name(sw_if)
                );
                let _ = interface::set_link(c, sw_if, false);
            }
        }
        // The monitor has queried all links.
        LinkEvent::Lost => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_stable_and_not_the_devices() {
        assert_eq!(default_mac(MacAddr([2, 0, 0, 0, 1, 1])), MacAddr([2, 0xfe, 0, 0, 1, 1]));
        assert_ne!(default_mac(MacAddr([2, 0xfe, 0, 0, 1, 1])), MacAddr([2, 0xfe, 0, 0, 1, 1]));
    }
}
