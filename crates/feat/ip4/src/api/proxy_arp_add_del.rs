//! `proxy_arp_add_del`: adds or removes a range of proxy ARP.

use crate::api_types::{ARP, ProxyArp};
use crate::proxy_arp::{self, Range};
use std::net::Ipv4Addr;
use thalweg_api::{Call, Message, Retval};
use thalweg_feat_ip::TableId;
use thalweg_graph::Control;

/// Adds or removes a range of addresses that the router answers for.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct ProxyArpAddDel {
    /// True to add, false to remove.
    pub is_add: bool,
    /// The range.
    pub proxy: ProxyArp,
}

/// The service.
pub static SERVICE: Call<Control, ProxyArpAddDel, ProxyArpAddDelReply> = Call::new(&ARP, handle);

fn handle(c: &mut Control, rq: ProxyArpAddDel) -> Result<ProxyArpAddDelReply, Retval> {
    let [first, last] = [rq.proxy.low, rq.proxy.hi].map(|a| Ipv4Addr::from(a.0));
    let range = Range { table: TableId(rq.proxy.table_id), first, last };
    match rq.is_add {
        true => proxy_arp::add(c, range)?,
        false => proxy_arp::remove(c, range)?,
    }
    Ok(ProxyArpAddDelReply)
}
