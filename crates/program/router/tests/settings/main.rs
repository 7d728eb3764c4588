//! The configuration shows all that commands set, and a router made from it has all of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod full;
mod large;
mod loader;
mod numbers;
mod orders;
mod ranges;
mod router;
mod setters;
mod shown;
mod spellings;
mod waits;
mod watchdog;
mod whole;

use router::{ONE, Router, same};
use setters::{ACTIONS, PRELUDE, SETTERS, WITH_A_DEVICE};
use std::collections::BTreeSet;
use thalweg_config::declare::{Document, diff};
use thalweg_engine::commands;
use thalweg_feat_config::manager;
use thalweg_testkit::sized;

#[test]
fn every_command_is_a_setter_or_an_action() {
    let _one = ONE.lock();
    let router = Router::start();
    let setters: BTreeSet<&str> = SETTERS.iter().map(|s| s.0).collect();
    for command in commands(&router.c) {
        let path = command.path();
        let action = ACTIONS.iter().any(|(a, _)| path.starts_with(a));
        let known = setters.contains(path) || WITH_A_DEVICE.contains(&path) || action;
        assert!(
            known,
            "`{path}': does it set something? Then have a section dump it, and put it into SETTERS; \
             else put it into ACTIONS"
        );
    }
    router.stop();
}

/// Proof that a command does its work if it has nothing to dump.
enum Proof {
    /// The second line changes what the third shows, after the first line.
    Shows(&'static str, &'static str, &'static str),
    /// A line that would change anything is refused, as the first line is.
    Refuses(&'static str),
}

const EFFECTS: &[(&str, Proof)] = &[
    (
        "set trace timestamp-format",
        Proof::Shows("", "set trace timestamp-format unix", "show trace timestamp-format"),
    ),
    ("set clock adjust", Proof::Shows("", "set clock adjust 0.001", "set clock adjust 0")),
    (
        "set ip neighbor-advertise",
        Proof::Shows(
            "set interface ip address pg0 10.0.0.1/24\nset interface state pg0 up",
            "set ip neighbor-advertise pg0",
            "show interface pg0",
        ),
    ),
    ("set interface l2 tag-rewrite", Proof::Refuses("set interface l2 tag-rewrite pg0 pop 1")),
    ("set nat frame-queue-nelts", Proof::Refuses("set nat frame-queue-nelts 7")),
];

/// No word that sets, creates or deletes is accepted and ignored: what it changes is dumped, which
/// `what_is_set_is_dumped_and_comes_back` tries, or seen here.
#[test]
fn nothing_that_sets_is_without_effect() {
    let _one = ONE.lock();
    let router = Router::start();
    let setters: BTreeSet<&str> = SETTERS.iter().map(|s| s.0).collect();
    let sets = ["set", "create", "delete", "del", "add"];
    for command in commands(&router.c) {
        let path = command.path();
        let is_one = path.split(' ').any(|word| sets.contains(&word));
        let tried = setters.contains(path) || WITH_A_DEVICE.contains(&path);
        // Sessions, streams and traces begin and end with packets.
        let of_packets = ["nat44 del session", "packet-generator delete", "trace add"];
        let known = EFFECTS.iter().any(|(of, _)| *of == path) || of_packets.contains(&path);
        assert!(!is_one || tried || known, "`{path}': what does it change? Put it into EFFECTS");
    }
    router.stop();
    for (path, proof) in EFFECTS {
        let mut router = Router::start();
        router.run(PRELUDE);
        match proof {
            Proof::Shows(first, line, shown) => {
                for line in first.lines() {
                    router.run(line);
                }
                let before = router.run(shown);
                router.run(line);
                // A worker's action is seen when it is done.
                router.c.sync();
                router.c.sync();
                assert_ne!(before, router.run(shown), "{path}");
            }
            Proof::Refuses(line) => {
                let (_, end) = router.tree.run_line(&mut router.c, line);
                assert!(end.is_err(), "{line}");
            }
        }
        router.stop();
    }
}

/// Setters that need a device are tried by a scenario with one: dumped, and back from the dump.
#[test]
fn setters_of_devices_are_in_the_scenario_of_documents() {
    let scenario = include_str!("../../../../../tests/smoke/tests/configuration.rs");
    for path in WITH_A_DEVICE {
        assert!(scenario.contains(path), "`{path}': put it into a_document_makes_a_router");
    }
}

/// Words that take back, or repeat a default: they are typed on the way back.
const BACK: &[&str] = &[
    "all",
    "default",
    "del",
    "disable",
    "down",
    "enable",
    "ethernet",
    "none",
    "norecycle",
    "off",
    "recycle",
    "refuse",
    "reset",
];

/// Words of usages that no example needs, and why.
const UNTOLD: &[(&str, &str, &str)] = &[
    ("create packet-generator interface", "ip6", "interfaces of IPv6 packets are not there yet"),
    ("flow add", "file", "has lines as they are typed"),
    ("nat44 save", "never", "is so anyway"),
    ("sflow direction", "rx", "is so anyway"),
    ("sflow uuid", "machine", "is so anyway"),
];

/// The literal words of a usage text.
fn literals(usage: &str) -> BTreeSet<String> {
    let mut within = false;
    let typed = usage.chars().filter(|c| {
        let before = within;
        within = *c == '<' || within && *c != '>';
        !before
    });
    let typed: String = typed.collect();
    let split = |c: char| c.is_whitespace() || "|[](){},:'\"=".contains(c);
    let words = typed.split(split).filter(|w| w.starts_with(|c: char| c.is_ascii_alphabetic()));
    // `pg<n>` is none.
    words.filter(|w| !w.contains('<')).map(str::to_owned).collect()
}

#[test]
fn examples_have_every_word_of_the_setters() {
    let _one = ONE.lock();
    let router = Router::start();
    let mut untold = Vec::new();
    for command in commands(&router.c) {
        let Some((path, examples)) = SETTERS.iter().find(|s| s.0 == command.path()) else {
            continue;
        };
        let tried: BTreeSet<String> = examples.iter().flat_map(|e| literals(e)).collect();
        for word in literals(command.usage()) {
            let known = UNTOLD.iter().any(|(p, w, _)| (p, w) == (path, &word.as_str()));
            if !tried.contains(&word) && !known && !BACK.contains(&word.as_str()) {
                untold.push(format!("{path}: {word}"));
            }
        }
    }
    router.stop();
    let why = "no example has these words: add one, or put them into UNTOLD";
    assert!(untold.is_empty(), "{why}:\n{}", untold.join("\n"));
}

#[test]
fn what_is_set_is_dumped_and_comes_back() {
    let _one = ONE.lock();
    // In a long run each example has routers of its own.
    let (mut first, mut second) = (Router::start(), Router::start());
    let empty = Document::default();
    for (path, examples) in SETTERS {
        for example in *examples {
            let what = format!("{path}: {example}");
            if sized(false, true) {
                [&mut first, &mut second].into_iter().for_each(Router::restart);
            }
            first.run(PRELUDE);
            let before = first.dump();
            first.run(example);
            let set = first.dump();
            assert!(!diff(before.root(), set.root()).is_empty(), "{what}: is not dumped");

            let plan = first.run("show configuration commands");

            // All of it can be taken back.
            first.become_(&before);
            same(&before, &first.dump(), &format!("{what}: taken back"));
            first.become_(&set);
            same(&set, &first.dump(), &format!("{what}: once more"));
            first.become_(&empty);
            same(&empty, &first.dump(), &format!("{what}: emptied"));

            // Another begins where the first has ended, as a path has room for one socket.
            second.become_(&set);
            same(&set, &second.dump(), &what);
            assert_eq!(plan, second.run("show configuration commands"), "{what}");
            second.become_(&empty);
        }
    }
    [first, second].into_iter().for_each(Router::stop);
}

#[test]
fn all_at_once_shows_the_same() {
    let _one = ONE.lock();
    let all = "
        ip table add 7
        set interface ip table pg1 7
        set interface ip address pg0 10.0.0.1/24
        set interface ip address pg1 10.0.0.1/24
        set interface ip address loop3 10.255.0.1/32
        set ip neighbor pg0 10.0.0.2 02:00:00:00:00:02 static
        ip route add 10.9.0.0/16 via 10.0.0.2
        ip route add 10.9.0.0/16 table 7 via 10.0.0.2 pg1
        set interface mtu 1500 pg0
        set interface state loop3 up
        sflow sampling-rate 100
        sflow enable-disable pg0
        create sink interface";
    let mut first = Router::start();
    first.run(PRELUDE);
    first.run(all);
    let mut second = Router::start();
    second.become_(&first.dump());
    assert_eq!(first.show(), second.show());
    // The commands alone do it, too.
    let commands = first.run("show configuration commands");
    let mut third = Router::start();
    third.run(&commands);
    same(&first.dump(), &third.dump(), "commands");
    [first, second, third].into_iter().for_each(Router::stop);
}

/// A removal whose subject has gone with something before it has been done.
#[test]
fn what_goes_with_something_else_is_removed() {
    for lines in [
        "set interface state pg0 up\nset interface ip address pg0 10.0.0.1/24\n\
         set ip neighbor pg0 10.0.0.2 02:00:00:00:00:02",
        "mpls tunnel add l2-only via 10.0.0.2 pg0 out-labels 33\ncreate sub-interfaces mpls-tunnel0 10",
    ] {
        let _one = ONE.lock();
        let mut router = Router::start();
        let empty = router.dump();
        router.run(PRELUDE);
        if router.attempt(lines).is_ok() {
            router.become_(&empty);
            same(&empty, &router.dump(), lines);
        }
        router.stop();
    }
}

/// A document says what is set, and not how often: what was typed twice goes at once.
#[test]
fn what_is_set_twice_goes_at_once() {
    let _one = ONE.lock();
    let mut wrong = Vec::new();
    let mut router = Router::prepared();
    let nothing = router.dump();
    for example in SETTERS.iter().flat_map(|(_, examples)| examples.iter()) {
        for line in example.lines().chain(example.lines()) {
            let _ = router.attempt(line.trim());
        }
        let file = router.dir.path().join("a.yaml");
        std::fs::write(&file, nothing.to_yaml().unwrap()).unwrap();
        if let Err(e) = router.attempt(&format!("config apply {}", file.display())) {
            wrong.push(format!("{example}: {e}"));
            router.restart();
            router.run(crate::setters::PRELUDE);
        }
    }
    router.stop();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_that_fails_leaves_all_as_it_was() {
    let _one = ONE.lock();
    let mut router = Router::start();
    router.run(PRELUDE);
    router.run("set interface ip address pg0 10.0.0.1/24\nset interface state pg0 up");
    let before = router.dump();
    let file = router.dir.path().join("bad.yaml");
    // The device does not exist.
    let text = "
interfaces:
  pg0: {addresses: [10.0.7.1/24], mtu: 1400}
  host-nosuchdevice: {mtu: 1500}
loopbacks:
  loop8: {addresses: [10.0.8.1/24]}
";
    std::fs::write(&file, text).unwrap();
    let line = format!("config apply {}", file.display());
    let (out, end) = router.tree.run_line(&mut router.c, &line);
    let error = end.unwrap_err().to_string();
    assert!(out.contains("delete packet-generator interface pg1"), "{out}");
    assert!(error.contains("interfaces.host-nosuchdevice: `create host-interface name"), "{error}");
    assert!(error.contains("Rolled back to the previous configuration."), "{error}");
    same(&before, &router.dump(), "rolled back");
    router.stop();
}

#[test]
fn vppcfgs_mark_stays_where_a_document_does_not_speak_of_it() {
    let _one = ONE.lock();
    let mut router = Router::start();
    let before = router.dump();
    router.run("create packet-generator interface pg0\nset interface state pg0 up");
    let file = router.dir.path().join("a.yaml");
    std::fs::write(&file, "interfaces:\n  pg0: {mtu: 9000}\n").unwrap();
    router.run("set interface tag pg0 vppcfg");
    assert_eq!(router.apply(&file), "nothing to do\napplied and verified: 0 commands\n");
    assert!(router.run("show configuration").contains("tag: vppcfg"));
    router.run("set interface tag pg0 other");
    assert!(router.apply(&file).contains("clear interface tag pg0"));
    router.become_(&before);
    router.stop();
}

/// Sessions are restored before the first packet, and not before what they need.
#[test]
fn a_document_restores_sessions_of_nat44_before_interfaces_are_up() {
    let _one = ONE.lock();
    let mut router = Router::start();
    let file = router.dir.path().join("a.yaml");
    let text = "
interfaces:
  pg0: {addresses: [10.0.7.1/24]}
  pg1: {addresses: [10.0.8.1/24]}
thalweg:
  nat44:
    save: {file: /tmp/no-such-sessions, every: 60}
    addresses: [192.0.2.1]
    static-mappings: [tcp local 10.0.7.9 80 external 192.0.2.1 80]
  interfaces:
    pg0: {nat44: in}
    pg1: {nat44: out, nat44-address: pool}
";
    std::fs::write(&file, text).unwrap();
    let plan = router.run(&format!("config plan {}", file.display()));
    let at = |word: &str| plan.lines().position(|l| l.contains(word)).expect(word);
    let save = at("nat44 save /tmp/no-such-sessions every 60 restore");
    let before =
        ["add address", "static mapping", "interface address pg1", "nat44 in", "nat44 out"];
    assert!(before.iter().all(|word| at(word) < save), "{plan}");
    assert!(at("set interface state pg0 up") > save, "{plan}");
    router.apply(&file);
    assert!(router.run("show configuration").contains("no-such-sessions"));
    router.stop();
}

#[test]
fn notes_for_people_are_kept() {
    let _one = ONE.lock();
    let mut router = Router::start();
    let file = router.dir.path().join("a.yaml");
    std::fs::write(&file, "interfaces:\n  pg0: {description: to the north}\n").unwrap();
    router.apply(&file);
    assert!(router.run("show configuration").contains("description: to the north"));
    router.stop();
}

#[test]
fn revisions_are_saved_and_come_back() {
    let _one = ONE.lock();
    let mut router = Router::start();
    let file = router.dir.path().join("thalweg.yaml");
    let fails = |router: &mut Router, line: &str| {
        router.tree.run_line(&mut router.c, line).1.unwrap_err().to_string()
    };
    assert!(fails(&mut router, "config save").contains("no file: name one"));
    manager::keep_in(&mut router.c, thalweg_feat_config::store::Store::new(&file));
    assert!(fails(&mut router, "config diff").contains("nothing has been saved yet"));
    router.run("create loopback interface instance 1\nconfig save");
    router.run("set interface ip address loop1 10.0.0.1/32");
    assert_eq!(router.run("config diff"), "+ loopbacks.loop1.addresses: - 10.0.0.1/32\n");
    assert_eq!(router.run("config commit"), "saved\n");
    assert_eq!(router.run("config commit"), "already saved\n");
    assert_eq!(router.run("config diff"), "");
    router.run("config rollback 1");
    assert!(!router.run("show configuration").contains("10.0.0.1"));
    assert_eq!(router.run("config diff"), "- loopbacks.loop1.addresses: - 10.0.0.1/32\n");
    router.run("config rollback 0");
    assert!(router.run("show configuration").contains("10.0.0.1"));
    assert!(fails(&mut router, "config rollback 2").contains("no revision 2"));
    let listed = router.run("show configuration revisions | json");
    assert!(listed.contains("\"rollback\":1"), "{listed}");
    // A file that is edited by hand is 0, and precedes the revisions.
    let edited = "
loopbacks: {loop1: {mtu: 9000}}
thalweg: {interfaces: {loop1: {state: down}}}
";
    std::fs::write(&file, edited).unwrap();
    let listed = router.run("show configuration revisions");
    assert!(listed.contains("the file itself, edited by hand"), "{listed}");
    let row = |n: &str| listed.lines().find(|l| l.trim_start().starts_with(n)).unwrap();
    assert!(row("1 ").contains("000002.yaml") && row("2 ").contains("000001.yaml"), "{listed}");
    router.run("config rollback 1");
    assert!(router.run("show configuration").contains("10.0.0.1"));
    // The file does not name the MAC address, which is no difference.
    assert_eq!(router.run("config diff"), "+ loopbacks.loop1.addresses: - 10.0.0.1/32\n");
    // The last revision is 0 if there is no file.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(router.run("config diff"), "");
    assert!(router.run("config rollback 0").contains("nothing to do"));
    router.stop();
}

#[test]
fn behind_apply_nothing_differs_from_the_file() {
    let _one = ONE.lock();
    let mut router = Router::start();
    let before = router.dump();
    let file = router.dir.path().join("a.yaml");
    let text = "
interfaces:
  pg0: {addresses: [10.0.7.1/24], description: to the north}
  pg1: {mtu: 9000, state: down}
loopbacks:
  loop8: {}
thalweg:
  nat44: {sessions: 1000}
  interfaces:
    pg0: {nat44: in}
";
    std::fs::write(&file, text).unwrap();
    router.apply(&file);
    let diff = format!("config diff {}", file.display());
    assert_eq!(router.run(&diff), "");
    assert_eq!(router.run(&format!("{diff} | json")), "[]\n");
    router.run("set interface mtu packet 1400 pg0");
    assert_eq!(router.run(&diff), "+ interfaces.pg0.mtu: 1400\n");
    router.run("set interface mtu packet 1500 pg0\nset interface state pg1 up");
    let lines = router.run(&diff);
    assert!(lines.contains("- interfaces.pg1.state: down") && !lines.contains("pg0"), "{lines}");
    router.become_(&before);
    router.stop();
}

#[test]
fn what_nobody_confirms_is_taken_back() {
    use std::time::{Duration, Instant};
    let _one = ONE.lock();
    let mut router = Router::start();
    let file = router.dir.path().join("thalweg.yaml");
    manager::keep_in(&mut router.c, thalweg_feat_config::store::Store::new(&file));
    router.run("create loopback interface instance 1\nconfig save");
    let saved = router.dump();
    let wait = |router: &mut Router, until: &dyn Fn(&Router) -> bool| {
        let end = Instant::now() + thalweg_testkit::WAIT_LIMIT;
        while !until(router) {
            assert!(Instant::now() < end, "nothing was taken back");
            router.c.run_once(Some(Duration::from_millis(10)));
        }
    };
    // Announced, then typed. The change to roll back does not get into the file meanwhile.
    router.run("config commit confirm 1\nset interface ip address loop1 10.0.0.1/32");
    let text = std::fs::read(&file).unwrap();
    for line in ["config save".to_owned(), format!("config save {}", file.display())] {
        let refused = router.attempt(&line).unwrap_err().to_string();
        assert!(refused.contains("waiting for confirmation: `config commit'"), "{refused}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), text);
    router.run(&format!("config save {}", router.dir.path().join("other.yaml").display()));
    let typed = router.dump();
    wait(&mut router, &|r| manager::is_idle(&r.c) && r.dump().root() == saved.root());
    // Applied.
    std::fs::write(&file, typed.to_yaml().unwrap()).unwrap();
    router.run("config apply confirm 1");
    same(&typed, &router.dump(), "applied");
    wait(&mut router, &|r| manager::is_idle(&r.c) && r.dump().root() == saved.root());
    // Confirmed.
    router.run("config apply confirm 1");
    assert!(router.run("config commit").starts_with("confirmed\n"));
    let end = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < end {
        router.c.run_once(Some(Duration::from_millis(50)));
    }
    same(&typed, &router.dump(), "confirmed");
    router.stop();
}
