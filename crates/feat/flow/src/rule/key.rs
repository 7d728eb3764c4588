//! The fields that rules match, packed into words so that a mask takes one operation per word.

use std::net::IpAddr;

use thalweg_conntrack::{State, Tuple};
use thalweg_wire::bytes::{self, be48, be64};
use thalweg_wire::icmpv6;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::owner::MAX_DEPTH;
use thalweg_wire::packet::{PacketView, Part};
use thalweg_wire::vlan::{TAG_LEN, is_tag};

/// Words of a packet's fields: two cache lines.
pub const WORDS: usize = 16;
/// The words that all rules look at. The others, addresses of IPv6 and of connections, and
/// neighbour discovery, are read and compared only for sets with such rules; else they have no
/// meaning.
pub const NARROW: usize = 8;

/// The fields of a packet, or a mask over them.
pub type Words = [u64; WORDS];

/// Position of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    word: usize,
    shift: u32,
    bits: u32,
}

const fn place(word: usize, shift: u32, bits: u32) -> Place {
    Place { word, shift, bits }
}

/// The number of an interface: fewer than 2^24.
pub(crate) const IN_PORT: Place = place(0, 0, 24);
/// The protocol of the connection's first packet, as its ports and addresses below.
pub(crate) const CT_NW_PROTO: Place = place(0, 24, 8);
pub(crate) const DL_TYPE: Place = place(0, 32, 16);
/// TCI of the outermost tag with bit 12 set, or 0 without a tag.
pub(crate) const VLAN: Place = place(0, 48, 16);
/// Parts of the TCI.
pub(crate) const VLAN_ID: Place = place(0, 48, 12);
pub(crate) const VLAN_PRIORITY: Place = place(0, 61, 3);
pub(crate) const DL_DST: Place = place(1, 0, 48);
/// The opcode for ARP.
pub(crate) const NW_PROTO: Place = place(1, 48, 8);
pub(crate) const NW_TOS: Place = place(1, 56, 8);
/// Parts of the type of service.
pub(crate) const NW_ECN: Place = place(1, 56, 2);
pub(crate) const NW_DSCP: Place = place(1, 58, 6);
pub(crate) const DL_SRC: Place = place(2, 0, 48);
pub(crate) const CT_STATE: Place = place(2, 48, 8);
pub(crate) const NW_TTL: Place = place(2, 56, 8);
pub(crate) const NW_DST: Place = place(3, 0, 32);
pub(crate) const NW_SRC: Place = place(3, 32, 32);
/// The type for ICMP.
pub(crate) const TP_SRC: Place = place(4, 0, 16);
/// The code for ICMP.
pub(crate) const TP_DST: Place = place(4, 16, 16);
pub(crate) const CT_ZONE: Place = place(4, 32, 16);
pub(crate) const TCP_FLAGS: Place = place(4, 48, 8);
/// [`fragment`] bits.
pub(crate) const NW_FRAG: Place = place(4, 56, 2);
/// The Ethernet addresses within ARP share words with ports and flags of IP: upper bits first.
pub(crate) const ARP_SHA: [Place; 2] = [place(4, 48, 16), place(4, 0, 32)];
pub(crate) const ARP_THA: [Place; 3] = [NW_TOS, NW_TTL, place(5, 32, 32)];
/// Label in place of IPv4 addresses.
pub(crate) const IPV6_LABEL: Place = place(3, 0, 20);
/// Addresses of IPv6, the upper half first.
pub(crate) const IPV6_SRC: [Place; 2] = [place(8, 0, 64), place(9, 0, 64)];
pub(crate) const IPV6_DST: [Place; 2] = [place(10, 0, 64), place(11, 0, 64)];
pub(crate) const ND_TARGET: [Place; 2] = [place(12, 0, 64), place(13, 0, 64)];
pub(crate) const ND_SLL: Place = place(14, 0, 48);
pub(crate) const ND_TLL: Place = place(15, 0, 48);
/// Flags and the reserved bits of a neighbour's message, the upper half first.
pub(crate) const ND_RESERVED: [Place; 2] = [place(14, 48, 16), place(15, 48, 16)];
/// The first option with a link-layer address, in the place of TCP's flags, as in Open vSwitch.
pub(crate) const ND_OPTION: Place = TCP_FLAGS;
pub(crate) const CT_MARK: Place = place(5, 0, 32);
/// The type for ICMP. Ports share a word with ARP, which is never tracked.
pub(crate) const CT_TP_SRC: Place = place(5, 32, 16);
/// The code for ICMP.
pub(crate) const CT_TP_DST: Place = place(5, 48, 16);
/// Addresses share words with neighbour discovery, which never belongs to a connection. IPv6
/// addresses have the upper half first.
pub(crate) const CT_NW_SRC: Place = place(12, 32, 32);
pub(crate) const CT_NW_DST: Place = place(12, 0, 32);
pub(crate) const CT_IPV6_SRC: [Place; 2] = [place(12, 0, 64), place(13, 0, 64)];
pub(crate) const CT_IPV6_DST: [Place; 2] = [place(14, 0, 64), place(15, 0, 64)];
pub(crate) const CT_LABEL_LOW: Place = place(6, 0, 64);
pub(crate) const CT_LABEL_HIGH: Place = place(7, 0, 64);

/// The part of a datagram that a packet is.
pub(crate) mod fragment {
    /// Any fragment.
    pub(crate) const ANY: u64 = 1;
    /// A fragment other than the first.
    pub(crate) const LATER: u64 = 2;
}

/// Sets a field in several places, the upper bits in the first.
pub(crate) fn set_parts(words: &mut Words, places: &[Place], value: u64) {
    let mut value = value;
    for place in places.iter().rev() {
        place.set(words, value);
        value >>= place.bits;
    }
}

/// Sets an address of IPv6.
#[inline]
pub(crate) fn set_long(words: &mut Words, [high, low]: [Place; 2], value: u128) {
    high.set(words, (value >> 64) as u64);
    low.set(words, value as u64);
}

/// An address of IPv6.
pub(crate) fn long(words: &Words, [high, low]: [Place; 2]) -> u128 {
    u128::from(high.get(words)) << 64 | u128::from(low.get(words))
}

/// Returns whether a mask has bits beyond the [narrow](NARROW) words.
pub(crate) fn is_wide(mask: &Words) -> bool {
    mask[NARROW..].iter().any(|word| *word != 0)
}

/// The EtherType that was read.
#[inline]
pub(crate) fn is_ipv6(words: &Words) -> bool {
    DL_TYPE.get(words) == u64::from(ether::IPV6)
}

impl Place {
    /// Width in bits.
    pub(crate) const fn bits(self) -> u32 {
        self.bits
    }

    /// Mask of its width, right-aligned.
    #[inline]
    pub(crate) const fn ones(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    #[inline]
    pub(crate) fn get(self, words: &Words) -> u64 {
        words[self.word] >> self.shift & self.ones()
    }

    #[inline]
    pub(crate) fn set(self, words: &mut Words, value: u64) {
        let word = &mut words[self.word];
        *word = *word & !(self.ones() << self.shift) | (value & self.ones()) << self.shift;
    }
}

/// The value of a MAC address in its field.
pub(crate) fn mac_bits(mac: &[u8; 6]) -> u64 {
    mac.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Sets the tracking fields.
#[inline]
pub(crate) fn set_tracked(words: &mut Words, state: State, zone: u16, mark: u32, label: u128) {
    CT_STATE.set(words, state.bits().into());
    CT_ZONE.set(words, zone.into());
    CT_MARK.set(words, mark.into());
    CT_LABEL_LOW.set(words, label as u64);
    CT_LABEL_HIGH.set(words, (label >> 64) as u64);
}

/// The fields of a connection's original direction.
const ORIGINAL: [Place; 7] = [
    CT_NW_PROTO,
    CT_TP_SRC,
    CT_TP_DST,
    CT_IPV6_SRC[0],
    CT_IPV6_SRC[1],
    CT_IPV6_DST[0],
    CT_IPV6_DST[1],
];

/// Returns whether a mask has bits in a place of the [original direction](ORIGINAL). Others have
/// some of these places, too.
pub(crate) fn may_ask_original(mask: &Words) -> bool {
    ORIGINAL.iter().any(|place| place.get(mask) != 0)
}

/// Returns whether tracking fields are those of a packet with a tuple.
fn has_original(words: &Words) -> bool {
    let of_connections = State::NEW | State::ESTABLISHED | State::RELATED;
    CT_STATE.get(words) & u64::from(of_connections.bits()) != 0
}

/// Sets the fields of the original direction, or clears them if they were set. The other tracking
/// fields are still those of before.
pub(crate) fn set_original(words: &mut Words, original: Option<&Tuple>) {
    let Some(&Tuple { src, dst, protocol, sport, dport }) = original else {
        if has_original(words) {
            ORIGINAL.iter().for_each(|place| place.set(words, 0));
        }
        return;
    };
    CT_NW_PROTO.set(words, protocol.into());
    let (src_port, dst_port) = match protocol {
        // The type; codes of queries are zero.
        protocol::ICMP | protocol::ICMPV6 => (dport, 0),
        _ => (sport, dport),
    };
    CT_TP_SRC.set(words, src_port.into());
    CT_TP_DST.set(words, dst_port.into());
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let (src_bits, dst_bits) = (bits(src), bits(dst));
    match src {
        IpAddr::V4(_) => {
            set_long(words, CT_IPV6_SRC, 0);
            set_long(words, CT_IPV6_DST, 0);
            CT_NW_SRC.set(words, src_bits as u64);
            CT_NW_DST.set(words, dst_bits as u64);
        }
        IpAddr::V6(_) => {
            set_long(words, CT_IPV6_SRC, src_bits);
            set_long(words, CT_IPV6_DST, dst_bits);
        }
    }
}

/// Copies the tracking fields from other words.
pub(crate) fn keep_tracked(words: &mut Words, from: &Words) {
    let mut copy = |place: &Place| place.set(words, place.get(from));
    [CT_STATE, CT_ZONE, CT_MARK, CT_LABEL_LOW, CT_LABEL_HIGH].iter().for_each(&mut copy);
    if has_original(from) {
        ORIGINAL.iter().for_each(copy);
    }
}

/// EtherTypes that rules use.
pub(crate) mod ether {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const ARP: u16 = 0x0806;
    pub(crate) const RARP: u16 = 0x8035;
    pub(crate) const IPV6: u16 = 0x86dd;
    pub(crate) const VLAN: u16 = 0x8100;
    pub(crate) const QINQ: u16 = 0x88a8;
}

/// Returns whether a frame has more tags than are read, or ends in one: no rule can tell what it
/// carries.
#[inline]
pub(crate) fn ends_in_tags(words: &Words) -> bool {
    is_tag(DL_TYPE.get(words) as u16)
}

#[inline]
fn be16(b: &[u8], at: usize) -> u64 {
    bytes::be16(b, at).into()
}

#[inline]
fn be32(b: &[u8], at: usize) -> u64 {
    bytes::be32(b, at).into()
}

/// Returns the TCP flags of a frame of `len` bytes, none for UDP; `None` unless it is of the most
/// frequent kind: TCP or UDP, its header whole, after an IPv4 header without options, and no tag.
#[inline(always)]
fn plain(h: &[u8; 54], len: usize) -> Option<u8> {
    let (transport, flags) = match h[23] {
        protocol::UDP => (8, 0),
        protocol::TCP if h[46] >= 0x50 => (u64::from(h[46]) >> 2 & 0x3c, h[47]),
        _ => return None,
    };
    let is_plain = (be16(h, 12) == u64::from(ether::IPV4))
        & (h[14] == 0x45)
        & (be16(h, 20) & 0x3fff == 0)
        & (20 + transport..=len as u64 - 14).contains(&be16(h, 16));
    is_plain.then_some(flags)
}

/// Reads the fields of an Ethernet frame of `len` bytes received on a port; `frame` are those in
/// its first buffer. With `wide`, those beyond the [narrow](NARROW) words, too. Returns the offset
/// of the network header if it is IP, and whether it is IPv6.
///
/// The network header is read behind up to [`MAX_DEPTH`] tags: a filter on IP must not be passed by
/// frames with more than one. Open vSwitch does so with a `vlan-limit` of 2.
///
/// Fields of a truncated or malformed header read as zero, like in Open vSwitch: nothing behind the
/// end of the IP packet is read, and no port or flag of a transport header that is not whole (RFC
/// 1858, RFC 3128).
#[inline]
pub(crate) fn read(
    in_port: u32,
    frame: &[u8],
    len: usize,
    wide: bool,
    words: &mut Words,
) -> Option<(usize, bool)> {
    if wide {
        words[NARROW..].fill(0);
    }
    if let Some(h) = frame.first_chunk::<54>()
        && let Some(flags) = plain(h, len)
    {
        let flags = u64::from(flags) << 48;
        let (low, _) = words.split_first_chunk_mut::<NARROW>()?;
        *low = [
            u64::from(in_port) | u64::from(ether::IPV4) << 32,
            be64(h, 0) >> 16 | u64::from(h[23]) << 48 | u64::from(h[15]) << 56,
            be64(h, 6) >> 16 | u64::from(h[22]) << 56,
            be64(h, 26),
            be16(h, 34) | be16(h, 36) << 16 | flags,
            0,
            0,
            0,
        ];
        return Some((14, false));
    }
    words[..NARROW].fill(0);
    words[0] = u64::from(in_port);
    let h = frame.first_chunk::<14>()?;
    words[1] = be48(h, 0);
    words[2] = be48(h, 6);
    let (mut kind, mut at) = (be16(h, 12), 14);
    if is_tag(kind as u16) {
        let Some(tag) = frame.get(14..18) else {
            DL_TYPE.set(words, kind);
            return None;
        };
        VLAN.set(words, be16(tag, 0) & 0xefff | 0x1000);
        (kind, at) = (be16(tag, 2), BEHIND_ONE);
    }
    network(frame, (kind, at), len, wide, words)
}

/// Reads what follows the addresses or a tag: its type, and the offset behind that.
#[inline(always)]
fn network(
    frame: &[u8],
    (kind, at): (u64, usize),
    len: usize,
    wide: bool,
    words: &mut Words,
) -> Option<(usize, bool)> {
    DL_TYPE.set(words, kind);
    match kind as u16 {
        ether::IPV4 => {
            ipv4(&frame[at..], len - at, words);
            Some((at, false))
        }
        ether::ARP | ether::RARP => {
            let arp = frame.get(at..at + 28)?;
            NW_PROTO.set(words, be16(arp, 6));
            words[3] = be32(arp, 14) << 32 | be32(arp, 24);
            // Ethernet hardware addresses.
            if arp[4] == 6 && arp[5] == 4 {
                set_parts(words, &ARP_SHA, be48(arp, 8));
                set_parts(words, &ARP_THA, be48(arp, 18));
            }
            None
        }
        ether::IPV6 => {
            ipv6(&frame[at..], len - at, wide, words);
            Some((at, true))
        }
        // Another tag is looked for there, to add nothing to frames with one.
        _ if at == BEHIND_ONE => behind_more(frame, kind, len, wide, words),
        _ => None,
    }
}

/// Offset behind one tag.
const BEHIND_ONE: usize = 18;

/// Reads what follows further tags, if the type behind the first is that of one.
#[cold]
#[inline(never)]
fn behind_more(
    frame: &[u8],
    kind: u64,
    len: usize,
    wide: bool,
    words: &mut Words,
) -> Option<(usize, bool)> {
    let (mut kind, mut at) = (kind, BEHIND_ONE);
    for _ in 1..MAX_DEPTH {
        let Some(tag) = frame.get(at..at + TAG_LEN).filter(|_| is_tag(kind as u16)) else { break };
        (kind, at) = (be16(tag, 2), at + TAG_LEN);
    }
    if at == BEHIND_ONE {
        return None;
    }
    network(frame, (kind, at), len, wide, words)
}

/// Reads an IPv4 packet of at most `len` bytes.
#[inline]
fn ipv4(l3: &[u8], len: usize, words: &mut Words) {
    let Ok(view) = Ipv4View::parse_chain(l3, len) else { return };
    let ip = view.header();
    words[3] = be32(ip, 12) << 32 | be32(ip, 16);
    packet(&PacketView::of_v4(view), words);
}

/// Reads an IPv6 packet of at most `len` bytes, behind its extension headers.
fn ipv6(l3: &[u8], len: usize, wide: bool, words: &mut Words) {
    let Ok(view) = Ipv6View::parse_chain(l3, len) else { return };
    if wide {
        set_long(words, IPV6_SRC, view.src().to_bits());
        set_long(words, IPV6_DST, view.dst().to_bits());
    }
    let label = view.flow_label();
    // Without a transport, Open vSwitch reads the addresses only.
    let Some(view) = PacketView::of_v6(view) else { return };
    IPV6_LABEL.set(words, label.into());
    packet(&view, words);
    if view.part() == Part::Later {
        NW_PROTO.set(words, protocol::FRAGMENT.into());
    } else if wide && view.protocol() == protocol::ICMPV6 {
        discovery(&view, words);
    }
}

/// Options of neighbour discovery (RFC 4861 section 4.6.1).
const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;

/// Reads a solicitation or advertisement of a neighbour. A link-layer address that occurs twice
/// leaves target and addresses zero, like in Open vSwitch.
#[cold]
fn discovery(view: &PacketView<'_>, words: &mut Words) {
    use icmpv6::kind::{NEIGHBOR_ADVERTISEMENT, NEIGHBOR_SOLICITATION};
    let Some((NEIGHBOR_SOLICITATION | NEIGHBOR_ADVERTISEMENT, 0)) = view.message() else { return };
    set_parts(words, &ND_RESERVED, be32(view.payload(), 4));
    let Some((target, mut options)) = view.payload()[8..].split_first_chunk::<16>() else { return };
    let mut found = [0u64; 2];
    while let Some(option) = options.first_chunk::<8>() {
        let length = usize::from(option[1]) * 8;
        let Some(rest) = options.get(length..).filter(|_| length != 0) else { break };
        let which = match option[0] {
            SOURCE_LINK_LAYER => 0,
            TARGET_LINK_LAYER => 1,
            _ => 2,
        };
        if let (Some(place), 8) = (found.get_mut(which), length) {
            if *place != 0 {
                return;
            }
            *place = be48(option, 2);
            if ND_OPTION.get(words) == 0 {
                ND_OPTION.set(words, option[0].into());
            }
        }
        options = rest;
    }
    set_long(words, ND_TARGET, u128::from_be_bytes(*target));
    ND_SLL.set(words, found[0]);
    ND_TLL.set(words, found[1]);
}

/// Sets the fields of an IP packet but its addresses.
#[inline]
fn packet(view: &PacketView<'_>, words: &mut Words) {
    words[1] |= u64::from(view.protocol()) << 48 | u64::from(view.tos()) << 56;
    words[2] |= u64::from(view.ttl()) << 56;
    match view.part() {
        Part::Whole => {}
        Part::First => NW_FRAG.set(words, fragment::ANY),
        Part::Later => NW_FRAG.set(words, fragment::ANY | fragment::LATER),
    }
    if let Some((kind, code)) = view.message() {
        words[4] |= u64::from(kind) | u64::from(code) << 16;
    } else if matches!(view.protocol(), protocol::TCP | protocol::UDP | protocol::SCTP)
        && let Some((sport, dport)) = view.ports()
    {
        // Rules know the ports of these only, as in Open vSwitch.
        words[4] |= u64::from(sport) | u64::from(dport) << 16;
        words[4] |= u64::from(view.tcp_flags().unwrap_or(0)) << 48;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;
    use thalweg_wire::MacAddr;
    use thalweg_wire::build::Packet;

    #[test]
    fn fields_are_read() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let ether = Packet::new().ether(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        fn read(in_port: u32, frame: &[u8], words: &mut Words) -> Option<usize> {
            super::read(in_port, frame, frame.len(), true, words).map(|(at, _)| at)
        }
        let mut words = [7; WORDS];
        let at = read(3, &ether.clone().ipv4(a, b).tcp(5, 80).flags(0x12).build(), &mut words);
        assert_eq!(at, Some(14));
        assert_eq!((IN_PORT.get(&words), DL_TYPE.get(&words), VLAN.get(&words)), (3, 0x800, 0));
        assert_eq!((NW_PROTO.get(&words), NW_TTL.get(&words)), (6, 64));
        assert_eq!((NW_SRC.get(&words), NW_DST.get(&words)), (0x0a00_0001, 0x0a00_0002));
        assert_eq!((TP_SRC.get(&words), TP_DST.get(&words)), (5, 80));
        assert_eq!((TCP_FLAGS.get(&words), CT_STATE.get(&words)), (0x12, 0));
        assert_eq!(DL_SRC.get(&words) | DL_DST.get(&words), 0x0200_0000_0003);
        let tagged = ether.vlan(9).ipv4(a, b).icmp_echo_request(1, 1).build();
        assert_eq!(read(3, &tagged, &mut words), Some(18));
        assert_eq!((VLAN.get(&words), TP_SRC.get(&words), TP_DST.get(&words)), (0x1009, 8, 0));
        let arp = Packet::arp_request(MacAddr([2; 6]), a, b).build();
        assert_eq!(read(3, &arp, &mut words), None);
        assert_eq!((DL_TYPE.get(&words), NW_PROTO.get(&words)), (0x806, 1));
        assert_eq!((NW_SRC.get(&words), NW_DST.get(&words)), (0x0a00_0001, 0x0a00_0002));
        let all = |places: &[Place]| {
            places.iter().fold(0, |sum, place| sum << place.bits | place.get(&words))
        };
        assert_eq!((all(&ARP_SHA), all(&ARP_THA)), (0x0202_0202_0202, 0));
        // The fast reader agrees with the general one, which an IP option forces.
        let tcp = Packet::new().ether(MacAddr([2; 6]), MacAddr([4; 6])).ipv4(a, b);
        let tcp = tcp.ttl(9).tos(8).tcp(1234, 80).flags(0x19);
        let mut long = tcp.clone().ip_options(&[1, 1, 1, 1]).build();
        let mut other = [9; WORDS];
        assert_eq!(read(3, &tcp.clone().build(), &mut words), Some(14));
        assert_eq!(read(3, &long, &mut other), Some(14));
        assert_eq!(words, other);
        // A first fragment has ports, later ones have none.
        let mut short = tcp.build();
        for (part, bits, port) in [(0x20, fragment::ANY, 1234), (0, 0, 1234), (0x40, 0, 1234)] {
            short[20] = part;
            read(3, &short, &mut words);
            assert_eq!((NW_FRAG.get(&words), TP_SRC.get(&words)), (bits, port));
        }
        short[20] = 0;
        for frame in [&mut short, &mut long] {
            frame[21] = 5;
        }
        assert_eq!(read(3, &short, &mut words), read(3, &long, &mut other));
        assert_eq!((words, TP_SRC.get(&words)), (other, 0));
        assert_eq!(NW_FRAG.get(&words), fragment::ANY | fragment::LATER);
        for end in 0..tagged.len() {
            read(1, &tagged[..end], &mut words);
        }
    }

    #[test]
    fn headers_behind_tags_are_read() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let (a6, b6) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
        let ether = Packet::new().ether(MacAddr([2; 6]), MacAddr([4; 6]));
        let of = |outer: &[u16], tags: usize, kind: u8| {
            let tagged = outer.iter().chain(&[7; 9][..tags - outer.len()]);
            let tagged = tagged.fold(ether.clone(), |packet, id| packet.vlan(*id));
            match kind {
                0 => tagged.ipv4(a, b).tcp(5, 80).flags(0x12).build(),
                _ => tagged.ipv6(a6, b6).udp(5, 80).build(),
            }
        };
        for kind in 0..2 {
            // All but the offset is as behind the outer tag alone.
            let one = of(&[9], 1, kind);
            for tags in 2..=MAX_DEPTH {
                let mut more = of(&[9], tags, kind);
                for tpid in [[0x81, 0], [0x88, 0xa8], [0x91, 0]] {
                    more[12..14].copy_from_slice(&tpid);
                    assert_eq!(fields(&more), fields(&one));
                    let mut words = [7; WORDS];
                    let found = read(3, &more, more.len(), true, &mut words);
                    assert_eq!(found, Some((14 + tags * TAG_LEN, kind == 1)));
                    assert!(!ends_in_tags(&words));
                }
                for end in 0..more.len() {
                    let in_tags = (14..14 + tags * TAG_LEN).contains(&end);
                    assert_eq!(ends_in_tags(&fields(&more[..end])), in_tags, "{tags} {end}");
                }
            }
            let deep = fields(&of(&[9], MAX_DEPTH + 1, kind));
            assert_eq!((ends_in_tags(&deep), NW_PROTO.get(&deep)), (true, 0));
        }
        let mut arp = Packet::arp_request(MacAddr([2; 6]), a, b).build();
        arp.splice(12..12, [0x81, 0, 0, 9, 0x81, 0, 0, 7]);
        let words = fields(&arp);
        assert_eq!((DL_TYPE.get(&words), NW_SRC.get(&words)), (0x806, 0x0a00_0001));
    }

    fn fields(frame: &[u8]) -> Words {
        let mut words = [7; WORDS];
        read(3, frame, frame.len(), true, &mut words);
        words
    }

    #[test]
    fn nothing_behind_the_end_of_the_ip_packet_is_read() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let ether = Packet::new().ether(MacAddr([2; 6]), MacAddr([4; 6]));
        // Eight bytes of TCP, and a trailer where its flags would be.
        let mut frame = ether.clone().ipv4(a, b).tcp(5, 81).flags(0x10).build();
        assert_eq!((TP_DST.get(&fields(&frame)), TCP_FLAGS.get(&fields(&frame))), (81, 0x10));
        for length in 20..40u8 {
            frame[17] = length;
            let words = fields(&frame);
            assert_eq!((NW_PROTO.get(&words), TP_DST.get(&words)), (6, 0), "{length}");
            assert_eq!(TCP_FLAGS.get(&words), 0, "{length}");
        }
        // A packet that ends behind the frame's end, or before its own header's.
        for length in [19, 41, 255] {
            frame[17] = length;
            assert_eq!((NW_PROTO.get(&fields(&frame)), DL_TYPE.get(&fields(&frame))), (0, 0x800));
        }
        // The same where the rest is in further buffers.
        let mut words = [0; WORDS];
        read(3, &frame, 14 + 255, true, &mut words);
        assert_eq!(TP_DST.get(&words), 81);
    }

    #[test]
    fn extension_headers_are_walked() {
        let ether = Packet::new().ether(MacAddr([2; 6]), MacAddr([4; 6]));
        let (a, b) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let plain = ether.ipv6(a, b).tcp(5, 80).flags(2).build();
        let with = |headers: &[(u8, &[u8])]| {
            let mut frame = plain.clone();
            for (kind, header) in headers.iter().rev() {
                let mut header = header.to_vec();
                header[0] = std::mem::replace(&mut frame[20], *kind);
                let length = u16::from_be_bytes([frame[18], frame[19]]) + header.len() as u16;
                frame[18..20].copy_from_slice(&length.to_be_bytes());
                frame.splice(54..54, header);
            }
            fields(&frame)
        };
        let options = [0, 0, 1, 4, 0, 0, 0, 0];
        let chain = [(0, &options[..]), (43, &options[..]), (60, &options[..])].repeat(30);
        for headers in [&[][..], &[(60, &options[..])], &chain] {
            let words = with(headers);
            assert_eq!((NW_PROTO.get(&words), TP_DST.get(&words)), (6, 80), "{}", headers.len());
            assert_eq!((TCP_FLAGS.get(&words), NW_FRAG.get(&words)), (2, 0));
        }
        let fragment = |offset: u8, more: u8| {
            let words =
                with(&[(60, &options[..]), (44, &[0, 0, 0, offset << 3 | more, 0, 0, 0, 1])]);
            (NW_PROTO.get(&words), NW_FRAG.get(&words), TP_DST.get(&words))
        };
        assert_eq!(fragment(0, 0), (6, 0, 80));
        assert_eq!(fragment(0, 1), (6, fragment::ANY, 80));
        assert_eq!(fragment(1, 1), (44, fragment::ANY | fragment::LATER, 0));
        // A header that leads behind the packet's end.
        let words = with(&[(60, &[0, 9, 1, 4, 0, 0, 0, 0])]);
        assert_eq!((NW_PROTO.get(&words), DL_TYPE.get(&words)), (0, 0x86dd));
    }

    #[test]
    fn fields_of_ipv6_are_read() {
        let ether = Packet::new().ether(MacAddr([2; 6]), MacAddr([4; 6]));
        let (a, b) = ("2001:db8:1::1".parse().unwrap(), "fe80::2".parse().unwrap());
        let mut frame = ether.clone().ipv6(a, b).tos(0x1c).ttl(7).tcp(5, 80).build();
        (frame[15], frame[16], frame[17]) = (0xc1, 0x23, 0x45);
        let words = fields(&frame);
        assert_eq!(long(&words, IPV6_SRC), a.to_bits());
        assert_eq!(long(&words, IPV6_DST), b.to_bits());
        assert_eq!((IPV6_LABEL.get(&words), NW_TOS.get(&words)), (0x12345, 0x1c));
        assert_eq!((NW_TTL.get(&words), TP_DST.get(&words)), (7, 80));
        // Only the narrow words are touched if no rule looks at the others.
        let mut narrow = [7; WORDS];
        assert_eq!(read(3, &frame, frame.len(), false, &mut narrow), Some((14, true)));
        assert_eq!((&narrow[..NARROW], &narrow[NARROW..]), (&words[..NARROW], &[7; 8][..]));

        let target: std::net::Ipv6Addr = "fe80::9".parse().unwrap();
        let option = |kind: u8, mac: u8| [kind, 1, 2, 0, 0, 0, 0, mac];
        let message = |kind: u8, options: &[[u8; 8]]| {
            let repr = icmpv6::Icmp6Repr { kind, code: 0, rest: 0 };
            let payload = [&target.octets()[..], &options.concat()].concat();
            fields(&ether.clone().ipv6(a, b).icmp6(repr).payload(&payload).build())
        };
        let shown = |words: &Words| {
            (long(words, ND_TARGET), ND_SLL.get(words) & 0xff, ND_TLL.get(words) & 0xff)
        };
        let t = target.to_bits();
        assert_eq!(shown(&message(135, &[option(1, 5)])), (t, 5, 0));
        assert_eq!(shown(&message(136, &[option(5, 1), option(2, 6)])), (t, 0, 6));
        assert_eq!(shown(&message(135, &[])), (t, 0, 0));
        assert_eq!(shown(&message(135, &[option(1, 5), option(1, 5)])), (0, 0, 0));
        assert_eq!(shown(&message(135, &[[1, 0, 2, 0, 0, 0, 0, 5]])), (t, 0, 0));
        assert_eq!(shown(&message(134, &[option(1, 5)])), (0, 0, 0));
    }

    proptest! {
        /// Plain packets are read at once, those behind a tag by the view: both read the same.
        #[test]
        fn plain_packets_are_read_like_others(
            mut ip in proptest::collection::vec(any::<u8>(), 20..70),
            number in prop_oneof![Just(6u8), Just(17), any::<u8>()],
            first in prop_oneof![Just(0x45u8), any::<u8>()],
            part in prop_oneof![Just(0u16), Just(0x4000), any::<u16>()],
            (length, offset) in (0..72u16, prop_oneof![Just(0x50u8), any::<u8>()]),
        ) {
            (ip[0], ip[9]) = (first, number);
            ip[2..4].copy_from_slice(&length.to_be_bytes());
            ip[6..8].copy_from_slice(&part.to_be_bytes());
            ip.iter_mut().skip(32).take(1).for_each(|byte| *byte = offset);
            let mut frame = vec![2; 12];
            frame.extend(ether::IPV4.to_be_bytes());
            frame.extend(&ip);
            let mut tagged = frame.clone();
            tagged.splice(12..12, [0x81, 0, 0, 9]);
            let mut others = fields(&tagged);
            VLAN.set(&mut others, 0);
            prop_assert_eq!(fields(&frame), others);
        }

        /// Bytes behind the end of the IP packet change nothing, wherever it ends.
        #[test]
        fn trailers_change_nothing(
            mut ip in proptest::collection::vec(any::<u8>(), 20..100),
            version in prop_oneof![Just(4u8), Just(6)], number in prop_oneof![Just(6u8), Just(17), Just(1), Just(60), Just(44)],
            trailer in proptest::collection::vec(any::<u8>(), 0..60), fragment: bool,
        ) {
            let kind = if version == 4 { ether::IPV4 } else { ether::IPV6 };
            ip.resize(ip.len().max(40), 0);
            let length = ip.len() as u16;
            if version == 4 {
                ip[0] = 0x45 + (ip[0] & 3);
                ip[2..4].copy_from_slice(&length.to_be_bytes());
                ip[9] = number;
                if !fragment {
                    ip[6..8].fill(0);
                }
            } else {
                ip[0] = 0x60;
                ip[4..6].copy_from_slice(&(length - 40).to_be_bytes());
                ip[6] = number;
            }
            let mut frame = vec![2; 12];
            frame.extend(kind.to_be_bytes());
            frame.extend(&ip);
            let bare = fields(&frame);
            frame.extend(&trailer);
            prop_assert_eq!(fields(&frame), bare);
        }
    }
}
