//! The clock of sessions.

use std::sync::OnceLock;
use thalweg_graph::clock;
use thalweg_tables::flow::Millis;

/// Milliseconds per tick, in units of 2⁻⁶⁴.
fn fraction() -> u64 {
    static FRACTION: OnceLock<u64> = OnceLock::new();
    *FRACTION.get_or_init(|| (1000.0 / clock::hz() * 2f64.powi(64)) as u64)
}

/// Converts ticks to milliseconds, which wrap.
#[inline]
pub(crate) fn millis(ticks: u64) -> Millis {
    ((u128::from(ticks) * u128::from(fraction())) >> 64) as Millis
}

/// Converts milliseconds to ticks.
pub(crate) fn ticks(millis: Millis) -> u64 {
    clock::ticks_in(std::time::Duration::from_millis(u64::from(millis)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn milliseconds_pass() {
        thalweg_graph::clock::init();
        let at = thalweg_graph::clock::ticks();
        let passed = super::millis(at + super::ticks(5000)).wrapping_sub(super::millis(at));
        assert!((4999..=5001).contains(&passed), "{passed}");
    }
}
