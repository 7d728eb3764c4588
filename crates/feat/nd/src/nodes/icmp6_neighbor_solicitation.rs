//! `icmp6-neighbor-solicitation`: answers solicitations of our addresses, and reports their senders
//! to the main thread (RFC 4861 section 7.2.3; tentative addresses as in RFC 4862 section 5.4).
//!
//! Reads: rx interface, the Ethernet header before the packet. The advertisement is a packet of its
//! own, to the rx interface's output; the solicitation ends here.

use crate::addrs::IfAddrs;
use crate::asker::Asker;
use crate::counters::Counted;
use crate::message::{self, Faults, Receive, Receiver};
use crate::packet::{ALL_NODES, Advertisement};
use crate::reports::UsedReporter;
use std::any::Any;
use std::net::{IpAddr, Ipv6Addr};
use thalweg_buffer::PktMut;
use thalweg_device::SwIfIndex;
use thalweg_feat_neighbor::{Origin, Reported, Reporter};
use thalweg_graph::{Built, NodeCx, NodeDecl, Verdict};
use thalweg_wire::MacAddr;
use thalweg_wire::nd::{Message, flag, solicited_node};

thalweg_graph::errors! {
    SENT: Info, UNKNOWN, "neighbor advertisements sent";
    THROTTLED: Warning, UNKNOWN, "neighbor solicitation senders not learned: rate limit";
    EVENTS_LOST: Warning, UNKNOWN, "neighbor solicitation senders not learned: main thread busy";
    HOP_LIMIT: Error, IPV6_NDISC_HOP_LIMIT, "neighbor solicitation with a hop limit below 255";
    CODE: Error, IPV6_NDISC_BAD_CODE, "neighbor solicitation with a code";
    FRAGMENT: Error, IPV6_NDISC_FRAG, "neighbor solicitation in a fragment";
    LENGTH: Error, IPV6_NDISC_BAD_OPTIONS, "neighbor solicitation too short, or with malformed options";
    LABELS: Error, IPV6_NDISC_HOP_LIMIT, "neighbor solicitation behind labels";
    BAD_TARGET: Error, ICMP_PARSING, "neighbor solicitation of a multicast address";
    BAD_PROBE: Error, ICMP_PARSING, "neighbor solicitation without source, not to a group or with an option";
    BAD_MAC: Error, SRC_MAC_IS_MULTICAST, "neighbor solicitation with a MAC address that is not unicast";
    NOT_CONNECTED: Error, UC_REVERSE_PATH_FORWARDING, "neighbor solicitations from source not on link";
    UNKNOWN: Info, UNKNOWN, "neighbor solicitations for unknown targets";
    CONFLICT: Error, UNKNOWN, "IP6 source address matches local interface";
    TENTATIVE: Info, UNKNOWN, "neighbor solicitations for an address that is still being tested";
    NO_BUFFER: Warning, NO_BUFFER_SPACE, "neighbor advertisements not sent: no buffer";
}

/// Faults of messages of any kind.
const FAULTS: Faults =
    Faults { hop_limit: HOP_LIMIT, code: CODE, fragment: FRAGMENT, length: LENGTH, labels: LABELS };

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "icmp6-neighbor-solicitation",
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let (asker, reporter) = (Asker::new(cx), Reporter::new(cx));
        Built::node(Receiver(Solicitation { asker, reporter, used: UsedReporter::new(cx) }))
    },
    ..NodeDecl::DEFAULT
};

struct Solicitation {
    asker: Asker,
    reporter: Reporter,
    used: UsedReporter,
}

/// A valid solicitation.
#[derive(Clone, Copy, Debug)]
struct Asked {
    src: Ipv6Addr,
    target: Ipv6Addr,
    /// MAC address that the sender has named.
    named: Option<MacAddr>,
    /// MAC address to answer.
    answer: MacAddr,
    /// MAC address that the frame came from.
    frame: Option<MacAddr>,
}

/// Makes the checks that need no configuration (RFC 4861 section 7.1.1).
fn read(p: &PktMut<'_>) -> Result<Asked, Verdict> {
    let received = message::read(p).map_err(|fault| fault.drops(FAULTS))?;
    let Message::NeighborSolicitation { target, .. } = received.message else {
        return Err(Verdict::drop(LENGTH));
    };
    let (src, named) = (received.src, received.message.link_layer());
    if target.is_multicast() {
        return Err(Verdict::drop(BAD_TARGET));
    }
    if src.is_unspecified() && (received.dst != solicited_node(target) || named.is_some()) {
        return Err(Verdict::drop(BAD_PROBE));
    }
    if named.is_some_and(|mac| !mac.is_unicast()) {
        return Err(Verdict::drop(BAD_MAC));
    }
    let answer = match src.is_unspecified() {
        true => Some(MacAddr::from_ipv6_multicast(ALL_NODES)),
        false => named.or_else(|| message::frame_source(p)),
    };
    let Some(answer) = answer else { return Err(Verdict::drop(BAD_MAC)) };
    Ok(Asked { src, target, named, answer, frame: message::frame_source(p) })
}

impl Solicitation {
    /// Learns the sender, and answers; returns why the packet is dropped, if it is.
    fn handle(
        &mut self,
        cx: &mut NodeCx<'_>,
        rx_if: SwIfIndex,
        asked: Asked,
    ) -> Result<(), Verdict> {
        let Asked { src, target, named, answer, frame } = asked;
        let addrs: &IfAddrs = self.asker.addrs.load(cx.guard());
        if !src.is_unspecified() {
            if addrs.is_own(rx_if, src) {
                let mac = named.unwrap_or(answer);
                if self.asker.interfaces.load(cx.guard()).get(rx_if).mac != mac {
                    self.reporter.conflict(cx, rx_if, (IpAddr::V6(src), mac));
                }
                return Err(Verdict::drop(CONFLICT));
            }
            if !addrs.is_peer(rx_if, src) {
                return Err(Verdict::drop(NOT_CONNECTED));
            }
            if let Some(mac) = named {
                match self.reporter.sender(cx, rx_if, (IpAddr::V6(src), mac), Origin::Request) {
                    Reported::Sent | Reported::Known => {}
                    Reported::Throttled => cx.count(THROTTLED, 1),
                    Reported::Busy => cx.count(EVENTS_LOST, 1),
                }
            }
        }
        if addrs.is_tentative(rx_if, target) {
            let own = self.asker.interfaces.load(cx.guard()).get(rx_if).mac;
            // Another host tests it, too; or it is our own question that came back.
            if let Some(mac) = frame.filter(|mac| src.is_unspecified() && *mac != own) {
                self.used.report(cx, rx_if, target, mac);
            }
            return Err(Verdict::drop(TENTATIVE));
        }
        let is_own = addrs.is_own(rx_if, target);
        if !is_own && !addrs.is_proxied(rx_if, target) {
            return Err(Verdict::drop(UNKNOWN));
        }
        let mac = self.asker.interfaces.load(cx.guard()).get(rx_if).mac;
        // An answer to nobody in particular is to all, and not solicited.
        let (dst, solicited) = match src.is_unspecified() {
            true => (ALL_NODES, 0),
            false => (src, flag::SOLICITED),
        };
        // A host with a proxy may answer itself (RFC 4861 section 7.2.8).
        let own = if is_own { flag::OVERRIDE } else { 0 };
        let router = if is_own && addrs.is_router(rx_if) { flag::ROUTER } else { 0 };
        let source = match is_own {
            true => Some(target),
            false => addrs.link_local(rx_if).filter(|ip| addrs.is_usable(rx_if, *ip)),
        };
        let Some(source) = source else { return Err(Verdict::drop(UNKNOWN)) };
        let flags = solicited | own | router;
        let answer = Advertisement { mac, target, src: source, dst, dst_mac: answer, flags };
        if self.asker.send(cx, rx_if, &answer.frame(), Counted::TxReply) {
            cx.count(SENT, 1);
        } else {
            cx.count(NO_BUFFER, 1);
        }
        Ok(())
    }
}

impl Receive for Solicitation {
    fn receive(&mut self, cx: &mut NodeCx<'_>, p: &PktMut<'_>) -> Result<(), Verdict> {
        self.asker.counters.count(cx.worker(), p.rx_if(), Counted::RxRequest);
        let asked = read(p)?;
        self.handle(cx, p.rx_if(), asked)
    }

    fn message(&mut self, message: &(dyn Any + Send)) {
        self.reporter.message(message);
    }
}
