//! `sflow_header_bytes_get`: asks for how much of a packet is sent.

use crate::message_types::{SFLOW, SflowHeaderBytesGet, SflowHeaderBytesGetReply};
use crate::state::SFlow;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowHeaderBytesGet, SflowHeaderBytesGetReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, _: SflowHeaderBytesGet) -> Result<SflowHeaderBytesGetReply, Retval> {
    let state = c.state::<SFlow>();
    let header_b = u32::from(state.borrow().settings().header_bytes);
    Ok(SflowHeaderBytesGetReply { header_b })
}
