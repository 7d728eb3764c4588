//! `ip6nd_proxy_add_del`: answers for a host of another link.

use crate::api_types::IP6_ND;
use crate::nd_proxy;
use std::net::Ipv6Addr;
use thalweg_api::types::{InterfaceIndex, Ip6Address};
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// Answers solicitations for a host behind an interface on all others, or no more.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Ip6ndProxyAddDel {
    /// The interface where the host is.
    pub sw_if_index: InterfaceIndex,
    /// True to add, false to remove.
    pub is_add: bool,
    /// The host's address.
    pub ip: Ip6Address,
}

/// The service.
pub static SERVICE: Call<Control, Ip6ndProxyAddDel, Ip6ndProxyAddDelReply> =
    Call::new(&IP6_ND, handle);

fn handle(c: &mut Control, rq: Ip6ndProxyAddDel) -> Result<Ip6ndProxyAddDelReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let ip = Ipv6Addr::from(rq.ip.0);
    match rq.is_add {
        true => nd_proxy::add(c, sw_if, ip)?,
        false => nd_proxy::remove(c, sw_if, ip)?,
    }
    Ok(Ip6ndProxyAddDelReply)
}
