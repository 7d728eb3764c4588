//! The phases: what each builds, and the jobs that it consists of.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::build::{Program, cargo, programs, step, step_output};
use super::job::Job;

/// All phases, in the order in which they are built and begun. Long jobs come first.
const PHASES: [&str; 9] =
    ["psample", "guard", "papi", "loom", "unit", "doc", "smoke", "levels", "fuzz"];
/// What a part of a name is looked for in, if no phase is named with it.
const USUAL: [&str; 2] = ["unit", "smoke"];

/// A program of unit tests, or another that takes minutes when the machine is busy.
const PROGRAM_DEADLINE: Duration = Duration::from_secs(15 * 60);
/// A scenario. It reports by itself what it waits for, a while before (see `THALWEG_TEST_DEADLINE`
/// in the test kit).
const SCENARIO_DEADLINE: Duration = Duration::from_secs(6 * 60);

/// Scenarios that are repeated with each level of frame kernels: those that forward.
const FORWARDING: [&str; 5] = ["bad_input::", "cross_connect::", "mtu::", "routing::", "wire::"];
/// Levels of frame kernels, as `THALWEG_SIMD` names them.
const LEVELS: [&str; 4] = ["per-packet", "scalar", "avx2", "avx512"];
/// Scenarios that measure rates, loss or processor time, by the beginnings of their names. They run
/// alone.
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

/// The profile of the router that is tested.
const QUICK: &str = "quick";
/// What tells tests where it is.
const ROUTER: &str = "THALWEG_BIN";

/// Programs of unit tests that run with two workers as well: flows have owners there.
const OWNERS: [&str; 2] = ["feat/flow/switch", "feat/nat44/translator"];

/// Phases to build, and the words that select among their jobs.
pub struct Chosen {
    pub names: Vec<&'static str>,
    words: Vec<String>,
}

impl Chosen {
    /// Whether a job of this name is among what was asked for.
    pub fn takes(&self, job: &str) -> bool {
        let phase = job.split('/').next().unwrap_or(job);
        let matches = |word: &String| word == phase || job.contains(word.as_str());
        self.words.is_empty() || self.words.iter().any(matches)
    }
}

/// Finds the phases that words ask for: `smoke` or `smoke/routing::` name one, other words are
/// looked for in the usual ones.
pub fn chosen(words: &[String]) -> Result<Chosen> {
    if words.is_empty() {
        return Ok(Chosen { names: PHASES.to_vec(), words: Vec::new() });
    }
    let mut wanted = Vec::new();
    for word in words {
        match word.split_once('/') {
            Some((phase, _)) if !PHASES.contains(&phase) => {
                bail!("there is no phase {phase}; there are {}", PHASES.join(", "))
            }
            Some((phase, _)) => wanted.push(phase),
            None if PHASES.contains(&word.as_str()) => wanted.push(word),
            None => wanted.extend(USUAL),
        }
    }
    let names = PHASES.into_iter().filter(|phase| wanted.contains(phase)).collect();
    Ok(Chosen { names, words: words.to_vec() })
}

/// Commands that fetch what others have made, with the phase that needs it.
const FETCHED: [(&str, &str); 3] = [("papi", VENV), ("papi", GOVPP), ("smoke", PEERS)];
/// Prints the directory of a Python environment.
const VENV: &str = "scripts/papi-venv.sh";
/// Prints the path of a program, or nothing.
const GOVPP: &str = "scripts/govpp-client.sh";
const PEERS: &str = "scripts/setup.sh peers";

/// What is fetched for phases while the compiler works: mostly that is waiting.
pub struct Fetched<'s>(Vec<(&'static str, ScopedJoinHandle<'s, Result<OsString>>)>);

impl<'s> Fetched<'s> {
    /// Begins to fetch what these phases need.
    pub fn begin<'e>(scope: &'s Scope<'s, 'e>, root: &'e Path, phases: &[&str]) -> Self {
        let needed = FETCHED.into_iter().filter(|(phase, _)| phases.contains(phase));
        let begin = |(_, command): (_, &'static str)| {
            let fetch = move || {
                let mut words = command.split_whitespace();
                let program = words.next().unwrap_or_default();
                step_output(root_command(root, program).args(words))
            };
            (command, scope.spawn(fetch))
        };
        Fetched(needed.map(begin).collect())
    }

    /// Waits for a command to end; what it has printed.
    fn wait(&mut self, command: &str) -> Result<OsString> {
        let at = self.0.iter().position(|(name, _)| *name == command);
        let (_, thread) = self.0.remove(at.context("nobody has begun to fetch it")?);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Builds what a phase needs, and lists its jobs.
pub fn build(root: &Path, phase: &str, fetched: &mut Fetched<'_>) -> Result<Vec<Job>> {
    match phase {
        "unit" => unit(root),
        "doc" => doc(root),
        "loom" => loom(root),
        "smoke" => smoke(root, fetched),
        "levels" => levels(root),
        "papi" => papi(root, fetched),
        "psample" => psample(root),
        "guard" => guard(root),
        "fuzz" => fuzz(root),
        other => bail!("there is no phase {other}"),
    }
}

/// Each program of unit tests is a job; its own threads run its tests. Where flows have owners, the
/// labs have two workers in another job.
fn unit(root: &Path) -> Result<Vec<Job>> {
    let all = programs(root, &["test", "--workspace"], &[])?;
    let mut jobs: Vec<Job> = all.iter().map(|program| job("unit", program, Vec::new())).collect();
    for program in all.iter().filter(|program| OWNERS.contains(&program.name.as_str())) {
        let mut job = job("unit", program, Vec::new());
        job.name.push_str(" with two workers");
        job.env.push(("THALWEG_TEST_WORKERS", "2".into()));
        jobs.push(job);
    }
    Ok(jobs)
}

/// Examples in the documentation, which rustdoc compiles as it runs them.
fn doc(root: &Path) -> Result<Vec<Job>> {
    let cargo = cargo(root);
    Ok(vec![Job {
        name: "doc/workspace".into(),
        program: cargo.get_program().into(),
        args: words(&["test", "--workspace", "--doc"]),
        env: Vec::new(),
        dir: root.into(),
        deadline: PROGRAM_DEADLINE,
        alone: false,
    }])
}

/// For models, which take longer to compile than to run.
const UNOPTIMISED: [&str; 4] = [
    "--config",
    "profile.dev.package.thalweg-graph.opt-level=0",
    "--config",
    "profile.dev.package.thalweg-tables.opt-level=0",
];

/// Models of what threads share, in all orders in which these may run that differ in up to three
/// places. Everything is compiled otherwise for them, so they have a directory of their own.
fn loom(root: &Path) -> Result<Vec<Job>> {
    let directory = super::target().join("loom");
    let env = [("RUSTFLAGS", "--cfg loom".into()), ("CARGO_TARGET_DIR", directory.into())];
    let packages = ["-p", "thalweg-tables", "-p", "thalweg-graph", "--lib"];
    let args = [&["test"], &packages[..], &UNOPTIMISED[..]].concat();
    let all = programs(root, &args, &env)?;
    let mut jobs = Vec::new();
    for program in all {
        let mut job = job("loom", &program, words(&["loom"]));
        job.env.push(("LOOM_MAX_PREEMPTIONS", "3".into()));
        jobs.push(job);
    }
    Ok(jobs)
}

/// Each scenario is a job, with a process of its own.
fn smoke(root: &Path, fetched: &mut Fetched<'_>) -> Result<Vec<Job>> {
    fetched.wait(PEERS)?;
    scenarios(root, "smoke", &[], &[])
}

/// What forwards, again with each level of frame kernels that this processor has: with one worker
/// and two in turn, or as `WORKERS` says (`WORKERS="1 2"`: each level with both).
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
            jobs.extend(scenarios(root, &phase, &FORWARDING, &env)?);
        }
    }
    Ok(jobs)
}

/// The router, optimised as for its users, but without LTO.
fn router(root: &Path) -> Result<PathBuf> {
    step(cargo(root).args(["build", "--profile", QUICK, "-p", "thalweg", "--bins"]))?;
    Ok(std::path::absolute(super::target())?.join(QUICK).join("thalweg"))
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
        job.env.push((ROUTER, router.clone().into()));
        job.env.extend(env.iter().map(|(key, value)| (*key, OsString::from(value))));
        if job.alone {
            // It would take processor time from what is measured.
            job.env.push(("THALWEG_TEST_CAPTURE", "0".into()));
        }
        jobs.push(job);
    }
    Ok(jobs)
}

/// Clients of VPP's against the binary API, in a network namespace and with a `/run` of their own:
/// its Python client, vppcfg, and one made with govpp if there is Go to build it.
fn papi(root: &Path, fetched: &mut Fetched<'_>) -> Result<Vec<Job>> {
    let venv = fetched.wait(VENV)?;
    let govpp = fetched.wait(GOVPP)?;
    let router = router(root)?;
    let python = Path::new(&venv).join("bin/python");
    let inner = r#"mount -t tmpfs run /run && exec "$0" tests/papi"#;
    let mut args = words(&["sh", "-c", inner]);
    args.push(python.into());
    Ok(vec![Job {
        name: "papi/clients".into(),
        program: root.join("scripts/namespace-root.sh"),
        args,
        env: vec![("GOVPP", govpp), ("THALWEG", router.into())],
        dir: root.into(),
        deadline: PROGRAM_DEADLINE,
        alone: false,
    }])
}

/// The router in an emulated machine with a kernel of Debian's, which the program fetches and
/// keeps.
fn psample(root: &Path) -> Result<Vec<Job>> {
    let router = router(root)?;
    step(cargo(root).args(["build", "--workspace", "--bin", "thalweg-psample-test"]))?;
    Ok(vec![Job {
        name: "psample/machine".into(),
        program: std::path::absolute(super::target())?.join("debug/thalweg-psample-test"),
        args: Vec::new(),
        env: vec![(ROUTER, router.into())],
        dir: root.into(),
        deadline: PROGRAM_DEADLINE,
        alone: false,
    }])
}

/// Instructions per packet, compared with those that were accepted last. How busy the machine is
/// does not change their number.
fn guard(root: &Path) -> Result<Vec<Job>> {
    let bench = ["bench", "--profile", QUICK, "-p", "thalweg-bench-pg", "--bench", "instructions"];
    let all = programs(root, &bench, &[])?;
    Ok(all
        .into_iter()
        .map(|program| job("guard", &program, words(&["--bench", "guard"])))
        .collect())
}

/// Each fuzz target is a job of `FUZZ_TIME` seconds.
fn fuzz(root: &Path) -> Result<Vec<Job>> {
    step(root_command(root, "scripts/fuzz.sh").arg("--build"))?;
    let time = std::env::var_os("FUZZ_TIME").unwrap_or_else(|| "10".into());
    let mut targets = Vec::new();
    for entry in fs::read_dir(root.join("fuzz/fuzz_targets")).context("list fuzz targets")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        targets.extend(name.strip_suffix(".rs").map(str::to_owned));
    }
    targets.sort_unstable();
    let target = |target: String| Job {
        name: format!("fuzz/{target}"),
        program: "scripts/fuzz.sh".into(),
        args: vec!["--run".into(), target.into()],
        env: vec![("TIME", time.clone())],
        dir: root.into(),
        deadline: PROGRAM_DEADLINE,
        alone: false,
    };
    Ok(targets.into_iter().map(target).collect())
}

fn root_command(root: &Path, program: &str) -> Command {
    let mut command = Command::new(root.join(program));
    command.current_dir(root);
    command
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
        alone: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(words: &[&str]) -> Chosen {
        chosen(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn words_select_phases_and_jobs() {
        let all = select(&[]);
        assert_eq!(all.names, PHASES);
        assert!(all.takes("fuzz/ipv4"));

        let phase = select(&["smoke"]);
        assert_eq!(phase.names, ["smoke"]);
        assert!(phase.takes("smoke/routing::ecmp"));

        let one = select(&["smoke/routing::", "unit/wire"]);
        assert_eq!(one.names, ["unit", "smoke"]);
        assert!(one.takes("smoke/routing::ecmp") && one.takes("unit/wire tests/x"));
        assert!(!one.takes("smoke/mtu::ecmp") && !one.takes("unit/graph"));

        let word = select(&["nat44"]);
        assert_eq!(word.names, USUAL);
        assert!(word.takes("smoke/nat44::masquerade") && !word.takes("smoke/routing::ecmp"));
    }

    #[test]
    fn an_unknown_phase_is_named_with_those_there_are() {
        let Err(error) = chosen(&["smok/x".into()]) else { panic!("accepted") };
        assert!(error.to_string().contains("no phase smok; there are psample, guard"), "{error}");
    }
}
