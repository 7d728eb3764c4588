//! Removal of many neighbours, in slices.

use super::actions::end_silences;
use super::reports::reset_reports;
use super::update;
use crate::Version;
use crate::messages::EndSilences;
use crate::table::{Entry, Key, NeighborTable};
use std::ops::Bound;
use std::time::{Duration, Instant};
use thalweg_device::SwIfIndex;
use thalweg_graph::{Control, clock};

/// Flushes the dynamic neighbours of one interface or of all, of one family or of all; returns the
/// number of those that are gone already. If they are many, the others follow in slices.
pub fn flush(c: &mut Control, sw_if: Option<SwIfIndex>, family: Option<Version>) -> usize {
    flush_then(c, sw_if, family, |_| {})
}

/// Does the work of [`flush`]; then calls `done` with the number of all.
pub fn flush_then(
    c: &mut Control,
    sw_if: Option<SwIfIndex>,
    family: Option<Version>,
    done: impl FnOnce(usize) + 'static,
) -> usize {
    end_silences(c, EndSilences { sw_if, ip: None });
    let (began, done) = (clock::now(), Box::new(done));
    let of = (sw_if, family);
    flush_slice(c, FlushJob { of, began, last: Bound::Unbounded, gone: 0, done })
}

/// Maximum time of a flush per slice, and entries visited between reads of the clock.
const FLUSH_SLICE: Duration = Duration::from_millis(1);

const FLUSHED_AT_ONCE: usize = 256;

/// A flush in progress.
struct FlushJob {
    of: (Option<SwIfIndex>, Option<Version>),
    /// Neighbours heard or configured since stay.
    began: Instant,
    last: Bound<Key>,
    gone: usize,
    done: Box<dyn FnOnce(usize)>,
}

/// Returns the number of neighbours that are gone.
fn flush_slice(c: &mut Control, mut job: FlushJob) -> usize {
    let start = Instant::now();
    loop {
        let (last, began) = (job.last, job.began);
        let (n, next) = update(c, |t, _| {
            let meant = |e: &Entry| !e.is_static && NeighborTable::is_older(e, began);
            let (keys, next) = t.some_keys(last, FLUSHED_AT_ONCE, job.of, meant);
            (t.remove_all(&keys), next)
        });
        job.gone += n;
        let Some(next) = next else { break };
        job.last = next;
        if start.elapsed() >= FLUSH_SLICE {
            let gone = job.gone;
            c.after(Duration::ZERO, |c| _ = flush_slice(c, job));
            return gone;
        }
    }
    // Removed neighbours may be heard again.
    reset_reports(c);
    (job.done)(job.gone);
    job.gone
}

/// Removes the next neighbours of an interface that is being deleted, in a slice. Returns whether
/// some are left.
pub(super) fn leave(c: &mut Control, sw_if: SwIfIndex) -> bool {
    let start = Instant::now();
    loop {
        let all = (Some(sw_if), None);
        let n = update(c, |t, _| {
            let (keys, _) = t.some_keys(Bound::Unbounded, FLUSHED_AT_ONCE, all, |_| true);
            t.remove_all(&keys)
        });
        if n < FLUSHED_AT_ONCE {
            return false;
        }
        if start.elapsed() >= FLUSH_SLICE {
            return true;
        }
    }
}
