//! The shortest list of steps that still fails.

use super::run::{Plan, run};
use std::time::{Duration, Instant};

/// Runs that a shorter list gets: not every one fails in which the fault is.
const TRIES: usize = 2;

/// Leaves out as many steps as possible, as long as a run fails and there is time. `tell` is called
/// with progress.
pub fn shrink(plan: &Plan, limit: Duration, tell: &mut dyn FnMut(&str)) -> Plan {
    let (begun, mut plan) = (Instant::now(), plan.clone());
    // Halves, then quarters, and so on, down to single steps.
    let mut size = plan.steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < plan.steps.len() {
            if begun.elapsed() >= limit {
                return plan;
            }
            let mut less = plan.clone();
            less.steps.drain(at..(at + size).min(plan.steps.len()));
            match (0..TRIES).any(|_| run(&less, &mut |_| {}).is_err()) {
                true => {
                    plan = less;
                    tell(&format!("{} steps still fail", plan.steps.len()));
                }
                false => at += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    plan
}
