//! Host interfaces on the main thread.

use crate::nodes::af_packet_input::ToInput;
use crate::nodes::{af_packet_input, af_packet_tx};
use crate::ring::{HostPort, Options, RingSize, TxRing, Version};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use thalweg_device::queues::{Queues, count_missed};
use thalweg_device::{
    Caps, Device, DeviceError, InterfaceSpec, MacAddr, RxQueue, SwIfIndex, SystemDevice, Transmit,
    interface,
};
use thalweg_device_linux::{Framing, IfInfo, LinkError, default_mac, follow};
use thalweg_graph::{Control, FileInfo, NodeId, RxMode};

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
    /// Descriptors of each interface.
    files: BTreeMap<SwIfIndex, Vec<FileInfo>>,
}

/// Driver of one host interface.
struct HostInterface {
    /// Name of the interface, which a renamed device does not change.
    name: String,
    /// Sockets, of which there are none while there is no device.
    port: RefCell<HostPort>,
    /// The device, as of now, or as it was when it went away.
    info: RefCell<IfInfo>,
    options: RefCell<Options>,
    /// MAC address of the interface; all zero without Ethernet.
    mac: Cell<MacAddr>,
    /// All frames are wanted, whatever their destination is.
    all: Cell<bool>,
    /// MTU set by the user, which the device's limits.
    wanted_mtu: Cell<Option<u32>>,
    rx: Queues,
    rx_size: Cell<Option<RingSize>>,
    tx_size: Cell<Option<RingSize>>,
    /// Frames lost by the kernel that were passed to workers.
    missed: Cell<u64>,
    input: NodeId,
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Hosts { options: BTreeMap::new(), files: BTreeMap::new() });
    c.describe_files(|c| c.state::<Hosts>().borrow().files.values().flatten().cloned().collect());
    follow::init(c);
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
    let framing = options.framing;
    if framing == Framing::Ip && config.mac.is_some() {
        let why = "`hw-addr' cannot be used with `mode ip': there is no Ethernet header";
        return Err(DeviceError::Failed(why.into()));
    }
    let mut port = HostPort::open(&config.name, &options).map_err(|e| {
        if matches!(e, crate::Error::Link(LinkError::NoSuchDevice { .. })) {
            follow::expect(c, &config.name);
        }
        failed(e)
    })?;
    let (mac, first) = match framing {
        Framing::Ethernet => (config.mac.unwrap_or_else(|| default_mac(port.info.mac)), None),
        Framing::Ip => (MacAddr::ZERO, Some("ip4-input")),
    };
    let first = match first {
        Some(name) => Some(c.node(name).ok_or_else(|| {
            DeviceError::Failed(format!("`mode ip' needs the node {name}, which does not exist"))
        })?),
        None => None,
    };
    port.set_promiscuous(wants_all(framing, mac, &port.info)).map_err(failed)?;
    // Frames that arrive before the interface is up are not received.
    port.refuse().map_err(failed)?;
    let info = port.info.clone();
    let rx = std::mem::take(&mut port.rx);
    let mut tx: Vec<_> = std::mem::take(&mut port.tx).into_iter().map(Some).collect();
    let input = c
        .node(af_packet_input::NODE.name)
        .ok_or_else(|| DeviceError::Failed("af-packet-input is not in the graph".into()))?;
    let device = HostInterface {
        rx_size: Cell::new(port.rx_size()),
        tx_size: Cell::new(port.tx_size()),
        name: format!("host-{}", config.name),
        port: RefCell::new(port),
        options: RefCell::new(options),
        mac: Cell::new(mac),
        all: Cell::new(false),
        wanted_mtu: Cell::new(None),
        rx: Queues::place(c, af_packet_input::NODE.name, rx.len() as u32),
        missed: Cell::new(0),
        info: RefCell::new(info.clone()),
        input,
    };
    let caps = device.capabilities();
    let files = device.files();
    let queues = device.rx.all();
    let spec = InterfaceSpec {
        name: format!("host-{}", config.name),
        mac,
        mtu: info.mtu,
        speed_kbps: follow::kbps(&info),
        link_up: info.is_running(),
        caps,
        device: Box::new(device),
        input: first,
    };
    let mut build = |sw_if, worker| {
        af_packet_tx::build(sw_if, framing, tx.get_mut(worker).and_then(Option::take))
    };
    let made = interface::create(c, spec, Transmit::Own(&af_packet_tx::NODE, &mut build));
    let sw_if = made.inspect_err(|_| Queues::release_all(c, &queues))?;
    for (ring, q) in rx.into_iter().zip(queues) {
        let m = ToInput::Add { sw_if, queue: q.queue, framing, ring: Box::new(ring) };
        c.message(q.worker, input, Box::new(m));
    }
    let hosts = c.state::<Hosts>();
    hosts.borrow_mut().files.insert(sw_if, files);
    hosts.borrow_mut().options.insert(sw_if, asked);
    count_missed(c, sw_if, true);
    follow::follow(c, sw_if, &info);
    Ok(sw_if)
}

/// Returns whether a device must receive all frames for an interface that wants those to its own
/// address.
fn wants_all(framing: Framing, mac: MacAddr, info: &IfInfo) -> bool {
    framing == Framing::Ethernet && mac != MacAddr(info.mac.0)
}

fn with_source(e: &crate::Error) -> String {
    match std::error::Error::source(e) {
        Some(s) => format!("{e}: {s}"),
        None => e.to_string(),
    }
}

/// Deletes `host-<name>`.
///
/// # Errors
/// If the host interface does not exist.
pub fn delete(c: &mut Control, name: &str) -> Result<(), DeviceError> {
    let sw_if = find(c, name)?;
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
    /// packets); a device reports that in one flag for TCP only.
    fn capabilities(&self) -> Caps {
        let offload = self.offloads();
        let queued = !self.options.borrow().qdisc_bypass;
        Caps {
            tx_csum: offload,
            tx_tso: offload && (queued || self.port.borrow().segments_tcp()),
            tx_uso: offload && queued,
        }
    }

    /// Returns whether offload is enabled.
    fn offloads(&self) -> bool {
        self.options.borrow().offload && self.port.borrow().offload()
    }

    /// Sockets of the interface; each worker sends on one, and receive queues are spread over
    /// workers.
    fn files(&self) -> Vec<FileInfo> {
        let describe = |(i, socket): (usize, &std::sync::Arc<crate::ring::Socket>)| FileInfo {
            fd: socket.as_fd().as_raw_fd(),
            thread: 1 + self.rx.get(i as u32).map_or(i, |q| q.worker),
            description: format!("{} queue {i}", self.name),
            counts: None,
        };
        self.port.borrow().sockets().iter().enumerate().map(describe).collect()
    }

    /// Gives each worker its transmit ring, or none.
    fn send_by(&self, c: &mut Control, sw_if: SwIfIndex, rings: Vec<TxRing>) {
        let Some(node) = interface::transmit_node(c, sw_if) else { return };
        let mut rings = rings.into_iter();
        for worker in 0..c.workers() {
            c.message(worker, node, Box::new(af_packet_tx::ToTx(rings.next().map(Box::new))));
        }
    }

    /// Returns whether the device went away.
    fn is_away(&self) -> bool {
        self.port.borrow().sockets().is_empty()
    }

    /// Returns the MTU on a device with this one.
    fn limited_mtu(&self, device: u32) -> u32 {
        self.wanted_mtu.get().map_or(device, |mtu| mtu.min(device))
    }

    /// Passes over that the device went away, of which the kernel's event may still be to come:
    /// settings are those of the next one.
    fn unless_away(done: Result<(), crate::Error>) -> Result<(), DeviceError> {
        match done {
            Err(e) if e.is_away() => Ok(()),
            other => other.map_err(Self::failed),
        }
    }

    fn failed(e: crate::Error) -> DeviceError {
        DeviceError::Failed(with_source(&e))
    }

    /// Makes the device promiscuous as long as frames to other MAC addresses than its own are
    /// wanted: all, or those to an address of the interface's own.
    fn needs_all(&self, mac: MacAddr, all: bool) -> Result<(), DeviceError> {
        let framing = self.options.borrow().framing;
        let other = wants_all(framing, mac, &self.info.borrow());
        Self::unless_away(self.port.borrow().set_promiscuous(all || other))?;
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
        if up && let Some(s) = self.port.borrow().sockets().first() {
            Self::unless_away(s.switch_on())?;
        }
        self.rx.notify(c, self.input, || ToInput::Admin { sw_if, up });
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
        self.port.borrow().set_mtu(mtu);
        Ok(true)
    }

    fn set_option(&self, option: &str, on: bool) -> Result<(), DeviceError> {
        match option {
            "unqueued" => self.port.borrow().set_unqueued(on).map_err(Self::failed),
            QDISC_BYPASS => {
                self.options.borrow_mut().qdisc_bypass = on;
                self.port.borrow().set_qdisc_bypass(on).map_err(Self::failed)
            }
            CHECKSUM_OFFLOAD if on && !self.port.borrow().offload() => {
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
        if self.is_away() {
            let name = &self.info.borrow().name;
            lines.insert(0, format!("the device {name} went away: waits for it to come back"));
        }
        if self.options.borrow().version == Version::V3 {
            lines.push("  partly filled blocks are delivered after 1 ms".into());
        }
        for q in self.rx.all() {
            lines.extend(ring_line("RX", q.queue, self.rx_size.get()));
        }
        for q in 0..self.options.borrow().tx_queues {
            lines.extend(ring_line("TX", u32::from(q), self.tx_size.get()));
        }
        let k = self.port.borrow().kernel_stats();
        lines.push("Kernel counters:".into());
        lines.push(format!("  rx frames {}", k.packets));
        lines.push(format!("  rx missed {}", k.drops));
        lines.push(format!("  rx ring freezes {}", k.freezes));
        lines
    }

    fn hardware_json(&self, _c: &Control) -> serde_json::Value {
        let k = self.port.borrow().kernel_stats();
        serde_json::json!({
            "device": self.info.borrow().name,
            "away": self.is_away(),
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
        self.rx.rows()
    }

    fn set_rx_mode(
        &self,
        c: &mut Control,
        sw_if: SwIfIndex,
        queue: Option<u32>,
        mode: RxMode,
    ) -> Result<(), DeviceError> {
        self.rx.set_mode(queue, mode);
        self.rx.notify(c, self.input, || ToInput::Mode { sw_if, queue, mode });
        Ok(())
    }

    fn set_rx_placement(
        &self,
        c: &mut Control,
        sw_if: SwIfIndex,
        queue: u32,
        worker: Option<usize>,
    ) -> Result<(), DeviceError> {
        self.rx.assign(c, queue, worker, |c, from, to| {
            if self.is_away() {
                return Ok(());
            }
            let give = |to| ToInput::Give { sw_if, queue, to };
            Queues::hand_over(c, self.input, (from, to), give, ToInput::Take)
        })?;
        c.state::<Hosts>().borrow_mut().files.insert(sw_if, self.files());
        Ok(())
    }

    fn system_device(&self) -> Option<String> {
        Some(self.info.borrow().name.clone())
    }

    fn detach(&self, c: &mut Control, sw_if: SwIfIndex) {
        // Sockets know what the device has lost since they were last asked.
        self.poll_missed(c, sw_if);
        self.rx.notify(c, self.input, || ToInput::Remove { sw_if });
        self.send_by(c, sw_if, Vec::new());
        self.port.borrow_mut().close();
        self.missed.set(0);
        c.state::<Hosts>().borrow_mut().files.remove(&sw_if);
    }

    fn attach(&self, c: &mut Control, sw_if: SwIfIndex, to: &str) -> Result<(), DeviceError> {
        let framing = self.options.borrow().framing;
        let mut port = HostPort::open(to, &self.options.borrow()).map_err(Self::failed)?;
        let all = self.all.get() || wants_all(framing, self.mac.get(), &port.info);
        port.set_promiscuous(all).map_err(Self::failed)?;
        port.refuse().map_err(Self::failed)?;
        let (rx, tx) = (std::mem::take(&mut port.rx), std::mem::take(&mut port.tx));
        port.set_mtu(self.limited_mtu(port.info.mtu));
        // The interface has the MTU of the device that went away, until it follows this one.
        let mtu = self.info.borrow().mtu;
        self.info.replace(IfInfo { mtu, ..port.info.clone() });
        self.rx_size.set(port.rx_size());
        self.tx_size.set(port.tx_size());
        self.port.replace(port);
        for (ring, q) in rx.into_iter().zip(self.rx.all()) {
            let (queue, mode) = (q.queue, q.mode);
            let add = ToInput::Add { sw_if, queue, framing, ring: Box::new(ring) };
            c.message(q.worker, self.input, Box::new(add));
            let set = ToInput::Mode { sw_if, queue: Some(queue), mode };
            c.message(q.worker, self.input, Box::new(set));
        }
        self.send_by(c, sw_if, tx);
        c.state::<Hosts>().borrow_mut().files.insert(sw_if, self.files());
        if interface::view(c, sw_if)?.admin_up {
            self.set_admin(c, sw_if, true)?;
        }
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
        let mtu = self.limited_mtu(now.mtu);
        self.port.borrow().set_mtu(mtu);
        Some(mtu)
    }

    fn caps(&self) -> Option<Caps> {
        Some(self.capabilities())
    }

    fn poll_missed(&self, c: &mut Control, sw_if: SwIfIndex) {
        let all = self.port.borrow().kernel_stats().drops;
        let frames = all.saturating_sub(self.missed.get());
        if frames > 0
            && let Some(q) = self.rx.get(0)
        {
            self.missed.set(all);
            c.message(q.worker, self.input, Box::new(ToInput::Missed { sw_if, frames }));
        }
    }

    fn delete(&self, c: &mut Control, sw_if: SwIfIndex) {
        self.rx.notify(c, self.input, || ToInput::Remove { sw_if });
        self.rx.release(c);
        count_missed(c, sw_if, false);
        follow::forget(c, sw_if);
    }
}
