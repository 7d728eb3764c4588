//! `icmp6-neighbor-advertisement`: reports advertised neighbours to the main thread (RFC 4861
//! section 7.2.5).
//!
//! Reads: rx interface. The packet ends here.

use crate::asker::Asker;
use crate::counters::Counted;
use crate::message::{self, Faults, Receive, Receiver};
use crate::reports::UsedReporter;
use std::any::Any;
use std::net::IpAddr;
use thalweg_buffer::PktMut;
use thalweg_feat_neighbor::arping::Ear;
use thalweg_feat_neighbor::{Origin, Reported, Reporter};
use thalweg_graph::{Built, NodeCx, NodeDecl, Verdict};
use thalweg_wire::nd::{Message, flag};

thalweg_graph::errors! {
    RECEIVED: Info, UNKNOWN, "neighbor advertisements received";
    THROTTLED: Warning, UNKNOWN, "neighbor advertisements not learned: rate limit";
    EVENTS_LOST: Warning, UNKNOWN, "neighbor advertisements not learned: main thread busy";
    HOP_LIMIT: Error, IPV6_NDISC_HOP_LIMIT, "neighbor advertisement with a hop limit below 255";
    CODE: Error, IPV6_NDISC_BAD_CODE, "neighbor advertisement with a code";
    FRAGMENT: Error, IPV6_NDISC_FRAG, "neighbor advertisement in a fragment";
    LENGTH: Error, IPV6_NDISC_BAD_OPTIONS, "neighbor advertisement too short, or with malformed options";
    LABELS: Error, IPV6_NDISC_HOP_LIMIT, "neighbor advertisement behind labels";
    BAD_TARGET: Error, ICMP_PARSING, "neighbor advertisement of a multicast address, or solicited by all";
    BAD_MAC: Error, SRC_MAC_IS_MULTICAST, "neighbor advertisement with a MAC address that is not unicast";
    NOT_CONNECTED: Error, UC_REVERSE_PATH_FORWARDING, "neighbor advertisement of an address not on link";
    CONFLICT: Error, UNKNOWN, "neighbor advertisement of our own address";
    TENTATIVE: Error, UNKNOWN, "neighbor advertisement of an address that we test";
}

/// Faults of messages of any kind.
const FAULTS: Faults =
    Faults { hop_limit: HOP_LIMIT, code: CODE, fragment: FRAGMENT, length: LENGTH, labels: LABELS };

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "icmp6-neighbor-advertisement",
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let (asker, reporter) = (Asker::new(cx), Reporter::new(cx));
        let (used, ear) = (UsedReporter::new(cx), Ear::new(cx));
        Built::node(Receiver(NeighborAdvertisement { asker, reporter, used, ear }))
    },
    ..NodeDecl::DEFAULT
};

struct NeighborAdvertisement {
    asker: Asker,
    reporter: Reporter,
    used: UsedReporter,
    ear: Ear,
}

impl Receive for NeighborAdvertisement {
    fn receive(&mut self, cx: &mut NodeCx<'_>, p: &PktMut<'_>) -> Result<(), Verdict> {
        self.asker.counters.count(cx.worker(), p.rx_if(), Counted::RxReply);
        let received = message::read(p).map_err(|fault| fault.drops(FAULTS))?;
        let Message::NeighborAdvertisement { flags, target, .. } = received.message else {
            return Err(Verdict::drop(LENGTH));
        };
        let solicited = flags & flag::SOLICITED != 0;
        // RFC 4861 section 7.1.2.
        if target.is_multicast() || solicited && received.dst.is_multicast() {
            return Err(Verdict::drop(BAD_TARGET));
        }
        let rx_if = p.rx_if();
        let named = received.message.link_layer();
        // A neighbour that answers a unicast solicitation need not name its address.
        let mac = named.or_else(|| message::frame_source(p)).filter(|mac| mac.is_unicast());
        let Some(mac) = mac else { return Err(Verdict::drop(BAD_MAC)) };
        self.ear.listen(cx, rx_if, IpAddr::V6(target), mac);
        let addrs = self.asker.addrs.load(cx.guard());
        if addrs.is_tentative(rx_if, target) {
            if self.asker.interfaces.load(cx.guard()).get(rx_if).mac != mac {
                self.used.report(cx, rx_if, target, mac);
            }
            return Err(Verdict::drop(TENTATIVE));
        }
        if addrs.is_own(rx_if, target) {
            if self.asker.interfaces.load(cx.guard()).get(rx_if).mac != mac {
                self.reporter.conflict(cx, rx_if, (IpAddr::V6(target), mac));
            }
            return Err(Verdict::drop(CONFLICT));
        }
        if !addrs.is_peer(rx_if, target) {
            return Err(Verdict::drop(NOT_CONNECTED));
        }
        cx.count(RECEIVED, 1);
        let origin = if solicited { Origin::Reply } else { Origin::Gratuitous };
        match self.reporter.sender(cx, rx_if, (IpAddr::V6(target), mac), origin) {
            Reported::Sent | Reported::Known => {}
            Reported::Throttled => cx.count(THROTTLED, 1),
            Reported::Busy => cx.count(EVENTS_LOST, 1),
        }
        Ok(())
    }

    fn message(&mut self, message: &(dyn Any + Send)) {
        self.reporter.message(message);
    }
}
