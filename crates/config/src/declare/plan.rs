//! Planning: the commands that lead from the current to the desired configuration, in order.

use super::item::{Item, rank};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// A phase of a plan, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Removes what is not desired.
    Prune,
    /// Creates what is missing.
    Create,
    /// Sets attributes.
    Sync,
}

impl Phase {
    /// Returns its name.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Prune => "prune",
            Phase::Create => "create",
            Phase::Sync => "sync",
        }
    }
}

/// One command of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Phase.
    pub phase: Phase,
    /// The command.
    pub command: String,
    /// Key of the item.
    pub key: String,
    /// Path in a document.
    pub path: String,
    /// Keys of the items that must have succeeded before.
    pub needs: Vec<String>,
    /// Key of the item that it is a property of.
    pub with: Option<String>,
}

/// Commands that lead from one configuration to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The commands in order.
    pub steps: Vec<Step>,
}

impl Plan {
    /// Returns true if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the commands in order.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|s| s.command.as_str())
    }
}

/// Formats the plan for `exec`, with a comment before each phase.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut phase = None;
        for step in &self.steps {
            if phase != Some(step.phase) {
                phase = Some(step.phase);
                let n = self.steps.iter().filter(|s| s.phase == step.phase).count();
                let s = if n == 1 { "" } else { "s" };
                writeln!(f, "comment {{ {}: {n} command{s} }}", step.phase.word())?;
            }
            writeln!(f, "{}", step.command)?;
        }
        Ok(())
    }
}

type ByKey<'a> = HashMap<&'a str, &'a Item>;

/// The differences between two sets of items.
struct Change<'a> {
    is: ByKey<'a>,
    desired: ByKey<'a>,
    /// Items that differ, or are on one side only.
    dirty: HashSet<&'a str>,
    /// Items that are the same, but must be unset and set again.
    cycled: HashSet<&'a str>,
    /// Items that differ, and have something that another one takes before them: they give it back
    /// first.
    released: HashSet<&'a str>,
}

impl<'a> Change<'a> {
    fn new(old: &'a [Item], new: &'a [Item]) -> Change<'a> {
        let by_key = |items: &'a [Item]| -> ByKey<'a> {
            items.iter().filter(|i| i.with.is_none()).map(|i| (i.key.as_str(), i)).collect()
        };
        let (is, desired) = (by_key(old), by_key(new));
        let mut dirty = HashSet::new();
        for (key, item) in &is {
            let same = match desired.get(key) {
                Some(new) => new.set == item.set,
                None => item.sticky && item.needs.iter().all(|n| desired.contains_key(n.as_str())),
            };
            if !same {
                dirty.insert(*key);
            }
        }
        dirty.extend(desired.keys().filter(|key| !is.contains_key(*key)));
        dirty.extend(recreated(old, new).into_iter().filter(|key| desired.contains_key(key)));
        let (cycled, released) = (HashSet::new(), HashSet::new());
        let mut change = Change { is, desired, dirty, cycled, released };
        change.spread();
        change.release(old, new);
        change
    }

    /// Finds items that hold what another one takes before they are set themselves. Items that are
    /// set before it give it back by that.
    fn release(&mut self, old: &'a [Item], new: &'a [Item]) {
        let holders: Vec<(&'a str, &'a str)> = claims(old).collect();
        if holders.is_empty() {
            return;
        }
        let takers: HashMap<&str, &str> = claims(new).map(|(key, what)| (what, key)).collect();
        let order = sorted(new).into_iter().filter(|item| item.with.is_none()).enumerate();
        let place: HashMap<&str, usize> = order.map(|(at, item)| (item.key.as_str(), at)).collect();
        for (holder, what) in holders {
            let Some(taker) = takers.get(what) else { continue };
            let is_before = place.get(taker) < place.get(holder);
            if is_before && self.is_set(taker) && self.is_set(holder) {
                self.released.insert(holder);
            }
        }
    }

    /// Adds items that must be set again because what they need changes.
    fn spread(&mut self) {
        loop {
            let moved =
                |n: &String| self.dirty.contains(n.as_str()) || self.cycled.contains(n.as_str());
            let hit: Vec<&'a str> = self
                .desired
                .iter()
                .filter(|(key, _)| !self.dirty.contains(*key) && !self.cycled.contains(*key))
                .filter(|(key, item)| self.is.contains_key(*key) && item.needs.iter().any(moved))
                .map(|(key, _)| *key)
                .collect();
            if hit.is_empty() {
                return;
            }
            self.cycled.extend(hit);
        }
    }

    /// Returns true if an item is unset, even if it is set again.
    fn goes(&self, key: &str) -> bool {
        let gone = self.is.contains_key(key) && !self.desired.contains_key(key);
        let recreate = self.is.get(key).is_some_and(|item| item.recreate);
        gone || self.released.contains(key)
            || recreate && (self.dirty.contains(key) || self.cycled.contains(key))
    }

    fn is_set(&self, key: &str) -> bool {
        self.desired.contains_key(key) && (self.dirty.contains(key) || self.cycled.contains(key))
    }
}

/// Keys of items, with what they claim.
fn claims(items: &[Item]) -> impl Iterator<Item = (&str, &str)> {
    let own = |item: &Item| item.with.is_none();
    let all = items.iter().filter(move |item| own(item));
    all.filter_map(|item| Some((item.key.as_str(), item.claims.as_deref()?)))
}

/// Returns the keys of items that are there and whose properties change.
fn recreated<'a>(is: &'a [Item], desired: &'a [Item]) -> Vec<&'a str> {
    type Properties<'a> = HashMap<&'a str, (&'a str, &'a Item)>;
    let properties = |items: &'a [Item]| -> Properties<'a> {
        let own = |i: &'a Item| Some((i.key.as_str(), (i.with.as_deref()?, i)));
        items.iter().filter_map(own).collect()
    };
    let (is, desired) = (properties(is), properties(desired));
    let claimed: HashMap<&str, &str> =
        desired.values().filter_map(|(of, i)| Some((i.claims.as_deref()?, *of))).collect();
    let changed = |(key, (of, item)): (&&str, &(&'a str, &Item))| {
        let changes = match desired.get(key) {
            Some((_, new)) => new.set != item.set,
            // An item that is not desired may keep any value, unless another one claims its value.
            None => {
                let claims = item.claims.as_deref().and_then(|c| claimed.get(c));
                claims.is_some_and(|by| by != of)
            }
        };
        changes.then_some(*of)
    };
    is.iter().filter_map(changed).collect()
}

/// Plans the steps from `is` to `desired`.
pub fn plan(is: &[Item], desired: &[Item]) -> Plan {
    let from_nothing = is.is_empty();
    let change = Change::new(is, desired);
    let mut steps = Vec::new();
    for item in sorted(is).into_iter().rev() {
        let key = item.key.as_str();
        let wanted = match (change.desired.contains_key(key), change.cycled.contains(key)) {
            _ if item.with.is_some() => false,
            // An attribute is removed along with what it needs.
            (false, _) => {
                let falls = item.attribute && item.needs.iter().any(|n| change.goes(n));
                change.dirty.contains(key) && !falls
            }
            (true, _) if change.released.contains(key) => true,
            (true, true) => !item.attribute,
            (true, false) => item.recreate && change.dirty.contains(key),
        };
        if let (true, Some(command)) = (wanted, &item.unset) {
            steps.push(step(Phase::Prune, command, item));
        }
    }
    for item in sorted(desired) {
        let wanted = match &item.with {
            // A new configuration gets its defaults from the order alone.
            Some(_) if item.implicit && from_nothing => false,
            Some(key) => change.is_set(key),
            None => change.is_set(&item.key),
        };
        if wanted {
            let phase = if item.rank <= rank::CREATE { Phase::Create } else { Phase::Sync };
            steps.push(step(phase, &item.set, item));
        }
    }
    Plan { steps }
}

fn step(phase: Phase, command: &str, item: &Item) -> Step {
    Step {
        phase,
        command: command.to_owned(),
        key: item.key.clone(),
        path: item.path.clone(),
        needs: item.needs.clone(),
        with: item.with.clone(),
    }
}

fn sorted(items: &[Item]) -> Vec<&Item> {
    let mut all: Vec<&Item> = items.iter().collect();
    // A stable sort: items of one rank and order stay as they were added.
    all.sort_by_key(|i| (i.rank, i.order));
    all.chunk_by(|a, b| a.rank == b.rank).flat_map(by_needs).collect()
}

/// Items of one rank, each behind those of them that it needs, and else as they were.
fn by_needs<'a>(items: &[&'a Item]) -> Vec<&'a Item> {
    let place: HashMap<&str, usize> =
        items.iter().enumerate().map(|(at, item)| (item.key.as_str(), at)).collect();
    let needs_one = |item: &&Item| item.needs.iter().any(|n| place.contains_key(n.as_str()));
    if !items.iter().any(needs_one) {
        return items.to_vec();
    }
    let (mut placed, mut sorted) = (vec![false; items.len()], Vec::with_capacity(items.len()));
    for first in 0..items.len() {
        // Items to place; an item's needs come on top of it.
        let mut waiting = vec![(first, false)];
        while let Some((at, has_all)) = waiting.pop() {
            if has_all {
                sorted.push(items[at]);
                continue;
            }
            // A circle of needs ends where it began.
            if std::mem::replace(&mut placed[at], true) {
                continue;
            }
            waiting.push((at, true));
            let needed = items[at].needs.iter().rev().filter_map(|n| place.get(n.as_str()));
            waiting.extend(needed.map(|at| (*at, false)));
        }
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::super::item::interface_key;
    use super::*;

    fn interface(name: &str, options: &str) -> Item {
        let create = format!("create {name}{options}");
        Item::new(rank::CREATE, interface_key(name), "", create)
            .unset(format!("delete {name}"))
            .recreate()
    }

    fn state(name: &str) -> Item {
        Item::new(rank::STATE, format!("state {name}"), "", format!("up {name}"))
            .unset(format!("down {name}"))
            .needs(interface_key(name))
    }

    fn mtu(name: &str, bytes: u32) -> Item {
        Item::new(rank::MTU, format!("mtu {name}"), "", format!("mtu {name} {bytes}"))
            .needs(interface_key(name))
            .attribute()
    }

    fn address(name: &str, ip: &str) -> Item {
        Item::new(rank::ADDRESS, format!("address {name} {ip}"), "", format!("add {name} {ip}"))
            .unset(format!("del {name} {ip}"))
            .needs(interface_key(name))
            .needs(format!("bind {name}"))
    }

    fn bind(name: &str, table: u32) -> Item {
        Item::new(rank::BIND, format!("bind {name}"), "", format!("bind {name} {table}"))
            .unset(format!("bind {name} 0"))
            .needs(interface_key(name))
            .attribute()
    }

    fn mac(name: &str, mac: &str) -> Item {
        Item::new(rank::MAC, format!("mac {name}"), "", format!("mac {name} {mac}"))
            .needs(interface_key(name))
            .attribute()
            .sticky()
    }

    fn commands(is: &[Item], desired: &[Item]) -> Vec<String> {
        plan(is, desired).commands().map(str::to_owned).collect()
    }

    fn full(name: &str, options: &str) -> Vec<Item> {
        let index =
            Item::new(rank::BEFORE_CREATE, format!("index {name}"), "", format!("index {name}"))
                .with(interface_key(name));
        vec![state(name), address(name, "a"), mtu(name, 1500), interface(name, options), index]
    }

    #[test]
    fn from_nothing_to_all_and_back() {
        let all = full("x", "");
        assert_eq!(commands(&[], &all), ["index x", "create x", "mtu x 1500", "add x a", "up x"]);
        assert_eq!(commands(&all, &[]), ["down x", "del x a", "delete x"]);
        assert!(plan(&all, &all).is_empty());
    }

    #[test]
    fn only_differences_are_planned() {
        let (is, mut desired) = ([full("x", ""), full("y", "")].concat(), full("x", ""));
        desired.extend([state("y"), interface("y", ""), mtu("y", 1400), address("y", "b")]);
        assert_eq!(commands(&is, &desired), ["del y a", "mtu y 1400", "add y b"]);
    }

    #[test]
    fn recreated_items_recreate_their_dependents() {
        assert_eq!(
            commands(&full("x", ""), &full("x", " v3")),
            [
                "down x",
                "del x a",
                "delete x",
                "index x",
                "create x v3",
                "mtu x 1500",
                "add x a",
                "up x"
            ]
        );
    }

    #[test]
    fn addresses_step_aside_for_another_table() {
        let is = full("x", "");
        let desired = [full("x", ""), vec![bind("x", 7)]].concat();
        assert_eq!(commands(&is, &desired), ["del x a", "bind x 7", "add x a"]);
        assert_eq!(commands(&desired, &is), ["del x a", "bind x 0", "add x a"]);
    }

    #[test]
    fn sticky_items_stay_unless_their_interface_goes() {
        let is = [full("x", ""), vec![mac("x", "1")]].concat();
        assert!(plan(&is, &full("x", "")).is_empty());
        let other = [full("x", ""), vec![mac("x", "2")]].concat();
        assert_eq!(commands(&is, &other), ["mac x 2"]);
        assert_eq!(commands(&is, &[]), ["down x", "del x a", "delete x"]);
    }

    #[test]
    fn what_exists_once_is_given_back_before_it_is_taken() {
        let one = |key: &str, order: u32, what: &str| {
            Item::new(rank::SERVICE, key, "", format!("{key} {what}"))
                .order(order)
                .unset(format!("{key} off"))
                .claims(what)
        };
        let is = [one("log", 1, "a"), one("save", 2, "b")];
        // They swap: the first one that is set finds its place free, and leaves that of the second.
        let swapped = [one("log", 1, "b"), one("save", 2, "a")];
        assert_eq!(commands(&is, &swapped), ["save off", "log b", "save a"]);
        assert_eq!(commands(&swapped, &is), ["save off", "log a", "save b"]);
        let behind = Item::new(rank::SERVICE, "x", "", "x").order(3).unset("x off").needs("save");
        let [is, swapped] =
            [is, swapped].map(|all| [&all[..], std::slice::from_ref(&behind)].concat());
        assert_eq!(commands(&is, &swapped), ["x off", "save off", "log b", "save a", "x"]);
        // One that follows the other needs no step of its own.
        let is = [one("log", 1, "a"), one("save", 2, "b")];
        assert_eq!(commands(&is, &[one("log", 1, "c"), one("save", 2, "a")]), ["log c", "save a"]);
        assert_eq!(commands(&is, &[one("log", 1, "b")]), ["save off", "log b"]);
        assert_eq!(
            commands(&is, &[one("log", 1, "b"), one("save", 2, "c")]),
            ["save off", "log b", "save c"]
        );
        // Three in a circle.
        let is = [one("l", 1, "a"), one("m", 2, "b"), one("n", 3, "c")];
        let round = [one("l", 1, "b"), one("m", 2, "c"), one("n", 3, "a")];
        assert_eq!(commands(&is, &round), ["n off", "m off", "l b", "m c", "n a"]);
        let round = [one("l", 1, "c"), one("m", 2, "a"), one("n", 3, "b")];
        assert_eq!(commands(&is, &round), ["n off", "l c", "m a", "n b"]);
    }

    #[test]
    fn a_plan_is_a_script() {
        let text = plan(&full("x", ""), &full("y", "")).to_string();
        assert!(text.starts_with("comment { prune: 3 commands }\ndown x\n"), "{text}");
        assert!(text.contains("comment { create: 2 commands }\nindex y\ncreate y\n"), "{text}");
        assert!(text.ends_with("up y\n"), "{text}");
    }

    #[test]
    fn items_follow_what_they_need() {
        let item = |key: &str, order: u32, needs: &[&str]| {
            let item =
                Item::new(rank::CREATE, key, "", key).order(order).unset(format!("no {key}"));
            needs.iter().fold(item, |item, need| item.needs(*need))
        };
        // A tunnel over a sub-interface, a sub-interface of the tunnel, and a circle.
        let items = [
            item("t.10", 1, &["t"]),
            item("a.10", 1, &["a"]),
            item("t", 9, &["a.10"]),
            item("a", 0, &[]),
            item("x", 3, &["y"]),
            item("y", 4, &["x"]),
        ];
        let commands = |plan: Plan| plan.steps.into_iter().map(|s| s.command).collect::<Vec<_>>();
        let made = commands(plan(&[], &items));
        assert_eq!(made, ["a", "a.10", "t", "t.10", "y", "x"]);
        let undone: Vec<String> = made.iter().rev().map(|key| format!("no {key}")).collect();
        assert_eq!(commands(plan(&items, &[])), undone);
    }
}
