//! `bd_ip_mac_dump`: lists the addresses that bridge domains answer for.

use crate::message_types::{BdIpMac, BdIpMacDetails, BdIpMacDump, L2};
use std::net::IpAddr;
use std::ops::Bound;
use thalweg_api::{Details, Dump, Walk};
use thalweg_graph::Control;

/// Entries sent between checks that the client keeps reading.
const AT_ONCE: usize = 64;

/// The service.
pub static SERVICE: Dump<Control, BdIpMacDump, BdIpMacDetails> = Dump::slices(&L2, handle);

fn handle(c: &mut Control, rq: BdIpMacDump, mut out: Details<BdIpMacDetails>) -> Walk<Control> {
    let wanted = |id: &u32| rq.bd_id == u32::MAX || rq.bd_id == *id;
    let ids: Vec<u32> = {
        let state = c.state::<crate::L2>();
        let l2 = state.borrow();
        l2.bridges().list().map(|(id, _)| id).filter(wanted).collect()
    };
    let mut ids = ids.into_iter().peekable();
    let mut last: Option<IpAddr> = None;
    Box::new(move |c| {
        let Some(id) = ids.peek().copied() else { return false };
        let state = c.state::<crate::L2>();
        let l2 = state.borrow();
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        let some = l2.bridges().get(id).map(|domain| {
            let some = domain.arp.range((from, Bound::Unbounded)).take(AT_ONCE);
            some.map(|(ip, mac)| (*ip, *mac)).collect::<Vec<_>>()
        });
        last = None;
        for (ip, mac) in some.into_iter().flatten() {
            out.send(&BdIpMacDetails { entry: BdIpMac { bd_id: id, ip: ip.into(), mac } });
            last = Some(ip);
        }
        if last.is_none() {
            ids.next();
        }
        ids.peek().is_some()
    })
}
