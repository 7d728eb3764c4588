//! VLAN tags: IEEE 802.1Q (0x8100) and 802.1ad (0x88a8).

use crate::Result;
use crate::bytes::{be16, header, put, room};
use crate::ethernet::{self, EthernetView, ethertype};
use crate::mpls::{ENTRY_LEN, Stack};

crate::number! {
    /// Id of a VLAN, 12 bits: 0 in tags that only carry a priority, 4095 is reserved.
    pub struct VlanId(u16);
}

/// Bytes in a tag.
pub const TAG_LEN: usize = 4;
/// The largest VLAN id that may be used; 0 means priority only, 4095 is reserved.
pub const MAX_ID: VlanId = VlanId(4094);
const WHAT: &str = "VLAN tag";

/// True if `ethertype` is that of a tag.
#[inline]
pub const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, ethertype::VLAN | ethertype::DOT1AD | ethertype::QINQ_9100)
}

/// The content of one tag, with its TPID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The TPID: 0x8100 or 0x88a8.
    pub tpid: u16,
    /// Priority, drop eligibility and id as on the wire.
    pub tci: u16,
}

impl Tag {
    /// An 802.1Q tag with priority 0; bits above the 12 of the id are ignored.
    pub const fn dot1q(id: u16) -> Self {
        Self { tpid: ethertype::VLAN, tci: id & 0xfff }
    }

    /// An 802.1ad service tag with priority 0.
    pub const fn dot1ad(id: u16) -> Self {
        Self { tpid: ethertype::DOT1AD, tci: id & 0xfff }
    }

    /// The VLAN id.
    #[inline]
    pub const fn id(self) -> VlanId {
        VlanId(self.tci & 0xfff)
    }

    /// The priority code point, 0 to 7.
    #[inline]
    pub const fn priority(self) -> u8 {
        (self.tci >> 13) as u8
    }

    /// The drop eligible indicator.
    #[inline]
    pub const fn drop_eligible(self) -> bool {
        self.tci & 0x1000 != 0
    }
}

/// The four bytes after a tag's TPID: the tag's content and the next type.
#[derive(Clone, Copy, Debug)]
pub struct VlanView<'a> {
    header: &'a [u8; TAG_LEN],
    payload: &'a [u8],
}

impl<'a> VlanView<'a> {
    /// Parses the tag at the start of `data`, which follows the TPID.
    ///
    /// # Errors
    /// `Truncated` below four bytes.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let (header, payload) = header(data, WHAT)?;
        Ok(Self { header, payload })
    }

    /// Priority, drop eligibility and id.
    #[inline]
    pub fn tci(&self) -> u16 {
        be16(self.header, 0)
    }

    /// The VLAN id.
    #[inline]
    pub fn id(&self) -> u16 {
        self.tci() & 0xfff
    }

    /// The type of the payload.
    #[inline]
    pub fn ethertype(&self) -> u16 {
        be16(self.header, 2)
    }

    /// The bytes after the tag.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Writes a tag's content and the type that follows it.
///
/// # Errors
/// `NoRoom` below four bytes.
#[inline]
pub fn emit(tci: u16, ethertype: u16, buf: &mut [u8]) -> Result<usize> {
    let b = room::<TAG_LEN>(buf, WHAT)?;
    put(b, 0, tci.to_be_bytes());
    put(b, 2, ethertype.to_be_bytes());
    Ok(TAG_LEN)
}

/// Walks the tags of a frame, outermost first, and ends at the first type that is not a tag or at a
/// truncated tag.
#[derive(Clone, Copy, Debug)]
pub struct Tags<'a> {
    ethertype: u16,
    rest: &'a [u8],
}

impl<'a> Tags<'a> {
    /// Starts after an ethertype.
    #[inline]
    pub fn new(ethertype: u16, rest: &'a [u8]) -> Self {
        Self { ethertype, rest }
    }

    /// The type after the tags that were walked.
    #[inline]
    pub fn ethertype(&self) -> u16 {
        self.ethertype
    }

    /// The bytes after the tags that were walked.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.rest
    }
}

impl Iterator for Tags<'_> {
    type Item = Tag;

    #[inline]
    fn next(&mut self) -> Option<Tag> {
        if !is_tag(self.ethertype) {
            return None;
        }
        let view = VlanView::parse(self.rest).ok()?;
        let tag = Tag { tpid: self.ethertype, tci: view.tci() };
        self.ethertype = view.ethertype();
        self.rest = view.payload();
        Some(tag)
    }
}

/// A frame's Ethernet header and its tags, parsed.
#[derive(Clone, Copy, Debug)]
pub struct Layer2<'a> {
    /// The Ethernet header.
    pub ethernet: EthernetView<'a>,
    /// The first two tags, outermost first.
    pub tags: [Option<Tag>; 2],
    /// Number of tags.
    pub tag_count: usize,
    /// The type after the last tag.
    pub ethertype: u16,
    /// Offset of the payload in the frame: 14, 18, 22 ...
    pub payload_offset: usize,
    /// The bytes after the tags.
    pub payload: &'a [u8],
}

/// Reads the Ethernet header and every tag of a frame.
///
/// # Errors
/// `Truncated` when the frame ends in the header or in a tag.
#[inline]
pub fn layer2(frame: &[u8]) -> Result<Layer2<'_>> {
    let ethernet = EthernetView::parse(frame)?;
    let mut walk = Tags::new(ethernet.ethertype(), ethernet.payload());
    let (mut tags, mut tag_count) = ([None; 2], 0);
    for tag in walk.by_ref() {
        if let Some(place) = tags.get_mut(tag_count) {
            *place = Some(tag);
        }
        tag_count += 1;
    }
    if is_tag(walk.ethertype()) {
        VlanView::parse(walk.payload())?;
    }
    Ok(Layer2 {
        ethernet,
        tags,
        tag_count,
        ethertype: walk.ethertype(),
        payload_offset: ethernet::HEADER_LEN + tag_count * TAG_LEN,
        payload: walk.payload(),
    })
}

/// Labels of a stack that are looked at; no router pushes as many.
const MAX_LABELS: usize = 64;

/// Returns the offset of the network header of an Ethernet frame, behind all tags, and true if it
/// is behind MPLS labels (RFC 3032). A frame too short for its link header gives 14 and false.
pub fn network(frame: &[u8]) -> (usize, bool) {
    let Ok(l2) = layer2(frame) else { return (ethernet::HEADER_LEN, false) };
    if l2.ethertype != ethertype::MPLS {
        return (l2.payload_offset, false);
    }
    let labels = Stack::new(l2.payload).take(MAX_LABELS).count();
    (l2.payload_offset + labels * ENTRY_LEN, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_header_is_behind_tags_and_labels() {
        let frame = |rest: &[u8]| [&[0; 12][..], rest].concat();
        for (rest, want) in [
            (&[8, 0, 0x45][..], (14, false)),
            (&[0x81, 0, 0, 5, 8, 0, 0x45], (18, false)),
            (&[0x88, 0x47, 0, 1, 1, 64, 0x45], (18, true)),
            (&[0x81, 0, 0, 5, 0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64, 0x60], (26, true)),
            // Labels have no bottom.
            (&[0x88, 0x47, 0, 1, 0, 64, 0, 2], (18, true)),
            (&[0x88], (14, false)),
        ] {
            assert_eq!(network(&frame(rest)), want, "{rest:02x?}");
        }
        assert_eq!(network(&frame(&[&[0x88, 0x47][..], &[0; 1000]].concat())).0, 14 + 64 * 4);
    }
    use proptest::prelude::*;
    use std::vec::Vec;

    const DOUBLE: [u8; 26] = [
        0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x88, 0xa8, 0x00, 0x64, 0x81, 0x00, 0xb0, 0x0a,
        0x08, 0x00, 0x45, 0, 0, 20,
    ];

    #[test]
    fn two_tags_are_resolved() {
        let l2 = layer2(&DOUBLE).unwrap();
        assert_eq!(l2.tags[0], Some(Tag::dot1ad(100)));
        let inner = l2.tags[1].unwrap();
        assert_eq!((inner.id(), inner.priority(), inner.drop_eligible()), (VlanId(10), 5, true));
        assert_eq!((l2.ethertype, l2.payload_offset), (ethertype::IPV4, 22));
        assert_eq!(l2.payload, &DOUBLE[22..]);
    }

    #[test]
    fn a_frame_that_ends_in_a_tag_is_refused() {
        for len in 0..22 {
            assert!(layer2(&DOUBLE[..len]).is_err(), "{len}");
        }
        assert!(layer2(&DOUBLE[..22]).is_ok());
    }

    proptest! {
        #[test]
        fn tags_parse_back(tcis in proptest::collection::vec(any::<u16>(), 0..6)) {
            let mut frame = [0u8; 64];
            let mut at = 12;
            for tci in &tcis {
                frame[at..at + 2].copy_from_slice(&ethertype::VLAN.to_be_bytes());
                at += 2;
                emit(*tci, ethertype::IPV6, &mut frame[at..]).unwrap();
                at += 2;
            }
            if tcis.is_empty() {
                frame[12..14].copy_from_slice(&ethertype::IPV6.to_be_bytes());
            }
            let l2 = layer2(&frame).unwrap();
            prop_assert_eq!((l2.ethertype, l2.tag_count), (ethertype::IPV6, tcis.len()));
            prop_assert_eq!(l2.payload_offset, at + 2);
            let back: Vec<u16> =
                Tags::new(l2.ethernet.ethertype(), l2.ethernet.payload()).map(|t| t.tci).collect();
            prop_assert_eq!(back, tcis);
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(l2) = layer2(&data) {
                prop_assert_eq!(l2.payload_offset + l2.payload.len(), data.len());
            }
        }
    }
}
