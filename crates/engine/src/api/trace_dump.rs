//! `trace_dump`: lists traced packets in batches.
//!
//! The workers' traces are read once and cached until a request asks for fresh ones, so that
//! positions mean the same packets from one request to the next.

use crate::cli::show_trace;
use crate::message_types::{TRACEDUMP, TraceDetails, TraceDump, TraceDumpReply};
use thalweg_api::{Details, LateStream, Later};
use thalweg_graph::control::{Asked, Control};
use thalweg_graph::trace::PacketTrace;

/// The service.
pub static SERVICE: LateStream<Control, TraceDump, TraceDetails, TraceDumpReply> =
    LateStream::new(&TRACEDUMP, handle);

/// Traces as text, by thread; main comes first and has none.
#[derive(Debug, Default)]
pub(crate) struct Cache(Option<Vec<Vec<String>>>);

impl Cache {
    pub(crate) fn init(c: &mut Control) {
        c.insert(Cache::default());
    }

    /// Clears the cache.
    pub(super) fn clear(c: &Control) {
        c.state::<Cache>().borrow_mut().0 = None;
    }

    /// Begins to read the workers' traces, if they are not cached or to be read again.
    pub(super) fn begin(c: &mut Control, refresh: bool) -> Option<Asked<Vec<PacketTrace>>> {
        let is_full = c.state::<Cache>().borrow().0.is_some();
        (refresh || !is_full).then(|| c.begin_asking(|core| core.traces()))
    }

    /// Caches the workers' traces.
    pub(super) fn fill(c: &Control, traces: Vec<Option<Vec<PacketTrace>>>) {
        let workers = show_trace::texts(c, traces);
        c.state::<Cache>().borrow_mut().0 = Some([vec![Vec::new()], workers].concat());
    }

    /// Runs `look` on the cached traces.
    pub(super) fn with<R>(c: &Control, look: impl FnOnce(&[Vec<String>]) -> R) -> R {
        look(c.state::<Cache>().borrow().0.as_deref().unwrap_or_default())
    }
}

/// Returns true if threads after `thread` have packets.
fn behind(threads: &[Vec<String>], thread: usize) -> bool {
    threads.iter().skip(thread + 1).any(|packets| !packets.is_empty())
}

fn handle(
    c: &mut Control,
    rq: TraceDump,
    mut out: Details<TraceDetails>,
    later: Later<TraceDumpReply>,
) {
    let asked = Cache::begin(c, rq.clear_cache != 0);
    let answer = move |c: &Control| {
        let (retval, reply) = dump(c, &rq, &mut out);
        later.answer(retval, &reply);
    };
    match asked {
        None => answer(c),
        Some(asked) => asked.then(c, |c, traces| {
            Cache::fill(c, traces);
            answer(c);
        }),
    }
}

fn dump(c: &Control, rq: &TraceDump, out: &mut Details<TraceDetails>) -> (i32, TraceDumpReply) {
    Cache::with(c, |threads| {
        let mut last = (rq.thread_id, rq.position);
        if rq.max_records == 0 {
            let flush = TraceDumpReply {
                last_thread_id: last.0,
                last_position: last.1,
                flush_only: 1,
                ..TraceDumpReply::default()
            };
            return (0, flush);
        }
        let (from, mut left) = (rq.thread_id as usize, rq.max_records);
        'all: for (thread, packets) in threads.iter().enumerate().skip(from) {
            let first = if thread == from { rq.position as usize } else { 0 };
            for (position, text) in packets.iter().enumerate().skip(first) {
                if left == 0 || out.is_full() {
                    break 'all;
                }
                left -= 1;
                last = (thread as u32, position as u32);
                let more_this_thread = position + 1 < packets.len();
                let more_threads = behind(threads, thread);
                out.send(&TraceDetails {
                    thread_id: last.0,
                    position: last.1,
                    more_this_thread: more_this_thread.into(),
                    more_threads: more_threads.into(),
                    done: (!more_this_thread && !more_threads).into(),
                    packet_number: last.1,
                    trace_data: text.clone(),
                });
            }
        }
        let thread = last.0 as usize;
        let of_thread = threads.get(thread).map_or(0, Vec::len);
        let more_this_thread = (last.1 as usize) + 1 < of_thread;
        let more_threads = behind(threads, thread);
        let reply = TraceDumpReply {
            last_thread_id: last.0,
            last_position: last.1,
            more_this_thread: more_this_thread.into(),
            more_threads: more_threads.into(),
            flush_only: 0,
            done: (!more_this_thread && !more_threads).into(),
        };
        (0, reply)
    })
}
