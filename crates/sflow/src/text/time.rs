//! Times as `%Y-%m-%dT%H:%M:%S%z`.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use tz::TimeZone;

use super::text_buf::TextBuf;

/// Seconds and microseconds since 1970, UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Seconds.
    pub seconds: u64,
    /// Microseconds.
    pub micros: u32,
}

impl Moment {
    /// The present.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { seconds: since.as_secs(), micros: since.subsec_micros() }
    }
}

/// Bytes of a time: no zone is off by a hundred hours.
const TEXT: usize = 24;

/// The time zone that times are shown in.
#[derive(Debug, Clone)]
pub struct Zone {
    zone: TimeZone,
    /// The two seconds that were shown last, as they are shown: many datagrams come in one, and of
    /// those in files two times are shown.
    last: Cell<[(u64, [u8; TEXT]); 2]>,
}

impl From<TimeZone> for Zone {
    fn from(zone: TimeZone) -> Self {
        // The time is beyond what is ever shown.
        Zone { zone, last: Cell::new([(u64::MAX, [0; TEXT]); 2]) }
    }
}

impl Zone {
    /// UTC.
    #[must_use]
    pub fn utc() -> Self {
        TimeZone::utc().into()
    }

    /// The zone of the environment: `TZ`, else the system's, else UTC.
    #[must_use]
    pub fn local() -> Self {
        let zone = match std::env::var("TZ") {
            Ok(name) if !name.is_empty() => TimeZone::from_posix_tz(&name),
            Ok(_) => Ok(TimeZone::utc()),
            Err(_) => TimeZone::local(),
        };
        zone.unwrap_or_else(|_| TimeZone::utc()).into()
    }

    /// Appends the time as it is in this zone.
    pub(super) fn write(&self, out: &mut TextBuf, moment: Moment) {
        // Years beyond 9999 are nonsense.
        let seconds = moment.seconds.min(253_402_300_799);
        let [first, second] = self.last.get();
        for (last, text) in [first, second] {
            if last == seconds {
                return out.put(&text);
            }
        }
        let before = out.written().len();
        self.compose(out, seconds as i64);
        if let Ok(text) = out.written()[before..].try_into() {
            self.last.set([(seconds, text), first]);
        }
    }

    fn compose(&self, out: &mut TextBuf, seconds: i64) {
        let offset = match self.zone.find_local_time_type(seconds) {
            Ok(kind) => i64::from(kind.ut_offset()),
            Err(_) => 0,
        };
        let local = seconds + offset;
        let (year, month, day) = civil(local.div_euclid(86400));
        let clock = local.rem_euclid(86400);
        let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
        // The year has four digits, see above.
        let year = year.unsigned_abs();
        out.two_digits(year / 100);
        out.two_digits(year);
        let rest = [(b'-', month), (b'-', day), (b'T', hour), (b':', minute), (b':', second)];
        for (before, number) in rest {
            out.push(before);
            out.two_digits(number.unsigned_abs());
        }
        out.push(if offset < 0 { b'-' } else { b'+' });
        out.two_digits(offset.unsigned_abs() / 3600);
        out.two_digits(offset.unsigned_abs() / 60 % 60);
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Days are counted from 0000-03-01, so that leap days come last in their year and era.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(zone: &Zone, seconds: u64) -> String {
        let mut out = TextBuf::default();
        zone.write(&mut out, Moment { seconds, micros: 0 });
        String::from_utf8(out.written().to_vec()).unwrap()
    }

    #[test]
    fn dates() {
        let utc = Zone::utc();
        assert_eq!(show(&utc, 0), "1970-01-01T00:00:00+0000");
        assert_eq!(show(&utc, 951_782_400), "2000-02-29T00:00:00+0000");
        assert_eq!(show(&utc, 1_795_218_988), "2026-11-20T23:56:28+0000");
        assert_eq!(show(&utc, u64::MAX), "9999-12-31T23:59:59+0000");
    }

    #[test]
    fn zones() {
        let zone = Zone::from(TimeZone::from_posix_tz("CET-1CEST,M3.5.0,M10.5.0/3").unwrap());
        assert_eq!(show(&zone, 1_795_218_988), "2026-11-21T00:56:28+0100");
        assert_eq!(show(&zone, 1_795_218_988), "2026-11-21T00:56:28+0100");
        assert_eq!(show(&zone, 1_785_542_400), "2026-08-01T02:00:00+0200");
        let zone = Zone::from(TimeZone::from_posix_tz("NST3:30").unwrap());
        assert_eq!(show(&zone, 0), "1969-12-31T20:30:00-0330");
    }

    #[test]
    fn calendar_agrees_with_counting() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..200_000 {
            assert_eq!(civil(days), (year, month, day));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }
}
