//! `ip4-frag`: fragments packets that exceed the MTU and may be fragmented (RFC 791 section 2.3).
//!
//! Reads: aux (the adjacency). The TTL was decremented before. Next: the adjacency's interface
//! output, with the link header written. Either all fragments are sent or none, since part of a
//! packet is useless. A GSO packet is cut into its segments first, and each of these into
//! fragments, as its sender's device and a router would have done.

use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, GsoKind, Packet, PktMut};
use thalweg_fib::{Dpo, DpoTable, Kind, LinkType};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, NodeId, Verdict};
use thalweg_wire::checksum::Checksum;
use thalweg_wire::gso;
use thalweg_wire::ipv4::flag::{MORE_FRAGMENTS, OFFSET_MASK};
use thalweg_wire::ipv4::{Ipv4View, MAX_HEADER_LEN};

thalweg_graph::errors! {
    FRAGMENTS: Info, UNKNOWN, "fragments sent";
    NO_BUFFERS: Error, NO_BUFFER_SPACE, "no buffers for fragments";
    SUPER: Error, IP_HEADER_CORRUPTED, "invalid GSO request";
    SMALL_MTU: Error, PKT_TOO_BIG, "MTU too small for fragments";
    NOT_IP4: Error, IP_HEADER_CORRUPTED, "bad ip4 header";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-frag",
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Ip4Frag { dpos: cx.shared(), cutter: Cutter::new() }),
    ..NodeDecl::DEFAULT
};

struct Ip4Frag {
    dpos: Arc<DpoTable>,
    cutter: Cutter,
}

/// Options that are copied into every fragment have the top bit set (RFC 791 section 3.1); others
/// become no-ops in fragments after the first.
fn blank_first_only_options(header: &mut [u8]) {
    let mut i = 20;
    while i < header.len() {
        match header[i] {
            0 => break,
            1 => i += 1,
            kind => {
                let len = header.get(i + 1).map_or(0, |l| usize::from(*l));
                if len < 2 || i + len > header.len() {
                    break;
                }
                if kind & 0x80 == 0 {
                    header[i..i + len].fill(1);
                }
                i += len;
            }
        }
    }
}

/// Calls `emit` with header and payload of each fragment of a packet, whatever follows it.
///
/// # Errors
/// `SmallMtu` if the MTU leaves no room, `NotIp4` for bytes that are no sound packet: their parts
/// would be sound, and other ones than a filter has judged.
pub fn fragments(
    packet: &[u8],
    mtu: usize,
    mut emit: impl FnMut(&[u8], &[u8]),
) -> Result<(), Failure> {
    let sound = Ipv4View::parse(packet).ok().filter(Ipv4View::checksum_ok);
    let ip = sound.ok_or(Failure::NotIp4)?;
    let (header_len, payload) = (ip.header_len(), ip.payload());
    let room = mtu.saturating_sub(header_len) & !7;
    if room < 8 {
        return Err(Failure::SmallMtu);
    }
    let word = ip.fragment_word();
    let (first, more) = (usize::from(word & OFFSET_MASK), word & MORE_FRAGMENTS);
    let mut h = [0u8; MAX_HEADER_LEN];
    let h = &mut h[..header_len];
    h.copy_from_slice(&packet[..header_len]);
    for (i, piece) in payload.chunks(room).enumerate() {
        if i == 1 {
            blank_first_only_options(h);
        }
        let last = (i + 1) * room >= payload.len();
        // The packet ends within the longest datagram, so that no offset passes its mask.
        let offset = (first + i * room / 8) as u16;
        let flags = if last { more } else { MORE_FRAGMENTS };
        h[2..4].copy_from_slice(&((header_len + piece.len()) as u16).to_be_bytes());
        h[6..8].copy_from_slice(&(offset | flags).to_be_bytes());
        h[10..12].fill(0);
        let sum = thalweg_wire::checksum::checksum(h);
        h[10..12].copy_from_slice(&sum.to_be_bytes());
        emit(h, piece);
    }
    Ok(())
}

/// Reason why a packet is not cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The pool has too few buffers.
    NoBuffers,
    /// The packet claims to be a GSO packet, but is not one.
    Gso,
    /// The MTU leaves no room for data.
    SmallMtu,
    /// The packet is no sound one of IPv4.
    NotIp4,
}

/// Calls `emit` with each segment of a GSO packet, from its IP header on, until it fails.
///
/// # Errors
/// The error of `emit`, or [`Failure::Gso`] if the packet is no GSO packet.
pub fn segments(
    packet: &[u8],
    size: u16,
    segment: &mut Vec<u8>,
    mut emit: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let plan = gso::Plan::at(packet, 0, packet.len(), size.into()).map_err(|_| Failure::Gso)?;
    let header = plan.header_len();
    let payload = packet.get(header..).ok_or(Failure::Gso)?;
    for part in plan.segments() {
        let data = payload.get(part.range()).ok_or(Failure::Gso)?;
        let mut sum = Checksum::new();
        sum.add(data);
        segment.clear();
        segment.resize(header, 0);
        plan.write_header(packet, part, sum, segment).map_err(|_| Failure::Gso)?;
        segment.extend_from_slice(data);
        emit(segment)?;
    }
    Ok(())
}

/// Longest link header that fragments take over: one that has more before it came out of a tunnel.
const LONGEST_LINK_HEADER: usize = 32;

/// Returns the length of the link header that the fragments of a packet take over.
fn came_behind(p: &PktMut<'_>) -> usize {
    Some(p.stepped()).filter(|len| *len <= LONGEST_LINK_HEADER).unwrap_or(0)
}

/// Cuts packets into fragments.
pub(super) struct Cutter {
    /// The packet as one slice.
    whole: Vec<u8>,
    /// One of its segments.
    segment: Vec<u8>,
    /// Its fragments.
    pieces: Vec<Packet>,
}

impl Cutter {
    pub(super) fn new() -> Cutter {
        let (whole, pieces) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 12));
        Cutter { whole, segment: Vec::with_capacity(1 << 16), pieces }
    }

    /// Makes the fragments of a packet, from its IP header on, with the tx interface and aux that
    /// it has, behind the header that it came with; `finish` returns false if one lacks room.
    /// Returns their number.
    pub(super) fn cut(
        &mut self,
        cx: &mut NodeCx<'_>,
        p: &mut PktMut<'_>,
        mtu: u16,
        mut finish: impl FnMut(&mut Packet) -> bool,
    ) -> Result<u64, Failure> {
        let mut size = None;
        if p.flags().contains(Flags::OFFLOAD) {
            match p.meta().offload {
                // Segments get checksums of their own.
                o if o.gso != GsoKind::None => size = Some(o.gso_size),
                _ => thalweg_device::offload::complete_checksum(p, 0),
            }
        }
        let mut came_with = [0; LONGEST_LINK_HEADER];
        let link = came_behind(p);
        came_with[..link].copy_from_slice(p.before(link));
        self.whole.clear();
        for s in p.segments() {
            self.whole.extend_from_slice(s);
        }
        let (from, pieces) = (p.lineage(), &mut self.pieces);
        let mut one = |packet: &[u8]| {
            let mut ok = true;
            let cut = fragments(packet, usize::from(mtu), |header, payload| {
                let Some(mut p) = ok.then(|| cx.derive(from)).flatten() else {
                    ok = false;
                    return;
                };
                ok = p.fill(&came_with[..link], cx.cache())
                    && p.append(header, cx.cache())
                    && p.append(payload, cx.cache())
                    && p.pull(link)
                    && finish(&mut p);
                pieces.push(p);
            });
            cut.and(if ok { Ok(()) } else { Err(Failure::NoBuffers) })
        };
        let done = match size {
            None => one(&self.whole),
            Some(size) => segments(&self.whole, size, &mut self.segment, one),
        };
        if let Err(failure) = done {
            self.pieces.drain(..).for_each(|piece| cx.consume(piece));
            return Err(failure);
        }
        Ok(self.pieces.len() as u64)
    }

    /// Sends the fragments of a packet that was cut, in its place.
    pub(super) fn send(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>, to: Verdict) -> Verdict {
        let (mut packet, kept) = cx.take(p);
        if let Some(first) = self.pieces.first_mut() {
            cx.replaces(&mut packet, first);
        }
        self.pieces.drain(..).for_each(|piece| cx.send(piece, to));
        cx.consume(packet);
        kept
    }
}

impl Node for Ip4Frag {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.dpos.get(Dpo(p.aux()));
        let (state, next) = (entry.state(), entry.next());
        let (dpos, written) = (&self.dpos, came_behind(&p));
        let done = self.cutter.cut(cx, &mut p, state.mtu, |piece| {
            piece.set_tx_if(state.tx_if());
            if state.kind == Kind::AS_WRITTEN {
                return written > 0 && piece.push(written).is_some();
            }
            let link = usize::from(state.len);
            let Some(room) = piece.push(link) else { return false };
            dpos.copy_rewrite(entry, room);
            if state.kind == Kind::MULTICAST {
                thalweg_feat_ip::link::to_group(LinkType::Ip4, piece.data_mut(), link);
            }
            true
        });
        match done {
            Ok(n) => {
                cx.count(FRAGMENTS, n);
                self.cutter.send(cx, p, Verdict::node(NodeId(next as u16)))
            }
            Err(Failure::NoBuffers) => Verdict::drop(NO_BUFFERS),
            Err(Failure::Gso) => Verdict::drop(SUPER),
            Err(Failure::SmallMtu) => Verdict::drop(SMALL_MTU),
            Err(Failure::NotIp4) => Verdict::drop(NOT_IP4),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thalweg_wire::ipv4;

    proptest! {
        /// Reassembled fragments equal the packet.
        #[test]
        fn fragments_are_the_packet(
            len in 0usize..5000, mtu in 68usize..2000, more in any::<bool>(),
            first in prop_oneof![0u16..100, 7000u16..7500],
        ) {
            let mut packet = vec![0u8; 20 + len];
            packet[0] = 0x45;
            packet[2..4].copy_from_slice(&((20 + len) as u16).to_be_bytes());
            let flags = if more { MORE_FRAGMENTS } else { 0 };
            packet[6..8].copy_from_slice(&(first | flags).to_be_bytes());
            packet[8] = 9;
            packet[9] = 17;
            packet[12..16].copy_from_slice(&[10, 0, 0, 1]);
            packet[16..20].copy_from_slice(&[10, 0, 0, 2]);
            ipv4::fill_checksum(&mut packet).unwrap();
            for (i, b) in packet[20..].iter_mut().enumerate() { *b = (i * 31) as u8; }
            let mut whole = vec![0u8; len];
            let (mut total, mut last_seen) = (0, false);
            let all = fragments(&packet, mtu, |h, piece| {
                let mut f = h.to_vec();
                f.extend_from_slice(piece);
                assert!(f.len() <= mtu);
                let v = ipv4::check(&f).unwrap();
                let at = v.fragment_offset() - usize::from(first) * 8;
                whole[at..at + piece.len()].copy_from_slice(piece);
                total += piece.len();
                if at + piece.len() == len {
                    last_seen = true;
                    assert_eq!(v.more_fragments(), more);
                } else {
                    assert!(v.more_fragments());
                    assert_eq!(piece.len() % 8, 0);
                }
            });
            prop_assert_eq!(all, Ok(()));
            prop_assert_eq!(total, len);
            prop_assert!(last_seen || len == 0);
            prop_assert_eq!(&whole[..], &packet[20..]);
        }

        #[test]
        fn no_bytes_make_it_panic(
            p in prop::collection::vec(any::<u8>(), 20..200), mtu in 0usize..300,
        ) {
            let _ = fragments(&p, mtu, |_, _| {});
        }
    }
}
