//! Results of trials, in the form of reports.

use std::collections::BTreeMap;

use thalweg_device_load::StreamReport;
use thalweg_load::stream;
use thalweg_load_report::{
    Books, Connections, Cover, Drop, FirstLost, Latency, LimitedBy, Percentile, StreamResult, Trial,
};

use super::far::TESTER;
use super::lines;
use super::runner::Ran;
use super::spot::{Drops, Missing, Side, Spot};
use super::streams::{First, StreamTrial};
use super::trial;

/// Percentiles of a latency; those with too few samples have no value.
const PERCENTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
/// Ranges of lost packets that a trial lists, all streams together.
const LISTED: usize = 2000;
/// Streams that a trial lists: those that lost most come first. All are in its books.
const MOST_STREAMS: usize = 256;
/// Distributions that are listed point by point.
const MOST_CURVES: usize = 32;
/// Directions of a trial's books: counters of a device do not tell them apart.
const BOTH: &str = "both";

/// Adds packets dropped to the row of the books that their place belongs to, and returns its key.
fn add(books: &mut Books, spot: &Spot, packets: u64) -> &'static str {
    let is_tester = TESTER.contains(&spot.node.as_str());
    let sent = spot.reason == "the receiver's queue full";
    let (row, key) = match spot.side {
        Side::Tester => (&mut books.tester_rx, "tester"),
        // The tester sends towards the device, and the device towards the tester.
        Side::Link if spot.node == "kernel" || is_tester == sent => (&mut books.link_in, "link"),
        Side::Link => (&mut books.link_out, "link"),
        Side::Device if spot.node.ends_with("-tx") => (&mut books.device_tx, "device"),
        Side::Device
            if spot.reason.contains("ring full") || spot.reason.contains("socket full") =>
        {
            (&mut books.device_rx, "device")
        }
        Side::Device => (&mut books.device, "device"),
    };
    *row += packets;
    key
}

fn add_drops(books: &mut Books, drops: &Drops) {
    for (spot, packets) in drops.iter() {
        add(books, spot, packets);
    }
}

fn drops(drops: &Drops) -> Vec<Drop> {
    let drop = |(spot, packets): (&Spot, u64)| Drop {
        side: spot.side.word().to_owned(),
        node: spot.node.clone(),
        reason: spot.reason.clone(),
        packets,
        foreign: 0,
    };
    drops.iter().map(drop).collect()
}

/// Returns the place at which most of what is missing was lost; `None` if nothing was.
pub(super) fn limited_by(drops: &Drops, missing: Missing, tester: bool) -> Option<LimitedBy> {
    let Missing { lost, damaged, unexplained } = missing;
    let known: u64 = drops.iter().map(|(_, packets)| packets).sum();
    let share = |packets: u64| packets as f64 / lost.max(known).max(1) as f64;
    let limit = |row: &str, node: &str, reason: &str, packets| LimitedBy {
        row: row.to_owned(),
        node: node.to_owned(),
        reason: reason.to_owned(),
        share: share(packets),
    };
    match drops.most() {
        Some((spot, packets))
            if packets >= unexplained.max(damaged) && (!tester || spot.side == Side::Tester) =>
        {
            Some(limit(add(&mut Books::default(), spot, 0), &spot.node, &spot.reason, packets))
        }
        _ if tester => Some(limit("tester", "", "it was late or had no room", 0)),
        _ if damaged > 0 && damaged >= unexplained => {
            Some(limit("damaged", "", "packets arrived with other bytes", damaged))
        }
        _ if unexplained > 0 => Some(limit("device", "", "no counter says where", unexplained)),
        _ => None,
    }
}

/// A distribution of times; point by point, if `whole`.
fn cover(latency: &stream::Latency, whole: bool) -> Cover {
    Cover {
        count: latency.count(),
        least_ns: latency.least(),
        mean_ns: latency.mean(),
        most_ns: latency.most(),
        percentiles: PERCENTILES.map(|share| Percentile(share, latency.quantile(share))).to_vec(),
        beyond: if whole { latency.beyond() } else { Vec::new() },
    }
}

/// Gives each latency its floor: that of the same stream without a device.
pub(super) fn with_floor(mut all: Vec<Latency>, floor: &[Latency]) -> Vec<Latency> {
    for latency in &mut all {
        let same = floor.iter().find(|floor| floor.class == latency.class);
        latency.floor = same.map(|floor| floor.scheduled.clone());
    }
    all
}

/// Latency of all streams of a trial at a load.
pub(super) fn latencies(streams: &StreamTrial, load: f64) -> Vec<Latency> {
    let mut all: Vec<Latency> = Vec::new();
    for (direction, way) in streams.directions() {
        for stream in direction.streams.iter().filter(|stream| stream.latency.count() > 0) {
            all.push(Latency {
                load,
                class: format!("{} {way}", stream.name),
                lossy: stream.judged.lost > 0,
                scheduled: cover(&stream.latency, all.len() < MOST_CURVES),
                jitter_ns: stream.latency.jitter(),
                ..Latency::default()
            });
        }
    }
    all
}

/// The first packet lost.
pub(super) fn first_lost(first: &First) -> FirstLost {
    first.place.fill(FirstLost {
        scheduled_ns: Some(first.due),
        stream: format!("{} {}", first.stream, first.way),
        sequence: Some(first.number),
        ..FirstLost::default()
    })
}

fn stream(report: &StreamReport, way: &str) -> StreamResult {
    let books = &report.judged;
    let received = &books.received;
    let missing = books.missing.iter();
    StreamResult {
        name: report.name.clone(),
        direction: way.to_owned(),
        intended: books.sent.intended,
        sent: books.sent.sent,
        received: received.packets,
        // Streams without tags are known by port only.
        lost: if report.tagged { books.lost } else { 0 },
        duplicates: received.duplicates,
        reordered: received.reordered,
        damaged: received.damaged,
        missing: missing.map(|range| [range.start, range.end]).collect(),
    }
}

pub(super) fn connections(trial: &trial::Trial) -> Connections {
    let sample = &trial.sample;
    let window = &sample.flowing;
    let counters = lines::errors(sample);
    let asked = sample.all_clients.keepalives;
    let asked = (asked > 0).then_some(("client", "keepalive questions", asked));
    let counters = counters.chain(asked).map(|(side, text, n)| (format!("{side}: {text}"), n));
    Connections {
        begun: trial.connections.begun,
        completed: trial.connections.completed,
        clean: trial.connections.clean,
        begun_per_s: Some(window.begun as f64 / sample.seconds),
        active_mean: (window.begun > 0).then(|| window.held as f64 / 1e6 / sample.seconds),
        life_mean_s: (window.ended > 0).then(|| window.lived as f64 / 1e3 / window.ended as f64),
        counters: counters.collect(),
    }
}

/// A trial of connections alone, whose traffic goes on from one to the next.
pub(super) fn of_connections(made: &trial::Trial) -> Trial {
    let sample = &made.sample;
    let (lost, sent) = sample.lost();
    let no_room = sample.all_clients.no_room + sample.all_servers.no_room;
    let mut books = Books {
        intended: sent + no_room,
        unsent_no_room: no_room,
        received: sent.saturating_sub(lost),
        damaged: sample.damaged(),
        ..Books::default()
    };
    add_drops(&mut books, &made.drops);
    let judged = made.connections.begun;
    Trial {
        load: sample.rate,
        effective_s: sample.seconds,
        duration_s: sample.seconds,
        loss_ratio: made.connections.errors() as f64 / judged.max(1) as f64,
        judged,
        invalid: made.tester.then(|| "the tester was late or lost packets itself".to_owned()),
        directions: BTreeMap::from([(BOTH.to_owned(), books)]),
        connections: Some(connections(made)),
        drops: drops(&made.drops),
        ..Trial::default()
    }
}

/// Leaves as many streams and lost packets as a report has room for; returns how many streams not.
fn bound(streams: &mut Vec<StreamResult>) -> u64 {
    let all = streams.len();
    if all > MOST_STREAMS {
        // Streams that lost as much keep their order.
        streams.sort_by_key(|stream| std::cmp::Reverse(stream.lost));
        streams.truncate(MOST_STREAMS);
    }
    let mut room = LISTED;
    for stream in streams.iter_mut() {
        stream.missing.truncate(room);
        room -= stream.missing.len();
    }
    (all - streams.len()) as u64
}

/// A trial from quiet to quiet.
pub(super) fn of_ran(ran: &Ran, load: f64) -> Trial {
    let (of, lost) = ran.lost();
    let mut books = Books::default();
    let mut streams = Vec::new();
    if let Some(trial) = &ran.streams {
        for (direction, way) in trial.directions() {
            for report in &direction.streams {
                let all = &report.all;
                books.intended += all.sent.intended;
                books.unsent_late += all.sent.late;
                books.unsent_no_room += all.sent.refused;
                books.received += all.received.packets;
                books.damaged += all.received.damaged;
                streams.push(stream(report, &way));
            }
            books.received += direction.port.untagged;
        }
    }
    if let Some(trial) = &ran.connections {
        let (lost, sent) = trial.sample.lost();
        let no_room = trial.sample.all_clients.no_room + trial.sample.all_servers.no_room;
        books.intended += sent + no_room;
        books.unsent_no_room += no_room;
        books.received += sent.saturating_sub(lost);
        books.damaged += trial.sample.damaged();
    }
    add_drops(&mut books, &ran.drops);
    let streams_left_out = bound(&mut streams);
    Trial {
        load,
        streams_left_out,
        duration_s: ran.seconds,
        effective_s: ran.seconds,
        loss_ratio: lost as f64 / of.max(1) as f64,
        judged: ran.judged(),
        invalid: ran.is_spoiled().then(|| "the tester was late or lost packets itself".to_owned()),
        directions: BTreeMap::from([(BOTH.to_owned(), books)]),
        streams,
        connections: ran.connections.as_ref().map(connections),
        drops: drops(&ran.drops),
        ..Trial::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_rows_of_the_books() {
        let mut drops = Drops::default();
        for (side, node, reason) in [
            (Side::Device, "ip4-lookup", "no route"),
            (Side::Device, "host-load0", "receive ring full"),
            (Side::Device, "host-load1-tx", "ring full on sending"),
            (Side::Link, "tester0", "the receiver's queue full"),
            (Side::Link, "load1", "the receiver's queue full"),
            (Side::Link, "tester1", "dropped by the kernel on receipt"),
            (Side::Link, "kernel", "a processor's backlog full"),
            (Side::Tester, "host interface", "receive ring full"),
        ] {
            drops.add(Spot::new(side, node, reason), 1);
        }
        let mut books = Books { intended: 100, received: 92, ..Books::default() };
        add_drops(&mut books, &drops);
        assert_eq!((books.device, books.device_rx, books.device_tx), (1, 1, 1));
        assert_eq!((books.link_in, books.link_out), (2, 2));
        assert_eq!((books.tester_rx, books.unexplained()), (1, 0));
    }

    #[test]
    fn what_is_listed_is_bounded() {
        let stream = |lost: u64| StreamResult {
            lost,
            missing: (0..lost).map(|n| [2 * n, 2 * n + 1]).collect(),
            ..StreamResult::default()
        };
        let mut streams: Vec<StreamResult> = (0..4096).map(|n| stream(n % 50)).collect();
        assert_eq!(bound(&mut streams), 4096 - MOST_STREAMS as u64);
        assert_eq!((streams.len(), streams[0].lost), (MOST_STREAMS, 49));
        assert_eq!(streams.iter().map(|stream| stream.missing.len()).sum::<usize>(), LISTED);
        let mut few = vec![stream(0), stream(7)];
        assert_eq!((bound(&mut few), few[0].lost, few[1].missing.len()), (0, 0, 7));
    }

    #[test]
    fn most_of_the_loss_is_named() {
        let mut drops = Drops::default();
        let missing = |lost, damaged, unexplained| Missing { lost, damaged, unexplained };
        assert_eq!(limited_by(&drops, Missing::default(), false), None);
        assert_eq!(limited_by(&drops, missing(5, 5, 0), false).unwrap().row, "damaged");
        let unknown = limited_by(&drops, missing(5, 0, 5), false).unwrap();
        assert_eq!((unknown.row.as_str(), unknown.share), ("device", 1.0));
        drops.add(Spot::new(Side::Device, "ct", "full"), 8);
        let by = limited_by(&drops, missing(10, 0, 2), false).unwrap();
        assert_eq!((by.node.as_str(), by.share), ("ct", 0.8));
        assert_eq!(limited_by(&drops, missing(10, 0, 2), true).unwrap().row, "tester");
    }
}
