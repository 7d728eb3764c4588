//! Numbers as `cps_ndr.py` reads and prints them.

use thalweg_load::stream::{Load, Rate};

/// Prints a number with at most four places: below 1,000 whole, else with a suffix, and one
/// decimal below 100.
pub(super) fn short(value: f64) -> String {
    if value < 1000.0 {
        return format!("{}", value.trunc());
    }
    if value >= 1e15 {
        return format!("{value:.1e}");
    }
    let mut value = value;
    let mut suffix = "";
    for next in ["K", "M", "G"] {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        suffix = next;
    }
    if value < 100.0 { format!("{value:.1}{suffix}") } else { format!("{value:.0}{suffix}") }
}

/// Reads a number with an optional suffix k, m or g: thousands, millions, milliards.
fn parse(text: &str) -> Option<f64> {
    let (digits, factor) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (&text[..at], 1e3),
        (at, 'm' | 'M') => (&text[..at], 1e6),
        (at, 'g' | 'G') => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let value: f64 = digits.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value * factor)
}

/// A rate per second, with an optional suffix.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let value = parse(text.trim()).filter(|value| *value > 0.0 && *value <= 1e9);
    value.ok_or_else(|| format!("`{text}': a rate per second is expected, such as 50k"))
}

/// Reads the load of streams: a factor, or a rate with its unit.
pub(super) fn load(text: &str) -> Result<Load, String> {
    let wrong = || {
        format!(
            "`{text}': a factor (2), packets (5kpps), bits of layer 2 (1gbps) or of layer 1 \
             (1gbpsl1), or a percentage (80%) is expected, above 0"
        )
    };
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = ["bpsl1", "bps", "pps", "%"]
        .into_iter()
        .find_map(|unit| Some((lower.strip_suffix(unit)?, unit)))
        .unwrap_or((&lower, ""));
    let value = parse(digits.trim_end())
        .filter(|value| *value > 0.0 && *value <= 1e13)
        .ok_or_else(wrong)?;
    Ok(match unit {
        "bpsl1" => Load::Total(Rate::WireBits(value)),
        "bps" => Load::Total(Rate::Bits(value)),
        "pps" => Load::Total(Rate::Packets(value)),
        "%" => Load::Total(Rate::Percent(value)),
        _ => Load::Times(value),
    })
}

/// A whole number between bounds.
pub(super) fn bounded(least: u64, most: u64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let value = parse(text).ok_or_else(|| format!("not a number: '{text}'"))?;
        let whole = value.round() as u64;
        match (value - value.round()).abs() < 1e-6 && (least..=most).contains(&whole) {
            true => Ok(whole),
            false => Err(format!("value out of bounds [{least}, {most}]: '{text}'")),
        }
    }
}

/// A percentage with some decimals.
pub(super) fn share(decimals: i32) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let value = parse(text).ok_or_else(|| format!("not a number: '{text}'"))?;
        let scale = 10f64.powi(decimals);
        match (0.0..=100.0).contains(&value) {
            true => Ok((value * scale).round() / scale),
            false => Err(format!("value out of bounds [0, 100]: '{text}'")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_in_the_article() {
        for (value, text) in [
            (0.0, "0"),
            (999.9, "999"),
            (1000.0, "1.0K"),
            (50_500.0, "50.5K"),
            (25_750.0, "25.8K"),
            (100_000.0, "100K"),
            (999_950.0, "1000K"),
            (215e6, "215M"),
            (1_812_345.0, "1.8M"),
            (12.7e9, "12.7G"),
            (1e308, "1.0e308"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn loads_have_units() {
        for (text, meant) in [
            ("2", Load::Times(2.0)),
            ("5kpps", Load::Total(Rate::Packets(5e3))),
            ("1.5Mpps", Load::Total(Rate::Packets(1.5e6))),
            ("10gbps", Load::Total(Rate::Bits(10e9))),
            ("10Gbpsl1", Load::Total(Rate::WireBits(10e9))),
            ("80%", Load::Total(Rate::Percent(80.0))),
        ] {
            assert_eq!(load(text), Ok(meant), "{text}");
        }
        for text in ["", "0", "-1", "pps", "5 furlongs", "nan", "99999999999gpps"] {
            assert!(load(text).is_err(), "{text}");
        }
    }

    #[test]
    fn suffixes_are_read() {
        for (text, value) in [("1k", 1e3), ("2M", 2e6), ("1.5K", 1500.0), ("20", 20.0), ("1g", 1e9)]
        {
            assert_eq!(parse(text), Some(value));
        }
        for text in ["", "k", "-1", "1kk", "nan", "inf", "ä"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
