//! `nat_get_mss_clamping`: asks for the largest segment size.

use crate::Nat44;
use crate::api_types::NAT44_ED;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for it.
#[derive(Debug, Message)]
#[api(request)]
pub struct NatGetMssClamping;

/// Answers [`NatGetMssClamping`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct NatGetMssClampingReply {
    /// Bytes.
    pub mss_value: u16,
    /// Whether it is to be.
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, NatGetMssClamping, NatGetMssClampingReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: NatGetMssClamping) -> Result<NatGetMssClampingReply, Retval> {
    let mss_value = c.state::<Nat44>().borrow().mss();
    Ok(NatGetMssClampingReply { mss_value, enable: mss_value != 0 })
}
