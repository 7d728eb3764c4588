//! Time that the hypervisor took from this machine's processors.

/// Share of their time from which on a loss may be the machine's, in percent.
pub(super) const MUCH: f64 = 1.0;

/// Ticks of all processors up to a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// Ticks up to now; none where the kernel does not say.
    pub(super) fn now() -> Ticks {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Ticks::read(&text).unwrap_or(Ticks { all: 0, stolen: 0 })
    }

    /// Reads the first line of `/proc/stat`, whose eighth column is what was stolen (proc(5)).
    fn read(text: &str) -> Option<Ticks> {
        let words = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let columns: Vec<u64> = words.filter_map(|number| number.parse().ok()).collect();
        let all = columns.iter().take(8).fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
        Some(Ticks { all, stolen: *columns.get(7)? })
    }

    /// Share that was stolen since then, in percent.
    pub(super) fn stolen_percent(self) -> f64 {
        self.until(Ticks::now())
    }

    fn until(self, now: Ticks) -> f64 {
        let all = now.all.saturating_sub(self.all).max(1) as f64;
        100.0 * now.stolen.saturating_sub(self.stolen) as f64 / all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_processors() {
        let read = |text| Ticks::read(text).unwrap();
        let before = read("cpu  100 0 50 800 10 0 20 20 5 0\ncpu0 1 2 3 4 5 6 7 8");
        let after = read("cpu  150 0 50 840 10 0 20 30 5 0\n");
        assert_eq!(before.until(after), 10.0);
        assert_eq!(after.until(before), 0.0, "a counter that went back says nothing");
        for text in ["", "cpu 1 2", "intr 1 2 3 4 5 6 7 8", "cpu x"] {
            assert!(Ticks::read(text).is_none(), "{text}");
        }
    }
}
