//! `ip4-arp`: holds IPv4 packets for an adjacency whose neighbour is being resolved.
//!
//! Reads: aux (the adjacency). Next: `ip4-rewrite` once the neighbour answers, else
//! `ip4-icmp-error`. The main thread, which knows the adjacency's neighbour, sends the requests:
//! the first as soon as it learns of the first packet. This node asks again as packets come.

use crate::asker::Asker;
use std::net::IpAddr;
use thalweg_buffer::IcmpCause;
use thalweg_feat_neighbor::{Exits, IncompleteNode};
use thalweg_graph::{Built, NodeCx, NodeDecl};
use thalweg_wire::fmt;

thalweg_graph::next_nodes! { REWRITE => "ip4-rewrite", ICMP_ERROR => "ip4-icmp-error" }
thalweg_graph::errors! {
    HELD: Info, UNRESOLVED_NEIGH, "packets held for ARP";
    UNRESOLVED: Error, UNRESOLVED_NEIGH, "unresolved neighbour";
    OVERFLOW: Error, UNRESOLVED_NEIGH, "too many packets held for ARP";
    CROWDED: Error, UNRESOLVED_NEIGH, "too many unresolved neighbours";
    BUSY: Error, UNRESOLVED_NEIGH, "ARP request not sent: main thread busy";
    GONE: Error, DEV_READY, "adjacency deleted or down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-arp",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| {
        let asker = Asker::new(cx);
        let ask = move |cx: &mut NodeCx<'_>, sw_if, ip| {
            if let IpAddr::V4(ip) = ip {
                asker.ask(cx, sw_if, ip);
            }
        };
        let node = IncompleteNode::new(cx, EXITS, GONE, |data, out, n| fmt::ip4(data, out, n));
        Built::node(node.asking(ask))
    },
    ..NodeDecl::DEFAULT
};

const EXITS: Exits = Exits {
    release: REWRITE,
    unreachable: ICMP_ERROR,
    cause: IcmpCause::HOST_UNREACHABLE,
    unresolved: UNRESOLVED,
    overflow: OVERFLOW,
    crowded: CROWDED,
    busy: BUSY,
    held: HELD,
};

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, OUR_IP, US, ip, mac};
    use std::net::IpAddr;
    use std::time::Duration;
    use thalweg_feat_neighbor as neighbor;
    use thalweg_fib::{Dpo, Forwarding, LinkType, Peer, forwarding};
    use thalweg_wire::MacAddr;
    use thalweg_wire::arp::ArpRepr;

    fn adjacency(b: &Bench, n: u8) -> Dpo {
        let f = b.lab.c.state::<Forwarding>();
        let peer = Peer::Neighbor(IpAddr::V4(ip(n)));
        f.borrow_mut().adjacency(&b.lab.c, b.sw_if, LinkType::Ip4, peer).unwrap()
    }

    #[test]
    fn the_main_thread_asks_for_the_neighbour_behind_an_adjacency() {
        let mut b = Bench::new();
        let dpo = adjacency(&b, 7);
        b.packet("ip4-arp", dpo, [192, 0, 2, 99].into(), 1);
        b.until("request", |b| b.lab.sent_frames() > 0);
        assert_eq!(b.sent_arp(), [(MacAddr::BROADCAST, ArpRepr::request(US, OUR_IP, ip(7)))]);
        b.reply_from(7);
        b.until("held packet", |b| b.lab.sent_frames() > 0);
        let sent = b.sent();
        assert_eq!((sent.len(), &sent[0][..6]), (1, &mac(7).0[..]));
        // The next packet is not held.
        b.packet("ip4-arp", dpo, [192, 0, 2, 99].into(), 2);
        b.settle();
        assert_eq!(b.sent().len(), 1);
        assert_eq!(b.count("ip4-arp", "HELD"), 1);
        b.finish();
    }

    #[test]
    fn held_packets_are_dropped_without_a_reply() {
        let mut b = Bench::new();
        b.quick(Duration::from_millis(20));
        let dpo = adjacency(&b, 7);
        for mark in 0..3 {
            b.packet("ip4-arp", dpo, ip(7), mark);
        }
        b.until("failure", |b| b.count("ip4-arp", "UNRESOLVED") == 3);
        assert_eq!(b.sent_arp().len(), 3);
        // A neighbour that shows up by itself ends the silence on all workers.
        b.request_from(7);
        assert_eq!(b.known(7), Some(mac(7)));
        neighbor::remove(&mut b.lab.c, b.sw_if, ip(7).into()).unwrap();
        b.sent();
        b.packet("ip4-arp", dpo, ip(7), 9);
        b.until("request", |b| !b.sent_arp().is_empty());
        b.finish();
    }

    #[test]
    fn next_hops_are_asked_for_before_there_are_packets() {
        let mut b = Bench::new();
        neighbor::ask_for_next_hops(&mut b.lab.c);
        let asked = |n: u8| (MacAddr::BROADCAST, ArpRepr::request(US, OUR_IP, ip(n)));
        adjacency(&b, 7);
        b.settle();
        assert_eq!(b.sent_arp(), [asked(7)]);
        b.reply_from(7);
        assert_eq!(b.known(7), Some(mac(7)));
        // No question is for a known one, for the router itself, or for another route by the same
        // one.
        b.request_from(8);
        b.sent();
        for n in [7, 8, 1] {
            adjacency(&b, n);
        }
        b.settle();
        assert_eq!(b.sent_arp(), []);
        // No question is sent while the interface is down.
        let sw_if = b.sw_if;
        thalweg_device::interface::set_admin(&mut b.lab.c, sw_if, false).unwrap();
        adjacency(&b, 9);
        thalweg_device::interface::set_admin(&mut b.lab.c, sw_if, true).unwrap();
        b.settle();
        assert_eq!(b.sent_arp(), []);
        // Some of very many.
        for n in 10..250 {
            adjacency(&b, n);
        }
        b.settle();
        let sent = b.sent_arp();
        assert!(sent.len() < 240 && sent[..3] == [asked(10), asked(11), asked(12)], "{sent:?}");
        b.finish();
    }

    #[test]
    fn entries_that_are_no_adjacency_are_dropped() {
        let mut b = Bench::new();
        b.packet("ip4-arp", forwarding::DROP, ip(7), 0);
        b.packet("ip4-arp", Dpo::MAX, ip(7), 0);
        b.settle();
        assert_eq!(b.count("ip4-arp", "GONE"), 2);
        b.finish();
    }

    #[test]
    fn an_adjacency_that_is_given_up_releases_its_packets() {
        let mut b = Bench::new();
        let dpo = adjacency(&b, 7);
        b.packet("ip4-arp", dpo, ip(7), 0);
        b.until("request", |b| !b.sent_arp().is_empty());
        let f = b.lab.c.state::<Forwarding>();
        f.borrow_mut().release(&b.lab.c, dpo);
        let other = adjacency(&b, 8);
        b.reply_from(7);
        b.until("the end", |b| {
            b.lab.c.worker_stats(0).totals.dropped.get() == 1 || !b.sent().is_empty()
        });
        let _ = other;
        b.finish();
    }
}
