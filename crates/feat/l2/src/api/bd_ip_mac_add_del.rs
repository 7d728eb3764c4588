//! `bd_ip_mac_add_del`: lets a bridge domain answer for a host, or ends that.

use crate::message_types::{BdIpMac, BdIpMacAddDel, BdIpMacAddDelReply, L2};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
