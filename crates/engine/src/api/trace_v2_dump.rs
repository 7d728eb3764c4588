//! `trace_v2_dump`: lists traced packets of one thread or of all.

use super::trace_dump::Cache;
use crate::message_types::{TRACEDUMP, TraceV2Details, TraceV2Dump};
use std::time::Duration;
use thalweg_api::{Details, Dump, Walk};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Dump<Control, TraceV2Dump, TraceV2Details> = Dump::slices(&TRACEDUMP, handle);

/// Maximum time that the main thread waits for workers at once.
const WAIT: Duration = Duration::from_millis(2);

fn handle(c: &mut Control, rq: TraceV2Dump, mut out: Details<TraceV2Details>) -> Walk<Control> {
    let mut asked = Cache::begin(c, rq.clear_cache);
    Box::new(move |c| {
        if let Some(waiting) = &mut asked {
            let Some(traces) = waiting.wait(c, WAIT) else { return true };
            Cache::fill(c, traces);
            asked = None;
        }
        dump(c, &rq, &mut out);
        false
    })
}

fn dump(c: &Control, rq: &TraceV2Dump, out: &mut Details<TraceV2Details>) {
    Cache::with(c, |threads| {
        for (thread, packets) in threads.iter().enumerate() {
            if rq.thread_id != u32::MAX && rq.thread_id as usize != thread {
                continue;
            }
            let chosen = packets.iter().enumerate().skip(rq.position as usize);
            for (position, text) in chosen.take(rq.max as usize) {
                out.send(&TraceV2Details {
                    thread_id: thread as u32,
                    position: position as u32,
                    more: position + 1 < packets.len(),
                    trace_data: text.clone(),
                });
            }
        }
    });
}
