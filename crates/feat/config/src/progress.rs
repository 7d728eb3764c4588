//! Words of an application that takes long.

use std::time::{Duration, Instant};

/// Time without a word after which an application says what it is doing. Short ones say nothing.
const FIRST: Duration = Duration::from_millis(500);

/// Time between two words.
const EACH: Duration = Duration::from_secs(1);

/// Time of the next progress line of an application, and its last word.
pub(crate) struct Words {
    at: Instant,
    last: String,
}

impl Default for Words {
    fn default() -> Words {
        Words { at: Instant::now() + FIRST, last: String::new() }
    }
}

impl Words {
    /// Returns a line about `doing`, if it is time for a word and there is a new one.
    pub(crate) fn word(&mut self, now: Instant, doing: impl FnOnce() -> String) -> Option<String> {
        if now < self.at {
            return None;
        }
        self.at = now + EACH;
        let doing = doing();
        let is_new = doing != self.last;
        self.last = doing;
        is_new.then(|| format!("... {}", self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_long_says_what_it_does_within_a_second() {
        let (mut words, begin) = (Words::default(), Instant::now());
        let mut at = |millis: u64, doing: &str| {
            words.word(begin + Duration::from_millis(millis), || doing.to_owned())
        };
        assert_eq!(at(400, "reading"), None);
        assert_eq!(at(900, "reading").as_deref(), Some("... reading"));
        assert_eq!(at(1000, "planning"), None);
        assert_eq!(at(2000, "planning").as_deref(), Some("... planning"));
        assert_eq!(at(4000, "planning"), None, "nothing new");
        assert_eq!(at(6000, "1 of 2 commands").as_deref(), Some("... 1 of 2 commands"));
    }
}
