//! The Ethernet header of packets that have been stepped over it.

use thalweg_buffer::PktMut;
use thalweg_device::{IfRow, IfTable, SwIfIndex};
use thalweg_wire::bytes::get_be16;
use thalweg_wire::ethernet::{HEADER_LEN, ethertype};

/// Longest header: with two tags.
const LONGEST: usize = HEADER_LEN + 8;

/// Ethertypes of tags.
const TPIDS: [u16; 3] = [ethertype::VLAN, ethertype::DOT1AD, ethertype::QINQ_9100];

/// Returns whether these bytes are a header with as many tags as their length says, and this
/// ethertype.
fn is_header(bytes: &[u8], kind: u16) -> bool {
    let end = bytes.len() - 2;
    (12..end).step_by(4).all(|at| get_be16(bytes, at).is_some_and(|tpid| TPIDS.contains(&tpid)))
        && get_be16(bytes, end) == Some(kind)
}

/// The interface that has received a packet.
#[derive(Clone, Copy)]
pub(crate) struct Receiver<'t> {
    pub(crate) sw_if: SwIfIndex,
    pub(crate) row: &'t IfRow,
    pub(crate) all: &'t IfTable,
    /// True if it has no device: the bytes before a frame are not its own, such as the labels of a
    /// pseudowire, or the rest of a bridge port's tags.
    pub(crate) has_no_device: bool,
}

/// First bytes of the usual groups that frames for a router are sent to: IPv4's (RFC 1112 section
/// 6.4), IPv6's (RFC 2464 section 7), those of IEEE 802.1 and of IS-IS.
const GROUPS: [&[u8]; 5] =
    [&[0xff; 6], &[0x01, 0x00, 0x5e], &[0x33, 0x33], &[0x01, 0x80, 0xc2], &[0x09, 0x00, 0x2b]];

impl Receiver<'_> {
    /// Returns whether it takes frames to an address.
    fn takes(&self, to: &[u8]) -> bool {
        let Some(mac) = to.first_chunk::<6>() else { return false };
        let is_group = match self.has_no_device {
            // Other bytes than those of a header are to none of these.
            true => GROUPS.iter().any(|group| mac.starts_with(group)),
            false => mac[0] & 1 != 0,
        };
        is_group || *mac == self.row.mac.0 || self.all.is_secondary_mac(self.sw_if, *mac)
    }

    /// Returns the length of the header that a packet of this ethertype came with, if that is
    /// known: a packet that a route or a label has this interface receive came with another one.
    fn received(&self, before: &[u8], stepped: usize, kind: u16) -> Option<usize> {
        // Frames received by a device may also have a tag with only a priority.
        let own = HEADER_LEN + self.row.tags.as_slice().len();
        let len = if self.has_no_device { own } else { stepped };
        let tags = len.checked_sub(HEADER_LEN).filter(|_| len <= stepped)?;
        let header = before.get(before.len().checked_sub(len)?..)?;
        let is_it = tags <= 8 && tags % 4 == 0 && is_header(header, kind) && self.takes(header);
        is_it.then_some(len)
    }
}

/// Writes a header to an interface, for a packet whose own is not known: it came out of a tunnel.
fn write(to: &mut [u8], row: &IfRow, kind: u16) {
    let end = to.len() - 2;
    to[..6].copy_from_slice(&row.mac.0);
    // The source is nobody in particular: a locally administered address.
    to[6..12].copy_from_slice(&[2, 0xfe, 0, 0, 0, 0]);
    to[12..end].copy_from_slice(row.tags.as_slice());
    to[end..].copy_from_slice(&kind.to_be_bytes());
}

/// Makes a packet begin with its Ethernet header again. Returns false if there is no room for one.
pub(crate) fn restore(p: &mut PktMut<'_>, by: Receiver<'_>, kind: u16) -> bool {
    if let Some(len) = by.received(p.before(LONGEST), p.stepped(), kind) {
        return p.push(len).is_some();
    }
    let len = HEADER_LEN + by.row.tags.as_slice().len();
    p.push(len).map(|header| write(header, by.row, kind)).is_some()
}

/// Returns the Ethernet header of a packet, in the first bytes of an array, and its length.
pub(crate) fn copy(p: &PktMut<'_>, by: Receiver<'_>, kind: u16) -> ([u8; LONGEST], usize) {
    let (mut header, row) = ([0; LONGEST], by.row);
    let before = p.before(LONGEST);
    let len = match by.received(before, p.stepped(), kind) {
        Some(len) => {
            header[..len].copy_from_slice(&before[before.len() - len..]);
            len
        }
        None => {
            let len = HEADER_LEN + row.tags.as_slice().len();
            write(&mut header[..len], row, kind);
            len
        }
    };
    (header, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_device::MacAddr;

    const OUR: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const OSPF: [u8; 14] = [1, 0, 0x5e, 0, 0, 5, 2, 0, 0, 0, 0, 9, 8, 0];

    /// Returns what is known of the header of an IPv4 packet behind these bytes.
    fn received(before: &[u8], stepped: usize, has_no_device: bool) -> Option<usize> {
        let (row, all) = (IfRow { mac: OUR, ..IfRow::default() }, IfTable::default());
        let by = Receiver { sw_if: SwIfIndex(1), row: &row, all: &all, has_no_device };
        by.received(before, stepped, 0x800)
    }

    fn frame(to: MacAddr, from: [u8; 6], rest: &[u8]) -> Vec<u8> {
        [&to.0[..], &from, rest, &[8, 0]].concat()
    }

    #[test]
    fn a_header_is_one_that_its_tags_and_type_fit() {
        assert_eq!(received(&OSPF, 14, false), Some(14));
        let mut other = OSPF;
        other[12..].copy_from_slice(&[0x86, 0xdd]);
        assert_eq!(received(&other, 14, false), None, "another type");
        let mut tagged = frame(OUR, [2; 6], &[0x81, 0, 0, 7]);
        assert_eq!(received(&tagged, 18, false), Some(18));
        let headroom = [&[0; 4][..], &tagged].concat();
        assert_eq!(received(&headroom, 18, false), Some(18));
        tagged[12] = 0x88;
        assert_eq!(received(&tagged, 18, false), None, "labels");
        assert_eq!(received(&OSPF, 0, false), None);
        assert_eq!(received(&OSPF, 34, false), None);
        assert_eq!(received(&OSPF, 18, false), None);
    }

    #[test]
    fn a_header_is_to_the_interface() {
        let another = frame(MacAddr([2, 0, 0, 0, 0, 7]), [2; 6], &[]);
        assert_eq!(received(&another, 14, false), None, "a route has it received here");
        assert_eq!(received(&frame(OUR, [2; 6], &[]), 14, false), Some(14));
        assert_eq!(received(&frame(MacAddr::BROADCAST, [2; 6], &[]), 14, false), Some(14));
    }

    #[test]
    fn a_frame_that_enters_has_nothing_before_it() {
        // Frames come out of a pseudowire, behind labels.
        let inner = [&[9; 22][..], &OSPF].concat();
        assert_eq!(received(&inner[14..], 36, true), Some(14));
        // A port's tag was removed; the rest would be a header with a tag of the sender's choice.
        let from = [2, 0, 0x81, 0, 0, 7];
        let plain = frame(MacAddr::BROADCAST, from, &[]);
        let left = [&[0xff; 4][..], &plain].concat();
        assert_eq!(received(&left, 18, true), Some(14));
        assert_eq!(received(&[0; 22], 36, true), None);
    }

    #[test]
    fn one_that_is_not_known_is_made() {
        let row = IfRow { mac: OUR, ..IfRow::default() };
        let mut header = [0; 14];
        write(&mut header, &row, 0x86dd);
        assert_eq!(header, [2, 0, 0, 0, 0, 1, 2, 0xfe, 0, 0, 0, 0, 0x86, 0xdd]);
    }
}
