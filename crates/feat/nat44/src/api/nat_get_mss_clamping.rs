//! `nat_get_mss_clamping`: reports the MSS limit.

use crate::Nat44;
use crate::api_types::NAT44_ED;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request)]
pub struct NatGetMssClamping;

/// Reply to [`NatGetMssClamping`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct NatGetMssClampingReply {
    /// MSS in bytes.
    pub mss_value: u16,
    /// Enable or disable.
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, NatGetMssClamping, NatGetMssClampingReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: NatGetMssClamping) -> Result<NatGetMssClampingReply, Retval> {
    let mss_value = c.state::<Nat44>().borrow().mss();
    Ok(NatGetMssClampingReply { mss_value, enable: mss_value != 0 })
}
