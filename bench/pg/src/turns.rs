//! Settings measured in turn, so that the machine's drift meets them all.

use std::time::Duration;

use thalweg_bench_common::{Args, Series, Spread};

use crate::{NodeRow, Router, Samples, Window};

/// Number and length of turns.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds, in each of which each setting has its turn.
    pub rounds: usize,
    /// Length of a turn's measured part.
    pub window: Duration,
    /// Pause before it.
    pub warm_up: Duration,
    /// Pairs of short turns, where two settings differ by little: see [`crate::pairs`].
    pub pairs: usize,
}

impl Plan {
    /// Plans as the command line says.
    pub fn of(args: &Args) -> Plan {
        let (rounds, window, pairs) = if args.full { (9, 1000, 1200) } else { (5, 250, 300) };
        let warm_up = Duration::from_millis(60);
        Plan { rounds, window: Duration::from_millis(window), warm_up, pairs }
    }
}

/// Measurements of one setting.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// Million packets sent per second.
    pub mpps: Series,
    /// Clocks per packet of all nodes but the generator's input.
    pub clocks: Series,
    /// Clocks per packet of the whole loop, the generator's input included.
    pub loops: Series,
    /// Each round's window.
    pub windows: Vec<Window>,
}

impl Turns {
    fn push(&mut self, w: Window) {
        self.mpps.push(w.tx_pps / 1e6);
        self.clocks.push(w.clocks_without_input());
        self.loops.push(w.loop_clocks);
        self.windows.push(w);
    }

    /// The spread of something over the rounds.
    pub fn spread_of(&self, f: impl Fn(&Window) -> f64) -> Spread {
        Spread::of(&self.windows.iter().map(f).collect::<Vec<_>>())
    }

    /// Each node's figures in the middle of the rounds.
    pub fn nodes(&self) -> Vec<(String, NodeRow)> {
        let mut names: Vec<&String> = self.windows.iter().flat_map(|w| w.nodes.keys()).collect();
        names.sort();
        names.dedup();
        let row = |name: &str, w: &Window| w.nodes.get(name).copied().unwrap_or_default();
        let middle = |name: &String| NodeRow {
            packets: self.windows.iter().map(|w| row(name, w).packets).sum(),
            clocks: self.spread_of(|w| row(name, w).clocks).median,
            per_call: self.spread_of(|w| row(name, w).per_call).median,
        };
        names.into_iter().map(|name| (name.clone(), middle(name))).collect()
    }

    /// Samples in all rounds together.
    pub fn samples(&self) -> Samples {
        self.windows.iter().fold(Samples::default(), |all, w| Samples {
            taken: all.taken + w.samples.taken,
            lost: all.lost + w.samples.lost,
            sent: all.sent + w.samples.sent,
        })
    }
}

/// Measures settings in turn. `set` makes a setting's the router's, whatever was before.
pub fn in_turn<S>(
    plan: Plan,
    title: &str,
    r: &mut Router,
    settings: &[S],
    mut set: impl FnMut(&mut Router, &S),
) -> Vec<Turns> {
    let mut all: Vec<Turns> = settings.iter().map(|_| Turns::default()).collect();
    for round in 0..plan.rounds {
        eprintln!("{title}: round {} of {}", round + 1, plan.rounds);
        for (setting, turns) in settings.iter().zip(&mut all) {
            set(r, setting);
            r.wait(plan.warm_up);
            turns.push(r.measure(plan.window));
        }
    }
    all
}

/// Lets only this stream run.
pub fn only_stream(r: &mut Router, name: &str) {
    r.cli(&format!("packet-generator disable-stream\npacket-generator enable-stream {name}"));
}
