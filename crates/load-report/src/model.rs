//! Contents of a report. Rates are per second; times are in nanoseconds unless their name says
//! otherwise.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::books::Books;

/// Version of the form.
const VERSION: u32 = 1;
/// Longest report that is read, in bytes.
const MAX_TEXT: usize = 256 << 20;

/// The kind of measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A search for the highest rates.
    #[default]
    Search,
    /// One load.
    Run,
    /// Several devices or loads, one after the other.
    Sweep,
}

/// A report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Version of the form: 1.
    pub version: u32,
    /// The tester.
    pub tool: String,
    /// Its version.
    pub tool_version: String,
    /// The kind of measurement.
    pub kind: Kind,
    /// Time when it began (RFC 3339).
    pub started: String,
    /// Time when it ended.
    pub ended: String,
    /// The command, to repeat it.
    pub command: Vec<String>,
    /// Decides all random values.
    pub seed: u64,
    /// Machine that it ran on.
    pub machine: Machine,
    /// Transport between the tester and the device.
    pub transport: Transport,
    /// The traffic.
    pub profile: Profile,
    /// The device under test.
    pub device: Device,
    /// The tester's own limits.
    pub self_check: SelfCheck,
    /// Goals of the search.
    pub goals: Vec<Goal>,
    /// Results, by goal.
    pub results: Vec<Found>,
    /// All trials.
    pub trials: Vec<Trial>,
    /// Latencies.
    pub latency: Vec<Latency>,
    /// Values over time.
    pub series: Option<Series>,
    /// Other things that a reader should know: deviations, noise, loss inversion.
    pub notes: Vec<String>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The processor.
    pub cpu: String,
    /// Processors that could be used.
    pub cores: u32,
    /// Release of the kernel.
    pub kernel: String,
    /// True on a virtual machine.
    pub hypervisor: bool,
    /// Share of time that the hypervisor took, in percent.
    pub steal_percent: f64,
    /// True if it was busy with other things while it measured.
    pub noisy: bool,
}

/// A transport.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Transport {
    /// `process`, `af_packet`, `af_xdp` and so on.
    pub kind: String,
    /// Ports, in pairs.
    pub ports: Vec<Port>,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// Interface.
    pub name: String,
    /// The other end of its link.
    pub peer: String,
    /// More facts: MTU, offloads, rings.
    pub facts: BTreeMap<String, Value>,
}

/// A profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// Name.
    pub name: String,
    /// Number that profiles which send the same have in common.
    pub fingerprint: String,
    /// Canonical form.
    pub canonical: Value,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Its configuration or command.
    pub configuration: String,
    /// Source of its drop counters.
    pub counters_from: String,
}

/// The tester's own limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SelfCheck {
    /// Rate into nothing.
    pub generation: Option<f64>,
    /// Rate back to back, through the same transport without the device.
    pub transport: Option<f64>,
    /// Share lost back to back.
    pub loss: Option<f64>,
    /// Latency back to back.
    pub latency: Option<Cover>,
}

/// A goal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Goal {
    /// Name.
    pub name: String,
    /// Share of loss that meets it.
    pub loss_ratio: f64,
    /// Duration of a deciding trial in seconds.
    pub trial_s: f64,
    /// Duration of all of them.
    pub sum_s: f64,
    /// Share of time that may exceed the loss.
    pub exceed: f64,
    /// Distance of the bounds that ends the search, as a share.
    pub width: f64,
}

/// Result of a search for a goal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// The goal.
    pub goal: String,
    /// `pps`, or `conn/s`.
    pub unit: String,
    /// Highest rate that meets it.
    pub lower: Option<f64>,
    /// Lowest rate that does not.
    pub upper: Option<f64>,
    /// Rate at which packets or connections arrive at the lower bound (RFC 9971).
    pub conditional_throughput: f64,
    /// The same in bits per second with FCS, preamble and gap, all directions together.
    pub l1_bps: Option<f64>,
    /// True if the tester's own limit may be the bound, so that the device's is this or more.
    pub tester_limit: bool,
    /// Place that limited the device, at the upper bound.
    pub limited_by: Option<LimitedBy>,
    /// The first packet lost there.
    pub first_lost: Option<FirstLost>,
    /// Results of all searches.
    pub repeats: Vec<f64>,
    /// Their median.
    pub median: Option<f64>,
    /// Its interval of 95 %.
    pub interval95: Option<[f64; 2]>,
}

/// Place at which most was lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitedBy {
    /// The row of the books.
    pub row: String,
    /// The device's node.
    pub node: String,
    /// Its reason.
    pub reason: String,
    /// Share of all loss.
    pub share: f64,
}

/// Certainty of the place at which a packet was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// The packet itself was noted where it was dropped.
    Seen,
    /// Place that alone dropped anything, and dropped all.
    Counted,
    /// Several dropped something, and all others cannot have dropped this packet.
    Inferred,
    /// Nothing says where.
    #[default]
    Unexplained,
}

/// The first packet lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FirstLost {
    /// Time when it was due, since the window began, if it is one of a stream.
    pub scheduled_ns: Option<u64>,
    /// Its stream; of connections, its addresses and ports.
    pub stream: String,
    /// Its number in the stream, or its sequence number of TCP.
    pub sequence: Option<u64>,
    /// Certainty of the place.
    pub grade: Grade,
    /// The device's node.
    pub node: String,
    /// Its reason.
    pub reason: String,
}

/// A trial's verdict on a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The trial meets it.
    Low,
    /// The trial misses it.
    High,
    /// Undecided between the two.
    Undecided,
}

/// A trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trial {
    /// Number, from 1.
    pub n: u32,
    /// Time when it began, since the report did.
    pub at_ns: u64,
    /// Load that was meant.
    pub load: f64,
    /// Duration that was meant, in seconds.
    pub duration_s: f64,
    /// Duration that it counts for.
    pub effective_s: f64,
    /// Share lost of what was judged.
    pub loss_ratio: f64,
    /// Packets and connections that were judged: those of the window. Reports of older versions do
    /// not say.
    pub judged: u64,
    /// Reason why it does not count.
    pub invalid: Option<String>,
    /// Verdicts, by goal.
    pub verdicts: BTreeMap<String, Verdict>,
    /// Books of packets, by direction: `a-b`, `b-a`.
    pub directions: BTreeMap<String, Books>,
    /// Results by stream and direction.
    pub streams: Vec<StreamResult>,
    /// Number of streams that are not listed; those that lost most are.
    pub streams_left_out: u64,
    /// Connections.
    pub connections: Option<Connections>,
    /// Drops of the device.
    pub drops: Vec<Drop>,
}

/// A stream in a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamResult {
    /// Name.
    pub name: String,
    /// `a-b`, or `b-a`.
    pub direction: String,
    /// Packets due.
    pub intended: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived intact.
    pub received: u64,
    /// Packets that did not.
    pub lost: u64,
    /// Packets that arrived again.
    pub duplicates: u64,
    /// Packets that arrived after one sent later.
    pub reordered: u64,
    /// Packets that arrived damaged.
    pub damaged: u64,
    /// First ranges of sequence numbers lost: from, to and not including.
    pub missing: Vec<[u64; 2]>,
}

/// Connections in a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connections {
    /// Begun in the window.
    pub begun: u64,
    /// Completed as their program says.
    pub completed: u64,
    /// Completed with nothing sent twice.
    pub clean: u64,
    /// Opened per second, in the window.
    pub begun_per_s: Option<f64>,
    /// Mean number open in the window, TIME_WAIT not included.
    pub active_mean: Option<f64>,
    /// Mean life in seconds of those that ended in the window, TIME_WAIT not included.
    pub life_mean_s: Option<f64>,
    /// More counters.
    pub counters: BTreeMap<String, u64>,
}

/// Drops of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drop {
    /// Side that dropped them: `device`, `link`, or `tester`.
    pub side: String,
    /// Node.
    pub node: String,
    /// Reason.
    pub reason: String,
    /// Packets.
    pub packets: u64,
    /// Packets among them that the tester had not sent.
    pub foreign: u64,
}

/// A percentile: its share, and the time; `None` if there are too few samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile(pub f64, pub Option<u64>);

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cover {
    /// Number of samples.
    pub count: u64,
    /// Least.
    pub least_ns: Option<u64>,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// Greatest.
    pub most_ns: Option<u64>,
    /// Percentiles.
    pub percentiles: Vec<Percentile>,
    /// Times, and the share of samples that took longer: the complementary distribution.
    pub beyond: Vec<(u64, f64)>,
}

/// Latency at a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Load.
    pub load: f64,
    /// Stream, or class of connections and what was timed.
    pub class: String,
    /// True if the next one waited for the answer, so that stalls hide latency.
    pub closed_loop: bool,
    /// True if packets were lost at that load.
    pub lossy: bool,
    /// Latency from when packets were due until they arrived.
    pub scheduled: Cover,
    /// Jitter (RFC 3550).
    pub jitter_ns: Option<u64>,
    /// Latency back to back, through the same transport.
    pub floor: Option<Cover>,
}

/// Values over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// Time between two values in milliseconds.
    pub step_ms: u32,
    /// Values by name: `sent`, `received`, `active`, `lost` …
    pub values: BTreeMap<String, Vec<f64>>,
}

/// A text that is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not JSON, or JSON of another form.
    #[error("no report: {0}")]
    Form(#[from] serde_json::Error),
    /// Another version.
    #[error("a report of version {0}; this program reads version {VERSION}")]
    Version(u32),
    /// The text is too long.
    #[error("longer than {} MiB", MAX_TEXT >> 20)]
    Long,
}

impl Report {
    /// An empty report of the present version.
    pub fn new(kind: Kind) -> Report {
        Report { version: VERSION, tool: "thalweg load".into(), kind, ..Report::default() }
    }

    /// Reads a report. Keys that it does not know are ignored.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read(text: &str) -> Result<Report, ReadError> {
        if text.len() > MAX_TEXT {
            return Err(ReadError::Long);
        }
        let report: Report = serde_json::from_str(text)?;
        match report.version {
            VERSION => Ok(report),
            version => Err(ReadError::Version(version)),
        }
    }

    /// Writes it as JSON.
    pub fn json(&self) -> String {
        // Numbers that are not finite become null; nothing else can fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// A trial by its number.
    pub fn trial(&self, n: u32) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.n == n)
    }
}
