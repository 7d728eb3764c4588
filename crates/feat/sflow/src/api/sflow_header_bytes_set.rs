//! `sflow_header_bytes_set`: sets how much of a packet is sent.

use crate::message_types::{SFLOW, SflowHeaderBytesSet, SflowHeaderBytesSetReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowHeaderBytesSet, SflowHeaderBytesSetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, rq: SflowHeaderBytesSet) -> Result<SflowHeaderBytesSetReply, Retval> {
    state::set_header_bytes(c, rq.header_b);
    Ok(SflowHeaderBytesSetReply)
}
