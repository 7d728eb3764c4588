//! `bd_ip_mac_add_del`: has a bridge domain answer for a host, or no longer.

use crate::api_module::{BdIpMac, L2};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds an address to answer for, or deletes it.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct BdIpMacAddDel {
    /// True to add, false to delete.
    #[api(default = "true")]
    pub is_add: bool,
    /// The bridge domain and the host's addresses.
    pub entry: BdIpMac,
}

/// The service.
pub static SERVICE: Call<Control, BdIpMacAddDel, BdIpMacAddDelReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: BdIpMacAddDel) -> Result<BdIpMacAddDelReply, Retval> {
    let BdIpMac { bd_id, ip, mac } = rq.entry;
    match rq.is_add {
        true => crate::set_arp_entry(c, bd_id, ip.ip()?, mac)?,
        false => crate::remove_arp_entry(c, bd_id, ip.ip()?, mac)?,
    }
    Ok(BdIpMacAddDelReply)
}
