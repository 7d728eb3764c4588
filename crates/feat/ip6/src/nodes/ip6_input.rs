//! `ip6-input`: the header checks of RFC 8200, and of addresses as in RFC 4291.
//!
//! Reads: rx interface. Trims link-layer padding, and marks packets with a link-local source.
//! Next: the first feature of the `ip6-unicast` arc, of the `ip6-multicast` arc for packets to a
//! group, or `ip6-lookup`. The hop limit is checked where it is decremented, so packets to the
//! router itself may arrive with a hop limit of 1.

use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, Iface, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_graph::{ArcId, Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::ipv6::HEADER_LEN;

thalweg_graph::next_nodes! { LOOKUP => "ip6-lookup", MULTICAST => "ip6-mfib-forward-lookup" }
thalweg_graph::errors! {
    SHORT: Error, PKT_TOO_SMALL, "ip6 length < 40 bytes";
    VERSION: Error, IP_HEADER_CORRUPTED, "ip6 version != 6";
    LENGTH: Error, IP_HEADER_CORRUPTED, "ip6 length > l2 length";
    SRC_MULTICAST: Error, SIP_IS_MC, "ip6 multicast source address";
    SRC_LOOPBACK: Error, SIP_IS_LOOPBACK_ADDRESS, "ip6 loopback source address";
    SRC_UNSPECIFIED: Error, SIP_IS_UNSPECIFIED, "ip6 unspecified source address to a unicast address";
    DST_LOOPBACK: Error, DIP_IS_LOOPBACK_ADDRESS, "ip6 loopback destination address";
    DST_UNSPECIFIED: Error, DIP_IS_LOCAL_NETWORK, "ip6 unspecified destination address";
    GROUP: Error, UC_DIP_OVER_MC_DMAC, "ip6 unicast destination in a link-layer broadcast or multicast";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-input",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let (unicast, multicast) = (cx.arc("ip6-unicast"), cx.arc("ip6-multicast"));
        Built::node(Ip6Input { unicast, multicast, next: LOOKUP, uniform: false, groups: false })
    },
    ..NodeDecl::DEFAULT
};

struct Ip6Input {
    /// The arcs `ip6-unicast` and `ip6-multicast`.
    unicast: ArcId,
    multicast: ArcId,
    /// Next node of the frame's unicast packets, if they share an interface.
    next: Verdict,
    uniform: bool,
    /// Some packets came to a link-layer group address.
    groups: bool,
}

impl Ip6Input {
    #[inline]
    fn start(&self, cx: &NodeCx<'_>, rx_if: SwIfIndex) -> Verdict {
        cx.arcs().first(self.unicast, rx_if).map_or(LOOKUP, Verdict::node)
    }

    #[cold]
    fn start_multicast(&self, cx: &NodeCx<'_>, rx_if: SwIfIndex) -> Verdict {
        cx.arcs().first(self.multicast, rx_if).map_or(MULTICAST, Verdict::node)
    }
}

/// A header that has been checked.
struct Checked {
    /// Length of the packet.
    total: usize,
    /// True if the packet is to a group.
    multicast: bool,
    /// True if the packet is from a link-local address.
    local: bool,
}

/// ::1
const LOOPBACK: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Makes the header checks that a router must; returns the first failure.
#[inline(always)]
fn check(p: &PktMut<'_>) -> Result<Checked, Verdict> {
    let data = p.data();
    let Some(h) = data.first_chunk::<HEADER_LEN>() else { return Err(Verdict::drop(SHORT)) };
    if h[0] >> 4 != 6 {
        return Err(Verdict::drop(VERSION));
    }
    let payload = usize::from(u16::from_be_bytes([h[4], h[5]]));
    let total = HEADER_LEN + payload;
    // A jumbogram (RFC 2675) has its length elsewhere, and longer ones do not come.
    if total > data.len() && total > p.total_len() || payload == 0 && h[6] == 0 {
        return Err(Verdict::drop(LENGTH));
    }
    let (src, dst) = (h[8], h[24]);
    if is_usual(src) && is_usual(dst) {
        return Ok(Checked { total, multicast: false, local: false });
    }
    let multicast = dst == 0xff;
    let local = src == 0xfe && h[9] & 0xc0 == 0x80;
    unusual(&h[8..24], &h[24..40]).map_or(Ok(Checked { total, multicast, local }), Err)
}

/// Returns whether an address with this first byte is neither multicast nor link-local nor among
/// those that mean something else.
#[inline(always)]
const fn is_usual(first: u8) -> bool {
    first.wrapping_sub(1) < 0xfd
}

/// Returns why a packet with these addresses is dropped.
#[cold]
fn unusual(src: &[u8], dst: &[u8]) -> Option<Verdict> {
    let unspecified = [0; 16];
    Some(Verdict::drop(match () {
        () if src[0] == 0xff => SRC_MULTICAST,
        () if src == LOOPBACK => SRC_LOOPBACK,
        () if src == unspecified && dst[0] != 0xff => SRC_UNSPECIFIED,
        () if dst == LOOPBACK => DST_LOOPBACK,
        () if dst == unspecified => DST_UNSPECIFIED,
        () => return None,
    }))
}

/// Returns whether a header of a packet of `len` bytes in one segment needs no further checks, and
/// no padding is behind it.
#[inline(always)]
fn is_plain(h: &[u8; HEADER_LEN], len: usize) -> bool {
    let payload = usize::from(u16::from_be_bytes([h[4], h[5]]));
    (h[0] >> 4 == 6)
        & (payload + HEADER_LEN == len)
        & (payload != 0)
        & is_usual(h[8])
        & is_usual(h[24])
}

/// Returns the packets of a frame without chains that are not [plain](is_plain).
#[inline(always)]
fn others<V: Lanes>(frame: &mut Frame) -> Rows {
    if !V::WIDE {
        let rows = frame.heads::<HEADER_LEN>().zip(frame.lengths());
        return Rows::of(rows.map(|(h, len)| !is_plain(h, len)));
    }
    let mut rest = Rows::NONE;
    for (at, there) in frame.lane_groups() {
        let [w0, w1, src, _, dst] = frame.words4_and::<V, 24>(at);
        let len = frame.lens::<V>(at);
        let byte = V::splat(0xff);
        let payload = (w1 & byte).shl::<8>() | (w1.shr::<8>() & byte);
        let (from, to) = (src & byte, dst & byte);
        let (one, last) = (V::splat(1), V::splat(0xfd));
        // Each term is negative for packets that fail, as in `ip4-input`.
        let negative = (payload - one) | (from - one) | (last - from) | (to - one) | (last - to);
        let differs = ((w0 & V::splat(0xf0)) ^ V::splat(0x60))
            | ((payload + V::splat(HEADER_LEN as u32)) ^ len)
            | (negative & V::splat(1 << 31));
        rest.insert_lanes(at, there & !differs.eq(V::splat(0)));
    }
    rest
}

impl Node for Ip6Input {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        self.groups = frame.flags().contains(Flags::GROUP);
        match frame.rx() {
            Iface::Uniform(rx_if) => {
                cx.stats().interface(rx_if).ip6.add(frame.len() as u64);
                self.next = self.start(cx, rx_if);
                self.uniform = true;
            }
            Iface::Mixed => {
                // Interfaces with the same features share the fast path.
                let mut starts = None;
                self.uniform = true;
                for (rx_if, n) in frame.rx_runs() {
                    cx.stats().interface(rx_if).ip6.add(n as u64);
                    self.next = self.start(cx, rx_if);
                    self.uniform &= *starts.get_or_insert(self.next) == self.next;
                }
            }
        }
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Checked { total, multicast, local } = match check(&p) {
            Ok(checked) => checked,
            Err(v) => return v,
        };
        if total != p.len() {
            trim(cx, &mut p, total);
        }
        if local {
            p.mark(Flags::LINK_LOCAL);
        }
        if multicast {
            return self.start_multicast(cx, p.rx_if());
        }
        // RFC 1122 section 3.3.6 for all that came to a link-layer group address.
        if self.groups && p.flags().contains(Flags::GROUP) {
            return Verdict::drop(GROUP);
        }
        if self.uniform { self.next } else { self.start(cx, p.rx_if()) }
    }

    /// Fast path for valid packets from and to usual addresses, in one segment.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        if !self.uniform || frame.flags().intersects(Flags::CHAINED.union(Flags::GROUP)) {
            return FrameVerdict::PerPacket;
        }
        let rest = others::<V>(frame);
        if rest.is_empty() {
            return FrameVerdict::Whole(self.next);
        }
        each[..frame.len()].fill(self.next);
        FrameVerdict::Each(rest)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}

/// Trims padding; a chained packet spreads its length over segments.
#[cold]
fn trim(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, total: usize) {
    if !p.flags().contains(Flags::CHAINED) || total < p.total_len() {
        p.truncate(total, cx.cache());
    }
}
