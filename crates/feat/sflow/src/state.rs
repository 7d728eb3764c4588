//! Settings and what they are made of on the main thread, the only place that changes them.
//!
//! A change goes to the taps as messages. The service gets a whole new setup if settings change,
//! and one interface if that changes. Neither stops for it, and no sample is lost.

use crate::exporting::{ExportSettings, MAX_COLLECTORS};
use crate::netlink::NetlinkSettings;
use crate::nodes::sflow::TapMessage;
use crate::reasons::Reasons;
use crate::ring::{Bell, MAX_HEADER, SampleReader};
use crate::service::{self, Status};
use crate::stats::{PortTotals, TapStats};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thalweg_device::link_header::Link;
use thalweg_device::{
    DeviceError, InterfaceEvent, InterfaceView, Interfaces, SwIfIndex, interface,
};
use thalweg_engine::setting::Refused;
use thalweg_graph::Control;
use thalweg_graph::stats::IfTotals;
use thalweg_sflow_agent::conf::LinkSpeed;
use thalweg_sflow_agent::netlink::{Channel, Listeners, listeners};

mod follow;
pub(crate) use follow::publish;
use follow::{follow, setup};

/// Default sampling rate, for interfaces without their own.
pub const DEFAULT_RATE: u32 = 10_000;
/// Default limit of drop samples per second.
pub const DEFAULT_DROP_LIMIT: u32 = 100;
/// Seconds between two polls of an interface's counters.
pub const DEFAULT_POLLING: u32 = 20;
/// Bytes of a sampled packet that are sent.
pub const DEFAULT_HEADER_BYTES: u16 = 128;
/// Least and most bytes of a sampled packet that are sent.
pub const HEADER_BYTES: (u16, u16) = (64, MAX_HEADER as u16);
/// Header bytes are a multiple of this.
pub const HEADER_STEP: u16 = 32;

/// Packets of an interface that are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Packets that it receives.
    Rx,
    /// Packets that it sends.
    Tx,
    /// Both.
    Both,
}

/// Error of a refused setting.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SFlowError {
    /// The interface cannot be sampled.
    #[error("Invalid interface, only works on physical ports: `{0}' is none")]
    NotAPort(String),
    /// No such interface, or the device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The state is set already.
    #[error("sflow is already {} on `{name}'", if *enabled { "enabled" } else { "disabled" })]
    Unchanged {
        /// The interface.
        name: String,
        /// True if it is enabled.
        enabled: bool,
    },
    /// Polling without a pause.
    #[error("polling interval 0 is invalid: the minimum is 1 second")]
    Polling,
    /// Invalid collector.
    #[error("{0}")]
    Collector(String),
    /// The collector is configured already.
    #[error("collector {0} is already configured")]
    CollectorExists(String),
    /// The collector is not configured.
    #[error("collector {0} is not configured{others}", others = known(.1))]
    CollectorUnknown(String, Vec<String>),
    /// Collector limit reached.
    #[error("collector limit reached: at most {MAX_COLLECTORS}")]
    CollectorsFull,
    /// Invalid datagram length.
    #[error("{0}")]
    Datagrams(String),
    /// The address names no agent.
    #[error("{0} is not a valid agent address: give a unicast address of this host, or `auto'")]
    AgentAddress(IpAddr),
    /// Received and sent packets would be indistinguishable.
    #[error("groups {0} and {1} are invalid: give two different groups other than 0")]
    Groups(u32, u32),
}

fn known(collectors: &[String]) -> String {
    match collectors {
        [] => String::new(),
        list => format!(": there is {}", list.join(", ")),
    }
}

impl SFlowError {
    /// The number by which the binary API knows it.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            SFlowError::NotAPort(_) | SFlowError::Device(_) => -2,
            SFlowError::CollectorUnknown(..) => -6,
            SFlowError::Groups(..) => -7,
            SFlowError::Polling
            | SFlowError::Collector(_)
            | SFlowError::Datagrams(_)
            | SFlowError::AgentAddress(_) => -7,
            SFlowError::CollectorsFull => -162,
            SFlowError::Unchanged { .. } | SFlowError::CollectorExists(_) => -81,
        }
    }
}

/// Settings for all interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Sampling rate N, for one packet in N; 0 for none.
    pub sampling_rate: u32,
    /// The same for interfaces with a link of that speed.
    pub speed_rates: BTreeMap<LinkSpeed, u32>,
    /// Seconds between two polls of an interface's counters, 1 or more.
    pub polling_interval: u32,
    /// Bytes of a sampled packet that are sent.
    pub header_bytes: u16,
    /// Packets that are sampled.
    pub direction: Direction,
    /// Samples name sub-interfaces, in place of their ports.
    pub sub_interfaces: bool,
    /// Dropped packets are reported.
    pub drop_monitoring: bool,
    /// Maximum number of these per second.
    pub drop_limit: u32,
    /// Settings of the agent.
    pub export: ExportSettings,
    /// Settings of the netlink export.
    pub netlink: NetlinkSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            sampling_rate: DEFAULT_RATE,
            speed_rates: BTreeMap::new(),
            polling_interval: DEFAULT_POLLING,
            header_bytes: DEFAULT_HEADER_BYTES,
            direction: Direction::Rx,
            sub_interfaces: false,
            drop_monitoring: false,
            drop_limit: DEFAULT_DROP_LIMIT,
            export: ExportSettings::default(),
            netlink: NetlinkSettings::default(),
        }
    }
}

/// Returns one of the values that hold for all interfaces.
pub(crate) fn values<T>(c: &Control, of: impl FnOnce(&Settings) -> T) -> Option<T> {
    Some(of(&c.state::<SFlow>().borrow().settings))
}

impl From<SFlowError> for Refused {
    fn from(error: SFlowError) -> Refused {
        Refused::new(error.code(), error)
    }
}

/// Other ends of what workers' taps write to, left here as taps are built.
#[derive(Default)]
pub(crate) struct Taps {
    ends: Mutex<Vec<(SampleReader, Arc<TapStats>)>>,
    bell: Bell,
}

impl Taps {
    pub(crate) fn add(&self, reader: SampleReader, stats: Arc<TapStats>) {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).push((reader, stats));
    }
    /// Returns the bell that wakes the service.
    pub(crate) fn bell(&self) -> Bell {
        self.bell.clone()
    }
    fn take(&self) -> Vec<(SampleReader, Arc<TapStats>)> {
        std::mem::take(&mut *self.ends.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An interface, distinguished from others that had the same index.
#[derive(Clone, Copy, Debug)]
struct Identity {
    generation: u32,
    /// Totals under its number before it came.
    born: IfTotals,
}

/// The arcs that the tap sits on: what is received, sent, dropped.
const ARCS: [&str; 3] = ["device-input", "interface-output", "error-drop"];
/// The last of them.
const DROPS: usize = 2;

/// An interface with sFlow.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    /// Its own rate, if it has one.
    rate: Option<OwnRate>,
    /// Speed of its link, in bits per second; 0 if unknown.
    speed: u64,
    /// Header that its packets begin with.
    link: Link,
    /// True for each of [`ARCS`] on which the tap is enabled.
    on: [bool; ARCS.len()],
}

/// The feature's state.
pub struct SFlow {
    settings: Settings,
    /// Interfaces with sFlow.
    ports: BTreeMap<SwIfIndex, Port>,
    reasons: Arc<Reasons>,
    /// Changes of nodes that they follow.
    reasons_of: Option<u64>,
    identities: BTreeMap<SwIfIndex, Identity>,
    generations: u32,
    taps: Vec<Arc<TapStats>>,
    service: Result<service::Handle, String>,
    /// Sub-interfaces whose drops are reported, and those for which that is to change.
    subs: BTreeSet<SwIfIndex>,
    /// Interfaces with a device of the system.
    twins: BTreeSet<SwIfIndex>,
    changing: VecDeque<(SwIfIndex, bool)>,
    /// The service was given reasons a moment ago.
    settling: bool,
}

/// An interface with sFlow, as `show sflow` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortReport {
    /// Its index, and its number in what is sent.
    pub sw_if: SwIfIndex,
    /// Its name.
    pub name: String,
    /// Its own rate, if it has one.
    pub own_rate: Option<OwnRate>,
    /// The rate that holds.
    pub rate: u32,
    /// Bits per second of its link; 0 if that is not known.
    pub speed: u64,
    /// Packets seen, samples taken and lost.
    pub totals: PortTotals,
    /// Samples sent.
    pub sent: u64,
}

/// All that `show sflow` shows.
#[derive(Clone, Debug)]
pub struct Report {
    /// Settings for all interfaces.
    pub settings: Settings,
    /// Interfaces with sFlow by index.
    pub ports: Vec<PortReport>,
    /// Packets seen, samples taken and lost on all interfaces that ever had sFlow.
    pub totals: PortTotals,
    /// Dropped packets suppressed by the limit.
    pub drops_suppressed: u64,
    /// Results of the service, or why it does not run.
    pub service: Result<Status, String>,
    /// Sockets that listen to netlink's samples, counters and drops, where that is known.
    pub listeners: [Option<Listeners>; 3],
}

pub(crate) fn init(c: &mut Control) {
    c.share(Arc::new(Taps::default()));
    c.insert(SFlow {
        settings: Settings::default(),
        ports: BTreeMap::new(),
        reasons: Arc::default(),
        reasons_of: None,
        identities: BTreeMap::new(),
        generations: 0,
        taps: Vec::new(),
        service: Err("the sflow thread is not running yet".into()),
        subs: BTreeSet::new(),
        twins: BTreeSet::new(),
        changing: VecDeque::new(),
        settling: false,
    });
    c.subscribe(|c, &event: &InterfaceEvent| match event {
        InterfaceEvent::Created(sw_if) => {
            let born = c.interface_totals_raw(sw_if);
            c.state::<SFlow>().borrow_mut().identify(sw_if, born);
            if follow_if_sampling(c, sw_if) {
                follow_new_sub(c, sw_if);
            }
        }
        InterfaceEvent::Deleted(sw_if) => forget(c, sw_if),
        InterfaceEvent::State(sw_if) | InterfaceEvent::Mac(sw_if) => {
            if c.state::<SFlow>().borrow().ports.contains_key(&sw_if) {
                note_speed(c, sw_if);
                tell_port(c, sw_if);
            }
            follow_if_sampling(c, sw_if);
        }
        InterfaceEvent::Mtu(sw_if)
        | InterfaceEvent::Tag(sw_if)
        | InterfaceEvent::Promiscuous(sw_if) => {
            follow_if_sampling(c, sw_if);
        }
        InterfaceEvent::Twin(sw_if) => follow_twin(c, sw_if),
    });
}

/// Follows the system's device for an interface. The first that has one, and the last, change the
/// numbers of all.
fn follow_twin(c: &mut Control, sw_if: SwIfIndex) {
    let has_twin = interface::view(c, sw_if).is_ok_and(|view| view.twin.is_some());
    let is_for_all = {
        let state = c.state::<SFlow>();
        let twins = &mut state.borrow_mut().twins;
        let had_some = !twins.is_empty();
        match has_twin {
            true => _ = twins.insert(sw_if),
            false => _ = twins.remove(&sw_if),
        }
        had_some == twins.is_empty()
    };
    if is_for_all {
        publish(c);
    } else {
        follow_if_sampling(c, sw_if);
    }
}

/// Makes the service follow a change of any interface: samples name those by which packets leave,
/// too. Returns whether it samples anything.
fn follow_if_sampling(c: &mut Control, sw_if: SwIfIndex) -> bool {
    let samples = !c.state::<SFlow>().borrow().ports.is_empty();
    if samples {
        follow(c, sw_if);
    }
    samples
}

pub(crate) fn ready(c: &mut Control) {
    let ends = c.shared::<Taps>();
    let (rings, bell) = (ends.take(), ends.bell());
    let taps = rings.iter().map(|(_, tap)| tap.clone()).collect();
    let service = service::start(c, rings, &bell, setup(c));
    if let Err(error) = &service {
        tracing::error!("sflow: cannot start the thread: {error}");
    }
    let state = c.state::<SFlow>();
    let mut state = state.borrow_mut();
    (state.taps, state.service) = (taps, service.map_err(|e| e.to_string()));
}

impl SFlow {
    /// Returns the settings for all interfaces.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Interfaces with sFlow by index, with the rate of their own if they have one.
    pub fn ports(&self) -> impl Iterator<Item = (SwIfIndex, Option<OwnRate>)> + '_ {
        self.ports.iter().map(|(sw_if, port)| (*sw_if, port.rate))
    }

    fn identify(&mut self, sw_if: SwIfIndex, born: IfTotals) -> Identity {
        self.generations = self.generations.wrapping_add(1).max(1);
        let identity = Identity { generation: self.generations, born };
        self.identities.insert(sw_if, identity);
        identity
    }

    /// The rate that holds: an interface's own, or that of its speed, or the general one. A rate
    /// that follows the speed is the general one while the speed is not known.
    fn rate(&self, port: &Port) -> u32 {
        let rate = match port.rate {
            Some(OwnRate::Fixed(rate)) => Some(rate),
            Some(OwnRate::Auto) => auto_rate(port.speed),
            None => self.settings.speed_rates.get(&LinkSpeed(port.speed)).copied(),
        };
        rate.unwrap_or(self.settings.sampling_rate)
    }

    /// Returns the message that tells the tap about an interface.
    fn port_message(&self, sw_if: SwIfIndex) -> Option<TapMessage> {
        let port = self.ports.get(&sw_if)?;
        let generation = self.identities.get(&sw_if)?.generation;
        let rate = self.rate(port);
        let [rx, tx, drops] = self.wanted();
        let of = |wanted: bool| if wanted { rate } else { 0 };
        let (rx_rate, tx_rate, link) = (of(rx), of(tx), port.link);
        Some(TapMessage::Port { sw_if, generation, rx_rate, tx_rate, drops, link })
    }

    /// The arcs on which the tap is enabled.
    fn wanted(&self) -> [bool; ARCS.len()] {
        let direction = self.settings.direction;
        let (rx, tx) = (direction != Direction::Tx, direction != Direction::Rx);
        [rx, tx, self.settings.drop_monitoring]
    }
}

/// Enables the tap where an interface with sFlow needs it, and nowhere else.
fn arrange(c: &mut Control, sw_if: SwIfIndex) -> Result<(), SFlowError> {
    let state = c.state::<SFlow>();
    let (wanted, on) = {
        let s = state.borrow();
        let port = s.ports.get(&sw_if);
        (
            port.map_or([false; ARCS.len()], |_| s.wanted()),
            port.map_or_else(Default::default, |p| p.on),
        )
    };
    switch(c, sw_if, on, wanted)?;
    if on[DROPS] != wanted[DROPS] {
        follow_subs(c, sw_if, wanted[DROPS]);
    }
    if let Some(port) = state.borrow_mut().ports.get_mut(&sw_if) {
        port.on = wanted;
    }
    Ok(())
}

/// Enables and disables the tap on an interface.
fn switch(
    c: &mut Control,
    sw_if: SwIfIndex,
    from: [bool; ARCS.len()],
    to: [bool; ARCS.len()],
) -> Result<(), SFlowError> {
    for (arc, (from, to)) in ARCS.into_iter().zip(from.into_iter().zip(to)) {
        if from != to {
            c.enable_feature(arc, "sflow", sw_if, to)
                .map_err(|e| DeviceError::Failed(e.to_string()))?;
        }
    }
    Ok(())
}

/// Does so for all, after settings have changed for all.
fn arrange_all(c: &mut Control) -> Result<(), SFlowError> {
    let ports: Vec<SwIfIndex> = c.state::<SFlow>().borrow().ports.keys().copied().collect();
    for sw_if in ports {
        tell_port(c, sw_if);
        arrange(c, sw_if)?;
    }
    publish(c);
    Ok(())
}

/// Rate of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// The rate is as before; the general one if it had no sFlow.
    Kept,
    /// The general one, or that of its link's speed.
    General,
    /// Its own; 0 takes nothing.
    Own(u32),
    /// The rate of its link's speed: one packet in as many as it has megabits per second.
    Auto,
}

/// A rate of an interface's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnRate {
    /// One packet in as many.
    Fixed(u32),
    /// One packet in as many as the link has megabits per second.
    Auto,
}

impl fmt::Display for OwnRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnRate::Fixed(rate) => rate.fmt(f),
            OwnRate::Auto => f.write_str("auto"),
        }
    }
}

/// The rate for a link of a speed in bits per second; `None` for 0, which is unknown.
fn auto_rate(speed: u64) -> Option<u32> {
    (speed > 0).then(|| u32::try_from(speed / 1_000_000).unwrap_or(u32::MAX).max(1))
}

/// Enables sFlow on an interface. On one that has it already, only another rate is a change.
///
/// # Errors
/// If there is no such interface, it is no port, or nothing would change.
pub fn enable(c: &mut Control, sw_if: SwIfIndex, rate: Rate) -> Result<(), SFlowError> {
    let view = port(c, sw_if)?;
    let state = c.state::<SFlow>();
    let (known, identified) = {
        let s = state.borrow();
        (s.ports.get(&sw_if).map(|p| p.rate), s.identities.contains_key(&sw_if))
    };
    let own = match rate {
        Rate::Kept => known.flatten(),
        Rate::General => None,
        Rate::Own(rate) => Some(OwnRate::Fixed(rate)),
        Rate::Auto => Some(OwnRate::Auto),
    };
    if known == Some(own) {
        return Err(SFlowError::Unchanged { name: view.name, enabled: true });
    }
    if !identified {
        // The interface was there before this feature: all counts are its own.
        state.borrow_mut().identify(sw_if, IfTotals::default());
    }
    let is_first = {
        let mut s = state.borrow_mut();
        let is_first = s.ports.is_empty();
        let port = s.ports.entry(sw_if).or_default();
        (port.rate, port.link) = (own, Link::of(&view));
        is_first
    };
    note_speed(c, sw_if);
    tell_port(c, sw_if);
    arrange(c, sw_if)?;
    // The service is notified of new interfaces only as long as one has sFlow.
    if is_first {
        publish(c)
    } else {
        follow(c, sw_if)
    }
    Ok(())
}

/// Disables sFlow on an interface. Samples that were taken are still sent.
///
/// # Errors
/// If there is no such interface, it is no port, or has no sFlow.
pub fn disable(c: &mut Control, sw_if: SwIfIndex) -> Result<(), SFlowError> {
    let view = port(c, sw_if)?;
    let Some(port) = c.state::<SFlow>().borrow_mut().ports.remove(&sw_if) else {
        return Err(SFlowError::Unchanged { name: view.name, enabled: false });
    };
    switch(c, sw_if, port.on, Default::default())?;
    if port.on[DROPS] {
        follow_subs(c, sw_if, false);
    }
    tell_drops(c, sw_if, false);
    follow(c, sw_if);
    Ok(())
}

/// Sets the rate of interfaces that have none of their own, nor one by the speed of their link; 0
/// takes nothing.
pub fn set_sampling_rate(c: &mut Control, rate: u32) {
    c.state::<SFlow>().borrow_mut().settings.sampling_rate = rate;
    tell_ports(c);
}

/// Sets the rate of interfaces whose link has that speed, and that have none of their own; `None`
/// gives them the general one again.
pub fn set_speed_rate(c: &mut Control, speed: LinkSpeed, rate: Option<u32>) {
    let state = c.state::<SFlow>();
    match rate {
        Some(rate) => state.borrow_mut().settings.speed_rates.insert(speed, rate),
        None => state.borrow_mut().settings.speed_rates.remove(&speed),
    };
    tell_ports(c);
}

/// Sets the seconds between two polls of an interface's counters.
///
/// # Errors
/// If it is 0.
pub fn set_polling_interval(c: &mut Control, seconds: u32) -> Result<(), SFlowError> {
    if seconds == 0 {
        return Err(SFlowError::Polling);
    }
    c.state::<SFlow>().borrow_mut().settings.polling_interval = seconds;
    publish(c);
    Ok(())
}

/// Rounds a number of header bytes to a valid one.
pub(crate) fn header_bytes(bytes: u32) -> u16 {
    let (min, max) = HEADER_BYTES;
    let bytes = bytes.min(u32::from(max)) as u16;
    bytes.next_multiple_of(HEADER_STEP).clamp(min, max)
}

/// Sets how many bytes of a sampled packet are sent: rounded up to a multiple of [`HEADER_STEP`],
/// within [`HEADER_BYTES`]. Returns what it came to.
pub fn set_header_bytes(c: &mut Control, bytes: u32) -> u16 {
    let bytes = header_bytes(bytes);
    c.state::<SFlow>().borrow_mut().settings.header_bytes = bytes;
    send_to_taps(c, TapMessage::HeaderBytes(bytes));
    bytes
}

/// Sets which packets are sampled. A direction that stays is sampled without a gap.
///
/// # Errors
/// If the engine refuses.
pub fn set_direction(c: &mut Control, direction: Direction) -> Result<(), SFlowError> {
    c.state::<SFlow>().borrow_mut().settings.direction = direction;
    arrange_all(c)
}

/// Sets whether samples name sub-interfaces in place of their ports.
///
/// # Errors
/// If the engine refuses.
pub fn set_sub_interfaces(c: &mut Control, on: bool) -> Result<(), SFlowError> {
    c.state::<SFlow>().borrow_mut().settings.sub_interfaces = on;
    arrange_all(c)
}

/// Enables or disables drop samples of interfaces with sFlow, with a limit per second.
///
/// # Errors
/// If the engine refuses.
pub fn set_drop_monitoring(c: &mut Control, on: bool, limit: u32) -> Result<(), SFlowError> {
    {
        let state = c.state::<SFlow>();
        let settings = &mut state.borrow_mut().settings;
        (settings.drop_monitoring, settings.drop_limit) = (on, limit);
    }
    send_to_taps(c, TapMessage::DropLimit(limit));
    arrange_all(c)
}

/// Returns all that `show sflow` shows.
#[must_use]
pub fn report(c: &Control) -> Report {
    let state = c.state::<SFlow>();
    let state = state.borrow();
    let service = state.service.as_ref().map(service::Handle::status).map_err(Clone::clone);
    let sent = |sw_if: SwIfIndex| {
        let status = service.as_ref().ok()?;
        status.sent_by_port.get(sw_if.index()).copied()
    };
    let ports = state.ports.iter().map(|(sw_if, port)| PortReport {
        sw_if: *sw_if,
        name: c.interface_name(*sw_if),
        own_rate: port.rate,
        rate: state.rate(port),
        speed: port.speed,
        totals: PortTotals::of(state.taps.iter().map(Arc::as_ref), *sw_if),
        sent: sent(*sw_if).unwrap_or(0),
    });
    let ports = ports.collect();
    let reported = service.as_ref().is_ok_and(|status| status.netlink_wanted);
    let listeners = Channel::ALL.map(|channel| reported.then(|| listeners(channel)).flatten());
    let totals = PortTotals::of_all(state.taps.iter().map(Arc::as_ref));
    let by_service = service.as_ref().map_or(0, |status| status.drops_limited);
    let drops_suppressed =
        state.taps.iter().map(|tap| tap.suppressed.get()).sum::<u64>() + by_service;
    Report { settings: state.settings.clone(), ports, totals, drops_suppressed, service, listeners }
}

/// The interface, if packets are sampled on its kind.
fn port(c: &Control, sw_if: SwIfIndex) -> Result<InterfaceView, SFlowError> {
    let view = interface::view(c, sw_if)?;
    if is_port(&view) { Ok(view) } else { Err(SFlowError::NotAPort(view.name)) }
}

/// True if packets are sampled on its kind: not on `local0`, nor on parts of another interface.
pub(crate) fn is_port(view: &InterfaceView) -> bool {
    view.sw_if != SwIfIndex(0) && !matches!(view.dev_type, "local" | "sub-interface")
}

fn forget(c: &mut Control, sw_if: SwIfIndex) {
    let state = c.state::<SFlow>();
    let (port, identity) = {
        let mut s = state.borrow_mut();
        s.subs.remove(&sw_if);
        s.twins.remove(&sw_if);
        (s.ports.remove(&sw_if), s.identities.remove(&sw_if))
    };
    if let Some(port) = port {
        // The tap is known; the interface still exists.
        let _ = switch(c, sw_if, port.on, Default::default());
    }
    if identity.is_some() {
        send_to_taps(c, TapMessage::Forget { sw_if });
        follow(c, sw_if);
    }
}

fn send_to_taps(c: &mut Control, message: TapMessage) {
    if let Some(node) = c.node("sflow") {
        c.message_all(node, |_| Box::new(message));
    }
}

/// Looks at the speed of an interface's link, which may give it a rate.
fn note_speed(c: &Control, sw_if: SwIfIndex) {
    let speed = interface::view(c, sw_if).map_or(0, |view| u64::from(view.speed_kbps) * 1000);
    if let Some(port) = c.state::<SFlow>().borrow_mut().ports.get_mut(&sw_if) {
        port.speed = speed;
    }
}

fn tell_ports(c: &mut Control) {
    let ports: Vec<SwIfIndex> = c.state::<SFlow>().borrow().ports.keys().copied().collect();
    for sw_if in ports {
        tell_port(c, sw_if);
    }
}

fn tell_port(c: &mut Control, sw_if: SwIfIndex) {
    let message = c.state::<SFlow>().borrow().port_message(sw_if);
    if let Some(message) = message {
        send_to_taps(c, message);
    }
}

/// Starts or stops drop samples of an interface that is not sampled: in a frame of many interfaces,
/// the tap sees its packets in any case.
fn tell_drops(c: &mut Control, sw_if: SwIfIndex, drops: bool) {
    let generation = c.state::<SFlow>().borrow().identities.get(&sw_if).map(|i| i.generation);
    if let Some(generation) = generation {
        let (rx_rate, tx_rate, link) = (0, 0, Link::default());
        send_to_taps(c, TapMessage::Port { sw_if, generation, rx_rate, tx_rate, drops, link });
    }
}

/// Sub-interfaces for which drop samples are started or stopped at once: there may be thousands.
const SUBS: usize = 512;

/// Reports drops of packets that came by the sub-interfaces of a port, or no more: their packets
/// are the port's.
fn follow_subs(c: &mut Control, port: SwIfIndex, on: bool) {
    let subs: Vec<SwIfIndex> = {
        let all = c.state::<Interfaces>();
        let all = all.borrow();
        all.subs_of(port).collect()
    };
    change_subs(c, subs.into_iter().map(|sub| (sub, on)));
}

/// The same for a sub-interface that has come.
fn follow_new_sub(c: &mut Control, sw_if: SwIfIndex) {
    let parent = interface::view(c, sw_if).ok().and_then(|view| view.parent);
    let state = c.state::<SFlow>();
    let is_on = |p: SwIfIndex| state.borrow().ports.get(&p).is_some_and(|port| port.on[DROPS]);
    if parent.is_some_and(is_on) {
        change_subs(c, std::iter::once((sw_if, true)));
    }
}

fn change_subs(c: &mut Control, subs: impl Iterator<Item = (SwIfIndex, bool)>) {
    let state = c.state::<SFlow>();
    let was_idle = {
        let changing = &mut state.borrow_mut().changing;
        let was_idle = changing.is_empty();
        changing.extend(subs);
        was_idle
    };
    if was_idle {
        change_some_subs(c);
    }
}

fn change_some_subs(c: &mut Control) {
    let state = c.state::<SFlow>();
    for _ in 0..SUBS {
        let Some((sub, on)) = state.borrow_mut().changing.pop_front() else { return };
        // The sub-interface may have gone since.
        if interface::view(c, sub).is_err() || state.borrow().subs.contains(&sub) == on {
            continue;
        }
        if let Err(error) = c.enable_feature(ARCS[DROPS], "sflow", sub, on) {
            tracing::error!("sflow: drops of {}: {error}", c.interface_name(sub));
            continue;
        }
        match on {
            true => state.borrow_mut().subs.insert(sub),
            false => state.borrow_mut().subs.remove(&sub),
        };
        tell_drops(c, sub, on);
    }
    c.after(Duration::ZERO, change_some_subs);
}
