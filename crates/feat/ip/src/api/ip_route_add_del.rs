//! `ip_route_add_del`: adds or deletes a route or paths of it.

use crate::api_types::add_del_route;
use crate::message_types::{IP, IpRouteAddDel, IpRouteAddDelReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

impl Default for IpRouteAddDelReply {
    fn default() -> Self {
        Self { stats_index: u32::MAX }
    }
}

/// The service.
pub static SERVICE: Call<Control, IpRouteAddDel, IpRouteAddDelReply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpRouteAddDel) -> Result<IpRouteAddDelReply, Retval> {
    let stats_index = add_del_route(c, rq.is_add, rq.is_multipath, &rq.route)?;
    Ok(IpRouteAddDelReply { stats_index })
}
