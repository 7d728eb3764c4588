//! Events of router advertisements.

use crate::message_types::{Ip6RaEvent, Ip6RaPrefixInfo};
use thalweg_api::types::{InterfaceIndex, Ip6Address, Prefix};
use thalweg_api::{Clients, Subscribers};
use thalweg_feat_nd::RouterHeard;
use thalweg_graph::Control;

/// Subscribed clients.
#[derive(Default)]
pub(crate) struct Watchers(pub(crate) Subscribers<()>);

pub(crate) fn init(c: &mut Control) {
    c.insert(Watchers::default());
    c.subscribe(|c, heard: &RouterHeard| {
        let watchers = c.state::<Watchers>();
        let mut watchers = watchers.borrow_mut();
        if watchers.0.is_empty() {
            return;
        }
        let clients = c.state::<Clients>().borrow().clone();
        watchers.0.notify(&clients, |pid, ()| Some(event(pid, heard)));
    });
}

fn event(pid: u32, heard: &RouterHeard) -> Ip6RaEvent {
    let prefix = |p: &thalweg_feat_nd::RouterPrefix| Ip6RaPrefixInfo {
        prefix: Prefix::from((std::net::IpAddr::V6(p.prefix), p.len)),
        flags: p.flags,
        valid_time: p.valid,
        preferred_time: p.preferred,
    };
    Ip6RaEvent {
        pid,
        sw_if_index: InterfaceIndex(heard.sw_if.get()),
        router_addr: Ip6Address(heard.router.octets()),
        current_hop_limit: heard.hop_limit,
        flags: heard.flags,
        router_lifetime_in_sec: heard.lifetime,
        neighbor_reachable_time_in_msec: heard.reachable_ms,
        time_in_msec_between_retransmitted_neighbor_solicitations: heard.retransmit_ms,
        prefixes: heard.prefixes.iter().map(prefix).collect(),
    }
}
