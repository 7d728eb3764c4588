//! Rule sets on the main thread, and the interfaces that use them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_device::{DeviceError, Interfaces, SwIfIndex, interface};
use thalweg_graph::{Control, clock};
use thalweg_tables::snapshot;

use crate::rewrite::End;
use crate::rule::classifier::Classifier;
use crate::rule::key::Words;
use crate::rule::{Action, Names, Rule, RuleError};
use crate::spread::spread;
use crate::tables::{Compilation, Compiled, MAX_RULES, Port, Published, Step, Table, Tallies};
use crate::tracking;

/// Errors of rule commands.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// Invalid rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// Invalid rule in a file.
    #[error("line {line}: {error}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The error.
        error: RuleError,
    },
    /// The rule table is full.
    #[error("all {MAX_RULES} flow rules are in use; `flow del` frees some")]
    Full,
    /// Interface error.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A rule and its counter slot.
struct Placed {
    rule: Rule,
    slot: u32,
    /// Counters of the slot when the rule was added.
    before: [u64; 2],
    since: Instant,
}

/// All rule sets.
pub(crate) struct Sets {
    sets: BTreeMap<u32, Vec<Placed>>,
    compiled: BTreeMap<u32, Arc<Compilation>>,
    /// Sets attached to interfaces by command.
    interfaces: BTreeMap<SwIfIndex, u32>,
    /// The set in use by interface: attached ones, and those of bridge domains with the number of a
    /// set.
    following: BTreeMap<SwIfIndex, u32>,
    /// Interfaces with rules that translate.
    translating: BTreeSet<SwIfIndex>,
    /// An interface that is being deleted.
    going: Option<SwIfIndex>,
    writer: snapshot::Writer<Published>,
    tallies: Arc<Tallies>,
    /// Free counter slots, in the order of reuse; the one freed last is used last.
    free: std::collections::VecDeque<u32>,
    generation: u64,
}

impl Sets {
    pub(crate) fn new(writer: snapshot::Writer<Published>, tallies: Arc<Tallies>) -> Sets {
        Sets {
            sets: BTreeMap::new(),
            compiled: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            following: BTreeMap::new(),
            translating: BTreeSet::new(),
            going: None,
            writer,
            tallies,
            free: (0..MAX_RULES).collect(),
            generation: 0,
        }
    }

    /// Returns whether rules in use set connection labels.
    pub(crate) fn have_labels(&self) -> bool {
        self.following.values().any(|set| self.compiled.get(set).is_some_and(|set| set.labels))
    }

    /// Returns whether rules in use translate connections.
    pub(crate) fn translate(&self) -> bool {
        self.following.values().any(|set| self.compiled.get(set).is_some_and(|set| set.translates))
    }

    /// Returns whether no interface uses rules.
    pub(crate) fn is_idle(&self) -> bool {
        self.following.is_empty()
    }
}

/// A rule for display.
#[derive(Clone, Debug)]
pub struct RuleView {
    /// The rule.
    pub rule: Rule,
    /// Slot number, as shown in traces.
    pub number: u32,
    /// Packets matched.
    pub packets: u64,
    /// Bytes matched.
    pub bytes: u64,
    /// Time since it was added.
    pub age: Duration,
}

/// Interfaces by name or number.
struct InterfaceNames(Rc<RefCell<Interfaces>>);

impl Names for InterfaceNames {
    fn number(&self, name: &str) -> Option<SwIfIndex> {
        let all = self.0.borrow();
        let by_number = || name.parse().ok().filter(|n| all.get(*n).is_some());
        all.resolve(name).or_else(by_number)
    }
}

fn names(c: &Control) -> InterfaceNames {
    InterfaceNames(c.state::<Interfaces>())
}

/// Parses a rule and resolves the interfaces that it names.
///
/// # Errors
/// [`RuleError`].
pub(crate) fn parse(c: &Control, text: &str) -> Result<Rule, RuleError> {
    Rule::parse(text, &names(c))
}

/// Parses a match.
///
/// # Errors
/// [`RuleError`].
pub(crate) fn parse_match(c: &Control, text: &str) -> Result<Rule, RuleError> {
    Rule::parse_match(text, &names(c))
}

/// Parses a text with one rule per line. Blank lines and text after `#` are ignored.
///
/// # Errors
/// [`FlowError`] with the line number.
pub(crate) fn parse_lines(c: &Control, text: &str) -> Result<Vec<Rule>, FlowError> {
    let lines = text.lines().enumerate().map(|(n, line)| {
        let line = line.split_once('#').map_or(line, |(line, _)| line);
        (n + 1, line.trim())
    });
    let rules = lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(line, text)| parse(c, text).map_err(|error| FlowError::Line { line, error }));
    rules.collect()
}

/// Adds rules to a set. A rule with the same match, priority and table is replaced.
///
/// # Errors
/// [`FlowError::Full`]; no rule is added then.
pub fn add(c: &mut Control, set: u32, rules: Vec<Rule>) -> Result<(), FlowError> {
    {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        let Sets { sets, free, tallies, .. } = &mut *state;
        if rules.len() > free.len() {
            return Err(FlowError::Full);
        }
        let placed = sets.entry(set).or_default();
        type Key = (u8, u16, Words, Words);
        let key = |r: &Rule| -> Key { (r.table, r.priority, r.matches.value, r.matches.mask) };
        let mut known: HashMap<Key, usize> =
            placed.iter().enumerate().map(|(i, p)| (key(&p.rule), i)).collect();
        for rule in rules {
            let Some(slot) = free.pop_front() else { return Err(FlowError::Full) };
            tallies.make_ready(slot);
            let place = known.get(&key(&rule)).copied();
            let next = key(&rule);
            let new = Placed { rule, slot, before: tallies.get(slot), since: clock::now() };
            match place {
                Some(at) => {
                    free.push_back(placed[at].slot);
                    placed[at] = new;
                }
                None => {
                    known.insert(next, placed.len());
                    placed.push(new);
                }
            }
        }
    }
    follow(c, Some(set));
    Ok(())
}

/// Deletes the rules of a set: all, or those within a match; with `strict`, the one with exactly
/// this match, priority and table. Returns the number of rules deleted.
pub fn delete(
    c: &mut Control,
    set: u32,
    within: Option<&Rule>,
    strict: bool,
    table: bool,
) -> usize {
    let gone = {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        let Sets { sets, free, .. } = &mut *state;
        let Some(placed) = sets.get_mut(&set) else { return 0 };
        let before = placed.len();
        placed.retain(|p| {
            let goes = match within {
                None => true,
                Some(m) if strict => p.rule.replaces(m),
                Some(m) => {
                    p.rule.matches.is_within(&m.matches) && (!table || p.rule.table == m.table)
                }
            };
            if goes {
                free.push_back(p.slot);
            }
            !goes
        });
        let gone = before - placed.len();
        if placed.is_empty() {
            sets.remove(&set);
        }
        gone
    };
    follow(c, Some(set));
    gone
}

/// The rules of each set, highest priority first.
pub fn rules(c: &Control) -> BTreeMap<u32, Vec<RuleView>> {
    let state = c.state::<Sets>();
    let state = state.borrow();
    let view = |p: &Placed| {
        let [packets, bytes] = state.tallies.get(p.slot);
        RuleView {
            rule: p.rule.clone(),
            number: p.slot,
            packets: packets - p.before[0],
            bytes: bytes - p.before[1],
            age: clock::now().saturating_duration_since(p.since),
        }
    };
    let sorted = |placed: &Vec<Placed>| {
        let mut all: Vec<RuleView> = placed.iter().map(view).collect();
        all.sort_by_key(|v| (v.rule.table, u16::MAX - v.rule.priority));
        all
    };
    state.sets.iter().map(|(set, placed)| (*set, sorted(placed))).collect()
}

/// Counters of all rules of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetTotals {
    /// Number of rules.
    pub rules: usize,
    /// Packets matched.
    pub packets: u64,
    /// Bytes matched.
    pub bytes: u64,
}

/// Counters of each set since its rules were added.
pub fn totals(c: &Control) -> BTreeMap<u32, SetTotals> {
    let state = c.state::<Sets>();
    let state = state.borrow();
    let total = |placed: &Vec<Placed>| {
        placed.iter().fold(SetTotals::default(), |sum, p| {
            let [packets, bytes] = state.tallies.get(p.slot);
            SetTotals {
                rules: sum.rules + 1,
                packets: sum.packets + packets - p.before[0],
                bytes: sum.bytes + bytes - p.before[1],
            }
        })
    };
    state.sets.iter().map(|(set, placed)| (*set, total(placed))).collect()
}

/// Attaches a set to an interface, or detaches it.
///
/// # Errors
/// Fails if there is no such interface, or it carries no Ethernet frames.
pub fn attach(c: &mut Control, sw_if: SwIfIndex, set: Option<u32>) -> Result<(), FlowError> {
    let view = interface::view(c, sw_if)?;
    if !view.ethernet {
        let what = "flow rules (it carries no Ethernet frames)".into();
        let (name, kind) = (view.name, view.dev_type.into());
        return Err(DeviceError::Unsupported { name, kind, what }.into());
    }
    {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        match set {
            Some(set) => state.interfaces.insert(sw_if, set),
            None => state.interfaces.remove(&sw_if),
        };
    }
    follow(c, set);
    Ok(())
}

/// Sets attached to interfaces by command.
pub fn attached(c: &Control) -> BTreeMap<SwIfIndex, u32> {
    c.state::<Sets>().borrow().interfaces.clone()
}

/// Sets in use by interface: attached ones, and those of bridge domains with the number of a set.
pub fn following(c: &Control) -> BTreeMap<SwIfIndex, u32> {
    c.state::<Sets>().borrow().following.clone()
}

/// Handles the creation of an interface.
pub(crate) fn interface_created(c: &mut Control, new: SwIfIndex) {
    {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        state.going = state.going.filter(|gone| *gone != new);
        if state.sets.is_empty() {
            return;
        }
    }
    follow(c, None);
}

/// Handles the deletion of an interface.
pub(crate) fn interface_gone(c: &mut Control, gone: SwIfIndex) {
    {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        state.interfaces.remove(&gone);
        state.going = Some(gone);
        if state.sets.is_empty() && state.following.is_empty() {
            return;
        }
    }
    follow(c, None);
}

/// Handles a change of bridge domain ports.
pub(crate) fn ports_changed(c: &mut Control) {
    if !c.state::<Sets>().borrow().sets.is_empty() {
        follow(c, None);
    }
}

/// Recomputes which interfaces use which set, and publishes a changed set, or all.
fn follow(c: &mut Control, changed: Option<u32>) {
    let (before, now) = {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        let l2 = c.state::<thalweg_feat_l2::L2>();
        let l2 = l2.borrow();
        let domains = l2.bridges().list().filter(|(id, _)| state.sets.contains_key(id));
        let ports = domains.flat_map(|(id, domain)| domain.ports().map(move |(p, _)| (p, id)));
        let mut now: BTreeMap<SwIfIndex, u32> = ports.collect();
        now.extend(&state.interfaces);
        now.retain(|sw_if, _| Some(*sw_if) != state.going);
        (std::mem::replace(&mut state.following, now.clone()), now)
    };
    // An interface that starts to use a set may need it compiled.
    publish(c, changed.filter(|_| before == now));
    tracking::prepare(c);
    let ends = before.keys().filter(|sw_if| !now.contains_key(sw_if)).map(|sw_if| (*sw_if, false));
    let begins = now.keys().filter(|sw_if| !before.contains_key(sw_if)).map(|sw_if| (*sw_if, true));
    for (sw_if, on) in ends.chain(begins) {
        enable(c, ("device-input", "flow-rules"), sw_if, on);
    }
    let (gone, new) = {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        let compiled = &state.compiled;
        let translates = |set: &u32| compiled.get(set).is_some_and(|set| set.translates);
        let of_now = now.iter().filter(|(_, set)| translates(set)).map(|(sw_if, _)| *sw_if);
        let of_now: BTreeSet<SwIfIndex> = of_now.collect();
        let before = std::mem::replace(&mut state.translating, of_now.clone());
        let diff = |a: &BTreeSet<SwIfIndex>, b: &BTreeSet<SwIfIndex>| -> Vec<SwIfIndex> {
            a.difference(b).copied().collect()
        };
        (diff(&before, &of_now), diff(&of_now, &before))
    };
    for (some, on) in [(gone, false), (new, true)] {
        for sw_if in some {
            enable(c, ERRORS, sw_if, on);
        }
    }
}

/// Arc and node for the router's own ICMP errors about translated packets.
const ERRORS: (&str, &str) = ("ip4-icmp-error-reply", "flow-icmp-error");

fn enable(c: &mut Control, (arc, node): (&str, &str), sw_if: SwIfIndex, on: bool) {
    if let Err(e) = c.enable_feature(arc, node, sw_if, on) {
        tracing::error!("flow rules on {}: {e}", c.interface_name(sw_if));
    }
}

/// Publishes a changed set, or all sets if interfaces have changed.
fn publish(c: &mut Control, changed: Option<u32>) {
    let state = c.state::<Sets>();
    let mut state = state.borrow_mut();
    let state = &mut *state;
    let gone = state.going;
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let ports: HashMap<&str, Port> = all
        .iter()
        .filter(|v| Some(v.sw_if) != gone)
        .map(|v| (v.name.as_str(), Port::of(v)))
        .collect();
    let number = |name: &str| {
        let by_number = || {
            let n = name.parse().ok()?;
            all.get(n).filter(|_| Some(n) != gone).map(Port::of)
        };
        ports.get(name).copied().or_else(by_number)
    };
    let which: Vec<u32> = match changed {
        Some(set) => vec![set],
        None => state.sets.keys().chain(state.following.values()).copied().collect(),
    };
    for set in which {
        state.generation += 256;
        let placed = state.sets.get(&set).map_or(&[][..], Vec::as_slice);
        let compiled = compile(placed, state.generation, number);
        state.compiled.insert(set, Arc::new(compiled));
    }
    let used: Vec<u32> = state.sets.keys().chain(state.following.values()).copied().collect();
    state.compiled.retain(|set, _| used.contains(set));
    let mut published = Published::default();
    for view in all.iter().filter(|v| Some(v.sw_if) != gone) {
        let at = view.sw_if.index();
        if published.ports.len() <= at {
            published.ports.resize(at + 1, None);
            published.by_interface.resize(at + 1, None);
        }
        published.ports[at] = Some(Port::of(view));
        let set = state.following.get(&view.sw_if);
        published.by_interface[at] = set.and_then(|set| state.compiled.get(set).cloned());
    }
    for set in published.by_interface.iter().flatten() {
        published.spread = published.spread.max(set.spread);
        published.translated_zones.extend(&set.translated_zones);
    }
    published.translated_zones.sort_unstable();
    published.translated_zones.dedup();
    state.writer.publish(c.domain(), published);
}

fn compile(
    placed: &[Placed],
    generation: u64,
    number: impl Fn(&str) -> Option<Port>,
) -> Compilation {
    let mut set = Compilation { generation, ..Compilation::default() };
    let mut by_table: BTreeMap<u8, Vec<(Rule, u32)>> = BTreeMap::new();
    for p in placed {
        let mut rule = p.rule.clone();
        if let Some(name) = &rule.matches.in_port {
            // A rule that matches a deleted port matches nothing until the port exists again.
            let Some(Port { sw_if, .. }) = number(name) else { continue };
            crate::rule::key::IN_PORT.set(&mut rule.matches.value, sw_if.0.into());
        }
        by_table.entry(rule.table).or_default().push((rule, p.slot));
    }
    let mut zones: BTreeMap<u16, usize> = BTreeMap::new();
    let (mut labels, mut translated) = (false, Vec::new());
    for (table, rules) in by_table {
        let numbered = rules.iter().zip(0u32..).map(|((r, _), n)| (&r.matches, r.priority, n));
        let classifier = Classifier::new(numbered);
        let compiled = rules.iter().map(|(rule, slot)| {
            for action in &rule.actions {
                if let Action::Ct(ct) = action {
                    *zones.entry(ct.zone).or_default() += 1;
                    labels |= ct.label.is_some();
                    if ct.nat.as_ref().is_some_and(|nat| nat.range.is_some()) {
                        translated.push(ct.zone);
                    }
                }
            }
            let steps =
                rule.actions.iter().filter_map(|action| step(action, table, &number)).collect();
            Compiled { slot: *slot, steps }
        });
        let compiled = compiled.collect();
        let at = usize::from(table);
        set.tables.resize_with(set.tables.len().max(at + 1), || None);
        set.tables[at] = Some(Table { classifier, rules: compiled });
    }
    (set.tracks, set.labels, set.translates) = (!zones.is_empty(), labels, !translated.is_empty());
    set.translated_zones = translated;
    set.spread = spread(set.tables.iter().flatten().flat_map(|table| &table.rules));
    let most = zones.iter().max_by_key(|(_, count)| **count);
    set.zone = most.map_or(0, |(zone, _)| *zone);
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
        Action::SetPort(source, port) => Step::Set(*source, End::Port(*port)),
        Action::Tag(tag) => Step::Tag(*tag),
        Action::Drop | Action::Note(_) => return None,
    })
}
