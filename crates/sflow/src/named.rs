//! Samples of named values: what programs on a host hand to hsflowd's `json` module, which relays
//! it (enterprise 4300).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::model::Tag;
use crate::xdr::{DecodeError, Fault, Reader};

/// Values of a data source (`rtmetric`) or of a sampled event (`rtflow`).
#[derive(Debug, Clone)]
pub struct NamedSample<'a> {
    /// [`Tag::NAMED_METRICS`] or [`Tag::NAMED_FLOW`].
    pub tag: Tag,
    /// Name of the values' owner.
    pub source: &'a [u8],
    /// Sampling rate and sample pool, of an event.
    pub sampling: Option<(u32, u32)>,
    /// The values.
    pub values: NamedValues<'a>,
}

impl<'a> NamedSample<'a> {
    pub(crate) fn decode(tag: Tag, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let source = r.opaque("data source name")?;
        let is_flow = tag == Tag::NAMED_FLOW;
        let sampling = match is_flow {
            true => Some((r.u32("sampling rate")?, r.u32("sample pool")?)),
            false => None,
        };
        // A name's length, a type, and four bytes of a value at least.
        let left = r.count(12, "named values")?;
        Ok(NamedSample {
            tag,
            source,
            sampling,
            values: NamedValues { r: r.clone(), left, is_flow },
        })
    }
}

/// A value with the type that it was sent in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NamedValue<'a> {
    /// A string.
    Text(&'a [u8]),
    /// A counter of 32 bits.
    Counter32(u32),
    /// A counter of 64 bits.
    Counter64(u64),
    /// A gauge, or a number of an event.
    U32(u32),
    /// A gauge, or a number of an event.
    U64(u64),
    /// A number in single precision.
    F32(f32),
    /// A number in double precision.
    F64(f64),
    /// A MAC address.
    Mac([u8; 6]),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
}

impl<'a> NamedValue<'a> {
    fn metric(kind: u32, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        const WHAT: &str = "value";
        Ok(match kind {
            0 => NamedValue::Text(r.opaque(WHAT)?),
            1 => NamedValue::Counter32(r.u32(WHAT)?),
            2 => NamedValue::Counter64(r.u64(WHAT)?),
            3 => NamedValue::U32(r.u32(WHAT)?),
            4 => NamedValue::U64(r.u64(WHAT)?),
            5 => NamedValue::F32(f32::from_bits(r.u32(WHAT)?)),
            6 => NamedValue::F64(f64::from_bits(r.u64(WHAT)?)),
            found => return Err(r.fault(Fault::ValueType { found, most: 6 })),
        })
    }

    fn event(kind: u32, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        const WHAT: &str = "value";
        Ok(match kind {
            0 => NamedValue::Text(r.opaque(WHAT)?),
            1 => NamedValue::Mac(r.mac(WHAT)?),
            2 => NamedValue::Ipv4(r.ipv4(WHAT)?),
            3 => NamedValue::Ipv6(r.ipv6(WHAT)?),
            4 => NamedValue::U32(r.u32(WHAT)?),
            5 => NamedValue::U64(r.u64(WHAT)?),
            6 => NamedValue::F32(f32::from_bits(r.u32(WHAT)?)),
            7 => NamedValue::F64(f64::from_bits(r.u64(WHAT)?)),
            found => return Err(r.fault(Fault::ValueType { found, most: 7 })),
        })
    }

    /// Returns the type's name in sflowtool's names of fields.
    pub(crate) fn kind(&self, is_flow: bool) -> &'static str {
        match self {
            NamedValue::Text(_) => "string",
            NamedValue::Counter32(_) => "counter32",
            NamedValue::Counter64(_) => "counter64",
            NamedValue::U32(_) if is_flow => "int32",
            NamedValue::U64(_) if is_flow => "int64",
            NamedValue::F32(_) if is_flow => "float",
            NamedValue::F64(_) if is_flow => "double",
            NamedValue::U32(_) => "gauge32",
            NamedValue::U64(_) => "gauge64",
            NamedValue::F32(_) => "gaugeFloat",
            NamedValue::F64(_) => "gaugeDouble",
            NamedValue::Mac(_) => "mac",
            NamedValue::Ipv4(_) => "ip",
            NamedValue::Ipv6(_) => "ip6",
        }
    }
}

/// The values of a sample, with their names. An error is the last item, as nothing shows where the
/// value after it begins.
#[derive(Debug, Clone)]
pub struct NamedValues<'a> {
    r: Reader<'a>,
    left: u32,
    is_flow: bool,
}

impl<'a> NamedValues<'a> {
    fn value(&mut self) -> Result<(&'a [u8], NamedValue<'a>), DecodeError> {
        let name = self.r.opaque("value name")?;
        let kind = self.r.u32("value type")?;
        let value = match self.is_flow {
            true => NamedValue::event(kind, &mut self.r)?,
            false => NamedValue::metric(kind, &mut self.r)?,
        };
        Ok((name, value))
    }
}

impl<'a> Iterator for NamedValues<'a> {
    type Item = Result<(&'a [u8], NamedValue<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(self.value().inspect_err(|_| self.left = 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::Writer;

    fn sample(tag: Tag, kinds: &[(u32, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        let mut w = Writer::new(&mut body);
        w.opaque(b"db");
        if tag == Tag::NAMED_FLOW {
            w.u32(10);
            w.u32(100);
        }
        w.u32(kinds.len() as u32);
        for (kind, value) in kinds {
            w.opaque(b"queries");
            w.u32(*kind);
            w.padded(value);
        }
        body
    }

    #[test]
    fn every_type_is_read() {
        let metrics: [(u32, &[u8]); 4] =
            [(0, b"\0\0\0\x02ok"), (1, &[0, 0, 0, 7]), (4, &[0; 8]), (6, &1.5_f64.to_be_bytes())];
        let body = sample(Tag::NAMED_METRICS, &metrics);
        let decoded = NamedSample::decode(Tag::NAMED_METRICS, &mut Reader::new(&body)).unwrap();
        assert_eq!((decoded.source, decoded.sampling), (&b"db"[..], None));
        let values: Vec<_> = decoded.values.map(|v| v.unwrap().1).collect();
        let expected = [
            NamedValue::Text(b"ok"),
            NamedValue::Counter32(7),
            NamedValue::U64(0),
            NamedValue::F64(1.5),
        ];
        assert_eq!(values, expected);

        let body = sample(Tag::NAMED_FLOW, &[(1, &[2, 0, 0, 0, 0, 1]), (2, &[192, 0, 2, 1])]);
        let decoded = NamedSample::decode(Tag::NAMED_FLOW, &mut Reader::new(&body)).unwrap();
        assert_eq!(decoded.sampling, Some((10, 100)));
        let values: Vec<_> = decoded.values.map(|v| v.unwrap().1).collect();
        let mac = NamedValue::Mac([2, 0, 0, 0, 0, 1]);
        assert_eq!(values, [mac, NamedValue::Ipv4(Ipv4Addr::new(192, 0, 2, 1))]);
    }

    #[test]
    fn an_unknown_type_ends_the_sample() {
        let body = sample(Tag::NAMED_METRICS, &[(9, &[0; 4]), (1, &[0; 4])]);
        let decoded = NamedSample::decode(Tag::NAMED_METRICS, &mut Reader::new(&body)).unwrap();
        let values: Vec<_> = decoded.values.collect();
        assert_eq!(values.len(), 1);
        let error = values[0].as_ref().unwrap_err().to_string();
        assert_eq!(error, "byte 28: value type is 9, expected 0 to 6");
    }
}
