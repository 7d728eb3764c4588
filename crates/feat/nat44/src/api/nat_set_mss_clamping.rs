//! `nat_set_mss_clamping`: lowers the segment size that connections announce.

use crate::api_types::NAT44_ED;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets it.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct NatSetMssClamping {
    /// Bytes.
    pub mss_value: u16,
    /// Whether it is to be.
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, NatSetMssClamping, NatSetMssClampingReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, rq: NatSetMssClamping) -> Result<NatSetMssClampingReply, Retval> {
    state::set_mss(c, if rq.enable { rq.mss_value } else { 0 })?;
    Ok(NatSetMssClampingReply)
}
