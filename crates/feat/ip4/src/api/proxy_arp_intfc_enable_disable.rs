//! `proxy_arp_intfc_enable_disable`: answers ARP for other hosts on an interface.

use crate::message_types::{ARP, ProxyArpIntfcEnableDisable, ProxyArpIntfcEnableDisableReply};
use crate::proxy_arp;
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

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
