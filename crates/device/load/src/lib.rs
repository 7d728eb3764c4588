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
pub use witness::Dropped;

use std::sync::mpsc::{Receiver, channel};

use ends::Ends;
use hosts::{Hosts, Message, now, now_nanos};
use thalweg_device::{DeviceError, MacAddr, SwIfIndex, interface};
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

/// A port that cannot be impaired.
#[derive(Debug, thiserror::Error)]
pub enum ImpairError {
    /// Not a port of the load tester.
    #[error("{0} is not a port of the load tester")]
    NotOurs(String),
    /// No such interface.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The arc.
    #[error(transparent)]
    Arc(#[from] thalweg_graph::arc::ArcError),
}

/// Has packets of the hosts behind a port lost, damaged, repeated or delayed from now on; the
/// default of [`Impairment`] ends that.
///
/// # Errors
/// [`ImpairError`].
pub fn impair(c: &mut Control, port: SwIfIndex, is: Impairment) -> Result<(), ImpairError> {
    let view = interface::view(c, port)?;
    if view.dev_type != port::DEV_TYPE {
        return Err(ImpairError::NotOurs(view.name.to_string()));
    }
    let loses = is.lose > 0 || is.damage > 0;
    c.enable_feature("device-input", impair::NODE.name, port, loses)?;
    if let Some(node) = c.node(impair::NODE.name) {
        c.message(WORKER, node, Box::new(impair::Set(port, is)));
    }
    tell(c, Message::Line(port, is));
    Ok(())
}

/// Has packets noted from now on that the graph drops of what these ports receive: those of streams
/// with tags of this trial and seed.
///
/// # Errors
/// If a port is none.
pub fn witness(
    c: &mut Control,
    ports: &[SwIfIndex],
    trial: u8,
    seed: u64,
) -> Result<(), thalweg_graph::arc::ArcError> {
    for port in ports {
        c.enable_feature("error-drop", witness::NODE.name, *port, true)?;
    }
    if let Some(node) = c.node(witness::NODE.name) {
        let new = Box::new(witness::Witness::new(trial, seed));
        c.message(WORKER, node, Box::new(witness::Ask::Begin(new)));
    }
    Ok(())
}

/// Asks which packets were dropped since the last [`witness`], in the order in which they were: the
/// first ones of each stream and reason.
pub fn ask_dropped(c: &mut Control) -> Receiver<Vec<Dropped>> {
    let (answer, answers) = channel();
    if let Some(node) = c.node(witness::NODE.name) {
        c.message(WORKER, node, Box::new(witness::Ask::Tell(answer)));
    }
    answers
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
