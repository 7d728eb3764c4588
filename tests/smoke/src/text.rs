//! Small readers of text.

use std::thread;
use std::time::{Duration, Instant};

/// Bytes as hexadecimal digits, for messages.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A span of time that is measured over, as opposed to waited for.
///
/// Scenarios wait for events; only a rate, such as processor time of an idle process, needs a
/// span.
pub struct Delay;

impl Delay {
    /// Lets `span` pass.
    pub fn measure_over(span: Duration) {
        let end = Instant::now() + span;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            thread::park_timeout(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_delays() {
        assert_eq!(hex(&[0, 0xab]), "00ab");
        let began = Instant::now();
        Delay::measure_over(Duration::from_millis(2));
        assert!(began.elapsed() >= Duration::from_millis(2));
    }
}
