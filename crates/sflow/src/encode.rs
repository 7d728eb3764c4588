//! Packing of samples into datagrams.

use std::net::IpAddr;

use thiserror::Error;

use crate::model::{
    CounterRecord, DataSource, DiscardReason, ExtendedRouter, FlowRecord, Interface, RawHeader, Tag,
};
use crate::value::Address;
use crate::xdr::Writer;

/// Datagrams are at most this long unless asked otherwise: what fits into an Ethernet frame with
/// room for tunnels.
pub const DEFAULT_DATAGRAM_BYTES: usize = 1400;

/// Limits that a datagram size must keep.
pub const DATAGRAM_BYTES: std::ops::RangeInclusive<usize> = 200..=65_507;

/// Samples in one datagram; some collectors keep a fixed number.
pub const MAX_SAMPLES: u32 = 64;

/// Tags of the records that are written out here.
const RAW_HEADER: Tag = Tag::new(0, 1);
/// See [`RAW_HEADER`].
const SWITCH: Tag = Tag::new(0, 1001);
/// See [`RAW_HEADER`].
const ROUTER: Tag = Tag::new(0, 1002);

/// Room behind the limit for the sample that does not fit any more.
const SLACK: usize = 1024;

/// A sampled packet, to be encoded in the expanded form.
#[derive(Debug, Clone, Copy)]
pub struct FlowSampleOut {
    /// Number of the sample, per data source.
    pub sequence: u32,
    /// Data source.
    pub source: DataSource,
    /// Sampling rate N: one packet in N is sampled.
    pub rate: u32,
    /// Packets that could have been sampled.
    pub pool: u32,
    /// Samples lost.
    pub drops: u32,
    /// Input of the packet.
    pub input: Interface,
    /// Output of the packet.
    pub output: Interface,
}

/// A discarded packet, to be encoded.
#[derive(Debug, Clone, Copy)]
pub struct DiscardSampleOut {
    /// Number of the sample, per data source.
    pub sequence: u32,
    /// Data source.
    pub source: DataSource,
    /// Notifications suppressed.
    pub drops: u32,
    /// ifIndex that the packet came in by, 0 unknown.
    pub input: u32,
    /// ifIndex that it would have left by, 0 unknown.
    pub output: u32,
    /// Reason why it was discarded.
    pub reason: DiscardReason,
}

/// The outcome of pushing a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Push {
    /// The sample went into the datagram.
    Added,
    /// No room is left: finish the datagram and push the sample again.
    Full,
}

/// A sample that fits into no datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a sample makes a datagram of {needed} bytes, but the limit is {limit}")]
pub struct SampleTooLong {
    /// Length of a datagram with the sample alone.
    pub needed: usize,
    /// The limit.
    pub limit: usize,
}

/// Packs samples. Its buffer is kept from datagram to datagram, so nothing is allocated once it is
/// as long as a datagram can be.
#[derive(Debug)]
pub struct DatagramEncoder {
    buf: Vec<u8>,
    limit: usize,
    /// Offset of sequence number, uptime and number of samples.
    patch_at: usize,
    header: usize,
    samples: u32,
    sequence: u32,
    /// The datagram has been handed out: the next sample starts another.
    finished: bool,
}

impl DatagramEncoder {
    /// Sets the number of the latest datagram; the next one has the number after it.
    pub fn set_sequence(&mut self, latest: u32) {
        self.sequence = latest;
    }

    /// Packs datagrams for an agent. `limit` is brought within [`DATAGRAM_BYTES`].
    #[must_use]
    pub fn new(agent: IpAddr, sub_agent: u32, limit: usize) -> Self {
        let limit = within(limit);
        // A sample is written before it is known whether it fits.
        let mut buf = Vec::with_capacity(limit + SLACK);
        let mut w = Writer::new(&mut buf);
        w.u32(5);
        w.address(Some(agent));
        w.u32(sub_agent);
        let patch_at = buf.len();
        buf.extend_from_slice(&[0; 12]);
        let header = buf.len();
        DatagramEncoder { buf, limit, patch_at, header, samples: 0, sequence: 0, finished: false }
    }

    /// Sets the limit, which is brought within [`DATAGRAM_BYTES`]. The datagram that is being
    /// packed may be longer.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = within(limit);
    }

    /// Bytes that the records of a counter sample may have together.
    #[must_use]
    pub fn room(&self) -> usize {
        // Tag and length, number, source, count.
        self.limit - self.header - 24
    }

    /// Samples in the datagram that is being packed.
    #[must_use]
    pub fn samples(&self) -> u32 {
        if self.finished { 0 } else { self.samples }
    }

    /// Adds a flow sample. `records` are written in reverse and the header comes last, as in
    /// hsflowd; translated ports, which come behind it, are the exception: see below.
    ///
    /// # Errors
    /// When it does not even fit into a datagram of its own.
    #[inline]
    pub fn flow_sample(
        &mut self,
        sample: &FlowSampleOut,
        header: Option<RawHeader<'_>>,
        records: &[FlowRecord<'_>],
    ) -> Result<Push, SampleTooLong> {
        let (in_format, in_value) = sample.input.parts();
        let (out_format, out_value) = sample.output.parts();
        let words = [
            sample.sequence,
            sample.source.class,
            sample.source.index,
            sample.rate,
            sample.pool,
            sample.drops,
            in_format,
            in_value,
            out_format,
            out_value,
        ];
        self.sample(Tag::FLOW_SAMPLE_EXPANDED, |buf| {
            words_to(buf, words);
            flow_records(buf, header, records);
        })
    }

    /// Adds a discarded packet, its records in reverse and the header last.
    ///
    /// # Errors
    /// When it does not even fit into a datagram of its own.
    pub fn discard_sample(
        &mut self,
        sample: &DiscardSampleOut,
        header: Option<RawHeader<'_>>,
        records: &[FlowRecord<'_>],
    ) -> Result<Push, SampleTooLong> {
        let words = [
            sample.sequence,
            sample.source.class,
            sample.source.index,
            sample.drops,
            sample.input,
            sample.output,
            sample.reason.0,
        ];
        self.sample(Tag::DISCARDED_PACKET, |buf| {
            words_to(buf, words);
            flow_records(buf, header, records);
        })
    }

    /// Adds a counter sample, its records in reverse.
    ///
    /// # Errors
    /// When it does not even fit into a datagram of its own.
    pub fn counter_sample(
        &mut self,
        sequence: u32,
        source: DataSource,
        records: &[CounterRecord<'_>],
    ) -> Result<Push, SampleTooLong> {
        self.sample(Tag::COUNTER_SAMPLE_EXPANDED, |buf| {
            words_to(buf, [sequence, source.class, source.index, records.len() as u32]);
            let mut w = Writer::new(buf);
            for record in records.iter().rev() {
                record.encode(&mut w);
            }
        })
    }

    #[inline]
    fn sample(
        &mut self,
        tag: Tag,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Push, SampleTooLong> {
        if self.finished {
            self.buf.truncate(self.header);
            self.samples = 0;
            self.finished = false;
        }
        if self.samples == MAX_SAMPLES {
            return Ok(Push::Full);
        }
        let before = self.buf.len();
        words_to(&mut self.buf, [tag.0, 0]);
        let body = self.buf.len();
        write(&mut self.buf);
        let length = (self.buf.len() - body) as u32;
        self.buf[body - 4..body].copy_from_slice(&length.to_be_bytes());
        let needed = self.buf.len() - before + self.header;
        if self.buf.len() > self.limit {
            self.buf.truncate(before);
            if needed > self.limit {
                return Err(SampleTooLong { needed, limit: self.limit });
            }
            return Ok(Push::Full);
        }
        self.samples += 1;
        Ok(Push::Added)
    }

    /// Completes the datagram with its number and the agent's uptime in milliseconds; `None` when
    /// there is nothing in it. The first datagram has number 1.
    pub fn finish(&mut self, uptime_ms: u32) -> Option<&[u8]> {
        if self.samples() == 0 {
            return None;
        }
        self.finished = true;
        self.sequence = self.sequence.wrapping_add(1);
        let words = [self.sequence, uptime_ms, self.samples];
        for (at, word) in (self.patch_at..self.header).step_by(4).zip(words) {
            self.buf[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        Some(&self.buf)
    }
}

fn within(limit: usize) -> usize {
    limit.clamp(*DATAGRAM_BYTES.start(), *DATAGRAM_BYTES.end())
}

/// Appends words all at once: one check for room instead of one for each. They are put together by
/// twos, in registers: an array of words that were just computed would be read from memory in
/// larger pieces than it was written in, which stalls.
#[inline(always)]
fn words_to<const N: usize>(buf: &mut Vec<u8>, words: [u32; N]) {
    let at = buf.len();
    buf.resize(at + 4 * N, 0);
    let (twos, last) = buf[at..].as_chunks_mut::<8>();
    for (i, two) in twos.iter_mut().enumerate() {
        *two = (u64::from(words[2 * i]) << 32 | u64::from(words[2 * i + 1])).to_be_bytes();
    }
    if let Some(last) = last.first_chunk_mut::<4>() {
        *last = words[N - 1].to_be_bytes();
    }
}

#[inline]
fn flow_records(buf: &mut Vec<u8>, header: Option<RawHeader<'_>>, records: &[FlowRecord<'_>]) {
    words_to(buf, [records.len() as u32 + u32::from(header.is_some())]);
    let mut ports = false;
    // The commonest records by far are written out, those of routed packets and the header.
    for record in records.iter().rev() {
        match record {
            FlowRecord::NatPort(_) => ports = true,
            FlowRecord::Switch(s) => {
                let (from, to) = (s.source_vlan, s.destination_vlan);
                let priorities = (s.source_priority, s.destination_priority);
                words_to(buf, [SWITCH.0, 16, from, priorities.0, to, priorities.1]);
            }
            FlowRecord::Router(ExtendedRouter {
                next_hop: Address(Some(IpAddr::V4(hop))),
                source_mask,
                destination_mask,
            }) => {
                let hop = u32::from(*hop);
                words_to(buf, [ROUTER.0, 16, 1, hop, *source_mask, *destination_mask]);
            }
            other => other.encode(&mut Writer::new(buf)),
        }
    }
    if let Some(header) = header {
        raw_header(buf, header);
    }
    // Wireshark 4.0 does not know this record, and loses its way behind it until the next sample.
    if ports {
        let late = records.iter().filter(|record| matches!(record, FlowRecord::NatPort(_)));
        late.for_each(|record| record.encode(&mut Writer::new(buf)));
    }
}

#[inline]
fn raw_header(buf: &mut Vec<u8>, header: RawHeader<'_>) {
    let bytes = header.header;
    let padding = bytes.len().wrapping_neg() & 3;
    let words = [
        RAW_HEADER.0,
        (16 + bytes.len() + padding) as u32,
        header.protocol.0,
        header.frame_length,
        header.stripped,
        bytes.len() as u32,
    ];
    words_to(buf, words);
    buf.extend_from_slice(bytes);
    buf.extend_from_slice(&[0; 3][..padding]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ExtendedNat, ExtendedNatPort, ExtendedSwitch};
    use proptest::prelude::*;

    #[test]
    fn translated_ports_come_last() {
        let records = [
            FlowRecord::Nat(ExtendedNat { source: Address(None), destination: Address(None) }),
            FlowRecord::NatPort(ExtendedNatPort { source: 7, destination: 8 }),
        ];
        let header = RawHeader { header: &[9; 5], ..RawHeader::default() };
        let (mut with, mut without) = (Vec::new(), Vec::new());
        flow_records(&mut with, Some(header), &records);
        flow_records(&mut without, Some(header), &records[..1]);
        (with[3], without[3]) = (0, 0);
        let ports = [0, 0, 3, 252, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, 8];
        assert_eq!(with, [&without[..], &ports[..]].concat());
    }

    proptest! {
        /// Records written out equal those that the records themselves write.
        #[test]
        fn records_that_are_written_out_are_the_same(
            v in any::<[u32; 6]>(),
            hop in prop::option::of(any::<IpAddr>()),
        ) {
            let switch = ExtendedSwitch {
                source_vlan: v[0],
                source_priority: v[1],
                destination_vlan: v[2],
                destination_priority: v[3],
            };
            let router = ExtendedRouter {
                next_hop: Address(hop),
                source_mask: v[4],
                destination_mask: v[5],
            };
            let records = [FlowRecord::Switch(switch), FlowRecord::Router(router)];
            let mut written = Vec::new();
            flow_records(&mut written, None, &records);
            let mut expected = vec![0, 0, 0, 2];
            for record in records.iter().rev() {
                record.encode(&mut Writer::new(&mut expected));
            }
            prop_assert_eq!(written, expected);
        }
    }
}
