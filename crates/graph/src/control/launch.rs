//! Threads of the workers, and CPU affinity of all threads.

use crate::worker::Worker;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::{Arc, mpsc};

/// Keeps the report of a panic.
type KeepPanic = Box<dyn Fn(&str) + Send + Sync>;

static KEEP_PANIC: std::sync::OnceLock<KeepPanic> = std::sync::OnceLock::new();

/// Calls `keep` with the panic context of a worker before the process ends. Only the first call in
/// a process has an effect.
pub fn on_panic(keep: impl Fn(&str) + Send + Sync + 'static) {
    let _ = KEEP_PANIC.set(Box::new(keep));
}

/// Time that the report of a panic may take.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(500);

/// Returns the name of a worker's thread.
pub(super) fn thread_name(index: usize) -> String {
    format!("thalweg_wk_{index}")
}

/// Returns the set of one core.
fn only(core: usize) -> std::io::Result<CpuSet> {
    if core >= CpuSet::MAX_CPU {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput));
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(set)
}

/// CPU affinity of threads.
#[derive(Clone, Copy)]
pub(super) struct Places {
    /// Affinity of workers without a core of their own: all cores that the process may use.
    floating: Option<CpuSet>,
}

impl Places {
    /// Pins this thread, the main one, to `main_core`, or else keeps it off the cores of `workers`
    /// if there are others. Threads that it spawns later inherit this, so that a busy client does
    /// not take a worker's processor, which the scheduler would give away for milliseconds at a
    /// time.
    pub(super) fn take(
        main_core: Option<usize>,
        workers: &[Option<usize>],
    ) -> std::io::Result<Places> {
        let floating = sched_getaffinity(None).ok();
        match main_core {
            Some(core) => sched_setaffinity(None, &only(core)?)?,
            None => {
                if let Some(rest) = floating.and_then(|all| without(all, workers)) {
                    // Failing that, the main thread merely competes with the workers.
                    let _ = sched_setaffinity(None, &rest);
                }
            }
        }
        Ok(Places { floating })
    }

    /// Restores the affinity of this thread, the main one.
    pub(super) fn leave(&self) {
        let _ = self.floating.map(|all| sched_setaffinity(None, &all));
    }

    /// Sets the affinity of this thread, a worker.
    fn enter(&self, core: Option<usize>) -> std::io::Result<()> {
        match (core, self.floating) {
            (Some(core), _) => Ok(sched_setaffinity(None, &only(core)?)?),
            (None, Some(all)) => Ok(sched_setaffinity(None, &all)?),
            (None, None) => Ok(()),
        }
    }
}

/// Returns the cores of `all` that no worker is pinned to, if that removes some and leaves some.
fn without(mut all: CpuSet, workers: &[Option<usize>]) -> Option<CpuSet> {
    let before = all.count();
    for core in workers.iter().flatten().filter(|core| **core < CpuSet::MAX_CPU) {
        all.unset(*core);
    }
    (all.count() > 0 && all.count() < before).then_some(all)
}

pub(super) fn spawn(
    index: usize,
    core: Option<usize>,
    places: Places,
    mut worker: Worker,
    tid: Arc<std::sync::atomic::AtomicI32>,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let (ok, started) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name(thread_name(index)).spawn(move || {
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        tid.store(me, std::sync::atomic::Ordering::Relaxed);
        let placed = places.enter(core);
        let fine = placed.is_ok();
        let _ = ok.send(placed);
        if !fine {
            return;
        }
        let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.run()));
        if end.is_err() {
            // Better no router than one that forwards wrongly.
            let packet = crate::node::PANIC_CONTEXT.with(|b| b.take());
            let text = format!("worker {index} panicked in node `{}`; {packet}", worker.current());
            if let Some(keep) = KEEP_PANIC.get() {
                keep(&text);
            }
            // A missing reader does not keep the process from ending.
            std::thread::spawn(|| {
                std::thread::sleep(LAST_WORDS);
                std::process::exit(70)
            });
            eprintln!("thalweg: {text}\nthalweg: exiting");
            std::process::exit(70);
        }
        worker.shut_down();
    })?;
    match started.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(e)) => Err(e),
        Err(_) => Err(std::io::Error::other("the thread exited at once")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
    }

    fn set(cores: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        cores.iter().for_each(|core| set.set(*core));
        set
    }

    #[test]
    fn workers_cores_are_left_to_them() {
        assert_eq!(without(set(&[0, 1, 5]), &[Some(1), None]), Some(set(&[0, 5])));
        assert_eq!(without(set(&[0, 1]), &[Some(0), Some(1)]), None, "there is no other");
        assert_eq!(without(set(&[0, 1]), &[None]), None, "no worker has one");
        assert_eq!(without(set(&[0, 1]), &[Some(7), Some(usize::MAX)]), None);
    }

    #[test]
    fn threads_go_where_they_belong() {
        // The test has a thread of its own, since other tests run on this one.
        let test = std::thread::spawn(|| {
            let all = cores();
            let last = *all.last().unwrap();
            let places = Places::take(None, &[Some(last)]).unwrap();
            let rest = if all.len() > 1 { &all[..all.len() - 1] } else { &all[..] };
            assert_eq!(cores(), rest);
            assert_eq!(std::thread::spawn(cores).join().unwrap(), rest, "they stay together");
            places.enter(None).unwrap();
            assert_eq!(cores(), all);
            places.enter(Some(last)).unwrap();
            assert_eq!(cores(), [last]);
            let places = Places::take(Some(last), &[None]).unwrap();
            assert_eq!(cores(), [last]);
            assert!(places.enter(Some(CpuSet::MAX_CPU)).is_err());
            Places { floating: Some(set(&all)) }.leave();
            assert_eq!(cores(), all);
            assert!(Places::take(Some(CpuSet::MAX_CPU), &[]).is_err());
        });
        test.join().unwrap();
    }
}
