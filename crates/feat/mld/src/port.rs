//! Reports of an interface and their times: the listener's part of RFC 3810 section 6, and of RFC
//! 2710 section 4 while a router of version 1 asks (RFC 3810 section 8.2).
//!
//! The router wants packets of all sources in each of its groups.

use crate::packet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};
use thalweg_tables::random::Random;
use thalweg_wire::mld::Query;

/// Number of reports of a change, and the interval of queries, until a querier says otherwise (RFC
/// 3810 section 9).
const ROBUSTNESS: u8 = 2;
const QUERY_INTERVAL: Duration = Duration::from_secs(125);
/// Longest time between repeated reports of a change, by version (RFC 3810 section 9.11, RFC 2710
/// section 7.10).
const REPEATED: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(1)];
/// Least time between answers of an interface, whatever the queries say.
const LEAST: Duration = Duration::from_millis(100);

/// Kind of a record (RFC 3810 section 5.2.12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Packets of some sources are listened to, as before.
    IsInclude = 1,
    /// The group is listened to, as before.
    IsExclude = 2,
    /// The group has been left.
    ToInclude = 3,
    /// The group has been joined.
    ToExclude = 4,
}

/// A group in a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The kind of record.
    pub change: Change,
    /// The group.
    pub group: Ipv6Addr,
    /// The sources that this is about; none: all.
    pub sources: Vec<Ipv6Addr>,
}

/// An answer about one group.
#[derive(Clone, Debug)]
struct Answer {
    /// Time when it is due.
    at: Instant,
    /// The sources that were asked for; none: all.
    sources: BTreeSet<Ipv6Addr>,
}

/// Answers about one group each, found by group and by time: queries come from outside, and one
/// costs the same with many groups as with few.
#[derive(Clone, Debug, Default)]
struct Answers {
    all: BTreeMap<Ipv6Addr, Answer>,
    by_time: BTreeSet<(Instant, Ipv6Addr)>,
}

impl Answers {
    /// Returns the time when the first is due.
    fn first(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    fn remove(&mut self, group: Ipv6Addr) -> Option<Answer> {
        let answer = self.all.remove(&group)?;
        self.by_time.remove(&(answer.at, group));
        Some(answer)
    }

    fn clear(&mut self) {
        self.all.clear();
        self.by_time.clear();
    }

    /// Takes those that are due, in order of groups.
    fn take_due(&mut self, now: Instant) -> BTreeMap<Ipv6Addr, Answer> {
        let due = self.by_time.iter().take_while(|(at, _)| *at <= now);
        let due: Vec<Ipv6Addr> = due.map(|(_, group)| *group).collect();
        due.into_iter().filter_map(|group| Some((group, self.remove(group)?))).collect()
    }

    /// Plans an answer about a group and these sources, or all if there are none; one that is
    /// planned already serves both queries, and comes as early as either wants it (RFC 3810
    /// section 6.2).
    fn plan(&mut self, group: Ipv6Addr, at: Instant, sources: &[Ipv6Addr]) {
        let sources = sources.iter().copied().collect();
        let answer = match self.remove(group) {
            None => Answer { at, sources },
            Some(before) => before.and(Answer { at, sources }),
        };
        self.by_time.insert((answer.at, group));
        self.all.insert(group, answer);
    }
}

impl Answer {
    /// An answer that serves both queries.
    fn and(mut self, other: Answer) -> Answer {
        self.at = self.at.min(other.at);
        let is_about_all = self.sources.is_empty() || other.sources.is_empty();
        self.sources.extend(other.sources);
        if is_about_all || self.sources.len() > packet::MAX_SOURCES {
            self.sources.clear();
        }
        self
    }
}

/// A message to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Report of version 2.
    Report(Vec<Record>),
    /// Report of version 1.
    OldReport(Ipv6Addr),
    /// Leave of version 1.
    OldDone(Ipv6Addr),
}

/// Numbers of messages that an interface has heard and sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Queries of version 1 and 2.
    pub queries: [u64; 2],
    /// Reports of version 1 and 2.
    pub reports: [u64; 2],
    /// Leaves of version 1.
    pub done: u64,
}

/// An interface.
#[derive(Clone, Debug)]
pub struct Port {
    /// Groups that it reports.
    groups: BTreeSet<Ipv6Addr>,
    /// Answers about one group alone.
    answers: Answers,
    /// Changes that are still to be reported, with the number of times.
    changes: BTreeMap<Ipv6Addr, (Change, u8)>,
    /// Time when the next report of changes is due.
    next_change: Option<Instant>,
    /// Time when the answer about all groups is due.
    answer: Option<Instant>,
    /// Time before which no answer is sent.
    quiet_until: Option<Instant>,
    /// Time until which a router of version 1 is there.
    old_until: Option<Instant>,
    robustness: u8,
    interval: Duration,
    /// Messages that it has heard and sent.
    pub counts: Counts,
}

impl Default for Port {
    fn default() -> Port {
        Port {
            groups: BTreeSet::new(),
            answers: Answers::default(),
            changes: BTreeMap::new(),
            next_change: None,
            answer: None,
            quiet_until: None,
            old_until: None,
            robustness: ROBUSTNESS,
            interval: QUERY_INTERVAL,
            counts: Counts::default(),
        }
    }
}

impl Port {
    /// The groups that are reported, in order.
    pub fn groups(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.groups.iter().copied()
    }

    /// The version that it speaks: 1 or 2.
    pub fn version(&self, now: Instant) -> u8 {
        if self.is_old(now) { 1 } else { 2 }
    }

    fn is_old(&self, now: Instant) -> bool {
        self.old_until.is_some_and(|until| until > now)
    }

    /// Returns how often it reports a change, and the interval of queries, as the querier says.
    pub fn querier(&self) -> (u8, Duration) {
        (self.robustness, self.interval)
    }

    /// Returns an interface whose link has gone: nothing is known but its counts.
    #[must_use]
    pub fn forgotten(&self) -> Port {
        Port { counts: self.counts, ..Port::default() }
    }

    /// Listens to these groups from now on, and reports what has changed.
    pub fn listen(&mut self, wanted: &BTreeSet<Ipv6Addr>, now: Instant) {
        let gone: Vec<_> = self.groups.difference(wanted).copied().collect();
        let new: Vec<_> = wanted.difference(&self.groups).copied().collect();
        gone.into_iter().for_each(|group| self.listen_to(group, false, now));
        new.into_iter().for_each(|group| self.listen_to(group, true, now));
    }

    /// Returns whether it listens to a group.
    pub fn hears(&self, group: Ipv6Addr) -> bool {
        self.groups.contains(&group)
    }

    /// Listens to a group from now on, or no longer, and reports it.
    pub fn listen_to(&mut self, group: Ipv6Addr, wanted: bool, now: Instant) {
        let change = match wanted {
            true => Change::ToExclude,
            false => Change::ToInclude,
        };
        let is_new = match wanted {
            true => self.groups.insert(group),
            false => self.groups.remove(&group),
        };
        if is_new {
            self.answers.remove(group);
            self.changes.insert(group, (change, self.robustness));
            self.next_change = Some(now);
        }
    }

    /// Reports all groups once more: the address that reports come from may be used now (RFC 3590
    /// section 4).
    pub fn report_again(&mut self, now: Instant) {
        let all = self.groups.iter().map(|g| (*g, (Change::ToExclude, self.robustness)));
        self.changes.extend(all);
        self.next_change = (!self.changes.is_empty()).then_some(now);
    }

    /// Takes note of a query, and chooses when to answer it.
    pub fn heard(&mut self, query: &Query, now: Instant, dice: &mut Random) {
        let was = self.is_old(now);
        match query.version {
            1 => {
                self.counts.queries[0] += 1;
                let there = self.interval * self.robustness.into() + query.within;
                self.old_until = Some(now + there);
            }
            _ => {
                self.counts.queries[1] += 1;
                self.robustness = if query.robustness == 0 { ROBUSTNESS } else { query.robustness };
                let usual = if query.interval.is_zero() { QUERY_INTERVAL } else { query.interval };
                self.interval = usual;
            }
        }
        if self.is_old(now) != was {
            self.cancel();
        }
        // A router of version 1 does not know the answers to others' queries.
        if query.version != 1 && self.is_old(now) {
            return;
        }
        let within = u64::try_from(query.within.as_millis()).unwrap_or(u64::MAX);
        let mut at = || now + Duration::from_millis(dice.between(0, within));
        if query.group.is_unspecified() {
            if query.version == 1 {
                for group in &self.groups {
                    self.answers.plan(*group, at(), &[]);
                }
            } else {
                let at = at();
                self.answer = Some(self.answer.map_or(at, |before| before.min(at)));
            }
            return;
        }
        let at = at();
        // An answer about all groups that is due soon says enough.
        if self.hears(query.group) && self.answer.is_none_or(|all| all > at) {
            self.answers.plan(query.group, at, query.listed());
        }
    }

    /// Forgets answers and repeated reports: the version is another one.
    fn cancel(&mut self) {
        self.answer = None;
        self.answers.clear();
        self.changes.clear();
        self.next_change = None;
    }

    /// Returns the time when something is due.
    pub fn due(&self) -> Option<Instant> {
        let answers = self.answers.first().into_iter().chain(self.answer).min();
        let answers = answers.map(|at| self.quiet_until.map_or(at, |quiet| at.max(quiet)));
        answers.into_iter().chain(self.next_change).min()
    }

    /// Returns what is due.
    pub fn poll(&mut self, now: Instant, dice: &mut Random) -> Vec<Message> {
        let is_old = self.is_old(now);
        let mut out = Vec::new();
        if self.next_change.is_some_and(|at| at <= now) {
            self.tell_changes(now, dice, is_old, &mut out);
        }
        if self.quiet_until.is_none_or(|quiet| quiet <= now) {
            self.tell_answers(now, is_old, &mut out);
        }
        for message in &out {
            match message {
                Message::Report(_) => self.counts.reports[1] += 1,
                Message::OldReport(_) => self.counts.reports[0] += 1,
                Message::OldDone(_) => self.counts.done += 1,
            }
        }
        out
    }

    fn tell_changes(
        &mut self,
        now: Instant,
        dice: &mut Random,
        is_old: bool,
        out: &mut Vec<Message>,
    ) {
        let all = self.changes.iter().map(|(group, (change, _))| (*group, *change));
        if is_old {
            out.extend(all.map(|(group, change)| match change {
                Change::ToInclude => Message::OldDone(group),
                _ => Message::OldReport(group),
            }));
        } else {
            let record = |(group, change)| Record { change, group, sources: Vec::new() };
            packet::reports(all.map(record), out);
        }
        self.changes.retain(|_, (change, left)| {
            // A leave of version 1 is sent once.
            *left = if is_old && *change == Change::ToInclude { 0 } else { left.saturating_sub(1) };
            *left > 0
        });
        let longest = REPEATED[usize::from(!is_old)].as_millis() as u64;
        let pause = Duration::from_millis(dice.between(1, longest));
        self.next_change = (!self.changes.is_empty()).then(|| now + pause);
    }

    fn tell_answers(&mut self, now: Instant, is_old: bool, out: &mut Vec<Message>) {
        let all = self.answer.take_if(|at| *at <= now).is_some();
        let said: Vec<(Ipv6Addr, BTreeSet<Ipv6Addr>)> = if all {
            // An answer about all sources covers each.
            self.answers.clear();
            self.groups().map(|group| (group, BTreeSet::new())).collect()
        } else {
            let due = self.answers.take_due(now).into_iter();
            due.map(|(group, answer)| (group, answer.sources)).collect()
        };
        if said.is_empty() {
            return;
        }
        self.quiet_until = Some(now + LEAST);
        if is_old {
            out.extend(said.into_iter().map(|(group, _)| Message::OldReport(group)));
        } else {
            let record = |(group, sources): (Ipv6Addr, BTreeSet<Ipv6Addr>)| {
                let change = match sources.is_empty() {
                    true => Change::IsExclude,
                    false => Change::IsInclude,
                };
                Record { change, group, sources: sources.into_iter().collect() }
            };
            packet::reports(said.into_iter().map(record), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thalweg_graph::clock;
    use thalweg_wire::mld::MAX_LISTED;

    fn group(n: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, n)
    }

    fn set(all: &[u16]) -> BTreeSet<Ipv6Addr> {
        all.iter().map(|n| group(*n)).collect()
    }

    fn asked(version: u8, within_ms: u64, group: Ipv6Addr) -> Query {
        let within = Duration::from_millis(within_ms);
        let (robustness, interval) = (2, Duration::from_secs(if version == 1 { 0 } else { 20 }));
        let (sources, first) = (0, [ALL; MAX_LISTED]);
        Query { version, within, group, robustness, interval, sources, first }
    }

    /// A query of version 2 for some sources of a group.
    fn asked_for(sources: &[u16], within_ms: u64, of: Ipv6Addr) -> Query {
        let mut first = [ALL; MAX_LISTED];
        first.iter_mut().zip(sources).for_each(|(to, n)| *to = source(*n));
        Query { sources: sources.len() as u16, first, ..asked(2, within_ms, of) }
    }

    fn source(n: u16) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n)
    }

    const ALL: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

    /// An interface with two groups that it has reported.
    fn quiet(dice: &mut Random) -> (Port, Instant) {
        let (mut port, now) = (Port::default(), clock::now());
        port.listen(&set(&[1, 2]), now);
        let mut at = now;
        while let Some(due) = port.due() {
            at = due;
            port.poll(at, dice);
        }
        assert!(at > now);
        (port, at)
    }

    fn records(messages: &[Message]) -> Vec<(Change, Ipv6Addr)> {
        let all = messages.iter().flat_map(|message| match message {
            Message::Report(records) => records.clone(),
            other => panic!("{other:?}"),
        });
        all.map(|r| (r.change, r.group)).collect()
    }

    #[test]
    fn changes_are_reported_at_once_and_once_more() {
        let (mut port, now, mut dice) = (Port::default(), clock::now(), Random::with_seed(1));
        port.listen(&set(&[1, 2]), now);
        let joined = [(Change::ToExclude, group(1)), (Change::ToExclude, group(2))];
        assert_eq!((port.due(), records(&port.poll(now, &mut dice))), (Some(now), joined.to_vec()));
        // One goes before it has been reported twice; the other is reported for the last time.
        let later = now + Duration::from_micros(1);
        port.listen(&set(&[2]), later);
        let left = [(Change::ToInclude, group(1)), (Change::ToExclude, group(2))];
        assert_eq!(records(&port.poll(later, &mut dice)), left);
        let due = port.due().unwrap();
        assert!(due > later && due <= later + Duration::from_secs(1));
        assert_eq!(records(&port.poll(due, &mut dice)), left[..1]);
        assert_eq!(port.due(), None);
        port.listen(&set(&[2]), due);
        assert_eq!(port.due(), None);
        port.report_again(due);
        assert_eq!(records(&port.poll(due, &mut dice)), left[1..]);
        assert_eq!(port.counts.reports, [0, 4]);
    }

    #[test]
    fn queries_are_answered_within_their_time() {
        let mut dice = Random::with_seed(2);
        let (mut port, now) = quiet(&mut dice);
        port.heard(&asked(2, 1000, ALL), now, &mut dice);
        let due = port.due().unwrap();
        assert!(due <= now + Duration::from_secs(1));
        // Another one is answered by the same answer, not later.
        port.heard(&asked(2, 100_000, ALL), now, &mut dice);
        assert_eq!(port.due(), Some(due));
        assert_eq!(port.poll(due - Duration::from_millis(1), &mut dice), []);
        let is = |n| (Change::IsExclude, group(n));
        assert_eq!(records(&port.poll(due, &mut dice)), [is(1), is(2)]);
        assert_eq!((port.due(), port.querier()), (None, (2, Duration::from_secs(20))));
        // One question is about one group; one is about a group that it does not listen to.
        port.heard(&asked(2, 0, group(2)), due, &mut dice);
        port.heard(&asked(2, 0, group(7)), due, &mut dice);
        let due = port.due().unwrap();
        assert_eq!(records(&port.poll(due, &mut dice)), [is(2)]);
        assert_eq!(port.due(), None);
    }

    #[test]
    fn sources_that_are_asked_for_are_answered() {
        let mut dice = Random::with_seed(6);
        let (mut port, now) = quiet(&mut dice);
        let said = |port: &mut Port, dice: &mut Random| {
            let due = port.due().unwrap();
            let [Message::Report(records)] = &port.poll(due, dice)[..] else { panic!() };
            let [Record { change, group: of, sources }] = &records[..] else { panic!() };
            assert_eq!((*of, port.due()), (group(2), None));
            (due, *change, sources.clone())
        };
        port.heard(&asked_for(&[7, 3], 1000, group(2)), now, &mut dice);
        let first = port.due().unwrap();
        // Sources of another query come with them, at the earlier time.
        port.heard(&asked_for(&[5, 3], 100_000, group(2)), now, &mut dice);
        let all = vec![source(3), source(5), source(7)];
        let (due, change, sources) = said(&mut port, &mut dice);
        assert_eq!((due, change, sources), (first, Change::IsInclude, all));
        // All sources, asked for before or after, and too many.
        let whole = (Change::IsExclude, Vec::new());
        let (some, group_2) = (asked_for(&[1], 0, group(2)), asked(2, 0, group(2)));
        let many = asked_for(&[1, 2, 3, 4, 5, 6], 0, group(2));
        for queries in [[some, group_2], [group_2, some], [some, many]] {
            let now = due + Duration::from_secs(1);
            queries.iter().for_each(|query| port.heard(query, now, &mut dice));
            let (_, change, sources) = said(&mut port, &mut dice);
            assert_eq!((change, sources), whole);
        }
        // A flood of queries for different sources is answered for all of them.
        let now = due + Duration::from_secs(5);
        for n in 0..1000 {
            port.heard(&asked_for(&[n], 1000, group(2)), now, &mut dice);
        }
        let (_, change, sources) = said(&mut port, &mut dice);
        assert!(change == Change::IsExclude || sources.len() <= packet::MAX_SOURCES);
    }

    #[test]
    fn a_flood_of_queries_has_few_answers() {
        let mut dice = Random::with_seed(3);
        let (mut port, now) = quiet(&mut dice);
        let mut sent = 0;
        for ms in 0..1000 {
            let now = now + Duration::from_millis(ms);
            port.heard(&asked(2, 0, ALL), now, &mut dice);
            port.heard(&asked(2, 0, group(1)), now, &mut dice);
            if port.due().is_some_and(|due| due <= now) {
                sent += port.poll(now, &mut dice).len();
            }
        }
        assert_eq!(sent, 10);
    }

    #[test]
    fn an_older_router_is_spoken_to_in_its_words() {
        let mut dice = Random::with_seed(4);
        let (mut port, now) = quiet(&mut dice);
        port.heard(&asked(1, 10_000, ALL), now, &mut dice);
        assert_eq!(port.version(now), 1);
        // Each group has its own time.
        let mut said = Vec::new();
        while let Some(due) = port.due() {
            assert!(due <= now + Duration::from_millis(10_100));
            said.extend(port.poll(due, &mut dice));
        }
        said.sort_by_key(|m| format!("{m:?}"));
        assert_eq!(said, [Message::OldReport(group(1)), Message::OldReport(group(2))]);
        port.listen(&set(&[2, 3]), now);
        let changed = [Message::OldDone(group(1)), Message::OldReport(group(3))];
        assert_eq!(port.poll(now, &mut dice), changed);
        assert_eq!(port.poll(port.due().unwrap(), &mut dice), changed[1..]);
        // The querier is remembered for two intervals and the time of an answer.
        port.heard(&asked(2, 10, ALL), now, &mut dice);
        assert_eq!(port.due(), None);
        let gone = now + Duration::from_secs(260);
        assert_eq!((port.version(gone - Duration::from_secs(1)), port.version(gone)), (1, 2));
        port.heard(&asked(2, 0, ALL), gone, &mut dice);
        assert_eq!(records(&port.poll(gone, &mut dice)).len(), 2);
        assert_eq!((port.counts.queries, port.counts.done), ([1, 2], 1));
    }

    #[test]
    fn many_groups_take_several_reports() {
        let (mut port, now, mut dice) = (Port::default(), clock::now(), Random::with_seed(5));
        let many: Vec<u16> = (0..200).collect();
        port.listen(&set(&many), now);
        let sent = port.poll(now, &mut dice);
        assert_eq!((sent.len(), records(&sent).len()), (4, 200));
        assert_eq!((port.forgotten().due(), port.forgotten().counts), (None, port.counts));
    }

    proptest! {
        /// Everything is reported in the end, in whatever order events come; then the port is
        /// quiet.
        #[test]
        fn it_ends(
            steps in prop::collection::vec((0u8..4, 0u16..6, 1u8..=2, 0u64..20_000), 1..40),
            seed: u64,
        ) {
            let (mut port, mut now) = (Port::default(), clock::now());
            let mut dice = Random::with_seed(seed);
            for (what, n, version, ms) in steps {
                now += Duration::from_millis(ms / 10);
                match what {
                    0 => port.listen(&(0..n).map(group).collect(), now),
                    1 => port.heard(&asked(version, ms, group(n)), now, &mut dice),
                    2 => port.heard(&asked(version, ms, ALL), now, &mut dice),
                    _ => port.report_again(now),
                }
                port.poll(now, &mut dice);
            }
            for _ in 0..200 {
                let Some(due) = port.due() else { break };
                now = now.max(due);
                port.poll(now, &mut dice);
            }
            prop_assert_eq!(port.due(), None);
        }
    }
}
