//! `ip4-input`: the header checks of RFC 1812 section 5.2.2 and 5.3.
//!
//! Reads: rx interface. Trims link-layer padding, and marks packets with link-local addresses.
//! Next: the first feature of the `ip4-unicast` arc, of the `ip4-multicast` arc for packets to a
//! group (class D), or `ip4-lookup`. The TTL is checked where it is decremented, so packets to the
//! router itself may arrive with TTL 1.

use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, Iface, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_graph::{ArcId, Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::ipv4::MAX_LEN;
use thalweg_wire::ipv4::flag::OFFSET_MASK;

thalweg_graph::next_nodes! { LOOKUP => "ip4-lookup" }
thalweg_graph::errors! {
    SHORT: Error, PKT_TOO_SMALL, "ip4 length < 20 bytes";
    VERSION: Error, IP_HEADER_CORRUPTED, "ip4 version != 4";
    HEADER_LENGTH: Error, IP_HEADER_CORRUPTED, "bad ip4 header length";
    LENGTH: Error, IP_HEADER_CORRUPTED, "ip4 length > l2 length";
    CHECKSUM: Error, IP_HEADER_CORRUPTED, "bad ip4 checksum";
    SRC_MULTICAST: Error, SIP_IS_MC, "ip4 multicast source address";
    SRC_LOOPBACK: Error, SIP_IS_LOOPBACK_ADDRESS, "ip4 loopback source address";
    SRC_ZERO: Error, SIP_IS_UNSPECIFIED, "ip4 source address in 0.0.0.0/8";
    SRC_CLASS_E: Error, SIP_IS_CLASS_E, "ip4 class E source address";
    DST_LOOPBACK: Error, DIP_IS_LOOPBACK_ADDRESS, "ip4 loopback destination address";
    DST_ZERO: Error, DIP_IS_LOCAL_NETWORK, "ip4 destination address in 0.0.0.0/8";
    GROUP: Error, UC_DIP_OVER_MC_DMAC, "ip4 unicast destination in a link-layer broadcast or multicast";
    OFFSET_ONE: Error, IP_HEADER_CORRUPTED, "ip4 fragment offset == 1";
    FRAGMENT_END: Error, IP_HEADER_CORRUPTED, "ip4 fragment ends behind 65535 bytes";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-input",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| {
        let (unicast, multicast) = (cx.arc("ip4-unicast"), cx.arc("ip4-multicast"));
        Built::node(Ip4Input { unicast, multicast, next: LOOKUP, uniform: false, groups: false })
    },
    ..NodeDecl::DEFAULT
};

struct Ip4Input {
    /// The arcs `ip4-unicast` and `ip4-multicast`.
    unicast: ArcId,
    multicast: ArcId,
    /// Next node of the frame's unicast packets, if they share an interface.
    next: Verdict,
    uniform: bool,
    /// Some packets came to a link-layer group address.
    groups: bool,
}

impl Ip4Input {
    #[inline]
    fn start(&self, cx: &NodeCx<'_>, rx_if: SwIfIndex) -> Verdict {
        cx.arcs().first(self.unicast, rx_if).map_or(LOOKUP, Verdict::node)
    }

    #[cold]
    fn start_multicast(&self, cx: &NodeCx<'_>, rx_if: SwIfIndex) -> Verdict {
        cx.arcs().first(self.multicast, rx_if).map_or(LOOKUP, Verdict::node)
    }
}

/// Sum of a header's ten words with end-around carry; 0xffff if its checksum is right.
#[inline(always)]
fn header_sum(h: &[u8; 20]) -> u32 {
    let word = |i: usize| u64::from(u32::from_ne_bytes([h[i], h[i + 1], h[i + 2], h[i + 3]]));
    let sum = word(0) + word(4) + word(8) + word(12) + word(16);
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u32
}

/// A header that has been checked.
struct Checked {
    /// Length of the packet.
    total: usize,
    /// True if the packet is to a group.
    multicast: bool,
    /// True if the packet is from or to a link-local address.
    local: bool,
}

/// The fragment offset in the second little-endian word of a header.
const OFFSET: u32 = u32::from_le_bytes([0, 0, 0x1f, 0xff]);

/// First bytes of link-local addresses (RFC 3927 section 2.1).
const LINK_LOCAL: [u8; 2] = [169, 254];

/// Makes the header checks that a router must; returns the first failure.
#[inline(always)]
fn check(p: &PktMut<'_>) -> Result<Checked, Verdict> {
    let data = p.data();
    let Some(h) = data.first_chunk::<20>() else { return Err(Verdict::drop(SHORT)) };
    let total = usize::from(u16::from_be_bytes([h[2], h[3]]));
    let sum = if h[0] == 0x45 { header_sum(h) } else { options_sum(data)? };
    if sum != 0xffff {
        return Err(Verdict::drop(CHECKSUM));
    }
    if total > data.len() && total > p.total_len() || total < 20 {
        return Err(Verdict::drop(LENGTH));
    }
    match usize::from(u16::from_be_bytes([h[6], h[7]]) & OFFSET_MASK) {
        0 => {}
        // A fragment at offset 1 can overwrite ports and flags of the first one, which filters have
        // judged (RFC 1858 section 4, RFC 3128).
        1 => return Err(Verdict::drop(OFFSET_ONE)),
        // Another router that cuts it would begin again at the offset 0.
        units if units * 8 + total > MAX_LEN => return Err(Verdict::drop(FRAGMENT_END)),
        _ => {}
    }
    let (src, dst) = (h[12], h[16]);
    // First bytes 1 to 126 and 128 to 223 are unicast.
    if (src.wrapping_sub(1) >= 223 || src == 127) && !is_of_starting_host(h) {
        return Err(bad_source(src));
    }
    if dst.wrapping_sub(1) < 223 && dst != 127 {
        let local = src == LINK_LOCAL[0] && h[12..14] == LINK_LOCAL
            || dst == LINK_LOCAL[0] && h[16..18] == LINK_LOCAL;
        return Ok(Checked { total, multicast: false, local });
    }
    match dst {
        0 => Err(Verdict::drop(DST_ZERO)),
        127 => Err(Verdict::drop(DST_LOOPBACK)),
        _ => Ok(Checked { total, multicast: dst & 0xf0 == 0xe0, local: false }),
    }
}

/// Checks the header of a packet that has come otherwise than by `ip4-input`, and marks one with a
/// link-local address; returns its length, if it is sound.
pub fn check_header(p: &mut PktMut<'_>) -> Option<usize> {
    let Checked { total, local, .. } = check(p).ok()?;
    if local {
        p.mark(Flags::LINK_LOCAL);
    }
    Some(total)
}

/// Checks the IPv4 headers of a frame without chained packets; trims those that are sound and
/// usual, and returns the others, which need a closer look.
#[inline(always)]
pub fn check_usual<V: Lanes>(frame: &mut Frame) -> Rows {
    check_all::<V>(frame)
}

/// Returns the packets of a frame without chains that fail [`check`], have options, are later
/// fragments, are not to a unicast address, or have a link-local one; trims the others.
#[inline(always)]
fn check_all<V: Lanes>(frame: &mut Frame) -> Rows {
    let mut rest = Rows::NONE;
    for (at, there) in frame.lane_groups() {
        let [w0, w1, w2, src, dst] = frame.words5::<V>(at);
        let total = (w0.shr::<8>() & V::splat(0xff00)) | w0.shr::<24>();
        let len = frame.lens::<V>(at);
        let (from, to) = (first_byte(src), first_byte(dst));
        let (one, loopback) = (V::splat(1), V::splat(127));
        let link_local = V::splat(u32::from(u16::from_le_bytes(LINK_LOCAL)));
        // Each term is negative for packets that fail: one comparison for all is what costs least.
        let negative = (len - total)
            | (total - V::splat(20))
            | (from - one)
            | (V::splat(223) - from)
            | ((from ^ loopback) - one)
            | (to - one)
            | (V::splat(223) - to)
            | ((to ^ loopback) - one)
            | ((low(src) ^ link_local) - one)
            | ((low(dst) ^ link_local) - one);
        let differs = (first_byte(w0) ^ V::splat(0x45))
            | (header_sums([w0, w1, w2, src, dst]) ^ V::splat(0xffff))
            | (w1 & V::splat(OFFSET))
            | (negative & V::splat(1 << 31));
        let bad = !differs.eq(V::splat(0));
        let bad = bad & there;
        rest.insert_lanes(at, bad);
        if total.eq(len) & there != there {
            frame.truncate(at, there & !bad, total);
        }
    }
    rest
}

#[inline(always)]
fn first_byte<V: Lanes>(word: V) -> V {
    word & V::splat(0xff)
}

#[inline(always)]
fn low<V: Lanes>(word: V) -> V {
    word & V::splat(0xffff)
}

#[inline(always)]
fn halves<V: Lanes>(word: V) -> V {
    low(word) + word.shr::<16>()
}

/// Does the work of [`header_sum`] for headers in little-endian words.
#[inline(always)]
fn header_sums<V: Lanes>([a, b, c, d, e]: [V; 5]) -> V {
    halves(halves(halves(a) + halves(b) + halves(c) + halves(d) + halves(e)))
}

/// Returns whether a packet is one that a host sends before it has an address: to a server that can
/// give it one, or to a group of the link (RFC 1122 section 3.2.1.3 (a), RFC 2131, RFC 3376 section
/// 4.2.13). No router forwards it.
#[cold]
fn is_of_starting_host(h: &[u8; 20]) -> bool {
    h[12..16] == [0; 4] && (h[16..20] == [255; 4] || h[16..19] == [224, 0, 0])
}

#[cold]
fn bad_source(first: u8) -> Verdict {
    Verdict::drop(match first {
        0 => SRC_ZERO,
        127 => SRC_LOOPBACK,
        224..=239 => SRC_MULTICAST,
        _ => SRC_CLASS_E,
    })
}

/// Returns whether a packet came to a link-layer group address, but is to one host (RFC 1812
/// section 5.3.4, RFC 1122 section 3.3.6).
#[cold]
fn is_misdirected(p: &PktMut<'_>) -> bool {
    let is_broadcast = p.data().get(16..20) == Some(&[255; 4]);
    p.flags().contains(Flags::GROUP) && !is_broadcast
}

/// Sum over a header with options, which are otherwise ignored.
#[cold]
fn options_sum(data: &[u8]) -> Result<u32, Verdict> {
    if data[0] >> 4 != 4 {
        return Err(Verdict::drop(VERSION));
    }
    let len = usize::from(data[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([data[2], data[3]]));
    if len < 20 || len > data.len() || total < len {
        return Err(Verdict::drop(HEADER_LENGTH));
    }
    let ok = thalweg_wire::checksum::verify(&data[..len]);
    Ok(if ok { 0xffff } else { 0 })
}

impl Node for Ip4Input {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        self.groups = frame.flags().contains(Flags::GROUP);
        match frame.rx() {
            Iface::Uniform(rx_if) => {
                cx.stats().interface(rx_if).ip4.add(frame.len() as u64);
                self.next = self.start(cx, rx_if);
                self.uniform = true;
            }
            Iface::Mixed => {
                // Interfaces with the same features share the fast path.
                let mut starts = None;
                self.uniform = true;
                for (rx_if, n) in frame.rx_runs() {
                    cx.stats().interface(rx_if).ip4.add(n as u64);
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
        if multicast {
            return self.start_multicast(cx, p.rx_if());
        }
        if self.groups && is_misdirected(&p) {
            return Verdict::drop(GROUP);
        }
        if local {
            p.mark(Flags::LINK_LOCAL);
        }
        if self.uniform { self.next } else { self.start(cx, p.rx_if()) }
    }

    /// Fast path for valid packets without options in one segment.
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
        let rest = check_all::<V>(frame);
        if rest.is_empty() {
            return FrameVerdict::Whole(self.next);
        }
        each[..frame.len()].fill(self.next);
        FrameVerdict::Each(rest)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}

/// Trims padding; a chained packet spreads its length over segments.
#[cold]
fn trim(cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, total: usize) {
    if !p.flags().contains(Flags::CHAINED) || total < p.total_len() {
        p.truncate(total, cx.cache());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_quick_sum_is_the_slow_sum(h in prop::array::uniform20(any::<u8>())) {
            prop_assert_eq!(header_sum(&h) == 0xffff, thalweg_wire::checksum::verify(&h));
        }
    }

    #[test]
    fn an_all_zero_header_is_wrong() {
        assert_ne!(header_sum(&[0; 20]), 0xffff);
    }
}
