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

pub use ends::{Change, DirectionReport, Progress, StreamReport};
pub use hosts::Report;
pub use impair::Impairment;
pub use port::PortError;

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
    nodes: &[&impair::NODE, &input::NODE],
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
    tell(c, Message::Hosts(port, Box::new(Hosts::Clients(clients))));
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
    tell(c, Message::Hosts(port, Box::new(Hosts::Servers(servers))));
    Ok(())
}

/// Says how many conversations clients behind a port open from now on.
pub fn set_opening(c: &mut Control, port: SwIfIndex, opening: Opening) {
    tell(c, Message::Opening(port, opening));
}

/// Says whether conversations that are opened from now on belong to the window of a trial.
pub fn set_judging(c: &mut Control, port: SwIfIndex, judging: bool) {
    tell(c, Message::Judging(port, judging));
}

/// Ends all conversations of the hosts behind a port, without a packet.
pub fn abandon(c: &mut Control, port: SwIfIndex) {
    tell(c, Message::Abandon(port));
}

/// Asks for the counters of the hosts behind ports, all at one time. The answer has one for each;
/// `None` for a port without hosts.
pub fn ask(c: &mut Control, ports: &[SwIfIndex]) -> Receiver<Vec<Option<Report>>> {
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
        tell(c, Message::Hosts(port, Box::new(Hosts::Streams(ends))));
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
