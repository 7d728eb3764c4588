//! `pcap_trace_off`: ends a capture and writes its file.

use super::pcap_trace_on::retval;
use crate::PcapError;
use crate::message_types::{INTERFACE, PcapTraceOff, PcapTraceOffReply};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;
use thalweg_api::{Call, Later};
use thalweg_graph::Control;

/// Interval between checks whether the file is written.
const REST: Duration = Duration::from_millis(1);

/// The service.
pub static SERVICE: Call<Control, PcapTraceOff, PcapTraceOffReply> =
    Call::later(&INTERFACE, handle);

fn handle(c: &mut Control, _: PcapTraceOff, later: Later<PcapTraceOffReply>) {
    let ended = match crate::stop(c) {
        Ok(ended) => ended,
        Err(e) => return later.answer(retval(e).0, &PcapTraceOffReply),
    };
    let (give, written) = mpsc::sync_channel(1);
    let write = move || drop(give.send(ended.write().map(|_| ())));
    match std::thread::Builder::new().name("capture".into()).spawn(write) {
        Ok(_) => wait(c, written, later),
        // Without a thread nothing is written, which the reply says.
        Err(_) => drop(later),
    }
}

/// Answers when the file is written.
fn wait(
    c: &mut Control,
    written: Receiver<Result<(), PcapError>>,
    later: Later<PcapTraceOffReply>,
) {
    match written.try_recv() {
        Ok(done) => later.answer(done.map_or_else(|e| retval(e).0, |()| 0), &PcapTraceOffReply),
        Err(TryRecvError::Empty) => {
            c.after(REST, move |c| wait(c, written, later));
        }
        // The capture was dropped without an answer, which the reply says.
        Err(TryRecvError::Disconnected) => {}
    }
}
