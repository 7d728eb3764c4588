//! `ip_route_add_del_v2`: adds a route or paths of it, or deletes them.

use crate::api_types::{IP, IpRouteV2, add_del_route};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds a route or paths of it, or deletes them.
#[derive(Debug, Message)]
#[api(request, in_progress)]
pub struct IpRouteAddDelV2 {
    /// Which of both.
    #[api(default = "true")]
    pub is_add: bool,
    /// The paths join those that there are, or leave them; else they replace them, or the route
    /// goes as a whole.
    pub is_multipath: bool,
    /// The route.
    pub route: IpRouteV2,
}

/// Answers [`IpRouteAddDelV2`].
#[derive(Debug, Message)]
#[api(reply, in_progress)]
pub struct IpRouteAddDelV2Reply {
    /// The column of the route's counters, all ones for none.
    pub stats_index: u32,
}

impl Default for IpRouteAddDelV2Reply {
    fn default() -> Self {
        Self { stats_index: u32::MAX }
    }
}

/// The service.
pub static SERVICE: Call<Control, IpRouteAddDelV2, IpRouteAddDelV2Reply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpRouteAddDelV2) -> Result<IpRouteAddDelV2Reply, Retval> {
    let stats_index = add_del_route(c, rq.is_add, rq.is_multipath, &rq.route.into())?;
    Ok(IpRouteAddDelV2Reply { stats_index })
}
