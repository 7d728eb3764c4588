//! The search says what PyPI's MLRsearch 1.2.1 (FD.io CSIT) says: of random trials, and of
//! simulated devices. `oracle/make.py` has written its answers down.

#![allow(clippy::unwrap_used, clippy::panic)]

use thalweg_load::search::mlr::{Search, Step};
use thalweg_load::search::{Goal, Trial, Verdict, Weighed};

const ORACLE: &str = include_str!("oracle/mlrsearch.txt");

/// The parts of the lines of a kind.
fn lines(kind: &str) -> impl Iterator<Item = Vec<&str>> {
    let ours = ORACLE.lines().filter_map(move |line| line.strip_prefix(kind)?.strip_prefix(' '));
    ours.map(|line| line.split('|').map(str::trim).collect())
}

fn numbers(part: &str) -> Vec<f64> {
    part.split([' ', ',']).filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect()
}

#[test]
fn trials_are_weighed_alike() {
    let mut verdicts = [0; 3];
    for line in lines("c") {
        let [goal, trials, says] = line[..] else { panic!("{line:?}") };
        let [loss_ratio, exceed_ratio, trial, sum] = numbers(goal)[..] else { panic!("{goal}") };
        let goal = Goal { loss_ratio, exceed_ratio, trial, sum, ..Goal::ndr() };
        let all = numbers(trials);
        let trials: Vec<Trial> = all
            .as_chunks::<3>()
            .0
            .iter()
            .map(|[duration, effective, loss]| Trial {
                effective: *effective,
                ..Trial::new(1.0, *duration, *loss)
            })
            .collect();
        let [optimistic, pessimistic, loss] = numbers(says)[..] else { panic!("{says}") };
        let wanted = match (optimistic == 1.0, pessimistic == 1.0) {
            (true, true) => Verdict::Lower,
            (false, false) => Verdict::Upper,
            _ => Verdict::Undecided,
        };
        assert_eq!(Weighed::of(&goal, &trials).verdict(&goal), wanted, "{line:?}");
        verdicts[wanted as usize] += 1;
        // Throughput has no meaning at other loads.
        if wanted == Verdict::Lower {
            let throughput = goal.conditional_throughput(1.0, &trials);
            assert!((throughput - (1.0 - loss)).abs() < 1e-9, "{throughput} {line:?}");
        }
    }
    assert!(verdicts.iter().all(|count| *count > 20), "{verdicts:?}");
}

#[test]
fn devices_are_searched_alike() {
    let (mut ours, mut theirs) = (0.0, 0.0);
    for line in lines("s") {
        let [device, ndr, pdr, trials] = line[..] else { panic!("{line:?}") };
        let [capacity, floor, slope, least, most] = numbers(device)[..] else { panic!("{device}") };
        let search = Search::new(least, most, vec![Goal::ndr(), Goal::pdr()]);
        search.check().unwrap();
        let mut made = Vec::new();
        let found = loop {
            assert!(made.len() < 1000, "{line:?}");
            match search.next(&made) {
                Step::Done(found) => break found,
                Step::Trial { load, duration } => {
                    let over = (1.0 - capacity / load).max(0.0);
                    made.push(Trial::new(load, duration, (floor + slope * over).min(1.0)));
                }
            }
        };
        ours += made.len() as f64;
        theirs += numbers(trials)[0];
        for (found, part) in found.iter().zip([ndr, pdr]) {
            let words: Vec<&str> = part.split(' ').collect();
            let bounds = [found.lower, found.upper, found.lower.map(|_| found.throughput)];
            for (bound, word) in bounds.into_iter().zip(words) {
                let wanted: Option<f64> = word.parse().ok();
                // Loads are rounded in another way: both bounds of both enclose the same rate, each
                // within the goals' width of half a percent.
                let same = match (bound, wanted) {
                    (Some(bound), Some(wanted)) => (bound / wanted - 1.0).abs() < 0.0101,
                    (None, None) => true,
                    _ => false,
                };
                assert!(same, "{bound:?} {wanted:?}: {line:?}");
            }
        }
    }
    assert!(ours <= 1.5 * theirs, "{ours} trials, and MLRsearch made {theirs}");
}
