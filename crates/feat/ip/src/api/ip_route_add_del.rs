//! `ip_route_add_del`: adds or deletes a route or paths of it.

use crate::api_types::{IP, IpRoute, add_del_route};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds or deletes a route or paths of it.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpRouteAddDel {
    /// True to add, false to delete.
    #[api(default = "true")]
    pub is_add: bool,
    /// Adds paths to the route, or deletes single paths; otherwise replaces all paths, or deletes
    /// the whole route.
    pub is_multipath: bool,
    /// The route.
    pub route: IpRoute,
}

/// Reply to [`IpRouteAddDel`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct IpRouteAddDelReply {
    /// Index of the route's counters; all ones for none.
    pub stats_index: u32,
}

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
