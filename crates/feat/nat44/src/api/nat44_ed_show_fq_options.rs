//! `nat44_ed_show_fq_options`: reports the capacity of the queues between workers.

use crate::api_types::{NAT44_ED, queue_room};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44EdShowFqOptions;

/// Reply to [`Nat44EdShowFqOptions`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct Nat44EdShowFqOptionsReply {
    /// Number of frames; 0 with a single worker.
    pub frame_queue_nelts: u32,
}

/// The service.
pub static SERVICE: Call<Control, Nat44EdShowFqOptions, Nat44EdShowFqOptionsReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: Nat44EdShowFqOptions) -> Result<Nat44EdShowFqOptionsReply, Retval> {
    Ok(Nat44EdShowFqOptionsReply { frame_queue_nelts: queue_room(c) })
}
