//! `arp-input`: answers requests for our addresses and reports senders to the main thread (RFC 826;
//! probes and announcements as in RFC 5227).
//!
//! Reads: rx interface, the Ethernet header before the packet. Writes: tx interface of replies.
//! Next: the rx interface's output, for requests that were turned into replies in place. Packets
//! that were only learned from end here; others are dropped with a reason. Packets of interfaces
//! with features on the arc `arp` pass these first, and come to `arp-reply`, which does the same.

use crate::addrs::IfAddrs;
use crate::counters::{ArpCounters, Counted};
use std::any::Any;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_device::{IfTable, Interfaces, SwIfIndex};
use thalweg_feat_neighbor::arping::Ear;
use thalweg_feat_neighbor::{Origin, Reported, Reporter};
use thalweg_fib::{RouteBook, Routes};
use thalweg_graph::{ArcId, BuildCx, Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::arp::{ArpRepr, ArpView, Operation};
use thalweg_wire::ethernet::{EthernetRepr, HEADER_LEN, ethertype};
use thalweg_wire::{MacAddr, WireError, fmt};

thalweg_graph::errors! {
    REPLIES_SENT: Info, UNKNOWN, "ARP replies sent";
    REQUESTS: Info, UNKNOWN, "ARP requests received";
    REPLIES: Info, UNKNOWN, "ARP replies received";
    GRATUITOUS: Info, UNKNOWN, "gratuitous ARP packets received";
    PROBES: Info, UNKNOWN, "ARP probes received";
    THROTTLED: Warning, UNKNOWN, "ARP senders not learned: rate limit";
    EVENTS_LOST: Warning, UNKNOWN, "ARP senders not learned: main thread busy";
    TRUNCATED: Error, ARP_PARSING, "ARP packet too short";
    BAD_TYPE: Error, ARP_PARSING, "ARP not for IPv4 over Ethernet";
    BAD_OPCODE: Error, ARP_PARSING, "unknown ARP opcode";
    NO_ADDRESS: Info, NON_ROUTABLE_PACKET, "interface is not IP enabled";
    BAD_MAC: Error, SRC_MAC_IS_MULTICAST, "ARP sender MAC address is not unicast";
    MISMATCH: Error, UNKNOWN, "ARP hw addr does not match L2 frame src addr";
    BAD_SENDER: Error, NON_ROUTABLE_PACKET, "invalid ARP sender IP address";
    NOT_CONNECTED: Error, UC_REVERSE_PATH_FORWARDING, "IP4 source address not local to subnet";
    CONFLICT: Error, UNKNOWN, "IP4 source address matches local interface";
    LOOPED: Warning, UNKNOWN, "ARP packet looped back";
    PROXIED: Info, UNKNOWN, "ARP requests answered for other hosts";
    NOT_FOR_US: Info, UNKNOWN, "IP4 destination address not local to subnet";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "arp-input",
    errors: ERRORS,
    build: |cx| build(cx, Some(cx.arc("arp"))),
    ..NodeDecl::DEFAULT
};

/// Builds the node, before the features of an arc or behind them.
pub(super) fn build(cx: &BuildCx<'_>, arc: Option<ArcId>) -> Built {
    Built::node(ArpInput {
        arc,
        addrs: cx.shared(),
        interfaces: Interfaces::table(cx),
        routes: cx.shared::<RouteBook>().all(),
        counters: cx.shared(),
        reporter: Reporter::new(cx),
        ear: Ear::new(cx),
    })
}

struct ArpInput {
    /// The arc that packets take first.
    arc: Option<ArcId>,
    addrs: Arc<Snapshot<IfAddrs>>,
    interfaces: Arc<Snapshot<IfTable>>,
    routes: Vec<Arc<dyn Routes>>,
    counters: Arc<ArpCounters>,
    reporter: Reporter,
    ear: Ear,
}

/// Bytes in the shortest Ethernet frame, behind its header.
const SHORTEST: usize = 46;

/// Returns whether a MAC address is a VRRP virtual router's (RFC 5798 section 7.3), whose owner may
/// send from its own address.
fn is_vrrp(mac: MacAddr) -> bool {
    matches!(mac.0, [0x00, 0x00, 0x5e, 0x00, 0x01, _])
}

/// Returns whether the frame was sent by `mac`: its Ethernet header may have up to two tags.
fn is_sender(before: &[u8], mac: MacAddr) -> bool {
    [14, 18, 22].iter().any(|back| {
        let from = before.len().checked_sub(*back).map(|i| i + 6);
        from.and_then(|i| before.get(i..i + 6)) == Some(&mac.0[..])
    })
}

/// Parses a packet and makes the checks that need no configuration.
fn read(p: &PktMut<'_>) -> Result<ArpRepr, Verdict> {
    let arp = ArpView::parse(p.data()).map_err(|e| match e {
        WireError::Truncated { .. } => Verdict::drop(TRUNCATED),
        _ => Verdict::drop(BAD_TYPE),
    })?;
    let arp = arp.repr();
    if matches!(arp.operation, Operation::Other(_)) {
        return Err(Verdict::drop(BAD_OPCODE));
    }
    if !arp.sender_mac.is_unicast() {
        return Err(Verdict::drop(BAD_MAC));
    }
    if !is_vrrp(arp.sender_mac) && !is_sender(p.before(22), arp.sender_mac) {
        return Err(Verdict::drop(MISMATCH));
    }
    Ok(arp)
}

impl ArpInput {
    /// Decides what to do with a valid packet.
    fn decide(&mut self, cx: &mut NodeCx<'_>, rx_if: SwIfIndex, arp: &ArpRepr) -> ArpAction {
        let addrs = self.addrs.load(cx.guard());
        let (sender, target) = (arp.sender_ip, arp.target_ip);
        let is_request = arp.operation == Operation::Request;
        let for_us = addrs.answers_for(rx_if, target);
        // A host that asks for another gets our request, and is not learned: it may be the router
        // itself, by the address that it shares with its host.
        if is_request && !for_us && sender != target && self.is_proxied(cx, rx_if, target) {
            cx.count(PROXIED, 1);
            return ArpAction::Reply;
        }
        if addrs.get(rx_if).is_empty() {
            return ArpAction::Drop(Verdict::drop(NO_ADDRESS));
        }
        if is_request && sender.is_unspecified() {
            cx.count(PROBES, 1);
            // A host that is about to take our address gets a reply, but is not learned.
            return if for_us { ArpAction::Reply } else { ArpAction::not_for_us() };
        }
        if sender.is_unspecified()
            || sender.is_multicast()
            || sender.is_broadcast()
            || sender.is_loopback()
        {
            return ArpAction::Drop(Verdict::drop(BAD_SENDER));
        }
        // Addresses of NAT are as much the router's as the interface's, whatever a host says.
        if addrs.answers_for(rx_if, sender) {
            return ArpAction::Drop(self.own_address(cx, rx_if, arp));
        }
        if !addrs.is_peer(rx_if, sender) {
            let edge = addrs.get(rx_if).iter().any(|a| a.is_edge(sender));
            return ArpAction::Drop(Verdict::drop(if edge { BAD_SENDER } else { NOT_CONNECTED }));
        }
        let (origin, counter) = match () {
            () if sender == target => (Origin::Gratuitous, GRATUITOUS),
            () if is_request => (Origin::Request, REQUESTS),
            () => (Origin::Reply, REPLIES),
        };
        cx.count(counter, 1);
        let for_us = for_us || is_request && self.is_local(cx, rx_if, target);
        if !for_us && origin != Origin::Gratuitous {
            return ArpAction::not_for_us();
        }
        self.learn(cx, rx_if, arp, origin);
        if origin == Origin::Request { ArpAction::Reply } else { ArpAction::Done }
    }

    /// Returns whether the router answers for another host.
    #[cold]
    fn is_proxied(&self, cx: &NodeCx<'_>, rx_if: SwIfIndex, target: Ipv4Addr) -> bool {
        let table = || self.routes.iter().find_map(|r| r.table(cx.guard(), rx_if)).unwrap_or(0);
        self.addrs.load(cx.guard()).is_proxied(rx_if, table, target)
    }

    /// Returns whether a configured route delivers an address to the router.
    #[cold]
    fn is_local(&self, cx: &NodeCx<'_>, rx_if: SwIfIndex, target: Ipv4Addr) -> bool {
        self.routes.iter().any(|r| r.is_local(cx.guard(), rx_if, target.into()))
    }

    /// Handles a packet from one of our addresses: looped back, or sent by another host.
    #[cold]
    fn own_address(&mut self, cx: &mut NodeCx<'_>, rx_if: SwIfIndex, arp: &ArpRepr) -> Verdict {
        if self.interfaces.load(cx.guard()).get(rx_if).mac == arp.sender_mac {
            return Verdict::drop(LOOPED);
        }
        self.reporter.conflict(cx, rx_if, (IpAddr::V4(arp.sender_ip), arp.sender_mac));
        Verdict::drop(CONFLICT)
    }

    /// Reports a sender to the main thread, unless just reported or rate limited.
    fn learn(&mut self, cx: &mut NodeCx<'_>, rx_if: SwIfIndex, arp: &ArpRepr, origin: Origin) {
        let sender = (IpAddr::V4(arp.sender_ip), arp.sender_mac);
        match self.reporter.sender(cx, rx_if, sender, origin) {
            Reported::Sent | Reported::Known => {}
            Reported::Throttled => cx.count(THROTTLED, 1),
            Reported::Busy => cx.count(EVENTS_LOST, 1),
        }
    }

    /// Turns a request into its reply in the same buffer.
    fn reply(&self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>, arp: &ArpRepr) -> Verdict {
        let rx_if = p.rx_if();
        let row = self.interfaces.load(cx.guard()).get(rx_if);
        let (mac, output) = (row.mac, row.output);
        let ether = EthernetRepr { dst: arp.sender_mac, src: mac, ethertype: ethertype::ARP };
        // Nothing else that the request carries goes back, but its padding.
        if p.total_len() > SHORTEST {
            p.truncate(SHORTEST, cx.cache());
        }
        let (room, tags) = (arp.reply(mac).emit(p.data_mut()), row.tags.as_slice());
        let header = p.push(HEADER_LEN + tags.len()).map(|header| {
            // The ethertype comes last, the tags before it.
            header[12..12 + tags.len()].copy_from_slice(tags);
            let (mut plain, at) = ([0; HEADER_LEN], 12 + tags.len());
            let made = ether.emit(&mut plain);
            header[..12].copy_from_slice(&plain[..12]);
            header[at..].copy_from_slice(&plain[12..]);
            made
        });
        if room.is_err() || !matches!(header, Some(Ok(_))) {
            return Verdict::drop(TRUNCATED);
        }
        // The request's checksum offload state does not apply to the reply.
        p.unmark(Flags::OFFLOAD.union(Flags::GROUP));
        p.mark(Flags::LOCAL);
        p.set_tx_if(rx_if);
        cx.count(REPLIES_SENT, 1);
        self.counters.count(cx.worker(), rx_if, Counted::TxReply);
        Verdict::node(output)
    }

    /// Consumes a packet that was only learned from.
    fn done(&self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        if p.flags().contains(Flags::TRACED) {
            let mut text = String::new();
            let _ = fmt::arp(p.data(), &mut text, 0);
            cx.add_trace(p.meta().trace, text);
        }
        let (packet, kept) = cx.take(p);
        cx.deliver(packet);
        kept
    }
}

enum ArpAction {
    Drop(Verdict),
    Reply,
    Done,
}

impl ArpAction {
    fn not_for_us() -> ArpAction {
        ArpAction::Drop(Verdict::drop(NOT_FOR_US))
    }
}

impl Node for ArpInput {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        if let Some(arc) = self.arc
            && let Some(feature) = cx.arcs().first(arc, p.rx_if())
        {
            return Verdict::node(feature);
        }
        let arp = match read(&p) {
            Ok(arp) => arp,
            Err(v) => return v,
        };
        let counted = match arp.operation {
            _ if arp.sender_ip == arp.target_ip => Counted::RxGratuitous,
            Operation::Request => Counted::RxRequest,
            _ => Counted::RxReply,
        };
        self.counters.count(cx.worker(), p.rx_if(), counted);
        if arp.operation == Operation::Reply {
            self.ear.listen(cx, p.rx_if(), arp.sender_ip.into(), arp.sender_mac);
        }
        match self.decide(cx, p.rx_if(), &arp) {
            ArpAction::Drop(v) => v,
            ArpAction::Reply => self.reply(cx, p, &arp),
            ArpAction::Done => self.done(cx, p),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        // A reply begins with its Ethernet header, anything else with ARP.
        let data = frame.data(i);
        let is_arp = ArpView::parse(data).is_ok() || data.len() < HEADER_LEN;
        let _ = fmt::arp(if is_arp { data } else { &data[HEADER_LEN..] }, out, 0);
    }

    fn message(&mut self, _cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.reporter.message(&*message);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, OUR_IP, US, ip, mac, reply};
    use proptest::prelude::*;
    use std::net::Ipv4Addr;
    use thalweg_feat_neighbor::{self as neighbor, Neighbors, Version};
    use thalweg_wire::MacAddr;
    use thalweg_wire::arp::{ArpRepr, Operation};
    use thalweg_wire::build::Packet as Build;

    fn request(m: [u8; 6], from: Ipv4Addr, to: Ipv4Addr) -> ArpRepr {
        ArpRepr::request(MacAddr(m), from, to)
    }

    #[test]
    fn a_request_is_answered_in_place_and_learned_from() {
        let mut b = Bench::new();
        b.request_from(7);
        let sent = b.sent();
        assert_eq!(sent.len(), 1);
        let want =
            Build::arp_reply(MacAddr(US.0), &request(mac(7).0, ip(7), OUR_IP)).padded().build();
        assert_eq!(sent[0], want);
        assert_eq!(b.known(7), Some(mac(7)));
        assert_eq!(b.count("arp-input", "REPLIES_SENT"), 1);
        b.finish();
    }

    #[test]
    fn a_reply_carries_nothing_of_a_long_request() {
        let mut b = Bench::new();
        let mut long = Build::arp_request(MacAddr(mac(7).0), ip(7), OUR_IP).build();
        long.extend([0xaa; 900]);
        b.receive(&long);
        let sent = b.sent();
        assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [60]);
        b.finish();
    }

    #[test]
    fn each_bad_packet_is_dropped_for_its_own_reason() {
        let mut b = Bench::new();
        let group = [1, 0, 0, 0, 0, 7];
        let cases = [
            (request(group, ip(7), OUR_IP), "BAD_MAC"),
            (request([0; 6], ip(7), OUR_IP), "BAD_MAC"),
            (request(mac(7).0, ip(0), OUR_IP), "BAD_SENDER"),
            (request(mac(7).0, ip(255), OUR_IP), "BAD_SENDER"),
            (request(mac(7).0, Ipv4Addr::new(224, 0, 0, 1), OUR_IP), "BAD_SENDER"),
            (reply(mac(7), Ipv4Addr::UNSPECIFIED), "BAD_SENDER"),
            (request(mac(7).0, Ipv4Addr::new(10, 0, 1, 7), OUR_IP), "NOT_CONNECTED"),
            (request(mac(7).0, OUR_IP, OUR_IP), "CONFLICT"),
            (request(US.0, OUR_IP, ip(9)), "LOOPED"),
            (request(mac(7).0, ip(7), ip(9)), "NOT_FOR_US"),
            (request(mac(7).0, Ipv4Addr::UNSPECIFIED, ip(9)), "NOT_FOR_US"),
            (ArpRepr { operation: Operation::Other(3), ..reply(mac(7), ip(7)) }, "BAD_OPCODE"),
        ];
        for (arp, reason) in cases {
            let before = b.count("arp-input", reason);
            b.arp(arp);
            assert_eq!(b.count("arp-input", reason), before + 1, "{reason}: {arp:?}");
        }
        let spoofed = Build::new().ether(MacAddr(mac(8).0), MacAddr::BROADCAST);
        b.receive(&spoofed.arp(request(mac(7).0, ip(7), OUR_IP)).build());
        b.receive(&Build::arp_request(MacAddr(mac(7).0), ip(7), OUR_IP).build()[..41]);
        let mut token_ring = Build::arp_request(MacAddr(mac(7).0), ip(7), OUR_IP).build();
        token_ring[15] = 6;
        b.receive(&token_ring);
        b.settle();
        for reason in ["MISMATCH", "TRUNCATED", "BAD_TYPE"] {
            assert_eq!(b.count("arp-input", reason), 1, "{reason}");
        }
        assert!(b.sent().is_empty() && b.known(7).is_none());
        assert_eq!(b.lab.c.state::<Neighbors>().borrow().stats(Version::V4).conflicts, 1);
        b.finish();
    }

    #[test]
    fn hosts_do_not_get_addresses_that_the_router_answers_for() {
        let mut b = Bench::new();
        b.arp(request(mac(7).0, ip(77), OUR_IP));
        assert_eq!(b.known(77), Some(mac(7)));
        crate::answer_for_these(&mut b.lab.c, &[(0, ip(78), true)]);
        crate::set_labels(&mut b.lab.c, b.sw_if, &[7]);
        crate::answer_at(&mut b.lab.c, &[(0, 7, true)]);
        b.arp(request(mac(8).0, ip(78), OUR_IP));
        b.arp(reply(mac(8), ip(78)));
        b.arp(request(US.0, ip(78), ip(9)));
        assert_eq!(b.known(78), None);
        assert_eq!((b.count("arp-input", "CONFLICT"), b.count("arp-input", "LOOPED")), (2, 1));
        crate::answer_for_none(&mut b.lab.c);
        b.arp(request(mac(8).0, ip(78), OUR_IP));
        assert_eq!(b.known(78), Some(mac(8)));
        b.finish();
    }

    #[test]
    fn without_an_address_nothing_is_answered() {
        let mut b = Bench::new();
        crate::set_addresses(&mut b.lab.c, b.sw_if, &[]);
        b.request_from(7);
        assert!(b.sent().is_empty() && b.known(7).is_none());
        assert_eq!(b.count("arp-input", "NO_ADDRESS"), 1);
        b.finish();
    }

    #[test]
    fn a_probe_for_our_address_hears_of_us_and_is_not_learned() {
        let mut b = Bench::new();
        b.arp(request(mac(7).0, Ipv4Addr::UNSPECIFIED, OUR_IP));
        let sent = b.sent_arp();
        assert_eq!(sent.len(), 1);
        assert_eq!((sent[0].1.sender_ip, sent[0].0), (OUR_IP, mac(7)));
        assert!(b.lab.c.state::<Neighbors>().borrow().is_empty());
        b.finish();
    }

    #[test]
    fn announcements_update_only_known_neighbours() {
        let mut b = Bench::new();
        b.arp(request(mac(7).0, ip(7), ip(7)));
        assert_eq!(b.known(7), None);
        b.request_from(7);
        b.arp(request(mac(8).0, ip(7), ip(7)));
        assert_eq!(b.known(7), Some(mac(8)));
        assert_eq!(b.count("arp-input", "GRATUITOUS"), 2);
        b.finish();
    }

    #[test]
    fn tags_before_the_packet_do_not_hide_its_sender() {
        let m = MacAddr([2, 3, 4, 5, 6, 7]);
        for tags in 0..3 {
            let mut before = vec![0u8; 6];
            before.extend(m.0);
            before.extend(vec![0x81; 4 * tags]);
            before.extend([8, 6]);
            assert!(super::is_sender(&before, m));
            assert!(!super::is_sender(&before, MacAddr([2, 3, 4, 5, 6, 8])));
        }
        assert!(!super::is_sender(&[2; 5], m));
    }

    #[test]
    fn a_virtual_router_may_send_from_its_own_address() {
        let mut b = Bench::new();
        let vrrp = [0, 0, 0x5e, 0, 1, 9];
        let frame = Build::new().ether(MacAddr(mac(8).0), MacAddr::BROADCAST);
        b.receive(&frame.arp(request(vrrp, ip(7), OUR_IP)).build());
        b.settle();
        assert_eq!(b.known(7), Some(MacAddr(vrrp)));
        b.finish();
    }

    #[test]
    fn an_unchanged_sender_is_reported_once_a_second() {
        let mut b = Bench::new();
        for _ in 0..50 {
            b.receive(&Build::arp_request(MacAddr(mac(7).0), ip(7), OUR_IP).build());
        }
        b.settle();
        assert_eq!(b.count("arp-input", "REPLIES_SENT"), 50);
        // Once flushed, the sender is reported again at once.
        neighbor::flush(&mut b.lab.c, None, None);
        b.lab.c.sync();
        b.request_from(7);
        assert_eq!(b.known(7), Some(mac(7)));
        b.finish();
    }

    #[test]
    fn traces_show_the_answer_and_what_was_learned() {
        let mut b = Bench::new();
        let (sw_if, flood) = (b.sw_if, b.lab.c.node("flood").unwrap());
        b.lab.c.ask(move |core| core.trace_add(flood, 1, None));
        crate::set_addresses(&mut b.lab.c, sw_if, &[(OUR_IP, 8)]);
        b.lab.c.message_all(flood, |_| Box::new((sw_if, 1u32)));
        b.settle();
        let traces = b.lab.c.ask(|core| core.traces()).remove(0).unwrap();
        let arp = b.lab.c.node("arp-input");
        let text = &traces[0].steps.iter().find(|s| Some(s.node) == arp).unwrap().text;
        assert!(text.starts_with("reply, type ethernet/IP4"), "{text}");
        b.finish();
    }

    /// Bytes of every length, and requests with a few bytes changed.
    fn mangled() -> impl Strategy<Value = Vec<u8>> {
        let whole = Build::arp_request(MacAddr(mac(7).0), ip(7), OUR_IP).build();
        let flips = prop::collection::vec((0usize..42, any::<u8>()), 0..4);
        let near = (flips, 0usize..=42).prop_map(move |(flips, len)| {
            let mut f = whole.clone();
            flips.iter().for_each(|(at, v)| f[*at] = *v);
            f.truncate(len);
            f
        });
        prop_oneof![near, prop::collection::vec(any::<u8>(), 0..80)]
    }

    #[test]
    fn any_bytes_end_in_one_place() {
        let mut b = Bench::new();
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(2000));
        let bench = std::cell::RefCell::new(&mut b);
        runner
            .run(&mangled(), |frame| {
                bench.borrow_mut().receive(&frame);
                Ok(())
            })
            .unwrap();
        b.settle();
        let t = b.lab.c.worker_stats(0).clone();
        let ended = t.totals.tx.get() + t.totals.delivered.get() + t.totals.dropped.get();
        assert_eq!(ended, t.totals.rx.get() + t.totals.originated.get());
        b.finish();
    }
}
