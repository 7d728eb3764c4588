//! `nat44_ed_set_fq_options`: sets the capacity of the queues between workers.

use crate::api_types::queue_room;
use crate::message_types::{NAT44_ED, Nat44EdSetFqOptions, Nat44EdSetFqOptionsReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44EdSetFqOptions, Nat44EdSetFqOptionsReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, rq: Nat44EdSetFqOptions) -> Result<Nat44EdSetFqOptionsReply, Retval> {
    match queue_room(c) {
        room if room == rq.frame_queue_nelts => Ok(Nat44EdSetFqOptionsReply),
        0 => Err(Retval::UNSUPPORTED.because("there are no queues with a single worker")),
        room => {
            let text = format!("queues between workers have a fixed capacity of {room} frames");
            Err(Retval::UNSUPPORTED.because(text))
        }
    }
}
