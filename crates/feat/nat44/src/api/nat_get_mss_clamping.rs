//! `nat_get_mss_clamping`: reports the MSS limit.

use crate::Nat44;
use crate::message_types::{NAT44_ED, NatGetMssClamping, NatGetMssClampingReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, NatGetMssClamping, NatGetMssClampingReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: NatGetMssClamping) -> Result<NatGetMssClampingReply, Retval> {
    let mss_value = c.state::<Nat44>().borrow().mss();
    Ok(NatGetMssClampingReply { mss_value, enable: mss_value != 0 })
}
