//! `bd_ip_mac_flush`: has a bridge domain answer for no host.

use crate::api_module::L2;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Removes all addresses that a bridge domain answers for.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct BdIpMacFlush {
    /// Bridge domain id.
    pub bd_id: u32,
}

/// The service.
pub static SERVICE: Call<Control, BdIpMacFlush, BdIpMacFlushReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: BdIpMacFlush) -> Result<BdIpMacFlushReply, Retval> {
    crate::flush_arp_entries(c, rq.bd_id)?;
    Ok(BdIpMacFlushReply)
}
