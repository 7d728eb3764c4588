//! Parts of a document that are not in force: what is wrong in it, and what cannot be applied yet.

use super::node::{Node, Value};
use super::report::Problem;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// A step of a path into a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathStep {
    /// A key of a map.
    Key(String),
    /// A position in a list, from 0.
    At(usize),
}

/// Reason why a part of a configuration is not in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The setting names something that is not there yet.
    Unresolved,
    /// The setting was in force, and its subject went away outside the router.
    Missing,
    /// The router or the kernel refused the setting.
    #[default]
    Failed,
}

impl State {
    /// All of them.
    pub const ALL: [State; 3] = [State::Unresolved, State::Missing, State::Failed];

    /// Returns its name.
    pub fn word(self) -> &'static str {
        match self {
            State::Unresolved => "unresolved",
            State::Missing => "missing",
            State::Failed => "failed",
        }
    }
}

/// A part of a document that is not in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    steps: Vec<PathStep>,
    node: Node,
    /// The value in force in its place.
    instead: Option<Node>,
    /// Reason why it is not in force, in words.
    pub why: String,
    /// The same in a word.
    pub state: State,
    /// The thing that it waits for, if it is unresolved: `interface pg7`, `device eth1`.
    pub waits_for: Option<String>,
}

impl Part {
    /// Copies what is at a path of a document, written as in items and problems.
    pub fn copy(root: &Node, path: &str, why: impl Into<String>) -> Option<Part> {
        let steps = root.steps_to(path).filter(|steps| !steps.is_empty())?;
        let node = root.below(&steps)?.clone();
        Some(Part::new(steps, node, why.into()))
    }

    fn new(steps: Vec<PathStep>, node: Node, why: String) -> Part {
        Part { steps, node, instead: None, why, state: State::Failed, waits_for: None }
    }

    /// Describes what was in force and went away outside the router. Its value stands where it was
    /// set; here it has none.
    pub fn missing(path: impl Into<String>, why: impl Into<String>) -> Part {
        let part = Part::new(vec![PathStep::Key(path.into())], Node::default(), why.into());
        Part { state: State::Missing, ..part }
    }

    /// The same, unresolved until something comes.
    #[must_use]
    pub fn waiting_for(self, what: impl Into<String>) -> Part {
        Part { state: State::Unresolved, waits_for: Some(what.into()), ..self }
    }

    /// Counts parts by state, as in `2 unresolved, 1 failed`; empty if there are none.
    pub fn counted<'a>(parts: impl Iterator<Item = &'a Part> + Clone) -> String {
        let of = |state: State| match parts.clone().filter(|part| part.state == state).count() {
            0 => None,
            n => Some(format!("{n} {}", state.word())),
        };
        State::ALL.into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
    }

    /// Its path.
    pub fn path(&self) -> String {
        path_of(&self.steps)
    }

    /// Its value.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns those of `parts` that are neither among `others` nor within them.
    pub fn outside<'a>(parts: &'a [Part], others: &[Part]) -> Vec<&'a Part> {
        let others: HashSet<Vec<PathStep>> = others.iter().map(|part| part.steps.clone()).collect();
        let is_within =
            |part: &Part| (0..=part.steps.len()).any(|n| others.contains(&part.steps[..n]));
        parts.iter().filter(|part| !is_within(part)).collect()
    }

    /// Leaves out what is within another one of the parts, and what is there twice.
    #[must_use]
    pub fn outermost(mut parts: Vec<Part>) -> Vec<Part> {
        let all: HashSet<Vec<PathStep>> = parts.iter().map(|part| part.steps.clone()).collect();
        let mut seen = HashSet::new();
        parts.retain(|part| {
            let is_within = (0..part.steps.len()).any(|n| all.contains(&part.steps[..n]));
            !is_within && seen.insert(part.steps.clone())
        });
        parts
    }

    /// Notes what is in force in its place: as long as nobody changes that, it stays the part's. A
    /// place in a list is another part's when this one is not there.
    pub fn note_instead(&mut self, running: &Node) {
        let is_named = self.steps.iter().all(|step| matches!(step, PathStep::Key(_)));
        let there = running.below(&self.steps).filter(|_| is_named);
        self.instead = there.filter(|n| !is_collection(n)).cloned();
    }

    /// Adds it to a document, except for settings that this has already. Returns whether something
    /// was added.
    pub fn add_to(&self, root: &mut Node) -> bool {
        if self.instead.is_some() && root.below(&self.steps) == self.instead.as_ref() {
            // Nobody has changed the value in its place, so the part replaces it.
            set(root, &self.steps, &self.node);
            return true;
        }
        add(root, &self.steps, &self.node)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path(), self.why)
    }
}

fn is_collection(node: &Node) -> bool {
    matches!(node.value, Value::Map(_) | Value::List(_))
}

fn set(to: &mut Node, steps: &[PathStep], what: &Node) {
    match (steps, &mut to.value) {
        ([], _) => to.value = what.value.clone(),
        ([PathStep::Key(key), rest @ ..], Value::Map(map)) => {
            set(map.entry(key.clone()).or_default(), rest, what);
        }
        ([PathStep::At(n), rest @ ..], Value::List(list)) => {
            if let Some(part) = list.get_mut(*n) {
                set(part, rest, what);
            }
        }
        _ => {}
    }
}

fn path_of(steps: &[PathStep]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            PathStep::Key(key) if path.is_empty() => path.push_str(key),
            PathStep::Key(key) => path += &format!(".{key}"),
            PathStep::At(n) => path += &format!("[{n}]"),
        }
    }
    path
}

fn add(to: &mut Node, steps: &[PathStep], what: &Node) -> bool {
    match steps {
        [] => merge(to, what),
        [PathStep::At(at)] => {
            // A list of one part may be written without brackets.
            if !matches!(to.value, Value::List(_) | Value::Null) {
                let one = std::mem::take(to);
                if one == *what {
                    *to = one;
                    return false;
                }
                to.value = Value::List(vec![one]);
            }
            if to.value == Value::Null {
                to.value = Value::List(Vec::new());
            }
            let Value::List(list) = &mut to.value else { return false };
            let is_new = !list.contains(what);
            if is_new {
                // Put it back where it was: the order may count.
                list.insert((*at).min(list.len()), what.clone());
            }
            is_new
        }
        // Parts of a list have no names: what is below one belongs to the whole of it.
        [PathStep::At(_), ..] => false,
        [PathStep::Key(key), rest @ ..] => {
            if to.value == Value::Null {
                to.value = Value::Map(Default::default());
            }
            let Value::Map(map) = &mut to.value else { return false };
            let is_new = !map.contains_key(key);
            let added = add(map.entry(key.clone()).or_default(), rest, what);
            added || is_new
        }
    }
}

fn merge(to: &mut Node, what: &Node) -> bool {
    match (&mut to.value, &what.value) {
        (Value::Null, _) => {
            let is_new = !what.value.is_empty();
            to.value = what.value.clone();
            is_new
        }
        (Value::Map(there), Value::Map(more)) => {
            let mut added = false;
            for (key, node) in more {
                added |= !there.contains_key(key);
                added |= merge(there.entry(key.clone()).or_default(), node);
            }
            added
        }
        (Value::List(there), Value::List(more)) => {
            let before = there.len();
            for node in more {
                if !there.contains(node) {
                    there.push(node.clone());
                }
            }
            there.len() > before
        }
        _ => false,
    }
}

/// Places in a document.
#[derive(Default)]
struct Marks {
    /// Reason in words, and the thing that is missing.
    why: Option<(String, Option<String>)>,
    below: BTreeMap<PathStep, Marks>,
}

/// Takes what problems are about out of a document. Returns the parts; none if the problems are
/// about nothing that can be found.
pub(crate) fn take_out(root: &mut Node, problems: &[Problem]) -> Vec<Part> {
    let mut marks = Marks::default();
    for problem in problems {
        let Some(steps) = root.steps_to(&problem.path).filter(|s| !s.is_empty()) else { continue };
        // Elements of a list have no lasting names, so the part ends at the element.
        let whole = steps.iter().position(|s| matches!(s, PathStep::At(_))).map(|at| at + 1);
        let steps = steps.into_iter().take(whole.unwrap_or(usize::MAX));
        let at = steps.fold(&mut marks, |at, step| at.below.entry(step).or_default());
        let place = problem
            .place
            .map_or_else(String::new, |p| format!(" (line {}, column {})", p.line, p.column));
        let message = match problem.unsupported {
            // The message repeats the path.
            true => problem.message.replacen(&format!(": {}", problem.path), "", 1),
            false => problem.message.clone(),
        };
        let why = at.why.get_or_insert_with(|| (message + &place, problem.absent.clone()));
        // A mistake stays one when what is absent has come.
        why.1 = why.1.take().filter(|_| problem.absent.is_some());
    }
    let mut parts = Vec::new();
    cut(root, marks, &mut Vec::new(), &mut parts);
    parts
}

fn cut(node: &mut Node, mut marks: Marks, at: &mut Vec<PathStep>, parts: &mut Vec<Part>) {
    let mut one = |step: PathStep, below: &mut Node| {
        let Some(marks) = marks.below.remove(&step) else { return true };
        at.push(step);
        let stays = match marks.why {
            Some((why, absent)) => {
                let (steps, node) = (at.clone(), std::mem::take(below));
                let part = Part::new(steps, node, why);
                parts.push(match absent {
                    Some(what) => part.waiting_for(what),
                    None => part,
                });
                false
            }
            None => {
                cut(below, marks, at, parts);
                // An empty list may be wrong by itself.
                !matches!(&below.value, Value::List(list) if list.is_empty())
            }
        };
        at.pop();
        stays
    };
    match &mut node.value {
        Value::Map(map) => map.retain(|key, below| one(PathStep::Key(key.clone()), below)),
        Value::List(list) => {
            let mut n = 0..;
            list.retain_mut(|below| one(PathStep::At(n.next().unwrap_or_default()), below));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::*;

    fn problem(path: &str) -> Problem {
        Problem::new(path, "wrong")
    }

    #[test]
    fn parts_are_taken_out_and_put_back() {
        let text = "a:\n  host-a.100: {mtu: 1, list: [x, y, z]}\n  b: 2\nr: {10.0.0.0/8: [p, q]}\n";
        let whole = parse(text).unwrap();
        let mut root = whole.clone();
        let problems =
            ["a.host-a.100.mtu", "a.host-a.100.list[1]", "r.10.0.0.0/8[0]", "a.b"].map(problem);
        let parts = take_out(&mut root, &problems);
        let paths: Vec<String> = parts.iter().map(Part::path).collect();
        assert_eq!(paths, ["a.host-a.100.mtu", "a.host-a.100.list[1]", "a.b", "r.10.0.0.0/8[0]"]);
        let left = parse("a: {host-a.100: {list: [x, z]}}\nr: {10.0.0.0/8: [q]}\n").unwrap();
        assert_eq!(root, left);
        // A running configuration may write a list of one without brackets.
        root.put(&["r", "10.0.0.0/8"], "q");
        assert!(parts.iter().all(|p| p.add_to(&mut root)));
        let back =
            parse("a: {host-a.100: {mtu: 1, list: [x, y, z]}, b: 2}\nr: {10.0.0.0/8: [p, q]}\n");
        assert_eq!(root, back.unwrap());
        assert!(!parts.iter().any(|p| p.add_to(&mut root)), "twice");
    }

    #[test]
    fn what_is_set_by_now_stays() {
        let old = parse("a: {b: {c: 1, d: 2}}\n").unwrap();
        let part = Part::copy(&old, "a.b", "later").unwrap();
        let mut root = parse("a: {b: {c: 7}}\n").unwrap();
        assert!(part.add_to(&mut root));
        assert_eq!(root, parse("a: {b: {c: 7, d: 2}}\n").unwrap());
        assert_eq!(part.to_string(), "a.b: later");
        assert!(Part::copy(&old, "a.x", "").is_none() && Part::copy(&old, "", "").is_none());
    }

    #[test]
    fn what_is_in_force_instead_gives_way() {
        let wanted = parse("a: {mtu: 9000}\n").unwrap();
        let mut root = parse("a: {mtu: 1500}\n").unwrap();
        let mut part = Part::copy(&wanted, "a.mtu", "refused").unwrap();
        assert!(!part.clone().add_to(&mut root.clone()));
        part.note_instead(&root);
        assert!(part.add_to(&mut root));
        assert_eq!(root, wanted);
        let mut changed = parse("a: {mtu: 2000}\n").unwrap();
        assert!(!part.add_to(&mut changed), "a client has changed it");
    }

    /// The next part of a list moves to the place of one that is not in force, and stays.
    #[test]
    fn what_follows_in_a_list_is_not_there_instead() {
        let wanted = parse("r: [p, q, s]\n").unwrap();
        let mut root = parse("r: [q, s]\n").unwrap();
        let mut part = Part::copy(&wanted, "r[0]", "refused").unwrap();
        part.note_instead(&root);
        assert!(part.add_to(&mut root));
        assert_eq!(root, wanted);
    }

    #[test]
    fn parts_of_parts_are_known() {
        let root = parse("a: {b: {c: 1, d: 2}, e: [x, y]}\n").unwrap();
        let parts = |paths: &[&str]| -> Vec<Part> {
            paths.iter().map(|path| Part::copy(&root, path, "").unwrap()).collect()
        };
        let paths = |parts: Vec<Part>| parts.iter().map(Part::path).collect::<Vec<_>>();
        let all = parts(&["a.b.c", "a.e[1]", "a.b", "a.b.d", "a.e[1]"]);
        assert_eq!(paths(Part::outermost(all.clone())), ["a.e[1]", "a.b"]);
        let outside = Part::outside(&all, &parts(&["a.b", "a.e[0]"]));
        assert_eq!(paths(outside.into_iter().cloned().collect()), ["a.e[1]", "a.e[1]"]);
        assert!(Part::outside(&all, &parts(&["a"])).is_empty());
    }

    #[test]
    fn states_are_counted() {
        let root = parse("a: 1\n").unwrap();
        let failed = Part::copy(&root, "a", "refused").unwrap();
        assert_eq!(failed.state, State::Failed);
        let waits = failed.clone().waiting_for("interface pg7");
        let away = Part::missing("interfaces.host-eth1", "device eth1 went away");
        assert_eq!(away.path(), "interfaces.host-eth1");
        let all = [failed, waits.clone(), away, waits];
        assert_eq!(Part::counted(all.iter()), "2 unresolved, 1 missing, 1 failed");
        assert_eq!(Part::counted(all[..0].iter()), "");
    }

    #[test]
    fn problems_about_nothing_take_nothing() {
        let mut root = parse("a: 1\n").unwrap();
        assert!(take_out(&mut root, &[problem("b"), problem("")]).is_empty());
        assert_eq!(root, parse("a: 1\n").unwrap());
    }
}
