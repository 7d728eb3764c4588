//! Ports behind which the load tester's hosts are: what a port sends they hear, and what they say
//! the port receives, all in the worker that forwards it.
//!
//! A device under test in this process has such ports as its interfaces. There is no link between
//! the two that could lose packets, so what is lost was lost by the device.

#![forbid(unsafe_code)]

pub mod cli;
mod ends;
mod hosts;
mod impair;
mod input;
mod line;
mod port;
mod witness;

pub use ends::{Change, DirectionReport, Progress, StreamReport, Times};
pub use hosts::Report;
pub use impair::Impairment;
pub use port::PortError;
pub use witness::{Dropped, What};

use std::sync::mpsc::{Receiver, channel};

use ends::Ends;
use hosts::{Hosts, Message, now, now_nanos};
use thalweg_buffer::LOCAL_IF;
use thalweg_device::{DeviceError, Interfaces, MacAddr, SwIfIndex, interface};
use thalweg_engine::Feature;
use thalweg_graph::Control;
use thalweg_load::stream::{self, Side};
use thalweg_load::talk::{Clients, Opening, Plan, PlanError, Servers};

/// The ports and the node that their hosts send from.
pub static FEATURE: Feature = Feature {
    name: "load",
    about: "hosts of the load tester",
    nodes: &[&impair::NODE, &input::NODE, &witness::NODE],
    commands: cli::COMMANDS,
    needs: &["interface"],
    ..Feature::DEFAULT
};

/// The same without ports, for a router that is a device under test in a process of its own: it
/// can lose packets on purpose, and say which packets it has dropped.
pub static PROBE: Feature = Feature {
    name: "load-probe",
    about: "what the load tester asks of a device",
    nodes: &[&impair::NODE, &witness::NODE],
    commands: cli::COMMANDS,
    needs: &["interface"],
    ..Feature::DEFAULT
};

/// The worker that hosts belong to.
const WORKER: usize = 0;

/// Creates a port, which is up and has no hosts yet.
///
/// # Errors
/// [`PortError`].
pub fn create(c: &mut Control, name: &str, mac: MacAddr) -> Result<SwIfIndex, PortError> {
    port::create(c, name, mac)
}

/// Puts a plan's clients behind a port, in place of other hosts.
///
/// # Errors
/// [`PlanError`].
pub fn set_clients(
    c: &mut Control,
    port: SwIfIndex,
    plan: &Plan,
    seed: u64,
) -> Result<(), PlanError> {
    let clients = Clients::new(plan, seed, now())?;
    tell(c, Message::Hosts(port, vec![Hosts::Clients(clients)]));
    Ok(())
}

/// Puts a plan's servers behind a port, in place of other hosts.
///
/// # Errors
/// [`PlanError`].
pub fn set_servers(
    c: &mut Control,
    port: SwIfIndex,
    plan: &Plan,
    seed: u64,
) -> Result<(), PlanError> {
    let servers = Servers::new(plan, seed, now())?;
    tell(c, Message::Hosts(port, vec![Hosts::Servers(servers)]));
    Ok(())
}

/// A plan that no hosts can have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HostsError {
    /// Of connections.
    #[error(transparent)]
    Talks(#[from] PlanError),
    /// Of streams.
    #[error(transparent)]
    Streams(#[from] stream::PlanError),
}

/// Puts the hosts of several plans behind two ports, in place of other hosts: clients and the first
/// ends of streams behind the first. Their addresses and ports must tell the plans apart; `talks`
/// number the clients.
///
/// # Errors
/// [`HostsError`].
pub fn set_hosts(
    c: &mut Control,
    [a, b]: [SwIfIndex; 2],
    talks: &[&Plan],
    streams: Option<&stream::Plan>,
    seed: u64,
) -> Result<(), HostsError> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for plan in talks {
        first.push(Hosts::Clients(Clients::new(plan, seed, now())?));
        second.push(Hosts::Servers(Servers::new(plan, seed, now())?));
    }
    if let Some(plan) = streams {
        first.push(Hosts::Streams(Ends::new(plan, Side::A, seed, now_nanos())?));
        second.push(Hosts::Streams(Ends::new(plan, Side::B, seed, now_nanos())?));
    }
    tell(c, Message::Hosts(a, first));
    tell(c, Message::Hosts(b, second));
    Ok(())
}

/// Says how many conversations the clients with this number behind a port open from now on.
pub fn set_opening(c: &mut Control, port: SwIfIndex, clients: usize, opening: Opening) {
    tell(c, Message::Opening(port, clients, opening));
}

/// Says whether conversations that the clients with this number behind a port open from now on
/// belong to the window of a trial.
pub fn set_judging(c: &mut Control, port: SwIfIndex, clients: usize, judging: bool) {
    tell(c, Message::Judging(port, clients, judging));
}

/// Ends all conversations of the hosts behind a port, without a packet.
pub fn abandon(c: &mut Control, port: SwIfIndex) {
    tell(c, Message::Abandon(port));
}

/// Asks for the counters of clients and servers behind ports, all at one time. The answer has a
/// list for each port, in the order in which they were put there.
pub fn ask(c: &mut Control, ports: &[SwIfIndex]) -> Receiver<Vec<Vec<Report>>> {
    let (answer, answers) = channel();
    tell(c, Message::Report(ports.to_vec(), answer));
    answers
}

/// Puts both ends of a plan's streams behind two ports, in place of other hosts.
///
/// # Errors
/// [`stream::PlanError`].
pub fn set_streams(
    c: &mut Control,
    ports: [SwIfIndex; 2],
    plan: &stream::Plan,
    seed: u64,
) -> Result<(), stream::PlanError> {
    for (port, side) in ports.into_iter().zip([Side::A, Side::B]) {
        let ends = Ends::new(plan, side, seed, now_nanos())?;
        tell(c, Message::Hosts(port, vec![Hosts::Streams(ends)]));
    }
    Ok(())
}

/// Changes the streams of two ports.
pub fn change_streams(c: &mut Control, ports: [SwIfIndex; 2], change: Change) {
    for port in ports {
        tell(c, Message::Change(port, change));
    }
}

/// Asks what became of the streams between two ports, from the first to the second and the other
/// way round. Their books are right once nothing is on its way any more.
pub fn ask_streams(c: &mut Control, ports: [SwIfIndex; 2]) -> Receiver<[DirectionReport; 2]> {
    let (answer, answers) = channel();
    tell(c, Message::Streams(ports, answer));
    answers
}

/// Asks what the streams between two ports have sent and received so far.
pub fn ask_progress(c: &mut Control, ports: [SwIfIndex; 2]) -> Receiver<[Progress; 2]> {
    let (answer, answers) = channel();
    tell(c, Message::Progress(ports, answer));
    answers
}

/// Asks for the latency of the streams between two ports so far: the worst of the first ones.
pub fn ask_times(c: &mut Control, ports: [SwIfIndex; 2]) -> Receiver<Times> {
    let (answer, answers) = channel();
    tell(c, Message::Times(ports, answer));
    answers
}

/// An interface that cannot be impaired.
#[derive(Debug, thiserror::Error)]
pub enum ImpairError {
    /// Not a port of the load tester.
    #[error(
        "{0} is not a port of the load tester: only those can repeat or delay packets; other \
         Ethernet interfaces can lose and damage them"
    )]
    NotOurs(String),
    /// Its packets are none that the tester sends.
    #[error("{0} is not a port of the load tester, and receives no Ethernet frames")]
    NoFrames(String),
    /// No such interface.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The arc.
    #[error(transparent)]
    Arc(#[from] thalweg_graph::arc::ArcError),
}

/// Has packets that an interface receives lost or damaged from now on; those of the hosts behind a
/// port also repeated or delayed. The default of [`Impairment`] ends that. Each worker has a chance
/// of its own.
///
/// # Errors
/// [`ImpairError`].
pub fn impair(c: &mut Control, sw_if: SwIfIndex, is: Impairment) -> Result<(), ImpairError> {
    let view = interface::view(c, sw_if)?;
    let is_port = view.dev_type == port::DEV_TYPE;
    if !is_port && (is.repeat > 0 || is.delay > 0 || is.jitter > 0) {
        return Err(ImpairError::NotOurs(view.name));
    }
    // Sub-interfaces have no `device-input` of their own.
    if !is_port && (!view.ethernet || view.parent.is_some() || sw_if == LOCAL_IF) {
        return Err(ImpairError::NoFrames(view.name));
    }
    let loses = is.lose > 0 || is.damage > 0;
    c.enable_feature("device-input", impair::NODE.name, sw_if, loses)?;
    if let Some(node) = c.node(impair::NODE.name) {
        c.message_all(node, |worker| {
            let seed = is.seed.wrapping_add(worker as u64);
            Box::new(impair::Set(sw_if, Impairment { seed, ..is }))
        });
    }
    tell(c, Message::Line(sw_if, is));
    Ok(())
}

/// Has packets noted from now on that the graph drops, whatever interface received them: those of
/// streams with tags of this trial and seed.
///
/// # Errors
/// If there are too many combinations of features.
pub fn witness(c: &mut Control, trial: u8, seed: u64) -> Result<(), thalweg_graph::arc::ArcError> {
    let all: Vec<SwIfIndex> =
        c.state::<Interfaces>().borrow().iter().map(|view| view.sw_if).collect();
    for sw_if in all {
        c.enable_feature("error-drop", witness::NODE.name, sw_if, true)?;
    }
    if let Some(node) = c.node(witness::NODE.name) {
        c.message_all(node, |_| {
            Box::new(witness::Ask::Begin(Box::new(witness::Witness::new(trial, seed))))
        });
    }
    Ok(())
}

/// Has packets of conversations noted as well from now on: they have no tags that say whether they
/// are of a window.
pub fn witness_talks(c: &mut Control) {
    if let Some(node) = c.node(witness::NODE.name) {
        c.message_all(node, |_| Box::new(witness::Ask::Talks));
    }
}

/// Asks which packets were dropped since the last [`witness`], and has no more noted. Each worker
/// answers, with the first ones of each stream and reason in the order in which they were dropped.
pub fn ask_dropped(c: &mut Control) -> Receiver<Vec<Dropped>> {
    let (answer, answers) = channel();
    if let Some(node) = c.node(witness::NODE.name) {
        c.message_all(node, |_| Box::new(witness::Ask::Tell(answer.clone())));
    }
    answers
}

/// The node that dropped a packet, and its reason.
pub fn place(c: &Control, dropped: &Dropped) -> (String, String) {
    let Some((node, decl)) = c.errors().get(dropped.reason as usize) else {
        return (String::new(), String::new());
    };
    let node = c.nodes().get(usize::from(node.0));
    let name = node.map_or_else(|| "unknown node".to_owned(), |node| node.name.to_string());
    (name, decl.text.to_owned())
}

fn tell(c: &mut Control, message: Message) {
    let Some(node) = c.node(input::NODE.name) else { return };
    c.message(WORKER, node, Box::new(message));
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
