//! Packet captures: packets received, transmitted and dropped by interfaces, as a pcap file.
//!
//! A tap copies packets into preallocated memory; nothing is allocated, locked or waited for while
//! packets flow. The file is written when the capture ends.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod dispatch;
pub mod message_types;
pub mod nodes;

use crate::nodes::pcap::{Buffer, TapMessage};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, UNIX_EPOCH};
use thalweg_device::link_header::Link;
use thalweg_device::{InterfaceEvent, Interfaces, SwIfIndex, interface};
use thalweg_engine::Feature;
use thalweg_engine::classify::{Classifier, User};
use thalweg_files::FileError;
use thalweg_files::client::{self, Kind, Reserved};
use thalweg_graph::filter::ByteFilter;
use thalweg_graph::{Control, clock};
use thalweg_wire::pcap;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "pcap",
    about: "packet captures",
    needs: &[&thalweg_device::FEATURE],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    init,
    ..Feature::DEFAULT
};

/// Directory of capture files.
const DIRECTORY: &str = client::FOR_ALL;
/// Captures: what others have sent.
const CAPTURES: Kind = Kind {
    name: "a capture",
    // Micro- and nanoseconds in both byte orders, and pcapng.
    magic: &[
        b"\xd4\xc3\xb2\xa1",
        b"\xa1\xb2\xc3\xd4",
        b"\x4d\x3c\xb2\xa1",
        b"\xa1\xb2\x3c\x4d",
        b"\x0a\x0d\x0d\x0a",
    ],
    is_foreign: true,
};
/// Maximum number of packets.
pub const MAX_PACKETS: u32 = 1_000_000;
/// Minimum and maximum bytes kept per packet.
pub const BYTES: (u32, u32) = (32, 9000);
/// Maximum memory of a capture per worker in bytes.
const MAX_MEMORY: u64 = 256 << 20;

/// Parameters of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Captures received, transmitted and dropped packets.
    pub what: [bool; 3],
    /// Maximum number of packets.
    pub packets: u32,
    /// Bytes kept per packet.
    pub bytes: u32,
    /// Interface; `None` for all.
    pub sw_if: Option<SwIfIndex>,
    /// Reason of dropped packets that are captured; see [`reason`].
    pub error: Option<u32>,
    /// Filter of packets that are captured.
    pub filter: Option<Arc<ByteFilter>>,
    /// Name of the file in `/tmp`; if empty, derived from what is captured.
    pub file: String,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            what: [false; 3],
            packets: 1000,
            bytes: 512,
            sw_if: None,
            error: None,
            filter: None,
            file: String::new(),
        }
    }
}

/// Reason why a capture request failed.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// A capture is running already.
    #[error("a capture is running; `pcap trace off' ends it")]
    Running,
    /// No capture is running.
    #[error("no capture is running")]
    NotRunning,
    /// No packets were captured.
    #[error("no packets were captured; no file is written")]
    Empty,
    /// Invalid parameters.
    #[error("{0}")]
    Plan(String),
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Arc of dropped packets.
const DROPS: &str = "error-drop";
/// Arcs of [`Plan::what`], and their CLI words.
const ARCS: [(&str, &str); 3] =
    [("device-input", "rx"), ("interface-output", "tx"), (DROPS, "drop")];

struct Running {
    plan: Plan,
    /// Scope in words: the name of the interface, even if it is deleted.
    of: String,
    /// Packets captured so far, by worker.
    taken: Vec<Arc<AtomicU64>>,
    /// Arcs and interfaces on which the tap is enabled.
    on: Vec<(&'static str, SwIfIndex)>,
    /// The node of its drop reason went with an interface: there are no such drops any more.
    is_reason_gone: bool,
    /// The name of its file.
    reserved: Reserved,
}

/// Captures on the main thread.
#[derive(Default)]
pub(crate) struct Captures(Option<Running>);

fn init(c: &mut Control) {
    c.insert(Captures::default());
    dispatch::init(c);
    c.subscribe(|c, &event: &InterfaceEvent| match event {
        InterfaceEvent::Created(sw_if) => {
            let of_all = |running: &Running| running.plan.sw_if.is_none();
            if c.state::<Captures>().borrow().0.as_ref().is_some_and(of_all) {
                if let Some(node) = c.node(nodes::pcap::NODE.name) {
                    c.message_all(node, |_| Box::new(TapMessage::New(sw_if)));
                }
                enable(c, sw_if);
            }
        }
        InterfaceEvent::Deleted(sw_if) => {
            // Its number may be another one's soon.
            let classifier = c.state::<Classifier>();
            let _ = classifier.borrow_mut().set(User::PcapOf(sw_if), None, false);
            if let Some(running) = &mut c.state::<Captures>().borrow_mut().0 {
                running.on.retain(|(_, of)| *of != sw_if);
                if running.plan.sw_if == Some(sw_if) {
                    running.of += ", which is deleted,";
                }
            }
            end_reason_of(c, sw_if);
        }
        _ => {}
    });
}

/// Captures no more drops if they are those of an interface's node that is deleted: the reason's
/// number may be another one's soon.
fn end_reason_of(c: &mut Control, gone: SwIfIndex) {
    let state = c.state::<Captures>();
    let drops: Vec<(&'static str, SwIfIndex)> = {
        let mut state = state.borrow_mut();
        let Some(running) = &mut state.0 else { return };
        let reason = running.plan.error.and_then(|error| c.errors().get(error as usize));
        let name = reason.map(|(node, _)| &c.nodes()[usize::from(node.0)].name);
        if name.and_then(|name| interface::owner_of_node(c, name)) != Some(gone) {
            return;
        }
        running.is_reason_gone = true;
        running.of += ", without the drop reason, whose interface is deleted,";
        running.on.extract_if(.., |(arc, _)| *arc == DROPS).collect()
    };
    for (arc, sw_if) in drops {
        let _ = c.enable_feature(arc, nodes::pcap::NODE.name, sw_if, false);
    }
}

impl Plan {
    fn words(&self) -> Vec<&'static str> {
        ARCS.iter().zip(self.what).filter(|(_, on)| *on).map(|((_, word), _)| *word).collect()
    }

    /// Path of the file.
    pub fn path(&self) -> PathBuf {
        let name = match self.file.as_str() {
            "" => format!("{}.pcap", self.words().concat()),
            name => name.to_owned(),
        };
        Path::new(DIRECTORY).join(name)
    }

    fn check(&self) -> Result<(), PcapError> {
        let wrong = |text: String| Err(PcapError::Plan(text));
        if self.what == [false; 3] {
            return wrong("nothing to capture: give one or more of rx, tx, drop".into());
        }
        if !(1..=MAX_PACKETS).contains(&self.packets) {
            return wrong(format!("the number of packets must be 1 to {MAX_PACKETS}"));
        }
        if !(BYTES.0..=BYTES.1).contains(&self.bytes) {
            return wrong(format!("the bytes kept per packet must be {} to {}", BYTES.0, BYTES.1));
        }
        check_name(&self.file)?;
        match Buffer::size(self) <= MAX_MEMORY {
            true => Ok(()),
            false => wrong(format!("the capture would need more than {} MiB", MAX_MEMORY >> 20)),
        }
    }
}

/// Reserves the file that a capture is written to at its end: what would fail then fails now.
fn reserve(path: &Path) -> Result<Reserved, FileError> {
    let reserved = client::reserve_alone(path, &CAPTURES)?;
    client::check_replaceable(path, &CAPTURES)?;
    Ok(reserved)
}

/// Checks the name of a file in [`DIRECTORY`].
fn check_name(file: &str) -> Result<(), PcapError> {
    match file.contains(['/', '\0']) || file.starts_with('.') {
        true => Err(PcapError::Plan(format!(
            "a file name without directory expected: files are written to {DIRECTORY}"
        ))),
        false => Ok(()),
    }
}

/// Finds a drop reason by `<node>.<reason>`, where the reason is its name or its text.
///
/// # Errors
/// If there is none.
pub fn reason(c: &Control, word: &str) -> Result<u32, PcapError> {
    // VPP's clients write `{node}.{reason}`.
    let plain = word.replace(['{', '}'], "");
    let word = plain.as_str();
    let is_it = |(node, decl): &(thalweg_graph::NodeId, &thalweg_graph::ErrorDecl)| {
        let node = &c.nodes()[usize::from(node.0)].name;
        let reason = word.strip_prefix(&**node).and_then(|rest| rest.strip_prefix('.'));
        reason.is_some_and(|r| r.eq_ignore_ascii_case(decl.name) || r == decl.text)
    };
    let found = c.errors().iter().position(is_it).map(|at| at as u32);
    found.ok_or_else(|| {
        PcapError::Plan(format!(
            "no drop reason `{word}': expected <node>.<reason> with a name or text that `show node \
             <node>' lists"
        ))
    })
}

/// Starts a capture.
///
/// # Errors
/// [`PcapError`].
pub fn start(c: &mut Control, plan: Plan) -> Result<(), PcapError> {
    if c.state::<Captures>().borrow().0.is_some() {
        return Err(PcapError::Running);
    }
    plan.check()?;
    let taken: Vec<Arc<AtomicU64>> = (0..c.workers()).map(|_| Arc::default()).collect();
    let Some(node) = c.node(nodes::pcap::NODE.name) else { return Ok(()) };
    let reserved = reserve(&plan.path())?;
    for (worker, taken) in taken.iter().enumerate() {
        let buffer = Box::new(Buffer::new(&plan, taken.clone()));
        c.message(worker, node, Box::new(TapMessage::Begin(buffer)));
    }
    let chosen: Vec<SwIfIndex> = match plan.sw_if {
        Some(one) => vec![one],
        None => c.state::<Interfaces>().borrow().iter().map(|view| view.sw_if).collect(),
    };
    let of = plan.sw_if.map_or("all interfaces".into(), |sw_if| c.interface_name(sw_if));
    let (on, is_reason_gone) = (Vec::new(), false);
    let running = Running { plan, of, taken, on, is_reason_gone, reserved };
    c.state::<Captures>().borrow_mut().0 = Some(running);
    chosen.into_iter().for_each(|sw_if| enable(c, sw_if));
    Ok(())
}

fn enable(c: &mut Control, sw_if: SwIfIndex) {
    let state = c.state::<Captures>();
    let what = state.borrow().0.as_ref().map(|running| {
        let [rx, tx, drops] = running.plan.what;
        [rx, tx, drops && !running.is_reason_gone]
    });
    let Some(what) = what else { return };
    if let (Some(node), Ok(view)) = (c.node(nodes::pcap::NODE.name), interface::view(c, sw_if))
        && Link::of(&view) == Link::Ip
    {
        c.message_all(node, |_| Box::new(TapMessage::Ip(sw_if)));
    }
    for ((arc, _), _) in ARCS.iter().zip(what).filter(|(_, on)| *on) {
        // The arc and the tap exist: this crate declares them.
        if c.enable_feature(arc, nodes::pcap::NODE.name, sw_if, true).is_ok()
            && let Some(running) = &mut state.borrow_mut().0
        {
            running.on.push((arc, sw_if));
        }
    }
}

/// A capture that has ended, and is still to be written.
pub struct Ended {
    plan: Plan,
    /// Buffers of workers, which they give between two loops.
    given: mpsc::Receiver<Box<Buffer>>,
    /// The name of its file, until that is written.
    _reserved: Reserved,
}

/// Time after which a worker is taken not to respond.
const ANSWER_TIME: Duration = Duration::from_secs(5);

impl Ended {
    /// Waits for the workers and writes its file; returns the path and the number of packets. The
    /// main thread must not call it: the file may have hundreds of megabytes.
    ///
    /// # Errors
    /// [`PcapError`].
    pub fn write(self) -> Result<(PathBuf, usize), PcapError> {
        let mut buffers = Vec::new();
        while let Ok(buffer) = self.given.recv_timeout(ANSWER_TIME) {
            buffers.push(buffer);
        }
        let mut packets: Vec<_> = buffers.iter().flat_map(|b| b.packets()).collect();
        packets.sort_by_key(|packet| packet.at);
        packets.truncate(self.plan.packets as usize);
        if packets.is_empty() {
            return Err(PcapError::Empty);
        }
        let path = self.plan.path();
        write(&path, self.plan.bytes, &packets)?;
        Ok((path, packets.len()))
    }
}

/// Ends a capture.
///
/// # Errors
/// [`PcapError::NotRunning`].
pub fn stop(c: &mut Control) -> Result<Ended, PcapError> {
    let running = c.state::<Captures>().borrow_mut().0.take().ok_or(PcapError::NotRunning)?;
    for (arc, sw_if) in running.on {
        let _ = c.enable_feature(arc, nodes::pcap::NODE.name, sw_if, false);
    }
    let (give, given) = mpsc::sync_channel(c.workers());
    if let Some(node) = c.node(nodes::pcap::NODE.name) {
        c.message_all(node, |_| Box::new(TapMessage::End(give.clone())));
    }
    Ok(Ended { plan: running.plan, given, _reserved: running.reserved })
}

/// The running capture, what it captures in words, and the number of packets so far; `None` if
/// there is none.
pub(crate) fn status(c: &Control) -> Option<(Plan, String, u64)> {
    let state = c.state::<Captures>();
    let state = state.borrow();
    let running = state.0.as_ref()?;
    let taken = running.taken.iter().map(|n| n.load(Relaxed)).sum::<u64>();
    Some((running.plan.clone(), running.of.clone(), taken.min(running.plan.packets.into())))
}

/// Bytes of a file that are written at once.
const PIECE: usize = 64 << 10;

/// The Ethernet header that packets without one get in a file that has others, too.
const EMPTY_HEADER: [u8; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00];

/// Writes a classic pcap file, replacing one of the same name; a symbolic link there is not
/// followed. The file has the link type of Ethernet unless all packets begin with their IP header.
fn write(path: &Path, snap: u32, packets: &[nodes::pcap::Captured<'_>]) -> Result<(), FileError> {
    let failed = |source| FileError { attempt: "write", path: path.to_owned(), source };
    let mut file = client::replacement(path, &CAPTURES)?;
    let raw = packets.iter().all(|packet| packet.bare);
    let mixed = !raw && packets.iter().any(|packet| packet.bare);
    let link = if raw { pcap::LINK_RAW } else { pcap::LINK_ETHERNET };
    let front = if mixed { EMPTY_HEADER.len() as u32 } else { 0 };
    let mut out = pcap::File::new(link, snap + front);
    for packet in packets {
        let at = clock::wall(packet.at).duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut header = EMPTY_HEADER;
        if packet.bytes.first().is_some_and(|first| first >> 4 == 6) {
            header[12..].copy_from_slice(&[0x86, 0xdd]);
        }
        let header = if packet.bare && !raw { &header[..] } else { &[] };
        let length = packet.length + header.len() as u32;
        out.packet(at.as_micros() as u64, length, [header, packet.bytes]);
        if out.bytes().len() >= PIECE {
            file.write_all(out.bytes()).map_err(failed)?;
            out.clear();
        }
    }
    file.write_all(out.bytes()).map_err(failed)?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::pcap::Captured;
    use thalweg_device::testing::Lab;

    #[test]
    fn packets_without_a_link_header_are_told_from_frames() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.pcap");
        let ip4 = [0x45; 20];
        let ip6 = [0x60; 40];
        let packet = |bytes, bare| Captured { at: 0, length: 50, bytes, bare };
        let file = |packets: &[Captured<'_>]| {
            write(&path, 64, packets).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
            (word(16), word(20), word(36), bytes[40..].to_vec())
        };
        let (snap, link, length, first) = file(&[packet(&ip4, true), packet(&ip6, true)]);
        assert_eq!((snap, link, length, &first[..20]), (64, pcap::LINK_RAW, 50, &ip4[..]));
        let (snap, link, length, first) = file(&[packet(&ip4, false)]);
        assert_eq!((snap, link, length, &first[..]), (64, pcap::LINK_ETHERNET, 50, &ip4[..]));
        let all = [packet(&ip6, true), packet(&ip4, false), packet(&ip4, true)];
        let (snap, link, length, first) = file(&all);
        assert_eq!((snap, link, length), (78, pcap::LINK_ETHERNET, 64));
        assert_eq!(first[..54], [&[0; 12][..], &[0x86, 0xdd], &ip6].concat());
        assert_eq!(first[54 + 16..][..20], ip4);
        assert_eq!(first[54 + 16 + 20 + 16..], [&EMPTY_HEADER[..], &ip4].concat());
    }

    #[test]
    fn lists_are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }

    /// A file that is written at the end may be another's by then, or of another kind.
    #[test]
    fn the_file_of_a_capture_is_its_own_from_the_start() {
        let mut lab = Lab::of(&FEATURE).with(&thalweg_feat_ethernet::FEATURE).interfaces(1).start();
        let file = format!("thalweg-own-{}.pcap", std::process::id());
        let path = Path::new(DIRECTORY).join(&file);
        let plan = Plan { what: [true, false, false], file: file.clone(), ..Plan::default() };
        std::fs::write(&path, "notes").expect("a file");
        let said = [
            start(&mut lab.c, plan.clone()).map_err(|e| e.to_string()),
            dispatch::start(&mut lab.c, 5, &file).map_err(|e| e.to_string()),
        ];
        std::fs::remove_file(&path).expect("the file");
        for said in said {
            assert!(said.is_err_and(|e| e.contains("is not a capture: remove it first")));
        }
        start(&mut lab.c, plan.clone()).expect("a capture");
        let twice = dispatch::start(&mut lab.c, 5, &file).map_err(|e| e.to_string());
        assert!(twice.is_err_and(|e| e.contains("the router writes a capture there")));
        // Its name is free with the capture, also without packets.
        let empty = stop(&mut lab.c).expect("a capture").write();
        assert!(matches!(empty, Err(PcapError::Empty)));
        dispatch::start(&mut lab.c, 5, &file).expect("a capture");
        assert!(start(&mut lab.c, plan).is_err());
        assert!(dispatch::stop(&mut lab.c).expect("a capture").write().is_err());
        assert!(client::reserve_alone(&path, &CAPTURES).is_ok());
        lab.close();
    }

    /// Names of what a capture takes, and how many taps it has.
    fn running(lab: &Lab) -> (String, usize) {
        let state = lab.c.state::<Captures>();
        let state = state.borrow();
        let running = state.0.as_ref().expect("a capture");
        (running.of.clone(), running.on.len())
    }

    #[test]
    fn a_drop_reason_goes_with_the_interface_of_its_node() {
        let mut lab = Lab::of(&FEATURE).with(&thalweg_feat_ethernet::FEATURE).interfaces(3).start();
        let what = [false, true, true];
        let error = reason(&lab.c, "test1-output.interface is down").ok();
        assert!(error.is_some());
        start(&mut lab.c, Plan { what, error, ..Plan::default() }).expect("a capture");
        let before = running(&lab);
        assert_eq!(before.0, "all interfaces");
        let [other, own] = [2, 1].map(|n| lab.sw_if(n));
        for (gone, left) in [(other, before.1 - 2), (own, (before.1 - 4) / 2)] {
            interface::delete(&mut lab.c, gone).expect("an interface");
            lab.until("its end", |lab| interface::view(&lab.c, gone).is_err());
            assert_eq!(running(&lab).1, left);
        }
        assert!(running(&lab).0.contains("whose interface is deleted"));
        let first = lab.sw_if(0);
        enable(&mut lab.c, first);
        let drops = |(arc, _): &&(&str, SwIfIndex)| *arc == DROPS;
        let state = lab.c.state::<Captures>();
        let n = state.borrow().0.as_ref().map(|running| running.on.iter().filter(drops).count());
        assert_eq!(n, Some(0));
        lab.close();
    }
}
