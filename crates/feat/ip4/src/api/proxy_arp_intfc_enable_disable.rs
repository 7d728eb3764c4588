//! `proxy_arp_intfc_enable_disable`: answers ARP for other hosts on an interface.

use crate::api_types::ARP;
use crate::proxy_arp;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// Answers for the ranges of proxy ARP on an interface, or not.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct ProxyArpIntfcEnableDisable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to answer.
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, ProxyArpIntfcEnableDisable, ProxyArpIntfcEnableDisableReply> =
    Call::new(&ARP, handle);

fn handle(
    c: &mut Control,
    rq: ProxyArpIntfcEnableDisable,
) -> Result<ProxyArpIntfcEnableDisableReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    proxy_arp::set_interface(c, sw_if, rq.enable)?;
    Ok(ProxyArpIntfcEnableDisableReply)
}
