//! Link headers of packets, also of those that were dropped anywhere in the graph.

use crate::interface::{InterfaceView, header_len};
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_wire::bytes::get_be16;
use thalweg_wire::{WireError, gso, vlan};

/// Length of an Ethernet header without tags.
const HEADER: usize = 14;
/// Length of a VLAN tag.
const TAG: usize = 4;

/// The header that packets of an interface begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// An Ethernet header.
    #[default]
    Ethernet,
    /// An IP header.
    Ip,
}

impl Link {
    /// Returns the header that packets of this interface begin with.
    #[must_use]
    pub fn of(view: &InterfaceView) -> Link {
        if view.ethernet { Link::Ethernet } else { Link::Ip }
    }

    /// Returns the offset of the network header.
    pub(crate) fn network(self, packet: &[u8]) -> usize {
        match self {
            Link::Ethernet => vlan::network(packet).0,
            Link::Ip => 0,
        }
    }

    /// Returns whether the network header is behind MPLS labels.
    pub(crate) fn is_labelled(self, packet: &[u8]) -> bool {
        self == Link::Ethernet && vlan::network(packet).1
    }

    /// Returns how a GSO packet of `length` bytes with these headers is segmented.
    pub(crate) fn plan(
        self,
        head: &[u8],
        length: usize,
        gso_size: u16,
    ) -> Result<gso::Plan, WireError> {
        match self {
            Link::Ethernet => gso::Plan::new(head, length, gso_size.into()),
            Link::Ip => gso::Plan::at(head, 0, length, gso_size.into()),
        }
    }
}

/// Returns how many bytes before packet `i` belong to it: headers that nodes have stepped over. 0
/// if it begins with its link header, or never had one.
///
/// After tags were removed, the buffer begins with the rest of them.
#[must_use]
pub fn stepped_over(frame: &Frame, i: u8) -> usize {
    header_among(frame.before(i, frame.stepped(i))).len()
}

/// Returns the link header that a packet came with, which nodes have stepped over; nothing if it
/// begins with its link header, or never had one.
#[must_use]
pub fn came_behind<'p>(p: &'p PktMut<'_>) -> &'p [u8] {
    header_among(p.before(p.stepped()))
}

/// Returns the header among the bytes before a packet.
fn header_among(before: &[u8]) -> &[u8] {
    let stepped = before.len();
    if stepped < HEADER || !(stepped - HEADER).is_multiple_of(TAG) {
        return &[];
    }
    let is_header = |skip: &usize| before.get(*skip..).is_some_and(|b| header_len(b) == b.len());
    let skip = (0..=stepped - HEADER).step_by(TAG).find(is_header);
    before.get(skip.unwrap_or(0)..).unwrap_or_default()
}

/// Returns what dropped packet `i` begins with, [stepped over](stepped_over) headers included, if
/// packets of the interface that it came by begin with `came_with`.
#[must_use]
pub fn of_dropped(frame: &Frame, i: u8, came_with: Link) -> Link {
    let local = frame.meta(i).flags().contains(Flags::LOCAL);
    match (frame.pushed(i) > 0, frame.stepped(i)) {
        // The header is of the interface that the packet was leaving by.
        (true, _) => Link::Ethernet,
        // Made by the router, it has a link header if it is made of the packet that it answers.
        (false, 0) if local && is_ip(frame.data(i), frame.total_len(i)) => Link::Ip,
        (false, 0) if local => Link::Ethernet,
        _ => came_with,
    }
}

/// Returns whether the first bytes of a packet of `length` bytes are an IP header, by its version
/// and its length. GSO packets may have a length of 0.
#[must_use]
pub fn is_ip(header: &[u8], length: usize) -> bool {
    let word = |at: usize| get_be16(header, at).map_or(0, usize::from);
    match header.first() {
        Some(0x45..=0x4f) => header.len() >= 20 && [0, length].contains(&word(2)),
        Some(0x60..=0x6f) => header.len() >= 40 && (word(4) == 0 || word(4) + 40 == length),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_buffer::{Cache, Pool, PoolConfig};

    #[test]
    fn what_is_left_of_removed_tags_is_no_header() {
        let pool = Pool::new(&PoolConfig { buffers: 64, data_size: 256, page_size: None }).unwrap();
        let mut cache = Cache::new(pool);
        let addresses = [2, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2];
        let tag = [0x81, 0, 0, 100];
        let tagged =
            |tags: usize| [&addresses[..], &tag.repeat(tags), &[8, 0], &[0x45; 20]].concat();
        let mut stepped_after = |tags: usize, pops: usize, pulled: usize| {
            let mut packet = cache.alloc().unwrap();
            assert!(packet.fill(&tagged(tags), &mut cache));
            let mut frame = Frame::new();
            assert!(frame.push(packet).is_ok());
            let mut p = frame.pkt(0);
            for _ in 0..pops {
                p.data_mut().copy_within(..12, 4);
                assert!(p.pull(4));
            }
            assert!(pulled == 0 || p.pull(pulled));
            let stepped = stepped_over(&frame, 0);
            cache.free_frame(&mut frame);
            stepped
        };
        assert_eq!(stepped_after(0, 0, 0), 0);
        assert_eq!(stepped_after(0, 0, 14), 14);
        assert_eq!(stepped_after(1, 0, 18), 18);
        assert_eq!(stepped_after(2, 0, 22), 22);
        assert_eq!(stepped_after(1, 1, 0), 0);
        assert_eq!(stepped_after(1, 1, 14), 14);
        assert_eq!(stepped_after(2, 1, 18), 18);
        assert_eq!(stepped_after(4, 4, 0), 0);
        assert_eq!(stepped_after(2, 2, 14), 14);
        drop(cache);
        assert_eq!(pool.audit().in_use, 0);
    }
}
