//! The one walk over a datagram that the formats share.

use super::{Arrival, Moment};
use crate::decode::{CounterSample, Datagram, DiscardSample, FlowSample, Records, Sample};
use crate::model::{CounterRecord, DataSource, FlowRecord, Interface, Tag};
use crate::named::{NamedSample, NamedValue};
use crate::value::{Value, Visitor, name};
use crate::xdr::DecodeError;

/// Steps of a format at the joints of a datagram.
pub(super) trait Sink: Visitor {
    fn start_datagram(&mut self);
    fn end_datagram(&mut self);
    fn start_samples(&mut self) {}
    fn end_samples(&mut self) {}
    fn start_sample(&mut self, tag: Tag);
    fn end_sample(&mut self);
    fn start_elements(&mut self) {}
    fn end_elements(&mut self) {}
    fn start_element(&mut self, _tag: Tag) {}
    fn end_element(&mut self) {}
    /// A name that precedes those of all fields until further notice.
    fn set_prefix(&mut self, prefix: &'static str);
    /// Something was passed over.
    fn skipped(&mut self, what: &str, tag: Tag, length: usize);
    /// A time of the day.
    fn time(&mut self, name: &str, moment: Moment);
    /// The datagram's fields are known by now; only `grep` needs them.
    fn datagram_context(&mut self, _datagram: &Datagram<'_>, _sequence: bool) {}
    /// The data source is known by now.
    fn source_context(&mut self, _source: DataSource) {}
}

/// One datagram.
pub(super) struct Job<'j, 'a> {
    pub arrival: &'j Arrival,
    pub payload: &'a [u8],
    pub datagram: &'j Datagram<'a>,
}

pub(super) fn walk<S: Sink>(job: &Job<'_, '_>, mut sink: S) -> Vec<DecodeError> {
    let sink = &mut sink;
    let mut errors = Vec::new();
    sink.start_datagram();
    datagram_fields(job, sink);
    sink.start_samples();
    for sample in job.datagram.samples() {
        match sample {
            Ok(sample) => {
                sink.start_sample(sample.tag());
                self::sample(&sample, sink, &mut errors);
                sink.end_sample();
            }
            Err(error) => errors.push(error),
        }
    }
    sink.end_samples();
    sink.end_datagram();
    if errors.is_empty() {
        errors.extend(job.datagram.check_end().err());
    }
    errors
}

fn datagram_fields<S: Sink>(job: &Job<'_, '_>, sink: &mut S) {
    let Job { arrival, payload, datagram } = job;
    sink.field(name!("datagramSourceIP"), Value::Address(arrival.source));
    sink.field(name!("datagramSize"), Value::U32(payload.len() as u32));
    sink.field(name!("unixSecondsUTC"), Value::U64(arrival.received.seconds));
    sink.field(name!("unixSecondsUTC_uS"), Value::U32(arrival.received.micros));
    sink.time("localtime", arrival.received);
    if let Some(captured) = arrival.captured {
        sink.time("pcapTimestamp", captured);
        sink.field(name!("pcapTimestamp_uS"), Value::U32(captured.micros));
    }
    sink.field(name!("datagramVersion"), Value::U32(5));
    sink.datagram_context(datagram, false);
    sink.field(name!("agentSubId"), Value::U32(datagram.sub_agent));
    sink.datagram_context(datagram, true);
    sink.field(name!("agent"), Value::Address(datagram.agent));
    sink.field(name!("packetSequenceNo"), Value::U32(datagram.sequence));
    sink.field(name!("sysUpTime"), Value::U32(datagram.uptime_ms));
    sink.field(name!("samplesInPacket"), Value::U32(datagram.sample_count));
}

fn sample<S: Sink>(sample: &Sample<'_>, sink: &mut S, errors: &mut Vec<DecodeError>) {
    let tag = sample.tag();
    sink.field(name!("sampleType_tag"), Value::Pair(tag.enterprise(), tag.format()));
    match sample {
        Sample::Flow(flow) => {
            flow_sample(flow, sink);
            flow_records(flow.records.clone(), sink, errors);
        }
        Sample::Counters(counters) => {
            counter_sample(counters, sink);
            counter_records(counters.records.clone(), sink, errors);
        }
        Sample::Discard(discard) => {
            discard_sample(discard, sink);
            flow_records(discard.records.clone(), sink, errors);
            sink.set_prefix("");
        }
        Sample::Named(named) => named_sample(named, sink, errors),
        Sample::Unknown(tag, body) => sink.skipped("sample", *tag, body.len()),
    }
}

fn source<S: Sink>(source: DataSource, sink: &mut S) {
    sink.field(name!("sourceId"), Value::Pair(source.class, source.index));
}

fn flow_sample<S: Sink>(flow: &FlowSample<'_>, sink: &mut S) {
    sink.field(name!("sampleType"), Value::Str("FLOWSAMPLE"));
    sink.source_context(flow.source);
    sink.field(name!("sampleSequenceNo"), Value::U32(flow.sequence));
    source(flow.source, sink);
    sink.field(name!("meanSkipCount"), Value::U32(flow.rate));
    sink.field(name!("samplePool"), Value::U32(flow.pool));
    sink.field(name!("dropEvents"), Value::U32(flow.drops));
    for (name, interface) in
        [(name!("inputPort"), &flow.input), (name!("outputPort"), &flow.output)]
    {
        match interface {
            Interface::Index(index) => sink.field(name, Value::U32(*index)),
            other => sink.field(name, Value::Display(other)),
        }
    }
}

fn counter_sample<S: Sink>(counters: &CounterSample<'_>, sink: &mut S) {
    sink.field(name!("sampleType"), Value::Str("COUNTERSSAMPLE"));
    sink.field(name!("sampleSequenceNo"), Value::U32(counters.sequence));
    sink.source_context(counters.source);
    source(counters.source, sink);
}

fn discard_sample<S: Sink>(discard: &DiscardSample<'_>, sink: &mut S) {
    sink.field(name!("sampleType"), Value::Str("DISCARD"));
    sink.source_context(discard.source);
    sink.field(name!("sampleSequenceNo"), Value::U32(discard.sequence));
    source(discard.source, sink);
    sink.field(name!("dropEvents"), Value::U32(discard.drops));
    sink.field(name!("inputPort"), Value::U32(discard.input));
    sink.field(name!("outputPort"), Value::U32(discard.output));
    sink.field(name!("discardCode"), Value::U32(discard.reason.0));
    sink.field(name!("discardReason"), Value::Str(discard.reason.name().unwrap_or("NotFound")));
    sink.set_prefix("discarded_");
}

fn named_sample<S: Sink>(named: &NamedSample<'_>, sink: &mut S, errors: &mut Vec<DecodeError>) {
    let is_flow = named.sampling.is_some();
    let (kind, prefix) = if is_flow { ("RTFLOW", "rtflow_") } else { ("RTMETRIC", "rtmetric_") };
    sink.field(name!("sampleType"), Value::Str(kind));
    if !named.source.is_empty() {
        sink.prefixed(prefix, name!("datasource_name"), Value::Text(named.source));
    }
    if let Some((rate, pool)) = named.sampling {
        sink.prefixed(prefix, name!("sampling_rate"), Value::U32(rate));
        sink.prefixed(prefix, name!("sample_pool"), Value::U32(pool));
    }
    for value in named.values.clone() {
        let (name, value) = match value {
            Ok(named) => named,
            Err(error) => {
                errors.push(error);
                break;
            }
        };
        // The name is from outside, and must not end the line or the quotes around it.
        let special = |c: char| c.is_control() || c == '"' || c == '\\';
        let name = String::from_utf8_lossy(name).replace(special, "?");
        let full = format_args!("{prefix}{}_{name}", value.kind(is_flow));
        sink.numbered(
            full,
            match value {
                NamedValue::Text(bytes) => Value::Text(bytes),
                NamedValue::Counter32(n) | NamedValue::U32(n) => Value::U32(n),
                NamedValue::Counter64(n) | NamedValue::U64(n) => Value::U64(n),
                NamedValue::F32(n) => Value::F64(n.into()),
                NamedValue::F64(n) => Value::F64(n),
                NamedValue::Mac(mac) => Value::Mac(mac),
                NamedValue::Ipv4(ip) => Value::Address(Some(ip.into())),
                NamedValue::Ipv6(ip) => Value::Address(Some(ip.into())),
            },
        );
    }
}

fn flow_records<'a, S: Sink>(
    mut records: Records<'a, FlowRecord<'a>>,
    sink: &mut S,
    errors: &mut Vec<DecodeError>,
) {
    sink.start_elements();
    while let Some(next) = records.next_body() {
        let (tag, mut body) = match next {
            Ok(next) => next,
            Err(error) => {
                errors.push(error);
                break;
            }
        };
        sink.start_element(tag);
        sink.field(name!("flowBlock_tag"), Value::Pair(tag.enterprise(), tag.format()));
        match FlowRecord::show(tag, &mut body, sink) {
            Ok(true) => {}
            Ok(false) => sink.skipped("flow_sample_element", tag, body.remaining()),
            Err(error) => errors.push(error),
        }
        sink.end_element();
    }
    sink.end_elements();
}

fn counter_records<'a, S: Sink>(
    mut records: Records<'a, CounterRecord<'a>>,
    sink: &mut S,
    errors: &mut Vec<DecodeError>,
) {
    sink.start_elements();
    while let Some(next) = records.next_body() {
        let (tag, mut body) = match next {
            Ok(next) => next,
            Err(error) => {
                errors.push(error);
                break;
            }
        };
        sink.start_element(tag);
        sink.field(name!("counterBlock_tag"), Value::Pair(tag.enterprise(), tag.format()));
        match CounterRecord::show(tag, &mut body, sink) {
            Ok(true) => {}
            Ok(false) => sink.skipped("counters_sample_element", tag, body.remaining()),
            Err(error) => errors.push(error),
        }
        sink.end_element();
    }
    sink.end_elements();
}
