//! The lines of `cps_ndr.py`.

use std::io::IsTerminal;

use thalweg_load::search::binary::Range;
use thalweg_load::talk::Counts;

use super::number::short;
use crate::load::device::Books;

/// The line that begins an iteration.
pub(super) fn iteration(number: usize, range: &Range) -> String {
    let Range { lower, current, upper } = *range;
    let [lower, current, upper] = [lower, current, upper].map(short);
    format!("... iteration #{number}: lower={lower} current={current} upper={upper}")
}

/// What a sample has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Rate asked for, in connections per second.
    pub(super) rate: f64,
    /// Its length in seconds.
    pub(super) seconds: f64,
    /// Connections open at its end, TIME_WAIT included.
    pub(super) active: u64,
    /// Those of them that are not in TIME_WAIT.
    pub(super) open: u64,
    /// Counters of both sides in its window.
    pub(super) clients: Counts,
    /// Those of the servers.
    pub(super) servers: Counts,
    /// Counters of both sides from its beginning to the end of its last connection.
    pub(super) all_clients: Counts,
    /// Those of the servers.
    pub(super) all_servers: Counts,
}

/// Bytes that a frame has on the wire beyond those counted: the FCS.
const FCS: u64 = 4;

impl Sample {
    /// `after` is the end of the window, `end` that of its last connection.
    pub(super) fn of(rate: f64, before: &Books, after: &Books, end: &Books) -> Sample {
        let clients = &after.clients;
        Sample {
            rate,
            seconds: (clients.at.saturating_sub(before.clients.at) as f64 / 1e6).max(1e-6),
            active: u64::from(clients.open) + u64::from(clients.time_wait),
            open: clients.open.into(),
            clients: clients.counts.since(&before.clients.counts),
            servers: after.servers.counts.since(&before.servers.counts),
            all_clients: end.clients.counts.since(&before.clients.counts),
            all_servers: end.servers.counts.since(&before.servers.counts),
        }
    }

    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    /// Packets and bits of layer 2 that both sides sent in the window.
    pub(super) fn sent(&self) -> (u64, u64) {
        let packets = self.clients.sent + self.servers.sent;
        let bytes = self.clients.sent_bytes + self.servers.sent_bytes;
        (packets, 8 * (bytes + FCS * packets))
    }

    /// Packets and bits of layer 2 that both sides received in the window.
    pub(super) fn received(&self) -> (u64, u64) {
        let packets = self.clients.received + self.servers.received;
        let bytes = self.clients.received_bytes + self.servers.received_bytes;
        (packets, 8 * (bytes + FCS * packets))
    }

    /// Packets lost, of those sent until the last connection of the window had ended.
    fn lost(&self) -> (u64, u64) {
        let (clients, servers) = (&self.all_clients, &self.all_servers);
        let sent = clients.sent + servers.sent;
        (sent.saturating_sub(clients.received + servers.received), sent)
    }

    /// Share of packets lost, in percent.
    pub(super) fn lost_percent(&self) -> f64 {
        let (lost, sent) = self.lost();
        100.0 * lost as f64 / sent.max(1) as f64
    }

    /// Average bytes of messages per packet that the clients counted.
    pub(super) fn size(&self) -> f64 {
        let packets = self.clients.sent + self.clients.received;
        (self.clients.said + self.clients.heard) as f64 / packets.max(1) as f64
    }

    /// Counters that say that something went wrong, with the words that TRex has for them.
    fn errors(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let of = |side, counts: Counts| {
            [
                (side, "connections lost before they were established", counts.lost.syn),
                (side, "connections dropped in rxmt timeout", counts.lost.sent),
                (side, "connections lost while data was expected", counts.lost.expected),
                (side, "connections lost at their end", counts.lost.fin),
                (side, "connections reset", counts.reset),
                (side, "connections with a wrong answer", counts.wrong),
                (side, "retransmit SYN timeouts", counts.syn_retries),
                (side, "retransmit timeouts", counts.data_retries),
                (side, "data packets rexmitted", counts.fast_retries),
                (side, "duplicate-only packets received", counts.duplicates),
                (side, "out-of-order packets received", counts.reordered),
                (side, "packets without flow", counts.unknown),
                (side, "packets that do not fit their connection", counts.unexpected),
                (side, "packets with checksum errors", counts.bad_checksum),
                (side, "connections opened too late by the tester", counts.unsent),
                (side, "connections without a free tuple", counts.no_tuple),
                (side, "packets that the tester had no room for", counts.no_room),
            ]
        };
        let both = [of("client", self.all_clients), of("server", self.all_servers)];
        both.into_iter().flatten().filter(|(.., count)| *count > 0)
    }

    /// The lines of a verdict.
    pub(super) fn lines(&self, good: bool, verbose: bool) -> Vec<String> {
        let color = std::io::stdout().is_terminal();
        let paint = |code: u8, text: &str| match color {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        };
        let mark = if good { paint(32, "▲▲▲") } else { paint(31, "▼▼▼") };
        let (sent, sent_bits) = self.sent();
        let (received, received_bits) = self.received();
        let rate = |count| short(self.per_second(count));
        let mut lines = vec![format!(
            "{mark} Flows: active {} ({}/s) TX: {}b/s ({}p/s) RX: {}b/s ({}p/s) Size: ~{:.1}B",
            short(self.active as f64),
            rate(self.clients.begun),
            rate(sent_bits),
            rate(sent),
            rate(received_bits),
            rate(received),
            self.size(),
        )];
        let (lost, _) = self.lost();
        let err = paint(31, "err");
        let dropped = format!(
            "dropped: {} pkts ({}/s) ~ {:.4}%",
            short(lost as f64),
            short(self.per_second(lost)),
            self.lost_percent()
        );
        match (good, lost > 0) {
            (false, true) => lines.push(format!("{err} {dropped}")),
            (true, true) if verbose => lines.push(format!("... {dropped} under error threshold")),
            _ => {}
        }
        if verbose && !good {
            let count = |(side, text, count)| format!("{err} {side}: {text} = {count}");
            lines.extend(self.errors().map(count));
        }
        lines
    }
}
