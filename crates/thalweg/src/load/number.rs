//! Numbers as `cps_ndr.py` reads and prints them.

/// Prints a number with at most four places: below 1,000 whole, else with a suffix, and one
/// decimal below 100.
pub(super) fn short(value: f64) -> String {
    if value < 1000.0 {
        return format!("{}", value.trunc());
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
        ] {
            assert_eq!(short(value), text);
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
