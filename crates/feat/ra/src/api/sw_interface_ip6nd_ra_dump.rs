//! `sw_interface_ip6nd_ra_dump`: lists what the router advertises.

use crate::config::{Port, Ports, usable};
use crate::message_types::{
    IP6_ND, Ip6ndRaPrefix, SwInterfaceIp6ndRaDetails, SwInterfaceIp6ndRaDump,
};
use std::net::IpAddr;
use std::time::Instant;
use thalweg_api::types::{InterfaceIndex, Prefix};
use thalweg_api::{Details, Dump};
use thalweg_device::api_types::indices;
use thalweg_device::{MtuOf, SwIfIndex};
use thalweg_graph::{Control, clock};

/// The service.
pub static SERVICE: Dump<Control, SwInterfaceIp6ndRaDump, SwInterfaceIp6ndRaDetails> =
    Dump::new(&IP6_ND, handle);

/// Seconds from now to a time.
fn from_now(at: Option<Instant>, now: Instant) -> f64 {
    at.map_or(0.0, |at| match at.checked_duration_since(now) {
        Some(ahead) => ahead.as_secs_f64(),
        None => -(now - at).as_secs_f64(),
    })
}

fn prefix(p: &crate::Prefix, now: Instant) -> Ip6ndRaPrefix {
    let left = p.left(now);
    let expires = |left: u32| match p.since {
        Some(_) if left != u32::MAX => f64::from(left),
        _ => 0.0,
    };
    Ip6ndRaPrefix {
        prefix: Prefix::from((IpAddr::V6(p.ip), p.len)),
        onlink_flag: p.on_link,
        autonomous_flag: p.autonomous,
        val_lifetime: p.lifetimes.valid,
        pref_lifetime: p.lifetimes.preferred,
        valid_lifetime_expires: expires(left.valid),
        pref_lifetime_expires: expires(left.preferred),
        decrement_lifetime_flag: p.since.is_some(),
        no_advertise: !p.advertised,
    }
}

fn details(sw_if: SwIfIndex, mtu: u32, port: &Port, now: Instant) -> SwInterfaceIp6ndRaDetails {
    let Port { config, progress } = port;
    SwInterfaceIp6ndRaDetails {
        sw_if_index: InterfaceIndex(sw_if.get()),
        cur_hop_limit: config.hop_limit,
        adv_managed_flag: config.managed,
        adv_other_flag: config.other,
        adv_router_lifetime: config.lifetime,
        adv_neighbor_reachable_time: config.reachable_ms,
        adv_retransmit_interval: config.retransmit_ms,
        adv_link_mtu: mtu,
        send_radv: config.send,
        cease_radv: config.cease,
        send_unicast: config.unicast,
        adv_link_layer_address: config.link_layer,
        max_radv_interval: config.interval.0.into(),
        min_radv_interval: config.interval.1.into(),
        last_radv_time: from_now(progress.last, now),
        last_multicast_time: from_now(progress.last_to_all, now),
        next_multicast_time: from_now(progress.next, now),
        initial_adverts_count: config.initial.0.into(),
        initial_adverts_interval: config.initial.1.into(),
        initial_adverts_sent: progress.initial_sent >= config.initial.0,
        n_advertisements_sent: progress.sent,
        n_solicitations_rcvd: progress.solicited,
        n_solicitations_dropped: progress.dropped,
        prefixes: config.prefixes.iter().map(|p| prefix(p, now)).collect(),
    }
}

fn handle(
    c: &mut Control,
    rq: SwInterfaceIp6ndRaDump,
    out: &mut Details<SwInterfaceIp6ndRaDetails>,
) {
    let now = clock::now();
    for sw_if in indices(c, rq.sw_if_index) {
        let Ok(view) = usable(c, sw_if) else { continue };
        let ports = c.state::<Ports>();
        let port = ports.borrow().0.get(&sw_if).cloned().unwrap_or_default();
        out.send(&details(sw_if, view.mtu.of(MtuOf::Ip6), &port, now));
    }
}
