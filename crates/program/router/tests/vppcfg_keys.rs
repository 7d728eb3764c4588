//! Every key of vppcfg's schema is either understood or refused by its path: never ignored, never
//! an unknown key.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeSet, HashMap};
use thalweg_config::declare::schema::RULES;
use thalweg_config::declare::{Catalog, Document, Kind, Node, Problems, Value};
use thalweg_graph::Control;
use thalweg_program_router::configuration::catalog;

/// Every key with what may stand there.
fn keys() -> Vec<(&'static str, &'static str)> {
    let lines = include_str!("vppcfg/keys.txt").lines().filter(|l| !l.starts_with('#'));
    lines.map(|l| l.split_once('\t').unwrap_or((l, ""))).collect()
}

fn kind(path: &str) -> Kind {
    RULES.iter().find(|r| r.path == path).unwrap_or_else(|| panic!("{path}")).kind
}

/// A value as YAML reads it.
fn value(kind: Kind, text: &str) -> Value {
    match kind {
        Kind::Bool => Value::Bool(text == "true"),
        Kind::Int(..) => Value::Int(text.parse().unwrap()),
        _ => match text.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => text.into(),
        },
    }
}

/// The steps to a key with names in them.
fn steps(path: &str) -> Vec<&'static str> {
    let all: HashMap<&str, &str> = keys().into_iter().collect();
    let mut steps = Vec::new();
    let mut at = String::new();
    for step in path.split('.') {
        at = if at.is_empty() { step.into() } else { format!("{at}.{step}") };
        let (key, example) = all.get_key_value(at.as_str()).unwrap_or_else(|| panic!("{at}"));
        steps.push(match step {
            "*" => *example,
            _ => key.rsplit('.').next().unwrap(),
        });
    }
    steps
}

/// Returns the name of the place in problems.
fn place(steps: &[&str]) -> String {
    steps.join(".").replace(".[]", "[0]")
}

fn put(node: &mut Node, steps: &[&str], value: Value) {
    let Some((step, rest)) = steps.split_first() else {
        return node.value = value;
    };
    if *step != "[]" {
        return node.enter(&[step], |below| put(below, rest, value));
    }
    if !matches!(node.value, Value::List(_)) {
        node.value = Value::List(vec![Node::default()]);
    }
    if let Value::List(list) = &mut node.value {
        put(&mut list[0], rest, value);
    }
}

/// Returns objects that values refer to.
fn others() -> Node {
    let mut root = Node::default();
    for name in [["interfaces", "host-eth0"], ["interfaces", "pg1"], ["loopbacks", "loop0"]] {
        root.enter(&name, |_| ());
    }
    root
}

/// A document with something at a key, and what else must be there then.
fn document(path: &str, value_there: Value) -> Node {
    let mut root = others();
    let all: HashMap<&str, &str> = keys().into_iter().collect();
    let within = |above: &str| path == above || path.starts_with(&format!("{above}."));
    for rule in RULES.iter().filter(|r| r.required) {
        let above = rule.path.rsplit_once('.').map_or("", |(above, _)| above);
        let part = format!("{}.[]", rule.path);
        match (within(above), rule.kind) {
            (false, _) | (_, Kind::Keys) => {}
            (true, Kind::List(..)) => {
                put(&mut root, &steps(&part), value(kind(&part), all[part.as_str()]));
            }
            (true, kind) => put(&mut root, &steps(rule.path), value(kind, all[rule.path])),
        }
    }
    const TAGS: &str = "interfaces.*.sub-interfaces.*.encapsulation.";
    let outer = format!("{TAGS}dot1q");
    for (part, inner) in [
        ("taps.*", "taps.*.host.name"),
        ("acls.*", "acls.*.terms.[].action"),
        (&*format!("{TAGS}exact-match"), &*outer),
        (&format!("{TAGS}inner-dot1q"), &outer),
    ] {
        if path.starts_with(part) {
            put(&mut root, &steps(inner), value(kind(inner), all[inner]));
        }
    }
    put(&mut root, &steps(path), value_there);
    root
}

fn check(catalog: &Catalog<Control>, root: Node) -> Result<Document, Problems> {
    catalog.check("keys", root)
}

#[test]
fn the_schema_has_exactly_these() {
    let theirs: BTreeSet<&str> = keys().iter().map(|k| k.0).collect();
    let ours: BTreeSet<&str> = RULES.iter().map(|r| r.path).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn each_is_understood_or_refused_by_its_path() {
    let catalog = catalog().unwrap();
    let (mut understood, mut refused) = (0, 0);
    let without = check(&catalog, others()).unwrap();
    for (path, example) in keys() {
        let kind = kind(path);
        if matches!(kind, Kind::Keys | Kind::Named(_) | Kind::List(..)) {
            continue;
        }
        match check(&catalog, document(path, value(kind, example))) {
            Ok(document) => {
                understood += 1;
                let note = path.ends_with("description") || path.ends_with("device-type");
                let heard = document.items() != without.items();
                assert!(heard || note, "{path}: is ignored");
            }
            Err(problems) => {
                refused += 1;
                let at = place(&steps(path));
                let said = problems.list.iter().any(|p| p.unsupported && at.starts_with(&p.path));
                assert!(said, "{path}: {problems}");
                assert!(problems.to_string().contains("not supported yet: "), "{path}");
                assert!(problems.list.iter().all(|p| p.unsupported), "{path}: {problems}");
            }
        }
    }
    assert!(understood >= 15 && refused > 0, "{understood} understood, {refused} refused");
}

#[test]
fn what_is_wrong_there_is_told_by_path() {
    let catalog = catalog().unwrap();
    for (path, _) in keys() {
        let steps = steps(path);
        let wrong: Value = match kind(path) {
            Kind::Keys | Kind::Named(_) => "a text".into(),
            _ => Value::Map([("x".to_owned(), Node::from(1_u32))].into_iter().collect()),
        };
        let error = check(&catalog, document(path, wrong)).unwrap_err().to_string();
        let at = place(&steps);
        let named =
            error.lines().any(|l| l.contains(&format!("{at}: ")) && l.contains(" expected"));
        assert!(named, "{path}: {error}");
        if matches!(kind(path), Kind::Keys) {
            let with = [&steps[..], &["nonsense"]].concat();
            let mut root = document(path, Value::Map(Default::default()));
            put(&mut root, &with, true.into());
            let error = check(&catalog, root).unwrap_err().to_string();
            assert!(error.contains(&format!("{at}.nonsense: unknown key")), "{path}: {error}");
        }
    }
}

/// Names and notes as in vppcfg's own examples: what it accepts is at most not supported.
#[test]
fn what_vppcfg_accepts_is_not_called_wrong() {
    let text = format!(
        "interfaces:\n  host-eth0:\n    description: {}\n    lcp: ice0\n    sub-interfaces:\n      \
         1234: {{mtu: 1500, lcp: \"ice0.1234\", description: q-in-q}}\n",
        "a long note ".repeat(10)
    );
    if let Err(problems) = catalog().unwrap().read("example.yaml", &text) {
        assert!(problems.list.iter().all(|p| p.unsupported), "{problems}");
    }
    let wrong = |value: &str| {
        let text = format!("interfaces:\n  host-eth0: {{{value}}}\n");
        catalog().unwrap().read("f", &text).unwrap_err().to_string()
    };
    let text = wrong("mtu: \"1500\"");
    assert!(text.contains("a whole number from 128 to 9216 without quotes expected"), "{text}");
    let text = wrong("sflow: \"true\"");
    assert!(text.contains("true or false without quotes expected"), "{text}");
}
