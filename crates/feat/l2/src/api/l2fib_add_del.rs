//! `l2fib_add_del`: adds or deletes a MAC address entry.

use crate::api_module::L2;
use crate::{L2Error, Origin};
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Adds a MAC address entry to a bridge domain, or deletes it.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2fibAddDel {
    /// MAC address.
    pub mac: MacAddr,
    /// Bridge domain id.
    pub bd_id: u32,
    /// Port of the address.
    pub sw_if_index: InterfaceIndex,
    /// True to add, false to delete.
    #[api(default = "true")]
    pub is_add: bool,
    /// Static: neither moves nor ages.
    pub static_mac: bool,
    /// Filter: frames to this address are dropped.
    pub filter_mac: bool,
    /// The address is a BVI.
    pub bvi_mac: bool,
}

/// The service.
pub static SERVICE: Call<Control, L2fibAddDel, L2fibAddDelReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2fibAddDel) -> Result<L2fibAddDelReply, Retval> {
    if !rq.is_add {
        crate::remove_address(c, rq.bd_id, rq.mac)?;
        return Ok(L2fibAddDelReply);
    }
    if rq.bvi_mac {
        return Err(L2Error::NotYet("a BVI").into());
    }
    let origin = match (rq.filter_mac, rq.static_mac) {
        (true, _) => Origin::Filter,
        (false, true) => Origin::Static,
        (false, false) => Origin::Added,
    };
    let port = (!rq.filter_mac).then_some(SwIfIndex(rq.sw_if_index.0));
    crate::add_address(c, rq.bd_id, rq.mac, port, origin)?;
    Ok(L2fibAddDelReply)
}
