//! Searches of simulated devices.

use super::*;
use proptest::prelude::*;

/// A device that loses what is above its capacity, and more.
#[derive(Clone, Debug)]
struct Device {
    capacity: f64,
    /// Share lost at every load.
    floor: f64,
    /// The capacity varies by up to this share from trial to trial.
    noise: f64,
    /// Share of trials in which something stalls it.
    stalls: f64,
    /// Share of its capacity that it has in its first two trials.
    cold: f64,
    /// Share of its capacity that it keeps after a loss until a trial without.
    after_loss: f64,
    state: u64,
    made: usize,
    lossy: bool,
}

impl Device {
    fn of(capacity: f64) -> Device {
        Device {
            capacity,
            floor: 0.0,
            noise: 0.0,
            stalls: 0.0,
            cold: 1.0,
            after_loss: 1.0,
            state: 1,
            made: 0,
            lossy: false,
        }
    }

    fn random(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) as f64 / (1u64 << 31) as f64
    }

    fn trial(&mut self, load: f64, duration: f64) -> Trial {
        self.made += 1;
        let varied = self.capacity * (1.0 + self.noise * (2.0 * self.random() - 1.0));
        let warm = if self.made <= 2 { self.cold } else { 1.0 };
        let sulking = if self.lossy { self.after_loss } else { 1.0 };
        let capacity = varied * warm * sulking;
        let stalled = if self.random() < self.stalls { 0.01 } else { 0.0 };
        let lost = (1.0 - capacity / load).max(0.0) + self.floor + stalled;
        self.lossy = lost > 0.0;
        Trial::new(load, duration, lost.min(1.0))
    }
}

fn search(search: &Search, device: &mut Device) -> (Vec<Found>, Vec<Trial>) {
    search.check().unwrap();
    let mut trials = Vec::new();
    loop {
        assert!(trials.len() < 1000, "{search:?} {device:?}");
        match search.next(&trials) {
            Step::Trial { load, duration } => {
                assert!(load >= search.least * 0.999_999 && load <= search.most * 1.000_001);
                trials.push(device.trial(load, duration));
            }
            Step::Done(found) => return (found, trials),
        }
    }
}

fn both(most: f64) -> Search {
    Search::new(1e3, most, vec![Goal::ndr(), Goal::pdr()])
}

#[test]
fn exact_device_is_found_exactly() {
    let (found, trials) = search(&both(10e6), &mut Device::of(1.234e6));
    let [ndr, pdr] = &found[..] else { panic!("{found:?}") };
    let (lower, upper) = (ndr.lower.unwrap(), ndr.upper.unwrap());
    assert!(lower <= 1.234e6 && 1.234e6 < upper, "{ndr:?}");
    assert!((upper - lower) / upper < 0.005_001, "{ndr:?}");
    assert_eq!(ndr.throughput, lower);
    // At a load 0.5 % above the capacity, 0.5 % is lost.
    assert!(pdr.lower.unwrap() <= 1.234e6 / 0.995 && pdr.upper.unwrap() > 1.234e6 / 0.995);
    assert!(trials.len() < 80, "{}", trials.len());
}

#[test]
fn limits_of_the_range_are_said() {
    let (found, _) = search(&both(1e6), &mut Device::of(5e6));
    assert_eq!((found[0].lower, found[0].upper), (Some(1e6), None));
    assert_eq!(found[0].throughput, 1e6);
    let (found, _) = search(&both(1e6), &mut Device::of(10.0));
    assert_eq!((found[0].lower, found[0].upper, found[0].throughput), (None, Some(1e3), 0.0));
}

#[test]
fn device_that_always_loses_a_little_has_a_pdr_only() {
    let mut device = Device { floor: 0.001, ..Device::of(1e6) };
    let (found, _) = search(&both(10e6), &mut device);
    assert_eq!((found[0].lower, found[0].upper), (None, Some(1e3)));
    // 0.4 % more may be lost above the capacity.
    let (lower, upper) = (found[1].lower.unwrap(), found[1].upper.unwrap());
    assert!(lower <= 1e6 / 0.996 && upper >= 1e6 / 0.996, "{found:?}");
}

#[test]
fn stalls_of_a_few_trials_do_not_lower_the_result() {
    let mut device = Device { stalls: 0.2, ..Device::of(2e6) };
    let (found, _) = search(&both(10e6), &mut device);
    assert!((found[0].lower.unwrap() / 2e6 - 1.0).abs() < 0.01, "{found:?}");
    // Stalls do lower it with one trial of 60 s without loss, as in RFC 2544.
    let mut device = Device { stalls: 0.5, state: 3, ..Device::of(2e6) };
    let (found, _) = search(&Search::new(1e3, 10e6, vec![Goal::throughput()]), &mut device);
    assert!(found[0].lower.is_none_or(|lower| lower < 1.9e6), "{found:?}");
}

#[test]
fn slow_start_and_hysteresis_do_not_spoil_a_search() {
    let mut device = Device { cold: 0.3, ..Device::of(2e6) };
    let (found, _) = search(&both(10e6), &mut device);
    assert!((found[0].lower.unwrap() / 2e6 - 1.0).abs() < 0.006, "{found:?}");
    // After a loss, 1 % of the capacity is missing for one trial.
    let mut device = Device { after_loss: 0.99, ..Device::of(2e6) };
    let (found, _) = search(&both(10e6), &mut device);
    assert!((found[0].lower.unwrap() / 2e6 - 1.0).abs() < 0.02, "{found:?}");
}

#[test]
fn what_cannot_be_searched_is_refused() {
    assert_eq!(Search::new(1.0, 2.0, vec![]).check(), Err(SearchError::NoGoal));
    for (least, most) in [(0.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
        let error = Search::new(least, most, vec![Goal::ndr()]).check().unwrap_err();
        assert!(matches!(error, SearchError::Range { .. }), "{error}");
    }
    let initial = Search { initial: 0.0, ..both(1e6) };
    assert_eq!(initial.check(), Err(SearchError::Initial(0.0)));
}

proptest! {
    /// A search of a noisy device ends, with bounds that hold by its own trials and lie within the
    /// noise of the capacity; the steps follow from the trials alone.
    #[test]
    fn searches_end_near_the_capacity(
        capacity in 2e3f64..9e6, noise in 0.0f64..0.05, stalls in 0.0f64..0.08, state: u64,
        width in 0.002f64..0.05,
    ) {
        let mut goals = vec![Goal::ndr(), Goal::pdr()];
        goals.iter_mut().for_each(|goal| goal.width = width);
        let searched = Search::new(1e3, 10e6, goals);
        let mut device = Device { noise, stalls, state, ..Device::of(capacity) };
        let (found, trials) = search(&searched, &mut device);
        let ladder = searched.ladder();
        for (goal, found) in searched.goals.iter().zip(&found) {
            let margin = noise + width + goal.loss_ratio + 0.001;
            if let Some(lower) = found.lower {
                prop_assert!(lower <= capacity * (1.0 + margin), "{found:?}");
            }
            if let Some(upper) = found.upper {
                prop_assert!(upper >= capacity * (1.0 - margin), "{found:?}");
            }
            for (bound, verdict) in [(found.lower, Verdict::Lower), (found.upper, Verdict::Upper)] {
                let Some(bound) = bound else { continue };
                let at: Vec<Trial> = trials[WARM_UP..]
                    .iter()
                    .filter(|trial| ladder.at_most(trial.load) == ladder.at_most(bound))
                    .copied()
                    .collect();
                prop_assert_eq!(Weighed::of(goal, &at).verdict(goal), verdict);
            }
        }
        prop_assert_eq!(searched.next(&trials), Step::Done(found));
    }
}
