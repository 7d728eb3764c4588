//! `nat44_ed_show_fq_options`: asks how many frames wait at most between two workers.

use crate::api_types::{NAT44_ED, queue_room};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for it.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44EdShowFqOptions;

/// Answers [`Nat44EdShowFqOptions`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct Nat44EdShowFqOptionsReply {
    /// Frames; 0 with one worker, which hands nothing over.
    pub frame_queue_nelts: u32,
}

/// The service.
pub static SERVICE: Call<Control, Nat44EdShowFqOptions, Nat44EdShowFqOptionsReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: Nat44EdShowFqOptions) -> Result<Nat44EdShowFqOptionsReply, Retval> {
    Ok(Nat44EdShowFqOptionsReply { frame_queue_nelts: queue_room(c) })
}
