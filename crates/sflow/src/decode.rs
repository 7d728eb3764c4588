//! Decoding of datagrams, lazily: a datagram yields samples and a sample yields records, each an
//! own result, so that one bad record does not lose its neighbours.

use std::marker::PhantomData;
use std::net::IpAddr;

use crate::model::{CounterRecord, DataSource, DiscardReason, FlowRecord, Interface, Tag};
use crate::named::NamedSample;
use crate::xdr::{DecodeError, Fault, Reader};

/// The header of a datagram, and its samples.
#[derive(Debug, Clone)]
pub struct Datagram<'a> {
    /// Address of the agent; `None` when the agent does not know.
    pub agent: Option<IpAddr>,
    /// Sub-agent.
    pub sub_agent: u32,
    /// Number of the datagram, per agent and sub-agent.
    pub sequence: u32,
    /// Milliseconds since the agent started.
    pub uptime_ms: u32,
    /// Samples announced.
    pub sample_count: u32,
    samples: Reader<'a>,
}

impl<'a> Datagram<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// When the datagram is not sFlow version 5 or its header is cut short.
    pub fn parse(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(data);
        let at_version = r.offset();
        let version = r.u32("sFlow version")?;
        if version != 5 {
            return Err(DecodeError { offset: at_version, fault: Fault::Version(version) });
        }
        let standard = Self::parse_header(r.clone());
        if let Ok(Datagram { agent: None, .. }) = &standard {
            // An agent without address writes none (by the standard) or four bytes. The way in
            // which the samples come out whole is right.
            let padded = Self::parse_header(r.pad_unknown_address());
            return match (&standard, padded) {
                (Ok(datagram), Ok(padded)) if !datagram.adds_up() && padded.adds_up() => Ok(padded),
                _ => standard,
            };
        }
        standard
    }

    fn parse_header(mut r: Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Datagram {
            agent: r.address("agent address")?,
            sub_agent: r.u32("sub-agent")?,
            sequence: r.u32("datagram sequence number")?,
            uptime_ms: r.u32("uptime")?,
            sample_count: r.u32("number of samples")?,
            samples: r,
        })
    }

    fn adds_up(&self) -> bool {
        let mut r = self.samples.clone();
        for _ in 0..self.sample_count {
            let skip = |r: &mut Reader<'a>| -> Result<(), DecodeError> {
                r.u32("sample type")?;
                r.opaque("sample").map(|_| ())
            };
            if skip(&mut r).is_err() {
                return false;
            }
        }
        r.remaining() == 0
    }

    /// The samples, in wire order. A malformed sample is an error and the next one follows; when
    /// a sample's length cannot be trusted, its error is the last item.
    #[must_use]
    pub fn samples(&self) -> Samples<'a> {
        Samples { r: self.samples.clone(), left: self.sample_count }
    }

    /// The bytes behind the last announced sample; `None` if the length of one cannot be trusted.
    pub(crate) fn behind(&self) -> Option<&'a [u8]> {
        let mut samples = self.samples();
        while let Some(body) = samples.next_body() {
            body.ok()?;
        }
        Some(samples.r.rest())
    }

    /// True if the first sample, if any, has the length that it claims.
    pub(crate) fn first_fits(&self) -> bool {
        self.samples().next_body().is_none_or(|body| body.is_ok())
    }

    /// Bytes behind the last announced sample.
    ///
    /// # Errors
    /// When there are any.
    pub fn check_end(&self) -> Result<(), DecodeError> {
        let mut samples = self.samples();
        while samples.next_body().is_some() {}
        match samples.r.remaining() {
            0 => Ok(()),
            n => Err(samples.r.fault(Fault::Trailing(n))),
        }
    }
}

/// The samples of a datagram.
#[derive(Debug, Clone)]
pub struct Samples<'a> {
    r: Reader<'a>,
    left: u32,
}

impl<'a> Samples<'a> {
    fn next_body(&mut self) -> Option<Result<(Tag, Reader<'a>), DecodeError>> {
        self.left = self.left.checked_sub(1)?;
        Some(next_block(&mut self.r, "sample").inspect_err(|_| self.left = 0))
    }
}

/// Takes tag, length and body.
fn next_block<'a>(
    r: &mut Reader<'a>,
    what: &'static str,
) -> Result<(Tag, Reader<'a>), DecodeError> {
    let tag = Tag(r.u32(what)?);
    let length = r.u32(what)? as usize;
    Ok((tag, r.sub(length, what)?))
}

impl<'a> Iterator for Samples<'a> {
    type Item = Result<Sample<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_body()?.and_then(|(tag, r)| Sample::decode(tag, r)))
    }
}

/// A sample.
#[derive(Debug, Clone)]
pub enum Sample<'a> {
    /// A sampled packet.
    Flow(FlowSample<'a>),
    /// Counters of a data source.
    Counters(CounterSample<'a>),
    /// A discarded packet.
    Discard(DiscardSample<'a>),
    /// Named values.
    Named(NamedSample<'a>),
    /// A sample that is not decoded, with its body.
    Unknown(Tag, &'a [u8]),
}

impl<'a> Sample<'a> {
    /// Decodes the body of a sample.
    fn decode(tag: Tag, mut r: Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match tag {
            Tag::FLOW_SAMPLE | Tag::FLOW_SAMPLE_EXPANDED => {
                Sample::Flow(FlowSample::decode(tag, &mut r)?)
            }
            Tag::COUNTER_SAMPLE | Tag::COUNTER_SAMPLE_EXPANDED => {
                Sample::Counters(CounterSample::decode(tag, &mut r)?)
            }
            Tag::DISCARDED_PACKET => Sample::Discard(DiscardSample::decode(&mut r)?),
            Tag::NAMED_METRICS | Tag::NAMED_FLOW => {
                Sample::Named(NamedSample::decode(tag, &mut r)?)
            }
            _ => Sample::Unknown(tag, r.rest()),
        })
    }

    /// The tag it was sent with.
    #[must_use]
    pub fn tag(&self) -> Tag {
        match self {
            Sample::Flow(flow) => flow.tag,
            Sample::Counters(counters) => counters.tag,
            Sample::Discard(_) => Tag::DISCARDED_PACKET,
            Sample::Named(named) => named.tag,
            Sample::Unknown(tag, _) => *tag,
        }
    }
}

fn data_source(r: &mut Reader<'_>, expanded: bool) -> Result<DataSource, DecodeError> {
    if expanded {
        Ok(DataSource { class: r.u32("source class")?, index: r.u32("source index")? })
    } else {
        Ok(DataSource::from_compact(r.u32("source")?))
    }
}

fn interface(
    r: &mut Reader<'_>,
    expanded: bool,
    what: &'static str,
) -> Result<Interface, DecodeError> {
    if expanded {
        Ok(Interface::from_parts(r.u32(what)?, r.u32(what)?))
    } else {
        Ok(Interface::from_compact(r.u32(what)?))
    }
}

/// A sampled packet.
#[derive(Debug, Clone)]
pub struct FlowSample<'a> {
    /// [`Tag::FLOW_SAMPLE`] or [`Tag::FLOW_SAMPLE_EXPANDED`].
    pub tag: Tag,
    /// Number of the sample, per data source.
    pub sequence: u32,
    /// Data source.
    pub source: DataSource,
    /// Sampling rate N: one packet in N is sampled.
    pub rate: u32,
    /// Packets that could have been sampled; wraps.
    pub pool: u32,
    /// Samples lost for lack of resources; wraps.
    pub drops: u32,
    /// Input of the packet.
    pub input: Interface,
    /// Output of the packet.
    pub output: Interface,
    /// Records about the packet.
    pub records: Records<'a, FlowRecord<'a>>,
}

impl<'a> FlowSample<'a> {
    fn decode(tag: Tag, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let expanded = tag == Tag::FLOW_SAMPLE_EXPANDED;
        Ok(FlowSample {
            tag,
            sequence: r.u32("sample sequence number")?,
            source: data_source(r, expanded)?,
            rate: r.u32("sampling rate")?,
            pool: r.u32("sample pool")?,
            drops: r.u32("drops")?,
            input: interface(r, expanded, "input interface")?,
            output: interface(r, expanded, "output interface")?,
            records: Records::decode(r)?,
        })
    }
}

/// Counters of a data source.
#[derive(Debug, Clone)]
pub struct CounterSample<'a> {
    /// [`Tag::COUNTER_SAMPLE`] or [`Tag::COUNTER_SAMPLE_EXPANDED`].
    pub tag: Tag,
    /// Number of the sample, per data source, which starts again when the counters do.
    pub sequence: u32,
    /// Data source.
    pub source: DataSource,
    /// The counters.
    pub records: Records<'a, CounterRecord<'a>>,
}

impl<'a> CounterSample<'a> {
    fn decode(tag: Tag, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(CounterSample {
            tag,
            sequence: r.u32("sample sequence number")?,
            source: data_source(r, tag == Tag::COUNTER_SAMPLE_EXPANDED)?,
            records: Records::decode(r)?,
        })
    }
}

/// A discarded packet.
#[derive(Debug, Clone)]
pub struct DiscardSample<'a> {
    /// Number of the sample, per data source.
    pub sequence: u32,
    /// Data source.
    pub source: DataSource,
    /// Notifications suppressed by the agent's rate limit; wraps.
    pub drops: u32,
    /// ifIndex that the packet came in by, 0 unknown.
    pub input: u32,
    /// ifIndex that it would have left by, 0 unknown.
    pub output: u32,
    /// Reason why it was discarded.
    pub reason: DiscardReason,
    /// Records about the packet.
    pub records: Records<'a, FlowRecord<'a>>,
}

impl<'a> DiscardSample<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(DiscardSample {
            sequence: r.u32("sample sequence number")?,
            source: data_source(r, true)?,
            drops: r.u32("drops")?,
            input: r.u32("input interface")?,
            output: r.u32("output interface")?,
            reason: DiscardReason(r.u32("discard reason")?),
            records: Records::decode(r)?,
        })
    }
}

/// A kind of record that can be decoded by tag.
pub trait TaggedRecord<'a>: Sized {
    /// Decodes a record's body.
    ///
    /// # Errors
    /// When it is too short or malformed.
    fn decode_tagged(tag: Tag, r: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

impl<'a> TaggedRecord<'a> for FlowRecord<'a> {
    fn decode_tagged(tag: Tag, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        FlowRecord::decode(tag, r)
    }
}

impl<'a> TaggedRecord<'a> for CounterRecord<'a> {
    fn decode_tagged(tag: Tag, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        CounterRecord::decode(tag, r)
    }
}

/// A record's tag, and its body if that makes sense.
pub type TaggedResult<T> = (Tag, Result<T, DecodeError>);

/// The records of a sample. Iterate over a clone; it is a few words.
#[derive(Debug, Clone)]
pub struct Records<'a, T> {
    r: Reader<'a>,
    left: u32,
    kind: PhantomData<fn() -> T>,
}

impl<'a, T> Records<'a, T> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let left = r.u32("number of records")?;
        Ok(Records { r: r.clone(), left, kind: PhantomData })
    }

    /// The next record's tag and body.
    #[inline]
    pub(crate) fn next_body(&mut self) -> Option<Result<(Tag, Reader<'a>), DecodeError>> {
        self.left = self.left.checked_sub(1)?;
        Some(next_block(&mut self.r, "record").inspect_err(|_| self.left = 0))
    }
}

impl<'a, T: TaggedRecord<'a>> Records<'a, T> {
    /// The next record with its tag, which is known even when its body is malformed.
    pub fn next_tagged(&mut self) -> Option<Result<TaggedResult<T>, DecodeError>> {
        let block = self.next_body()?;
        Some(block.map(|(tag, mut body)| (tag, T::decode_tagged(tag, &mut body))))
    }
}

/// A malformed record is an error and the next one follows; when a record's length cannot be
/// trusted, its error is the last item.
impl<'a, T: TaggedRecord<'a>> Iterator for Records<'a, T> {
    type Item = Result<T, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_tagged()?.and_then(|(_, record)| record))
    }
}
