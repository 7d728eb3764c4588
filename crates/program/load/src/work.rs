//! The traffic: connections or streams, from options or from a profile.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_device::MacAddr;
use thalweg_load::talk::{LONGEST_PAUSE, Plan, Protocol, Step};
use thalweg_load::{stream, talk};
use thalweg_load_profile::{BUILTINS, Profile, Ramp};

use super::device::Hosts;
use super::under::Under;

/// Traffic, by pairs of ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    pub(super) pairs: Vec<Pair>,
}

/// Traffic between two ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Pair {
    pub(super) streams: Option<stream::Plan>,
    pub(super) groups: Vec<Group>,
}

/// Connections with a rate of their own, or a number that is held.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) plan: Plan,
    /// Its share of the rate, relative to the other groups.
    pub(super) share: u64,
    /// Time that a connection takes at least.
    pub(super) life: Duration,
    /// Number that is held, instead of a rate.
    pub(super) hold: Option<u32>,
    /// Number after which no more are opened.
    pub(super) total: Option<u64>,
    /// Growth at the start of the rate, or of the number held.
    pub(super) ramp: Option<Ramp>,
}

impl Group {
    /// Its name in reports.
    pub(super) fn name(&self) -> String {
        let names: Vec<&str> = self.plan.talks.iter().map(|talk| talk.name.as_str()).collect();
        names.join("+")
    }

    /// The rate at which connections that are held are opened, if none is asked for: all within a
    /// second, and later as many as end.
    pub(super) fn fill(&self) -> f64 {
        let each = 1.0 / self.life.as_secs_f64().max(1e-3);
        (f64::from(self.hold.unwrap_or_default()) * each.max(1.0)).min(MOST_FILL)
    }
}

/// Most connections per second that are opened to hold a number of them.
const MOST_FILL: f64 = 1e6;

/// A profile to read.
#[derive(clap::Args, Clone)]
pub(super) struct Wanted {
    /// Profile: a file, or the name of one that is built in (imix, bench, l2xc, ipv4, mpls,
    /// cps-short, cps-long)
    #[arg(value_name = "PROFILE")]
    pub(super) profile: String,
    /// Set tunables of the profile
    #[arg(short = 't', long = "tunable", value_name = "NAME=VALUE,…", value_delimiter = ',', value_parser = tunable)]
    pub(super) tunables: Vec<(String, String)>,
}

/// Reads a tunable.
pub(super) fn tunable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("`{text}': NAME=VALUE is expected, such as size=64")),
    }
}

impl Wanted {
    /// Reads the profile.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place, and what would be right.
    pub(super) fn read(&self) -> Result<Profile> {
        let name = &self.profile;
        if BUILTINS.iter().any(|builtin| builtin.name == name) {
            return Ok(Profile::builtin(name, &self.tunables)?);
        }
        let is_path = name.contains(['/', '.']);
        if !is_path && !Path::new(name).exists() {
            // The error says which there are.
            return Ok(Profile::builtin(name, &self.tunables)?);
        }
        let text = thalweg_files::read_text(Path::new(name), thalweg_load_profile::MAX_TEXT as u64)
            .with_context(|| name.clone())?;
        Ok(Profile::parse(name, &text, &self.tunables)?)
    }
}

/// Bytes that a conversation takes on each side, and those of a server's look-up.
const TCB: u64 = 64;
const PLACE: u64 = 8;

impl Work {
    /// Connections of options.
    pub(super) fn talks(plan: Plan, life: Duration) -> Work {
        let group = Group { plan, share: 1, life, hold: None, total: None, ramp: None };
        Work { pairs: vec![Pair { streams: None, groups: vec![group] }] }
    }

    /// Traffic of a profile, for a device in this process.
    ///
    /// # Errors
    /// The errors of [`of`](Self::of).
    pub(super) fn plain(profile: &Profile, late: Duration) -> Result<Work> {
        Work::with(profile, None, late)
    }

    /// Traffic of a profile. `late` is the time by which packets and connections may be late.
    ///
    /// # Errors
    /// If hosts cannot tell connections and streams behind the same ports apart.
    pub(super) fn of(profile: &Profile, under: &Under, late: Duration) -> Result<Work> {
        Work::with(profile, under.next_hops, late)
    }

    fn with(profile: &Profile, hops: Option<[MacAddr; 2]>, late: Duration) -> Result<Work> {
        let pair = |pair: &thalweg_load_profile::Pair| {
            let group = |flows: &thalweg_load_profile::Flows| {
                let mut plan = flows.plan.clone();
                plan.late = late.as_micros() as u64;
                if let Some([of_clients, of_servers]) = hops {
                    plan.client_macs.1 = of_clients;
                    plan.server_macs.1 = of_servers;
                }
                let longest =
                    plan.talks.iter().map(|talk| waits(&talk.client) + waits(&talk.server)).max();
                Group {
                    plan,
                    share: flows.share,
                    life: Duration::from_micros(longest.unwrap_or_default()),
                    hold: flows.hold,
                    total: flows.total,
                    ramp: flows.ramp,
                }
            };
            Pair {
                streams: pair.plan().map(|plan| with_macs(plan, hops, late)),
                groups: pair.flows.iter().map(group).collect(),
            }
        };
        let work = Work { pairs: profile.pairs.iter().map(pair).collect() };
        for (number, pair) in work.pairs.iter().enumerate() {
            apart(pair).with_context(|| format!("{}: pair {number} of ports", profile.name))?;
        }
        Ok(work)
    }

    /// All groups of connections: number of the pair, number in the pair, group.
    pub(super) fn groups(&self) -> impl Iterator<Item = (usize, usize, &Group)> {
        let pairs = self.pairs.iter().enumerate();
        pairs.flat_map(|(pair, all)| {
            all.groups.iter().enumerate().map(move |(number, group)| (pair, number, group))
        })
    }

    fn plans(&self) -> impl Iterator<Item = &stream::Plan> {
        self.pairs.iter().filter_map(|pair| pair.streams.as_ref())
    }

    pub(super) fn has_streams(&self) -> bool {
        self.plans().next().is_some()
    }

    pub(super) fn has_connections(&self) -> bool {
        self.groups().next().is_some()
    }

    /// True if all connections are held by number, so that none has a rate.
    pub(super) fn is_held(&self) -> bool {
        self.groups().all(|(.., group)| group.hold.is_some())
    }

    /// True if some connections are held by number, or have a ramp: a trial begins when all are
    /// there.
    pub(super) fn grows(&self) -> bool {
        self.groups().any(|(.., group)| group.hold.is_some() || group.ramp.is_some())
    }

    /// Time that the longest of its connections takes at least.
    pub(super) fn life(&self) -> Duration {
        let rated = self.groups().filter(|(.., group)| group.hold.is_none());
        rated.map(|(.., group)| group.life).max().unwrap_or_default()
    }

    /// Unit of the rate that is searched for.
    pub(super) fn unit(&self) -> &'static str {
        if self.has_connections() { "conn/s" } else { "packets/s" }
    }

    /// Bounds of a search for its rate, if the user gives none.
    pub(super) fn bounds(&self) -> (f64, f64) {
        if self.has_connections() { (1e3, 2e6) } else { (10e3, 200e6) }
    }

    /// Packets per second of streams by their own rates, all directions together; those of fixed
    /// rate are apart.
    pub(super) fn own_rate(&self) -> f64 {
        let sides = [stream::Side::A, stream::Side::B];
        let of = |plan: &stream::Plan| sides.map(|side| plan.totals(side).0.packets);
        self.plans().flat_map(of).sum()
    }

    /// Makes room for connections at this rate, all groups together.
    ///
    /// # Errors
    /// If the machine has not the memory for them.
    pub(super) fn sized(mut self, most: f64) -> Result<Work> {
        let shares = Shares::of(&self);
        let mut bytes = 0;
        for group in self.pairs.iter_mut().flat_map(|pair| &mut pair.groups) {
            // Connections last as long as their program and TIME_WAIT; twice that leaves room for
            // bad trials.
            let life = group.life.as_secs_f64() + group.plan.times.time_wait as f64 / 1e6 + 0.5;
            let own = match group.hold {
                None => most * shares.of_rated(group.share) * life * 2.0,
                // Ended connections are in TIME_WAIT.
                Some(hold) => {
                    let ended = group.plan.times.time_wait as f64 / 1e6 + 0.5;
                    2.0 * f64::from(hold) + group.fill().min(most.max(1e3)) * ended
                }
            };
            group.plan.room = own.clamp(65_536.0, talk::MAX_ROOM.into()) as u32;
            let servers = u64::from(group.plan.room) * (TCB + PLACE);
            bytes += TCB * group.plan.slots() + servers;
        }
        if bytes > 0 {
            check_memory(bytes)?;
        }
        Ok(self)
    }

    /// Its streams without its connections.
    pub(super) fn only_streams(&self) -> Work {
        let pair = |pair: &Pair| Pair { streams: pair.streams.clone(), groups: Vec::new() };
        Work { pairs: self.pairs.iter().map(pair).collect() }
    }

    /// The same for a device, by a seed and shared out over a number of workers.
    pub(super) fn hosts(&self, seed: u64, cores: u64) -> Hosts<'_> {
        Hosts { work: self, seed, cores: cores as usize }
    }

    /// Checks that there is a rate to search for.
    pub(super) fn check_search(&self) -> Result<()> {
        ensure!(
            !self.has_connections() || !self.is_held(),
            "a number of connections held has no rate to search for; run it"
        );
        ensure!(
            self.has_connections() || self.own_rate() > 0.0,
            "{NO_RATE}: there is none to search for"
        );
        for (.., group) in self.groups() {
            ensure!(
                group.total.is_none(),
                "flow `{}' opens a `total' of connections, which has no rate to search for; run it",
                group.name()
            );
        }
        Ok(())
    }
}

/// Reason why a load cannot be shared out to streams.
pub(super) const NO_RATE: &str = "all streams have a fixed rate, or are bursts that end";

/// Division of a rate among groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    rated: f64,
    all: f64,
}

impl Shares {
    pub(super) fn of(work: &Work) -> Shares {
        let sum = |all: bool| {
            let of = work.groups().filter(|(.., group)| all || group.hold.is_none());
            of.map(|(.., group)| group.share as f64).sum()
        };
        Shares { rated: sum(false), all: sum(true) }
    }

    /// The share of a group without a number that is held.
    pub(super) fn of_rated(&self, share: u64) -> f64 {
        share as f64 / self.rated.max(1.0)
    }

    /// The same, if all groups are held and share a rate at which they are opened.
    pub(super) fn of_held(&self, share: u64) -> f64 {
        share as f64 / self.all.max(1.0)
    }
}

/// Checks that hosts behind the same ports can tell whose a packet is.
fn apart(pair: &Pair) -> Result<()> {
    groups_apart(&pair.groups)?;
    let Some(streams) = &pair.streams else { return Ok(()) };
    match thalweg_load::mixed(streams, pair.groups.iter().map(|group| &group.plan)) {
        None => Ok(()),
        Some(mixed) => Err(anyhow::Error::msg(cannot_tell(&mixed))),
    }
}

/// Describes the fault of a stream that hosts would take for connections.
fn cannot_tell(mixed: &thalweg_load::Mixed<'_>) -> String {
    let (why, tag) = match mixed.stream.tagged {
        true => ("are too small for a tag", "a greater size, so that they have one"),
        false => ("have no tag", "`measure: count', so that they have one"),
    };
    let hosts = if mixed.at_clients { "clients" } else { "servers" };
    let protocol = match mixed.talk.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    };
    format!(
        "packets of the stream {} {why}, and {hosts} would take them for the connections {}: both \
         have servers in {} with {protocol} port {}; give the stream other addresses or ports, or \
         {tag}",
        mixed.stream.name, mixed.talk.name, mixed.servers, mixed.talk.port
    )
}

fn groups_apart(groups: &[Group]) -> Result<()> {
    let kinds = |group: &Group| -> Vec<_> {
        group.plan.talks.iter().map(|talk| (talk.protocol, talk.port)).collect()
    };
    for (at, one) in groups.iter().enumerate() {
        for other in &groups[..at] {
            let same = kinds(one).into_iter().find(|kind| kinds(other).contains(kind));
            let Some((_, port)) = same else { continue };
            ensure!(
                !one.plan.servers.overlaps(&other.plan.servers),
                "the connections {} and {} have servers and port {port} in common, but another \
                 number held, total, ramp or TCP: servers could not tell them apart; give them \
                 other ports or other servers",
                other.name(),
                one.name()
            );
        }
    }
    Ok(())
}

fn with_macs(mut plan: stream::Plan, hops: Option<[MacAddr; 2]>, late: Duration) -> stream::Plan {
    plan.late = late.as_nanos() as u64;
    if let Some([of_first, of_second]) = hops {
        plan.macs[0].1 = of_first;
        plan.macs[1].1 = of_second;
    }
    plan
}

/// Time that a side waits by its program, at most, in microseconds.
fn waits(program: &[Step]) -> u64 {
    let mut sums = Vec::with_capacity(program.len());
    let mut sum = 0u64;
    for step in program {
        sums.push(sum);
        match *step {
            Step::Wait { most, .. } => sum += most,
            Step::Pause { mean } => sum += mean * LONGEST_PAUSE,
            Step::Repeat { from, times } => {
                let before = sums.get(usize::from(from)).copied().unwrap_or_default();
                sum += (sum - before) * u64::from(times.saturating_sub(1));
            }
            _ => {}
        }
    }
    sum
}

/// Checks that the machine has this memory for conversations.
fn check_memory(bytes: u64) -> Result<()> {
    const FILE: &str = "/proc/meminfo";
    let text = std::fs::read_to_string(FILE).context(FILE)?;
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let free = available.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    has_room(bytes, free.map_or(u64::MAX, |kib| kib << 10))
}

/// Most of the machine's free memory is not enough: others need some.
fn has_room(needed: u64, free: u64) -> Result<()> {
    let mib = |bytes: u64| bytes >> 20;
    ensure!(
        needed <= free / 4 * 3,
        "the connections take {} MiB, and the machine has {} MiB free: a lower upper bound of the \
         rate, fewer clients, fewer messages or a shorter wait take less",
        mib(needed),
        mib(free)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(flows: &str) -> Result<Work> {
        let text = format!(
            "version: 1\npools:\n  c: {{v4: 16.0.0.0-16.0.0.9}}\n  s: {{v4: 48.0.0.0-48.0.0.9}}\n  \
             t: {{v4: 48.0.0.10-48.0.0.19}}\nflows:\n{flows}"
        );
        Work::plain(&Profile::parse("mine.yaml", &text, &[]).unwrap(), LATE)
    }

    const LATE: Duration = Duration::from_millis(10);

    fn streams(rest: &str) -> Result<Work> {
        let text = format!(
            "version: 1\nstreams:\n- {{name: s, between: [16.0.0.1-16.0.0.9, 48.0.0.1], {rest}}}\n"
        );
        Work::plain(&Profile::parse("mine.yaml", &text, &[]).unwrap(), LATE)
    }

    #[test]
    fn streams_that_hosts_take_for_connections_are_refused() {
        let with = |stream: &str| {
            streams(&format!(
                "{stream}}}\nflows:\n- {{name: d, udp: {{client: 16.0.0.1-16.0.0.9, \
                 server: 48.0.0.1, port: 53}}"
            ))
        };
        let error = format!("{:#}", with("udp: [1024-65535, 53], measure: none").unwrap_err());
        assert_eq!(
            error,
            "mine.yaml: pair 0 of ports: packets of the stream s have no tag, and servers would \
             take them for the connections d: both have servers in 48.0.0.1 with UDP port 53; give \
             the stream other addresses or ports, or `measure: count', so that they have one"
        );
        let back = with("direction: b-a, udp: [53, 5000], measure: none").unwrap_err();
        assert!(format!("{back:#}").contains("clients would take them"), "{back:#}");
        with("udp: [1024-65535, 53]").unwrap();
        with("udp: [1024-65535, 54], measure: none").unwrap();
        with("tcp: [1024-65535, 53], measure: none").unwrap();
    }

    #[test]
    fn bursts_count_by_their_mean_rate_in_searches() {
        let burst = |mode: &str| {
            streams(&format!("direction: both, udp: [7, 7], rate: 10 kpps, mode: {{{mode}}}"))
        };
        let work = burst("bursts: {packets: 50, every: 100ms}").unwrap();
        assert_eq!(work.own_rate(), 1000.0);
        work.check_search().unwrap();
        for ends in ["burst: {packets: 50}", "bursts: {packets: 50, every: 100ms, count: 9}"] {
            let error = burst(ends).unwrap().check_search().unwrap_err().to_string();
            let wanted = "all streams have a fixed rate, or are bursts that end: there is none";
            assert!(error.starts_with(wanted), "{error}");
        }
    }

    #[test]
    fn groups_share_the_rate_and_leave_out_what_is_held() {
        let work = work(
            "  - {name: a, share: 3, ramp: 2s linear, tcp: {client: c, server: s, port: 80}}\n  \
             - {name: b, tcp: {client: c, server: s, port: 81}}\n  \
             - {name: h, hold: 500, tcp: {client: c, server: s, port: 82}}\n",
        )
        .unwrap();
        assert_eq!(work.groups().count(), 3);
        assert!(work.has_connections() && !work.has_streams() && !work.is_held());
        work.check_search().unwrap();
        let shares = Shares::of(&work);
        let of: Vec<f64> =
            work.groups().map(|(.., group)| shares.of_rated(group.share)).take(2).collect();
        assert_eq!(of, [0.75, 0.25]);
        let held = &work.pairs[0].groups[2];
        assert_eq!((held.name().as_str(), held.hold), ("h", Some(500)));
        // A connection of a millisecond is replaced a thousand times a second at most.
        assert_eq!(held.fill(), 500_000.0);
    }

    #[test]
    fn groups_that_servers_cannot_tell_apart_are_refused() {
        let two = |server: &str| {
            format!(
                "  - {{name: a, tcp: {{client: c, server: s, port: 80}}}}\n  \
                 - {{name: h, hold: 5, tcp: {{client: c, server: {server}, port: 80}}}}\n"
            )
        };
        let error = format!("{:#}", work(&two("s")).unwrap_err());
        assert!(
            error.starts_with("mine.yaml: pair 0 of ports: the connections a and h"),
            "{error}"
        );
        assert!(error.contains("give them other ports or other servers"), "{error}");
        work(&two("t")).unwrap();
    }

    #[test]
    fn connections_must_fit_into_memory() {
        has_room(3 << 20, 4 << 20).unwrap();
        let error = has_room(2000 << 20, 1000 << 20).unwrap_err().to_string();
        assert!(error.starts_with("the connections take 2000 MiB, and the machine"), "{error}");
    }

    #[test]
    fn waits_of_repeated_steps_count_each_time() {
        let wait = |most| Step::Wait { least: 1, most };
        let program = [wait(7), wait(100), Step::Repeat { from: 1, times: 5 }, wait(3)];
        assert_eq!(waits(&program), 7 + 500 + 3);
        assert_eq!(waits(&[]), 0);
    }

    #[test]
    fn tunables_are_names_and_values() {
        assert_eq!(tunable("size=64"), Ok(("size".into(), "64".into())));
        assert_eq!(tunable(" a = b=c"), Ok(("a".into(), "b=c".into())));
        assert!(tunable("size").is_err() && tunable("=1").is_err());
    }
}
