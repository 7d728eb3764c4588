//! Numbers in text.

/// Numbers from here on have a power of ten in place of their digits.
const LONG: f64 = 1e15;

/// A rate with up to four digits that count: `41.42 k`.
pub(crate) fn rate(value: f64) -> String {
    if value.abs() >= LONG {
        return fixed(value, 3);
    }
    let (value, suffix) = match value.abs() {
        1e9.. => (value / 1e9, " G"),
        1e6.. => (value / 1e6, " M"),
        1e4.. => (value / 1e3, " k"),
        _ => (value, ""),
    };
    match value.abs() {
        1000.0.. => format!("{value:.0}{suffix}"),
        100.0.. => format!("{value:.1}{suffix}"),
        10.0.. => format!("{value:.2}{suffix}"),
        _ => format!("{value:.3}{suffix}"),
    }
}

/// A number with some decimals.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    match value.abs() {
        LONG.. => format!("{value:.decimals$e}"),
        _ => format!("{value:.decimals$}"),
    }
}

/// A share: `0`, `0.4746 %`, or as a power of ten.
pub(crate) fn share(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        value if value.abs() >= 1e-4 => format!("{} %", fixed(value * 100.0, 4)),
        value => format!("{value:.1e}"),
    }
}

/// A share of what was judged; of none, with its upper bound.
pub(crate) fn share_of(value: f64, judged: u64) -> String {
    match (value, judged) {
        (0.0, 1..) => {
            format!("0 of {} (< {})", count(judged), below(judged).replace(".0e", "e"))
        }
        _ => share(value),
    }
}

/// The upper bound of a share of which none was seen among a number that was judged, with 95 %
/// confidence: a greater share would have shown more often than that. Rounded up.
pub fn below(judged: u64) -> String {
    let bound = -(0.05_f64.ln() / judged.max(1) as f64).exp_m1();
    // Two digits count.
    let unit = 10_f64.powi(bound.log10().floor() as i32 - 1);
    format!("{:.1e}", (bound / unit - 1e-9).ceil() * unit)
}

/// A count with separators.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count that may be negative.
pub(crate) fn signed(value: i64) -> String {
    let sign = if value < 0 { "−" } else { "" };
    format!("{sign}{}", count(value.unsigned_abs()))
}

/// A time: `3.21 µs`.
pub(crate) fn time(nanos: f64) -> String {
    match nanos.abs() {
        1e24.. => format!("{:.3e} s", nanos / 1e9),
        1e9.. => format!("{:.3} s", nanos / 1e9),
        1e6.. => format!("{:.3} ms", nanos / 1e6),
        1e3.. => format!("{:.2} µs", nanos / 1e3),
        _ => format!("{nanos:.0} ns"),
    }
}

/// A difference in percent, as in tables of articles: `+21.36%`.
pub(crate) fn difference(before: f64, after: f64) -> String {
    match before {
        0.0 => "–".into(),
        _ => {
            let percent = (after / before - 1.0) * 100.0;
            let sign = if percent < 0.0 { "−" } else { "+" };
            format!("{sign}{}%", fixed(percent.abs(), 2))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_whatever_they_are() {
        for value in [1e15, 1e308, -1e308, f64::MAX, f64::INFINITY, f64::NAN, 1e-300] {
            for text in
                [rate(value), share(value), time(value), difference(1.0, value), fixed(value, 1)]
            {
                assert!(text.len() <= 20, "{text}");
            }
        }
        assert_eq!((rate(1e308), share(1e20)), ("1.000e308".into(), "1.0000e22 %".into()));
    }

    #[test]
    fn bounds_are_shares_that_would_have_shown() {
        for (judged, text) in [
            (0, "9.5e-1"),
            (1, "9.5e-1"),
            (2, "7.8e-1"),
            (100, "3.0e-2"),
            (200_000, "1.5e-5"),
            // A lower bound would be too good.
            (145_000, "2.1e-5"),
            (u64::MAX, "1.7e-19"),
        ] {
            assert_eq!(below(judged), text, "{judged}");
        }
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(rate(41_420.0), "41.42 k");
        assert_eq!(rate(951_000.0), "951.0 k");
        assert_eq!((rate(959.0), rate(2.5e6)), ("959.0".into(), "2.500 M".into()));
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(
            (count(999), count(1000), signed(-5)),
            ("999".into(), "1,000".into(), "−5".into())
        );
        assert_eq!(share_of(0.0, 1_000_000), "0 of 1,000,000 (< 3e-6)");
        assert_eq!((share_of(0.0, 0), share_of(0.01, 5)), ("0".into(), "1.0000 %".into()));
        assert_eq!((share(0.004746), share(1e-6)), ("0.4746 %".into(), "1.0e-6".into()));
        assert_eq!(time(3210.0), "3.21 µs");
        assert_eq!(difference(39_700.0, 48_180.0), "+21.36%");
        assert_eq!(difference(1.0, 0.9826), "−1.74%");
    }
}
