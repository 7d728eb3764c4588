//! `ip6_nd_address_autoconfig`: addresses and default routes by other routers' advertisements.

use crate::autoconfig::{self, Takes};
use crate::message_types::{Ip6NdAddressAutoconfig, Ip6NdAddressAutoconfigReply, RD_CP};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

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
