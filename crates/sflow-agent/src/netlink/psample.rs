//! PSAMPLE: sampled packets (generic netlink family `psample`, linux/psample.h).
//!
//! The kernel's `act_sample` and switch drivers send them, and so do VPP and this router. Their
//! interface numbers have 16 bits in some kernels and 32 elsewhere; any width is read.

use thalweg_netlink::wire::{Attributes, Generic, Header, MessageError, Writer};
use thalweg_sflow::header::HeaderProtocol;
use thalweg_wire::bytes::get_be16;
use thalweg_wire::ethernet::ethertype;

/// The family's name.
pub const FAMILY: &str = "psample";
/// The group that samples are sent to.
pub const GROUP: &str = "packets";
/// Name of the kernel module.
pub const MODULE: &str = "psample";

/// `SAMPLE_GROUP` of packets that a software router received, as hsflowd expects it.
pub const RX_GROUP: u32 = 3;
/// `SAMPLE_GROUP` of packets that a software router sends.
pub const TX_GROUP: u32 = 4;

const VERSION: u8 = 1;
const CMD_SAMPLE: u8 = 0;

const IIFINDEX: u16 = 0;
const OIFINDEX: u16 = 1;
const ORIGSIZE: u16 = 2;
const SAMPLE_GROUP: u16 = 3;
const GROUP_SEQ: u16 = 4;
const SAMPLE_RATE: u16 = 5;
const DATA: u16 = 6;
const OUT_TC: u16 = 10;
const OUT_TC_OCC: u16 = 11;
const LATENCY: u16 = 12;
const TIMESTAMP: u16 = 13;
const PROTO: u16 = 14;
const USER_COOKIE: u16 = 15;
const SAMPLE_PROBABILITY: u16 = 16;

/// A sampled packet. Fields that a sender does not know are 0 or `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketSample<'a> {
    /// Interface that it came in by, 0 unknown.
    pub input: u32,
    /// Interface that it leaves by, 0 unknown.
    pub output: u32,
    /// Bytes of the packet, without FCS.
    pub original_length: u32,
    /// Sampler: [`RX_GROUP`] and [`TX_GROUP`] in software routers.
    pub group: u32,
    /// Counts the samples of the PSAMPLE group from 1; what it leaves out was lost.
    pub group_sequence: u32,
    /// Sampling rate N, for one packet in N; see [`probability`](Self::probability).
    pub rate: u32,
    /// `rate` is not a rate but a probability, of which 2³²-1 is certainty.
    pub probability: bool,
    /// The packet's first bytes.
    pub data: &'a [u8],
    /// Protocol that the packet begins with: sFlow's header protocol from software routers, an
    /// Ethernet type from the kernel.
    pub protocol: Option<u16>,
    /// Transmit queue.
    pub queue: Option<u16>,
    /// Bytes in that queue.
    pub queue_bytes: Option<u64>,
    /// Nanoseconds that the packet took.
    pub latency_ns: Option<u64>,
    /// Nanoseconds since 1970.
    pub timestamp_ns: Option<u64>,
    /// Data set by the owner of the sampler.
    pub cookie: Option<&'a [u8]>,
    /// Attributes that are not known here.
    pub unknown: u16,
}

impl<'a> PacketSample<'a> {
    /// Sampling rate, if it is a probability as well.
    #[must_use]
    pub fn one_in(&self) -> u32 {
        match (self.probability, self.rate) {
            (true, 1..) => {
                let rate = u64::from(u32::MAX) + u64::from(self.rate) / 2;
                (rate / u64::from(self.rate)).min(u32::MAX.into()) as u32
            }
            (_, rate) => rate,
        }
    }

    /// Returns the protocol that [`data`](Self::data) begins with, in sFlow's terms. The kernel
    /// hands over Ethernet frames wherever there is Ethernet, and says of IP packets from elsewhere
    /// what they are.
    #[must_use]
    pub fn header_protocol(&self) -> HeaderProtocol {
        match self.protocol.map(u32::from).map(HeaderProtocol) {
            Some(ip @ (HeaderProtocol::IPV4 | HeaderProtocol::IPV6)) => ip,
            _ => begins_with(self.protocol.unwrap_or(0), self.data, self.original_length),
        }
    }

    /// Reads what follows the message's header; `None` if it is not a sample.
    ///
    /// # Errors
    /// If its lengths are wrong.
    pub fn decode(payload: &'a [u8]) -> Result<Option<Self>, MessageError> {
        let (generic, attributes) = Generic::split(payload)?;
        if generic.command != CMD_SAMPLE {
            return Ok(None);
        }
        let mut sample = PacketSample::default();
        for attribute in Attributes::new(attributes) {
            let a = attribute?;
            match a.kind {
                IIFINDEX => sample.input = a.u32()?,
                OIFINDEX => sample.output = a.u32()?,
                ORIGSIZE => sample.original_length = a.u32()?,
                SAMPLE_GROUP => sample.group = a.u32()?,
                GROUP_SEQ => sample.group_sequence = a.u32()?,
                SAMPLE_RATE => sample.rate = a.u32()?,
                DATA => sample.data = a.value,
                OUT_TC => sample.queue = Some(a.u16()?),
                OUT_TC_OCC => sample.queue_bytes = Some(a.u64()?),
                LATENCY => sample.latency_ns = Some(a.u64()?),
                TIMESTAMP => sample.timestamp_ns = Some(a.u64()?),
                PROTO => sample.protocol = Some(a.u16()?),
                USER_COOKIE => sample.cookie = Some(a.value),
                SAMPLE_PROBABILITY => sample.probability = true,
                _ => sample.unknown = sample.unknown.saturating_add(1),
            }
        }
        Ok(Some(sample))
    }

    /// Appends the message, its attributes in ascending order as hsflowd wants them.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>, header: Header) {
        let generic = Generic { command: CMD_SAMPLE, version: VERSION };
        let mut w = Writer::generic(out, header, generic);
        w.u32(IIFINDEX, self.input)
            .u32(OIFINDEX, self.output)
            .u32(ORIGSIZE, self.original_length)
            .u32(SAMPLE_GROUP, self.group)
            .u32(GROUP_SEQ, self.group_sequence)
            .u32(SAMPLE_RATE, self.rate)
            .bytes(DATA, self.data);
        if let Some(queue) = self.queue {
            w.u16(OUT_TC, queue);
        }
        for (kind, value) in [
            (OUT_TC_OCC, self.queue_bytes),
            (LATENCY, self.latency_ns),
            (TIMESTAMP, self.timestamp_ns),
        ] {
            if let Some(value) = value {
                w.u64(kind, value);
            }
        }
        if let Some(protocol) = self.protocol {
            w.u16(PROTO, protocol);
        }
        if let Some(cookie) = self.cookie {
            w.bytes(USER_COOKIE, cookie);
        }
        if self.probability {
            w.flag(SAMPLE_PROBABILITY);
        }
        w.finish();
    }
}

/// Returns the protocol of a packet's first bytes, for one that the kernel says is of this Ethernet
/// type: an IP header of that length, or the Ethernet header in front of it.
pub(crate) fn begins_with(ether_type: u16, data: &[u8], length: u32) -> HeaderProtocol {
    let version = data.first().map(|first| first >> 4);
    let is_length = |at: usize, more: u32| {
        get_be16(data, at).is_some_and(|field| u32::from(field) + more == length)
    };
    match (ether_type, version) {
        (ethertype::IPV4, Some(4)) if is_length(2, 0) => HeaderProtocol::IPV4,
        (ethertype::IPV6, Some(6)) if is_length(4, 40) => HeaderProtocol::IPV6,
        _ => HeaderProtocol::ETHERNET,
    }
}

/// Finds samples that were lost on the way, by the gaps in the numbers of a PSAMPLE group.
#[derive(Debug, Clone, Default)]
pub struct Gaps {
    last: Vec<(u32, u32)>,
}

/// More groups than anybody has are not kept apart.
const MAX_GROUPS: usize = 64;

impl Gaps {
    /// Takes the number of the next sample of a group; returns how many were lost before it. A
    /// number that goes back, or far ahead, is that of a sender that has started again.
    pub fn lost(&mut self, group: u32, sequence: u32) -> u32 {
        match self.last.iter_mut().find(|(known, _)| *known == group) {
            Some((_, last)) => {
                let step = sequence.wrapping_sub(*last);
                *last = sequence;
                if (1..1 << 31).contains(&step) { step - 1 } else { 0 }
            }
            None => {
                if self.last.len() < MAX_GROUPS {
                    self.last.push((group, sequence));
                }
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_without_a_link_header_are_what_they_are() {
        let mut ip = [0u8; 40];
        (ip[0], ip[3]) = (0x45, 84);
        let mut ip6 = [0u8; 48];
        (ip6[0], ip6[5]) = (0x60, 64);
        let framed = [&[0x45, 0, 0, 84, 1, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &ip].concat();
        for (protocol, data, original_length, expected) in [
            (None, &ip[..], 84, HeaderProtocol::ETHERNET),
            (Some(1), &ip, 84, HeaderProtocol::ETHERNET),
            (Some(11), &ip, 84, HeaderProtocol::IPV4),
            (Some(12), &ip6, 104, HeaderProtocol::IPV6),
            (Some(0x0800), &ip, 84, HeaderProtocol::IPV4),
            (Some(0x86dd), &ip6, 104, HeaderProtocol::IPV6),
            (Some(0x0800), &framed, 98, HeaderProtocol::ETHERNET),
            (Some(0x8100), &framed, 98, HeaderProtocol::ETHERNET),
        ] {
            let sample =
                PacketSample { protocol, data, original_length, ..PacketSample::default() };
            assert_eq!(sample.header_protocol(), expected, "{protocol:?}");
        }
    }

    use proptest::option::of;
    use proptest::prelude::*;
    use thalweg_netlink::wire::{Fault, Messages};

    proptest! {
        #[test]
        fn samples_survive_the_way(
            (input, output, original_length, rate, probability) in any::<(u32, u32, u32, u32, bool)>(),
            (group, group_sequence) in any::<(u32, u32)>(),
            data in prop::collection::vec(any::<u8>(), 0..260),
            (protocol, queue) in (of(any::<u16>()), of(any::<u16>())),
            (queue_bytes, latency_ns, timestamp_ns) in
                (of(any::<u64>()), of(any::<u64>()), of(any::<u64>())),
            cookie in of(prop::collection::vec(any::<u8>(), 0..20)),
        ) {
            let sample = PacketSample {
                input, output, original_length, group, group_sequence, rate, probability,
                data: &data, protocol, queue, queue_bytes, latency_ns, timestamp_ns,
                cookie: cookie.as_deref(), unknown: 0,
            };
            let mut out = Vec::new();
            sample.encode(&mut out, Header { kind: 32, ..Header::default() });
            let raw = Messages::new(&out).next().unwrap().unwrap();
            prop_assert_eq!(raw.header.kind, 32);
            prop_assert_eq!(PacketSample::decode(raw.payload), Ok(Some(sample)));
        }

        #[test]
        fn any_payload_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = PacketSample::decode(&bytes);
        }

        /// Gaps agree with a list of what was delivered.
        #[test]
        fn gaps_are_what_was_lost(
            start in any::<u32>(),
            fates in prop::collection::vec((0u32..3, any::<bool>()), 1..100),
        ) {
            let mut gaps = Gaps::default();
            let mut next = [start; 3];
            let (mut lost, mut waiting, mut reported, mut seen) = (0, [0; 3], 0, [false; 3]);
            for (group, arrives) in fates {
                let g = group as usize;
                next[g] = next[g].wrapping_add(1);
                if arrives {
                    // Losses before the first received sample are unknown.
                    lost += if seen[g] { waiting[g] } else { 0 };
                    (seen[g], waiting[g]) = (true, 0);
                    reported += gaps.lost(group, next[g]);
                } else {
                    waiting[g] += 1;
                }
            }
            prop_assert_eq!(reported, lost);
        }
    }

    #[test]
    fn a_sender_that_starts_again_has_lost_nothing() {
        let mut gaps = Gaps::default();
        assert_eq!(
            [(3, 5), (3, 7), (3, 1), (3, 1), (4, 9), (3, 3)].map(|(g, s)| gaps.lost(g, s)),
            [0, 1, 0, 0, 0, 1]
        );
    }

    /// VPP 26.06 sends the same, byte by byte (little-endian machines).
    #[cfg(target_endian = "little")]
    #[test]
    fn the_bytes_are_those_of_vpp() {
        let sample = PacketSample {
            input: 1,
            original_length: 98,
            group: RX_GROUP,
            group_sequence: 7,
            rate: 1000,
            data: &[0xaa, 0xbb, 0xcc, 0xdd, 0xee],
            protocol: Some(1),
            ..PacketSample::default()
        };
        let mut out = Vec::new();
        sample.encode(&mut out, Header { kind: 0x20, flags: 0, sequence: 9, port: 0x1_0002 });
        #[rustfmt::skip]
        let expected: &[u8] = &[
            88, 0, 0, 0, 0x20, 0, 0, 0, 9, 0, 0, 0, 2, 0, 1, 0,
            0, 1, 0, 0,
            8, 0, 0, 0, 1, 0, 0, 0,
            8, 0, 1, 0, 0, 0, 0, 0,
            8, 0, 2, 0, 98, 0, 0, 0,
            8, 0, 3, 0, 3, 0, 0, 0,
            8, 0, 4, 0, 7, 0, 0, 0,
            8, 0, 5, 0, 0xe8, 3, 0, 0,
            9, 0, 6, 0, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0, 0, 0,
            6, 0, 14, 0, 1, 0, 0, 0,
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn kernels_widths_and_unknown_attributes_are_read() {
        let mut out = Vec::new();
        let mut w = Writer::generic(&mut out, Header::default(), Generic::default());
        w.u16(IIFINDEX, 7).u16(OIFINDEX, 8).u64(ORIGSIZE, 1500).u8(SAMPLE_GROUP, 1);
        w.nest(8, |w| {
            w.u32(1, 1);
        });
        w.u32(99, 0);
        w.finish();
        let raw = Messages::new(&out).next().unwrap().unwrap();
        let s = PacketSample::decode(raw.payload).unwrap().unwrap();
        assert_eq!((s.input, s.output, s.original_length, s.group), (7, 8, 1500, 1));
        assert_eq!(s.unknown, 2);
        // Another command of the family is no sample; a number of three bytes is none.
        assert_eq!(PacketSample::decode(&[2, 1, 0, 0]), Ok(None));
        let mut out = Vec::new();
        let mut w = Writer::generic(&mut out, Header::default(), Generic::default());
        w.bytes(IIFINDEX, &[1, 2, 3]);
        w.finish();
        let raw = Messages::new(&out).next().unwrap().unwrap();
        let error = PacketSample::decode(raw.payload).unwrap_err();
        assert_eq!(error.fault, Fault::Width { kind: IIFINDEX, length: 3 });
    }

    #[test]
    fn probabilities_become_rates() {
        let one_in = |rate, probability| {
            PacketSample { rate, probability, ..PacketSample::default() }.one_in()
        };
        assert_eq!(one_in(1000, false), 1000);
        assert_eq!(one_in(u32::MAX, true), 1);
        assert_eq!(one_in(u32::MAX / 400, true), 400);
        assert_eq!((one_in(1, true), one_in(0, true)), (u32::MAX, 0));
    }
}
