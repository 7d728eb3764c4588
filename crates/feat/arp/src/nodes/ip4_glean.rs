//! `ip4-glean`: resolves a destination in a connected subnet and holds the packet.
//!
//! Reads: aux (the glean entry). Next: `ip4-rewrite` with the new neighbour's adjacency once it
//! answers, else `ip4-icmp-error`. This node sends the first request at once, and others as packets
//! come; the main thread sends two more if none come.

use crate::asker::Asker;
use std::any::Any;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use thalweg_buffer::{Frame, IcmpCause, PktMut};
use thalweg_feat_neighbor::{Exits, Hold};
use thalweg_fib::{Dpo, DpoTable, Kind};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { REWRITE => "ip4-rewrite", ICMP_ERROR => "ip4-icmp-error" }
thalweg_graph::errors! {
    HELD: Info, UNRESOLVED_NEIGH, "packets held for ARP";
    REQUESTS_SENT: Info, UNKNOWN, "ARP requests sent";
    NO_BUFFERS: Warning, NO_BUFFER_SPACE, "ARP requests delayed: no buffers";
    UNRESOLVED: Error, UNRESOLVED_NEIGH, "unresolved neighbour";
    OVERFLOW: Error, UNRESOLVED_NEIGH, "too many packets held for ARP";
    CROWDED: Error, UNRESOLVED_NEIGH, "too many unresolved neighbours";
    BUSY: Error, UNRESOLVED_NEIGH, "ARP request not sent: main thread busy";
    NO_SOURCE: Error, UNRESOLVED_NEIGH, "no source address for ARP request";
    EDGE: Error, DIP_IS_LOCAL_NETWORK, "destination is subnet or broadcast address";
    SHORT: Error, IP_HEADER_CORRUPTED, "ip4 length < 20 bytes";
    GONE: Error, DEV_READY, "connected subnet deleted or interface down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-glean",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| {
        Built::node(Ip4Glean {
            asker: Asker::new(cx),
            dpos: cx.shared(),
            hold: Hold::new(cx, EXITS),
        })
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

struct Ip4Glean {
    asker: Asker,
    dpos: Arc<DpoTable>,
    hold: Hold,
}

fn destination(data: &[u8]) -> Option<Ipv4Addr> {
    let header = data.first_chunk::<20>()?;
    Some(Ipv4Addr::new(header[16], header[17], header[18], header[19]))
}

impl Node for Ip4Glean {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let state = self.dpos.get(Dpo(p.aux())).state();
        if state.kind != Kind::GLEAN {
            return Verdict::drop(GONE);
        }
        let Some(dst) = destination(p.data()) else { return Verdict::drop(SHORT) };
        let (addrs, tx_if) = (self.asker.addrs.load(cx.guard()), state.tx_if());
        if addrs.source_for(tx_if, dst).is_none_or(|source| source == dst) {
            return Verdict::drop(NO_SOURCE);
        }
        if addrs.get(tx_if).iter().any(|a| a.is_edge(dst)) {
            return Verdict::drop(EDGE);
        }
        let asker = &self.asker;
        self.hold.keep_for_host(cx, p, (tx_if, IpAddr::V4(dst)), |cx| {
            // Otherwise the main thread sends the request again.
            let counter = if asker.ask(cx, tx_if, dst) { REQUESTS_SENT } else { NO_BUFFERS };
            cx.count(counter, 1);
        })
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[i as usize]);
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.hold.message(cx, message);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, OUR_IP, US, ip, mac};
    use std::net::Ipv4Addr;
    use std::time::Duration;
    use thalweg_feat_neighbor::{self as neighbor, NEIGHBORS, Neighbors, PER_NEIGHBOR, PER_WORKER};
    use thalweg_fib::Dpo;
    use thalweg_wire::MacAddr;
    use thalweg_wire::arp::ArpRepr;

    #[test]
    fn the_first_packet_asks_and_the_answer_sends_the_newest_ones_in_order() {
        let mut b = Bench::new();
        let end = PER_NEIGHBOR as u8 + 2;
        for mark in 0..end {
            b.packet("ip4-glean", b.glean, ip(7), mark);
        }
        b.settle();
        let asked = b.sent_arp();
        assert_eq!(asked, [(MacAddr::BROADCAST, ArpRepr::request(US, OUR_IP, ip(7)))]);
        assert_eq!(b.count("ip4-glean", "OVERFLOW"), 2);
        b.reply_from(7);
        b.until("held packets", |b| b.lab.c.worker_stats(0).totals.tx.get() > PER_NEIGHBOR as u64);
        let sent = b.sent();
        let marks: Vec<u8> = sent.iter().map(|f| *f.last().unwrap()).collect();
        assert_eq!(marks, (2..end).collect::<Vec<_>>());
        assert!(sent.iter().all(|f| f[..6] == mac(7).0 && f[6..12] == US.0 && f[12..14] == [8, 0]));
        b.finish();
    }

    #[test]
    fn a_silent_neighbour_gets_three_requests_and_then_none() {
        let mut b = Bench::new();
        b.quick(Duration::from_millis(10));
        b.packet("ip4-glean", b.glean, ip(7), 0);
        let mut asked = 0;
        b.until("two requests", |b| {
            asked += b.sent_arp().len();
            asked >= 2
        });
        // The time is long enough to look at the silence on busy processors.
        b.quick(Duration::from_millis(500));
        b.until("failure", |b| b.count("ip4-glean", "UNRESOLVED") == 1);
        assert_eq!(asked + b.sent_arp().len(), 3);
        // Silence: packets are dropped on the worker. Each asks again, a moment after the last.
        b.packet("ip4-glean", b.glean, ip(7), 1);
        b.settle();
        assert_eq!(b.count("ip4-glean", "UNRESOLVED"), 2);
        assert_eq!(b.count("ip4-icmp-error", "ASKED"), 2, "the sender hears of it");
        assert!(b.sent_arp().is_empty());
        // Twice the interval later there is another try.
        b.until("another request", |b| {
            b.packet("ip4-glean", b.glean, ip(7), 2);
            b.settle();
            let asked = b.sent_arp().len();
            assert!(asked <= 1, "{asked} requests");
            asked == 1
        });
        b.reply_from(7);
        b.until("held packet", |b| b.sent().iter().any(|f| f.last() == Some(&2)));
        b.finish();
    }

    #[test]
    fn packets_ask_again_also_in_a_silence() {
        let mut b = Bench::new();
        neighbor::set_throttle(&b.lab.c, Duration::ZERO);
        b.quick(Duration::from_secs(3600));
        for mark in 0..5 {
            b.packet("ip4-glean", b.glean, ip(7), mark);
            b.settle();
            assert_eq!(b.sent_arp(), [(MacAddr::BROADCAST, ArpRepr::request(US, OUR_IP, ip(7)))]);
        }
        // No faster than the limit, however many packets come.
        for _ in 0..500 {
            b.packet("ip4-glean", b.glean, ip(7), 5);
        }
        b.settle();
        let asked = b.sent_arp().len();
        assert!(asked < 500, "{asked}");
        b.reply_from(7);
        b.until("held packets", |b| !b.sent().is_empty());
        b.finish();

        let mut b = Bench::new();
        b.quick(Duration::from_millis(5));
        b.packet("ip4-glean", b.glean, ip(7), 0);
        b.until("failure", |b| b.count("ip4-glean", "UNRESOLVED") == 1);
        b.quick(Duration::from_secs(3600));
        b.settle();
        b.sent();
        neighbor::set_throttle(&b.lab.c, Duration::ZERO);
        b.until("a request", |b| {
            b.packet("ip4-glean", b.glean, ip(7), 1);
            b.settle();
            !b.sent_arp().is_empty()
        });
        // Its answer ends the silence.
        b.reply_from(7);
        assert_eq!(b.known(7), Some(mac(7)));
        b.finish();
    }

    #[test]
    fn unusable_destinations_are_not_resolved() {
        let mut b = Bench::new();
        b.packet("ip4-glean", b.glean, ip(255), 0);
        b.packet("ip4-glean", b.glean, ip(0), 0);
        b.packet("ip4-glean", b.glean, OUR_IP, 0);
        b.packet("ip4-glean", Dpo(0), ip(7), 0);
        b.settle();
        assert_eq!(b.count("ip4-glean", "EDGE"), 2);
        assert_eq!(b.count("ip4-glean", "NO_SOURCE"), 1);
        assert_eq!(b.count("ip4-glean", "GONE"), 1);
        crate::set_addresses(&mut b.lab.c, b.sw_if, &[]);
        b.packet("ip4-glean", b.glean, ip(7), 0);
        b.settle();
        assert_eq!(b.count("ip4-glean", "NO_SOURCE"), 2);
        assert!(b.sent().is_empty());
        b.finish();
    }

    #[test]
    fn a_scan_is_bounded() {
        let mut b = Bench::new();
        crate::set_addresses(&mut b.lab.c, b.sw_if, &[(OUR_IP, 8)]);
        let total = NEIGHBORS as u32 + 300;
        for n in 0..total {
            b.packet("ip4-glean", b.glean, Ipv4Addr::from(0x0a01_0000 + n + 1), 0);
        }
        b.settle();
        assert_eq!(b.count("ip4-glean", "CROWDED"), 300);
        assert_eq!(b.count("ip4-glean", "HELD"), PER_WORKER as u64);
        assert_eq!(b.count("ip4-glean", "OVERFLOW"), (NEIGHBORS - PER_WORKER) as u64);
        // A neighbour with its share of packets still gets its newest ones held.
        for mark in 1..=2 * PER_NEIGHBOR as u8 {
            b.packet("ip4-glean", b.glean, Ipv4Addr::from(0x0a01_0001), mark);
        }
        b.settle();
        assert_eq!(b.count("ip4-glean", "HELD"), (PER_WORKER + 2 * PER_NEIGHBOR) as u64);
        // Taking the interface down releases everything.
        thalweg_device::interface::set_admin(&mut b.lab.c, b.sw_if, false).unwrap();
        b.settle();
        assert_eq!(b.count("ip4-glean", "UNRESOLVED"), PER_WORKER as u64);
        assert_eq!(b.count("ip4-icmp-error", "ASKED"), 0);
        assert!(b.lab.c.state::<Neighbors>().borrow().list().is_empty());
        b.finish();
    }
}
