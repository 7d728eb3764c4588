//! `l2fib_add_del`: says where a station is.

use crate::api_module::L2;
use crate::{L2Error, Origin};
use thalweg_api::types::{InterfaceIndex, MacAddress};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Says where a station of a bridge domain is, or forgets it.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2fibAddDel {
    /// The station.
    pub mac: MacAddress,
    /// The bridge domain.
    pub bd_id: u32,
    /// Its port.
    pub sw_if_index: InterfaceIndex,
    /// Whether it is there.
    #[api(default = "true")]
    pub is_add: bool,
    /// It stays there.
    pub static_mac: bool,
    /// Frames to it are dropped.
    pub filter_mac: bool,
    /// It is the router itself.
    pub bvi_mac: bool,
}

/// The service.
pub static SERVICE: Call<Control, L2fibAddDel, L2fibAddDelReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2fibAddDel) -> Result<L2fibAddDelReply, Retval> {
    if !rq.is_add {
        crate::remove_address(c, rq.bd_id, rq.mac.0)?;
        return Ok(L2fibAddDelReply);
    }
    if rq.bvi_mac {
        return Err(L2Error::NotYet("a bridge domain's own port").into());
    }
    let origin = match (rq.filter_mac, rq.static_mac) {
        (true, _) => Origin::Filter,
        (false, true) => Origin::Static,
        (false, false) => Origin::Added,
    };
    let port = (!rq.filter_mac).then_some(rq.sw_if_index.0);
    crate::add_address(c, rq.bd_id, rq.mac.0, port, origin)?;
    Ok(L2fibAddDelReply)
}
