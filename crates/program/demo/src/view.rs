//! The live view: sheets of figures, as text or on the whole screen.

use super::claims::Talker;
use super::figures::{Figures, Node};
use super::grid::{Grid, Look, cells};
use super::router::SAMPLING_RATE;
use super::screen::Show;
use super::traffic::PROTOCOLS;

/// Nodes shown.
const NODES: usize = 6;
/// Columns of a screen that is drawn for a picture.
const PICTURE_WIDTH: usize = 104;
/// Lines of a screen around its sheets: the title, the bar and the hint.
const EDGES: usize = 3;
/// Blanks between columns.
const GAP: &str = "  ";
/// Packets between two readings from which there is traffic. ARP and counters' datagrams are fewer.
const TRAFFIC: u64 = 20;

/// Formats a number with a decimal prefix, to be followed by a unit: `941 M`.
pub fn si(value: f64) -> String {
    let (scaled, prefix) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let digits = match scaled {
        s if s >= 100.0 || prefix.is_empty() => 0,
        s if s >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$} {prefix}")
}

/// Formats a whole number in groups of three digits.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table with a title. The first column is text, the others are numbers.
pub struct Sheet {
    pub title: String,
    pub head: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Lines on the screen, with the frame and the heading.
    fn height(&self) -> usize {
        self.rows.len() + 3
    }

    /// Leaves out the last columns that do not fit into a width.
    pub fn narrow(&mut self, width: usize) {
        let gaps = |columns: usize| GAP.len() * (columns - 1);
        while self.head.len() > 1
            && self.widths().iter().sum::<usize>() + gaps(self.head.len()) > width
        {
            self.head.pop();
            self.rows.iter_mut().for_each(|row| row.truncate(self.head.len()));
        }
    }

    fn widths(&self) -> Vec<usize> {
        let width = |i: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(i));
            let cells = cells.map(|cell| cell.chars().count());
            cells.chain([self.head[i].chars().count()]).max().unwrap_or(0)
        };
        (0..self.head.len()).map(width).collect()
    }

    fn aligned(&self, row: &[String]) -> String {
        let cells = row.iter().zip(self.widths()).enumerate();
        let cell = |(i, (text, width)): (usize, (&String, usize))| match i {
            0 => format!("{text:<width$}"),
            _ => format!("{text:>width$}"),
        };
        cells.map(cell).collect::<Vec<_>>().join(GAP)
    }

    /// Heading and rows, with aligned columns.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let head: Vec<String> = self.head.iter().map(|&text| text.to_owned()).collect();
        let rows = self.rows.iter().map(|row| self.aligned(row));
        std::iter::once(self.aligned(&head)).chain(rows)
    }

    /// Formats lines of text.
    pub fn text(&self) -> String {
        let lines = self.lines().map(|line| format!("  {}\n", line.trim_end()));
        std::iter::once(format!("{}\n", self.title)).chain(lines).collect()
    }
}

/// Takes rows from the longest sheets until all fit into a number of lines.
pub fn shorten(sheets: &mut [Sheet], height: usize) {
    while sheets.iter().map(Sheet::height).sum::<usize>() > height {
        // Prefer the first of equally long ones: talkers come last, and stay.
        let longest = sheets.iter_mut().rev().max_by_key(|sheet| sheet.rows.len());
        if longest.and_then(|sheet| sheet.rows.pop()).is_none() {
            return;
        }
    }
}

/// One moment of the demonstration.
pub struct Moment<'a> {
    pub phase: &'static str,
    /// Share of the planned time that has passed.
    pub done: f64,
    pub seconds: f64,
    /// Two readings, older first.
    pub figures: Option<&'a (Figures, Figures)>,
    pub talkers: &'a [Talker],
    /// Flow samples that the collector has.
    pub received: u64,
}

impl Moment<'_> {
    /// Everything that is known.
    pub fn sheets(&self) -> Vec<Sheet> {
        let mut sheets = Vec::new();
        if let Some((before, now)) = self.figures {
            sheets.push(interfaces(before, now));
            sheets.push(nodes(before, now));
            sheets.push(samples(now, self.received));
        }
        sheets.push(talkers(self.talkers));
        sheets
    }

    fn headline(&self) -> String {
        format!("{:4.1} s  {}", self.seconds, self.phase)
    }

    /// True if packets of the hosts passed between the two readings.
    pub fn has_traffic(&self) -> bool {
        let received =
            |f: &Figures| f.interfaces.iter().map(|i| i.count("rx_packets")).sum::<u64>();
        self.figures
            .is_some_and(|(before, now)| received(now).saturating_sub(received(before)) >= TRAFFIC)
    }

    /// Draws a screen of its own, as high as its sheets.
    pub fn screen(&self) -> Grid {
        let height = EDGES + self.sheets().iter().map(Sheet::height).sum::<usize>();
        self.draw(PICTURE_WIDTH, height)
    }
}

impl Show for Moment<'_> {
    fn text(&self) -> String {
        let sheets = self.sheets().iter().map(Sheet::text).collect::<String>();
        format!("--- {}\n{sheets}", self.headline())
    }

    fn draw(&self, width: usize, height: usize) -> Grid {
        let mut sheets = self.sheets();
        shorten(&mut sheets, height.saturating_sub(EDGES));
        let mut grid = Grid::new(width);
        let title = " left 10.10.1.2 ── host-eth0 │ thalweg │ host-eth1 ── 10.10.2.2 right";
        grid.push(cells(title, Look::Bold));
        grid.bar(self.done.clamp(0.0, 1.0), &self.headline());
        for sheet in &mut sheets {
            sheet.narrow(grid.inner());
            let looks = std::iter::once(Look::Dim).chain(std::iter::repeat(Look::Plain));
            grid.framed(&sheet.title, sheet.lines().zip(looks));
        }
        grid.fit(height.saturating_sub(1));
        let hint = " It ends by itself; q or Ctrl-C ends it now.";
        grid.push(cells(hint, Look::Dim));
        grid
    }
}

fn interfaces(before: &Figures, now: &Figures) -> Sheet {
    let seconds = now.at.duration_since(before.at).as_secs_f64().max(1e-3);
    let row = |i: &super::figures::Interface| {
        let old = before.interfaces.iter().find(|o| o.name == i.name);
        let old = old.cloned().unwrap_or_default();
        let rate =
            |counter: &str| i.count(counter).saturating_sub(old.count(counter)) as f64 / seconds;
        vec![
            i.name.clone(),
            format!("{}/s", si(rate("rx_packets"))),
            format!("{}bit/s", si(rate("rx_bytes") * 8.0)),
            format!("{}/s", si(rate("tx_packets"))),
            format!("{}bit/s", si(rate("tx_bytes") * 8.0)),
            grouped(i.count("drops") + i.missed()),
        ]
    };
    Sheet {
        title: "Interfaces".into(),
        head: vec!["", "rx packets", "rx", "tx packets", "tx", "lost or dropped"],
        rows: now.interfaces.iter().map(row).collect(),
    }
}

fn nodes(before: &Figures, now: &Figures) -> Sheet {
    let since = |n: &Node| {
        let old = before.nodes.iter().find(|o| o.name == n.name).cloned().unwrap_or_default();
        Node {
            name: n.name.clone(),
            calls: n.calls.saturating_sub(old.calls),
            vectors: n.vectors.saturating_sub(old.vectors),
            clocks: n.clocks.saturating_sub(old.clocks),
        }
    };
    let mut busy: Vec<Node> = now.nodes.iter().map(since).filter(|n| n.vectors > 0).collect();
    busy.sort_by(|a, b| b.clocks.cmp(&a.clocks).then_with(|| a.name.cmp(&b.name)));
    busy.truncate(NODES);
    let row = |n: &Node| {
        vec![
            n.name.clone(),
            grouped(n.vectors),
            format!("{:.1}", n.vectors as f64 / n.calls.max(1) as f64),
            format!("{:.0}", n.clocks as f64 / n.vectors as f64),
        ]
    };
    Sheet {
        title: "Busiest nodes".into(),
        head: vec!["", "packets", "packets/call", "clocks/packet"],
        rows: busy.iter().map(row).collect(),
    }
}

fn samples(now: &Figures, received: u64) -> Sheet {
    let s = &now.samples;
    let cells = [s.taken, s.sent, s.dropped, received].map(grouped);
    Sheet {
        title: format!("sFlow samples, one packet in {SAMPLING_RATE}"),
        head: vec!["", "taken", "sent", "dropped", "received by the collector"],
        rows: vec![std::iter::once("so far".to_owned()).chain(cells).collect()],
    }
}

/// The conversations: estimated from samples, and counted by the hosts.
pub fn talkers(all: &[Talker]) -> Sheet {
    let row = |t: &Talker| {
        let known = PROTOCOLS.iter().find(|(number, _)| *number == t.key.protocol);
        let protocol = known.map_or("IP", |(_, name)| name);
        let e = &t.packets;
        vec![
            format!("{} → {} {protocol}", t.key.source, t.key.destination),
            grouped(e.samples),
            grouped(e.value.round() as u64),
            format!("{} … {}", grouped(e.low.floor() as u64), grouped(e.high.ceil() as u64)),
            grouped(t.truth),
            if t.holds() { "✔" } else { "✘" }.to_owned(),
            format!("{}B", si(t.bytes.value)),
        ]
    };
    Sheet {
        title: "Top talkers from samples; true: packets that the sender's kernel counted".into(),
        head: vec!["", "samples", "packets", "95 % interval", "true", "in", "about"],
        rows: all.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Accounting, Interface, Samples};
    use std::time::{Duration, Instant};
    use thalweg_sflow::estimate::{Estimate, FlowKey};

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 12.0, 999.0, 1234.0, 45_600.0, 941e6, 1.5e9].map(si);
        assert_eq!(shown, ["0 ", "12 ", "999 ", "1.23 k", "45.6 k", "941 M", "1.50 G"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    fn reading(at: Instant, n: u64) -> Figures {
        let interface = Interface {
            name: "host-eth0".into(),
            counters: [("rx_packets", 1000 * n), ("rx_bytes", 1_000_000 * n)]
                .map(|(name, n)| (name.to_owned(), n))
                .into(),
        };
        let node = |name: &str, clocks| Node {
            name: name.into(),
            calls: 10 * n,
            vectors: 1000 * n,
            clocks: clocks * n,
        };
        Figures {
            at,
            interfaces: vec![interface],
            nodes: vec![node("ip4-lookup", 20_000), node("ip4-input", 30_000)],
            samples: Samples { taken: 12, sent: 12, dropped: 0 },
            accounting: Accounting::default(),
        }
    }

    #[test]
    fn a_moment_is_shown_as_text_and_on_a_screen() {
        let start = Instant::now();
        let figures = (reading(start, 1), reading(start + Duration::from_secs(1), 2));
        let key = FlowKey {
            source: [10, 10, 1, 2].into(),
            destination: [10, 10, 2, 2].into(),
            protocol: 6,
        };
        let packets = Estimate::packets(1000, 100.0);
        let talkers = [Talker { key, packets, bytes: packets.scale(1500.0), truth: 100_321 }];
        let moment = Moment {
            phase: "iperf3 TCP, left to right",
            done: 0.5,
            seconds: 10.0,
            figures: Some(&figures),
            talkers: &talkers,
            received: 11,
        };
        let text = moment.text();
        assert!(text.starts_with("--- 10.0 s  iperf3 TCP, left to right\n"), "{text}");
        for part in [
            "8.00 Mbit/s",
            "10.10.1.2 → 10.10.2.2 TCP    1,000  100,000  93,833 … 106,167",
            "100,321   ✔  150 MB",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        let input = text.find("ip4-input").unwrap();
        assert!(input < text.find("ip4-lookup").unwrap(), "the busiest comes first");
        assert!(moment.has_traffic());
        let screen = moment.screen();
        assert_eq!(screen.rows.len(), 3 + 4 + 5 + 4 + 4);
        let drawn = crate::picture::svg(&screen);
        for part in
            [">ip4-input<", ">It ends by itself; q or Ctrl-C ends it now.<", "fill=\"#4f8fd0\""]
        {
            assert!(drawn.contains(part), "{part:?} is not in\n{drawn}");
        }
        for (width, height) in [(120, 40), (20, 5), (1, 1)] {
            let grid = moment.draw(width, height);
            assert_eq!((grid.rows.len(), grid.rows[0].len()), (height, width));
            let shown = grid.text();
            assert!(width < 120 || shown.contains("100,321"), "{shown}");
        }
    }

    #[test]
    fn a_small_screen_has_fewer_rows_and_whole_columns() {
        let sheet = |rows: &[&str]| Sheet {
            title: String::new(),
            head: vec!["", "packets", "drops"],
            rows: rows.iter().map(|name| [name, "12", "3"].map(str::to_owned).to_vec()).collect(),
        };
        let mut sheets = [sheet(&["a", "b", "c"]), sheet(&["d"]), sheet(&["e", "f", "g"])];
        shorten(&mut sheets, 13);
        assert_eq!(sheets.each_ref().map(|sheet| sheet.rows.len()), [1, 1, 2]);
        shorten(&mut sheets, 0);
        assert_eq!(sheets.each_ref().map(|sheet| sheet.rows.len()), [0, 0, 0]);
        let narrow = |width| {
            let mut sheet = sheet(&["host"]);
            sheet.narrow(width);
            sheet.lines().last()
        };
        let lines = [20, 19, 12].map(narrow);
        assert_eq!(
            lines.each_ref().map(|l| l.as_deref().unwrap()),
            ["host       12      3", "host       12", "host"]
        );
    }
}
