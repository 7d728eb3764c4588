//! `ip_route_add_del`: adds a route or paths of it, or deletes them.

use crate::api_types::{IP, IpRoute, add_del_route};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds a route or paths of it, or deletes them.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpRouteAddDel {
    /// Which of both.
    #[api(default = "true")]
    pub is_add: bool,
    /// The paths join those that there are, or leave them; else they replace them, or the route
    /// goes as a whole.
    pub is_multipath: bool,
    /// The route.
    pub route: IpRoute,
}

/// Answers [`IpRouteAddDel`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct IpRouteAddDelReply {
    /// The column of the route's counters, all ones for none.
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
