//! Conversion between the kernel's offload header and a packet's metadata, whose offsets count from
//! the network header.

use crate::{Framing, VnetHdr};
use thalweg_buffer::{GsoKind, Offload};
use thalweg_wire::vlan;

/// Length of the link header with its tags, and of labels behind it.
fn link_len(framing: Framing, frame: &[u8]) -> u16 {
    match framing {
        Framing::Ethernet => vlan::network(frame).0 as u16,
        Framing::Ip => 0,
    }
}

/// Offload work left by the kernel, if any.
#[inline]
pub fn from_kernel(h: &VnetHdr, framing: Framing, frame: &[u8]) -> Option<Offload> {
    if !h.needs_csum() && !h.is_gso() {
        return None;
    }
    let link = link_len(framing, frame);
    let gso = match h.gso_type & !VnetHdr::GSO_ECN {
        VnetHdr::GSO_TCPV4 => GsoKind::Tcp4,
        VnetHdr::GSO_TCPV6 => GsoKind::Tcp6,
        VnetHdr::GSO_UDP_L4 => GsoKind::Udp,
        _ => GsoKind::None,
    };
    Some(Offload {
        gso_size: h.gso_size,
        hdr_len: h.hdr_len.saturating_sub(link),
        csum_start: h.csum_start.saturating_sub(link),
        csum_offset: h.csum_offset,
        needs_csum: h.needs_csum(),
        data_valid: h.flags & VnetHdr::DATA_VALID != 0,
        gso,
        ecn: h.gso_type & VnetHdr::GSO_ECN != 0,
    })
}

/// Offload header for the kernel.
#[inline]
pub fn to_kernel(o: &Offload, framing: Framing, frame: &[u8]) -> VnetHdr {
    let link = link_len(framing, frame);
    let (gso_type, gso_size) = match o.gso {
        GsoKind::None => (VnetHdr::GSO_NONE, 0),
        GsoKind::Tcp4 => (VnetHdr::GSO_TCPV4, o.gso_size),
        GsoKind::Tcp6 => (VnetHdr::GSO_TCPV6, o.gso_size),
        GsoKind::Udp => (VnetHdr::GSO_UDP_L4, o.gso_size),
    };
    let ecn = if o.ecn && gso_type != VnetHdr::GSO_NONE { VnetHdr::GSO_ECN } else { 0 };
    let (flags, csum_start, csum_offset) = match o.needs_csum {
        true => (VnetHdr::NEEDS_CSUM, o.csum_start.saturating_add(link), o.csum_offset),
        false => (0, 0, 0),
    };
    let hdr_len = if o.hdr_len == 0 { 0 } else { o.hdr_len.saturating_add(link) };
    VnetHdr { flags, gso_type: gso_type | ecn, hdr_len, gso_size, csum_start, csum_offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let mut frame = [0u8; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        let h = VnetHdr {
            flags: VnetHdr::NEEDS_CSUM,
            gso_type: VnetHdr::GSO_TCPV4 | VnetHdr::GSO_ECN,
            hdr_len: 66,
            gso_size: 1448,
            csum_start: 34,
            csum_offset: 16,
        };
        let ethernet = Framing::Ethernet;
        let o = from_kernel(&h, ethernet, &frame).unwrap();
        assert_eq!((o.hdr_len, o.csum_start), (52, 20));
        assert_eq!(to_kernel(&o, ethernet, &frame), h);
        assert!(from_kernel(&VnetHdr::default(), ethernet, &frame).is_none());
        let ip = VnetHdr { hdr_len: 52, csum_start: 20, ..h };
        assert_eq!(from_kernel(&ip, Framing::Ip, &frame[14..]), Some(o));
        assert_eq!(to_kernel(&o, Framing::Ip, &frame[14..]), ip);
    }
}
