//! A trial of whatever a profile has, streams and connections: from quiet to quiet.
//!
//! Only packets that are due in the window and connections that begin in it are judged. The load
//! grows before it and lasts longer, so that they all meet the same; counters are read once nothing
//! is on its way any more, and thus balance.

use std::time::Duration;

use anyhow::Result;
use thalweg_device_load::{Change, Progress, What};
use thalweg_load::stream::{Load, Rate, Side as End};
use thalweg_load_report::FirstLost;

use super::blame::{self, FirstTalk, Place, Seen};
use super::device::{Books, Device};
use super::record;
use super::sample::Sample;
use super::spot::{Drops, Missing, Way};
use super::stolen::Ticks;
use super::streams::{First, StreamTrial};
use super::trial::{Connections, PATIENCE, Trial, is_tester};

/// Time in which the load of streams grows, in steps that double it.
const RAMP: Duration = Duration::from_millis(300);
const STEPS: u32 = 6;
/// Time between two steps.
const STEP: Duration = Duration::from_millis(50);
/// Time for which the load lasts before the window, and behind it.
const SETTLE: Duration = Duration::from_millis(500);
const TAIL: Duration = Duration::from_millis(50);
/// Time between two looks at what runs, in the window and behind it.
const LOOK: Duration = Duration::from_secs(1);
const SHORT_LOOK: Duration = Duration::from_millis(100);
/// Time without a packet after which none is on its way, and the longest wait.
const QUIET: Duration = Duration::from_millis(100);
const DRAIN: Duration = Duration::from_secs(2);
/// Time that the last connections have if the user has had enough.
const HURRY: Duration = Duration::from_millis(500);

/// Offered load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    /// Load of streams.
    pub(super) streams: Load,
    /// Connections per second, all groups together; without, all are held by number.
    pub(super) connections: Option<f64>,
}

/// Counts of both sides up to a time.
#[derive(Clone, Debug)]
pub(super) struct Now {
    /// Progress of streams, in both directions.
    pub(super) streams: [Progress; 2],
    pub(super) books: Books,
    /// Time until the window ends.
    pub(super) left: Duration,
}

/// Outcome of a trial.
pub(super) struct Ran {
    /// Length of its window in seconds.
    pub(super) seconds: f64,
    /// Result of streams, if there are any.
    pub(super) streams: Option<StreamTrial>,
    /// Result of connections, if there are any.
    pub(super) connections: Option<Trial>,
    /// The groups of connections.
    pub(super) groups: Vec<GroupRan>,
    /// Drops from its beginning to its end.
    pub(super) drops: Drops,
    /// True if the user cut it short.
    pub(super) cut: bool,
    /// Share of the processors' time that the hypervisor took, in percent.
    pub(super) stolen: f64,
}

/// Outcome of a group of connections.
#[derive(Clone, Debug)]
pub(super) struct GroupRan {
    pub(super) name: String,
    pub(super) connections: Connections,
    /// Number that the profile wants held.
    pub(super) hold: Option<u32>,
    /// Number that was established at the end of the window, without those in TIME_WAIT.
    pub(super) established: u32,
}

/// A number that is held counts as reached with this share of it: one is opened only after another
/// has ended.
const REACHED: f64 = 0.99;

impl GroupRan {
    /// True if the number to be held was not reached.
    pub(super) fn falls_short(&self) -> bool {
        self.hold.is_some_and(|hold| f64::from(self.established) < REACHED * f64::from(hold))
    }
}

impl Ran {
    /// Packets and connections of the window, and those of them that were lost.
    pub(super) fn lost(&self) -> (u64, u64) {
        let packets = self.streams.as_ref().map(|trial| trial.sum());
        let packets = packets.map_or((0, 0), |sum| (sum.sent, sum.lost));
        let connections = self
            .connections
            .as_ref()
            .map_or((0, 0), |trial| (trial.connections.begun, trial.connections.errors()));
        (packets.0 + connections.0, packets.1 + connections.1)
    }

    /// Packets and connections of the window: what it shows, they show. Streams without tags are
    /// judged by all that was sent, of which the ramp is no measure of the load.
    pub(super) fn judged(&self) -> u64 {
        let packets = self.streams.as_ref().map_or(0, |trial| trial.sum().window);
        packets + self.connections.as_ref().map_or(0, |trial| trial.connections.begun)
    }

    /// Packets that have not arrived as they were, from its beginning to its end.
    pub(super) fn missing(&self) -> Missing {
        match (&self.streams, &self.connections) {
            (Some(trial), _) => trial.missing(),
            (None, Some(trial)) => trial.missing(),
            (None, None) => Missing::default(),
        }
    }

    /// Bits that arrived in the window, with FCS, preamble and gap.
    pub(super) fn l1_received(&self) -> u64 {
        let packets = self.streams.as_ref().map_or(0, |trial| trial.sum().l1_received());
        let connections = self.connections.as_ref();
        packets + connections.map_or(0, |trial| trial.sample.l1_received())
    }

    /// The first packet of the window that was lost: one of streams, if there is one, since it is
    /// known when they were due.
    pub(super) fn first_lost(&self) -> Option<FirstLost> {
        let streams = self.streams.as_ref().and_then(|trial| trial.first.as_ref());
        let connections = || self.connections.as_ref().and_then(|trial| trial.first.as_ref());
        streams.map(record::first_lost).or_else(|| connections().map(FirstTalk::record))
    }

    /// True if the tester spoiled it.
    pub(super) fn is_spoiled(&self) -> bool {
        self.streams.as_ref().is_some_and(StreamTrial::is_spoiled)
            || self.connections.as_ref().is_some_and(|trial| trial.tester)
    }
}

/// A device with streams, connections, or both.
pub(super) struct Runner<'a> {
    pub(super) device: Device,
    /// Number of the last trial.
    pub(super) number: u8,
    /// Time that a connection takes at least.
    pub(super) life: Duration,
    /// True once the user has had enough.
    pub(super) stopped: &'a dyn Fn() -> bool,
}

impl<'a> Runner<'a> {
    pub(super) fn new(device: Device, life: Duration, stopped: &'a dyn Fn() -> bool) -> Runner<'a> {
        Runner { device, number: 0, life, stopped }
    }

    /// Sends for a time, and calls `look` about each second with what was done by then. `None` if
    /// the user stopped it before its window began.
    pub(super) fn trial(
        &mut self,
        offered: Offered,
        time: Duration,
        mut look: impl FnMut(&mut Device, &Now) -> Result<()>,
    ) -> Result<Option<Ran>> {
        let ticks = Ticks::now();
        let dropped = self.device.drops()?;
        let base = self.device.books()?;
        self.number = self.number.wrapping_add(1);
        self.device.begin(self.number)?;
        if !self.ramp(offered) {
            self.end();
            return Ok(None);
        }
        // No connection is judged yet: those that begin before the next look are.
        let unjudged = self.device.books()?;
        self.device.begin_window()?;
        let before = self.now(time)?;
        let mut left = time;
        let mut now = before.clone();
        look(&mut self.device, &now)?;
        while !left.is_zero() && !(self.stopped)() {
            let part = left.min(LOOK);
            self.device.wait(part, self.stopped);
            left -= part;
            now = self.now(left)?;
            look(&mut self.device, &now)?;
        }
        self.device.end_window();
        let cut = (self.stopped)();
        let after = now;
        self.await_connections(&unjudged, cut)?;
        // The device's own time goes on, whatever the user wants.
        self.device.wait(TAIL, &|| false);
        let judged = self.device.books()?;
        self.end();
        self.drain()?;
        let end = self.device.books()?;
        let drops = self.device.drops()?.since(&dropped);
        let seen = self.device.dropped()?;
        let stolen = ticks.stolen_percent();
        let seconds = seconds(&before, &after);
        let rate = offered.connections.unwrap_or_default();
        let sample = Sample::whole(rate, &base, (&before.books, &after.books), &end);
        let connections = |before: &Books, after: &Books| {
            let mut connections = Connections::of(before, after);
            connections.cut = cut;
            connections
        };
        let groups = self.device.groups().enumerate().map(|(at, group)| GroupRan {
            name: group.name(),
            connections: connections(&unjudged.of(at), &judged.of(at)),
            hold: group.hold,
            established: after.books.of(at).clients.established(),
        });
        let groups: Vec<GroupRan> = groups.collect();
        let talks = (!groups.is_empty()).then(|| {
            let connections = connections(&unjudged, &judged);
            let tester = is_tester(&sample, &drops);
            let short = groups.iter().any(GroupRan::falls_short);
            let good = !tester && connections.errors() == 0 && !short;
            // Drops include the losses of streams.
            let lost = sample.lost_ways();
            let plans: Vec<_> = self.device.groups().map(|group| &group.plan).collect();
            let first = FirstTalk::of(&seen, &plans, &drops, lost);
            Trial { sample, connections, good, tester, drops: drops.clone(), first, stolen }
        });
        let others = talks.as_ref().map_or([[0; 2]; 2], |trial| trial.sample.missing_ways());
        let mut streams = None;
        if self.device.has_streams() {
            let pairs = self.device.streams()?;
            let mut trial =
                StreamTrial { seconds, pairs, drops: drops.clone(), first: None, others };
            trial.first = first(&trial, &seen, before.streams[0].at);
            streams = Some(trial);
        }
        Ok(Some(Ran { seconds, streams, connections: talks, groups, drops, cut, stolen }))
    }

    /// Lets all grow to what is offered, and settle; false if the user stopped it.
    fn ramp(&mut self, offered: Offered) -> bool {
        let whole = RAMP.max(self.device.ramp());
        let mut since = Duration::ZERO;
        while since < whole {
            since = (since + STEP).min(whole);
            let step = (since.as_millis() / STEP.as_millis()) as u32;
            if let Some(left) = STEPS.checked_sub(step) {
                let share = 1.0 / f64::from(1u32 << left);
                self.device.change(Change::Load(scaled(offered.streams, share)));
            }
            self.device.open(offered.connections, Some(since));
            if !self.device.wait(STEP, self.stopped) {
                return false;
            }
        }
        self.device.change(Change::Load(offered.streams));
        self.device.open(offered.connections, None);
        self.device.wait(SETTLE, self.stopped)
    }

    /// Waits until the connections of the window have ended, while traffic goes on.
    fn await_connections(&mut self, before: &Books, cut: bool) -> Result<()> {
        let mut left = if cut { HURRY } else { self.life + PATIENCE };
        while !left.is_zero() && Connections::of(before, &self.device.books()?).pending() > 0 {
            let step = left.min(SHORT_LOOK);
            self.device.wait(step, &|| false);
            left -= step;
            if !cut && (self.stopped)() {
                left = left.min(HURRY);
            }
        }
        Ok(())
    }

    /// Ends all that is sent. Connections that the window does not have are forgotten: nothing that
    /// is judged depends on them.
    fn end(&mut self) {
        self.device.change(Change::Load(Load::Times(0.0)));
        self.device.set_rate(0.0);
        self.device.hush();
    }

    /// Waits until no packet arrives any more.
    fn drain(&mut self) -> Result<()> {
        let step = Duration::from_millis(20);
        let (mut quiet, mut waited) = (Duration::ZERO, Duration::ZERO);
        let mut last = self.received()?;
        while quiet < QUIET && waited < DRAIN {
            self.device.wait(step, &|| false);
            waited += step;
            let now = self.received()?;
            quiet = if now == last { quiet + step } else { Duration::ZERO };
            last = now;
        }
        Ok(())
    }

    fn received(&mut self) -> Result<[u64; 4]> {
        let [a, b] = self.device.progress()?;
        let books = self.device.books()?;
        let of = |report: &thalweg_device_load::Report| report.counts.received;
        Ok([a.received.0, b.received.0, of(&books.clients), of(&books.servers)])
    }

    fn now(&mut self, left: Duration) -> Result<Now> {
        Ok(Now { streams: self.device.progress()?, books: self.device.books()?, left })
    }
}

/// Seconds between two looks.
pub(super) fn seconds(was: &Now, is: &Now) -> f64 {
    let of_streams = is.streams[0].at.saturating_sub(was.streams[0].at) as f64 / 1e9;
    let of_talks = is.books.clients.at.saturating_sub(was.books.clients.at) as f64 / 1e6;
    of_streams.max(of_talks).max(1e-9)
}

/// Finds the first packet of the window that was lost. `begin`: when the window began.
fn first(trial: &StreamTrial, seen: &[Seen], begin: u64) -> Option<First> {
    let mut first: Option<(u64, First)> = None;
    for (at, (direction, way)) in trial.directions().enumerate() {
        let pair = trial.pairs.get(at / 2).map_or(0, |(pair, _)| *pair);
        let side = if at % 2 == 0 { End::A } else { End::B };
        for stream in direction.streams.iter().filter(|stream| stream.tagged) {
            let Some((number, Some(due))) = stream.judged.first else { continue };
            if first.as_ref().is_some_and(|(before, _)| *before <= due) {
                continue;
            }
            let is_it = |seen: &&Seen| {
                let What::Stream(tag) = &seen.what else { return false };
                let mask = 1u64.checked_shl(tag.bits.0).map_or(u64::MAX, |bit| bit - 1);
                (usize::from(tag.stream), tag.side, seen.pair) == (stream.number, side, pair)
                    && u64::from(tag.sequence) == number & mask
            };
            let place = match seen.iter().find(is_it) {
                Some(seen) => Place::Seen(seen.spot.clone(), seen.interface.clone()),
                None => {
                    let way = if side == End::A { Way::There } else { Way::Back };
                    blame::place(&trial.drops, trial.missing().unexplained, Some(way))
                }
            };
            let (stream, way) = (stream.name.clone(), way.clone());
            let since = due.saturating_sub(begin);
            first = Some((due, First { stream, way, number, due: since, place }));
        }
    }
    first.map(|(_, first)| first)
}

/// Returns a share of a load.
fn scaled(load: Load, share: f64) -> Load {
    match load {
        Load::Times(factor) => Load::Times(factor * share),
        Load::Total(rate) => Load::Total(match rate {
            Rate::Packets(value) => Rate::Packets(value * share),
            Rate::Bits(value) => Rate::Bits(value * share),
            Rate::WireBits(value) => Rate::WireBits(value * share),
            Rate::Percent(value) => Rate::Percent(value * share),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::Set;
    use crate::under::Under;
    use crate::work::Work;
    use clap::Parser;
    use thalweg_load_profile::Profile;

    /// Runs a profile for a second through a cross connect with these commands.
    fn run(rest: &str, commands: &str, connections: Option<f64>) -> Ran {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            under: Under,
        }
        let pools = "  c: {v4: 16.0.0.1-16.0.0.250}\n  s: {v4: 48.0.0.1}\n";
        let text = format!("version: 1\npools:\n{pools}{rest}");
        let profile = Profile::parse("mine.yaml", &text, &[]).unwrap();
        let late = Duration::from_secs(10);
        let work = Work::of(&profile, &Line::parse_from(["x"]).under, late).unwrap();
        let device = Device::inside(Set::CrossConnect, commands, &work.hosts(1, 1)).unwrap();
        let stopped = || false;
        let mut runner = Runner::new(device, work.life(), &stopped);
        let offered = Offered { streams: Load::Times(1.0), connections };
        let ran = runner.trial(offered, Duration::from_secs(1), |_, _| Ok(())).unwrap().unwrap();
        runner.device.close().unwrap();
        ran
    }

    const STREAM: &str =
        "streams:\n  - {name: s, between: [c, s], udp: [7, 7], size: 100, rate: 1 kpps}\n";

    /// Connections that begin while the window does are judged, or are not: none of them only where
    /// they end. Others do not make up for losses.
    #[test]
    fn connections_lost_are_counted_whenever_they_began() {
        let talks = "flows:\n  - {name: t, tcp: {client: c, server: s, port: 80}, \
                     exchange: {messages: 1, wait: 30ms}}\n";
        let ran = run(&format!("{STREAM}{talks}"), "load impair load0 lose 2000 seed 3", Some(4e3));
        let trial = ran.connections.unwrap();
        let connections = trial.connections;
        assert!(connections.completed <= connections.begun, "{connections:?}");
        assert!(connections.clean < connections.completed && connections.errors() > 0);
        assert_eq!(connections.errors(), connections.begun - connections.clean);
    }

    #[test]
    fn what_is_not_established_is_not_held() {
        let hold = "flows:\n  - {name: h, hold: 100, life: 60s, ramp: 100ms linear, \
                    tcp: {client: c, server: s, port: 80}}\n";
        let [up, down] = ["", "load impair load1 lose 1"].map(|device| run(hold, device, None));
        let held = |ran: &Ran| {
            let good = ran.connections.as_ref().is_some_and(|trial| trial.good);
            (ran.groups[0].established, ran.groups[0].falls_short(), good)
        };
        assert_eq!((held(&up), held(&down)), ((100, false, true), (0, true, false)));
    }

    #[test]
    fn damage_is_not_unexplained() {
        let ran = run(STREAM, "load impair load0 damage 50 seed 3", None);
        let trial = ran.streams.unwrap();
        let Missing { lost, damaged, unexplained } = trial.missing();
        // One whose tag or address is damaged is no packet of ours any more.
        assert!(damaged > 0 && unexplained < lost / 2, "{lost}, {unexplained}");
        assert_eq!(damaged + unexplained, lost);
    }
}
