//! `nat_set_mss_clamping`: sets the MSS limit.

use crate::api_types::NAT44_ED;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct NatSetMssClamping {
    /// MSS in bytes.
    pub mss_value: u16,
    /// Enable or disable.
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, NatSetMssClamping, NatSetMssClampingReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, rq: NatSetMssClamping) -> Result<NatSetMssClampingReply, Retval> {
    state::set_mss(c, if rq.enable { rq.mss_value } else { 0 })?;
    Ok(NatSetMssClampingReply)
}
