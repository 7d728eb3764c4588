//! The ways that packets can take through a set's rules, as far as they decide which worker tracks
//! them.

use std::collections::BTreeSet;

use crate::rule::set::Field;
use crate::tables::Step;

/// Properties that hold for some path through the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paths {
    /// A packet's addresses or ports can be changed before it is first tracked.
    pub(crate) changed_first: bool,
    /// Its tags can.
    pub(crate) tagged_first: bool,
    /// A packet can be tracked again after they were changed: its connections have several tuples.
    pub(crate) several_tuples: bool,
}

/// A packet's history at a place in the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct So {
    /// The last zone in which it was tracked.
    zone: Option<u16>,
    /// The packet may have been translated in that zone.
    translated: bool,
    /// Its addresses or ports were set since.
    set: bool,
}

/// A step, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Move {
    Set,
    Tag,
    Resubmit(u8),
    Ct { zone: u16, nat: bool, table: Option<u8> },
}

/// The facts about a rule's steps that decide its path.
pub(crate) fn moves(steps: &[Step]) -> Vec<Move> {
    let of = |step: &Step| match step {
        Step::Set(..) | Step::SetSome6(..) => Some(Move::Set),
        Step::SetBits(field, ..) => match field {
            Field::Source | Field::Destination | Field::SourcePort | Field::DestinationPort => {
                Some(Move::Set)
            }
            Field::VlanId | Field::VlanPriority => Some(Move::Tag),
            _ => None,
        },
        Step::Tag(_) => Some(Move::Tag),
        Step::Resubmit(table, _) => Some(Move::Resubmit(*table)),
        Step::Ct(ct) => Some(Move::Ct { zone: ct.zone, nat: ct.nat.is_some(), table: ct.table }),
        _ => None,
    };
    steps.iter().filter_map(of).collect()
}

/// A table: the different lists of moves of its rules, what packets come with, and what they can
/// leave with, by what they came with.
#[derive(Debug, Default)]
struct Place {
    moves: BTreeSet<Vec<Move>>,
    enter: BTreeSet<So>,
    leave: BTreeSet<(So, So)>,
}

/// Maximum number of passes. Each adds something to a table's sets, which only very tangled rules
/// need more than a few of; those are taken for the worst.
const PASSES: usize = 64;

impl Paths {
    /// Paths through the rules of tables: of each kind of rules its table and moves.
    pub(crate) fn of<'a>(kinds: impl Iterator<Item = (u8, &'a Vec<Move>)>) -> Paths {
        let mut places: Vec<Place> = Vec::new();
        for (table, moves) in kinds {
            let at = usize::from(table);
            places.resize_with(places.len().max(at + 1), Place::default);
            places[at].moves.insert(moves.clone());
        }
        let mut paths = Paths::default();
        enter(&mut places, 0, So::default());
        for _ in 0..PASSES {
            let before: usize = places.iter().map(|p| p.enter.len() + p.leave.len()).sum();
            for at in 0..places.len() {
                paths.pass(&mut places, at);
            }
            if before == places.iter().map(|p| p.enter.len() + p.leave.len()).sum::<usize>() {
                return paths;
            }
        }
        Paths { several_tuples: true, ..paths }
    }

    /// Follows all rules of a table.
    fn pass(&mut self, places: &mut [Place], at: usize) {
        let (all, came) = (places[at].moves.clone(), places[at].enter.clone());
        for from in came {
            for moves in &all {
                let mut so = BTreeSet::from([from]);
                for step in moves {
                    so = so.into_iter().flat_map(|so| self.step(places, *step, so)).collect();
                }
                places[at].leave.extend(so.into_iter().map(|to| (from, to)));
            }
        }
    }

    /// Returns the histories that a packet can have after a step.
    fn step(&mut self, places: &mut [Place], step: Move, so: So) -> BTreeSet<So> {
        let through = |places: &mut [Place], table: u8, so: So| {
            enter(places, table, so);
            let left = places.get(usize::from(table)).map(|place| &place.leave);
            let left = left.into_iter().flatten().filter(|(from, _)| *from == so);
            left.map(|(_, to)| *to).chain([so]).collect()
        };
        match step {
            Move::Set => BTreeSet::from([So { set: true, ..so }]),
            Move::Tag => {
                self.tagged_first |= so.zone.is_none();
                BTreeSet::from([so])
            }
            Move::Resubmit(table) => through(places, table, so),
            Move::Ct { zone, nat, table } => {
                let same = so.zone == Some(zone);
                match so.zone {
                    None => self.changed_first |= so.set,
                    Some(_) => self.several_tuples |= so.set || (so.translated && !same),
                }
                let so = So { zone: Some(zone), translated: nat || so.translated, set: false };
                match table {
                    Some(table) => through(places, table, so),
                    None => BTreeSet::from([so]),
                }
            }
        }
    }
}

fn enter(places: &mut [Place], table: u8, so: So) {
    if let Some(place) = places.get_mut(usize::from(table)) {
        place.enter.insert(so);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Names, Rule};
    use thalweg_device::SwIfIndex;

    struct NoNames;

    impl Names for NoNames {
        fn number(&self, _name: &str) -> Option<SwIfIndex> {
            None
        }
    }

    /// Returns three flags: tuples change first, tags do, and there are several tuples.
    fn of(rules: &[&str]) -> [bool; 3] {
        let kind = |text: &&str| {
            let rule = Rule::parse(text, &NoNames).unwrap();
            let step = |action| crate::compile::step(action, rule.table, &|_: &str| None);
            let steps: Vec<Step> = rule.actions.iter().filter_map(step).collect();
            (rule.table, moves(&steps))
        };
        let kinds: Vec<(u8, Vec<Move>)> = rules.iter().map(kind).collect();
        let paths = Paths::of(kinds.iter().map(|(table, moves)| (*table, moves)));
        [paths.changed_first, paths.tagged_first, paths.several_tuples]
    }

    #[test]
    fn changes_before_and_between_are_told_apart() {
        for (rules, want) in [
            (&["ip,actions=ct(commit),mod_nw_dst:10.0.0.1,normal"][..], [false, false, false]),
            (&["ip,actions=mod_nw_dst:10.0.0.1,ct(commit),normal"], [true, false, false]),
            // One rule is in a table that is not reached, one in a table that another rule leads
            // to.
            (
                &["ip,actions=ct(commit)", "table=1,ip,actions=mod_nw_dst:10.0.0.1,ct(commit)"],
                [false; 3],
            ),
            (
                &["ip,actions=resubmit(,2),ct(commit)", "table=2,ip,actions=mod_nw_dst:10.0.0.1"],
                [true, false, false],
            ),
            (
                &["ip,actions=ct(table=1)", "table=1,ip,actions=mod_nw_dst:10.0.0.1,ct(commit)"],
                [false, false, true],
            ),
            // The rest of a rule, after another table.
            (
                &["ip,actions=ct(table=1),ct(commit)", "table=1,udp,actions=mod_tp_dst:7"],
                [false, false, true],
            ),
            (
                &["ip,actions=ct(table=1,nat)", "table=1,ip,actions=ct(commit,nat(src=10.0.0.1))"],
                [false; 3],
            ),
            (
                &["ip,actions=ct(table=1,nat)", "table=1,ip,actions=ct(commit,zone=2)"],
                [false, false, true],
            ),
            (&["tcp,actions=ct(zone=1,nat)", "udp,actions=ct(zone=2,nat)"], [false; 3]),
            (
                &["actions=pop_vlan,resubmit(,1)", "table=1,ip,actions=ct(commit)"],
                [false, true, false],
            ),
            // A loop ends.
            (
                &["ip,actions=resubmit(,1)", "table=1,ip,actions=mod_nw_src:10.0.0.1,resubmit(,0)"],
                [false; 3],
            ),
        ] {
            assert_eq!(of(rules), want, "{rules:?}");
        }
    }
}
