//! `nat_set_mss_clamping`: sets the MSS limit.

use crate::message_types::{NAT44_ED, NatSetMssClamping, NatSetMssClampingReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, NatSetMssClamping, NatSetMssClampingReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, rq: NatSetMssClamping) -> Result<NatSetMssClampingReply, Retval> {
    state::set_mss(c, if rq.enable { rq.mss_value } else { 0 })?;
    Ok(NatSetMssClampingReply)
}
