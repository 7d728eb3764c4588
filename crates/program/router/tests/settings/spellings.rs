//! Settings are compared by meaning: a document that writes a setting in another way than the
//! router is in force once applied, and plans nothing if the setting is in force.
//!
//! Documents of all setters are changed at random: words change places, numbers, addresses and
//! names get other spellings, lists and keys another order, a list of one becomes its part. Most of
//! these are refused; those that are accepted must keep to the two rules, and what the router
//! dumps then loads into another one, which dumps the same.

use crate::loader::Loader;
use crate::orders::Dice;
use crate::router::{ONE, Router};
use crate::setters::{PRELUDE, SETTERS};
use thalweg_config::declare::{Catalog, Document, Node, Value, diff};
use thalweg_graph::Control;
use thalweg_program_router::configuration::catalog;
use thalweg_testkit::sized;

/// Values that have several spellings.
fn can_change(node: &Node) -> bool {
    match &node.value {
        Value::Text(_) | Value::Int(_) | Value::List(_) => true,
        Value::Map(map) => map.len() > 1,
        _ => false,
    }
}

/// Changes the nth of these values.
fn change(node: &mut Node, at: &mut usize, dice: &mut Dice) -> bool {
    if can_change(node) {
        if *at == 0 {
            respell(node, dice);
            return true;
        }
        *at -= 1;
    }
    match &mut node.value {
        Value::List(list) => list.iter_mut().any(|part| change(part, at, dice)),
        Value::Map(map) => map.values_mut().any(|below| change(below, at, dice)),
        _ => false,
    }
}

fn leaves(node: &Node) -> usize {
    let below = match &node.value {
        Value::List(list) => list.iter().map(leaves).sum(),
        Value::Map(map) => map.values().map(leaves).sum(),
        _ => 0,
    };
    below + usize::from(can_change(node))
}

fn respell(node: &mut Node, dice: &mut Dice) {
    node.value = match std::mem::take(&mut node.value) {
        Value::List(mut list) => match (dice.below(3), list.len()) {
            (0, 1) => list.remove(0).value,
            (1, _) => {
                dice.shuffle(&mut list);
                Value::List(list)
            }
            _ => Value::List(list.into_iter().flat_map(|part| parted(part, dice)).collect()),
        },
        Value::Map(map) => {
            let mut all: Vec<_> = map.into_iter().collect();
            dice.shuffle(&mut all);
            if dice.below(2) == 0 {
                let at = dice.below(all.len());
                all[at].0 = reworded(&all[at].0, dice);
            }
            Value::Map(all.into_iter().collect())
        }
        Value::Int(n) if dice.below(4) == 0 => Value::List(vec![Value::Int(n).into()]),
        Value::Int(n) => Value::Text(n.to_string()),
        Value::Text(text) if dice.below(8) == 0 => Value::List(vec![Value::Text(text).into()]),
        Value::Text(text) => Value::Text(reworded(&text, dice)),
        other => other,
    };
}

/// A range of two addresses becomes both.
fn parted(part: Node, dice: &mut Dice) -> Vec<Node> {
    let text = part.value.to_string();
    match text.split_once(" - ") {
        Some((first, last)) if dice.below(2) == 0 => {
            let (last, rest) = last.split_once(' ').unwrap_or((last, ""));
            let one = |address: &str| Node::from(format!("{address} {rest}").trim().to_owned());
            vec![one(first), one(last)]
        }
        _ => vec![part],
    }
}

fn reworded(text: &str, dice: &mut Dice) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for _ in 0..=dice.below(2) {
        let n = words.len();
        let at = dice.below(n);
        match dice.below(9) {
            // Two words change places, and two pairs.
            0 => words.swap(at, (at + 1) % n),
            1 if n >= 4 => {
                let at = dice.below(n - 3);
                words[at..at + 4].rotate_left(2);
            }
            2 => words.rotate_left(at),
            3 => words[at] = words[at].to_uppercase(),
            4 => {
                let extra = ["vrf 0", "table 0", "weight 1", "preference 0", "rate 1000", "del"];
                words.insert(at, extra[dice.below(extra.len())].to_owned());
            }
            5 => drop(words.remove(at)),
            6 => words[at] = words[at].replace(':', "-"),
            7 => words[at] = format!("0{}", words[at]),
            _ => words[at] = words[at].replace("::", ":0::").replace(".0/", ".7/"),
        }
        if words.is_empty() {
            break;
        }
    }
    words.join(" ")
}

/// Applies a document; false if a command fails.
fn apply(router: &mut Router, from: &Document, to: &Document) -> bool {
    let plan = from.plan_to(to);
    let done = plan.commands().all(|command| router.attempt(command).is_ok());
    router.settle();
    done
}

fn commands(from: &Document, to: &Document) -> Vec<String> {
    from.plan_to(to).commands().map(str::to_owned).collect()
}

/// Tries one changed document on a router that is as `before` says. Returns whether the router is
/// as before.
fn tried(
    router: &mut Router,
    before: &Document,
    root: Node,
    catalog: &Catalog<Control>,
    loader: &mut Loader,
    faults: &mut Vec<String>,
) -> Option<bool> {
    let changed = diff(before.root(), &root).iter().map(|d| format!("{d}\n")).collect::<String>();
    let document = catalog.check("changed", root).ok()?;
    let first = commands(before, &document);
    if first.is_empty() {
        return Some(true);
    }
    if !apply(router, before, &document) {
        return Some(false);
    }
    let now = router.dump();
    let left = commands(&now, &document);
    if !left.is_empty() {
        faults.push(format!("{changed}all commands succeed, and still missing: {left:#?}"));
    } else if now.root() == before.root() {
        faults.push(format!("{changed}is so already, but runs: {first:#?}"));
    } else if let Err(e) = loader.check(&now) {
        faults.push(format!("{changed}{e}"));
    }
    Some(false)
}

#[test]
fn any_accepted_spelling_is_in_force_once_applied() {
    let _one = ONE.lock();
    let catalog = catalog().unwrap();
    let (mut dice, mut faults, mut accepted) = (Dice(46), Vec::new(), 0);
    let mut loader = Loader::new();
    for (path, examples) in SETTERS {
        for lines in *examples {
            let mut router = Router::start();
            router.run(PRELUDE);
            let prepared = router.attempt(lines).is_ok();
            router.settle();
            let before = router.dump();
            let all = leaves(before.root());
            for _ in 0..sized(30, 300usize) {
                if !prepared || all == 0 {
                    break;
                }
                let mut root = before.root().clone();
                let mut at = dice.below(all);
                change(&mut root, &mut at, &mut dice);
                let is_as_before =
                    tried(&mut router, &before, root, &catalog, &mut loader, &mut faults);
                accepted += usize::from(is_as_before.is_some());
                if is_as_before == Some(false) {
                    router.restart();
                    router.run(PRELUDE);
                    let _ = router.attempt(lines);
                    router.settle();
                }
            }
            router.stop();
        }
        faults.iter_mut().for_each(|fault| {
            if !fault.starts_with("--") {
                *fault = format!("-- {path}\n{fault}");
            }
        });
    }
    loader.stop();
    assert!(accepted > 500, "{accepted} spellings were accepted");
    assert!(faults.is_empty(), "{} faults of {accepted}\n{}", faults.len(), faults.join("\n"));
}

/// Writes another word in the place of the nth whole word that is `from`, in keys and texts.
fn renamed(node: &mut Node, at: &mut usize, from: &str, to: &str) -> bool {
    let mut other = |text: &str| {
        let part = |c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c);
        let found = text.split(part).scan(0, |from, word| {
            let start = *from;
            *from += word.len() + 1;
            Some((start, word))
        });
        let (start, _) = { found }.find(|(_, word)| *word == from)?;
        *at = at.checked_sub(1)?;
        (*at == 0).then(|| [&text[..start], to, &text[start + from.len()..]].concat())
    };
    match &mut node.value {
        Value::Text(text) => match other(text) {
            Some(changed) => *text = changed,
            None => return false,
        },
        Value::List(list) => return list.iter_mut().any(|part| renamed(part, at, from, to)),
        Value::Map(map) => {
            let found = map.keys().find_map(|key| Some((key.clone(), other(key)?)));
            match found {
                Some((key, changed)) => {
                    let below = map.shift_remove(&key).unwrap_or_default();
                    map.insert(changed, below);
                }
                None => return map.values_mut().any(|below| renamed(below, at, from, to)),
            }
        }
        _ => return false,
    }
    true
}

/// Commands take an interface's index and tag for its name. A document that said so would be in
/// force, and be printed with the name: it is refused, or waits for an interface of that name.
#[test]
fn documents_name_interfaces_by_their_names() {
    const TAGS: &str = "set interface tag pg0 access\nset interface tag pg1 uplink";
    let _one = ONE.lock();
    let catalog = catalog().unwrap();
    let (mut faults, mut tried_ones, mut loader) = (Vec::new(), 0, Loader::new());
    for (path, examples) in SETTERS {
        for lines in *examples {
            let mut router = Router::start();
            let prepare = |router: &mut Router| {
                router.run(PRELUDE);
                router.run(TAGS);
                let prepared = router.attempt(lines).is_ok();
                router.settle();
                prepared
            };
            if !prepare(&mut router) {
                router.stop();
                continue;
            }
            let before = router.dump();
            for (name, others) in [("pg0", ["1", "access"]), ("pg1", ["2", "uplink"])] {
                for other in others {
                    for nth in 1.. {
                        let mut root = before.root().clone();
                        if !renamed(&mut root, &mut { nth }, name, other) {
                            break;
                        }
                        let from = faults.len();
                        let is_as_before =
                            tried(&mut router, &before, root, &catalog, &mut loader, &mut faults);
                        faults[from..].iter_mut().for_each(|f| *f = format!("-- {path}\n{f}"));
                        tried_ones += 1;
                        if is_as_before == Some(false) {
                            router.restart();
                            prepare(&mut router);
                        }
                    }
                }
            }
            router.stop();
        }
    }
    loader.stop();
    assert!(tried_ones > 300, "{tried_ones} were tried");
    assert!(faults.is_empty(), "{} faults of {tried_ones}\n{}", faults.len(), faults.join("\n"));
}
