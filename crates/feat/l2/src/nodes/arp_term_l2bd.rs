//! `arp-term-l2bd`: answers ARP requests and neighbour solicitations for hosts that a bridge domain
//! is configured to answer for, instead of flooding them.
//!
//! Reads: rx interface, the frame. Writes: tx interface, for sub-interfaces. Next: the port's own
//! output node, for questions that were turned into answers in place; otherwise the node that
//! `l2-fwd` would choose, or `l2-uu-fwd` for ARP if the bridge domain passes that to one port.

use crate::L2Table;
use crate::arp_term::{self, ArpTable, ArpTopic};
use crate::bridges::PortFlags;
use crate::trace::addresses;
use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;
use thalweg_buffer::{Flags, Frame, LOCAL_IF, PktMut};
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Topic, Verdict, clock};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::arp::{ArpRepr, ArpView, Operation};
use thalweg_wire::ethernet::{EthernetRepr, EthernetView, HEADER_LEN, ethertype};
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{Ipv6Repr, Ipv6View};
use thalweg_wire::{ipv6, nd};

thalweg_graph::next_nodes! { FLOOD => "l2-flood", UU_FWD => "l2-uu-fwd" }
thalweg_graph::errors! {
    REPLIES: Info, UNKNOWN, "ARP and ND replies sent";
    EVENTS_LOST: Warning, UNKNOWN, "hosts not reported: main thread busy";
    NO_FLOOD: Error, DMAC_FILTER, "flooding disabled";
    NO_BRIDGE: Error, UNKNOWN_L2, "no bridge domain";
    MISMATCH: Error, UNKNOWN, "ARP hw addr does not match L2 frame src addr";
    GONE: Error, PORT_LIST_IS_EMPTY, "port has left the bridge domain";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "arp-term-l2bd",
    errors: ERRORS,
    next: NEXT_NODES,
    build: |cx| {
        Built::node(ArpTerm {
            table: cx.shared(),
            hosts: cx.shared(),
            topic: cx.shared::<ArpTopic>().0,
            reported: Box::new([None; REPORT_SLOTS]),
            pause: clock::ticks_in(REPORT_INTERVAL),
        })
    },
    ..NodeDecl::DEFAULT
};

/// Reports remembered, so that a host that keeps asking makes few of them.
const REPORT_SLOTS: usize = 256;
/// Minimum interval between reports of the same host.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// A host that asks: its addresses and port.
type Host = (IpAddr, MacAddr, SwIfIndex);

struct ArpTerm {
    table: Arc<Snapshot<L2Table>>,
    hosts: Arc<Snapshot<ArpTable>>,
    topic: Topic,
    reported: Box<[Option<(Host, u64)>; REPORT_SLOTS]>,
    /// `REPORT_INTERVAL` in ticks.
    pause: u64,
}

/// A frame that asks for the MAC address of a host, or says what the sender's is.
enum Question {
    Arp(ArpRepr),
    Solicitation { sender: Ipv6Addr, mac: MacAddr, target: Ipv6Addr },
}

impl Question {
    /// Reads a frame; `None` if it is something else.
    fn read(data: &[u8]) -> Option<Question> {
        let frame = EthernetView::parse(data).ok()?;
        match frame.ethertype() {
            ethertype::ARP => ArpView::parse(frame.payload()).ok().map(|a| Self::Arp(a.repr())),
            ethertype::IPV6 => {
                let ip = Ipv6View::parse(frame.payload()).ok()?;
                if ip.next_header() != protocol::ICMPV6 || ip.hop_limit() != nd::HOP_LIMIT {
                    return None;
                }
                let icmp = Icmp6View::parse(ip.payload()).ok()?;
                if icmp.code() != 0 || !icmp.checksum_ok(&ip.src(), &ip.dst()) {
                    return None;
                }
                let message = nd::Message::parse(&icmp)?.ok()?;
                let (nd::Message::NeighborSolicitation { target, .. }, Some(mac)) =
                    (message, message.link_layer())
                else {
                    return None;
                };
                // Detection of duplicates has neither, and concerns all.
                let sender = ip.src();
                // An answer to a group address would reach all.
                let is_host =
                    !sender.is_unspecified() && !sender.is_multicast() && mac.is_unicast();
                is_host.then_some(Self::Solicitation { sender, mac, target })
            }
            _ => None,
        }
    }

    /// Returns the host that asks, if others may learn of it.
    fn sender(&self) -> Option<(IpAddr, MacAddr)> {
        match *self {
            Question::Arp(arp) if arp.sender_ip.is_unspecified() => None,
            Question::Arp(arp) => Some((arp.sender_ip.into(), arp.sender_mac)),
            Question::Solicitation { sender, .. } if sender.is_unicast_link_local() => None,
            Question::Solicitation { sender, mac, .. } => Some((sender.into(), mac)),
        }
    }

    /// Returns the address that is asked for; announcements and answers ask for none.
    fn target(&self) -> Option<IpAddr> {
        match *self {
            Question::Arp(arp) => (arp.operation == Operation::Request
                && arp.sender_ip != arp.target_ip)
                .then_some(arp.target_ip.into()),
            Question::Solicitation { target, .. } => Some(target.into()),
        }
    }

    /// Writes the answer into a frame that has asked; returns its length.
    fn answer(&self, mac: MacAddr, data: &mut [u8]) -> Option<usize> {
        let ether = |dst, ethertype| EthernetRepr { dst, src: mac, ethertype };
        match *self {
            Question::Arp(arp) => {
                ether(arp.sender_mac, ethertype::ARP).emit(data).ok()?;
                arp.reply(mac).emit(data.get_mut(HEADER_LEN..)?).ok()?;
                // Nothing else that the request carries goes back, but its padding.
                Some(data.len().min(SHORTEST))
            }
            Question::Solicitation { sender, mac: to, target } => {
                ether(to, ethertype::IPV6).emit(data).ok()?;
                let len = nd::MESSAGE_LEN as u16;
                let ip = Ipv6Repr {
                    hop_limit: nd::HOP_LIMIT,
                    ..Ipv6Repr::new(target, sender, protocol::ICMPV6, len)
                };
                ip.emit(data.get_mut(HEADER_LEN..)?).ok()?;
                let message = data.get_mut(HEADER_LEN + ipv6::HEADER_LEN..)?;
                let flags = nd::flag::SOLICITED | nd::flag::OVERRIDE;
                let len =
                    nd::emit_advertisement(&target, &sender, flags, target, mac, message).ok()?;
                Some(HEADER_LEN + ipv6::HEADER_LEN + len)
            }
        }
    }
}

/// Bytes in the shortest Ethernet frame.
const SHORTEST: usize = 60;

/// Returns whether a MAC address is a VRRP virtual router's (RFC 5798 section 7.3), whose owner may
/// send from its own address.
fn is_vrrp(mac: MacAddr) -> bool {
    matches!(mac.0, [0x00, 0x00, 0x5e, 0x00, 0x01, _])
}

impl ArpTerm {
    /// Reports who asks to the main thread, unless just reported.
    #[cold]
    fn report(&mut self, cx: &mut NodeCx<'_>, host: Host) {
        let now = cx.now();
        let (ip, mac, port) = host;
        let slot = mac.0[5] ^ mac.0[4].rotate_left(3) ^ port.get() as u8;
        let last = &mut self.reported[usize::from(slot) % REPORT_SLOTS];
        let is_recent = |(was, at): (Host, u64)| was == host && now.wrapping_sub(at) < self.pause;
        if last.is_some_and(is_recent) {
            return;
        }
        match cx.event_if_room(arp_term::event(self.topic, ip, mac, port, now)) {
            true => *last = Some((host, now)),
            false => cx.count(EVENTS_LOST, 1),
        }
    }

    /// Sends a frame on that is not answered.
    fn pass(&self, cx: &NodeCx<'_>, rx_if: SwIfIndex, is_arp: bool) -> Verdict {
        let table = self.table.load(cx.guard());
        let port = table.port(rx_if);
        let bridge = table.bridge(port.bridge);
        match bridge.flood && port.flags.has(PortFlags::FLOOD) {
            _ if is_arp && bridge.arp_forward && bridge.unknown.is_some() => UU_FWD,
            true => FLOOD,
            false => Verdict::drop(NO_FLOOD),
        }
    }
}

impl Node for ArpTerm {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let rx_if = p.rx_if();
        let (port, answers, is_bvi, watched) = {
            let (table, hosts) = (self.table.load(cx.guard()), self.hosts.load(cx.guard()));
            let port = table.port(rx_if);
            let answers = table.bridge(port.bridge).arp_answer;
            let answers = answers && port.flags.has(PortFlags::ARP_TERM);
            (port, answers, table.is_bvi(port), hosts.watched)
        };
        if port.bridge == 0 {
            return Verdict::drop(NO_BRIDGE);
        }
        let Some(question) = Question::read(p.data()) else {
            return self.pass(cx, rx_if, false);
        };
        let is_arp = matches!(question, Question::Arp(_));
        // Ports of a split horizon group lead to other bridges, which answer for themselves.
        if !answers || port.group != 0 || is_bvi {
            return self.pass(cx, rx_if, is_arp);
        }
        if let Question::Arp(arp) = question
            && p.data().get(6..12) != Some(&arp.sender_mac.0[..])
            && !is_vrrp(arp.sender_mac)
        {
            return Verdict::drop(MISMATCH);
        }
        if watched && let Some((ip, mac)) = question.sender() {
            self.report(cx, (ip, mac, rx_if));
        }
        let known =
            question.target().and_then(|ip| self.hosts.load(cx.guard()).find(port.bridge, ip));
        let Some(mac) = known else { return self.pass(cx, rx_if, is_arp) };
        let Some(output) = port.output else { return Verdict::drop(GONE) };
        if let Some(dst) = p.data().first_chunk::<6>().copied() {
            cx.stats().interface(rx_if).received_by_group(dst, p.total_len() as u64);
        }
        let Some(len) = question.answer(mac, p.data_mut()) else {
            return self.pass(cx, rx_if, is_arp);
        };
        if len < p.len() {
            p.truncate(len, cx.cache());
        }
        // Offloads of the question do not apply to the answer.
        p.unmark(Flags::OFFLOAD.union(Flags::GROUP));
        p.mark(Flags::LOCAL);
        if port.sender != LOCAL_IF {
            p.set_tx_if(port.sender);
        }
        cx.count(REPLIES, 1);
        Verdict::node(output)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let rx = interface_token(frame.rx_if(i));
        let _ = writeln!(out, "arp-term-l2bd: {rx} {}", addresses(frame, i));
    }
}
