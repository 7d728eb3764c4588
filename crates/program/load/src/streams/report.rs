//! Results of a trial of streams, as text.

use thalweg_device_load::{DirectionReport, StreamReport};
use thalweg_load::stream::Latency;
use thalweg_load_report::below;
use thalweg_terminal::harmless;

use super::trial::{FCS, StreamTrial, Sum, WIRE};
use crate::number::short;
use crate::spot::Missing;

/// Percentiles of latency that are shown, where there are enough packets for them.
const PERCENTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// The row of a stream without a device.
const BACK_TO_BACK: &str = "- back to back";

fn micros(nanos: Option<u64>) -> String {
    nanos.map_or("-".to_owned(), |nanos| format!("{:.1}", nanos as f64 / 1e3))
}

fn latency_cells(latency: &Latency) -> Vec<String> {
    let mut cells = vec![micros(latency.least())];
    cells.extend(PERCENTILES.iter().map(|(_, share)| micros(latency.quantile(*share))));
    cells.push(micros(latency.most()));
    cells.push(micros(latency.jitter()));
    cells
}

fn row(stream: &StreamReport, way: &str) -> Vec<String> {
    let books = &stream.judged;
    let name = harmless(&stream.name).into_owned();
    let mut cells = vec![name, way.to_owned(), books.sent.sent.to_string()];
    if stream.tagged {
        let received = &books.received;
        cells.extend(
            [
                received.packets,
                books.lost,
                received.duplicates,
                received.reordered,
                received.damaged,
            ]
            .map(|count| count.to_string()),
        );
        cells.extend(latency_cells(&stream.latency));
    } else {
        cells.push("by port".to_owned());
    }
    cells
}

/// The line of packets that arrived with other bytes, which count as lost.
pub(crate) fn damaged(packets: u64) -> Option<String> {
    (packets > 0).then(|| format!("  {packets} arrived damaged"))
}

/// Columns of text, each as wide as its widest cell.
fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |at: usize| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cell = |(at, cell): (usize, &String)| {
            let width = widths.get(at).copied().unwrap_or_default();
            if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        };
        row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}

/// The lines that a trial ends with: streams, books, places of loss. `floor`: the same streams
/// without a device.
pub(crate) fn lines(trial: &StreamTrial, floor: Option<&StreamTrial>) -> Vec<String> {
    let heads = ["stream", "way", "sent", "received", "lost", "twice", "reordered", "damaged"];
    let mut head: Vec<String> = heads.iter().map(|word| (*word).to_owned()).collect();
    head.push("min us".into());
    head.extend(PERCENTILES.iter().map(|(name, _)| (*name).to_owned()));
    head.extend(["max".to_owned(), "jitter".to_owned()]);
    let mut rows = vec![head];
    let mut floors = floor.map(StreamTrial::directions);
    for (direction, way) in trial.directions() {
        let floor = floors.as_mut().and_then(Iterator::next).map(|(direction, _)| direction);
        for (at, stream) in direction.streams.iter().enumerate() {
            rows.push(row(stream, &way));
            let floor = floor.and_then(|floor| floor.streams.get(at));
            if let Some(floor) = floor.filter(|floor| floor.latency.count() > 0) {
                let mut cells = row(floor, &way);
                cells[0] = BACK_TO_BACK.to_owned();
                rows.push(cells);
            }
        }
    }
    let mut lines = table(&rows);
    lines.push(String::new());
    for (direction, way) in trial.directions() {
        if !direction.streams.is_empty() {
            lines.push(books(direction, &way, trial.seconds));
        }
    }
    let Missing { lost, damaged: bad, unexplained } = trial.missing();
    if lost > 0 {
        lines.push(format!("Of all {lost} packets lost since the trial began:"));
        lines.extend(trial.drops.iter().map(|(spot, packets)| format!("  {packets} {spot}")));
        lines.extend(damaged(bad));
        lines.push(format!("  {unexplained} unexplained"));
        lines.extend(first_lost(trial));
    }
    if trial.is_spoiled() {
        lines.push("The tester was the limit: it did not send all, or lost some itself.".into());
    }
    lines
}

fn books(direction: &DirectionReport, way: &str, seconds: f64) -> String {
    let sum = Sum::of(direction);
    let rate = |packets: u64, bytes: u64| {
        let (packets, bytes) = (packets as f64, bytes as f64);
        let l2 = 8.0 * (bytes + FCS as f64 * packets);
        let l1 = 8.0 * (bytes + WIRE as f64 * packets);
        format!(
            "{}p/s, L2 {}b/s, L1 {}b/s",
            short(packets / seconds),
            short(l2 / seconds),
            short(l1 / seconds)
        )
    };
    let lost = match sum.lost {
        0 if sum.window > 0 => format!("0 (below {})", below(sum.window)),
        lost => format!("{lost} ({:.4} %)", 100.0 * sum.loss_ratio()),
    };
    format!(
        "{way}: intended {} = sent {} + late {} + no room {}; received {}, lost {lost}\n     \
         sent {}; received {}",
        sum.intended,
        sum.sent,
        sum.late,
        sum.refused,
        sum.received,
        rate(sum.sent, sum.bytes.0),
        rate(sum.received, sum.bytes.1),
    )
}

/// The first packet that was lost of all, and of each stream.
fn first_lost(trial: &StreamTrial) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(first) = &trial.first {
        lines.push(format!(
            "  first lost in the window: packet {} of {}, {}, due at {:.6} s: {}",
            first.number,
            first.stream,
            first.way,
            first.due as f64 / 1e9,
            first.place
        ));
    }
    for (direction, way) in trial.directions() {
        for stream in direction.streams.iter().filter(|stream| stream.tagged) {
            if let Some((number, _)) = stream.all.first {
                let name = &stream.name;
                lines.push(format!("  first of {name}, {way}: packet {number}"));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let lines = table(&[row(["a", "bbb"]), row(["long", "1"])]);
        assert_eq!(lines, ["a     bbb", "long    1"]);
    }
}
