//! Metadata of a packet: the first cache line of its buffer.

use crate::SwIfIndex;
/// Marks of a packet. A set bit is mirrored in the flags of the frame that carries the packet.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Flags(u16);

impl Flags {
    /// More segments follow the first.
    pub const CHAINED: Flags = Flags(1);
    /// The packet is being traced; [`Meta::trace`] is the number of its trace.
    pub const TRACED: Flags = Flags(2);
    /// [`Meta::offload`] holds work for a device (checksum, segmentation).
    pub const OFFLOAD: Flags = Flags(4);
    /// The packet was sampled on input, and its disposition must be reported.
    ///
    /// A frame carries this mark in a column ([`Frame::sampled`](crate::Frame::sampled)), so that
    /// nothing is written to the packet; a packet outside of frames carries it itself. The mark
    /// stays with a packet that is held, dropped, or handed over. If several packets replace one
    /// (fragments, segments, copies), the first inherits it.
    pub const SAMPLED: Flags = Flags(8);
    /// The router itself originated this packet; not what it made of a forwarded packet.
    pub const LOCAL: Flags = Flags(16);
    /// Another field of the meta is in use.
    pub const META: Flags = Flags(32);
    /// The packet's addresses, ports or tags may have been changed since it was sampled. Packets
    /// that were not sampled do not have it: code that changes packets sets it by
    /// [`PktMut::note_translation`](crate::PktMut::note_translation).
    pub const TRANSLATED: Flags = Flags(64);
    /// A multicast or broadcast frame: it is counted when it is sent.
    pub const MULTICAST: Flags = Flags(128);
    /// The packet came to a link-layer broadcast or multicast address: nothing sent to it is
    /// answered by an ICMP error, and it must not be to one host's IP address (RFC 1812 section
    /// 5.3.4).
    pub const GROUP: Flags = Flags(256);
    /// An IPv4 packet that came from or to an address of one link, and is not forwarded (RFC 3927
    /// section 2.7).
    pub const LINK_LOCAL: Flags = Flags(512);
    /// Its VLAN tags are not those that it was sampled with. Packets that were not sampled do not
    /// have it: see [`PktMut::note_retagging`](crate::PktMut::note_retagging). Packets made from it
    /// have this mark, too.
    pub const RETAGGED: Flags = Flags(1024);
    /// Priority and drop eligibility (IEEE 802.1Q-2018 section 9.6) of a tag that was removed: the
    /// next tag gets them. Packets made from it have them, too.
    pub const PRIORITY: Flags = Flags(0xf000);

    const ALL: [Flags; 12] = [
        Flags::CHAINED,
        Flags::TRACED,
        Flags::OFFLOAD,
        Flags::SAMPLED,
        Flags::LOCAL,
        Flags::META,
        Flags::TRANSLATED,
        Flags::MULTICAST,
        Flags::GROUP,
        Flags::LINK_LOCAL,
        Flags::RETAGGED,
        Flags::PRIORITY,
    ];

    /// Returns the [`PRIORITY`](Self::PRIORITY) of a tag's control information.
    #[inline]
    pub const fn of_priority(tci: u16) -> Flags {
        Flags(tci & Flags::PRIORITY.0)
    }
    /// Returns the priority bits of a tag, at their place in its control information.
    #[inline]
    pub const fn priority(self) -> u16 {
        self.0 & Flags::PRIORITY.0
    }

    /// Returns no marks.
    pub const fn empty() -> Flags {
        Flags(0)
    }
    /// Returns true if no bit is set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Returns true if every bit of `other` is set.
    #[inline]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// Returns true if any bit of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
    /// Sets the bits of `other`.
    #[inline]
    pub const fn insert(&mut self, other: Flags) {
        self.0 |= other.0;
    }
    /// Clears the bits of `other`.
    #[inline]
    pub const fn remove(&mut self, other: Flags) {
        self.0 &= !other.0;
    }
    /// Returns the bits of both sets.
    #[inline]
    pub const fn intersection(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }
    /// Returns the union of both sets.
    #[inline]
    pub const fn union(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

// No mark means two things.
const _: () = {
    let (mut i, mut seen) = (0, 0);
    while i < Flags::ALL.len() {
        assert!(seen & Flags::ALL[i].0 == 0);
        seen |= Flags::ALL[i].0;
        i += 1;
    }
};

/// Kind of GSO packet that a device received.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum GsoKind {
    /// An ordinary packet.
    #[default]
    None,
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP (every segment is a datagram).
    Udp,
}

/// Offload work that the sender's stack left to the device: the fields of a virtio-net header, but
/// with offsets from the network header, so that they are valid whatever the link header.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Offload {
    /// Segment size in bytes of payload; meaningful if `gso` is not `None`.
    pub gso_size: u16,
    /// Length of the headers from the network header up to the payload.
    pub hdr_len: u16,
    /// Start of the checksum's range, from the start of the network header.
    pub csum_start: u16,
    /// Offset of the checksum field in that range.
    pub csum_offset: u16,
    /// The checksum field holds the pseudo-header's sum and must be completed.
    pub needs_csum: bool,
    /// The device has validated the checksums already.
    pub data_valid: bool,
    /// Kind of GSO packet.
    pub gso: GsoKind,
    /// A TCP GSO packet with the CWR bit (explicit congestion notification).
    pub ecn: bool,
}

/// Type, code and rest of header of an ICMP error (RFC 792).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct IcmpCause {
    /// ICMP type.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// Next-hop MTU, for "fragmentation needed" (RFC 1191).
    pub mtu: u16,
}

impl IcmpCause {
    const fn new(kind: u8, code: u8) -> IcmpCause {
        IcmpCause { kind, code, mtu: 0 }
    }
    /// Time exceeded in transit.
    pub const TTL_EXCEEDED: IcmpCause = IcmpCause::new(11, 0);
    /// No route.
    pub const NET_UNREACHABLE: IcmpCause = IcmpCause::new(3, 0);
    /// The destination host does not answer (RFC 1812 section 5.2.7.1).
    pub const HOST_UNREACHABLE: IcmpCause = IcmpCause::new(3, 1);
    /// Unknown protocol at this router.
    pub const PROTOCOL_UNREACHABLE: IcmpCause = IcmpCause::new(3, 2);
    /// No listener on this port.
    pub const PORT_UNREACHABLE: IcmpCause = IcmpCause::new(3, 3);
    /// Communication with the destination host is administratively prohibited.
    pub const PROHIBITED: IcmpCause = IcmpCause::new(3, 10);
    /// The packet exceeds the MTU and must not be fragmented.
    pub const fn frag_needed(mtu: u16) -> IcmpCause {
        IcmpCause { kind: 3, code: 4, mtu }
    }
}

/// Progress of the search for the worker that has a packet's flow.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Search {
    /// Search to be made.
    #[default]
    New,
    /// The owner does not have it; this worker is asked for an older one.
    Before,
    /// No worker has it, and the packet is back at the owner.
    Done,
}

/// Number of labels that a router has taken off a packet, and put before it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LabelsChanged {
    /// Taken off.
    pub popped: u8,
    /// Put before it.
    pub pushed: u8,
}

/// Metadata of a packet; default in every free buffer.
///
/// A word that one node leaves for another has a field and a type of its own, with its owner and
/// its life in the description, so that two features cannot overwrite each other's.
#[derive(Default, Debug)]
#[repr(C)]
pub struct Meta {
    /// Marks; see [`Flags`]. To be changed through the packet, so that its frame is updated.
    pub(crate) flags: Flags,
    /// Number of the trace record, if [`Flags::TRACED`].
    pub trace: u16,
    /// Bytes in the segments after the first.
    pub(crate) rest_len: u32,
    /// Offset and length of the first segment while no frame carries them.
    pub(crate) view: u32,
    /// Interface that the packet came from while no frame carries it.
    pub(crate) rx_if: SwIfIndex,
    /// Interface that the packet leaves by while no frame carries it.
    pub(crate) tx_if: SwIfIndex,
    /// The side column's value while no frame carries it.
    pub(crate) aux: u32,
    /// The ICMP error that a node asks for. Owner: the node that answers with it. Life: from the
    /// request to that node.
    pub icmp: IcmpCause,
    /// Progress of the search for the worker that has the packet's flow. Owner: the feature whose
    /// hand-off queue the packet is in. Life: one hand-off.
    pub search: Search,
    /// Number of interfaces that have received the packet because a route says so. Owner: look-ups
    /// of routes. Life: the packet's.
    pub entered: u8,
    /// Labels that the packet came with and has no longer, and labels that were put before it, as
    /// far as an answer must know them. Owner: MPLS. Life: to the node that answers it.
    pub labels: LabelsChanged,
    /// The forwarding object by which a labelled packet would have left. Owner and life: as above.
    pub path: u32,
    /// Offload work, if [`Flags::OFFLOAD`].
    pub offload: Offload,
    /// Sample id: correlates the packet with its sample on the worker that sampled it, once the
    /// packet has been handed to another worker; 0 otherwise.
    pub sample_id: u32,
    /// Steps counted against the bound of circles. Owner: the engine, which counts when much more
    /// happens to packets than they need. Packets made from it have them, too.
    pub laps: u16,
}

impl Meta {
    /// Returns the packet's marks.
    #[inline]
    pub fn flags(&self) -> Flags {
        self.flags
    }
}
