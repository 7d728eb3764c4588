//! `ip_route_add_del_v2`: adds or deletes a route or paths of it.

use crate::Source;
use crate::api_types::{add_del_route, source_id};
use crate::message_types::{IP, IpRouteAddDelV2, IpRouteAddDelV2Reply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
