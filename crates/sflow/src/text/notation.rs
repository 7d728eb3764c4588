//! Notation of values.

use std::io::Write;
use std::net::IpAddr;

use super::text_buf::{self, TextBuf, VALUE, spot};
use crate::value::Value;

/// Target of a value, which decides what must be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// A line of text: a name on the wire must not be able to forge lines.
    Line,
    /// Text inside the quotes of a JSON string.
    Json,
}

/// Most bytes of an address: eight groups of four digits, and what is between.
const ADDRESS: usize = 39;

pub(super) fn address(out: &mut TextBuf, address: Option<IpAddr>) {
    out.short(|room| write_address(room, address));
}

#[inline(always)]
fn write_address(room: &mut [u8; VALUE], address: Option<IpAddr>) -> usize {
    match address {
        None => {
            room[0] = b'-';
            1
        }
        Some(IpAddr::V4(v4)) => text_buf::dotted(room, v4.octets()),
        Some(IpAddr::V6(v6)) => {
            for (at, group) in (0..ADDRESS).step_by(5).zip(v6.octets().as_chunks::<2>().0) {
                text_buf::hex(spot::<4, _>(room, at), group);
                if at > 0 {
                    room[at - 1] = b':';
                }
            }
            ADDRESS
        }
    }
}

/// True if [`short`] can write a value.
#[inline(always)]
pub(super) fn is_short(value: &Value<'_>) -> bool {
    match value {
        Value::U32(_) | Value::U64(_) | Value::Hex(_) | Value::Hex64(_) => true,
        Value::Mac(_) | Value::Address(_) | Value::Pair(..) => true,
        Value::Str(s) => s.len() <= VALUE / 2,
        Value::Joined(a, b) => a.len() + b.len() <= VALUE / 2,
        _ => false,
    }
}

/// Writes a value to the front of the room, at most half of it; returns its length. Nothing in it
/// need be escaped anywhere.
#[inline(always)]
pub(super) fn short(room: &mut [u8; VALUE], value: &Value<'_>) -> usize {
    match *value {
        Value::U32(n) => number(room, 0, n.into()),
        Value::U64(n) => number(room, 0, n),
        Value::Hex(n) => {
            let mut digits = [0; 8];
            text_buf::hex(&mut digits, &n.to_be_bytes());
            let zeros = (n.leading_zeros() / 4).min(7);
            *spot(room, 0) = *b"0x";
            *spot(room, 2) = (u64::from_le_bytes(digits) >> (8 * zeros)).to_le_bytes();
            10 - zeros as usize
        }
        Value::Hex64(n) => text_buf::hex(room, &n.to_be_bytes()),
        Value::Mac(mac) => text_buf::hex(room, &mac),
        Value::Address(ip) => write_address(room, ip),
        Value::Str(s) => {
            text_buf::put(room, s.as_bytes());
            s.len()
        }
        Value::Joined(a, b) => {
            text_buf::put(room, a.as_bytes());
            text_buf::put(&mut room[a.len()..], b.as_bytes());
            a.len() + b.len()
        }
        Value::Pair(a, b) => {
            let at = number(room, 0, a.into());
            *spot(room, at) = [b':'];
            number(room, at + 1, b.into())
        }
        _ => 0,
    }
}

/// Writes a decimal number to a place; returns where it ends.
#[inline(always)]
pub(super) fn number(room: &mut [u8; VALUE], at: usize, n: u64) -> usize {
    at + text_buf::decimal(spot(room, at), n)
}

pub(super) fn text(out: &mut TextBuf, bytes: &[u8], escape: Escape) {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let bytes = &bytes[..end];
    let plain =
        |b: &u8| matches!(b, b' '..=b'~') && !(escape == Escape::Json && b"\"\\".contains(b));
    if bytes.iter().all(plain) {
        return out.put(bytes);
    }
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
fn format(out: &mut TextBuf, args: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(args);
}

pub(super) fn value(out: &mut TextBuf, value: Value<'_>, escape: Escape) {
    if is_short(&value) {
        return out.short(|room| short(room, &value));
    }
    match value {
        Value::Text(bytes) => text(out, bytes, escape),
        Value::Bytes(bytes) => out.dashed_hex(bytes),
        Value::Str(s) => out.text(s),
        Value::Joined(a, b) => [a, b].into_iter().for_each(|part| out.text(part)),
        Value::F64(n) => format(out, format_args!("{n:.3}")),
        Value::Percent(u32::MAX) => out.put(b"unknown"),
        // Divided in single precision, as the last digit depends on it.
        Value::Percent(n) => format(out, format_args!("{:.2}", f64::from(n as f32 / 100.0))),
        Value::Uuid(id) => {
            let parts = [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..]];
            for (i, part) in parts.into_iter().enumerate() {
                if i > 0 {
                    out.push(b'-');
                }
                out.hex(part);
            }
        }
        Value::Display(d) => format(out, format_args!("{d}")),
        // The remaining kinds are short.
        Value::U32(_) | Value::U64(_) | Value::Hex(_) | Value::Hex64(_) => {}
        Value::Mac(_) | Value::Address(_) | Value::Pair(..) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(v: Value<'_>, escape: Escape) -> String {
        let mut out = TextBuf::default();
        value(&mut out, v, escape);
        String::from_utf8(out.written().to_vec()).unwrap()
    }

    #[test]
    fn notations() {
        let line = |v: Value<'_>| {
            let text = show(v, Escape::Line);
            if is_short(&v) {
                assert!(text.len() <= VALUE / 2, "{text}");
            }
            assert_eq!(show(v, Escape::Json), text);
            text
        };
        assert_eq!(line(Value::Mac([0, 1, 2, 0xfd, 0xfe, 0xff])), "000102fdfeff");
        assert_eq!(line(Value::Pair(u32::MAX, 1)), "4294967295:1");
        for n in [0, 1, 31, 32, 33, 64, 65, 100] {
            let text = "s".repeat(n);
            assert_eq!(line(Value::Str(&text)), text);
            assert_eq!(line(Value::Joined("inner_", &text)), format!("inner_{text}"));
        }
        for n in [0, 1, 15, 16, 0xabcde, u32::MAX] {
            assert_eq!(line(Value::Hex(n)), format!("{n:#x}"));
        }
        assert_eq!(line(Value::Pair(u32::MAX, u32::MAX)), "4294967295:4294967295");
        assert_eq!(line(Value::Address(Some(IpAddr::from([10, 255, 0, 99])))), "10.255.0.99");
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
