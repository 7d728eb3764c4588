//! `ip_route_add_del_v2`: adds or deletes a route or paths of it.

use crate::Source;
use crate::api_types::{IP, IpRouteV2, add_del_route, source_id};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds or deletes a route or paths of it.
#[derive(Debug, Message)]
#[api(request, in_progress)]
pub struct IpRouteAddDelV2 {
    /// True to add, false to delete.
    #[api(default = "true")]
    pub is_add: bool,
    /// Adds paths to the route, or deletes single paths; otherwise replaces all paths, or deletes
    /// the whole route.
    pub is_multipath: bool,
    /// The route.
    pub route: IpRouteV2,
}

/// Reply to [`IpRouteAddDelV2`].
#[derive(Debug, Message)]
#[api(reply, in_progress)]
pub struct IpRouteAddDelV2Reply {
    /// Index of the route's counters; all ones for none.
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
    let own = source_id(Source::Static);
    if rq.route.src != 0 && rq.route.src != own {
        let text = format!("routes of messages are from source {own} (0 stands for it as well)");
        return Err(Retval::INVALID_VALUE.because(text));
    }
    let stats_index = add_del_route(c, rq.is_add, rq.is_multipath, &rq.route.into())?;
    Ok(IpRouteAddDelV2Reply { stats_index })
}
