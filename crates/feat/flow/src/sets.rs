//! Rule sets on the main thread, and the interfaces that use them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_device::{DeviceError, InterfaceView, Interfaces, SwIfIndex, interface};
use thalweg_feat_l2::{Bridges, Domain};
use thalweg_graph::{Control, clock};
use thalweg_tables::snapshot;

use crate::compile::{Live, Sum, change, compile};
use crate::in_use::{InUse, Side};
use crate::nodes::flow_rules;
use crate::rule::key::Words;
use crate::rule::{Action, AnyName, Names, Rule, RuleError};
use crate::tables::{Compilation, MAX_RULES, Port, Published, Tallies};
use crate::tracking::{self, Tracking};

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
    /// Rules track connections, for which there is no memory.
    #[error(transparent)]
    NoRoom(#[from] tracking::NoRoom),
    /// Interface error.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A rule and its counter slot.
pub(crate) struct Placed {
    pub(crate) rule: Rule,
    pub(crate) slot: u32,
    /// Counters of the slot when the rule was added.
    before: [u64; 2],
    since: Instant,
    /// The workers' part of it, if its set is in use.
    pub(crate) live: Option<Live>,
}

/// A set of rules.
#[derive(Default)]
pub(crate) struct RuleSet {
    /// Sets by number, in the order in which they were added.
    pub(crate) placed: BTreeMap<u64, Placed>,
    /// Their numbers by all that distinguishes them, with the port as they name it.
    known: HashMap<Key, Vec<u64>>,
    /// Sum over the rules that workers have.
    pub(crate) sum: Sum,
}

/// The key of a rule within its set: table, priority, match, the word for the port.
type Key = (u8, u16, Words, Words, Option<String>);

fn key(rule: &Rule, port: Option<String>) -> Key {
    (rule.table, rule.priority, rule.matches.value, rule.matches.mask, port)
}

/// The word by which a rule names its port; a number as it is usually written.
fn word(rule: &Rule) -> Option<String> {
    let name = rule.matches.in_port.as_deref()?;
    Some(name.parse::<u32>().map_or_else(|_| name.to_owned(), |number| number.to_string()))
}

/// All words by which rules may name an interface.
fn words(view: &InterfaceView) -> [String; 4] {
    let device = view.name.strip_prefix("host-").unwrap_or_default();
    [view.name.clone(), device.to_owned(), view.tag.clone(), view.sw_if.to_string()]
}

/// Changes of a set's rules.
#[derive(Default)]
pub(crate) struct Changes {
    /// Rules that workers have and must lose.
    pub(crate) gone: Vec<(Rule, u32, Live)>,
    /// Numbers of the new ones.
    pub(crate) come: Vec<u64>,
}

impl RuleSet {
    /// The number of the rule that another one replaces. Others differ in the port alone, one for
    /// each interface: they are not gone through.
    fn same(&self, rule: &Rule, ports: &mut Ports) -> Option<u64> {
        let port = ports.of(rule);
        let mut named = vec![word(rule)];
        if let Some(Named::Present(sw_if)) = port {
            named.extend(ports.words(sw_if).into_iter().map(Some));
        }
        let found = named.into_iter().filter_map(|word| self.known.get(&key(rule, word)));
        let mut same = found.flatten().filter(|number| {
            self.placed.get(number).is_some_and(|placed| ports.of(&placed.rule) == port)
        });
        same.next().copied()
    }

    /// Adds a rule, in place of the one that it replaces; returns its number, and that one.
    fn add(&mut self, new: Placed, ports: &mut Ports) -> (u64, Option<Placed>) {
        let number = match self.same(&new.rule, ports) {
            Some(number) => number,
            None => {
                let number = self.placed.last_key_value().map_or(0, |(last, _)| last + 1);
                self.known.entry(key(&new.rule, word(&new.rule))).or_default().push(number);
                number
            }
        };
        (number, self.placed.insert(number, new))
    }

    fn remove(&mut self, number: u64) -> Option<Placed> {
        let old = self.placed.remove(&number)?;
        let key = key(&old.rule, word(&old.rule));
        if let Some(numbers) = self.known.get_mut(&key) {
            numbers.retain(|n| *n != number);
            if numbers.is_empty() {
                self.known.remove(&key);
            }
        }
        Some(old)
    }
}

/// All rule sets.
pub(crate) struct Sets {
    sets: BTreeMap<u32, RuleSet>,
    /// Bridge domains at the last look.
    followed: BTreeSet<u32>,
    /// Sets attached to interfaces by command.
    interfaces: BTreeMap<SwIfIndex, u32>,
    in_use: InUse,
    naming: Naming,
    /// Interfaces on which the node is enabled.
    enabled: BTreeSet<SwIfIndex>,
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
            followed: BTreeSet::new(),
            interfaces: BTreeMap::new(),
            in_use: InUse::default(),
            naming: Naming::default(),
            enabled: BTreeSet::new(),
            translating: BTreeSet::new(),
            going: None,
            writer,
            tallies,
            free: (0..MAX_RULES).collect(),
            generation: 0,
        }
    }

    /// Sets that interfaces use.
    pub(crate) fn in_use(&self) -> &InUse {
        &self.in_use
    }

    /// Sets that the packets of an interface pass: the one that it is attached to, and that of its
    /// bridge domain.
    fn wanted(&self, bridges: &Bridges, sw_if: SwIfIndex) -> [(Side, Option<u32>); 2] {
        if self.going == Some(sw_if) {
            return Side::BOTH.map(|side| (side, None));
        }
        let id = bridges.of(sw_if).filter(|id| self.sets.contains_key(id));
        let domain = id.and_then(|id| bridges.get(id)).filter(|domain| domain.has_port(sw_if));
        // Packets that leave the domain for the router have passed its rules by another port.
        let is_bvi = domain.is_some_and(|domain| domain.bvi() == Some(sw_if));
        let id = id.filter(|_| domain.is_some());
        let attached = self.interfaces.get(&sw_if).copied();
        let received = attached.or(id.filter(|_| !is_bvi));
        [(Side::Received, received), (Side::IntoBridge, id.filter(|_| is_bvi))]
    }

    /// Changes of sets that workers have, after one of rules' interfaces has come or gone: these
    /// rules, and no others.
    fn resolve_again(&mut self, rules: BTreeSet<(u32, u64)>) -> BTreeMap<u32, Changes> {
        let mut all: BTreeMap<u32, Changes> = BTreeMap::new();
        for (set, number) in
            rules.into_iter().filter(|(set, _)| self.in_use.compiled(*set).is_some())
        {
            let placed = self.sets.get_mut(&set).and_then(|set| set.placed.get_mut(&number));
            let Some(placed) = placed else { continue };
            let changes = all.entry(set).or_default();
            let live = placed.live.take();
            changes.gone.extend(live.map(|live| (placed.rule.clone(), placed.slot, live)));
            changes.come.push(number);
        }
        all
    }
}

/// Rules by the words with which they name interfaces: set and number of each.
#[derive(Default)]
struct Naming(HashMap<String, BTreeSet<(u32, u64)>>);

impl Naming {
    /// Notes that a rule has come, or gone.
    fn note(&mut self, (set, number): (u32, u64), rule: &Rule, is: bool) {
        for name in rule.interfaces() {
            if is {
                self.0.entry(name.into()).or_default().insert((set, number));
            } else if let Some(by) = self.0.get_mut(name) {
                by.remove(&(set, number));
                if by.is_empty() {
                    self.0.remove(name);
                }
            }
        }
    }

    /// The rules that name an interface, by whatever it is called.
    fn of(&self, view: &InterfaceView) -> BTreeSet<(u32, u64)> {
        if self.0.is_empty() {
            return BTreeSet::new();
        }
        words(view).iter().filter_map(|word| self.0.get(word)).flatten().copied().collect()
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

/// The same, and what may have been one.
struct OrMissing(InterfaceNames);

impl Names for OrMissing {
    fn number(&self, name: &str) -> Option<SwIfIndex> {
        self.0.number(name).or_else(|| AnyName.number(name))
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

/// Parses a match of rules to delete, whose interface may be missing.
///
/// # Errors
/// [`RuleError`].
pub(crate) fn parse_match(c: &Control, text: &str) -> Result<Rule, RuleError> {
    Rule::parse_match(text, &OrMissing(names(c)))
}

/// The port that a rule names, by whatever it is called. Rules outlive interfaces, whose indices
/// are used again: it is looked up each time that rules are compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Named {
    Present(SwIfIndex),
    Missing(String),
}

/// The ports that rules name, each looked up once.
struct Ports {
    names: InterfaceNames,
    known: HashMap<String, Named>,
}

impl Ports {
    fn new(c: &Control) -> Ports {
        Ports { names: names(c), known: HashMap::new() }
    }

    fn of(&mut self, rule: &Rule) -> Option<Named> {
        let name = rule.matches.in_port.as_deref()?;
        if let Some(port) = self.known.get(name) {
            return Some(port.clone());
        }
        let present = self.names.number(name).map(Named::Present);
        let port = present.unwrap_or_else(|| Named::Missing(name.to_owned()));
        self.known.insert(name.to_owned(), port.clone());
        Some(port)
    }

    /// The words for an interface.
    fn words(&self, sw_if: SwIfIndex) -> Vec<String> {
        let all = self.names.0.borrow();
        all.get(sw_if).map(words).into_iter().flatten().filter(|word| !word.is_empty()).collect()
    }

    /// Returns whether a rule is within a match.
    fn is_within(&mut self, rule: &Rule, wider: &Rule) -> bool {
        rule.matches.is_within(&wider.matches)
            && (wider.matches.in_port.is_none() || self.of(rule) == self.of(wider))
    }
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
/// [`FlowError::Full`] and [`FlowError::NoRoom`]; no rule is added then.
pub fn add(c: &mut Control, set: u32, rules: Vec<Rule>) -> Result<(), FlowError> {
    if rules.iter().any(tracks) {
        let limit = c.state::<Tracking>().borrow().limit;
        tracking::check_room(c, limit)?;
    }
    let mut changes = Changes::default();
    {
        let mut ports = Ports::new(c);
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        let Sets { sets, free, tallies, naming, .. } = &mut *state;
        if rules.len() > free.len() {
            return Err(FlowError::Full);
        }
        let all = sets.entry(set).or_default();
        for rule in rules {
            let Some(slot) = free.pop_front() else { return Err(FlowError::Full) };
            tallies.make_ready(slot);
            let (before, since) = (tallies.get(slot), clock::now());
            let new = Placed { rule, slot, before, since, live: None };
            let rule = new.rule.clone();
            let (number, old) = all.add(new, &mut ports);
            if let Some(old) = &old {
                naming.note((set, number), &old.rule, false);
            }
            naming.note((set, number), &rule, true);
            free.extend(old.as_ref().map(|old| old.slot));
            // One that came a moment ago is not live yet.
            changes.come.push(number);
            changes.gone.extend(old.and_then(Placed::into_gone));
        }
        changes.come.sort_unstable();
        changes.come.dedup();
    }
    follow(c, BTreeSet::new(), Some((set, changes)));
    Ok(())
}

impl Placed {
    fn into_gone(self) -> Option<(Rule, u32, Live)> {
        Some((self.rule, self.slot, self.live?))
    }
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
    let mut changes = Changes::default();
    let gone = {
        let mut ports = Ports::new(c);
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        let Sets { sets, free, naming, .. } = &mut *state;
        let Some(all) = sets.get_mut(&set) else { return 0 };
        let numbers: Vec<u64> = match within {
            None => all.placed.keys().copied().collect(),
            Some(m) if strict => all.same(m, &mut ports).into_iter().collect(),
            Some(m) => {
                let mut goes =
                    |p: &Placed| ports.is_within(&p.rule, m) && (!table || p.rule.table == m.table);
                let gone = all.placed.iter().filter(|(_, p)| goes(p));
                gone.map(|(number, _)| *number).collect()
            }
        };
        for number in &numbers {
            if let Some(old) = all.remove(*number) {
                naming.note((set, *number), &old.rule, false);
                free.push_back(old.slot);
                changes.gone.extend(old.into_gone());
            }
        }
        if all.placed.is_empty() {
            sets.remove(&set);
        }
        numbers.len()
    };
    follow(c, BTreeSet::new(), Some((set, changes)));
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
    let sorted = |set: &RuleSet| {
        let mut all: Vec<RuleView> = set.placed.values().map(view).collect();
        all.sort_by_key(|v| (v.rule.table, u16::MAX - v.rule.priority));
        all
    };
    state.sets.iter().map(|(number, set)| (*number, sorted(set))).collect()
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
    let total = |set: &RuleSet| {
        set.placed.values().fold(SetTotals::default(), |sum, p| {
            let [packets, bytes] = state.tallies.get(p.slot);
            SetTotals {
                rules: sum.rules + 1,
                packets: sum.packets + packets - p.before[0],
                bytes: sum.bytes + bytes - p.before[1],
            }
        })
    };
    state.sets.iter().map(|(number, set)| (*number, total(set))).collect()
}

/// Returns whether a rule needs a tracker.
fn tracks(rule: &Rule) -> bool {
    rule.actions.iter().any(|action| matches!(action, Action::Ct(_)))
}

/// Attaches a set to an interface, or detaches it.
///
/// # Errors
/// Fails if there is no such interface, it carries no Ethernet frames, or there is no memory for
/// the connections that rules of the set track; nothing has changed then.
pub fn attach(c: &mut Control, sw_if: SwIfIndex, set: Option<u32>) -> Result<(), FlowError> {
    let view = interface::view(c, sw_if)?;
    if !view.ethernet {
        let what = "flow rules (it carries no Ethernet frames)".into();
        let (name, kind) = (view.name, view.dev_type.into());
        return Err(DeviceError::Unsupported { name, kind, what }.into());
    }
    let is_first = |set| {
        let state = c.state::<Sets>();
        let state = state.borrow();
        let rules = state.sets.get(&set).filter(|_| !state.in_use.is_used(set));
        rules.is_some_and(|rules| rules.placed.values().any(|placed| tracks(&placed.rule)))
    };
    if set.is_some_and(is_first) {
        let limit = c.state::<Tracking>().borrow().limit;
        tracking::check_room(c, limit)?;
    }
    {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        match set {
            Some(set) => state.interfaces.insert(sw_if, set),
            None => state.interfaces.remove(&sw_if),
        };
    }
    follow(c, BTreeSet::from([sw_if]), set.map(|set| (set, Changes::default())));
    Ok(())
}

/// Sets attached to interfaces by command.
pub fn attached(c: &Control) -> BTreeMap<SwIfIndex, u32> {
    c.state::<Sets>().borrow().interfaces.clone()
}

/// Number of times that a set was compiled.
pub fn compilations(c: &Control) -> u64 {
    c.state::<Sets>().borrow().generation / 256
}

/// Sets in use by interface: attached ones, and those of bridge domains with the number of a set.
pub fn following(c: &Control) -> BTreeSet<(SwIfIndex, u32)> {
    let state = c.state::<Sets>();
    let state = state.borrow();
    state.in_use.all().map(|((sw_if, _), set)| (sw_if, set)).collect()
}

/// Handles the creation of an interface.
pub(crate) fn interface_created(c: &mut Control, new: SwIfIndex) {
    let due = {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        state.going = state.going.filter(|gone| *gone != new);
        named(c, &mut state, new)
    };
    apply(c, due);
}

/// Handles the deletion of an interface.
pub(crate) fn interface_gone(c: &mut Control, gone: SwIfIndex) {
    if let Some(node) = c.node(flow_rules::NODE.name) {
        c.message_all(node, |_| Box::new(flow_rules::Gone(gone)));
    }
    let due = {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        state.interfaces.remove(&gone);
        Side::BOTH.into_iter().for_each(|side| _ = state.in_use.use_set((gone, side), None));
        state.going = Some(gone);
        named(c, &mut state, gone)
    };
    apply(c, due);
}

/// Handles a change of an interface's tag: rules may have named it by that, or begin to.
pub(crate) fn tag_changed(c: &mut Control) {
    let changed = {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        let all = c.state::<Interfaces>();
        let all = all.borrow();
        let is_tag =
            |word: &str| all.find(word).is_err() && all.find(&format!("host-{word}")).is_err();
        let by_tag = state.naming.0.iter().filter(|(word, _)| is_tag(word));
        let rules = by_tag.flat_map(|(_, rules)| rules).copied().collect();
        state.resolve_again(rules)
    };
    apply(c, Due { changed, ..Due::default() });
}

/// Returns the work after the creation or deletion of an interface: itself, and the rules that name
/// it.
fn named(c: &Control, state: &mut Sets, sw_if: SwIfIndex) -> Due {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let rules = all.get(sw_if).map(|view| state.naming.of(view)).unwrap_or_default();
    let changed = state.resolve_again(rules);
    Due { changed, interfaces: BTreeSet::from([sw_if]), ..Due::default() }
}

/// Handles a change of a bridge domain's port.
pub(crate) fn port_changed(c: &mut Control, port: SwIfIndex) {
    if !c.state::<Sets>().borrow().sets.is_empty() {
        follow(c, BTreeSet::from([port]), None);
    }
}

/// Work due: sets and interfaces to compile and publish.
#[derive(Default)]
struct Due {
    /// Sets to compile as a whole.
    sets: BTreeSet<u32>,
    /// Changes of the rules of sets.
    changed: BTreeMap<u32, Changes>,
    interfaces: BTreeSet<SwIfIndex>,
}

/// Recomputes which sets some interfaces use, and publishes what has changed, with the changes of a
/// set. Other interfaces change only as ports of a bridge domain whose set has come or gone.
fn follow(c: &mut Control, mut touched: BTreeSet<SwIfIndex>, changed: Option<(u32, Changes)>) {
    let due = {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        let l2 = c.state::<thalweg_feat_l2::L2>();
        let l2 = l2.borrow();
        if let Some((set, _)) = &changed {
            let has_changed = match state.sets.contains_key(set) {
                true => state.followed.insert(*set),
                false => state.followed.remove(set),
            };
            let domain = l2.bridges().get(*set).filter(|_| has_changed);
            touched.extend(domain.into_iter().flat_map(Domain::ports).map(|(port, _)| port));
        }
        let mut due = Due { changed: changed.into_iter().collect(), ..Due::default() };
        for sw_if in touched {
            for (side, set) in state.wanted(l2.bridges(), sw_if) {
                if state.in_use.use_set((sw_if, side), set) {
                    due.interfaces.insert(sw_if);
                }
            }
        }
        due
    };
    apply(c, due);
}

/// Compiles and publishes what is due, and enables the nodes where they are needed, once trackers
/// are there.
fn apply(c: &mut Control, mut due: Due) {
    publish(c, &mut due);
    tracking::prepare(c, move |c| enable_where_needed(c, due.interfaces));
}

/// Enables and disables the nodes on interfaces as their sets need.
fn enable_where_needed(c: &mut Control, interfaces: BTreeSet<SwIfIndex>) {
    let changes = {
        let state = c.state::<Sets>();
        let mut state = state.borrow_mut();
        let Sets { in_use, enabled, translating, .. } = &mut *state;
        let mut changes = Vec::new();
        for sw_if in interfaces {
            let sets = Side::BOTH.map(|side| in_use.set_of((sw_if, side)));
            let any = sets.iter().any(Option::is_some);
            let translates = |set| in_use.compiled(set).is_some_and(|set| set.translates);
            let translates = sets.into_iter().flatten().any(translates);
            for (places, wanted, on) in
                [(RULES, any, &mut *enabled), (ERRORS, translates, &mut *translating)]
            {
                let has_changed = if wanted { on.insert(sw_if) } else { on.remove(&sw_if) };
                if has_changed {
                    changes.extend(places.iter().map(|place| (*place, sw_if, wanted)));
                }
            }
        }
        changes
    };
    for (place, sw_if, on) in changes {
        enable(c, place, sw_if, on);
    }
}

/// Arcs and nodes of a purpose.
type Places = &'static [(&'static str, &'static str)];

const RULES: Places = &[("device-input", "flow-rules")];
/// Places for the router's own ICMP errors about translated packets.
const ERRORS: Places =
    &[("ip4-icmp-error-reply", "flow-icmp-error"), ("ip6-icmp-error-reply", "flow-icmp-error-ip6")];

fn enable(c: &mut Control, (arc, node): (&str, &str), sw_if: SwIfIndex, on: bool) {
    if let Err(e) = c.enable_feature(arc, node, sw_if, on) {
        tracing::error!("flow rules on {}: {e}", c.interface_name(sw_if));
    }
}

/// Compiles the sets that are due, and publishes them with the interfaces that are due. Adds the
/// interfaces that use the sets.
fn publish(c: &Control, due: &mut Due) {
    let state = c.state::<Sets>();
    let mut state = state.borrow_mut();
    let state = &mut *state;
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let gone = state.going;
    let number = |name: &str| {
        let sw_if = all.resolve(name).or_else(|| name.parse().ok())?;
        all.get(sw_if).filter(|_| Some(sw_if) != gone).map(Port::of)
    };
    let of = |sw_if: &SwIfIndex| Side::BOTH.map(|side| (*sw_if, side));
    let uses = due.interfaces.iter().flat_map(of).filter_map(|of| state.in_use.set_of(of));
    let new = uses.filter(|set| state.in_use.compiled(*set).is_none()).collect::<Vec<_>>();
    due.sets.extend(new);
    // Without rules there is nothing to change.
    due.sets.extend(due.changed.keys().copied().filter(|set| !state.sets.contains_key(set)));
    for set in &due.sets {
        // Nobody needs it yet, or any more.
        if !state.in_use.is_used(*set) {
            state.in_use.store(*set, None);
            continue;
        }
        state.generation += 256;
        let compiled = match state.sets.get_mut(set) {
            Some(rules) => compile(rules, state.generation, number),
            None => Compilation { generation: state.generation, ..Compilation::default() },
        };
        state.in_use.store(*set, Some(compiled));
    }
    let mut of_sets = due.sets.clone();
    for (set, changes) in std::mem::take(&mut due.changed) {
        of_sets.insert(set);
        let old = state.in_use.compiled(set).filter(|_| state.in_use.is_used(set));
        if let Some(old) = old.filter(|_| !due.sets.contains(&set)) {
            let mut new = Compilation::clone(old);
            state.generation += 256;
            new.generation = state.generation;
            let mut none = RuleSet::default();
            change(state.sets.get_mut(&set).unwrap_or(&mut none), &mut new, &changes, number);
            state.in_use.store(set, Some(new));
        }
    }
    state.in_use.forget_idle();
    let users = of_sets.into_iter().flat_map(|set| state.in_use.users(set));
    due.interfaces.extend(users.map(|(sw_if, _)| sw_if));
    let mut published = state.writer.get().clone();
    for sw_if in &due.interfaces {
        let view = all.get(*sw_if).filter(|_| Some(*sw_if) != gone);
        let [received, into_bridge] = of(sw_if).map(|of| {
            let set = view.and_then(|_| state.in_use.set_of(of));
            set.and_then(|set| state.in_use.compiled(set)).cloned()
        });
        published.ports.set(*sw_if, view.map(Port::of));
        // A page without sets is neither made nor copied.
        for (all, set) in
            [(&mut published.by_interface, received), (&mut published.into_bridge, into_bridge)]
        {
            if set.is_some() || all.get(*sw_if).is_some_and(Option::is_some) {
                all.set(*sw_if, set);
            }
        }
    }
    published.spread = state.in_use.spread();
    published.translated_zones = state.in_use.translated_zones();
    state.writer.publish(c.domain(), published);
}
