//! `ip6_nd_address_autoconfig`: addresses and default routes by other routers' advertisements.

use crate::api_types::RD_CP;
use crate::autoconfig::{self, Takes};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// Takes addresses from other routers' advertisements, or none any more.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Ip6NdAddressAutoconfig {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to take addresses.
    pub enable: bool,
    /// Also routes to default routers.
    pub install_default_routes: bool,
}

/// The service.
pub static SERVICE: Call<Control, Ip6NdAddressAutoconfig, Ip6NdAddressAutoconfigReply> =
    Call::new(&RD_CP, handle);

fn handle(
    c: &mut Control,
    rq: Ip6NdAddressAutoconfig,
) -> Result<Ip6NdAddressAutoconfigReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let takes = Takes { default_route: rq.install_default_routes };
    autoconfig::set(c, sw_if, rq.enable.then_some(takes))?;
    Ok(Ip6NdAddressAutoconfigReply)
}
