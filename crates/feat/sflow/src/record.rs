//! Sample records: metadata of a sampled packet, and their layout in the ring.

use thalweg_buffer::PacketKey;
use thalweg_device::SwIfIndex;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::packet::PacketView;

/// Number of 64-bit words of a record.
pub const RECORD_WORDS: usize = thalweg_tables::record_ring::WORDS;

/// Reason why a packet was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// Received by an interface.
    #[default]
    Received,
    /// Sent by an interface.
    Sent,
    /// Dropped.
    Dropped,
    /// Sampled elsewhere: the record reports the disposition of a packet that another worker has
    /// sampled. [`SampleRecord::pool`] holds the sample id.
    RemoteDisposition,
}

/// Addresses and ports of an IPv4 packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuple {
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Source and destination port, of a protocol that has them.
    pub ports: Option<(u16, u16)>,
}

impl Tuple {
    /// Reads a packet that begins with its IPv4 header; `None` if that is truncated or malformed.
    /// Nothing behind the packet's end is read, though the frame may go on.
    #[inline]
    #[must_use]
    pub fn of(ip: &[u8]) -> Option<Tuple> {
        let header = ip.first_chunk::<20>()?;
        let header_len = usize::from(header[0] & 15) * 4;
        if header[0] >> 4 != 4 || header_len < header.len() {
            return None;
        }
        // A GSO packet may leave the length zero.
        let ip = match header[2..4] {
            [0, 0] => Ipv4View::parse_unchecked(ip),
            _ => Ipv4View::parse_prefix(ip),
        };
        let ip = ip.ok()?;
        let (source, destination) = (ip.src().to_bits(), ip.dst().to_bits());
        Some(Tuple { source, destination, ports: PacketView::of_v4(ip).fixed_ports() })
    }
}

/// Header fields of a packet when it left, in addition to the sampled header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// The outermost VLAN tag.
    pub tag: Option<u16>,
    /// Addresses and ports.
    pub tuple: Option<Tuple>,
}

/// The fate of a sampled packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disposition {
    /// Unknown, for example because the packet is held.
    #[default]
    Unknown,
    /// Unknown yet: the packet is still in the router. Readers of the ring see
    /// [`Unknown`](Self::Unknown) instead.
    Pending {
        /// The packet.
        key: PacketKey,
        /// Its row in the frame in which it was sampled.
        row: u8,
    },
    /// Sent by an interface.
    Out {
        /// The interface.
        tx_if: SwIfIndex,
        /// Index of the forwarding entry that routed it; 0 if it was not routed.
        entry: u32,
        /// Its headers when it left, if they may have been changed by more than routing.
        headers: Option<Headers>,
    },
    /// Sent by several interfaces.
    Several {
        /// Number of interfaces.
        outputs: u16,
        /// Its headers may have been changed.
        changed: bool,
    },
    /// Dropped, with the index of the reason.
    Dropped(u32),
    /// Delivered to the router itself.
    Delivered,
    /// Handed over to another worker, which reports the disposition with this sample id.
    Elsewhere(u32),
}

/// Metadata of a sampled packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleRecord {
    /// Reason why it was sampled.
    pub cause: Cause,
    /// Interface on which it was sampled.
    pub sw_if: SwIfIndex,
    /// Generation of the interface index, which changes when the index is reused.
    pub generation: u32,
    /// Sampling rate; 0 for dropped packets.
    pub rate: u32,
    /// Length of the packet in bytes, all segments included, without FCS.
    pub frame_length: u32,
    /// Sample pool: packets of the interface that this worker has seen, including this one; or the
    /// sample id of a [`Cause::RemoteDisposition`].
    pub pool: u64,
    /// Samples of the interface that this worker has lost; for dropped packets, the number of
    /// suppressed ones.
    pub lost: u32,
    /// Receiving interface; 0 if the router originated the packet.
    pub rx_if: SwIfIndex,
    /// Time of the sample in TSC ticks.
    pub at: u64,
    /// The sampled header starts with the IP header, since there is no link-layer header.
    pub bare: bool,
    /// The packet's fate.
    pub disposition: Disposition,
}

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

const TAGGED: u64 = 1 << 8;
const ADDRESSES: u64 = 1 << 9;
const PORTS: u64 = 1 << 10;
const HEADERS: u64 = 1 << 11;

/// Number of words of a disposition.
const DISPOSITION_WORDS: usize = 3;
/// First byte of a pending disposition.
const PENDING: u64 = 6;

impl Disposition {
    /// Index of its first word in the record.
    pub(crate) const AT: usize = RECORD_WORDS - DISPOSITION_WORDS;

    #[inline]
    pub(crate) fn words(self) -> [u64; DISPOSITION_WORDS] {
        match self {
            Disposition::Unknown => [0; DISPOSITION_WORDS],
            Disposition::Out { tx_if, entry, headers } => {
                let head = 1 | u64::from(tx_if.get()) << 32;
                let Some(Headers { tag, tuple }) = headers else {
                    return [head, u64::from(entry), 0];
                };
                let head = head | HEADERS | tag.map_or(0, |tci| TAGGED | u64::from(tci) << 16);
                let Some(t) = tuple else { return [head, u64::from(entry), 0] };
                let (ports, has) = t.ports.map_or((0, 0), |(s, d)| (pair_of_ports(s, d), PORTS));
                [head | ADDRESSES | has, pair(entry, t.source), pair(t.destination, ports)]
            }
            Disposition::Dropped(reason) => [2, u64::from(reason), 0],
            Disposition::Delivered => [3, 0, 0],
            Disposition::Elsewhere(number) => [4, u64::from(number), 0],
            Disposition::Several { outputs, changed } => {
                [5 | u64::from(changed) << 8, u64::from(outputs), 0]
            }
            Disposition::Pending { key, row } => [PENDING | u64::from(row) << 8, key.bits(), 0],
        }
    }

    /// Returns key and row of the packet of a pending sample.
    #[inline(always)]
    pub(crate) fn pending_packet(words: &[u64; RECORD_WORDS]) -> Option<(PacketKey, u8)> {
        let head = words[Disposition::AT];
        (head as u8 == PENDING as u8)
            .then(|| (PacketKey::from_bits(words[Disposition::AT + 1]), (head >> 8) as u8))
    }

    #[inline(always)]
    fn from_words(words: [u64; DISPOSITION_WORDS]) -> Disposition {
        let (head, (low, high)) = (words[0], halves(words[1]));
        match head as u8 {
            1 => {
                let tag = (head & TAGGED != 0).then_some((head >> 16) as u16);
                let (destination, ports) = halves(words[2]);
                let ports = (head & PORTS != 0).then_some(((ports >> 16) as u16, ports as u16));
                let tuple = Tuple { source: high, destination, ports };
                let tuple = (head & ADDRESSES != 0).then_some(tuple);
                let headers = (head & HEADERS != 0).then_some(Headers { tag, tuple });
                Disposition::Out { tx_if: SwIfIndex((head >> 32) as u32), entry: low, headers }
            }
            2 => Disposition::Dropped(low),
            3 => Disposition::Delivered,
            4 => Disposition::Elsewhere(low),
            5 => Disposition::Several { outputs: low as u16, changed: head >> 8 & 1 != 0 },
            _ => Disposition::Unknown,
        }
    }
}

const fn pair_of_ports(source: u16, destination: u16) -> u32 {
    (source as u32) << 16 | destination as u32
}

/// Packs both interface indices into 16 bits each.
#[inline]
fn interfaces(sw_if: SwIfIndex, rx_if: SwIfIndex) -> u32 {
    const { assert!(thalweg_graph::stats::MAX_INTERFACES <= 1 << 16) };
    sw_if.0 & 0xffff | rx_if.0 << 16
}

const BARE: u64 = 1 << 24;

impl SampleRecord {
    /// Encodes the record for the ring, with the length of the header that follows.
    #[inline(always)]
    pub(crate) fn words(&self, header: u16) -> [u64; RECORD_WORDS] {
        let cause = match self.cause {
            Cause::Received => 0,
            Cause::Sent => 1,
            Cause::Dropped => 2u64,
            Cause::RemoteDisposition => 3,
        };
        let bare = if self.bare { BARE } else { 0 };
        let kind = u64::from(header) | cause << 16 | bare | u64::from(self.lost) << 32;
        let [head, place, addresses] = self.disposition.words();
        [
            pair(interfaces(self.sw_if, self.rx_if), self.generation),
            pair(self.rate, self.frame_length),
            self.pool,
            self.at,
            kind,
            head,
            place,
            addresses,
        ]
    }

    /// Length of the header in bytes.
    #[inline]
    pub(crate) fn header_of(words: &[u64; RECORD_WORDS]) -> usize {
        usize::from(words[4] as u16)
    }

    /// Decodes a record and the length of its header in bytes.
    #[inline(always)]
    pub(crate) fn from_words(words: &[u64; RECORD_WORDS]) -> (SampleRecord, usize) {
        let (interfaces, generation) = halves(words[0]);
        let (rate, frame_length) = halves(words[1]);
        let kind = words[4];
        let cause = match (kind >> 16) as u8 {
            0 => Cause::Received,
            1 => Cause::Sent,
            2 => Cause::Dropped,
            _ => Cause::RemoteDisposition,
        };
        let record = SampleRecord {
            cause,
            sw_if: SwIfIndex(interfaces & 0xffff),
            generation,
            rate,
            frame_length,
            pool: words[2],
            lost: (kind >> 32) as u32,
            rx_if: SwIfIndex(interfaces >> 16),
            at: words[3],
            bare: kind & BARE != 0,
            disposition: Disposition::from_words([words[5], words[6], words[7]]),
        };
        (record, SampleRecord::header_of(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dispositions() -> impl Strategy<Value = Disposition> {
        let tuple = |(source, destination, ports)| Tuple { source, destination, ports };
        let tuple = prop::option::of(any::<(u32, u32, Option<(u16, u16)>)>().prop_map(tuple));
        let headers = (any::<Option<u16>>(), tuple).prop_map(|(tag, tuple)| Headers { tag, tuple });
        let headers = prop::option::of(headers);
        let out = |((tx_if, entry), headers)| Disposition::Out {
            tx_if: SwIfIndex(tx_if),
            entry,
            headers,
        };
        prop_oneof![
            Just(Disposition::Unknown),
            Just(Disposition::Delivered),
            any::<u32>().prop_map(Disposition::Dropped),
            any::<u32>().prop_map(Disposition::Elsewhere),
            any::<(u16, bool)>()
                .prop_map(|(outputs, changed)| Disposition::Several { outputs, changed }),
            (any::<(u32, u32)>(), headers).prop_map(out),
        ]
    }

    proptest! {
        #[test]
        fn words_say_what_was_said(
            numbers: (u16, u32, u32, u32, u64, u32, u16, u64),
            cause in prop::sample::select(
                [Cause::Received, Cause::Sent, Cause::Dropped, Cause::RemoteDisposition].as_slice()),
            bare: bool,
            header: u16,
            disposition in dispositions(),
        ) {
            let (sw_if, generation, rate, frame_length, pool, lost, rx_if, at) = numbers;
            let (sw_if, rx_if) = (u32::from(sw_if), u32::from(rx_if));
            let record = SampleRecord {
                cause, sw_if: SwIfIndex(sw_if), generation, rate, frame_length, pool, lost, rx_if: SwIfIndex(rx_if), at, bare, disposition,
            };
            let read = SampleRecord::from_words(&record.words(header));
            prop_assert_eq!(read, (record, usize::from(header)));
        }
    }

    #[test]
    fn what_is_waited_for_is_unknown_to_others() {
        let key = PacketKey::from_bits(0x7fff_0123_4567_89c0);
        let disposition = Disposition::Pending { key, row: 255 };
        let words = SampleRecord { disposition, ..SampleRecord::default() }.words(64);
        assert_eq!(Disposition::pending_packet(&words), Some((key, 255)));
        assert_eq!(SampleRecord::from_words(&words), (SampleRecord::default(), 64));
        assert_eq!(Disposition::pending_packet(&SampleRecord::default().words(64)), None);
    }

    #[test]
    fn addresses_and_ports_are_found() {
        let mut packet = vec![0x46, 0, 0, 32, 0, 7, 0x40, 0, 64, 17, 0, 0];
        packet.extend([192, 0, 2, 1, 198, 51, 100, 1, 1, 1, 1, 1, 0, 80, 0x12, 0x34]);
        packet.extend([0, 8, 0, 0]);
        let tuple = |ports| Tuple { source: 0xc000_0201, destination: 0xc633_6401, ports };
        assert_eq!(Tuple::of(&packet), Some(tuple(Some((80, 0x1234)))));
        // The packet ends within its header of UDP; what follows is a trailer.
        packet[3] = 28;
        assert_eq!(Tuple::of(&packet), Some(tuple(None)));
        packet[3] = 0;
        assert_eq!(Tuple::of(&packet), Some(tuple(Some((80, 0x1234)))));
        // A later fragment, another protocol, truncated packets.
        packet[7] = 1;
        assert_eq!(Tuple::of(&packet), Some(tuple(None)));
        (packet[7], packet[9]) = (0, 1);
        assert_eq!(Tuple::of(&packet), Some(tuple(None)));
        packet[9] = 6;
        assert_eq!(Tuple::of(&packet[..27]), Some(tuple(None)));
        assert_eq!(Tuple::of(&packet[..19]), None);
        // A header length below the minimum, another version.
        for first in [0x44, 0x66] {
            packet[0] = first;
            assert_eq!(Tuple::of(&packet), None);
        }
    }
}
