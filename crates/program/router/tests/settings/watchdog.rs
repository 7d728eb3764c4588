//! No command holds the main thread for long.

use crate::router::{ONE, Router};
use crate::setters::SETTERS;
use std::fs;
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, Execution, Progress, Script};
use thalweg_device::{MacAddr, interface};
use thalweg_feat_neighbor::{self as neighbor, NeighborFlags};
use thalweg_testkit::sized;

/// Maximum time for which a command may hold the main thread at once.
const LIMIT: Duration = Duration::from_millis(50);

/// Attempts: while others use all processors, a worker may be late with an answer.
const ATTEMPTS: usize = 4;

/// Time for which this thread has waited for a processor.
fn waited() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|n| n.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Runs `f`; returns for how long it has kept this thread, computing or blocked.
fn held<T>(f: impl FnOnce() -> T) -> (T, Duration) {
    let (before, start) = (waited(), Instant::now());
    let result = f();
    let all = start.elapsed();
    (result, all.saturating_sub(waited().saturating_sub(before)))
}

/// Runs commands; returns the longest time that one piece has taken, too.
fn watched(router: &mut Router, lines: &str) -> (Result<(), CliError>, Duration) {
    let mut execution = Execution::new(Script::typed(lines).unwrap());
    let mut longest = Duration::ZERO;
    let give_up = Instant::now() + thalweg_testkit::WAIT_LIMIT;
    loop {
        let Router { c, tree, .. } = router;
        let budget = Duration::from_millis(2);
        let (progress, step) = held(|| execution.step(tree, c, Instant::now(), budget));
        let (_, jobs) = held(|| c.run_once(Some(Duration::ZERO)));
        longest = longest.max(step).max(jobs);
        match progress {
            Progress::Finished(end) => return (end.map(|_| ()), longest),
            Progress::Running(at) => {
                assert!(Instant::now() < give_up, "never ends: {lines}");
                // Paced: the time that the task asks for.
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
            }
        }
    }
}

/// Fails if the commands hold the main thread for too long, each time.
fn check(lines: &str, prepare: &dyn Fn(&mut Router), error: Option<&str>) {
    let mut shortest = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let mut router = Router::prepared();
        prepare(&mut router);
        let (end, longest) = watched(&mut router, lines);
        let said = end.err().map(|e| e.to_string()).unwrap_or_default();
        let begin: String = lines.chars().take(200).collect();
        match error {
            None => assert_eq!(said, "", "{begin}"),
            Some(error) => assert!(said.contains(error), "{begin}: {said}"),
        }
        router.stop();
        shortest = shortest.min(longest);
        if shortest < LIMIT {
            return;
        }
    }
    panic!("held the main thread for {shortest:?}: {lines}");
}

#[test]
fn setters_do_not_hold_the_main_thread() {
    let _one = ONE.lock();
    for (_, examples) in SETTERS {
        for example in *examples {
            check(example, &|_| (), None);
        }
    }
}

#[test]
fn files_and_names_do_not_hold_the_main_thread() {
    let _one = ONE.lock();
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let pipe = pipe.display();
    let none: &dyn Fn(&mut Router) = &|_| ();
    let what = Some("not a regular file");
    for line in ["flow add 1 file", "sflow agent-config", "nat44 log file", "exec", "config apply"]
    {
        check(&format!("{line} {pipe}"), none, what);
        check(&format!("{line} /dev/zero"), none, what);
    }
    check(&format!("packet-generator new name a pcap {pipe}"), none, what);
    check("metrics listen no-such-name.invalid:9999", none, Some("no-such-name.invalid"));
    // A text of blanks, and one of many commands.
    check(&format!("{}show version", " ".repeat(210_000)), none, None);
    let rules = "flow add 1 priority=1,ip,nw_src=10.0.0.1,actions=normal\n".repeat(2000);
    check(&rules, none, None);
}

#[test]
fn a_large_configuration_does_not_hold_the_main_thread() {
    let _one = ONE.lock();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    let routes: String = (0..sized(10_000, 40_000))
        .map(|n| format!("      10.{}.{}.0/24: pg0\n", n >> 8, n & 255))
        .collect();
    let text =
        format!("interfaces: {{pg0: {{}}}}\nthalweg:\n  ip-tables:\n   0:\n     routes:\n{routes}");
    fs::write(&file, text).unwrap();
    let apply = format!("config apply {}", file.display());
    check(&apply, &|_| (), None);
    let saved = dir.path().join("saved.yaml");
    for line in ["show configuration", &format!("config save {}", saved.display()), &apply] {
        check(line, &|router| drop(router.run(&apply)), None);
    }
}

#[test]
fn an_interface_with_many_neighbours_does_not_hold_the_main_thread() {
    let _one = ONE.lock();
    let neighbours: u32 = sized(20_000, 50_000);
    let mut shortest = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let mut router = Router::start();
        router.run(
            "set ip neighbor-config ip4 limit 100000\n\
             set ip neighbor-config ip4 interface-limit 100000\n\
             create loopback interface instance 7\nset interface state loop7 up",
        );
        let c = &mut router.c;
        let loop7 = interface::find(c, "loop7").unwrap();
        for n in 0..neighbours {
            let ip = std::net::Ipv4Addr::from(0x0a00_0001 + n).into();
            let flags = NeighborFlags { is_static: true, no_fib_entry: false };
            neighbor::set(c, loop7, ip, MacAddr([2, 0, 0, 0, 0, 9]), flags).unwrap();
        }
        router.settle();
        let (end, mut longest) = watched(&mut router, "delete loopback interface intfc loop7");
        end.unwrap();
        let c = &mut router.c;
        while interface::find(c, "loop7").is_ok() {
            longest = longest.max(held(|| c.run_once(Some(Duration::ZERO))).1);
        }
        assert_eq!(c.state::<neighbor::Neighbors>().borrow().len(), 0);
        router.stop();
        shortest = shortest.min(longest);
        if shortest < LIMIT {
            return;
        }
    }
    panic!("held the main thread for {shortest:?}");
}

/// Commands that need answers of workers, with what comes before.
const OF_WORKERS: &[(&str, &str)] = &[
    ("", "show trace"),
    ("", "show conntrack summary"),
    ("", "show conntrack"),
    ("", "clear conntrack"),
    ("", "show bihash"),
    ("", "nat44 plugin enable sessions 1000"),
    ("", "set interface flow pg0 1\nflow add 1 ip,actions=ct(commit),normal"),
    (
        "set interface flow pg0 1\nflow add 1 ip,actions=ct(commit),normal",
        "set conntrack limit 7000",
    ),
    ("set interface flow pg0 1", "set conntrack timeouts 5 udp_first=1"),
    ("", "packet-generator disable-stream"),
];

/// Time for which a worker is late.
const LATE: Duration = Duration::from_millis(300);

#[test]
fn a_late_worker_does_not_hold_the_main_thread() {
    let _one = ONE.lock();
    for (before, line) in OF_WORKERS {
        let late = |router: &mut Router| {
            if !before.is_empty() {
                router.run(before);
            }
            // Paced: a worker that another program keeps from its processor.
            drop(router.c.begin_asking(|_| std::thread::sleep(LATE)));
        };
        check(line, &late, None);
    }
}

#[test]
fn metrics_and_traces_do_not_wait_for_a_late_worker() {
    let _one = ONE.lock();
    let mut shortest = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let mut router = Router::prepared();
        router.run("nat44 plugin enable sessions 1000");
        // Paced: as above.
        drop(router.c.begin_asking(|_| std::thread::sleep(LATE)));
        let figures = std::rc::Rc::new(std::cell::Cell::new(false));
        let here = figures.clone();
        let read = |c: &mut thalweg_graph::Control| {
            thalweg_program_router::metrics::Figures::read_then(c, move |_| here.set(true));
        };
        let (_, time) = held(|| read(&mut router.c));
        shortest = shortest.min(time);
        while !figures.get() {
            router.c.run_once(Some(Duration::from_millis(1)));
        }
        router.stop();
    }
    assert!(shortest < LIMIT, "{shortest:?}");
}
