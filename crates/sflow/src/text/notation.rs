//! How values are written.

use std::io::Write;
use std::net::IpAddr;

use crate::value::Value;

const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";
const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Where a value is written to, which decides what must be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// A line of text: a name on the wire must not be able to forge lines.
    Line,
    /// Inside the quotes of a JSON string.
    Json,
}

pub(super) fn decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(HEX_LOWER[usize::from(byte >> 4)]);
        out.push(HEX_LOWER[usize::from(byte & 15)]);
    }
}

fn dashed_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() * 3);
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(b'-');
        }
        out.push(HEX_UPPER[usize::from(byte >> 4)]);
        out.push(HEX_UPPER[usize::from(byte & 15)]);
    }
}

pub(super) fn address(out: &mut Vec<u8>, address: Option<IpAddr>) {
    match address {
        None => out.push(b'-'),
        Some(IpAddr::V4(v4)) => {
            for (i, octet) in v4.octets().into_iter().enumerate() {
                if i > 0 {
                    out.push(b'.');
                }
                decimal(out, octet.into());
            }
        }
        Some(IpAddr::V6(v6)) => {
            for (i, group) in v6.segments().into_iter().enumerate() {
                if i > 0 {
                    out.push(b':');
                }
                hex(out, &group.to_be_bytes());
            }
        }
    }
}

pub(super) fn text(out: &mut Vec<u8>, bytes: &[u8], escape: Escape) {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let bytes = &bytes[..end];
    match escape {
        Escape::Line => {
            out.extend(bytes.iter().map(|b| if b.is_ascii_control() { b'?' } else { *b }));
        }
        Escape::Json => {
            for c in String::from_utf8_lossy(bytes).chars() {
                match c {
                    '"' | '\\' => out.extend([b'\\', c as u8]),
                    '\n' => out.extend(b"\\n"),
                    '\t' => out.extend(b"\\t"),
                    '\r' => out.extend(b"\\r"),
                    c if c.is_control() => {
                        out.extend(b"\\u");
                        hex(out, &(c as u16).to_be_bytes());
                    }
                    c => out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
                }
            }
        }
    }
}

/// Writing to a vector cannot fail.
fn format(out: &mut Vec<u8>, args: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(args);
}

pub(super) fn value(out: &mut Vec<u8>, value: Value<'_>, escape: Escape) {
    match value {
        Value::U32(n) => decimal(out, n.into()),
        Value::U64(n) => decimal(out, n),
        Value::Hex(n) => format(out, format_args!("{n:#x}")),
        Value::Hex64(n) => hex(out, &n.to_be_bytes()),
        Value::F64(n) => format(out, format_args!("{n:.3}")),
        Value::Percent(u32::MAX) => out.extend(b"unknown"),
        // Divided in single precision, as the last digit depends on it.
        Value::Percent(n) => format(out, format_args!("{:.2}", f64::from(n as f32 / 100.0))),
        Value::Text(bytes) => text(out, bytes, escape),
        Value::Str(s) => out.extend(s.as_bytes()),
        Value::Joined(a, b) => {
            out.extend(a.as_bytes());
            out.extend(b.as_bytes());
        }
        Value::Mac(mac) => hex(out, &mac),
        Value::Bytes(bytes) => dashed_hex(out, bytes),
        Value::Address(ip) => address(out, ip),
        Value::Uuid(id) => {
            let parts = [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..]];
            for (i, part) in parts.into_iter().enumerate() {
                if i > 0 {
                    out.push(b'-');
                }
                hex(out, part);
            }
        }
        Value::Pair(a, b) => {
            decimal(out, a.into());
            out.push(b':');
            decimal(out, b.into());
        }
        Value::Display(d) => format(out, format_args!("{d}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(v: Value<'_>, escape: Escape) -> String {
        let mut out = Vec::new();
        value(&mut out, v, escape);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn notations() {
        let line = |v| show(v, Escape::Line);
        assert_eq!(line(Value::U32(0)), "0");
        assert_eq!(line(Value::U64(u64::MAX)), "18446744073709551615");
        assert_eq!(line(Value::Percent(6939)), "69.39");
        assert_eq!(line(Value::Percent(u32::MAX)), "unknown");
        assert_eq!(line(Value::F64(2.18)), "2.180");
        assert_eq!(line(Value::Hex64(0xd2f9_03d6_534d)), "0000d2f903d6534d");
        let v6 = "2001:db8::1".parse().unwrap();
        assert_eq!(
            line(Value::Address(Some(IpAddr::V6(v6)))),
            "2001:0db8:0000:0000:0000:0000:0000:0001"
        );
        assert_eq!(line(Value::Address(None)), "-");
        assert_eq!(line(Value::Bytes(&[0xab, 1])), "AB-01");
    }

    #[test]
    fn strings_from_the_wire_stay_in_their_field() {
        let name = b"a\nb\"\\\xff\0rest";
        assert_eq!(show(Value::Text(&name[..5]), Escape::Line), "a?b\"\\");
        assert_eq!(show(Value::Text(name), Escape::Json), "a\\nb\\\"\\\\\u{fffd}");
    }
}
