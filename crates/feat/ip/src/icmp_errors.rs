//! ICMP errors about packets that are not forwarded: requests by nodes, the node that answers them,
//! the one check for all that make errors, with its rate limit, and the way out.

use crate::link::Packets;
use std::fmt::Write;
use thalweg_buffer::{Frame, IcmpCause, Packet, PktMut};
use thalweg_device::SwIfIndex;
use thalweg_graph::{ArcId, BuildCx, Built, ErrorCode, ErrorDecl, Node, NodeCx, Verdict, clock};
use thalweg_tables::limit::{RateLimit, Shares};
use thalweg_tables::qsbr::Guard;

thalweg_graph::errors! {
    SENT: Info, UNKNOWN, "icmp errors sent";
    LIMITED: Warning, UNKNOWN, "icmp errors not sent: rate limit";
    FORBIDDEN: Info, UNKNOWN, "icmp errors not sent: not allowed for this packet";
    NO_ADDRESS: Warning, UNKNOWN, "icmp errors not sent: interface without address";
    NO_BUFFER: Warning, UNKNOWN, "icmp errors not sent: no buffer";
}

/// Counters of the node that answers packets by ICMP errors.
pub const COUNTERS: &[ErrorDecl] = ERRORS;

/// Errors per second, and burst size, that a worker sends about packets of all interfaces.
const ALL: (u32, u32) = (1000, 100);
/// The same of each interface, ahead of what they have in common.
const EACH: (u32, u32) = (50, 20);

/// Requests an ICMP error from the version's node for them (the calling node's next `to`) before
/// the packet is dropped for `reason` of the calling node.
#[inline]
pub fn request_error(
    cx: &mut NodeCx<'_>,
    p: &mut PktMut<'_>,
    cause: IcmpCause,
    reason: ErrorCode,
    to: Verdict,
) -> Verdict {
    p.set_aux(cx.error_id(reason));
    p.meta_mut().icmp = cause;
    to
}

/// The rate limit of a worker's ICMP errors (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4 (f)).
/// Each interface has a share of its own: a flood at one leaves hosts at others their answers. All
/// of them together are bounded, as shares are.
#[derive(Clone, Debug)]
struct ErrorLimit {
    shares: Shares,
    common: RateLimit,
}

impl Default for ErrorLimit {
    fn default() -> ErrorLimit {
        let limit = |(rate, burst)| RateLimit::steady(rate, burst, clock::hz() as u64);
        ErrorLimit { shares: Shares::of(&limit(EACH)), common: limit(ALL) }
    }
}

impl ErrorLimit {
    /// Returns whether an error about a packet that an interface has received may be sent at this
    /// time, in ticks.
    fn allow(&mut self, rx_if: SwIfIndex, now: u64) -> bool {
        self.shares.allow(rx_if.get(), now) || self.common.allow(now)
    }
}

/// Tables that know a packet's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// The table of its rx interface.
    Here,
    /// Another router's: for a packet behind labels that belongs to its customer.
    Elsewhere,
}

/// A packet that asks for an error.
#[derive(Clone, Copy, Debug)]
pub struct About<P> {
    /// View of the packet.
    pub packet: P,
    /// The error.
    pub cause: IcmpCause,
    /// Tables that know its addresses.
    pub ends: Ends,
}

/// Reason that a packet is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unanswered {
    /// No error may be sent about such a packet.
    Forbidden,
    /// The router has no address to answer from.
    NoAddress,
    /// The rate limit is reached.
    Limited,
}

/// A version's rules about hosts that errors answer, and from which address.
pub trait Rules: Send + 'static {
    /// View of a packet.
    type Packet<'p>;
    /// Addresses of the version.
    type Address;

    /// Returns whether a packet may be answered by an error.
    fn may_answer(
        &self,
        guard: &Guard<'_>,
        p: &PktMut<'_>,
        about: &About<Self::Packet<'_>>,
    ) -> bool;

    /// Returns the source of an error about a packet.
    fn source(
        &self,
        guard: &Guard<'_>,
        p: &PktMut<'_>,
        packet: &Self::Packet<'_>,
    ) -> Option<Self::Address>;
}

/// The one check before an error of a version is made, whatever node makes it: no other way leads
/// to the source address and the rate limit.
pub struct Errors<R> {
    rules: R,
    limit: ErrorLimit,
}

impl<R: Rules> Errors<R> {
    /// Creates it for a node, with a rate limit of its own.
    #[must_use]
    pub fn new(rules: R) -> Errors<R> {
        Errors { rules, limit: ErrorLimit::default() }
    }

    /// Returns the source of the error about a packet that leaves now.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn source(
        &mut self,
        cx: &NodeCx<'_>,
        p: &PktMut<'_>,
        about: &About<R::Packet<'_>>,
    ) -> Result<R::Address, Unanswered> {
        if !self.rules.may_answer(cx.guard(), p, about) {
            return Err(Unanswered::Forbidden);
        }
        let from = self.rules.source(cx.guard(), p, &about.packet);
        let from = from.ok_or(Unanswered::NoAddress)?;
        match self.limit.allow(p.rx_if(), cx.now()) {
            true => Ok(from),
            false => Err(Unanswered::Limited),
        }
    }
}

/// The way of ICMP errors from the node that makes them to the look-up of their destination: along
/// an arc, on which features that translated the packet restore what is quoted of it.
#[derive(Clone, Copy, Debug)]
pub struct WayOut {
    arc: ArcId,
    lookup: Verdict,
}

impl WayOut {
    /// The way along an arc to the calling node's next node `lookup`; for a node, in its `build`
    /// function.
    #[must_use]
    pub fn new(cx: &BuildCx<'_>, arc: &str, lookup: Verdict) -> WayOut {
        WayOut { arc: cx.arc(arc), lookup }
    }

    /// Sends an error about a packet. Features on the arc find in its aux the interface by which
    /// that packet would have left, [`LOCAL_IF`](thalweg_buffer::LOCAL_IF) if that is not known:
    /// the quote does not say between which tables the packet was translated.
    pub fn send(&self, cx: &mut NodeCx<'_>, mut error: Packet, about: &PktMut<'_>) {
        error.set_rx_if(about.rx_if());
        error.set_aux(about.tx_if().get());
        let to = cx.arcs().first(self.arc, about.rx_if()).map_or(self.lookup, Verdict::node);
        cx.send(error, to);
    }
}

/// Types and constants of a version's ICMP errors.
pub trait Answers: Send + 'static {
    /// Packets of the version.
    type Packets: Packets;
    /// Hosts that errors answer.
    type Rules: Rules;
    /// Room for the longest message.
    type Message: AsRef<[u8]> + AsMut<[u8]>;

    /// A message not yet written.
    const BLANK: Self::Message;
    /// The protocol, in traces.
    const PROTOCOL: &'static str;

    /// Reads a packet; `None` if its header is none.
    fn view(packet: &[u8]) -> Option<<Self::Rules as Rules>::Packet<'_>>;

    /// Writes the error about a packet; returns its length, and `None` if there is no error about
    /// such a packet.
    fn write(
        from: <Self::Rules as Rules>::Address,
        p: &PktMut<'_>,
        message: &mut [u8],
    ) -> Option<usize>;
}

/// The node that answers packets by ICMP errors, then passes them on to be dropped.
pub struct IcmpError<A: Answers> {
    errors: Errors<A::Rules>,
    way_out: WayOut,
    drop: Verdict,
}

impl<A: Answers> IcmpError<A> {
    /// Builds the node, whose next node `drop` drops the packets.
    pub fn build(rules: A::Rules, way_out: WayOut, drop: Verdict) -> Built {
        Built::node(IcmpError::<A> { errors: Errors::new(rules), way_out, drop })
    }

    /// Answers a packet; returns what is counted.
    fn answer(&mut self, cx: &mut NodeCx<'_>, p: &PktMut<'_>) -> ErrorCode {
        let Some(packet) = A::view(p.data()) else { return FORBIDDEN };
        let about = About { packet, cause: p.meta().icmp, ends: Ends::Here };
        let from = match self.errors.source(cx, p, &about) {
            Ok(from) => from,
            Err(Unanswered::Forbidden) => return FORBIDDEN,
            Err(Unanswered::NoAddress) => return NO_ADDRESS,
            Err(Unanswered::Limited) => return LIMITED,
        };
        let mut message = A::BLANK;
        let Some(length) = A::write(from, p, message.as_mut()) else { return FORBIDDEN };
        let Some(mut answer) = cx.originate() else { return NO_BUFFER };
        // A message fits into one buffer unless buffers are configured tiny; then it is truncated.
        if !answer.fill(&message.as_ref()[..length], cx.cache()) {
            cx.consume(answer);
            return NO_BUFFER;
        }
        self.way_out.send(cx, answer, p);
        SENT
    }
}

impl<A: Answers> Node for IcmpError<A> {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let counted = self.answer(cx, &p);
        cx.count(counted, 1);
        self.drop
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let IcmpCause { kind, code, .. } = frame.meta(i).icmp;
        let _ = writeln!(out, "answered with {} type {kind} code {code}", A::PROTOCOL);
        A::Packets::describe(frame.data(i), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_at_one_interface_leaves_the_share_of_another() {
        clock::init();
        let mut limit = ErrorLimit::default();
        let second = clock::hz() as u64;
        for now in [second, 2 * second] {
            let mut granted = |sw_if| {
                let all = (0..1000).filter(|_| limit.allow(SwIfIndex(sw_if), now));
                all.count() as u32
            };
            assert_eq!(granted(1), ALL.1 + EACH.1);
            assert_eq!((granted(2), granted(3)), (EACH.1, EACH.1));
        }
    }

    #[test]
    fn a_flood_at_all_interfaces_is_bounded() {
        clock::init();
        let mut limit = ErrorLimit::default();
        let second = clock::hz() as u64;
        let granted = (0..100_000).filter(|n| limit.allow(SwIfIndex(*n), second)).count();
        assert_eq!(granted, (ALL.1 + 64 * EACH.1) as usize);
    }
}
