//! The phases: what each builds, and the jobs that it consists of.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::build::{Program, cargo, programs, step, step_output};
use super::job::Job;

/// Phases of `make test`, in the order in which they are built and begun.
const SHORT_LIST: [&str; 6] = ["papi", "unit", "chaos", "smoke", "levels", "doc"];
/// Phases of `make test-long`. The longest ones come first. Some phases have jobs in both lists.
const LONG_LIST: [&str; 10] =
    ["psample", "guard", "aarch64", "loom", "fuzz", "chaos", "papi", "unit", "smoke", "levels"];
/// Phases of words that name none.
const USUAL: [&str; 2] = ["unit", "smoke"];

/// A phase that is one command.
struct Single {
    phase: &'static str,
    /// Fetches and compiles, alone.
    build: &'static str,
    run: &'static str,
}

const SINGLES: [Single; 6] = [
    // The router in an emulated machine with a kernel of Debian's, which the program fetches and
    // keeps.
    Single {
        phase: "psample",
        build: "cargo build --workspace --bin thalweg-psample-test",
        run: "target/debug/thalweg-psample-test",
    },
    // Instructions per packet, compared with those that were accepted last. A busy machine does not
    // change their number.
    Single {
        phase: "guard",
        build: "cargo bench -p thalweg-bench-pg --bench instructions --no-run",
        run: "cargo bench -p thalweg-bench-pg --bench instructions -- guard",
    },
    Single { phase: "aarch64", build: "scripts/aarch64.sh build", run: "scripts/aarch64.sh" },
    // Models of what threads share, in all orders in which these may run that differ in up to three
    // places.
    Single { phase: "loom", build: "scripts/loom.sh --build", run: "scripts/loom.sh" },
    Single { phase: "doc", build: "true", run: "cargo test --workspace --doc" },
    Single { phase: "fuzz", build: "scripts/fuzz.sh --build", run: "scripts/fuzz.sh --run" },
];

/// A program of unit tests, or another that takes minutes when the machine is busy.
const PROGRAM_DEADLINE: Duration = Duration::from_secs(15 * 60);
/// A scenario, which reports by itself what it waits for, a while before (see
/// `THALWEG_TEST_DEADLINE` in the test kit).
const SCENARIO_DEADLINE: Duration = Duration::from_secs(6 * 60);

/// Runs of the random operator, of which one may fail and be made shorter.
const CHAOS_DEADLINE: Duration = Duration::from_secs(18 * 60);

/// Scenarios that are repeated with each level of frame kernels: those that forward.
const FORWARDING: [&str; 5] = ["bad_input::", "cross_connect::", "mtu::", "routing::", "wire::"];
/// Scenarios of these that the short list repeats.
const FORWARDING_SHORT: [&str; 2] =
    ["wire::segments_of_super_packets_are_right", "wire::wireshark_finds_nothing_wrong"];
/// Levels of frame kernels, as `THALWEG_SIMD` names them.
const LEVELS: [&str; 4] = ["per-packet", "scalar", "avx2", "avx512"];
/// Scenarios that measure rates, loss or processor time, by the beginnings of their names. They run
/// alone, in the long list.
const MEASURING: [&str; 12] = [
    "configuration::applying_loses_nothing",
    "conntrack::a_flood_of_openings",
    "idle::",
    "mtu::fragments",
    "mtu::tcp_discovers",
    "nat44::changes_do_not_disturb",
    "nat44::udp_without_loss",
    "nat44_lives::many_connections",
    "nat44_lives::ports_run_out",
    "sflow_many::a_thousand_interfaces",
    "soak::",
    "throughput::",
];

/// The router's program, for tests.
const ROUTER: &str = "THALWEG_BIN";
/// Makes a program of tests try all orders, sizes and repetitions.
const LONG: &str = "THALWEG_TEST_LONG";

/// Programs of unit tests that run with two workers as well: flows have owners there.
const OWNERS: [&str; 2] = ["feat/flow/switch", "feat/nat44/translator"];
/// Programs of unit tests that try more with [`LONG`].
const LONGER: [&str; 4] =
    ["bench/pg/allocations", "feat/l2/subs", "program/router/settings", "sflow/coverage"];
/// Scenarios that do the same hundreds of times, in the long list.
const REPEATING: &str = "killed::many_";
/// Seconds after which such a one reports what it waits for.
const REPEATING_DEADLINE: &str = "840";
/// Scenarios that need programs which take long to build or to fetch.
const FETCHING: [&str; 1] = ["collectors::"];
/// Scenarios that the long list repeats without root.
const WITHOUT_ROOT: [&str; 4] = [
    "lcp::bird_through_a_twin",
    "lcp::frr_through_a_twin",
    "lcp_routes::routes_of_frr",
    "taps::hosts_reach_each_other",
];
/// Scenarios that take a minute, or whose every run waits for restarts, in the long list.
const SLOW: [&str; 6] = [
    "demo::",
    "lcp_daemons::a_namespace_with_many_routes",
    "lcp_daemons::parts_restart_together",
    "lcp_systemd::",
    "load::a_search_names_what_limits",
    "load::connections_pass_each_device_of_a_lab",
];

/// Phases to build, and what selects among their jobs.
pub struct Chosen {
    pub names: Vec<&'static str>,
    words: Vec<String>,
    /// The long list, not the short one.
    long: bool,
}

impl Chosen {
    /// Returns whether a job is asked for. The name of a phase selects jobs of one list, parts of
    /// other names select in both.
    pub fn takes(&self, job: &Job) -> bool {
        let phase = job.name.split('/').next().unwrap_or(&job.name);
        let listed = job.long == self.long || !SHORT_LIST.contains(&phase);
        let matches = |word: &String| match word == phase {
            true => listed,
            false => job.name.contains(word.as_str()),
        };
        if self.words.is_empty() { job.long == self.long } else { self.words.iter().any(matches) }
    }

    /// Returns whether a phase builds what only long jobs need.
    pub fn may_take_long(&self) -> bool {
        self.long || !self.words.is_empty()
    }
}

/// Finds the phases that words ask for: `smoke` or `smoke/routing::` name one, other words are
/// looked for in the usual ones. Without words there are two lists: [`LONG_LIST`] is what the other
/// leaves out.
pub fn chosen(words: &[String], long: bool) -> Result<Chosen> {
    if words.is_empty() {
        let names = if long { LONG_LIST.to_vec() } else { SHORT_LIST.to_vec() };
        return Ok(Chosen { names, words: Vec::new(), long });
    }
    let mut wanted = Vec::new();
    for word in words {
        match word.split_once('/') {
            Some((phase, _)) if !LONG_LIST.contains(&phase) && !SHORT_LIST.contains(&phase) => {
                bail!("there is no phase {phase}; there are {}", all_phases().join(", "))
            }
            Some((phase, _)) => wanted.push(phase),
            None if all_phases().contains(&word.as_str()) => wanted.push(word),
            None => wanted.extend(USUAL),
        }
    }
    let names = all_phases().into_iter().filter(|phase| wanted.contains(phase)).collect();
    Ok(Chosen { names, words: words.to_vec(), long })
}

/// Builds what a phase needs, and lists its jobs.
pub fn build(root: &Path, phase: &str, long: bool) -> Result<Vec<Job>> {
    match phase {
        "unit" => unit(root),
        "smoke" => smoke(root),
        "levels" => levels(root),
        "papi" => papi(root, long),
        "chaos" => chaos(root),
        other => {
            let found = SINGLES.iter().find(|single| single.phase == other);
            single(root, found.with_context(|| format!("there is no phase {other}"))?)
        }
    }
}

fn all_phases() -> Vec<&'static str> {
    let short = SHORT_LIST.into_iter().filter(|phase| !LONG_LIST.contains(phase));
    LONG_LIST.into_iter().chain(short).collect()
}

/// A phase of one command.
fn single(root: &Path, phase: &Single) -> Result<Vec<Job>> {
    let command = |line: &str| {
        let mut words = line.split_whitespace();
        let program = match words.next() {
            Some("cargo") => PathBuf::from(cargo(root).get_program()),
            Some(built) if built.starts_with("target/") => {
                root.join(super::target()).join(built.trim_start_matches("target/"))
            }
            Some(script) if script.contains('/') => root.join(script),
            program => PathBuf::from(program.unwrap_or_default()),
        };
        (program, words.map(OsString::from).collect::<Vec<_>>())
    };
    let (program, args) = command(phase.build);
    step(Command::new(program).args(args).current_dir(root))?;
    let (program, args) = command(phase.run);
    Ok(vec![Job {
        name: format!("{}/all", phase.phase),
        program,
        args,
        env: vec![(ROUTER, router(root)?.into())],
        dir: root.into(),
        deadline: PROGRAM_DEADLINE,
        long: !SHORT_LIST.contains(&phase.phase),
        alone: false,
    }])
}

/// Each program of unit tests is a job; its own threads run its tests. Features whose flows have
/// owners run in another job as well, in labs with two workers.
fn unit(root: &Path) -> Result<Vec<Job>> {
    let all = programs(root, &["test", "--workspace"], &[])?;
    let named = |names: &'static [&str]| {
        all.iter().filter(|program| names.contains(&program.name.as_str()))
    };
    let mut jobs: Vec<Job> = all.iter().map(|program| job("unit", program, Vec::new())).collect();
    for program in named(&OWNERS) {
        let mut job = job("unit", program, Vec::new());
        job.name.push_str(" with two workers");
        job.env.push(("THALWEG_TEST_WORKERS", "2".into()));
        jobs.push(job);
    }
    for program in named(&LONGER) {
        let mut job = job("unit", program, Vec::new());
        job.name.push_str(" at length");
        job.env.push((LONG, "1".into()));
        job.long = true;
        jobs.push(job);
    }
    Ok(jobs)
}

/// Each scenario is a job, with a process of its own. Some are repeated by the root of a user
/// namespace, who has no privileges outside.
fn smoke(root: &Path) -> Result<Vec<Job>> {
    let mut jobs = scenarios(root, "smoke", &[], &[])?;
    let is_repeated = |job: &&Job| WITHOUT_ROOT.iter().any(|name| job.name.ends_with(name));
    let without_root = |job: &Job| Job {
        name: format!("{} without root", job.name),
        program: root.join("scripts/namespace-root.sh"),
        args: [vec![job.program.clone().into()], job.args.clone()].concat(),
        long: true,
        ..job.clone()
    };
    let repeated: Vec<Job> = jobs.iter().filter(is_repeated).map(without_root).collect();
    ensure!(repeated.len() == WITHOUT_ROOT.len(), "no scenario is one of {WITHOUT_ROOT:?}");
    jobs.extend(repeated);
    Ok(jobs)
}

/// Scenarios that forward, again with each level of frame kernels that this processor has: with one
/// worker and two in turn, or as `WORKERS` says (`WORKERS="1 2"`: each level with both).
fn levels(root: &Path) -> Result<Vec<Job>> {
    let processor = fs::read_to_string("/proc/cpuinfo").context("read /proc/cpuinfo")?;
    let asked = std::env::var("WORKERS").unwrap_or_default();
    let mut jobs = Vec::new();
    let mut turn = ["1", "2"].into_iter().cycle();
    for level in LEVELS {
        if level.starts_with("avx") && !processor.contains(level) {
            continue;
        }
        let own = turn.next().unwrap_or("1");
        let workers: Vec<&str> =
            if asked.is_empty() { vec![own] } else { asked.split_whitespace().collect() };
        for workers in workers {
            let env = [("THALWEG_SIMD", level), ("THALWEG_TEST_WORKERS", workers)];
            let phase = format!("levels/{level}-{workers}");
            let mut forwarding = scenarios(root, &phase, &FORWARDING, &env)?;
            for job in &mut forwarding {
                job.long |= !FORWARDING_SHORT.iter().any(|name| job.name.ends_with(name));
            }
            jobs.extend(forwarding);
        }
    }
    Ok(jobs)
}

/// The router, as its users have it.
fn router(root: &Path) -> Result<PathBuf> {
    step(cargo(root).args(["build", "--quiet", "--release", "-p", "thalweg", "--bins"]))?;
    Ok(std::path::absolute(super::target())?.join("release/thalweg"))
}

/// Scenarios whose names contain one of `parts` (all of them if there is none).
fn scenarios(
    root: &Path,
    phase: &str,
    parts: &[&str],
    env: &[(&'static str, &str)],
) -> Result<Vec<Job>> {
    let router = router(root)?;
    let all = programs(root, &["test", "--workspace", "--test", "smoke"], &[])?;
    let program = all.first().context("cargo built no scenarios")?;
    let list = step_output(Command::new(&program.path).args(["--list", "--format", "terse"]))?;
    let list = list.to_string_lossy();
    for beginning in MEASURING {
        let there = list.lines().any(|line| line.starts_with(beginning));
        ensure!(there, "no scenario begins with {beginning}, which is said to measure");
    }
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let mut jobs = Vec::new();
    for name in
        names.filter(|name| parts.is_empty() || parts.iter().any(|part| name.contains(part)))
    {
        let args = words(&["--exact", name, "--nocapture", "--test-threads=1"]);
        let mut job = job(phase, program, args);
        job.name = format!("{phase}/{name}");
        job.deadline = SCENARIO_DEADLINE;
        job.alone = MEASURING.iter().any(|beginning| name.starts_with(beginning));
        let repeats = name.starts_with(REPEATING);
        if repeats {
            job.deadline = PROGRAM_DEADLINE;
            job.env.push(("THALWEG_TEST_DEADLINE", REPEATING_DEADLINE.into()));
        }
        let is_later = FETCHING.iter().chain(&SLOW).any(|beginning| name.starts_with(beginning));
        job.long = job.alone || repeats || is_later;
        job.env.push((ROUTER, router.clone().into()));
        job.env.extend(env.iter().map(|(key, value)| (*key, OsString::from(value))));
        if job.alone {
            // Captures would take processor time from the measurement.
            job.env.push(("THALWEG_TEST_CAPTURE", "0".into()));
        }
        jobs.push(job);
    }
    Ok(jobs)
}

/// Clients of VPP's against the binary API, in a network namespace and with a `/run` of their own:
/// its Python client and vppcfg, and in the long list one made with govpp, which takes a minute to
/// build.
fn papi(root: &Path, long: bool) -> Result<Vec<Job>> {
    let script = |name: &str| step_output(&mut Command::new(root.join(name)));
    let python = Path::new(&script("scripts/papi-venv.sh")?).join("bin/python");
    let router = router(root)?;
    let job = |name: &str, tests: &str| Job {
        name: format!("papi/{name}"),
        program: root.join("scripts/namespace-root.sh"),
        args: [
            words(&["sh", "-c", r#"mount -t tmpfs run /run && exec "$0" "$@""#]),
            vec![python.clone().into()],
            words(&["tests/papi"]),
            words(&tests.split_whitespace().collect::<Vec<_>>()),
        ]
        .concat(),
        env: vec![("THALWEG", router.clone().into())],
        dir: root.into(),
        deadline: PROGRAM_DEADLINE,
        long: false,
        alone: false,
    };
    let mut jobs = vec![job("clients", "")];
    if long {
        let mut govpp = job("govpp", "long_govpp");
        govpp.env.push(("GOVPP", script("scripts/govpp-client.sh")?));
        govpp.long = true;
        jobs.push(govpp);
    }
    Ok(jobs)
}

/// The random operator: steps that have failed once and half a minute of seeds, and in the long
/// list ten minutes of others, the same ones each time, and seeds that may not take memory: faults
/// of new ones are for `make chaos` to find.
fn chaos(root: &Path) -> Result<Vec<Job>> {
    step(cargo(root).args(["build", "--workspace", "--bin", "thalweg-chaos"]))?;
    let program = std::path::absolute(super::target())?.join("debug/thalweg-chaos");
    let router = router(root)?;
    let job = |name: &str, args: &[&str], long: bool| Job {
        name: format!("chaos/{name}"),
        program: program.clone(),
        args: words(args),
        env: vec![(ROUTER, router.clone().into())],
        dir: root.into(),
        deadline: CHAOS_DEADLINE,
        long,
        alone: false,
    };
    let short = ["--replay", "tests/smoke/chaos", "--seed", "1", "--minutes", "0.5"];
    Ok(vec![
        job("short", &[&short[..], &["--shrink", "1"]].concat(), false),
        job("ten-minutes", &["--seed", "1000", "--minutes", "10"], true),
        job("memory", &["--repeat", "--seed", "1", "--minutes", "3"], true),
    ])
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// A job that runs a program as cargo would.
fn job(phase: &str, program: &Program, args: Vec<OsString>) -> Job {
    let mut env = vec![("CARGO_MANIFEST_DIR", program.dir.clone().into_os_string())];
    // Programs that hold procedural macros are linked with the compiler's libraries.
    if let Ok(libraries) = step_output(Command::new("rustc").args(["--print", "target-libdir"])) {
        env.push(("LD_LIBRARY_PATH", libraries));
    }
    Job {
        name: format!("{phase}/{}", program.name),
        program: program.path.clone(),
        args,
        env,
        dir: program.dir.clone(),
        deadline: PROGRAM_DEADLINE,
        long: false,
        alone: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(words: &[&str]) -> Chosen {
        chosen(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), false).unwrap()
    }

    fn named(name: &str, long: bool) -> Job {
        let program = Program { name: String::new(), path: "/t".into(), dir: "/".into() };
        Job { name: name.into(), long, ..job("", &program, Vec::new()) }
    }

    fn takes(chosen: &Chosen, name: &str) -> bool {
        chosen.takes(&named(name, false))
    }

    #[test]
    fn each_job_is_in_one_of_two_lists() {
        let (short, long) = (chosen(&[], false).unwrap(), chosen(&[], true).unwrap());
        let (quick, slow) = (named("smoke/a", false), named("smoke/soak", true));
        assert!(short.takes(&quick) && !short.takes(&slow));
        assert!(!long.takes(&quick) && long.takes(&slow));
        let built = [&short.names[..], &long.names[..]].concat();
        assert!(SINGLES.iter().all(|single| built.contains(&single.phase)));
    }

    #[test]
    fn words_select_phases_and_jobs() {
        let phase = select(&["smoke"]);
        assert_eq!(phase.names, ["smoke"]);
        assert!(takes(&phase, "smoke/routing::ecmp"));
        assert!(!phase.takes(&named("smoke/soak", true)), "of the long list");
        assert!(select(&["smoke/soak"]).takes(&named("smoke/soak", true)));
        assert!(select(&["guard"]).takes(&named("guard/all", true)));

        let one = select(&["smoke/routing::", "unit/wire"]);
        assert_eq!(one.names, ["unit", "smoke"]);
        assert!(takes(&one, "smoke/routing::ecmp") && takes(&one, "unit/wire tests/x"));
        assert!(!takes(&one, "smoke/mtu::ecmp") && !takes(&one, "unit/graph"));

        let word = select(&["nat44"]);
        assert_eq!(word.names, USUAL);
        assert!(takes(&word, "smoke/nat44::masquerade") && !takes(&word, "smoke/routing::ecmp"));
    }

    #[test]
    fn an_unknown_phase_is_named_with_those_there_are() {
        let Err(error) = chosen(&["smok/x".into()], false) else { panic!("accepted") };
        assert!(error.to_string().contains("no phase smok; there are psample, guard"), "{error}");
    }
}
