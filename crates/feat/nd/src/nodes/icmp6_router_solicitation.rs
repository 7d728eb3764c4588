//! `icmp6-router-solicitation`: reports hosts that ask for routers, on interfaces on which the
//! router advertises itself, to the main thread, which answers (RFC 4861 section 6.2.6).
//!
//! Reads: rx interface, the Ethernet header before the packet. The packet ends here.

use crate::asker::Asker;
use crate::message::{self, Faults, Receive, Receiver};
use crate::reports::SolicitedReporter;
use std::any::Any;
use std::net::IpAddr;
use thalweg_buffer::PktMut;
use thalweg_feat_neighbor::{Origin, Reporter};
use thalweg_graph::{Built, NodeCx, NodeDecl, Verdict};
use thalweg_wire::nd::Message;

thalweg_graph::errors! {
    RECEIVED: Info, UNKNOWN, "router solicitations received";
    THROTTLED: Warning, UNKNOWN, "router solicitations not answered: rate limit";
    EVENTS_LOST: Warning, UNKNOWN, "router solicitations not answered: main thread busy";
    NOT_CONFIGURED: Info, UNKNOWN, "router solicitation where no advertisements are sent";
    HOP_LIMIT: Error, IPV6_NDISC_HOP_LIMIT, "router solicitation with a hop limit below 255";
    CODE: Error, IPV6_NDISC_BAD_CODE, "router solicitation with a code";
    FRAGMENT: Error, IPV6_NDISC_FRAG, "router solicitation in a fragment";
    LENGTH: Error, IPV6_NDISC_BAD_OPTIONS, "router solicitation too short, or with malformed options";
    LABELS: Error, IPV6_NDISC_HOP_LIMIT, "router solicitation behind labels";
    BAD_SOURCE: Error, ICMP_PARSING, "router solicitation without source that names a MAC address";
    BAD_MAC: Error, SRC_MAC_IS_MULTICAST, "router solicitation with a MAC address that is not unicast";
    NOT_CONNECTED: Error, UC_REVERSE_PATH_FORWARDING, "router solicitations from source not on link";
}

/// Faults of messages of any kind.
const FAULTS: Faults =
    Faults { hop_limit: HOP_LIMIT, code: CODE, fragment: FRAGMENT, length: LENGTH, labels: LABELS };

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "icmp6-router-solicitation",
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let (asker, reporter) = (Asker::new(cx), Reporter::new(cx));
        Built::node(Receiver(RouterSolicitation {
            asker,
            reporter,
            solicited: SolicitedReporter::new(cx),
        }))
    },
    ..NodeDecl::DEFAULT
};

struct RouterSolicitation {
    asker: Asker,
    reporter: Reporter,
    solicited: SolicitedReporter,
}

impl Receive for RouterSolicitation {
    fn receive(&mut self, cx: &mut NodeCx<'_>, p: &PktMut<'_>) -> Result<(), Verdict> {
        let received = message::read(p).map_err(|fault| fault.drops(FAULTS))?;
        let Message::RouterSolicitation { .. } = received.message else {
            return Err(Verdict::drop(LENGTH));
        };
        let (src, rx_if) = (received.src, p.rx_if());
        let named = received.message.link_layer();
        if src.is_unspecified() && named.is_some() {
            return Err(Verdict::drop(BAD_SOURCE));
        }
        let addrs = self.asker.addrs.load(cx.guard());
        if !src.is_unspecified() && !addrs.is_peer(rx_if, src) {
            return Err(Verdict::drop(NOT_CONNECTED));
        }
        if !addrs.is_router(rx_if) {
            return Err(Verdict::drop(NOT_CONFIGURED));
        }
        let mac = named.or_else(|| message::frame_source(p)).filter(|mac| mac.is_unicast());
        let Some(mac) = mac else { return Err(Verdict::drop(BAD_MAC)) };
        cx.count(RECEIVED, 1);
        if named.is_some() {
            // The host is answered even if it is not learned.
            self.reporter.sender(cx, rx_if, (IpAddr::V6(src), mac), Origin::Request);
        }
        self.solicited.report(cx, rx_if, src, mac).count(cx, THROTTLED, EVENTS_LOST);
        Ok(())
    }

    fn message(&mut self, message: &(dyn Any + Send)) {
        self.reporter.message(message);
    }
}
