//! What is sent: connections or streams, from options or from a profile.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use thalweg_load::talk::{Plan, Step};
use thalweg_load::{stream, talk};
use thalweg_load_profile::{BUILTINS, Profile};

use super::device::Hosts;
use super::under::Under;

/// What is sent.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Connections, which take at least this time each; a number that is held instead of a rate.
    Talks {
        plan: Plan,
        life: Duration,
        hold: Option<u32>,
        /// Number after which no more are opened.
        total: Option<u64>,
    },
    /// Streams, a plan for each pair of ports.
    Streams(Vec<stream::Plan>),
}

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
            // It says which there are.
            return Ok(Profile::builtin(name, &self.tunables)?);
        }
        let text = thalweg_files::read_text(Path::new(name), thalweg_load_profile::MAX_TEXT as u64)
            .with_context(|| name.clone())?;
        Ok(Profile::parse(name, &text, &self.tunables)?)
    }
}

/// Bytes that a conversation takes on both sides, with the server's look-up.
const CONVERSATION: u64 = 64 + 64 + 8;

impl Work {
    /// Connections of options.
    pub(super) fn talks(plan: Plan, life: Duration) -> Work {
        Work::Talks { plan, life, hold: None, total: None }
    }

    /// What a profile says. `late` is the time by which packets and connections may be late.
    ///
    /// # Errors
    /// If it mixes what cannot share ports.
    pub(super) fn of(profile: &Profile, under: &Under, late: Duration) -> Result<Work> {
        let flows: Vec<_> = profile.pairs.iter().flat_map(|pair| &pair.flows).collect();
        let streams: Vec<stream::Plan> =
            profile.pairs.iter().filter_map(|pair| pair.plan()).collect();
        match (&flows[..], streams.is_empty()) {
            ([], _) => Ok(Work::Streams(
                streams.into_iter().map(|plan| with_macs(plan, under, late)).collect(),
            )),
            ([flows], true) => {
                let mut plan = flows.plan.clone();
                plan.late = late.as_micros() as u64;
                if let Some([of_clients, of_servers]) = under.next_hops {
                    plan.client_macs.1 = of_clients;
                    plan.server_macs.1 = of_servers;
                }
                let longest =
                    plan.talks.iter().map(|talk| waits(&talk.client) + waits(&talk.server)).max();
                let life = Duration::from_micros(longest.unwrap_or_default());
                Ok(Work::Talks { plan, life, hold: flows.hold, total: flows.total })
            }
            (_, false) => bail!(
                "{}: streams and connections: each takes a search of its own, so give them a \
                 profile each",
                profile.name
            ),
            ([..], true) => bail!(
                "{}: {} groups of connections with different pools, ports, times, ramps, pairs or \
                 numbers held; one group can run at a time",
                profile.name,
                flows.len()
            ),
        }
    }

    /// What its rate counts.
    pub(super) fn unit(&self) -> &'static str {
        match self {
            Work::Talks { .. } => "conn/s",
            Work::Streams(_) => "packets/s",
        }
    }

    /// Bounds of a search for its rate, if the user gives none.
    pub(super) fn bounds(&self) -> (f64, f64) {
        match self {
            Work::Talks { .. } => (1e3, 2e6),
            Work::Streams(_) => (10e3, 200e6),
        }
    }

    /// Packets per second of streams by their own rates, all directions together; those of fixed
    /// rate are apart.
    pub(super) fn own_rate(&self) -> f64 {
        let Work::Streams(plans) = self else { return 0.0 };
        let sides = [stream::Side::A, stream::Side::B];
        let of = |plan: &stream::Plan| sides.map(|side| plan.totals(side).0.packets);
        plans.iter().flat_map(of).sum()
    }

    /// Makes room for connections at this rate.
    ///
    /// # Errors
    /// If the machine has not the memory for them.
    pub(super) fn sized(mut self, most: f64) -> Result<Work> {
        if let Work::Talks { plan, life, hold, .. } = &mut self {
            // Connections last as long as their program and TIME_WAIT; twice that leaves room for
            // bad trials.
            let life = life.as_secs_f64() + plan.times.time_wait as f64 / 1e6 + 0.5;
            let held = hold.map_or(0.0, f64::from);
            plan.room = (most * life * 2.0 + held).clamp(65_536.0, talk::MAX_ROOM.into()) as u32;
            check_memory(plan)?;
        }
        Ok(self)
    }

    pub(super) fn hosts(&self, seed: u64) -> Hosts<'_> {
        match self {
            Work::Talks { plan, .. } => Hosts::Talks(plan, seed),
            Work::Streams(plans) => Hosts::Streams(plans, seed),
        }
    }

    /// Checks that there is a rate to search for.
    pub(super) fn check_search(&self) -> Result<()> {
        if let Work::Talks { hold: Some(hold), .. } = self {
            bail!("a number of connections held ({hold}) has no rate to search for; run it");
        }
        ensure!(
            !matches!(self, Work::Streams(_)) || self.own_rate() > 0.0,
            "all streams have a fixed rate: there is none to search for"
        );
        Ok(())
    }
}

fn with_macs(mut plan: stream::Plan, under: &Under, late: Duration) -> stream::Plan {
    plan.late = late.as_nanos() as u64;
    if let Some([of_first, of_second]) = under.next_hops {
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
            Step::Repeat { from, times } => {
                let before = sums.get(usize::from(from)).copied().unwrap_or_default();
                sum += (sum - before) * u64::from(times.saturating_sub(1));
            }
            _ => {}
        }
    }
    sum
}

/// Checks that the machine has the memory for a plan's conversations.
fn check_memory(plan: &Plan) -> Result<()> {
    const FILE: &str = "/proc/meminfo";
    let text = std::fs::read_to_string(FILE).context(FILE)?;
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let free = available.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    has_room(u64::from(plan.room) * CONVERSATION, free.map_or(u64::MAX, |kib| kib << 10))
}

/// Most of the machine's free memory is not enough: others need some.
fn has_room(needed: u64, free: u64) -> Result<()> {
    let mib = |bytes: u64| bytes >> 20;
    ensure!(
        needed <= free / 4 * 3,
        "the connections take {} MiB, and the machine has {} MiB free: a lower upper bound of the \
         rate, fewer messages or a shorter wait take less",
        mib(needed),
        mib(free)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
