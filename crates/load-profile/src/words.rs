//! Numbers with units.

use std::net::{Ipv4Addr, Ipv6Addr};

use thalweg_load::stream::Rate;

/// The factor of a decimal suffix.
fn factor(suffix: &str) -> Option<f64> {
    match suffix {
        "" => Some(1.0),
        "k" | "K" => Some(1e3),
        "m" | "M" => Some(1e6),
        "g" | "G" => Some(1e9),
        _ => None,
    }
}

/// A number without the `_` that YAML allows between digits.
fn joined(word: &str) -> Option<String> {
    (!word.starts_with('_')).then(|| word.replace('_', ""))
}

/// Splits a number, which may have an exponent, from the rest of the word.
fn split(word: &str) -> Option<(f64, &str)> {
    let word = word.trim();
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | '_');
    let (mut end, all) = (word.find(|c| !digits(c)).unwrap_or(word.len()), word.len());
    if let Some(power) = word.get(end..).and_then(|rest| rest.strip_prefix(['e', 'E'])) {
        let power = power.strip_prefix(['+', '-']).unwrap_or(power);
        let behind = power.trim_start_matches(|c: char| c.is_ascii_digit());
        if behind.len() < power.len() {
            end = all - behind.len();
        }
    }
    let (number, unit) = word.split_at(end);
    let number = joined(number)?.parse().ok().filter(|n: &f64| n.is_finite());
    number.map(|n| (n, unit.trim()))
}

/// A whole number: `5`, `0x10`, `1.5k`, and what else is one in YAML.
pub(crate) fn whole(word: &str) -> Option<u64> {
    let word = word.trim();
    let plain = joined(word)?;
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = plain.strip_prefix(prefix) {
            return u64::from_str_radix(digits, radix).ok();
        }
    }
    if let Ok(n) = plain.parse() {
        return Some(n);
    }
    let (n, unit) = split(word)?;
    let n = n * factor(unit)?;
    (n.fract() == 0.0 && n < 1e18).then_some(n as u64)
}

/// A time in nanoseconds: `10us`, `1.5 ms`, `3s`, `5m`, `1h`.
pub(crate) fn nanos(word: &str) -> Option<u64> {
    let (n, unit) = split(word)?;
    let unit = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ if n == 0.0 && unit.is_empty() => 1.0,
        _ => return None,
    };
    let n = (n * unit).round();
    (n <= 1e18).then_some(n as u64)
}

/// A range of times: `10-50ms`, or a single one.
pub(crate) fn nanos_range(word: &str) -> Option<(u64, u64)> {
    let Some((low, high)) = word.split_once('-') else {
        return nanos(word).map(|time| (time, time));
    };
    let unit = high.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let low = nanos(low).or_else(|| nanos(&format!("{low}{unit}")))?;
    Some((low, nanos(high)?))
}

/// A rate: `28 pps`, `5 kpps`, `2 Mbps`, `2 Mbps-l1`, `10 %`; a number alone is packets per second.
pub(crate) fn rate(word: &str) -> Option<Rate> {
    let (n, unit) = split(word)?;
    if unit == "%" {
        return Some(Rate::Percent(n));
    }
    for (name, rate) in [
        ("pps", Rate::Packets as fn(f64) -> Rate),
        ("bps-l1", Rate::WireBits),
        ("bpsl1", Rate::WireBits),
        ("bps-l2", Rate::Bits),
        ("bps", Rate::Bits),
    ] {
        if let Some(suffix) = unit.strip_suffix(name) {
            return factor(suffix.trim()).map(|factor| rate(n * factor));
        }
    }
    factor(unit).map(|factor| Rate::Packets(n * factor))
}

/// Type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Numbers.
    Number,
    /// IPv4 addresses.
    V4,
    /// IPv6 addresses.
    V6,
    /// MAC addresses.
    Mac,
}

impl Kind {
    /// Returns the name for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Number => "a number",
            Kind::V4 => "an IPv4 address",
            Kind::V6 => "an IPv6 address",
            Kind::Mac => "a MAC address",
        }
    }

    /// Reads a value.
    pub(crate) fn read(self, word: &str) -> Option<u128> {
        let word = word.trim();
        match self {
            Kind::Number => whole(word).map(u128::from),
            Kind::V4 => word.parse::<Ipv4Addr>().ok().map(|address| address.to_bits().into()),
            Kind::V6 => word.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
            Kind::Mac => {
                let parts: Vec<&str> = word.split(':').collect();
                let bytes = parts.iter().map(|part| match part.len() {
                    1 | 2 => u8::from_str_radix(part, 16).ok(),
                    _ => None,
                });
                let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
                (bytes.len() == 6)
                    .then(|| bytes.iter().fold(0, |all, byte| all << 8 | u128::from(*byte)))
            }
        }
    }

    pub(crate) fn write(self, value: u128) -> String {
        match self {
            Kind::Number => value.to_string(),
            Kind::V4 => Ipv4Addr::from_bits(value as u32).to_string(),
            Kind::V6 => Ipv6Addr::from_bits(value).to_string(),
            Kind::Mac => {
                let bytes: Vec<String> =
                    (0..6).rev().map(|n| format!("{:02x}", (value >> (n * 8)) as u8)).collect();
                bytes.join(":")
            }
        }
    }

    /// Reads a range `low-high`, or the addresses of a prefix; a single value is a range of one.
    pub(crate) fn range(self, word: &str) -> Option<(u128, u128)> {
        if let (Kind::V4 | Kind::V6, Some((address, length))) = (self, word.split_once('/')) {
            let bits = if self == Kind::V4 { 32 } else { 128 };
            let length: u32 = length.trim().parse().ok().filter(|length| *length <= bits)?;
            let all = if bits == 32 { u32::MAX.into() } else { u128::MAX };
            let host = if length == 0 { all } else { all & !(all << (bits - length)) };
            let address = self.read(address)?;
            return Some((address & !host, address | host));
        }
        match word.split_once('-') {
            Some((low, high)) => Some((self.read(low)?, self.read(high)?)),
            None => self.read(word).map(|value| (value, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_times_and_rates() {
        assert_eq!(whole("1.5k"), Some(1500));
        assert_eq!(whole("0x1F"), Some(31));
        assert_eq!((whole("1.5"), whole("-1"), whole("1e99"), whole("")), (None, None, None, None));
        let yaml = ["1_000", "1e3", "1.0e+3", "+1000", "01000", "1000.", "0x3e8", "0o1750"];
        assert_eq!(yaml.map(whole), [Some(1000); 8]);
        assert_eq!((whole("_1"), whole("1e"), whole("e3")), (None, None, None));
        assert_eq!(rate("1_0e2 pps"), Some(Rate::Packets(1000.0)));
        assert_eq!(nanos("0.1us"), Some(100));
        assert_eq!(nanos("1.5 ms"), Some(1_500_000));
        assert_eq!((nanos("0"), nanos("5"), nanos("1 week")), (Some(0), None, None));
        assert_eq!(nanos_range("10-50ms"), Some((10_000_000, 50_000_000)));
        assert_eq!(nanos_range("500us-1ms"), Some((500_000, 1_000_000)));
        assert_eq!(rate("28 pps"), Some(Rate::Packets(28.0)));
        assert_eq!(rate("5kpps"), Some(Rate::Packets(5000.0)));
        assert_eq!(rate("10 Gbps-l1"), Some(Rate::WireBits(1e10)));
        assert_eq!(rate("2 Mbps"), Some(Rate::Bits(2e6)));
        assert_eq!(rate("10 %"), Some(Rate::Percent(10.0)));
        assert_eq!(rate("10 apples"), None);
    }

    #[test]
    fn ranges_and_prefixes() {
        assert_eq!(Kind::V4.range("16.0.0.0/24"), Some((0x1000_0000, 0x1000_00ff)));
        assert_eq!(Kind::V4.range("0.0.0.0/0"), Some((0, u32::MAX.into())));
        assert_eq!(Kind::V6.range("::/0"), Some((0, u128::MAX)));
        assert_eq!(Kind::V6.range("2001:db8::1/128").map(|(a, b)| b - a), Some(0));
        assert_eq!(Kind::Number.range("1-0x10"), Some((1, 16)));
        assert_eq!(Kind::Mac.range("0:0:0:0:0:1-00:00:00:00:00:ff"), Some((1, 255)));
        assert_eq!(Kind::V4.range("16.0.0.0/33"), None);
        assert_eq!(Kind::Mac.write(0x0200_0000_00ff), "02:00:00:00:00:ff");
    }
}
