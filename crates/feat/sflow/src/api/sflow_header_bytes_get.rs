//! `sflow_header_bytes_get`: asks for how much of a packet is sent.

use crate::api_module::SFLOW;
use crate::state::SFlow;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for how much of a packet is sent.
#[derive(Debug, Message)]
#[api(request)]
pub struct SflowHeaderBytesGet;

/// Answers [`SflowHeaderBytesGet`].
#[derive(Debug, Default, Message)]
#[api(details, in_progress)]
pub struct SflowHeaderBytesGetReply {
    /// Bytes.
    #[api(name = "header_B")]
    pub header_b: u32,
}

/// The service.
pub static SERVICE: Call<Control, SflowHeaderBytesGet, SflowHeaderBytesGetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, _: SflowHeaderBytesGet) -> Result<SflowHeaderBytesGetReply, Retval> {
    let state = c.state::<SFlow>();
    let header_b = u32::from(state.borrow().settings().header_bytes);
    Ok(SflowHeaderBytesGetReply { header_b })
}
