//! The Ethernet header of packets that have been stepped over it.

use thalweg_buffer::PktMut;
use thalweg_device::IfRow;
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

/// Returns the length of the header that a packet of this ethertype came with, if it is known:
/// nothing else has been stepped over.
fn received(before: &[u8], stepped: usize, kind: u16) -> Option<usize> {
    let tags = stepped.checked_sub(HEADER_LEN)?;
    let header = before.get(before.len().checked_sub(stepped)?..)?;
    (tags <= 8 && tags % 4 == 0 && is_header(header, kind)).then_some(stepped)
}

/// Writes a header to an interface, for a packet whose own is not known: it came out of a tunnel.
fn write(to: &mut [u8], row: &IfRow, kind: u16) {
    let end = to.len() - 2;
    to[..6].copy_from_slice(&row.mac.0);
    // Of nobody in particular: a locally administered address.
    to[6..12].copy_from_slice(&[2, 0xfe, 0, 0, 0, 0]);
    to[12..end].copy_from_slice(row.tags.as_slice());
    to[end..].copy_from_slice(&kind.to_be_bytes());
}

/// Has a packet begin with its Ethernet header again. `row` is of the interface that received it.
/// Returns false if there is no room for one.
pub(crate) fn restore(p: &mut PktMut<'_>, row: &IfRow, kind: u16) -> bool {
    if let Some(len) = received(p.before(LONGEST), p.stepped(), kind) {
        return p.push(len).is_some();
    }
    let len = HEADER_LEN + row.tags.as_slice().len();
    p.push(len).map(|header| write(header, row, kind)).is_some()
}

/// Returns the Ethernet header of a packet, in the first bytes of an array, and its length.
pub(crate) fn copy(p: &PktMut<'_>, row: &IfRow, kind: u16) -> ([u8; LONGEST], usize) {
    let mut header = [0; LONGEST];
    let before = p.before(LONGEST);
    let len = match received(before, p.stepped(), kind) {
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

    const PLAIN: [u8; 14] = [1, 0, 0x5e, 0, 0, 5, 2, 0, 0, 0, 0, 9, 8, 0];

    #[test]
    fn a_header_is_one_that_its_tags_and_type_fit() {
        assert_eq!(received(&PLAIN, 14, 0x800), Some(14));
        assert_eq!(received(&PLAIN, 14, 0x86dd), None, "another type");
        let mut tagged = PLAIN[..12].to_vec();
        tagged.extend([0x81, 0, 0, 7, 8, 0]);
        assert_eq!(received(&tagged, 18, 0x800), Some(18));
        let headroom = [&[0; 4][..], &tagged].concat();
        assert_eq!(received(&headroom, 18, 0x800), Some(18));
        tagged[12] = 0x88;
        assert_eq!(received(&tagged, 18, 0x800), None, "labels");
        assert_eq!(received(&PLAIN, 0, 0x800), None);
        assert_eq!(received(&PLAIN, 34, 0x800), None);
        assert_eq!(received(&PLAIN, 18, 0x800), None);
    }

    #[test]
    fn one_that_is_not_known_is_made() {
        let mac = thalweg_device::MacAddr([2, 0, 0, 0, 0, 1]);
        let row = IfRow { mac, ..IfRow::default() };
        let mut header = [0; 14];
        write(&mut header, &row, 0x86dd);
        assert_eq!(header, [2, 0, 0, 0, 0, 1, 2, 0xfe, 0, 0, 0, 0, 0x86, 0xdd]);
    }
}
