//! The lines of `cps_ndr.py`.

use std::io::IsTerminal;

use thalweg_load::search::binary::Range;
use thalweg_load::talk::Counts;

use crate::number::short;
use crate::sample::Sample;

/// The line that begins an iteration.
pub(super) fn iteration(number: usize, range: &Range) -> String {
    let Range { lower, current, upper } = *range;
    let [lower, current, upper] = [lower, current, upper].map(short);
    format!("... iteration #{number}: lower={lower} current={current} upper={upper}")
}

/// The words of a verdict.
pub(super) trait Lines {
    /// The lines that follow a sample.
    fn lines(&self, good: bool, verbose: bool) -> Vec<String>;
}

/// Counters that say that something went wrong, with the words that TRex has for them.
pub(super) fn errors(
    sample: &Sample,
) -> impl Iterator<Item = (&'static str, &'static str, u64)> + use<> {
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
            (side, "connections beyond the limit of their kind, not opened", counts.held_back),
            (side, "packets that the tester had no room for", counts.no_room),
        ]
    };
    let both = [of("client", sample.all_clients), of("server", sample.all_servers)];
    both.into_iter().flatten().filter(|(.., count)| *count > 0)
}

impl Lines for Sample {
    fn lines(&self, good: bool, verbose: bool) -> Vec<String> {
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
            lines.extend(errors(self).map(count));
        }
        lines
    }
}
