//! Workers' threads.

use crate::worker::Worker;
use std::sync::{Arc, mpsc};

/// The name of a worker's thread.
pub(super) fn thread_name(index: usize) -> String {
    format!("thalweg_wk_{index}")
}

pub(super) fn pin(core: usize) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    if core >= rustix::thread::CpuSet::MAX_CPU {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput));
    }
    set.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

pub(super) fn spawn(
    index: usize,
    core: Option<usize>,
    mut worker: Worker,
    tid: Arc<std::sync::atomic::AtomicI32>,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let (ok, started) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name(thread_name(index)).spawn(move || {
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        tid.store(me, std::sync::atomic::Ordering::Relaxed);
        let pinned = core.map_or(Ok(()), pin);
        let fine = pinned.is_ok();
        let _ = ok.send(pinned);
        if !fine {
            return;
        }
        let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.run()));
        if end.is_err() {
            // Rather no router than one that forwards wrongly.
            let packet = crate::node::BLAMED.with(|b| b.take());
            eprintln!(
                "thalweg: worker {index} panicked in node `{}`; {packet}\nthalweg: exiting",
                worker.current()
            );
            std::process::exit(70);
        }
        worker.shut_down();
    })?;
    match started.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(e)) => Err(e),
        Err(_) => Err(std::io::Error::other("the thread ended at once")),
    }
}
