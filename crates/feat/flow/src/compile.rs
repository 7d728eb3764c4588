//! Compiling the rules of a set, all of them or those that have changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rewrite::End;
use crate::rule::classifier::Classifier;
use crate::rule::key::{DL_TYPE, ether};
use crate::rule::{Action, Match, Rule};
use crate::sets::{Changes, Placed, RuleSet};
use crate::spread::{RuleKind, spread};
use crate::tables::{Compilation, Compiled, Port, Step, Table};

/// The workers' part of a rule.
pub(crate) struct Live {
    /// Its match, with the number of the port.
    matches: Match,
    traits: Traits,
}

/// A rule's share in the facts about its set.
pub(crate) struct Traits {
    kind: RuleKind,
    is_wide: bool,
    asks_original: bool,
    tracks_ipv6: bool,
    sets_label: bool,
    /// The zones in which it tracks, and those in which it translates.
    zones: Vec<u16>,
    translated: Vec<u16>,
}

/// Number of a set's rules that have something.
#[derive(Default)]
pub(crate) struct Sum {
    kinds: BTreeMap<RuleKind, usize>,
    wide: usize,
    originals: usize,
    ipv6: usize,
    labels: usize,
    zones: BTreeMap<u16, usize>,
    translated: BTreeMap<u16, usize>,
}

impl Traits {
    fn of(rule: &Rule, matches: &Match, steps: &[Step]) -> Traits {
        let kind = matches.exact(DL_TYPE);
        let mut traits = Traits {
            kind: RuleKind::of(rule.table, steps),
            is_wide: matches.is_wide(),
            asks_original: matches.asks_original(),
            tracks_ipv6: false,
            sets_label: false,
            zones: Vec::new(),
            translated: Vec::new(),
        };
        for action in &rule.actions {
            // Their change shows in the wide words.
            traits.is_wide |= matches!(action, Action::SetAddress6(..));
            if let Action::Ct(ct) = action {
                traits.tracks_ipv6 |= kind == Some(ether::IPV6.into());
                traits.zones.push(ct.zone);
                traits.sets_label |= ct.label.is_some();
                if ct.nat.as_ref().is_some_and(|nat| nat.range.is_some()) {
                    traits.translated.push(ct.zone);
                }
            }
        }
        traits
    }
}

impl Sum {
    /// Counts a rule, or one less; returns whether there is another kind of rules, or one less.
    fn count(&mut self, traits: &Traits, is_added: bool) -> bool {
        fn one<K: Ord + Clone>(all: &mut BTreeMap<K, usize>, key: &K, is_added: bool) -> bool {
            let had = all.get(key).copied().unwrap_or(0);
            let has = if is_added { had + 1 } else { had.saturating_sub(1) };
            match has {
                0 => drop(all.remove(key)),
                _ => drop(all.insert(key.clone(), has)),
            }
            (had == 0) != (has == 0)
        }
        for (sum, has) in [
            (&mut self.wide, traits.is_wide),
            (&mut self.originals, traits.asks_original),
            (&mut self.ipv6, traits.tracks_ipv6),
            (&mut self.labels, traits.sets_label),
        ] {
            match is_added {
                true => *sum += usize::from(has),
                false => *sum = sum.saturating_sub(usize::from(has)),
            }
        }
        traits.zones.iter().for_each(|zone| _ = one(&mut self.zones, zone, is_added));
        traits.translated.iter().for_each(|zone| _ = one(&mut self.translated, zone, is_added));
        one(&mut self.kinds, &traits.kind, is_added)
    }

    /// Notes in a compilation what is known of its rules.
    fn note(&self, set: &mut Compilation, has_other_kinds: bool) {
        set.wide = self.wide > 0;
        set.originals = self.originals > 0;
        set.tracks_ipv6 = self.ipv6 > 0;
        set.labels = self.labels > 0;
        set.tracks = !self.zones.is_empty();
        set.translates = !self.translated.is_empty();
        set.translated_zones = self.translated.keys().copied().collect();
        let most = self.zones.iter().max_by_key(|(_, count)| **count);
        set.zone = most.map_or(0, |(zone, _)| *zone);
        if has_other_kinds {
            (set.spread, set.changed_first) = spread(self.kinds.keys());
        }
    }
}

/// A rule in the form that workers read; `None` while the port that it matches does not exist: it
/// matches nothing then.
fn enliven(placed: &Placed, number: &impl Fn(&str) -> Option<Port>) -> Option<(Live, Compiled)> {
    let rule = &placed.rule;
    let mut matches = rule.matches.clone();
    if let Some(name) = &matches.in_port {
        let Port { sw_if, .. } = number(name)?;
        matches.set_port(sw_if);
    }
    let steps = rule.actions.iter().filter_map(|action| step(action, rule.table, number));
    let steps: Vec<Step> = steps.collect();
    let traits = Traits::of(rule, &matches, &steps);
    Some((Live { matches, traits }, Compiled { slot: placed.slot, steps }))
}

/// The table of a number, made if there is none.
fn table_of(set: &mut Compilation, number: u8) -> &mut Table {
    let at = usize::from(number);
    set.tables.resize_with(set.tables.len().max(at + 1), || None);
    let empty = || Arc::new(Table { classifier: Classifier::new([]), ..Table::default() });
    Arc::make_mut(set.tables[at].get_or_insert_with(empty))
}

/// Changes the compilation of a set by some rules, in about the same time however many it has.
pub(crate) fn change(
    rules: &mut RuleSet,
    set: &mut Compilation,
    changes: &Changes,
    number: impl Fn(&str) -> Option<Port>,
) {
    let mut has_other_kinds = false;
    for (rule, slot, live) in &changes.gone {
        has_other_kinds |= rules.sum.count(&live.traits, false);
        let table = table_of(set, rule.table);
        table.classifier.remove(&live.matches, *slot);
        table.rules.set(*slot, None);
    }
    for at in &changes.come {
        let Some(placed) = rules.placed.get_mut(at) else { continue };
        let Some((live, compiled)) = enliven(placed, &number) else { continue };
        has_other_kinds |= rules.sum.count(&live.traits, true);
        let table = table_of(set, placed.rule.table);
        table.classifier.add(&live.matches, placed.rule.priority, placed.slot);
        table.rules.set(placed.slot, Some(Arc::new(compiled)));
        placed.live = Some(live);
    }
    for table in &mut set.tables {
        if table.as_ref().is_some_and(|table| table.classifier.is_empty()) {
            *table = None;
        }
    }
    rules.sum.note(set, has_other_kinds);
}

/// Compiles all rules of a set.
pub(crate) fn compile(
    rules: &mut RuleSet,
    generation: u64,
    number: impl Fn(&str) -> Option<Port>,
) -> Compilation {
    let mut set = Compilation { generation, ..Compilation::default() };
    let mut by_table: BTreeMap<u8, Vec<&Placed>> = BTreeMap::new();
    rules.sum = Sum::default();
    for placed in rules.placed.values_mut() {
        placed.live = None;
        let Some((live, compiled)) = enliven(placed, &number) else { continue };
        rules.sum.count(&live.traits, true);
        let table = table_of(&mut set, placed.rule.table);
        table.rules.set(placed.slot, Some(Arc::new(compiled)));
        placed.live = Some(live);
        by_table.entry(placed.rule.table).or_default().push(placed);
    }
    for (table, rules) in by_table {
        let numbered = rules.iter().filter_map(|placed| {
            let matches = &placed.live.as_ref()?.matches;
            Some((matches, placed.rule.priority, placed.slot))
        });
        table_of(&mut set, table).classifier = Classifier::new(numbered);
    }
    rules.sum.note(&mut set, true);
    set
}

pub(crate) fn step(
    action: &Action,
    table: u8,
    number: &impl Fn(&str) -> Option<Port>,
) -> Option<Step> {
    Some(match action {
        Action::Normal => Step::Normal,
        Action::Output(name) => Step::Output(number(name)?),
        Action::InPort => Step::InPort,
        Action::Resubmit(port, other) => {
            let port = match port {
                Some(name) => Some(number(name)?.sw_if),
                None => None,
            };
            Step::Resubmit(other.unwrap_or(table), port)
        }
        Action::Ct(ct) => Step::Ct(ct.clone()),
        Action::CtClear => Step::CtClear,
        Action::SetSource(mac) => Step::SetSource(mac.0),
        Action::SetDestination(mac) => Step::SetDestination(mac.0),
        Action::SetTos(tos) => Step::SetTos(*tos),
        Action::SetEcn(ecn) => Step::SetEcn(*ecn),
        Action::DecTtl => Step::DecTtl,
        Action::SetBits(bits) => Step::SetBits(bits.field, bits.value, bits.mask),
        Action::SetTtl(ttl) => Step::SetTtl(*ttl),
        Action::SetAddress(source, to) => Step::Set(*source, End::Address(to.to_bits())),
        Action::SetAddress6(source, to, mask) => match mask.to_bits() {
            u128::MAX => Step::Set(*source, End::Address6(to.to_bits())),
            mask => Step::SetSome6(*source, to.to_bits(), mask),
        },
        Action::SetPort(source, port) => Step::Set(*source, End::Port(*port)),
        Action::Tag(tag) => Step::Tag(*tag),
        Action::Drop | Action::Note(_) => return None,
    })
}
