//! Software offloads for devices that lack them: completes partial checksums and segments GSO
//! packets.

use crate::interface::Caps;
use crate::link_header::Link;
use thalweg_buffer::{Flags, Frame, GsoKind, Meta, Offload, Packet, PktMut};
use thalweg_graph::{ErrorCode, NodeCx, Verdict};
use thalweg_wire::checksum::Checksum;
use thalweg_wire::crc32c::Crc32c;
use thalweg_wire::ip::{PortTransport, port_transport, protocol};
use thalweg_wire::{bytes, gso};

/// Returns whether the device can take every packet of the frame unchanged.
pub fn suits(frame: &Frame, caps: Caps, link: Link) -> bool {
    (0..frame.len() as u16).all(|i| lacks(frame, i as u8, caps, link) == Lack::Nothing)
}

/// Segmentation plan of a GSO packet with `before` bytes before its data; `None` if it is an
/// ordinary packet or cannot be segmented, and so counts as one packet.
pub fn plan(frame: &Frame, i: u8, before: usize, link: Link) -> Option<gso::Plan> {
    let meta = frame.meta(i);
    if !meta.flags().contains(Flags::OFFLOAD) || meta.offload.gso == GsoKind::None {
        return None;
    }
    let mut head = [0; gso::MAX_HEADERS];
    let n = copy(frame, i, before, 0, &mut head);
    let length = before + frame.total_len(i);
    link.plan(&head[..n], length, meta.offload.gso_size).ok()
}

/// Copies a packet's bytes from `skip` on, over `before` bytes before its data and all its
/// segments; returns the number of bytes copied.
pub fn copy(frame: &Frame, i: u8, before: usize, mut skip: usize, to: &mut [u8]) -> usize {
    let mut n = 0;
    for segment in std::iter::once(frame.before(i, before)).chain(frame.segments(i)) {
        let from = skip.min(segment.len());
        skip -= from;
        let more = (segment.len() - from).min(to.len() - n);
        to[n..n + more].copy_from_slice(&segment[from..from + more]);
        n += more;
        if n == to.len() {
            break;
        }
    }
    n
}

/// Packets and bytes on the wire beyond those of the frame: segments of GSO packets, each with its
/// own headers.
#[cold]
pub fn more_on_wire(frame: &Frame, link: Link) -> (u64, u64) {
    let plans = (0..frame.len()).filter_map(|i| plan(frame, i as u8, 0, link));
    plans.fold((0, 0), |(packets, bytes), plan| {
        let more = plan.segment_count().saturating_sub(1) as u64;
        (packets + more, bytes + more * plan.header_len() as u64)
    })
}

#[derive(PartialEq, Eq)]
enum Lack {
    Nothing,
    Checksum,
    Segmentation,
}

fn lacks(frame: &Frame, i: u8, caps: Caps, link: Link) -> Lack {
    let meta = frame.meta(i);
    // Devices that segment what is behind labels are rare, and kernels without the module for it
    // drop such packets.
    let labelled = has_gso(meta) && link.is_labelled(frame.data(i));
    lack(meta, if labelled { Caps { tx_tso: false, tx_uso: false, ..caps } } else { caps })
}

fn has_gso(meta: &Meta) -> bool {
    meta.flags().contains(Flags::OFFLOAD) && meta.offload.gso != GsoKind::None
}

fn lack(meta: &Meta, caps: Caps) -> Lack {
    if !meta.flags().contains(Flags::OFFLOAD) {
        return Lack::Nothing;
    }
    let o = &meta.offload;
    match o.gso {
        GsoKind::Tcp4 | GsoKind::Tcp6 if !caps.tx_tso => Lack::Segmentation,
        GsoKind::Udp if !caps.tx_uso => Lack::Segmentation,
        // Offload headers cannot ask a device for a CRC.
        _ if o.needs_csum && (is_crc(o) || !caps.tx_csum) => Lack::Checksum,
        _ => Lack::Nothing,
    }
}

/// Drop reasons of the node that calls [`finish`].
#[derive(Clone, Copy)]
pub struct Reasons {
    /// No buffer for a segment.
    pub no_buffers: ErrorCode,
    /// Invalid GSO request.
    pub bad: ErrorCode,
}

/// Completes offload work for each packet of a frame; returns frames that suit the device, in
/// order. `scratch` is reused between calls.
pub fn finish(
    cx: &mut NodeCx<'_>,
    mut frame: Box<Frame>,
    (caps, link): (Caps, Link),
    reasons: Reasons,
    scratch: &mut Vec<u8>,
    mut emit: impl FnMut(&mut NodeCx<'_>, Box<Frame>),
) {
    let mut out = cx.new_frame();
    let mut put = |cx: &mut NodeCx<'_>, p: Packet| {
        if out.room() == 0 {
            let full = std::mem::replace(&mut out, cx.new_frame());
            emit(cx, full);
        }
        if let Err(p) = out.push(p) {
            cx.consume(p);
        }
    };
    for i in 0..frame.len() {
        let i = i as u8;
        let lack = lacks(&frame, i, caps, link);
        let mut p = frame.pkt(i);
        if lack == Lack::Checksum {
            let l3 = link.network(p.data());
            complete_checksum(&mut p, l3);
        }
        let (packet, _) = cx.take(p);
        if lack == Lack::Segmentation {
            segment(cx, (packet, link), reasons, scratch, &mut put);
        } else {
            put(cx, packet);
        }
    }
    frame.compact(());
    cx.put_frame(frame);
    if out.is_empty() { cx.put_frame(out) } else { emit(cx, out) }
}

/// Offset of UDP's checksum in its header, unlike that of any other protocol.
const UDP_CHECKSUM_AT: u16 = 6;

/// Returns whether the checksum to complete is a CRC: that of SCTP, as its offset tells.
fn is_crc(o: &Offload) -> bool {
    const AT: Option<PortTransport> = port_transport(protocol::SCTP);
    AT.is_some_and(|sctp| usize::from(o.csum_offset) == sctp.checksum_at)
}

/// Completes a packet's partial checksum in place, over all its segments. `l3` is the offset of its
/// network header.
pub fn complete_checksum(p: &mut PktMut<'_>, l3: usize) {
    let o = p.meta().offload;
    if !o.needs_csum {
        return;
    }
    let start = l3 + usize::from(o.csum_start);
    let field = start + usize::from(o.csum_offset);
    if is_crc(&o) {
        let mut crc = Crc32c::default();
        bytes::set(p.data_mut(), field, &[0; 4]);
        each_from(p, start, |piece| crc.add(piece));
        bytes::set(p.data_mut(), field, &crc.finish());
    } else {
        let mut sum = Checksum::new();
        each_from(p, start, |piece| sum.add(piece));
        // Zero means "no checksum" only in UDP (RFC 768).
        let sum = if o.csum_offset == UDP_CHECKSUM_AT { sum.finish_udp() } else { sum.finish() };
        bytes::set(p.data_mut(), field, &sum.to_be_bytes());
    }
    let meta = p.meta_mut();
    meta.offload = Offload { data_valid: true, ..Offload::default() };
    p.unmark(Flags::OFFLOAD);
}

/// Passes the bytes of a packet from an offset on, piece by piece.
fn each_from(p: &PktMut<'_>, mut skip: usize, mut each: impl FnMut(&[u8])) {
    for s in p.segments() {
        let at = skip.min(s.len());
        each(&s[at..]);
        skip -= at;
    }
}

/// Segments a GSO packet into separate packets.
fn segment(
    cx: &mut NodeCx<'_>,
    (mut packet, link): (Packet, Link),
    reasons: Reasons,
    scratch: &mut Vec<u8>,
    put: &mut impl FnMut(&mut NodeCx<'_>, Packet),
) {
    scratch.clear();
    for s in packet.segments() {
        scratch.extend_from_slice(s);
    }
    let from = packet.lineage();
    let plan = link.plan(scratch, scratch.len(), packet.meta().offload.gso_size);
    let Ok(plan) = plan else { return cx.send(packet, Verdict::drop(reasons.bad)) };
    let mut lost = false;
    let done = gso::segment_by(&plan, scratch, |headers, payload| {
        let Some(mut p) = cx.derive(from) else {
            lost = true;
            return;
        };
        let fits = p.fill(headers, cx.cache()) && p.append(payload, cx.cache());
        if fits {
            cx.replaces(&mut packet, &mut p);
            put(cx, p);
        } else {
            lost = true;
            cx.consume(p);
        }
    });
    match done {
        Ok(_) if lost => {
            cx.count(reasons.no_buffers, 1);
            cx.consume(packet);
        }
        Ok(_) => cx.consume(packet),
        Err(_) => cx.send(packet, Verdict::drop(reasons.bad)),
    }
}
