//! `bd_ip_mac_flush`: ends all answers of a bridge domain for hosts.

use crate::message_types::{BdIpMacFlush, BdIpMacFlushReply, L2};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, BdIpMacFlush, BdIpMacFlushReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: BdIpMacFlush) -> Result<BdIpMacFlushReply, Retval> {
    crate::flush_arp_entries(c, rq.bd_id)?;
    Ok(BdIpMacFlushReply)
}
