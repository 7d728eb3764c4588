//! `ip6nd_send_router_solicitation`: asks for routers.

use crate::api_types::IP6_ND;
use crate::solicit::{self, Pace};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// Asks for routers on an interface until one advertises itself, or stops. Times are in seconds.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Ip6ndSendRouterSolicitation {
    /// First interval.
    pub irt: u32,
    /// Longest interval, 0 for none.
    pub mrt: u32,
    /// Most solicitations, 0 for no limit.
    pub mrc: u32,
    /// Longest time for all, 0 for no limit.
    pub mrd: u32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to stop.
    pub stop: bool,
}

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
