//! Common parts of all neighbour discovery messages: checks, and link-layer addresses.

use std::any::Any;
use std::fmt::Write;
use std::net::Ipv6Addr;
use thalweg_buffer::{Frame, PktMut};
use thalweg_device::link_header::came_behind;
use thalweg_graph::{ErrorCode, Node, NodeCx, Verdict};
use thalweg_wire::MacAddr;
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::nd::{HOP_LIMIT, Message};

/// A message whose checksum `ip6-icmp-input` has verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'p> {
    pub(crate) src: Ipv6Addr,
    pub(crate) dst: Ipv6Addr,
    pub(crate) message: Message<'p>,
}

/// Reason why a message is not valid (RFC 4861 sections 6.1, 7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The message may have come from beyond the link.
    HopLimit,
    /// Its code is not 0.
    Code,
    /// The message has a fragment header, by which it could evade filters (RFC 6980 section 5).
    Fragment,
    /// The message is too short, or its options are malformed.
    Length,
    /// The message came behind labels, whose path may begin anywhere, whatever its hop limit says.
    Labels,
}

/// The drop reasons of a node for each fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) hop_limit: ErrorCode,
    pub(crate) code: ErrorCode,
    pub(crate) fragment: ErrorCode,
    pub(crate) length: ErrorCode,
    pub(crate) labels: ErrorCode,
}

impl Fault {
    /// The verdict of a node with these drop reasons.
    pub(crate) fn drops(self, reasons: Faults) -> Verdict {
        Verdict::drop(match self {
            Fault::HopLimit => reasons.hop_limit,
            Fault::Code => reasons.code,
            Fault::Fragment => reasons.fragment,
            Fault::Length => reasons.length,
            Fault::Labels => reasons.labels,
        })
    }
}

/// A node that reads messages, which end there.
pub(crate) trait Receive {
    /// Takes note of a message; returns why the packet is dropped, if it is.
    fn receive(&mut self, cx: &mut NodeCx<'_>, p: &PktMut<'_>) -> Result<(), Verdict>;

    /// Takes a message of the main thread.
    fn message(&mut self, _: &(dyn Any + Send)) {}
}

/// The node that does it.
pub(crate) struct Receiver<R>(pub(crate) R);

impl<R: Receive + Send + 'static> Node for Receiver<R> {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        if let Err(dropped) = self.0.receive(cx, &p) {
            return dropped;
        }
        let (packet, kept) = cx.take(p);
        cx.deliver(packet);
        kept
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }

    fn message(&mut self, _cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.0.message(&*message);
    }
}

/// Reads a message and makes the checks that all of them need.
pub(crate) fn read<'p>(p: &'p PktMut<'_>) -> Result<Received<'p>, Fault> {
    let ip = Ipv6View::parse_prefix(p.data()).map_err(|_| Fault::Length)?;
    let header = came_behind(p);
    if !header.is_empty() && !header.ends_with(&ethertype::IPV6.to_be_bytes()) {
        return Err(Fault::Labels);
    }
    if ip.hop_limit() != HOP_LIMIT {
        return Err(Fault::HopLimit);
    }
    let transport = ip.transport().map_err(|_| Fault::Length)?;
    if transport.fragment.is_some() {
        return Err(Fault::Fragment);
    }
    let icmp = Icmp6View::parse(transport.payload).map_err(|_| Fault::Length)?;
    if icmp.code() != 0 {
        return Err(Fault::Code);
    }
    let Some(Ok(message)) = Message::parse(&icmp) else { return Err(Fault::Length) };
    if message.options().any(|option| option.is_err()) {
        return Err(Fault::Length);
    }
    Ok(Received { src: ip.src(), dst: ip.dst(), message })
}

/// Returns the source of the frame that a packet came in.
pub(crate) fn frame_source(p: &PktMut<'_>) -> Option<MacAddr> {
    came_behind(p).get(6..12)?.first_chunk().map(|mac| MacAddr(*mac))
}
