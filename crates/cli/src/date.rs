//! Dates in text.

use std::time::SystemTime;

/// Formats a time as `YYYY-MM-DD hh:mm:ss.µµµµµµ` in UTC.
pub fn utc(t: SystemTime) -> String {
    let d = t.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, secs) = (d.as_secs() / 86_400, d.as_secs() % 86_400);
    let (y, m, day) = civil(days as i64);
    let (h, min, s) = (secs / 3600, secs / 60 % 60, secs % 60);
    format!("{y:04}-{m:02}-{day:02} {h:02}:{min:02}:{s:02}.{:06}", d.subsec_micros())
}

/// Converts a day count since 1970-01-01 to a date (proleptic Gregorian calendar; eras of 400
/// years).
fn civil(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = (doy - (153 * mp + 2) / 5 + 1) as u32;
    let month = if mp < 10 { mp + 3 } else { mp - 9 } as u32;
    (yoe + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates() {
        let at = |s| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(at(0), "1970-01-01 00:00:00.000000");
        assert_eq!(at(951_782_399), "2000-02-28 23:59:59.000000");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00.000000");
        assert_eq!(at(1_795_219_200), "2026-11-21 00:00:00.000000");
    }
}
