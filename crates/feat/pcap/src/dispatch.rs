//! Dispatch traces: each node's turn with each traced packet, as a capture file.
//!
//! Records have the format of VPP's graph dispatch trace, version 1.0, which Wireshark reads: four
//! bytes (major and minor version, number of strings, hint at the protocol), the packet's number,
//! strings that end with a zero (node, metadata, two more, the trace so far), and the packet's
//! bytes as the node gets them (`LINKTYPE_VPP_DISPATCH`). Lengths are those of the file.

use crate::PcapError;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::UNIX_EPOCH;
use thalweg_buffer::Flags;
use thalweg_device::{Interfaces, SwIfIndex, interface};
use thalweg_engine::{error_text, tell_workers};
use thalweg_files::FileError;
use thalweg_files::client::{self, Reserved};
use thalweg_graph::trace::{Dispatch, PacketTrace, resolve_tokens};
use thalweg_graph::{Control, NodeId, clock};
use thalweg_wire::pcap;

/// Maximum number of records of a file.
pub const MAX_RECORDS: u32 = 1_000_000;

/// A capture that runs.
struct Running {
    max: u32,
    path: PathBuf,
    /// Nodes and numbers of `buffer-trace`: by name, as a node's number may be another one's later.
    nodes: Vec<(Arc<str>, u32)>,
    /// Records so far, by worker.
    taken: Vec<Arc<AtomicU64>>,
    /// The name of its file.
    reserved: Reserved,
}

/// The capture on the main thread.
#[derive(Default)]
pub(crate) struct Dispatching(Option<Running>);

/// A worker's share at the end.
type OfWorker = (usize, Vec<Dispatch>, HashMap<u16, PacketTrace>);

/// A capture that runs, as `status` shows it.
pub(crate) struct Status {
    pub(crate) taken: u64,
    pub(crate) max: u32,
    pub(crate) path: PathBuf,
    pub(crate) nodes: Vec<(String, u32)>,
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Dispatching::default());
}

/// Begins a capture of at most `max` records.
///
/// # Errors
/// [`PcapError::Running`], [`PcapError::Plan`], [`PcapError::File`].
pub(crate) fn start(c: &mut Control, max: u32, file: &str) -> Result<(), PcapError> {
    if c.state::<Dispatching>().borrow().0.is_some() {
        return Err(PcapError::Running);
    }
    let name = if file.is_empty() { "dispatch.pcap" } else { file };
    crate::check_name(name)?;
    let path = Path::new(crate::DIRECTORY).join(name);
    let reserved = crate::reserve(&path)?;
    let taken: Vec<Arc<AtomicU64>> = (0..c.workers()).map(|_| Arc::default()).collect();
    let of_worker = taken.clone();
    tell_workers(c, move |core| {
        if let Some(taken) = of_worker.get(core.index()) {
            core.dispatches_begin(max, taken.clone());
        }
    });
    let state = c.state::<Dispatching>();
    state.borrow_mut().0 = Some(Running { max, path, nodes: Vec::new(), taken, reserved });
    Ok(())
}

/// Traces the next packets of a node, on each worker.
///
/// # Errors
/// [`PcapError::NotRunning`].
pub(crate) fn trace(c: &mut Control, node: NodeId, count: u32) -> Result<(), PcapError> {
    let state = c.state::<Dispatching>();
    {
        let mut state = state.borrow_mut();
        let nodes = &mut state.0.as_mut().ok_or(PcapError::NotRunning)?.nodes;
        let name = &c.nodes()[usize::from(node.0)].name;
        match nodes.iter_mut().find(|(known, _)| known == name) {
            Some((_, all)) => *all = all.saturating_add(count),
            None => nodes.push((name.clone(), count)),
        }
    }
    tell_workers(c, move |core| core.trace_add(node, count, None));
    Ok(())
}

/// The running capture.
pub(crate) fn status(c: &Control) -> Option<Status> {
    let state = c.state::<Dispatching>();
    let state = state.borrow();
    let running = state.0.as_ref()?;
    let taken = running.taken.iter().map(|n| n.load(Relaxed)).sum::<u64>();
    Some(Status {
        taken: taken.min(running.max.into()),
        max: running.max,
        path: running.path.clone(),
        nodes: running.nodes.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
    })
}

/// A capture that has ended, and is still to be written.
pub(crate) struct Ended {
    max: u32,
    path: PathBuf,
    names: Names,
    given: mpsc::Receiver<OfWorker>,
    /// The name of its file, until that is written.
    _reserved: Reserved,
}

/// Names that only the main thread knows.
#[derive(Default)]
struct Names {
    nodes: Vec<String>,
    interfaces: interface::Names,
    errors: Vec<String>,
}

/// Ends the capture.
///
/// # Errors
/// [`PcapError::NotRunning`].
pub(crate) fn stop(c: &mut Control) -> Result<Ended, PcapError> {
    let running = c.state::<Dispatching>().borrow_mut().0.take().ok_or(PcapError::NotRunning)?;
    let (give, given) = mpsc::sync_channel(c.workers());
    tell_workers(c, move |core| {
        let (kept, traces) = core.dispatches_end();
        // The channel has room for all workers.
        let _ = give.try_send((core.index(), kept, traces));
    });
    let names = Names {
        nodes: c.nodes().iter().map(|n| n.name.to_string()).collect(),
        interfaces: c.state::<Interfaces>().borrow().names(),
        errors: (0..c.errors().len() as u32).map(|e| error_text(c, e)).collect(),
    };
    let Running { max, path, reserved, .. } = running;
    Ok(Ended { max, path, names, given, _reserved: reserved })
}

impl Ended {
    /// Waits for the workers and writes the file; returns its path and the number of records. The
    /// main thread must not call it.
    ///
    /// # Errors
    /// [`PcapError`].
    pub(crate) fn write(self) -> Result<(PathBuf, usize), PcapError> {
        let mut workers: Vec<OfWorker> = Vec::new();
        while let Ok(of) = self.given.recv_timeout(crate::ANSWER_TIME) {
            workers.push(of);
        }
        let mut records: Vec<(usize, &Dispatch, Option<&PacketTrace>)> = Vec::new();
        for (worker, kept, traces) in &workers {
            records.extend(kept.iter().map(|d| (*worker, d, traces.get(&d.trace))));
        }
        records.sort_by_key(|(_, dispatch, _)| dispatch.at);
        records.truncate(self.max as usize);
        if records.is_empty() {
            return Err(PcapError::Empty);
        }
        let failed = |source| FileError { attempt: "write", path: self.path.clone(), source };
        let mut file = client::replacement(&self.path, &crate::CAPTURES)?;
        let mut out = pcap::File::new(pcap::LINK_VPP_DISPATCH, u16::MAX.into());
        for (worker, dispatch, trace) in &records {
            let head = self.names.head(*worker, dispatch, *trace);
            let at = clock::wall(dispatch.at).duration_since(UNIX_EPOCH).unwrap_or_default();
            let length = head.len() as u32 + dispatch.length;
            out.packet(at.as_micros() as u64, length, [&head[..], &dispatch.bytes]);
            if out.bytes().len() >= crate::PIECE {
                file.write_all(out.bytes()).map_err(failed)?;
                out.clear();
            }
        }
        file.write_all(out.bytes()).map_err(failed)?;
        file.commit()?;
        Ok((self.path, records.len()))
    }
}

/// Most bytes of a packet's trace in a record: it and the packet together stay below 64 KiB.
const MAX_TRACE: usize = 32 << 10;

impl Names {
    fn node(&self, id: NodeId) -> &str {
        self.nodes.get(usize::from(id.0)).map_or("?", String::as_str)
    }

    /// Returns the bytes that stand before a packet's own.
    fn head(&self, worker: usize, d: &Dispatch, trace: Option<&PacketTrace>) -> Vec<u8> {
        let marks = [
            (Flags::CHAINED, "chained"),
            (Flags::TRACED, "traced"),
            (Flags::OFFLOAD, "offload"),
            (Flags::SAMPLED, "sampled"),
            (Flags::LOCAL, "local"),
        ];
        let marks = marks.iter().filter(|(flag, _)| d.flags.contains(*flag));
        let marks: Vec<&str> = marks.map(|(_, name)| *name).collect();
        let node = self.node(d.node);
        let mut strings = vec![
            node.to_owned(),
            format!("flags: {}\ncurrent_length: {}\n", marks.join(" "), d.length),
            format!(
                "sw_if_index[rx]: {} ({}), sw_if_index[tx]: {} ({})\naux: {}\n",
                d.rx.0,
                self.interfaces.at(d.rx, d.at),
                d.tx.0,
                self.interfaces.at(d.tx, d.at),
                d.aux
            ),
            format!("worker: {worker}, trace: {}\n", d.trace),
        ];
        let text = trace.map(|trace| self.trace(trace, d.at)).unwrap_or_default();
        if !text.is_empty() {
            strings.push(text);
        }
        let number = (worker as u32) << 16 | u32::from(d.trace);
        let mut head = vec![1, 0, strings.len() as u8, hint(node, &d.bytes)];
        head.extend(number.to_be_bytes());
        for text in strings {
            head.extend(text.bytes().filter(|byte| *byte != 0));
            head.push(0);
        }
        head
    }

    /// The steps of a packet up to a time, as `show trace` prints them.
    fn trace(&self, trace: &PacketTrace, until: u64) -> String {
        let mut out = String::new();
        for step in trace.steps.iter().take_while(|step| step.at <= until) {
            let error = |e: u32| self.errors.get(e as usize).cloned().unwrap_or_default();
            let text =
                resolve_tokens(&step.text, |i| self.interfaces.at(SwIfIndex(i), step.at), error);
            out += &format!("{}: {}\n", clock::format_since_start(step.at), self.node(step.node));
            for line in text.lines() {
                out += &format!("  {line}\n");
            }
            if out.len() > MAX_TRACE {
                let end = (0..=MAX_TRACE).rev().find(|at| out.is_char_boundary(*at));
                out.truncate(end.unwrap_or(0));
                break;
            }
        }
        out
    }
}

/// Returns VPP's number of the protocol that a node's packets begin with: 1 Ethernet, 2 IPv4, 3
/// IPv6, 0 if it does not follow from the node's name.
fn hint(node: &str, bytes: &[u8]) -> u8 {
    let version = bytes.first().map_or(0, |byte| byte >> 4);
    match node {
        _ if node.starts_with("ip4-") || node.starts_with("nat44-") => u8::from(version == 4) * 2,
        _ if node.starts_with("ip6-") => u8::from(version == 6) * 3,
        "ethernet-input" | "pg-input" | "af-packet-input" | "flow-rules" | "arp-term-l2bd" => 1,
        _ if node.starts_with("l2-") || node.ends_with("-tx") || node.ends_with("-output") => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_graph::trace::TraceStep;

    #[test]
    fn a_record_is_as_wireshark_reads_it() {
        let names = Names {
            nodes: vec!["pg-input".into(), "ip4-lookup".into()],
            interfaces: interface::Names::default(),
            errors: Vec::new(),
        };
        let dispatch = Dispatch {
            trace: 7,
            node: NodeId(1),
            at: 20,
            rx: SwIfIndex(1),
            tx: SwIfIndex(9),
            aux: 3,
            flags: Flags::TRACED,
            length: 20,
            bytes: vec![0x45; 20].into(),
        };
        let step = |at, text: &str| TraceStep { node: NodeId(0), at, text: text.into() };
        let trace = PacketTrace {
            head: Box::default(),
            steps: vec![step(10, "a\0\nb"), step(30, "later")],
        };
        let head = names.head(2, &dispatch, Some(&trace));
        assert_eq!(head[..8], [1, 0, 5, 2, 0, 2, 0, 7]);
        assert_eq!(head.last(), Some(&0));
        let strings: Vec<_> = head[8..head.len() - 1].split(|byte| *byte == 0).collect();
        let text = |i: usize| String::from_utf8(strings[i].to_vec()).unwrap();
        assert_eq!((strings.len(), text(0)), (5, "ip4-lookup".into()));
        assert_eq!(text(1), "flags: traced\ncurrent_length: 20\n");
        assert!(text(2).contains("[rx]: 1 (deleted-1)") && text(2).contains("[tx]: 9 (deleted-9"));
        assert!(text(4).ends_with(": pg-input\n  a\n  b\n"), "{}", text(4));
        // One that was cleared meanwhile.
        let head = names.head(2, &dispatch, None);
        assert_eq!(head[..3], [1, 0, 4]);
        assert_eq!((hint("ip4-lookup", &[0x60]), hint("ip6-input", &[0x60])), (0, 3));
        assert_eq!((hint("l2-fwd", &[]), hint("arp-input", &[])), (1, 0));
    }
}
