//! The live view: sessions, routes, the stream, and events with their losses.

use super::configs::Software;
use super::stage::{Session, Table};
use super::stream::{Losses, RATE};
use crate::grid::{Grid, Look, cells};
use crate::screen::Show;
use crate::view::{Sheet, grouped, shorten};
use std::time::Duration;

/// Lines of a screen around its sheets: the title, the bar and the hint.
const EDGES: usize = 3;

/// An event, and what it did to the stream.
#[derive(Clone, Debug)]
pub struct Event {
    pub name: &'static str,
    /// Moment of the event, since the begin.
    pub at: Duration,
    pub losses: Losses,
    /// Time from the event to the kernel's last change, and until the router had taken all of them.
    pub tables: Option<(Duration, Duration)>,
    /// True while it goes on.
    pub open: bool,
}

/// One moment of the demonstration.
pub struct Moment<'a> {
    pub phase: &'static str,
    /// Share of the steps that are done.
    pub done: f64,
    pub seconds: f64,
    pub software: Software,
    pub sessions: &'a [Session; 2],
    pub table: Option<Table>,
    /// Datagrams sent and received so far, and by way of each provider a second.
    pub sent: u64,
    pub received: u64,
    pub rates: [f64; 2],
    pub events: &'a [Event],
}

/// Formats a short time: `12 ms`, `1.25 s`.
pub fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s >= 1.0 => format!("{s:.2} s"),
        s => format!("{:.0} ms", s * 1e3),
    }
}

/// Formats an event and its losses, in columns.
pub fn columns(e: &Event) -> Vec<String> {
    let l = &e.losses;
    let (first, last) = match l.back {
        Some((first, last)) => (time(first), time(last)),
        None => ("–".into(), "–".into()),
    };
    let last = if l.still { "not yet".into() } else { last };
    vec![
        format!("{:5.1} s  {}", e.at.as_secs_f64(), e.name),
        grouped(l.lost),
        grouped(u64::from(l.destinations)),
        time(l.mean()),
        first,
        last,
    ]
}

/// The events so far.
pub fn events(all: &[Event]) -> Sheet {
    Sheet {
        title: "Packets lost; a destination is back when nothing more of it is lost".into(),
        head: vec!["", "lost", "destinations", "away, mean", "first back", "last back"],
        rows: all.iter().map(columns).collect(),
    }
}

impl Moment<'_> {
    fn sheets(&self) -> Vec<Sheet> {
        let providers = ["one, BIRD", "two, FRRouting"];
        let session = |i: usize| {
            let s = &self.sessions[i];
            let state = if s.established { "established" } else { "–" };
            let rate = grouped(self.rates[i].round() as u64);
            vec![format!("provider {}", providers[i]), state.to_owned(), rate]
        };
        let sessions = Sheet {
            title: format!("Sessions of {} at the twins", self.software.name()),
            head: vec!["", "session", "packets/s by way of it"],
            rows: vec![session(0), session(1)],
        };
        let known = |n: Option<u64>| n.map_or_else(|| "no answer".to_owned(), grouped);
        let routes = Sheet {
            title: "Routes".into(),
            head: vec!["", "in the kernel", "in the router", "waiting"],
            rows: vec![vec![
                "IPv4".into(),
                known(self.table.map(|t| t.known)),
                known(self.table.map(|t| t.forwarded)),
                known(self.table.map(|t| t.waiting)),
            ]],
        };
        let stream = Sheet {
            title: format!("Stream of {} packets/s from the customer", grouped(u64::from(RATE))),
            head: vec!["", "sent", "arrived", "lost or on the way"],
            rows: vec![vec![
                "so far".into(),
                grouped(self.sent),
                grouped(self.received),
                grouped(self.sent.saturating_sub(self.received)),
            ]],
        };
        vec![sessions, routes, stream, events(self.events)]
    }

    fn headline(&self) -> String {
        format!("{:5.1} s  {}", self.seconds, self.phase)
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
        let title = " customer ── cust │ thalweg │ one ── provider one ── world │ two ── provider two ── world";
        grid.push(cells(title, Look::Bold));
        grid.bar(self.done.clamp(0.0, 1.0), &self.headline());
        for sheet in &mut sheets {
            sheet.narrow(grid.inner());
            let looks = std::iter::once(Look::Dim).chain(std::iter::repeat(Look::Plain));
            grid.framed(&sheet.title, sheet.lines().zip(looks));
        }
        grid.fit(height.saturating_sub(1));
        grid.push(cells(" It ends by itself; q or Ctrl-C ends it now.", Look::Dim));
        grid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_as_text_and_on_a_screen() {
        let losses = Losses {
            sent: 20_000,
            lost: 1234,
            destinations: 50,
            back: Some((Duration::from_millis(80), Duration::from_millis(1250))),
            still: false,
        };
        let at = Duration::from_secs(12);
        let event =
            Event { name: "the link to provider one fails", at, losses, tables: None, open: false };
        let none = Event { losses: Losses::default(), ..event.clone() };
        let still = Event { losses: Losses { still: true, ..losses }, ..event.clone() };
        let sessions = [Session { established: true, mark: String::new() }, Session::default()];
        let moment = Moment {
            phase: "steady",
            done: 0.5,
            seconds: 12.0,
            software: Software::Bird,
            sessions: &sessions,
            table: None,
            sent: 10,
            received: 9,
            rates: [9_999.6, 0.0],
            events: &[event, none, still],
        };
        let text = moment.text();
        for part in [
            "---  12.0 s  steady",
            "established",
            "10,000",
            "no answer",
            "1,234",
            "123 ms",
            "80 ms",
            "1.25 s",
            "not yet",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        for (width, height) in [(120, 40), (20, 5), (1, 1)] {
            let grid = moment.draw(width, height);
            assert_eq!((grid.rows.len(), grid.rows[0].len()), (height, width));
        }
    }
}
