//! The tables of a report, and its sentences.

use crate::books::Books;
use crate::model::{Connections, Cover, Found, Grade, Kind, Report, Trial, Verdict};
use crate::words::{count, fixed, rate, share, share_of, signed, time};

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// Key by which plots are put next to it.
    pub(crate) key: &'static str,
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Most trials, streams and ranges that are shown; the JSON has all.
const MOST_ROWS: usize = 1000;
const MOST_RANGES: usize = 8;
/// Share by which the number of connections may differ from that of Little's law.
const STATIONARY: f64 = 0.1;

const SENT_AND_LOST: &str = "Sent is of the whole trial, lost of its window.";

/// A sentence for each result.
pub(crate) fn headlines(report: &Report) -> Vec<String> {
    let mut all: Vec<String> =
        report.results.iter().map(|found| headline(found, report.kind)).collect();
    if let (Kind::Run, Some(trial)) = (report.kind, report.trials.last()) {
        all.push(format!("Lost in the window: {}.", share_of(trial.loss_ratio, trial.judged)));
    }
    all
}

fn headline(found: &Found, kind: Kind) -> String {
    let unit = &found.unit;
    let mut text = match (found.median.or(found.lower), found.upper) {
        (None, Some(upper)) => {
            format!("{}: not met even at the least rate, {} {unit}", found.goal, rate(upper))
        }
        (None, None) => format!("{}: no result", found.goal),
        (Some(lower), _) => {
            let sign = if found.tester_limit { "≥ " } else { "" };
            format!("{}: {sign}{} {unit}", found.goal, rate(lower))
        }
    };
    if let Some([least, most]) = found.interval95 {
        let searches = found.repeats.len();
        text += &format!(", 95 % [{}, {}] of {searches} searches", rate(least), rate(most));
    }
    if found.tester_limit {
        text += "; the tester's own limit or the greatest rate asked for, so that the device's is this or more";
    } else if let Some(by) = &found.limited_by {
        let word = if kind == Kind::Run { "most was lost at" } else { "limited by" };
        text += &format!("; {word} {}", place(&by.row, &by.node, &by.reason));
        text += &format!(" ({} % of loss)", fixed(by.share * 100.0, 1));
    }
    text + "."
}

fn place(row: &str, node: &str, reason: &str) -> String {
    let parts: Vec<&str> =
        [row, node, reason].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// Names of columns.
pub(crate) fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

fn maybe(value: Option<f64>) -> String {
    value.map_or("–".into(), rate)
}

/// All tables that have data.
pub(crate) fn all(report: &Report) -> Vec<Table> {
    let tables = [
        trust(report),
        results(report),
        latency(report),
        books(report),
        trials(report),
        streams(report),
        drops(report),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// Returns how far the report can be trusted.
fn trust(report: &Report) -> Table {
    let mut rows = Vec::new();
    let mut add = |what: &str, text: String| rows.push(vec![what.to_owned(), text]);
    let check = &report.self_check;
    for (what, value) in [
        ("tester into nothing", check.generation.map(rate)),
        ("tester back to back", check.transport.map(rate)),
        ("loss back to back", check.loss.map(share)),
    ] {
        if let Some(value) = value {
            add(what, value);
        }
    }
    if let Some(cap) = check.transport.or(check.generation) {
        let most = report.results.iter().filter_map(|found| found.lower).fold(0.0, f64::max);
        if most > 0.0 {
            add("share of the tester's limit used", format!("{} %", fixed(most / cap * 100.0, 0)));
        }
    }
    let invalid: Vec<&Trial> = report.trials.iter().filter(|t| t.invalid.is_some()).collect();
    if !report.trials.is_empty() {
        let mut reasons: Vec<&str> = invalid.iter().filter_map(|t| t.invalid.as_deref()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let why =
            if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
        add(
            "trials that do not count",
            format!("{} of {}{why}", invalid.len(), report.trials.len()),
        );
        let each = report.trials.iter().map(|t| sum(t).unexplained().saturating_abs());
        let unexplained = each.fold(0, i64::saturating_add);
        if report.trials.iter().any(|t| !t.directions.is_empty()) {
            add("packets unexplained, all trials", signed(unexplained));
        }
    }
    add("machine busy with other things", if report.machine.noisy { "yes" } else { "no" }.into());
    add("time taken by the hypervisor", format!("{} %", fixed(report.machine.steal_percent, 2)));
    if let Some(text) = little(report) {
        add("open connections, by Little's law", text);
    }
    Table {
        key: "trust",
        title: "How far to trust this".into(),
        columns: names(&["", ""]),
        rows,
        ..Table::default()
    }
}

/// Compares the mean number of open connections with rate and life.
fn little(report: &Report) -> Option<String> {
    let last = report.trials.iter().rev().find(|trial| trial.invalid.is_none())?;
    let connections = last.connections.as_ref()?;
    connections.little()
}

impl Connections {
    /// Compares their number with their rate and life (Little's law): if it differs, they grew or
    /// fell in the window. `None` if that is not known.
    pub fn little(&self) -> Option<String> {
        let (active, life) = (self.active_mean?, self.life_mean_s?);
        let wanted = self.begun_per_s? * life;
        // Lives count whole milliseconds. The error is half of one if all begin at the same part of
        // one, and less the more begin in each: half a connection if they begin evenly, and one
        // with the jitter of workers' turns.
        let blurred = (self.begun_per_s? / 2000.0).min(1.0);
        let off = ((active - wanted).abs() - blurred) / active.max(wanted).max(1.0);
        let verdict = if off <= STATIONARY { "stationary" } else { "not stationary" };
        Some(format!("{} seen, {} expected: {verdict}", rate(active), rate(wanted)))
    }
}

fn results(report: &Report) -> Table {
    let row = |found: &Found| {
        let first = found.first_lost.as_ref().map_or("–".to_owned(), |first| {
            let grade = match first.grade {
                Grade::Seen => "seen",
                Grade::Counted => "counted",
                Grade::Inferred => "inferred",
                Grade::Unexplained => "unexplained",
            };
            let place = place("", &first.node, &first.reason);
            let number = first.sequence.map_or(String::new(), |number| format!(" #{number}"));
            let at = first.scheduled_ns;
            let at = at.map_or(String::new(), |at| format!(" at {}", time(at as f64)));
            format!("{}{number}{at}, {grade}: {place}", first.stream)
                .trim_end_matches([':', ' '])
                .to_owned()
        });
        let by = found
            .limited_by
            .as_ref()
            .map_or("–".to_owned(), |by| place(&by.row, &by.node, &by.reason));
        let sign = if found.tester_limit { "≥ " } else { "" };
        vec![
            found.goal.clone(),
            format!("{sign}{}", maybe(found.lower)),
            maybe(found.upper),
            rate(found.conditional_throughput),
            maybe(found.l1_bps),
            found.unit.clone(),
            by,
            first,
        ]
    };
    Table {
        key: "results",
        title: "Results".into(),
        note: "Lower bound: the highest rate that meets the goal. Throughput: what arrives there \
               (RFC 9971)."
            .into(),
        columns: names(&[
            "goal",
            "lower bound",
            "upper bound",
            "throughput",
            "bit/s (L1)",
            "unit",
            "limited by",
            "first packet lost",
        ]),
        rows: report.results.iter().map(row).collect(),
    }
}

fn of(cover: &Cover, wanted: f64) -> String {
    let found = cover.percentiles.iter().find(|percentile| (percentile.0 - wanted).abs() < 1e-9);
    found.and_then(|percentile| percentile.1).map_or("–".into(), |at| time(at as f64))
}

fn latency(report: &Report) -> Table {
    let mut rows = Vec::new();
    for latency in &report.latency {
        let row = |name: String, cover: &Cover, jitter: Option<u64>| {
            let at = |value: Option<u64>| value.map_or("–".into(), |at| time(at as f64));
            let mut row = vec![name, count(cover.count), at(cover.least_ns)];
            row.extend([0.5, 0.9, 0.99, 0.999, 0.9999].map(|share| of(cover, share)));
            row.extend([at(cover.most_ns), at(jitter)]);
            row
        };
        let mut name = format!("{} at {}", latency.class, rate(latency.load));
        if latency.closed_loop {
            name += " (closed loop)";
        }
        if latency.lossy {
            name += " (with loss)";
        }
        rows.push(row(name, &latency.scheduled, latency.jitter_ns));
        if let Some(floor) = &latency.floor {
            rows.push(row("– back to back".into(), floor, None));
        }
    }
    Table {
        key: "latency",
        title: "Latency".into(),
        note:
            "From when a packet was due until it arrived, so that a tester that falls behind does \
               not hide it. A percentile needs ten samples above it."
                .into(),
        columns: names(&[
            "", "samples", "least", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "greatest",
            "jitter",
        ]),
        rows,
    }
}

/// Books of both directions of a trial.
pub(crate) fn sum(trial: &Trial) -> Books {
    trial.directions.values().fold(Books::default(), |all, books| all.plus(books))
}

/// The trials whose books are shown: the ones at the first goal's bounds, or the last.
pub(crate) fn bounds(report: &Report) -> Vec<&Trial> {
    let valid = || report.trials.iter().filter(|t| t.invalid.is_none() && !t.directions.is_empty());
    let at = |load: Option<f64>| {
        let load = load?;
        valid().rev().find(|trial| (trial.load / load - 1.0).abs() < 1e-6)
    };
    let mut shown: Vec<&Trial> = report
        .results
        .first()
        .into_iter()
        .flat_map(|found| [at(found.lower), at(found.upper)])
        .flatten()
        .collect();
    if shown.is_empty() {
        shown.extend(valid().next_back());
    }
    shown
}

fn books(report: &Report) -> Table {
    let shown = bounds(report);
    let all: Vec<(String, &Books)> = shown
        .iter()
        .flat_map(|trial| trial.directions.iter().map(move |one| (trial, one)))
        .map(|(trial, (direction, books))| (format!("{} ({direction})", rate(trial.load)), books))
        .collect();
    let mut columns = vec![String::new()];
    columns.extend(all.iter().map(|(name, _)| name.clone()));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (n, (text, _)) in Books::default().rows().into_iter().enumerate() {
        let mut row = vec![text.to_owned()];
        let cell = |(_, books): &(String, &Books)| books.rows().get(n).map(|(_, n)| signed(*n));
        row.extend(all.iter().filter_map(cell));
        rows.push(row);
    }
    if all.is_empty() {
        rows.clear();
    }
    Table {
        key: "books",
        title: "Books".into(),
        note: "Each packet of the trial, its ramp and its tail included, is in one row; sent is \
               what was intended without the two rows before it."
            .into(),
        columns,
        rows,
    }
}

fn trials(report: &Report) -> Table {
    let row = |trial: &Trial| {
        let verdicts: Vec<String> = trial
            .verdicts
            .iter()
            .map(|(goal, verdict)| {
                let word = match verdict {
                    Verdict::Low => "met",
                    Verdict::High => "missed",
                    Verdict::Undecided => "undecided",
                };
                format!("{goal} {word}")
            })
            .collect();
        let books = sum(trial);
        let connections = trial.connections.as_ref().map_or(0, |connections| connections.begun);
        let sent = if books.intended > 0 { books.sent() } else { connections };
        vec![
            trial.n.to_string(),
            rate(trial.load),
            format!("{} s", fixed(trial.effective_s, 2)),
            count(sent),
            share_of(trial.loss_ratio, trial.judged),
            trial.invalid.clone().unwrap_or_else(|| verdicts.join(", ")),
        ]
    };
    let left_out = report.trials.len().saturating_sub(MOST_ROWS);
    Table {
        key: "trials",
        title: "Trials".into(),
        note: match left_out {
            0 => SENT_AND_LOST.to_owned(),
            _ => format!("{SENT_AND_LOST} {left_out} more are in the JSON."),
        },
        columns: names(&["", "load", "duration", "sent", "lost", "verdict"]),
        rows: report.trials.iter().take(MOST_ROWS).map(row).collect(),
    }
}

fn streams(report: &Report) -> Table {
    let mut rows = Vec::new();
    for trial in bounds(report) {
        for stream in trial.streams.iter().take(MOST_ROWS) {
            let shown = stream.missing.iter().take(MOST_RANGES).map(|[from, to]| {
                match to.saturating_sub(*from) {
                    0 | 1 => format!("#{from}"),
                    _ => format!("#{from}–{}", to - 1),
                }
            });
            let mut first = shown.collect::<Vec<_>>().join(", ");
            if stream.missing.len() > MOST_RANGES {
                first += ", …";
            }
            rows.push(vec![
                format!("{} {} at {}", stream.name, stream.direction, rate(trial.load)),
                count(stream.intended),
                count(stream.sent),
                count(stream.received),
                count(stream.lost),
                count(stream.duplicates),
                count(stream.reordered),
                count(stream.damaged),
                first,
            ]);
        }
    }
    let left_out: u64 = bounds(report).iter().map(|trial| trial.streams_left_out).sum();
    Table {
        key: "streams",
        title: "Streams".into(),
        note: match left_out {
            0 => String::new(),
            _ => {
                format!("{} more streams, which lost less, are in the books only.", count(left_out))
            }
        },
        columns: names(&[
            "stream",
            "intended",
            "sent",
            "received",
            "lost",
            "duplicate",
            "reordered",
            "damaged",
            "first lost",
        ]),
        rows,
    }
}

fn drops(report: &Report) -> Table {
    let mut rows = Vec::new();
    for trial in bounds(report) {
        for drop in trial.drops.iter().take(MOST_ROWS) {
            rows.push(vec![
                rate(trial.load),
                drop.side.clone(),
                drop.node.clone(),
                drop.reason.clone(),
                count(drop.packets),
                count(drop.foreign),
            ]);
        }
    }
    Table {
        key: "drops",
        title: "Where packets were dropped".into(),
        note: "From its counters, over the whole trial with ramp and tail.".into(),
        columns: names(&["load", "side", "node", "reason", "packets", "foreign"]),
        rows,
    }
}

/// Sentences on what, where and when.
pub(crate) fn about(report: &Report) -> Vec<String> {
    let mut all = Vec::new();
    let device = [&report.device.name, &report.device.version].map(String::as_str).join(" ");
    let machine = &report.machine;
    let mut add = |what: &str, text: String| {
        if !text.trim().is_empty() {
            all.push(format!("{what}: {}", text.trim()));
        }
    };
    add("Device", device);
    let profile = &report.profile;
    if !profile.name.is_empty() {
        add("Profile", format!("{} ({})", profile.name, profile.fingerprint));
    }
    let ports: Vec<&str> = report.transport.ports.iter().map(|port| port.name.as_str()).collect();
    add("Transport", format!("{} {}", report.transport.kind, ports.join(", ")));
    if !machine.cpu.is_empty() {
        let hypervisor = if machine.hypervisor { ", a virtual machine" } else { "" };
        add(
            "Machine",
            format!(
                "{}, {} cores, Linux {}{hypervisor}",
                machine.cpu, machine.cores, machine.kernel
            ),
        );
    }
    if !report.started.is_empty() {
        add("Time", format!("{} to {}", report.started, report.ended));
    }
    all
}
