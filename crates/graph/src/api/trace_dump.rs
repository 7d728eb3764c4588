//! `trace_dump`: traced packets, some at a time.
//!
//! What workers have traced is read once and kept until it is asked for anew, so that positions mean
//! the same packets from one request to the next.

use crate::api_modules::TRACEDUMP;
use crate::cli::show_trace;
use crate::control::Control;
use thalweg_api::{Details, Message, Stream};

/// Asks for traces.
#[derive(Debug, Message)]
#[api(request, vat_help = "trace_dump [thread_id <tid>] [position <pos>] [max <max>]")]
pub struct TraceDump {
    /// Not 0: reads the workers' traces anew.
    pub clear_cache: u8,
    /// From this thread on; main is 0.
    pub thread_id: u32,
    /// From this packet of it on.
    pub position: u32,
    /// Packets at most; 0 only reads anew.
    pub max_records: u32,
}

/// A packet's trace. By a whim of its inventors it begins as a request does.
#[derive(Debug, Message)]
#[api(request)]
pub struct TraceDetails {
    /// The thread.
    pub thread_id: u32,
    /// Which of the thread's packets.
    pub position: u32,
    /// The thread has more.
    pub more_this_thread: u8,
    /// Threads behind it have some.
    pub more_threads: u8,
    /// This is the last one.
    pub done: u8,
    /// The same as the position.
    pub packet_number: u32,
    /// What `show trace` says.
    pub trace_data: String,
}

/// Answers [`TraceDump`] behind the packets.
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct TraceDumpReply {
    /// The thread of the last packet.
    pub last_thread_id: u32,
    /// The last packet of it.
    pub last_position: u32,
    /// The thread has more.
    pub more_this_thread: u8,
    /// Threads behind it have some.
    pub more_threads: u8,
    /// Nothing was asked for but to read anew.
    pub flush_only: u8,
    /// There is no more.
    pub done: u8,
}

/// The service.
pub static SERVICE: Stream<Control, TraceDump, TraceDetails, TraceDumpReply> =
    Stream::new(&TRACEDUMP, handle);

/// Traces as text, by thread, main (which has none) first.
#[derive(Debug, Default)]
pub(crate) struct Cache(Option<Vec<Vec<String>>>);

impl Cache {
    pub(crate) fn init(c: &mut Control) {
        c.insert(Cache::default());
    }

    /// Forgets what was read.
    pub(super) fn clear(c: &Control) {
        c.state::<Cache>().borrow_mut().0 = None;
    }

    /// What was read, or is now; `look` sees it.
    pub(super) fn with<R>(
        c: &mut Control,
        anew: bool,
        look: impl FnOnce(&[Vec<String>]) -> R,
    ) -> R {
        let state = c.state::<Cache>();
        if anew || state.borrow().0.is_none() {
            let workers = show_trace::texts(c);
            state.borrow_mut().0 = Some([vec![Vec::new()], workers].concat());
        }
        let cache = state.borrow();
        look(cache.0.as_deref().unwrap_or_default())
    }
}

/// Whether threads behind one have packets.
fn behind(threads: &[Vec<String>], thread: usize) -> bool {
    threads.iter().skip(thread + 1).any(|packets| !packets.is_empty())
}

fn handle(
    c: &mut Control,
    rq: TraceDump,
    out: &mut Details<TraceDetails>,
) -> (i32, TraceDumpReply) {
    Cache::with(c, rq.clear_cache != 0, |threads| {
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
