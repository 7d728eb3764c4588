//! One run: a router, what is done to it, and what has to hold.

use super::kernel;
use super::packets;
use super::steps::{Grammars, Step};
use super::values::mac_of_port;
use crate::binary::thalweg;
use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use thalweg_cli::client::{Client, ClientError};
use thalweg_testkit::{Netns, Running, Signal, WAIT_LIMIT, join, wait_for_unix_socket};

/// Steps of a random run.
const STEPS: usize = 220;
/// Limit of the time for an answer. A router under traffic answers in milliseconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Limit of the time until what waits has been given up: for neighbours, or first fragments.
const REST_LIMIT: Duration = Duration::from_secs(20);
/// Limit of the time for an end. A second is promised; the machine may be somewhat busy.
const END_LIMIT: Duration = Duration::from_millis(2500);
/// The limit while more threads want processors than there are.
const BUSY_END_LIMIT: Duration = Duration::from_secs(8);

/// Rounds in which the steps of a plan are done in one router. The first ones fill what is bounded,
/// such as lists of what has been; packets may fill more later, so that rounds go on as long as
/// memory grows.
const ROUNDS: std::ops::RangeInclusive<usize> = 7..=24;
/// Last rounds that are compared with those before them.
const JUDGED: usize = 4;
/// Least bytes by which memory grows in each of them if something is not given back.
const LEAK: u64 = 16;
/// Time for which allocated memory is looked at.
const QUIET: Duration = Duration::from_millis(600);
/// Commands that forget what is kept for the user.
const FORGET: &[&str] =
    &["clear logging", "clear trace", "pcap trace off", "clear errors", "clear runtime"];

/// Lines of the log that are shown of a router that has ended.
const LAST_LINES: usize = 30;

/// The plan of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of workers.
    pub workers: usize,
    pub(super) steps: Vec<Step>,
}

impl Plan {
    /// The run of a seed: one worker if it is even, two if it is odd.
    ///
    /// # Errors
    /// If the router does not start, or does not tell of its commands.
    pub fn of_seed(seed: u64) -> Result<Plan> {
        let mut rng = Rng::with_seed(seed);
        let workers = 1 + (seed % 2) as usize;
        let grammars = grammars()?;
        let interfaces: Vec<String> = INTERFACES.iter().map(|name| (*name).to_owned()).collect();
        // Commands make few twins, without which the kernel's routes lead nowhere.
        let twins = if seed % 3 < 2 { TWINS } else { &[] };
        let mut steps: Vec<Step> =
            twins.iter().map(|line| Step::Command((*line).to_owned())).collect();
        for at in 0..STEPS {
            steps.push(match at % 20 {
                4 | 10 | 16 => Step::Kernel(grammars.kernel(&mut rng)),
                0 | 7 | 13 => Step::Traffic {
                    port: rng.u8(..PORTS),
                    worker: rng.u8(..workers as u8),
                    seed: rng.u64(..1 << 32),
                },
                19 if at % 100 == 99 => Step::Apply,
                _ => Step::Command(grammars.command(&mut rng, &interfaces, DIR)),
            });
        }
        Ok(Plan { workers, steps })
    }

    /// Reads a plan as it is displayed.
    ///
    /// # Errors
    /// If a line of traffic is none.
    pub fn parse(text: &str) -> Result<Plan> {
        let (mut workers, mut steps) = (1, Vec::new());
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match line.strip_prefix(WORKERS) {
                Some(number) => workers = number.trim().parse().context(line.to_owned())?,
                None => steps.push(line.parse()?),
            }
        }
        Ok(Plan { workers, steps })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{WORKERS} {}", self.workers)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

/// Commands that make twins at the start of most runs.
const TWINS: &[&str] =
    &["lcp lcp-sync on", "lcp create pg0 host-if t0", "lcp create pg1 host-if t1"];
const WORKERS: &str = "#workers";
/// Ports of the packet generator.
const PORTS: u8 = 3;
/// Stands for the directory of a run in its commands.
const DIR: &str = "%DIR";
/// Interfaces that commands name. Most exist at one time or other.
const INTERFACES: &[&str] = &[
    "pg0",
    "pg1",
    "pg2",
    "pg0",
    "pg1",
    "pg2",
    "loop0",
    "loop0",
    "loop3",
    "bvi0",
    "sink0",
    "host-e0",
    "pg0.10",
    "pg0.100",
    "pg1.20",
    "pg1.100",
    "pg2.200",
    "tap0",
    "tap1",
    "mpls-tunnel0",
];

/// The interfaces and files that exist before the first step.
fn prelude() -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for n in 0..PORTS {
        lines.extend([
            format!("create packet-generator interface pg{n}"),
            format!("set interface mac address pg{n} {}", mac_of_port(n)),
            format!("set interface state pg{n} up"),
            format!("set interface ip address pg{n} 10.0.{n}.1/24"),
            format!("set interface ip address pg{n} 2001:db8:{n}::1/64"),
            format!("set ip neighbor pg{n} 10.0.{n}.2 02:00:00:00:0{n}:02 static"),
        ]);
    }
    lines.push("ip route add 198.51.100.0/24 via 10.0.1.2 pg1".into());
    lines
}

/// A router that is being tried.
struct Subject {
    running: Running,
    socket: PathBuf,
}

impl Subject {
    fn start(ns: &Netns, dir: &Path, workers: usize, document: &Path) -> Result<Subject> {
        let socket = dir.join("cli.sock");
        let startup = dir.join("startup.conf");
        let text = format!(
            "unix {{ nodaemon runtime-dir {dir} cli-listen {socket} }}\n\
             cpu {{ workers {workers} }}\nbuffers {{ buffers-per-numa 8192 }}\n",
            dir = dir.display(),
            socket = socket.display(),
        );
        fs::write(&startup, text)?;
        let program = ns.command(thalweg()?).args(["run", "-c"]).arg(&startup);
        let program = program.arg("--config").arg(document).env("LC_ALL", "C");
        // Keeps no freed blocks for later: freed bytes count as such at once.
        let program = program.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
        let mut running = program.deadline(Duration::from_secs(600)).spawn()?;
        let begun = Instant::now();
        while wait_for_unix_socket(&socket, Duration::from_millis(50)).is_err() {
            if let Some(status) = running.try_status()? {
                bail!("the router ended at its start, {status}: {}", running.stderr());
            }
            ensure!(begun.elapsed() < WAIT_LIMIT, "the router does not listen");
        }
        let mut subject = Subject { running, socket };
        subject.must("show version")?;
        Ok(subject)
    }

    /// Runs a command that may be refused; what the router said.
    fn say(&mut self, line: &str) -> Result<Result<String, String>> {
        let (socket, text) = (self.socket.clone(), line.to_owned());
        let asked = thread::spawn(move || Client::connect(&socket)?.run(&text));
        match join(asked, ANSWER_LIMIT, &format!("the answer to `{line}'")) {
            Ok(Ok(answer)) => Ok(Ok(answer)),
            Ok(Err(ClientError::Failed { output })) => Ok(Err(output)),
            Ok(Err(error)) => {
                // Paced: a process that has panicked ends a moment later.
                thread::sleep(Duration::from_millis(300));
                match self.running.try_status()? {
                    Some(status) => bail!("ended, {status}, at `{line}': {}", self.last_words()),
                    None => bail!("`{line}': {error}"),
                }
            }
            Err(error) => bail!("{error:#}"),
        }
    }

    /// Runs a command that must succeed.
    fn must(&mut self, line: &str) -> Result<String> {
        self.say(line)?.map_err(|output| anyhow::anyhow!("`{line}' is refused: {output}"))
    }

    /// Saves its configuration; what is in the file, without the line of the time.
    fn saved(&mut self, file: &Path) -> Result<String> {
        self.must(&format!("config save {}", file.display()))?;
        let text = fs::read_to_string(file)?;
        Ok(text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect())
    }

    fn last_words(&self) -> String {
        let log = self.running.stderr();
        let lines: Vec<&str> = log.lines().collect();
        let panicked = lines.iter().position(|line| line.contains("panicked"));
        let from = panicked.unwrap_or(lines.len().saturating_sub(LAST_LINES));
        lines[from..].iter().take(LAST_LINES).copied().collect::<Vec<_>>().join("\n")
    }

    /// Waits until no packet is inside, and all are accounted for.
    fn rest(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let shown = self.must("show packet accounting")?;
            if shown.contains("does not respond") {
                bail!("a worker does not respond:\n{shown}");
            }
            if shown.contains("every packet is accounted for") {
                return Ok(());
            }
            ensure!(begun.elapsed() < REST_LIMIT, "packets stay inside:\n{shown}");
            // Paced: the next look.
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the router forwards by the kernel's routes.
    fn routes_agree(&mut self, ns: &Netns) -> Result<()> {
        let begun = Instant::now();
        let mut ask = |line: &str| -> Result<Option<serde_json::Value>> {
            self.say(line)?.ok().map(|answer| Ok(serde_json::from_str(&answer)?)).transpose()
        };
        while let Err(differs) = kernel::compare(ns, &mut ask) {
            ensure!(begun.elapsed() < REST_LIMIT, "routes of the kernel: {differs:#}");
            // Paced: the next look.
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Waits until no table is left but the main ones: those that the kernel needed go in time.
    fn has_no_tables(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let tables = ["show ip table", "show ip6 table"].map(|line| self.must(line));
            let tables = tables.into_iter().collect::<Result<Vec<String>>>()?;
            if tables.iter().all(|shown| shown.trim().lines().count() == 1) {
                return Ok(());
            }
            ensure!(begun.elapsed() < REST_LIMIT, "these tables are left:\n{}", tables.concat());
            // Paced: the next look.
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The least that is allocated within a moment: what is freed in slices or after a grace period
    /// is free then.
    fn heap(&mut self) -> Result<u64> {
        let mut least = u64::MAX;
        let begun = Instant::now();
        while begun.elapsed() < QUIET {
            // Paced: the next look.
            thread::sleep(Duration::from_millis(50));
            let shown: serde_json::Value = serde_json::from_str(&self.must("show memory | json")?)?;
            let held = shown["heap"]["in_use"].as_u64();
            least = least.min(held.context("the C library does not say what is allocated")?);
        }
        Ok(least)
    }

    /// Asks it to end.
    fn end(mut self) -> Result<()> {
        let begun = Instant::now();
        self.running.signal(Signal::TERM)?;
        let status = self.running.wait(Duration::from_secs(10)).context("SIGTERM")?;
        let took = begun.elapsed();
        ensure!(status.success(), "ended by SIGTERM with {status}: {}", self.last_words());
        ensure!(took < end_limit(), "SIGTERM took {took:.1?}");
        Ok(())
    }
}

fn end_limit() -> Duration {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    // The router has one that it keeps busy.
    if load > processors as f64 + 1.0 { BUSY_END_LIMIT } else { END_LIMIT }
}

fn space() -> Result<(Netns, TempDir)> {
    let ns = Netns::new("chaos")?;
    ns.ip("link add e0 type veth peer name p0")?;
    ns.ip("link set e0 up")?;
    ns.ip("link set p0 up")?;
    Ok((ns, TempDir::with_prefix("thalweg-chaos-").context("make a directory")?))
}

fn grammars() -> Result<Grammars> {
    let (ns, dir) = space()?;
    let mut subject = Subject::start(&ns, dir.path(), 1, &dir.path().join("router.yaml"))?;
    let shown: serde_json::Value = serde_json::from_str(&subject.must("show cli | json")?)?;
    let rows = shown.as_array().context("`show cli' is no list")?;
    let word = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or("").to_owned();
    let all: Vec<(String, String)> =
        rows.iter().map(|row| (word(row, "path"), word(row, "usage"))).collect();
    subject.end()?;
    Ok(Grammars::new(all.iter().map(|(path, usage)| (path.as_str(), usage.as_str()))))
}

/// Runs a plan, and checks the invariants. `tell` is called for each step.
///
/// # Errors
/// An invariant that did not hold.
pub fn run(plan: &Plan, tell: &mut dyn FnMut(&str)) -> Result<()> {
    let (ns, dir) = space()?;
    let at = |name: &str| dir.path().join(name);
    let devices_before = devices(&ns)?;
    let mut subject = Subject::start(&ns, dir.path(), plan.workers, &at("router.yaml"))?;
    let empty = subject.saved(&at("empty.yaml"))?;
    for line in prelude() {
        subject.must(&line)?;
    }
    for step in &plan.steps {
        tell(&step.to_string());
        do_step(&mut subject, &ns, step, dir.path()).with_context(|| format!("at `{step}'"))?;
        if let Some(status) = subject.running.try_status()? {
            bail!("ended, {status}, after `{step}': {}", subject.last_words());
        }
    }
    // Paced: what was begun last does something, too.
    thread::sleep(Duration::from_millis(200));
    let _ = subject.say("packet-generator disable-stream")?;
    tell("rest");
    subject.rest()?;
    subject.routes_agree(&ns)?;
    tell("save");
    let one = at("one.yaml");
    let saved = subject.saved(&one)?;
    tell("delete everything");
    // Trackers grow while they are empty only.
    subject.must("clear conntrack")?;
    subject
        .must(&format!("config apply {}", at("empty.yaml").display()))
        .context("deleting everything")?;
    subject.rest()?;
    let left = subject.saved(&at("left.yaml"))?;
    ensure!(left == empty, "this is left when everything is deleted:\n{left}");
    let names = interfaces(&mut subject)?;
    ensure!(names == ["local0"], "these interfaces are left: {names:?}");
    subject.has_no_tables()?;
    kernel::forget(&ns);
    // A persistent TAP leaves its device behind.
    let has_persistent = plan.steps.iter().any(|step| step.to_string().contains("persist"));
    let left = devices(&ns)?;
    ensure!(has_persistent || left == devices_before, "these devices are left: {left:?}");
    subject.must("create packet-generator interface pg0")?;
    let shown: serde_json::Value = serde_json::from_str(&subject.must("show interface | json")?)?;
    let index = shown.as_array().and_then(|rows| rows.last()?["index"].as_u64());
    ensure!(index == Some(1), "the first interface has index {index:?}: some are not given back");
    subject.must("delete packet-generator interface pg0")?;
    tell("end");
    subject.end()?;
    tell("a new router");
    let mut second = Subject::start(&ns, dir.path(), plan.workers, &one).context("a new router")?;
    let again = settled(&mut second, &saved, &at("again.yaml"))?;
    let changed = difference(&saved, &again);
    // Rules and routes stay when an interface or a table goes that they name, and wait for it in a
    // new router. Their keys come last there; keys have no order.
    let unresolved = second.must("show configuration unresolved")?;
    let is_order =
        changed.starts_with("another order") && !unresolved.contains("all of the configuration");
    ensure!(again == saved || is_order, "a new router has another configuration: {changed}");
    let planned = second.must(&format!("config plan {}", one.display()))?;
    let is_known = |line: &&str| {
        line.is_empty() || line.starts_with("comment ") || unresolved.contains(&format!("`{line}'"))
    };
    let more: Vec<&str> = planned.lines().filter(|line| !is_known(line)).collect();
    ensure!(more.is_empty(), "a new router plans:\n{}", more.join("\n"));
    second.end().context("a new router")
}

/// Runs a plan and deletes everything, several times in one router: it may not hold more memory
/// each time. `tell` is called for each step.
///
/// # Errors
/// If it does, or one of the steps fails.
pub fn repeat(plan: &Plan, tell: &mut dyn FnMut(&str)) -> Result<()> {
    let (ns, dir) = space()?;
    let mut subject = Subject::start(&ns, dir.path(), plan.workers, &dir.path().join("r.yaml"))?;
    let empty = dir.path().join("empty.yaml");
    subject.saved(&empty)?;
    let mut held = Vec::new();
    for round in 1..=*ROUNDS.end() {
        for line in prelude() {
            subject.must(&line)?;
        }
        for step in &plan.steps {
            do_step(&mut subject, &ns, step, dir.path()).with_context(|| format!("at `{step}'"))?;
        }
        // Paced: what was begun last does something, too.
        thread::sleep(Duration::from_millis(200));
        let _ = subject.say("packet-generator disable-stream")?;
        subject.rest()?;
        subject.must("clear conntrack")?;
        subject.must(&format!("config apply {}", empty.display()))?;
        subject.rest()?;
        let names = interfaces(&mut subject)?;
        ensure!(names == ["local0"], "these interfaces are left: {names:?}");
        subject.has_no_tables()?;
        kernel::forget(&ns);
        FORGET.iter().try_for_each(|line| subject.say(line).map(drop))?;
        held.push(subject.heap()?);
        tell(&format!("round {round}: {} bytes", held[round - 1]));
        if round >= *ROUNDS.start() && !grows(&held) {
            break;
        }
    }
    subject.end()?;
    ensure!(
        !grows(&held),
        "memory grows each time that the steps are done and everything is deleted: {held:?} bytes"
    );
    Ok(())
}

/// Returns whether each of the last rounds has left more allocated than the one before it.
fn grows(held: &[u64]) -> bool {
    let steps = held.windows(2).map(|two| two[1].saturating_sub(two[0]));
    held.len() > JUDGED && steps.rev().take(JUDGED).all(|more| more >= LEAK)
}

/// The configuration, once it is the one wanted, or has been waited for.
fn settled(subject: &mut Subject, wanted: &str, file: &Path) -> Result<String> {
    let begun = Instant::now();
    loop {
        let saved = subject.saved(file)?;
        if saved == wanted || begun.elapsed() > Duration::from_secs(3) {
            return Ok(saved);
        }
        // Paced: the next look.
        thread::sleep(Duration::from_millis(100));
    }
}

/// The kernel's devices.
fn devices(ns: &Netns) -> Result<Vec<String>> {
    Ok(ns.links()?.into_iter().map(|link| link.name).collect())
}

fn interfaces(subject: &mut Subject) -> Result<Vec<String>> {
    // Interfaces with many settings go in slices.
    let begun = Instant::now();
    loop {
        let shown: serde_json::Value =
            serde_json::from_str(&subject.must("show interface | json")?)?;
        let rows = shown.as_array().cloned().unwrap_or_default();
        let names: Vec<String> =
            rows.iter().filter_map(|row| row["name"].as_str().map(str::to_owned)).collect();
        if names.len() <= 1 || begun.elapsed() > Duration::from_secs(3) {
            return Ok(names);
        }
        // Paced: the next look.
        thread::sleep(Duration::from_millis(100));
    }
}

fn difference(before: &str, after: &str) -> String {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (old, new) = (lines(before), lines(after));
    let gone = old.iter().filter(|line| !new.contains(line)).map(|line| format!("\n- {line}"));
    let come = new.iter().filter(|line| !old.contains(line)).map(|line| format!("\n+ {line}"));
    let changes: String = gone.chain(come).collect();
    if !changes.is_empty() {
        return changes;
    }
    let moved = old.iter().zip(&new).find(|(old, new)| old != new);
    moved.map_or_else(String::new, |(old, new)| format!("another order: `{old}', now `{new}'"))
}

fn do_step(subject: &mut Subject, ns: &Netns, step: &Step, dir: &Path) -> Result<()> {
    match step {
        Step::Kernel(words) => kernel::say(ns, words),
        Step::Command(line) => {
            let line = line.replace(DIR, &dir.display().to_string());
            // Most of it may be refused.
            let _ = subject.say(&line)?;
        }
        Step::Traffic { port, worker, seed } => {
            let file = dir.join(format!("in{port}.pcap"));
            fs::write(&file, packets::capture(&mut Rng::with_seed(*seed), *port))?;
            for line in [
                format!(
                    "packet-generator new {{ name s{port} limit 20000 rate 20000 \
                     interface pg{port} node ethernet-input worker {worker} pcap {} }}",
                    file.display()
                ),
                format!("packet-generator enable-stream s{port}"),
            ] {
                let _ = subject.say(&line)?;
            }
        }
        Step::Apply => {
            let file = dir.join("now.yaml");
            let before = subject.saved(&file)?;
            let planned = subject.must(&format!("config plan {}", file.display()))?;
            ensure!(planned.trim().is_empty(), "of its own configuration it plans:\n{planned}");
            subject.must(&format!("config apply {}", file.display()))?;
            let after = subject.saved(&file)?;
            ensure!(
                before == after,
                "its own configuration changes it: {}",
                difference(&before, &after)
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_if_each_of_the_last_rounds_takes_some() {
        for (held, expected) in [
            (&[900, 950, 966, 982, 1000, 1016, 1032][..], true),
            // Rounds take more once, after which nothing is missing; or less at times.
            (&[100, 150, 160, 160, 160, 160, 9000], false),
            (&[100, 150, 200, 250, 240, 300, 350], false),
            (&[100, 150, 200, 250], false),
        ] {
            assert_eq!(grows(held), expected, "{held:?}");
        }
    }
}
