//! `ip6nd_proxy_add_del`: answers for a host of another link.

use crate::message_types::{IP6_ND, Ip6ndProxyAddDel, Ip6ndProxyAddDelReply};
use crate::nd_proxy;
use std::net::Ipv6Addr;
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

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
