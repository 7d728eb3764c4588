//! The outputs of a packet: copies are sent first, the packet itself last.

use thalweg_buffer::{Flags, Packet, PktMut};
use thalweg_conntrack::{IPV4, IPV6};
use thalweg_device::SwIfIndex;
use thalweg_feat_l2::L2Table;
use thalweg_graph::{ErrorCode, NodeCx, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::checksum;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::ipv6::{Ipv6Mut, Ipv6View};

use crate::nodes::flow_rules::{COPIED_TOO_OFTEN, NO_BUFFERS, NO_TAG_ROOM};
use crate::rule::key::{self, Words};
use crate::subs::{Changed, Retag};
use crate::tables::{Port, Published};
use crate::tags::{self, Tag};

/// A packet and its outputs.
pub(crate) struct Outputs<'p> {
    packet: PktMut<'p>,
    /// The last output so far; it has not been sent yet.
    pending: Option<Verdict>,
    /// The interface on whose behalf the packet leaves there, a sub-interface or BVI, with the
    /// change of its tags. Apart from the output, so that the many without one move few bytes.
    sub: Option<(SwIfIndex, Retag)>,
    changed: Changed,
    /// Reason why the packet has no further outputs.
    refused: Option<ErrorCode>,
    /// True if copies may be made; unknown before the first.
    may_copy: Option<bool>,
    /// Drop reason if there is no output.
    pub(crate) why: ErrorCode,
}

impl<'p> Outputs<'p> {
    pub(crate) fn new(packet: PktMut<'p>, why: ErrorCode) -> Self {
        let changed = Changed::default();
        Outputs { packet, pending: None, sub: None, changed, refused: None, may_copy: None, why }
    }

    pub(crate) fn rx_if(&self) -> SwIfIndex {
        self.packet.rx_if()
    }

    /// Its IP header, of the family whose keys have `W` words, with the rest of the first segment,
    /// and the total length.
    pub(crate) fn l3<const W: usize>(&self) -> Option<(&[u8], usize)> {
        let data = self.packet.data();
        let at = crate::rewrite::l3_at::<W>(data)?;
        Some((data.get(at..)?, self.packet.total_len() - at))
    }

    /// Returns whether a device will complete the transport checksum.
    pub(crate) fn is_partial(&self) -> bool {
        self.packet.flags().contains(Flags::OFFLOAD) && self.packet.meta().offload.needs_csum
    }

    /// Adds an output, for the packet as it is now.
    pub(crate) fn send(&mut self, cx: &mut NodeCx<'_>, to: Verdict) {
        self.send_pending(cx);
        self.pending = Some(to).filter(|_| self.refused.is_none());
    }

    /// The same for an interface.
    pub(crate) fn send_by(
        &mut self,
        cx: &mut NodeCx<'_>,
        (published, l2): (&Published, &Snapshot<L2Table>),
        port: Port,
    ) {
        match port.is_indirect {
            false => self.send(cx, Verdict::node(port.output)),
            true => self.send_indirectly(cx, published, l2, port),
        }
    }

    #[inline(never)]
    fn send_indirectly(
        &mut self,
        cx: &mut NodeCx<'_>,
        published: &Published,
        l2: &Snapshot<L2Table>,
        port: Port,
    ) {
        let from = self.rx_if();
        let l2 = l2.load(cx.guard());
        let (node, received) = (l2.before_output(port.sw_if), l2.received(from));
        let retag = match (node, received, port.tags) {
            (Some(_), Some(edit), _) => Retag::Received(edit),
            (None, _, None) => Retag::Keep,
            (node, _, tags) => {
                let own = published.port(from).and_then(|port| port.tags).unwrap_or_default();
                // The node that comes before adds tags itself.
                let by = tags.filter(|_| node.is_none()).unwrap_or_default();
                Retag::Replace { own, changed: self.changed, by }
            }
        };
        self.send(cx, Verdict::node(node.unwrap_or(port.output)));
        if self.pending.is_some() {
            self.sub = Some((port.sw_if, retag));
        }
    }

    /// Changes the packet for later outputs. Returns false if it has no such field.
    pub(crate) fn change(
        &mut self,
        cx: &mut NodeCx<'_>,
        change: impl FnOnce(&mut [u8]) -> Option<()>,
    ) -> bool {
        self.send_pending(cx);
        let done = change(self.packet.data_mut()).is_some();
        self.packet.note_translation();
        done
    }

    /// Updates the fields of addresses after a [change](Self::change).
    pub(crate) fn note_addresses(&self, words: &mut Words) {
        if let Some(Ok(ip)) = self.l3::<IPV6>().map(|(l3, _)| Ipv6View::parse_prefix(l3)) {
            key::set_long(words, key::IPV6_SRC, ip.src().to_bits());
            key::set_long(words, key::IPV6_DST, ip.dst().to_bits());
            return;
        }
        let Some((l3, _)) = self.l3::<IPV4>() else { return };
        if let Ok(ip) = Ipv4View::parse_prefix(l3) {
            key::NW_SRC.set(words, ip.src().to_bits().into());
            key::NW_DST.set(words, ip.dst().to_bits().into());
        }
    }

    /// Stops: there are no further outputs.
    pub(crate) fn refuse(&mut self, why: ErrorCode) {
        self.refused = Some(why);
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Changes the VLAN tags for later outputs. If that fails, there are no further outputs.
    pub(crate) fn tag(&mut self, cx: &mut NodeCx<'_>, tag: Tag, words: &mut Words) {
        self.send_pending(cx);
        let was = tags::is_tagged(self.packet.data());
        if tags::apply(&mut self.packet, tag) {
            self.changed.note(tag, was);
            self.packet.note_translation();
            self.packet.mark(Flags::RETAGGED);
            tags::note(words, tag, was, &self.packet);
        } else {
            self.refuse(NO_TAG_ROOM);
        }
    }

    /// Sends a copy to the output so far, if there is one.
    #[inline]
    fn send_pending(&mut self, cx: &mut NodeCx<'_>) {
        if let Some(to) = self.pending.take() {
            self.send_copy(cx, to);
        }
    }

    fn send_copy(&mut self, cx: &mut NodeCx<'_>, to: Verdict) {
        // Group frames are counted where copies of them leave.
        if self.packet.data().first().is_some_and(|b| b & 1 != 0) {
            self.packet.mark(Flags::MULTICAST);
        }
        if self.sub.is_some() {
            return self.send_pending_by_sub(cx, to);
        }
        if let Some(copy) = self.copy(cx) {
            cx.send(copy, to);
        }
    }

    fn copy(&mut self, cx: &mut NodeCx<'_>) -> Option<Packet> {
        let packet = &mut self.packet;
        if !*self.may_copy.get_or_insert_with(|| cx.may_copy(packet.meta_mut())) {
            cx.count(COPIED_TOO_OFTEN, 1);
            return None;
        }
        let copy = cx.copy(packet);
        if copy.is_none() {
            cx.count(NO_BUFFERS, 1);
        }
        copy
    }

    #[inline(never)]
    fn send_pending_by_sub(&mut self, cx: &mut NodeCx<'_>, to: Verdict) {
        let Some((sub, retag)) = self.sub.take() else { return };
        let Some(undo) = retag.apply(&mut self.packet) else { return cx.count(NO_TAG_ROOM, 1) };
        if let Some(mut copy) = self.copy(cx) {
            copy.set_tx_if(sub);
            cx.send(copy, to);
        }
        undo.undo(&mut self.packet);
    }

    /// The verdict for the packet itself.
    pub(crate) fn verdict(mut self) -> Verdict {
        match self.pending {
            None => Verdict::drop(self.refused.unwrap_or(self.why)),
            Some(to) if self.sub.is_none() => to,
            Some(to) => self.verdict_by_sub(to),
        }
    }

    #[inline(never)]
    fn verdict_by_sub(&mut self, to: Verdict) -> Verdict {
        let Some((sub, retag)) = self.sub.take() else { return to };
        if retag.apply(&mut self.packet).is_none() {
            return Verdict::drop(NO_TAG_ROOM);
        }
        self.packet.set_tx_if(sub);
        to
    }
}

fn ipv4_header(frame: &mut [u8]) -> Option<&mut [u8; 20]> {
    let at = crate::rewrite::ipv4_at(frame)?;
    frame.get_mut(at..)?.first_chunk_mut()
}

/// Replaces a 16-bit word of an IPv4 header and updates the checksum (RFC 1624).
fn replace(header: &mut [u8; 20], at: usize, new: [u8; 2]) {
    let word = |h: &[u8; 20], at: usize| u16::from_be_bytes([h[at], h[at + 1]]);
    let sum = checksum::update_u16(word(header, 10), word(header, at), u16::from_be_bytes(new));
    header[at..at + 2].copy_from_slice(&new);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The bytes from the IPv6 header on.
fn ipv6_header(frame: &mut [u8]) -> Option<&mut [u8]> {
    let at = crate::rewrite::ipv6_at(frame)?;
    frame.get_mut(at..)
}

/// Sets the bits of the type of service, or traffic class, under a mask.
pub(crate) fn set_tos(frame: &mut [u8], tos: u8, mask: u8) -> Option<()> {
    let Some(header) = ipv4_header(frame) else {
        // The class lies across the second four bits of two bytes.
        let [first, second, ..] = ipv6_header(frame)? else { return None };
        let word = u16::from_be_bytes([*first, *second]);
        let (set, mask) = (u16::from(tos & mask) << 4, u16::from(mask) << 4);
        [*first, *second] = (word & !mask | set).to_be_bytes();
        return Some(());
    };
    let new = [header[0], tos & mask | header[1] & !mask];
    replace(header, 0, new);
    Some(())
}

/// Sets the TTL, or hop limit.
pub(crate) fn set_ttl(frame: &mut [u8], ttl: u8) -> Option<()> {
    let Some(header) = ipv4_header(frame) else {
        Ipv6Mut::parse(ipv6_header(frame)?).ok()?.set_hop_limit(ttl);
        return Some(());
    };
    let new = [ttl, header[9]];
    replace(header, 8, new);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use thalweg_wire::MacAddr;
    use thalweg_wire::build;

    #[test]
    fn fields_are_set_and_sums_follow() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let ether = build::Packet::new().ether(MacAddr([2; 6]), MacAddr([4; 6]));
        for (mut frame, at) in [
            (ether.clone().ipv4(a, b).udp(1, 2).build(), 14),
            (ether.clone().vlan(7).ipv4(a, b).udp(1, 2).build(), 18),
        ] {
            frame[at + 1] |= 1;
            let header: [u8; 20] = frame[at..at + 20].try_into().unwrap();
            let sum = checksum::ipv4_header(&header);
            frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
            assert!(set_tos(&mut frame, 0xb8, 0xfc).is_some() && set_ttl(&mut frame, 9).is_some());
            let ip = Ipv4View::parse(&frame[at..]).unwrap();
            assert_eq!((ip.tos(), ip.ttl(), ip.checksum_ok()), (0xb9, 9, true));
        }
        let (a6, b6) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
        for tags in 0..2 {
            let ether = (0..tags).fold(ether.clone(), |ether, _| ether.vlan(7));
            let of = |tos, ttl| ether.clone().ipv6(a6, b6).tos(tos).ttl(ttl).udp(1, 2).build();
            let mut frame = of(0x61, 64);
            assert!(set_tos(&mut frame, 0xb8, 0xfc).is_some() && set_ttl(&mut frame, 9).is_some());
            assert_eq!(frame, of(0xb9, 9));
        }
        let mut arp = build::Packet::arp_request(MacAddr([2; 6]), a, b).build();
        assert_eq!(set_ttl(&mut arp, 9), None);
    }
}
