//! Ports behind which the load tester's hosts are: what a port sends they hear, and what they say
//! the port receives.
//!
//! Workers share the hosts out: each has its part of the clients, of the servers' conversations,
//! and of the packets of streams. A worker hands over packets that are for another one.
//!
//! A device under test in this process has such ports as its interfaces. No link between the two
//! could lose packets: what is lost, the device has lost.

#![forbid(unsafe_code)]

mod answers;
pub mod cli;
mod ends;
mod hear;
mod hosts;
mod impair;
mod input;
mod line;
mod port;
mod witness;

pub use answers::Answers;
pub use ends::{Change, DirectionReport, Progress, StreamReport, Times};
pub use hosts::Report;
pub use impair::Impairment;
pub use port::PortError;
pub use witness::{Dropped, What};

use ends::Ends;
use hosts::{Behind, Hosts, Message, now, now_nanos};
use thalweg_buffer::LOCAL_IF;
use thalweg_device::{DeviceError, Interfaces, MacAddr, SwIfIndex, interface};
use thalweg_engine::Feature;
use thalweg_graph::Control;
use thalweg_load::stream::{self, Side};
use thalweg_load::talk::{Clients, Opening, Plan, PlanError, Servers};
use thalweg_load::{MAX_PARTS, Part};

/// The ports and the node that their hosts send from.
pub static FEATURE: Feature = Feature {
    name: "load",
    about: "hosts of the load tester",
    nodes: &[&hear::NODE, &impair::NODE, &input::NODE, &witness::NODE],
    commands: cli::COMMANDS,
    needs: &[&thalweg_device::FEATURE],
    init: |c| {
        // Before the start this cannot fail; the start reports missing nodes.
        let _ = c.add_hand_off(HAND_OFF, hear::NODE.name);
    },
    ..Feature::DEFAULT
};

/// The same without ports, for a router that is a device under test in a process of its own: it
/// can lose packets on purpose, and say which packets it has dropped.
pub static PROBE: Feature = Feature {
    name: "load-probe",
    about: "what the load tester asks of a device",
    nodes: &[&impair::NODE, &witness::NODE],
    commands: cli::COMMANDS,
    needs: &[&thalweg_device::FEATURE],
    ..Feature::DEFAULT
};

/// The queue by which packets reach the worker that they are for.
pub const HAND_OFF: &str = hear::QUEUE;

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
    let mut all = nobody(c, true);
    add_talks(&mut all, plan, seed)?;
    give(c, port, all);
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
    let mut all = nobody(c, false);
    add_talks(&mut all, plan, seed)?;
    give(c, port, all);
    Ok(())
}

/// Each worker's part of a port, without hosts so far.
fn nobody(c: &Control, has_clients: bool) -> Vec<Behind> {
    let several = c.workers() > 1;
    let behind = |_| Behind { hosts: Vec::new(), splits: Vec::new(), has_clients, several };
    parts(c).map(behind).collect()
}

/// The workers, as parts of a tester.
fn parts(c: &Control) -> impl Iterator<Item = Part> {
    Part::all(c.workers().min(MAX_PARTS as usize) as u32)
}

/// Adds the clients or the servers of a plan.
fn add_talks(all: &mut [Behind], plan: &Plan, seed: u64) -> Result<(), PlanError> {
    plan.check()?;
    let split = plan.split(all.len() as u32);
    for (part, behind) in Part::all(all.len() as u32).zip(all) {
        let seed = seed.wrapping_add(part.number().into());
        behind.hosts.push(match (split.plan(plan, part), behind.has_clients) {
            (Some(plan), true) => Hosts::Clients(Clients::new(&plan, seed, now())?),
            (Some(plan), false) => Hosts::Servers(Servers::new(&plan, seed, now())?),
            (None, _) => Hosts::Elsewhere,
        });
        if behind.several {
            behind.splits.push((split.clone(), split.share(part)));
        }
    }
    Ok(())
}

/// Adds ends of streams.
fn add_streams(
    all: &mut [Behind],
    plan: &stream::Plan,
    side: Side,
    seed: u64,
) -> Result<(), stream::PlanError> {
    for (part, behind) in Part::all(all.len() as u32).zip(all) {
        behind.hosts.push(Hosts::Streams(Ends::new(plan, side, seed, part, now_nanos())?));
    }
    Ok(())
}

fn give(c: &mut Control, port: SwIfIndex, all: Vec<Behind>) {
    let mut all = all.into_iter();
    tell(c, |_| all.next().map(|behind| Message::Hosts(port, behind)));
}

/// A plan that no hosts can have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HostsError {
    /// Fault in connections.
    #[error(transparent)]
    Talks(#[from] PlanError),
    /// Fault in streams.
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
    let (mut first, mut second) = (nobody(c, true), nobody(c, false));
    for plan in talks {
        add_talks(&mut first, plan, seed)?;
        add_talks(&mut second, plan, seed)?;
    }
    if let Some(plan) = streams {
        add_streams(&mut first, plan, Side::A, seed)?;
        add_streams(&mut second, plan, Side::B, seed)?;
    }
    give(c, a, first);
    give(c, b, second);
    Ok(())
}

/// Sets how many conversations the clients with this number behind a port open from now on.
pub fn set_opening(c: &mut Control, port: SwIfIndex, clients: usize, opening: Opening) {
    tell(c, |_| Some(Message::Opening(port, clients, opening)));
}

/// Sets whether conversations that the clients with this number behind a port open from now on
/// belong to the window of a trial.
pub fn set_judging(c: &mut Control, port: SwIfIndex, clients: usize, judging: bool) {
    tell(c, |_| Some(Message::Judging(port, clients, judging)));
}

/// Ends all conversations of the hosts behind a port, without a packet.
pub fn abandon(c: &mut Control, port: SwIfIndex) {
    tell(c, |_| Some(Message::Abandon(port)));
}

/// Asks for the counters of clients and servers behind ports, all at one time. The answer has a
/// list for each port, in the order in which they were put there.
pub fn ask(c: &mut Control, ports: &[SwIfIndex]) -> Answers<Vec<Vec<Report>>> {
    let add = |sums: &mut Vec<Vec<Report>>, others: Vec<Vec<Report>>| {
        let ports = sums.iter_mut().zip(&others);
        let reports = ports.flat_map(|(sums, others)| sums.iter_mut().zip(others));
        reports.for_each(|(sum, other)| sum.add(other));
    };
    let (answer, answers) = Answers::of(c.workers(), add);
    tell(c, |_| Some(Message::Report(ports.to_vec(), answer.clone())));
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
        let mut all = nobody(c, side == Side::A);
        add_streams(&mut all, plan, side, seed)?;
        give(c, port, all);
    }
    Ok(())
}

/// Changes the streams of two ports.
pub fn change_streams(c: &mut Control, ports: [SwIfIndex; 2], change: Change) {
    for port in ports {
        tell(c, |_| Some(Message::Change(port, change)));
    }
}

/// Asks what became of the streams between two ports, from the first to the second and the other
/// way round. Their books are right once nothing is on its way any more.
pub fn ask_streams(c: &mut Control, ports: [SwIfIndex; 2]) -> Answers<[DirectionReport; 2]> {
    let add = |sums: &mut [DirectionReport; 2], others: [DirectionReport; 2]| {
        sums.iter_mut().zip(others).for_each(|(sum, other)| sum.add(other));
    };
    let (answer, answers) = Answers::of(c.workers(), add);
    tell(c, |_| Some(Message::Streams(ports, answer.clone())));
    answers
}

/// Asks what the streams between two ports have sent and received so far.
pub fn ask_progress(c: &mut Control, ports: [SwIfIndex; 2]) -> Answers<[Progress; 2]> {
    let add = |sums: &mut [Progress; 2], others: [Progress; 2]| {
        sums.iter_mut().zip(others).for_each(|(sum, other)| sum.add(other));
    };
    let (answer, answers) = Answers::of(c.workers(), add);
    tell(c, |_| Some(Message::Progress(ports, answer.clone())));
    answers
}

/// Asks for the latency of the streams between two ports so far: the worst of the first ones.
pub fn ask_times(c: &mut Control, ports: [SwIfIndex; 2]) -> Answers<Times> {
    let (answer, answers) =
        Answers::of(c.workers(), |sum: &mut Times, other| *sum = sum.max(other));
    tell(c, |_| Some(Message::Times(ports, answer.clone())));
    answers
}

/// An interface that cannot be impaired.
#[derive(Debug, thiserror::Error)]
pub enum ImpairError {
    /// The interface is no port of the load tester.
    #[error(
        "{0} is not a port of the load tester: only those can repeat or delay packets; other \
         Ethernet interfaces can lose and damage them"
    )]
    NotOurs(String),
    /// The interface receives no Ethernet frames.
    #[error("{0} is not a port of the load tester, and receives no Ethernet frames")]
    NoFrames(String),
    /// No such interface.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The arc.
    #[error(transparent)]
    Arc(#[from] thalweg_graph::arc::ArcError),
}

/// Loses or damages packets that an interface receives from now on; those of the hosts behind a
/// port are also repeated or delayed. The default of [`Impairment`] ends that. Each worker has a
/// chance of its own.
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
    enable(c, "device-input", impair::NODE.name, sw_if, loses)?;
    if let Some(node) = c.node(impair::NODE.name) {
        c.message_all(node, |worker| {
            let seed = is.seed.wrapping_add(worker as u64);
            Box::new(impair::Set(sw_if, Impairment { seed, ..is }))
        });
    }
    tell(c, |worker| {
        let seed = is.seed.wrapping_add(worker as u64);
        Some(Message::Line(sw_if, Impairment { seed, ..is }))
    });
    Ok(())
}

/// Notes packets from now on that the graph drops, whatever interface received them: those of
/// streams with tags of this trial and seed.
///
/// # Errors
/// If there are too many combinations of features.
pub fn witness(c: &mut Control, trial: u8, seed: u64) -> Result<(), thalweg_graph::arc::ArcError> {
    let all: Vec<SwIfIndex> =
        c.state::<Interfaces>().borrow().iter().map(|view| view.sw_if).collect();
    for sw_if in all {
        enable(c, "error-drop", witness::NODE.name, sw_if, true)?;
    }
    if let Some(node) = c.node(witness::NODE.name) {
        c.message_all(node, |_| {
            Box::new(witness::Ask::Begin(Box::new(witness::Witness::new(trial, seed))))
        });
    }
    Ok(())
}

/// Notes packets of conversations as well from now on: they have no tags that say whether they are
/// of a window.
pub fn witness_talks(c: &mut Control) {
    if let Some(node) = c.node(witness::NODE.name) {
        c.message_all(node, |_| Box::new(witness::Ask::Talks));
    }
}

/// Asks which packets were dropped since the last [`witness`], and has no more noted: the first
/// ones of each stream, reason and worker in the order in which they were dropped.
pub fn ask_dropped(c: &mut Control) -> Answers<Vec<Dropped>> {
    let add = |all: &mut Vec<Dropped>, others: Vec<Dropped>| {
        all.extend(others);
        all.sort_by_key(|dropped| dropped.at);
    };
    let (answer, answers) = Answers::of(c.workers(), add);
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

/// Enables or disables a feature once, however often that is asked for: the arc counts.
fn enable(
    c: &mut Control,
    arc: &'static str,
    feature: &'static str,
    sw_if: SwIfIndex,
    on: bool,
) -> Result<(), thalweg_graph::arc::ArcError> {
    let all = c.enabled_features(sw_if);
    let is_on = all.iter().any(|(of, names)| *of == arc && names.contains(&feature));
    if is_on != on {
        c.enable_feature(arc, feature, sw_if, on)?;
    }
    Ok(())
}

/// Sends each worker's hosts what is for them.
fn tell(c: &mut Control, mut message: impl FnMut(usize) -> Option<Message>) {
    let Some(node) = c.node(input::NODE.name) else { return };
    for worker in 0..c.workers() {
        if let Some(message) = message(worker) {
            c.message(worker, node, Box::new(message));
        }
    }
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
