//! Display while a load runs: on a terminal a block of lines that is drawn again and again,
//! elsewhere a line each second.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use rustix::termios::tcgetwinsize;
use thalweg_device_load::{Progress, Times};

use super::device::Device;
use super::number::short;
use super::runner::{Now, seconds};

/// Terminal or lines that it is drawn on.
pub(super) struct Screen {
    terminal: bool,
    /// Lines drawn.
    drawn: usize,
    first: Option<Now>,
    last: Option<Now>,
    /// Values of each look, for the report.
    pub(super) looks: Vec<Look>,
}

/// Rates between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Look {
    /// Packets of streams and of connections per second.
    pub(super) sent: f64,
    pub(super) received: f64,
    /// Bits per second of layer 2.
    sent_bits: f64,
    received_bits: f64,
    /// Connections begun and completed per second.
    pub(super) begun: f64,
    pub(super) completed: f64,
    /// Connections open, those of them that are established, and those in TIME_WAIT.
    pub(super) open: u64,
    pub(super) established: u64,
    pub(super) time_wait: u64,
}

/// Bytes of a frame that are not counted otherwise.
const FCS: u64 = 4;

/// Packets and bytes of both sides: sent, received.
fn sums(now: &Now) -> [(u64, u64); 2] {
    let of_streams = |of: fn(&Progress) -> (u64, u64)| {
        let (a, b) = (of(&now.streams[0]), of(&now.streams[1]));
        (a.0 + b.0, a.1 + b.1)
    };
    let counts = now.books.clients.counts.plus(&now.books.servers.counts);
    let (sent, received) = (of_streams(|p| p.sent), of_streams(|p| p.received));
    [
        (sent.0 + counts.sent, sent.1 + counts.sent_bytes),
        (received.0 + counts.received, received.1 + counts.received_bytes),
    ]
}

impl Look {
    fn between(was: &Now, is: &Now) -> Look {
        let time = seconds(was, is);
        let rate = |was: u64, is: u64| is.saturating_sub(was) as f64 / time;
        let ([sent, received], [sent_now, received_now]) = (sums(was), sums(is));
        let bits = |was: (u64, u64), is: (u64, u64)| {
            8.0 * (rate(was.1, is.1) + FCS as f64 * rate(was.0, is.0))
        };
        let (before, after) = (&was.books.clients, &is.books.clients);
        Look {
            sent: rate(sent.0, sent_now.0),
            received: rate(received.0, received_now.0),
            sent_bits: bits(sent, sent_now),
            received_bits: bits(received, received_now),
            begun: rate(before.counts.begun, after.counts.begun),
            completed: rate(before.counts.completed, after.counts.completed),
            open: after.open.into(),
            established: after.established().into(),
            time_wait: after.time_wait.into(),
        }
    }

    fn packets(&self) -> String {
        let [sent, sent_bits, received, received_bits] =
            [self.sent, self.sent_bits, self.received, self.received_bits].map(short);
        format!("sent {sent}p/s, {sent_bits}b/s; received {received}p/s, {received_bits}b/s")
    }

    fn connections(&self) -> String {
        let [begun, completed, open, time_wait] =
            [self.begun, self.completed, self.open as f64, self.time_wait as f64].map(short);
        format!("opened {begun}/s, completed {completed}/s; open {open}, in TIME_WAIT {time_wait}")
    }
}

impl Screen {
    pub(super) fn new() -> Screen {
        let terminal = std::io::stdout().is_terminal();
        Screen { terminal, drawn: 0, first: None, last: None, looks: Vec::new() }
    }

    /// Shows how far a trial is.
    pub(super) fn look(&mut self, device: &mut Device, now: &Now) -> Result<()> {
        let was = self.last.replace(now.clone());
        let Some(was) = was else {
            self.first = Some(now.clone());
            return Ok(());
        };
        let look = Look::between(&was, now);
        self.looks.push(look);
        let streams = device.has_streams();
        let connections = device.groups().next().is_some();
        if !self.terminal {
            let mut line = look.packets();
            if connections {
                line += &format!("; {}", look.connections());
            }
            crate::say!("{line}");
            return Ok(());
        }
        let mut lines = vec![look.packets()];
        if connections {
            lines.push(look.connections());
        }
        if let Some(first) = &self.first {
            let [[was_sent, was_received], [sent, received]] = [sums(first), sums(now)];
            // Packets on their way are among them.
            let missing = (sent.0 - was_sent.0).saturating_sub(received.0 - was_received.0);
            let of = (sent.0 - was_sent.0).max(1) as f64;
            let percent = 100.0 * missing as f64 / of;
            lines.push(format!("lost or on their way: {missing} packets ({percent:.4} %)"));
        }
        if connections {
            let counts = &now.books.clients.counts;
            let broken = counts.lost.all() + counts.reset + counts.wrong;
            let again = counts.syn_retries + counts.data_retries + counts.fast_retries;
            lines.push(format!("connections lost: {broken}; packets sent again: {again}"));
        }
        if streams {
            lines.push(latency(&device.times()?));
        }
        lines.push(format!("{} left; Ctrl-C ends it, with a report", clock(now.left)));
        self.draw(&lines);
        Ok(())
    }

    /// Draws lines in place of the last ones.
    fn draw(&mut self, lines: &[String]) {
        // A line that wraps would take two.
        let width = tcgetwinsize(std::io::stdout()).map_or(80, |size| size.ws_col.max(20));
        let cut = |line: &String| line.chars().take(width.into()).collect::<String>();
        let lines: Vec<String> = lines.iter().map(cut).collect();
        let mut text = block(self.drawn, &lines);
        self.drawn = lines.len();
        text.push('\n');
        let mut out = std::io::stdout().lock();
        // Nobody reads a terminal that is gone.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// Latency so far.
fn latency(times: &Times) -> String {
    let of = |time: Option<u64>| {
        time.map_or_else(|| "-".to_owned(), |time| format!("{:.1}", time as f64 / 1e3))
    };
    format!(
        "latency in us: p50 {}, p99 {}, p99.9 {}, max {}",
        of(times.half),
        of(times.most),
        of(times.nearly_all),
        of(times.longest)
    )
}

/// Goes up to the first of the lines drawn, and writes others: each clears what was there.
fn block(drawn: usize, lines: &[String]) -> String {
    let up = if drawn > 0 { format!("\x1b[{drawn}A") } else { String::new() };
    let lines: Vec<String> = lines.iter().map(|line| format!("\x1b[2K{line}")).collect();
    format!("{up}{}", lines.join("\n"))
}

/// Minutes and seconds.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Books;

    #[test]
    fn rates_are_those_between_two_looks() {
        let progress = |at: u64, sent, received| Progress {
            at,
            sent: (sent, sent * 60),
            received: (received, received * 60),
            last: None,
        };
        let now = |at, sent, received| Now {
            streams: [progress(at, sent, received), progress(at, 0, 0)],
            books: Books::default(),
            left: Duration::ZERO,
        };
        let look = Look::between(&now(0, 0, 0), &now(2_000_000_000, 2000, 1000));
        assert_eq!((look.sent, look.received, look.sent_bits), (1000.0, 500.0, 512_000.0));
        assert_eq!(look.packets(), "sent 1.0Kp/s, 512Kb/s; received 500p/s, 256Kb/s");
        assert_eq!(look.connections(), "opened 0/s, completed 0/s; open 0, in TIME_WAIT 0");
    }

    #[test]
    fn lines_are_drawn_over_the_last_ones() {
        let lines = ["a".to_owned(), "b".to_owned()];
        assert_eq!(block(0, &lines), "\x1b[2Ka\n\x1b[2Kb");
        assert_eq!(block(2, &lines), "\x1b[2A\x1b[2Ka\n\x1b[2Kb");
        let times = Times { half: Some(2500), longest: Some(10_000_000), ..Times::default() };
        assert_eq!(latency(&times), "latency in us: p50 2.5, p99 -, p99.9 -, max 10000.0");
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
        assert_eq!(clock(Duration::from_secs(3725)), "1:02:05");
    }
}
