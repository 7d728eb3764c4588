//! `docs/vpp-differences.md` is right: each word that it calls the same parses and succeeds, each
//! that has nothing to show says so in one line and succeeds, and none is missing.

#![allow(clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use thalweg_cli::CommandTree;
use thalweg_device::testing::Lab;
use thalweg_graph::Control;
use thalweg_program_router::vpp::WORDS;

const PAGE: &str = include_str!("../../../../docs/vpp-differences.md");

/// Objects that the words of the page work on.
const PRELUDE: &str = "
    set interface ip address test0 10.0.0.1/24
    set interface ip address test1 203.0.113.1/24
    create bridge-domain 10
    set interface l2 bridge test2 10
    nat44 plugin enable
    set interface nat44 in test0 out test1
    nat44 add address 203.0.113.9
    set ip neighbor test0 10.0.0.2 02:00:00:00:00:02 static
    ip route add 10.9.0.0/16 via 10.0.0.2 via 10.0.0.3
    ip route add 10.8.0.0/16 via 10.0.0.2
    create packet-generator interface pg0";

/// Rows of a section's table: the commands in the first column, and the other columns.
fn rows(section: &str) -> Vec<(Vec<&str>, Vec<&str>)> {
    let heading = format!("\n## {section}\n");
    let (_, rest) = PAGE.split_once(heading.as_str()).expect("the section");
    let text = rest.split("\n## ").next().unwrap_or_default();
    let lines = text.lines().filter(|l| l.starts_with("| `"));
    let row = |line: &'static str| {
        // A bar within a span of code is written as `\|`.
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let spans = cells[0].split('`').skip(1).step_by(2).collect();
        (spans, cells[1..].to_vec())
    };
    lines.map(row).collect()
}

struct Router(Lab, CommandTree<Control>);

impl Router {
    fn new() -> Router {
        let lab = Lab::of_all(thalweg_program_router::features::FEATURES).start();
        let tree = thalweg_engine::command_tree(&lab.c).expect("a tree");
        let mut router = Router(lab, tree);
        for line in PRELUDE.lines().filter(|line| !line.trim().is_empty()) {
            let (text, done) = router.run(line);
            assert!(done, "{line}: {text}");
        }
        router
    }

    /// Runs a command; its output with its error, and whether it succeeded.
    fn run(&mut self, line: &str) -> (String, bool) {
        let (text, end) = self.1.run_line(&mut self.0.c, line.trim());
        match end {
            Ok(_) => (text, true),
            Err(error) => (format!("{text}{error}"), false),
        }
    }
}

#[test]
fn words_that_are_the_same_succeed() {
    let (mut router, mut n, mut wrong) = (Router::new(), 0, Vec::new());
    for (words, _) in rows("Same") {
        for word in words {
            let (text, done) = router.run(word);
            if !done {
                wrong.push(format!("{word}\n{text}"));
            }
            n += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n > 80, "{n} words");
    router.0.c.shut_down();
}

#[test]
fn words_that_differ_are_commands() {
    let (mut router, mut n, mut wrong) = (Router::new(), 0, Vec::new());
    for (words, cells) in rows("Different") {
        assert!(cells.first().is_some_and(|how| how.len() > 10), "{words:?} says how");
        for word in words {
            let (text, _) = router.run(word);
            let signs = ["unknown input", "ambiguous input", "unexpected ", "expected "];
            if signs.iter().any(|sign| text.contains(sign)) {
                wrong.push(format!("{word}\n{text}"));
            }
            n += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n > 10, "{n} words");
    router.0.c.shut_down();
}

#[test]
fn words_without_figures_say_why_in_one_line() {
    let (mut router, mut listed) = (Router::new(), BTreeSet::new());
    for (words, cells) in rows("Nothing to show") {
        for word in words {
            let entry = WORDS.iter().find(|entry| entry.path == word);
            let entry = entry.unwrap_or_else(|| panic!("`{word}' is not among the words"));
            let (text, done) = router.run(word);
            assert!(done && text == format!("{}\n", entry.why), "{word}\n{text}");
            let (json, _) = router.run(&format!("{word} | json"));
            assert!(json.starts_with("{\"nothing\":"), "{word}\n{json}");
            assert_eq!(cells[0], entry.why, "{word}");
            listed.insert(word);
        }
    }
    let all: BTreeSet<&str> = WORDS.iter().map(|entry| entry.path).collect();
    assert_eq!(listed, all, "the page lists each word once");
    router.0.c.shut_down();
}

/// The page's rows on names that VPP's users look for are true.
#[test]
fn nodes_and_counters_of_the_page_exist() {
    let mut router = Router::new();
    let names: Vec<String> = router.0.c.nodes().iter().map(|n| n.name.to_string()).collect();
    let mut n = 0;
    for (words, cells) in rows("Nodes and counters") {
        for twin in cells[0].split('`').skip(1).step_by(2) {
            let is_node = names.iter().any(|name| name == twin);
            let is_command = twin.starts_with("show ") && router.run(twin).1;
            let is_row = twin == "main-loop" && router.run("show runtime verbose").0.contains(twin);
            assert!(is_node || is_command || is_row, "{words:?}: `{twin}'");
            n += 1;
        }
    }
    assert!(n >= 4, "{n} twins");
    router.0.c.shut_down();
}

/// Words of VPP's that have nothing to show get in nobody's way.
#[test]
fn abbreviations_mean_what_they_meant() {
    let mut router = Router::new();
    for (short, part) in [
        ("sh int", "local0"),
        ("show err", "Count"),
        ("show run", "Thread 0"),
        ("show hard", "Name"),
        ("show l2f", ""),
        ("show log", ""),
        ("show adj", "[@"),
        ("cl run", ""),
        ("show ev", "there is no event log"),
    ] {
        let (text, done) = router.run(short);
        assert!(done && text.contains(part), "{short}\n{text}");
    }
    let (text, _) = router.run("help show");
    assert!(!text.contains("vmxnet3"), "{text}");
    router.0.c.shut_down();
}
