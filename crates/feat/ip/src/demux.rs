//! The nodes for packets to the router itself: they go to the node that takes their protocol or
//! UDP port, are punted if a feature wants them, or are refused.

use crate::Version;
use crate::link::Packets;
use crate::local::{self, Takers};
use std::fmt::Write;
use std::marker::PhantomData;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_engine::punt::{self, Class, Punt, Reason, ReasonDecl};
use thalweg_graph::{ArcId, BuildCx, Built, Control, Node, NodeCx, Verdict};
use thalweg_tables::Address;
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ip::protocol;

/// Reason why local packets of a version are punted.
pub struct Reasons<A> {
    /// No node takes the IP protocol.
    unknown_protocol: Reason,
    /// No node takes the UDP port.
    no_udp_listener: Reason,
    /// No node takes TCP.
    no_tcp_listener: Reason,
    /// An ICMP message other than those that the router handles itself.
    pub icmp_message: Reason,
    version: PhantomData<fn(A)>,
}

/// A reason, with the packets that a feature gets by it per second and worker, and at once.
const fn reason(from: &'static str, name: &'static str) -> ReasonDecl {
    ReasonDecl { name, from, class: Class::Host, rate: 10_000, burst: 1_000 }
}

static IP4: [ReasonDecl; 4] = [
    reason("ip4", "ip4-unknown-protocol"),
    reason("ip4", "ip4-no-udp-listener"),
    reason("ip4", "ip4-no-tcp-listener"),
    reason("ip4", "ip4-icmp-message"),
];
static IP6: [ReasonDecl; 4] = [
    reason("ip6", "ip6-unknown-protocol"),
    reason("ip6", "ip6-no-udp-listener"),
    reason("ip6", "ip6-no-tcp-listener"),
    reason("ip6", "ip6-icmp-message"),
];

/// Adds the reasons. For the version's feature, in its `init`.
pub fn init<A: Address>(c: &mut Control) {
    let decls = match Version::of::<A>() {
        Version::V4 => &IP4,
        Version::V6 => &IP6,
    };
    let [unknown_protocol, no_udp_listener, no_tcp_listener, icmp_message] =
        decls.each_ref().map(|decl| punt::add(c, decl));
    c.share(Arc::new(Reasons::<A> {
        unknown_protocol,
        no_udp_listener,
        no_tcp_listener,
        icmp_message,
        version: PhantomData,
    }));
}

/// A packet's transport: its protocol, and where it begins and ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transport {
    /// Number of the protocol.
    pub protocol: u8,
    /// Offset of the first byte.
    pub at: usize,
    /// Offset of the byte after the last one of the first segment.
    pub end: usize,
}

/// Constants of a version's local packets. Verdicts and drop reasons are those of its node for
/// them: the first ones, which [`EndOfArc`] has too, except fragments.
pub trait Local: Packets {
    /// Number of the version's ICMP.
    const ICMP: u8;
    /// Verdict of ICMP messages: their node.
    const TO_ICMP: Verdict;
    /// Verdict of punted packets: their node.
    const PUNT: Verdict;

    /// Passes a packet that is whole.
    ///
    /// # Errors
    /// The verdict of a fragment, or of a packet that cannot be read.
    fn whole(packet: &[u8]) -> Result<(), Verdict>;

    /// Finds the transport of a packet.
    ///
    /// # Errors
    /// The verdict of a packet that cannot be read, or must not be accepted.
    fn transport(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>) -> Result<Transport, Verdict>;

    /// Finds the port that a datagram is for.
    ///
    /// # Errors
    /// The verdict of one whose length or checksum is wrong.
    fn udp_port(
        cx: &mut NodeCx<'_>,
        p: &mut PktMut<'_>,
        transport: Transport,
    ) -> Result<u16, Verdict>;

    /// Refuses a packet that nobody takes.
    fn refuse(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, transport: Transport) -> Verdict;
}

/// Finds the node for a packet to the router itself.
struct Demux<V: Local> {
    takers: Arc<Snapshot<Takers<V::Address>>>,
    punt: Punt,
    reasons: Arc<Reasons<V::Address>>,
}

impl<V: Local> Demux<V> {
    fn new(cx: &BuildCx<'_>) -> Self {
        Demux { takers: local::takers(cx), punt: Punt::new(cx), reasons: cx.shared() }
    }

    fn packet(&self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        match self.find(cx, &mut p) {
            Ok(verdict) | Err(verdict) => verdict,
        }
    }

    fn find(&self, cx: &mut NodeCx<'_>, p: &mut PktMut<'_>) -> Result<Verdict, Verdict> {
        let transport = V::transport(cx, p)?;
        if transport.protocol == V::ICMP {
            return Ok(V::TO_ICMP);
        }
        let port = match transport.protocol {
            protocol::UDP => Some(V::udp_port(cx, p, transport)?),
            _ => None,
        };
        let takers = self.takers.load(cx.guard());
        let (taker, reason) = match (port, transport.protocol) {
            (Some(port), _) => (takers.udp_port(port), self.reasons.no_udp_listener),
            (None, protocol::TCP) => (takers.protocol(protocol::TCP), self.reasons.no_tcp_listener),
            (None, other) => (takers.protocol(other), self.reasons.unknown_protocol),
        };
        if let Some(node) = taker {
            return Ok(Verdict::node(node));
        }
        let is_ip6 = Version::of::<V::Address>() == Version::V6;
        let set = port.is_some_and(|port| self.punt.is_port_punted(cx.guard(), is_ip6, port));
        if set || self.punt.is_wanted(cx.guard(), reason, p.rx_if()) {
            reason.mark(p);
            return Ok(V::PUNT);
        }
        Ok(V::refuse(cx, p, transport))
    }
}

/// The node for packets to the router itself: features of an arc come before.
pub struct ToRouter<V: Local> {
    arc: ArcId,
    /// True if any interface has features on it.
    used: bool,
    demux: Demux<V>,
}

impl<V: Local> ToRouter<V> {
    /// Builds the node that begins an arc.
    pub fn build(cx: &BuildCx<'_>, arc: &str) -> Built {
        Built::node(Self { arc: cx.arc(arc), used: false, demux: Demux::new(cx) })
    }
}

impl<V: Local> Node for ToRouter<V> {
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.used = cx.arcs().is_used(self.arc);
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if let Err(verdict) = V::whole(p.data()) {
            // A host reassembles what the router does not.
            if self.demux.punt.has_host(cx.guard(), p.rx_if()) {
                self.demux.reasons.unknown_protocol.mark(&mut p);
                return V::PUNT;
            }
            return verdict;
        }
        if self.used
            && let Some(feature) = cx.arcs().first(self.arc, p.rx_if())
        {
            return Verdict::node(feature);
        }
        self.demux.packet(cx, p)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        V::describe(frame.data(i), out);
    }
}

/// The node for packets that have passed the features of that arc.
pub struct EndOfArc<V: Local>(Demux<V>);

impl<V: Local> EndOfArc<V> {
    /// Builds the node.
    pub fn build(cx: &BuildCx<'_>) -> Built {
        Built::node(Self(Demux::new(cx)))
    }
}

impl<V: Local> Node for EndOfArc<V> {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        self.0.packet(cx, p)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        V::describe(frame.data(i), out);
    }
}
