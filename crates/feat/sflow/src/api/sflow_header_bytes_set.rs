//! `sflow_header_bytes_set`: sets how much of a packet is sent.

use crate::api_module::SFLOW;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets how much of a packet is sent.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SflowHeaderBytesSet {
    /// Bytes.
    #[api(name = "header_B", default = 128)]
    pub header_b: u32,
}

/// The service.
pub static SERVICE: Call<Control, SflowHeaderBytesSet, SflowHeaderBytesSetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, rq: SflowHeaderBytesSet) -> Result<SflowHeaderBytesSetReply, Retval> {
    state::set_header_bytes(c, rq.header_b);
    Ok(SflowHeaderBytesSetReply)
}
