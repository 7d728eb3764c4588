//! A host that floods its link with neighbour discovery: hosts that do not exist ask and advertise,
//! routers that are none advertise themselves, and ask for listeners.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_testkit::Netns;
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv6::{Icmp6Repr, kind};
use thalweg_wire::nd::solicited_node;

use crate::RawLink;

/// Pause between messages.
const PAUSE: Duration = Duration::from_millis(1);
/// The router's address on the link.
const ROUTER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Floods the link of a host until it is to stop.
pub(super) fn start(ns: &Netns, stop: &Arc<AtomicBool>) -> Result<JoinHandle<Result<()>>> {
    let (link, stop) = (RawLink::open(ns, "eth0")?, stop.clone());
    Ok(thread::spawn(move || {
        let mut n = 0u32;
        while !stop.load(Relaxed) {
            n += 1;
            link.send(&message(n)).context("flood the link")?;
            // Paced: the flood has a rate.
            thread::sleep(PAUSE);
        }
        Ok(())
    }))
}

/// The message number `n`, of another host each.
fn message(n: u32) -> Vec<u8> {
    let low = n.wrapping_mul(0x9e37_79b1);
    let [a, b, c, d] = low.to_be_bytes();
    let mac = [2, 0x66, a, b, c, d];
    let halves = [(low >> 16) as u16, low as u16];
    let global = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0x66, 0, halves[0], halves[1]);
    let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x66, 0, halves[0], halves[1]);
    let option = |kind: u8| [&[kind, 1][..], &mac].concat();
    let icmp = |src, dst, kind, rest, payload: &[u8]| {
        let ether = Packet::new().ether(MacAddr(mac), MacAddr::from_ipv6_multicast(dst));
        let icmp = Icmp6Repr { kind, code: 0, rest };
        ether.ipv6(src, dst).ttl(255).icmp6(icmp).payload(payload).build()
    };
    match n % 5 {
        0 | 1 => {
            let payload = [&ROUTER.octets()[..], &option(1)].concat();
            icmp(global, solicited_node(ROUTER), kind::NEIGHBOR_SOLICITATION, 0, &payload)
        }
        2 => {
            let payload = [&global.octets()[..], &option(2)].concat();
            icmp(global, ALL_NODES, kind::NEIGHBOR_ADVERTISEMENT, 0x2000_0000, &payload)
        }
        3 => {
            // A lifetime of half an hour.
            let payload = [&[0; 8][..], &option(1)].concat();
            icmp(local, ALL_NODES, kind::ROUTER_ADVERTISEMENT, 0x4000_0708, &payload)
        }
        _ => {
            let payload = [&[0; 16][..], &[2, 20, 0, 0]].concat();
            alerted(icmp(local, ALL_NODES, kind::LISTENER_QUERY, 0, &payload))
        }
    }
}

/// Puts a router alert before a message for the link (RFC 3810 section 5).
fn alerted(mut frame: Vec<u8>) -> Vec<u8> {
    const HOP_BY_HOP: [u8; 8] = [58, 0, 5, 2, 0, 0, 1, 0];
    frame.splice(54..54, HOP_BY_HOP);
    // The payload is short.
    frame[19] += HOP_BY_HOP.len() as u8;
    (frame[20], frame[21]) = (0, 1);
    frame
}

/// Checks in the text of `show errors` that the router has counted the flood.
pub(super) fn seen(errors: &str) -> Result<()> {
    for node in ["icmp6-neighbor-solicitation", "icmp6-mld-query"] {
        ensure!(errors.contains(node), "nothing from {node}:\n{errors}");
    }
    Ok(())
}
