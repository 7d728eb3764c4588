//! `nat44_ed_show_fq_options`: reports the capacity of the queues between workers.

use crate::api_types::queue_room;
use crate::message_types::{NAT44_ED, Nat44EdShowFqOptions, Nat44EdShowFqOptionsReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44EdShowFqOptions, Nat44EdShowFqOptionsReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: Nat44EdShowFqOptions) -> Result<Nat44EdShowFqOptionsReply, Retval> {
    Ok(Nat44EdShowFqOptionsReply { frame_queue_nelts: queue_room(c) })
}
