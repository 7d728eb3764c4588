//! Runs jobs side by side, and those that measure alone.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use super::job::{Job, Outcome};

/// Programs that compute for half a minute or longer: they begin first.
const LONG: [&str; 4] = [
    "unit/program/router/settings",
    "unit/bench/pg/allocations",
    "unit/feat/l2/subs",
    "unit/sflow/coverage",
];

/// Spreads jobs that compute among scenarios, which mostly wait. The others stay before them.
pub fn spread(jobs: Vec<Job>) -> Vec<Job> {
    let is = |job: &Job, phases: &[&str]| phases.iter().any(|phase| job.name.starts_with(phase));
    let (computing, others): (Vec<Job>, Vec<Job>) = jobs
        .into_iter()
        .partition(|job| is(job, &["fuzz/", "unit/"]) && !LONG.contains(&job.name.as_str()));
    let (waiting, mut all): (Vec<Job>, Vec<Job>) =
        others.into_iter().partition(|job| is(job, &["smoke/", "levels/"]) && !job.alone);
    let (waits, computes) = (waiting.len(), computing.len());
    let mut computing = computing.into_iter().enumerate().peekable();
    for (at, job) in waiting.into_iter().enumerate() {
        while let Some((_, busy)) = computing.next_if(|(n, _)| n * waits <= at * computes) {
            all.push(busy);
        }
        all.push(job);
    }
    all.extend(computing.map(|(_, busy)| busy));
    all
}

/// Runs all jobs, `width` at a time and in their order; then those that run alone. `done` is called
/// for each as it ends.
pub fn run_all(
    jobs: &[Job],
    width: usize,
    pause: bool,
    logs: &Path,
    mut done: impl FnMut(&Job, Outcome),
) {
    let (alone, together): (Vec<&Job>, Vec<&Job>) = jobs.iter().partition(|job| job.alone);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, ended) = channel();
        for _ in 0..width.min(together.len()) {
            let (sender, next, together) = (sender.clone(), &next, &together);
            scope.spawn(move || {
                while let Some(job) = together.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The channel receives until the last sender is gone.
                    let _ = sender.send((*job, job.run(logs, pause)));
                }
            });
        }
        drop(sender);
        for (job, outcome) in ended {
            done(job, outcome);
        }
    });
    for job in alone {
        let outcome = job.run(logs, pause);
        done(job, outcome);
    }
}

/// Keeps every processor busy while `work` runs, as a machine with other things to do.
pub fn beside_busy_loops<T>(work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    let processors = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn job(name: &str, script: &str, alone: bool) -> Job {
        Job {
            name: name.into(),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: Vec::new(),
            dir: "/".into(),
            deadline: Duration::from_secs(60),
            long: false,
            alone,
        }
    }

    #[test]
    fn what_computes_is_spread_among_what_waits() {
        let of = |names: &[&str]| spread(names.iter().map(|name| job(name, "", false)).collect());
        let names = |jobs: Vec<Job>| jobs.into_iter().map(|job| job.name).collect::<Vec<_>>();
        let all = [LONG[0], "smoke/a", "smoke/b", "levels/c", "levels/d", "fuzz/a", "unit/b"];
        let expected = [LONG[0], "fuzz/a", "smoke/a", "smoke/b", "unit/b", "levels/c", "levels/d"];
        assert_eq!(names(of(&all)), expected);
        assert_eq!(names(of(&["fuzz/a", "fuzz/b", "smoke/a"])), ["fuzz/a", "smoke/a", "fuzz/b"]);
        assert_eq!(names(of(&["fuzz/b", "guard/a"])), ["guard/a", "fuzz/b"]);
    }

    #[test]
    fn a_failure_hides_no_other_and_the_measuring_come_last() {
        let dir = tempfile::tempdir().unwrap();
        let jobs = [
            job("measures", "true", true),
            job("fails", "false", false),
            job("passes", "true", false),
            job("fails too", "exit 2", false),
        ];
        let mut ended = Vec::new();
        run_all(&jobs, 2, false, dir.path(), |job, outcome| {
            ended.push((job.name.clone(), outcome.failure.is_none()));
        });
        assert_eq!(ended.pop(), Some(("measures".into(), true)));
        ended.sort();
        let expected = [("fails", false), ("fails too", false), ("passes", true)];
        assert_eq!(ended, expected.map(|(name, passed)| (name.to_owned(), passed)));
    }

    #[test]
    fn so_many_run_at_a_time_as_may() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        // Each ends only once the other has begun.
        let meet = |mine: &Path, theirs: &Path| {
            format!("touch {}; until [ -e {} ]; do :; done", mine.display(), theirs.display())
        };
        let jobs = [job("a", &meet(&a, &b), false), job("b", &meet(&b, &a), false)];
        let mut failures = 0;
        run_all(&jobs, 2, false, dir.path(), |_, outcome| {
            failures += usize::from(outcome.failure.is_some());
        });
        assert_eq!(failures, 0);
    }
}
