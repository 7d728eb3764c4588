//! Headers of a stream's packets.

use super::field::Field;

/// Content of a checksum field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sum {
    /// Right.
    #[default]
    Right,
    /// Zero: over UDP, none.
    Zero,
    /// The sum of the stream's first packet, in all packets.
    Keep,
    /// Wrong.
    Wrong,
}

/// A header, or what follows the last one. Field names are those of the RFCs; all are optional in
/// the sense that their default is what most packets have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Ethernet. Addresses left out are those of the port, and of what it sends to.
    Ethernet {
        /// Source address.
        source: Option<Field>,
        /// Destination address.
        destination: Option<Field>,
        /// Type; left out, that of the next layer.
        kind: Option<Field>,
    },
    /// VLAN tag.
    Vlan {
        /// VLAN identifier, 12 bits.
        id: Field,
        /// Priority, 3 bits.
        priority: Field,
        /// True for a service tag (0x88a8) rather than a customer one (0x8100).
        service: bool,
    },
    /// MPLS label stack entry.
    Mpls {
        /// Label, 20 bits.
        label: Field,
        /// Traffic class, 3 bits.
        class: Field,
        /// Time to live.
        ttl: Field,
        /// Bottom of stack; left out, set in the last entry.
        bottom: Option<bool>,
    },
    /// ARP for IPv4 over Ethernet.
    Arp {
        /// Operation: 1 request, 2 reply.
        operation: Field,
        /// Sender's hardware address; left out, that of the port.
        sender_mac: Option<Field>,
        /// Sender's protocol address.
        sender: Field,
        /// Target's hardware address.
        target_mac: Field,
        /// Target's protocol address.
        target: Field,
    },
    /// IPv4.
    Ipv4 {
        /// Source address.
        source: Field,
        /// Destination address.
        destination: Field,
        /// Time to live.
        ttl: Field,
        /// Differentiated services code point, 6 bits.
        dscp: Field,
        /// Identification.
        id: Field,
        /// Don't fragment.
        df: bool,
        /// Protocol; left out, that of the next layer.
        protocol: Option<Field>,
        /// Options, filled up to a multiple of four bytes.
        options: Vec<u8>,
        /// Its checksum.
        sum: Sum,
    },
    /// IPv6.
    Ipv6 {
        /// Source address.
        source: Field,
        /// Destination address.
        destination: Field,
        /// Hop limit.
        hops: Field,
        /// Traffic class.
        class: Field,
        /// Flow label, 20 bits.
        flow: Field,
        /// Next header; left out, that of the next layer.
        next: Option<Field>,
    },
    /// UDP.
    Udp {
        /// Source port.
        source: Field,
        /// Destination port.
        destination: Field,
        /// Its checksum.
        sum: Sum,
    },
    /// TCP.
    Tcp {
        /// Source port.
        source: Field,
        /// Destination port.
        destination: Field,
        /// Sequence number.
        sequence: Field,
        /// Acknowledgement number.
        acknowledgement: Field,
        /// Flags.
        flags: Field,
        /// Window.
        window: Field,
        /// Its checksum.
        sum: Sum,
    },
    /// ICMP, or ICMPv6 behind IPv6, with the header of an echo.
    Icmp {
        /// Type; left out, echo request.
        kind: Option<Field>,
        /// Code.
        code: Field,
        /// Identifier.
        id: Field,
        /// Sequence number.
        sequence: Field,
        /// Its checksum.
        sum: Sum,
    },
    /// Bytes of any kind.
    Raw(Vec<u8>),
    /// Bytes up to the packet's size: these, then over and over `fill`. The last layer; left out,
    /// zeros.
    Payload {
        /// First bytes.
        bytes: Vec<u8>,
        /// Filling after them.
        fill: Fill,
    },
}

/// Filling of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The byte.
    Byte(u8),
    /// 0, 1, 2, … 255, 0, …
    Count,
}

impl Layer {
    /// Ethernet between the ports.
    pub fn ethernet() -> Layer {
        Layer::Ethernet { source: None, destination: None, kind: None }
    }

    /// A VLAN tag.
    pub fn vlan(id: Field) -> Layer {
        Layer::Vlan { id, priority: Field::default(), service: false }
    }

    /// A label.
    pub fn mpls(label: Field) -> Layer {
        Layer::Mpls { label, class: Field::default(), ttl: Field::one(64u8), bottom: None }
    }

    /// IPv4.
    pub fn ipv4(source: Field, destination: Field) -> Layer {
        Layer::Ipv4 {
            source,
            destination,
            ttl: Field::one(64u8),
            dscp: Field::default(),
            id: Field::default(),
            df: false,
            protocol: None,
            options: Vec::new(),
            sum: Sum::Right,
        }
    }

    /// IPv6.
    pub fn ipv6(source: Field, destination: Field) -> Layer {
        Layer::Ipv6 {
            source,
            destination,
            hops: Field::one(64u8),
            class: Field::default(),
            flow: Field::default(),
            next: None,
        }
    }

    /// UDP.
    pub fn udp(source: Field, destination: Field) -> Layer {
        Layer::Udp { source, destination, sum: Sum::Right }
    }

    /// TCP, with ACK set.
    pub fn tcp(source: Field, destination: Field) -> Layer {
        Layer::Tcp {
            source,
            destination,
            sequence: Field::default(),
            acknowledgement: Field::default(),
            flags: Field::one(0x10u8),
            window: Field::one(65_535u16),
            sum: Sum::Right,
        }
    }

    /// An echo request.
    pub fn icmp() -> Layer {
        Layer::Icmp {
            kind: None,
            code: Field::default(),
            id: Field::default(),
            sequence: Field::default(),
            sum: Sum::Right,
        }
    }

    /// Its fields.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        let (must, may): (Vec<&Field>, Vec<&Option<Field>>) = match self {
            Layer::Ethernet { source, destination, kind } => {
                (vec![], vec![source, destination, kind])
            }
            Layer::Vlan { id, priority, .. } => (vec![id, priority], vec![]),
            Layer::Mpls { label, class, ttl, .. } => (vec![label, class, ttl], vec![]),
            Layer::Arp { operation, sender_mac, sender, target_mac, target } => {
                (vec![operation, sender, target_mac, target], vec![sender_mac])
            }
            Layer::Ipv4 { source, destination, ttl, dscp, id, protocol, .. } => {
                (vec![source, destination, ttl, dscp, id], vec![protocol])
            }
            Layer::Ipv6 { source, destination, hops, class, flow, next } => {
                (vec![source, destination, hops, class, flow], vec![next])
            }
            Layer::Udp { source, destination, .. } => (vec![source, destination], vec![]),
            Layer::Tcp {
                source, destination, sequence, acknowledgement, flags, window, ..
            } => (vec![source, destination, sequence, acknowledgement, flags, window], vec![]),
            Layer::Icmp { kind, code, id, sequence, .. } => (vec![code, id, sequence], vec![kind]),
            Layer::Raw(_) | Layer::Payload { .. } => (vec![], vec![]),
        };
        must.into_iter().chain(may.into_iter().flatten())
    }

    /// The layer's name in paths of fields, such as `ipv4` in `ipv4.source`.
    pub fn name(&self) -> &'static str {
        match self {
            Layer::Ethernet { .. } => "ethernet",
            Layer::Vlan { .. } => "vlan",
            Layer::Mpls { .. } => "mpls",
            Layer::Arp { .. } => "arp",
            Layer::Ipv4 { .. } => "ipv4",
            Layer::Ipv6 { .. } => "ipv6",
            Layer::Udp { .. } => "udp",
            Layer::Tcp { .. } => "tcp",
            Layer::Icmp { .. } => "icmp",
            Layer::Raw(_) => "raw",
            Layer::Payload { .. } => "payload",
        }
    }
}
