//! `ip6nd_send_router_solicitation`: asks for routers.

use crate::message_types::{IP6_ND, Ip6ndSendRouterSolicitation, Ip6ndSendRouterSolicitationReply};
use crate::solicit::{self, Pace};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Ip6ndSendRouterSolicitation, Ip6ndSendRouterSolicitationReply> =
    Call::new(&IP6_ND, handle);

fn handle(
    c: &mut Control,
    rq: Ip6ndSendRouterSolicitation,
) -> Result<Ip6ndSendRouterSolicitationReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    if rq.stop {
        solicit::stop(c, sw_if);
    } else {
        let pace = Pace { first: rq.irt, longest: rq.mrt, count: rq.mrc, time: rq.mrd };
        solicit::start(c, sw_if, pace)?;
    }
    Ok(Ip6ndSendRouterSolicitationReply)
}
