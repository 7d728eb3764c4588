//! `proxy_arp_add_del`: adds or removes a range of proxy ARP.

use crate::message_types::{ARP, ProxyArpAddDel, ProxyArpAddDelReply};
use crate::proxy_arp::{self, Range};
use std::net::Ipv4Addr;
use thalweg_api::{Call, Retval};
use thalweg_feat_ip::TableId;
use thalweg_graph::Control;

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
