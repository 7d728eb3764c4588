//! `l2fib_add_del`: adds or deletes a MAC address entry.

use crate::message_types::{L2, L2fibAddDel, L2fibAddDelReply};
use crate::{L2Error, Origin};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

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
