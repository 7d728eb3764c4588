//! How values are written.

use std::io::Write;
use std::net::IpAddr;

use super::pen::Pen;
use crate::value::Value;

/// Where a value is written to, which decides what must be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// A line of text: a name on the wire must not be able to forge lines.
    Line,
    /// Inside the quotes of a JSON string.
    Json,
}

pub(super) fn address(out: &mut Pen, address: Option<IpAddr>) {
    match address {
        None => out.push(b'-'),
        Some(IpAddr::V4(v4)) => {
            for (i, octet) in v4.octets().into_iter().enumerate() {
                if i > 0 {
                    out.push(b'.');
                }
                out.decimal(octet.into());
            }
        }
        Some(IpAddr::V6(v6)) => {
            for (i, group) in v6.octets().chunks(2).enumerate() {
                if i > 0 {
                    out.push(b':');
                }
                out.hex(group);
            }
        }
    }
}

pub(super) fn text(out: &mut Pen, bytes: &[u8], escape: Escape) {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let bytes = &bytes[..end];
    match escape {
        Escape::Line => {
            for byte in bytes {
                out.push(if byte.is_ascii_control() { b'?' } else { *byte });
            }
        }
        Escape::Json => {
            for c in String::from_utf8_lossy(bytes).chars() {
                match c {
                    '"' | '\\' => out.put(&[b'\\', c as u8]),
                    '\n' => out.put(b"\\n"),
                    '\t' => out.put(b"\\t"),
                    '\r' => out.put(b"\\r"),
                    c if c.is_control() => {
                        out.put(b"\\u");
                        out.hex(&(c as u16).to_be_bytes());
                    }
                    c => out.text(c.encode_utf8(&mut [0; 4])),
                }
            }
        }
    }
}

/// Writing to memory cannot fail.
fn format(out: &mut Pen, args: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(args);
}

pub(super) fn value(out: &mut Pen, value: Value<'_>, escape: Escape) {
    match value {
        Value::U32(n) => out.decimal(n.into()),
        Value::U64(n) => out.decimal(n),
        Value::Hex(n) => format(out, format_args!("{n:#x}")),
        Value::Hex64(n) => out.hex(&n.to_be_bytes()),
        Value::F64(n) => format(out, format_args!("{n:.3}")),
        Value::Percent(u32::MAX) => out.put(b"unknown"),
        // Divided in single precision, as the last digit depends on it.
        Value::Percent(n) => format(out, format_args!("{:.2}", f64::from(n as f32 / 100.0))),
        Value::Text(bytes) => text(out, bytes, escape),
        Value::Str(s) => out.text(s),
        Value::Joined(a, b) => {
            out.text(a);
            out.text(b);
        }
        Value::Mac(mac) => out.hex(&mac),
        Value::Bytes(bytes) => out.dashed_hex(bytes),
        Value::Address(ip) => address(out, ip),
        Value::Uuid(id) => {
            let parts = [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..]];
            for (i, part) in parts.into_iter().enumerate() {
                if i > 0 {
                    out.push(b'-');
                }
                out.hex(part);
            }
        }
        Value::Pair(a, b) => {
            out.decimal(a.into());
            out.push(b':');
            out.decimal(b.into());
        }
        Value::Display(d) => format(out, format_args!("{d}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(v: Value<'_>, escape: Escape) -> String {
        let mut out = Pen::default();
        value(&mut out, v, escape);
        String::from_utf8(out.written().to_vec()).unwrap()
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
