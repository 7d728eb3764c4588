//! Applying, confirming, committing and rolling back: whole or not at all.

use crate::router::{ONE, Router, same};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use thalweg_cli::{Execution, Progress, Script};
use thalweg_config::declare::Document;
use thalweg_device::loopback;
use thalweg_feat_config::manager::is_idle;
use thalweg_feat_config::{apply_at_start, manager, store::Store};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_program_router::configuration::catalog;

/// A router with a file of its own.
fn with_file() -> (Router, PathBuf) {
    let router = Router::start();
    let file = router.dir.path().join("thalweg.yaml");
    let mut router = router;
    manager::keep_in(&mut router.c, Store::new(&file));
    (router, file)
}

pub fn wait(router: &mut Router, what: &str, until: impl Fn(&mut Router) -> bool) {
    let end = Instant::now() + thalweg_testkit::WAIT_LIMIT;
    while !until(router) {
        assert!(Instant::now() < end, "never came: {what}");
        router.c.run_once(Some(Duration::from_millis(10)));
    }
}

fn error(router: &mut Router, line: &str) -> String {
    router.attempt(line).unwrap_err().to_string()
}

/// Starts with a document, as `thalweg run --config` does.
pub fn start_with(router: &mut Router, text: &str) {
    let (document, wrong) = catalog().unwrap().load("thalweg.yaml", text).unwrap();
    let done = std::rc::Rc::new(std::cell::Cell::new(false));
    let seen = done.clone();
    apply_at_start(&mut router.c, document, wrong, move |_: &mut Control, _| seen.set(true));
    wait(router, "the start", |_| done.get());
}

#[test]
fn what_is_not_confirmed_goes_back_whatever_was_typed() {
    let _one = ONE.lock();
    let (mut router, _) = with_file();
    router.run("create loopback interface\nconfig commit");
    let saved = router.dump();
    router.run("config commit confirm 1\nset interface state loop0 down");
    // A value that no document could have must not keep all from going back.
    let refused = error(&mut router, "create loopback interface mac 01:00:5e:00:00:01");
    assert!(refused.contains("not a unicast MAC address"), "{refused}");
    router.run("create loopback interface");
    wait(&mut router, "the rollback", |r| r.dump().root() == saved.root());
    wait(&mut router, "its end", |r| {
        !r.run("show configuration revisions").contains("waiting for")
    });
    router.stop();
}

const DAMAGED: &str = "\
interfaces:
  pg0: {mtu: 1400, addresses: [10.0.0.1/24, 10.0.0.300/24]}
  pg1: {mtu: 7}
  host-nosuchdevice: {addresses: [10.5.0.1/24], mtu: 1500}
loopbacks:
  loop0: {addresses: [10.255.0.1/32]}
vxlan_tunnels: {vxlan_tunnel0: {local: 192.0.2.1, remote: 192.0.2.2, vni: 7}}
thalweg:
  interfaces:
    host-nosuchdevice: {version: v3, index: 9}
  ip-tables:
    0: {routes: {10.9.0.0/16: [10.0.0.2 pg0, 10.6.0.2 host-elsewhere], 10.8.0.0/16: nonsense-}}
  nonsense: 7
";

#[test]
fn a_document_always_loads_and_nothing_of_it_is_lost() {
    let _one = ONE.lock();
    let (mut router, file) = with_file();
    start_with(&mut router, DAMAGED);
    let shown = router.run("show interface address\nshow ip fib");
    assert!(shown.contains("L3 10.0.0.1/24") && shown.contains("L3 10.255.0.1/32"), "{shown}");
    assert!(shown.contains("10.9.0.0/16"), "one path of two is there: {shown}");
    let unresolved = router.run("show configuration unresolved");
    for part in [
        "interfaces.pg0.addresses[1]: failed: an address with its length",
        "interfaces.pg1.mtu: failed: a whole number from 128 to 9216 expected, not `7'",
        "interfaces.host-nosuchdevice: unresolved: `create host-interface",
        "thalweg.interfaces.host-nosuchdevice: unresolved: `create host-interface",
        "vxlan_tunnels.vxlan_tunnel0: failed: not supported yet",
        "thalweg.nonsense: failed: unknown key",
        "10.9.0.0/16[1]: unresolved: there is no interface `host-elsewhere' in this document",
        "10.8.0.0/16: ",
    ] {
        assert!(unresolved.contains(part), "{part}:\n{unresolved}");
    }
    // All of it is saved, and comes back the same.
    assert!(router.run("config commit").starts_with("saved\n"));
    let text = fs::read_to_string(&file).unwrap();
    for part in [
        "10.0.0.300/24",
        "host-nosuchdevice",
        "v3",
        "vxlan_tunnel0",
        "host-elsewhere",
        "nonsense: 7",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert_eq!(router.run("config diff"), "");
    let first = router.dump();
    let mut second = Router::start();
    start_with(&mut second, &text);
    same(&first, &second.dump(), "the second start");
    second.stop();

    // Strictly, no part of it is taken.
    let wrong = catalog().unwrap().read("f.yaml", DAMAGED).unwrap_err().to_string();
    assert!(wrong.contains("f.yaml:3:14: interfaces.pg1.mtu: "), "{wrong}");
    let refused = error(&mut router, "config apply");
    assert!(refused.contains("interfaces.pg1.mtu"), "{refused}");
    // Best effort takes the document, and its unresolved part can be forgotten.
    assert!(router.run("config apply best-effort").contains("unresolved"));
    router.run("clear configuration unresolved interfaces.host-nosuchdevice");
    assert!(!router.run("show configuration").contains("interfaces:\n  host-nosuchdevice"));
    router.run("clear configuration unresolved");
    assert!(router.run("show configuration unresolved").contains("all of the configuration"));
    router.stop();
}

/// A file for sessions needs an interval, and the interval a file.
#[test]
fn half_of_a_setting_is_refused() {
    for (half, other) in [("file: /tmp/sessions", "every"), ("every: 5", "file")] {
        let text = format!("thalweg: {{nat44: {{save: {{{half}}}}}}}");
        let problems = catalog().unwrap().read("a.yaml", &text).unwrap_err().to_string();
        assert!(problems.contains(&format!("`{other}' is missing")), "{problems}");
    }
}

#[test]
fn what_is_missing_comes_when_it_can() {
    let _one = ONE.lock();
    let mut router = Router::start();
    start_with(
        &mut router,
        "thalweg:\n  ip-tables:\n    0: {routes: {10.9.0.0/16: pg7, 10.8.0.0/16: pg8}}\n",
    );
    assert!(!router.run("show ip fib").contains("10.9.0.0/16"));
    router.run("create packet-generator interface pg7");
    wait(&mut router, "the route", |r| r.run("show ip fib").contains("10.9.0.0/16"));
    wait(&mut router, "one unresolved", |r| {
        let left = r.run("show configuration unresolved");
        left.contains("10.8.0.0/16") && !left.contains("10.9.0.0/16")
    });
    router.stop();
}

#[test]
fn a_revision_with_something_missing_comes_back_as_far_as_it_can() {
    let _one = ONE.lock();
    let (mut router, file) = with_file();
    router.run("create loopback interface instance 1");
    fs::write(&file, "loopbacks: {loop2: {}}\ninterfaces: {host-nosuchdevice: {}}\n").unwrap();
    let text = router.run("config rollback 0");
    assert!(text.contains("1 unresolved"), "{text}");
    let now = router.run("show configuration");
    assert!(now.contains("loop2") && !now.contains("loop1"), "{now}");
    assert!(now.contains("host-nosuchdevice"), "{now}");
    router.stop();
}

fn index(router: &mut Router, name: &str) -> u64 {
    let shown = router.run("show interface | json");
    let all: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let list = all.as_array().unwrap_or_else(|| panic!("{shown}"));
    let one = list.iter().find(|i| i["name"] == name).unwrap_or_else(|| panic!("{name}: {shown}"));
    one["index"].as_u64().unwrap_or_else(|| panic!("{shown}"))
}

#[test]
fn indices_are_part_of_what_is_restored() {
    let _one = ONE.lock();
    let mut router = Router::start();
    router.run("create loopback interface instance 1\ncreate loopback interface instance 2");
    let before = router.dump();
    let file = router.dir.path().join("bad.yaml");
    let text = "
loopbacks: {loop1: {}, loop2: {}, loop3: {}}
interfaces: {host-nosuchdevice: {}}
thalweg: {interfaces: {loop1: {index: 9}, loop3: {index: 1}, host-nosuchdevice: {index: 7}}}
";
    fs::write(&file, text).unwrap();
    let refused = error(&mut router, &format!("config apply {}", file.display()));
    assert!(refused.contains("Rolled back to the previous configuration."), "{refused}");
    same(&before, &router.dump(), "rolled back");
    assert_eq!((index(&mut router, "loop1"), index(&mut router, "loop2")), (1, 2));
    // No index stays reserved.
    router.run("create loopback interface instance 3");
    assert_eq!(index(&mut router, "loop3"), 3);
    router.stop();
}

/// Interfaces that a document removes before a command of it fails.
#[test]
fn indices_of_what_was_removed_are_restored() {
    let _one = ONE.lock();
    let mut router = Router::start();
    router.run("create packet-generator interface pg0");
    for id in [30, 10, 20] {
        router.run(&format!("create sub-interfaces pg0 {id}"));
    }
    let before = router.dump();
    let file = router.dir.path().join("bad.yaml");
    fs::write(&file, "interfaces: {pg0: {}, host-nosuchdevice: {}}\nloopbacks: {loop1: {}}\n")
        .unwrap();
    let refused = error(&mut router, &format!("config apply {}", file.display()));
    assert!(refused.contains("Rolled back to the previous configuration."), "{refused}");
    same(&before, &router.dump(), "rolled back");
    let of = |router: &mut Router, id| index(router, &format!("pg0.{id}"));
    assert_eq!([30, 10, 20].map(|id| of(&mut router, id)), [2, 3, 4]);
    router.stop();
}

#[test]
fn indices_that_others_took_are_given_back() {
    let _one = ONE.lock();
    let (mut router, _) = with_file();
    router.run(
        "create loopback interface instance 2\ncreate loopback interface instance 1\n\
         create loopback interface instance 5\nconfig commit",
    );
    assert_eq!((index(&mut router, "loop2"), index(&mut router, "loop1")), (1, 2));
    let saved = router.dump();
    router.run(
        "delete loopback interface intfc loop2\ndelete loopback interface intfc loop1\n\
         create loopback interface instance 1\ncreate loopback interface instance 2",
    );
    assert_eq!((index(&mut router, "loop2"), index(&mut router, "loop1")), (2, 1));
    router.run("config rollback 0");
    assert_eq!((index(&mut router, "loop2"), index(&mut router, "loop1")), (1, 2));
    same(&saved, &router.dump(), "rolled back");
    router.stop();
}

/// An interface whose device comes late has another index than it would have had. A file that a
/// person wrote leaves that open.
#[test]
fn an_index_that_nobody_asked_for_is_no_difference() {
    let _one = ONE.lock();
    let (mut router, file) = with_file();
    let early = "interfaces: {pg0: {}}\nloopbacks: {loop0: {}}\n";
    fs::write(&file, early).unwrap();
    router.run("config apply");
    fs::write(&file, early.replace("pg0: {}", "pg0: {}, pg1: {}")).unwrap();
    router.run("config apply");
    assert_eq!(["pg0", "loop0", "pg1"].map(|name| index(&mut router, name)), [1, 2, 3]);
    assert_eq!(router.run("config diff"), "");
    assert!(router.run("config rollback 0").contains("nothing to do"));
    // A text of the router's own says it.
    router.run("config commit\ndelete packet-generator interface pg1");
    assert!(router.run("config diff").contains("- interfaces.pg1.mtu: 1500"));
    router.run("config rollback 0");
    assert_eq!(["pg0", "loop0", "pg1"].map(|name| index(&mut router, name)), [1, 2, 3]);
    router.stop();
}

/// An interface that is not there takes no index from those that are.
#[test]
fn what_is_unresolved_moves_no_index() {
    let _one = ONE.lock();
    let (mut router, file) = with_file();
    start_with(
        &mut router,
        "interfaces: {host-nosuchdevice: {}, pg0: {}}\nloopbacks: {loop0: {}}\n",
    );
    router.run("config commit");
    assert_eq!(["pg0", "loop0"].map(|name| index(&mut router, name)), [1, 2]);
    assert_eq!(router.run("config diff"), "");
    let text = router.run("config rollback 0");
    assert!(text.contains("1 unresolved") && !text.contains("delete"), "{text}");
    assert_eq!(["pg0", "loop0"].map(|name| index(&mut router, name)), [1, 2]);
    let saved = fs::read_to_string(&file).unwrap();
    let mut second = Router::start();
    start_with(&mut second, &saved);
    assert_eq!(["pg0", "loop0"].map(|name| index(&mut second, name)), [1, 2]);
    second.stop();
    router.stop();
}

#[test]
fn a_reserved_index_is_a_setting() {
    let _one = ONE.lock();
    let mut router = Router::start();
    router.run("set interface index loop9 40");
    assert!(router.run("show configuration").contains("loop9: 40"));
    let set = router.dump();
    router.become_(&Document::default());
    assert!(!router.run("show configuration").contains("loop9"));
    router.become_(&set);
    router.run("create loopback interface instance 9");
    assert_eq!(index(&mut router, "loop9"), 40);
    router.stop();
}

#[test]
fn what_others_change_during_an_apply_stays() {
    let _one = ONE.lock();
    let mut router = Router::start();
    router.run("create packet-generator interface pg0");
    let file = router.dir.path().join("a.yaml");
    // The routes are enough to take slices.
    let routes: String =
        (0..3000).map(|n| format!("10.{}.{}.0/24: pg0, ", n >> 8, n & 255)).collect();
    let of = |devices: &str| {
        format!(
            "interfaces: {{pg0: {{}}{devices}}}\nthalweg: {{ip-tables: {{0: {{routes: {{{routes}}}}}}}}}\n"
        )
    };
    let apply = |router: &mut Router, text: String| {
        fs::write(&file, text).unwrap();
        let script = Script::typed(format!("config apply {}", file.display())).unwrap();
        let mut execution = Execution::new(script);
        let mut made = false;
        loop {
            let (now, slice) = (Instant::now(), Duration::from_millis(1));
            match execution.step(&router.tree, &mut router.c, now, slice) {
                Progress::Running(_) => {}
                Progress::Finished(end) => break end.map(|_| ()).map_err(|e| e.to_string()),
            }
            router.c.run_once(Some(Duration::from_millis(1)));
            let route = thalweg_tables::Prefix::new(0x0a01_0100, 24).unwrap();
            let ip = router.c.state::<thalweg_feat_ip::Ip<u32>>();
            let routes = ip.borrow().route(TableId(0), route).is_some();
            if routes && !std::mem::replace(&mut made, true) {
                // Another client makes something, while the routes are being added.
                loopback::create_loopback(&mut router.c, Some(9), None).unwrap();
            }
        }
    };
    // The application succeeds: another client's change in between is no failure of it.
    apply(&mut router, of("")).unwrap();
    assert!(router.run("show configuration").contains("loop9"));
    // The application fails: another client's change in between is not taken back with it.
    router.run("delete loopback interface intfc loop9");
    router.become_(&Document::default());
    router.run("create packet-generator interface pg0");
    let refused = apply(&mut router, of(", host-nosuchdevice: {}")).unwrap_err();
    assert!(refused.contains("Rolled back"), "{refused}");
    router.settle();
    let now = router.run("show configuration");
    assert!(now.contains("pg0") && !now.contains("10.1.1.0/24"), "{now}");
    router.stop();
}

/// Half a configuration becomes neither the saved one nor a target of rollbacks.
#[test]
fn what_saves_during_an_apply_is_refused() {
    let _one = ONE.lock();
    let (mut router, saved) = with_file();
    router.run("create packet-generator interface pg0\nconfig commit");
    // List revisions without their ages.
    let listed = |router: &mut Router| -> Vec<String> {
        let text = router.run("show configuration revisions");
        text.split_whitespace().filter(|word| word.contains('/')).map(str::to_owned).collect()
    };
    let (before, revisions) = (fs::read(&saved).unwrap(), listed(&mut router));
    let file = router.dir.path().join("a.yaml");
    // The routes are enough to take slices.
    let routes: String =
        (0..3000).map(|n| format!("10.{}.{}.0/24: pg0, ", n >> 8, n & 255)).collect();
    let text = format!(
        "interfaces: {{pg0: {{}}}}\nthalweg: {{ip-tables: {{0: {{routes: {{{routes}}}}}}}}}\n"
    );
    fs::write(&file, text).unwrap();
    let script = Script::typed(format!("config apply {}", file.display())).unwrap();
    let mut execution = Execution::new(script);
    let other = router.dir.path().join("other.yaml");
    let to_other = format!("config save {}", other.display());
    let mut tried = 0;
    let end = loop {
        let (now, slice) = (Instant::now(), Duration::from_millis(1));
        match execution.step(&router.tree, &mut router.c, now, slice) {
            Progress::Running(_) => {}
            Progress::Finished(end) => break end,
        }
        router.c.run_once(Some(Duration::from_millis(1)));
        let route = thalweg_tables::Prefix::new(0x0a01_0100, 24).unwrap();
        let ip = router.c.state::<thalweg_feat_ip::Ip<u32>>();
        if ip.borrow().route(TableId(0), route).is_some() && tried < 3 {
            for line in ["config commit", "config commit confirm 60", "config save", &to_other] {
                let refused = error(&mut router, line);
                assert!(refused.contains("being applied"), "{line}: {refused}");
            }
            assert_eq!(fs::read(&saved).unwrap(), before);
            assert!(!other.exists());
            assert_eq!(listed(&mut router), revisions);
            tried += 1;
        }
    };
    end.unwrap();
    assert!(tried > 0, "the apply ended at once");
    assert!(router.run("config commit").starts_with("saved\n"));
    assert_ne!(fs::read(&saved).unwrap(), before);
    router.stop();
}

#[test]
fn a_commit_that_finds_no_place_says_what_would_help() {
    let _one = ONE.lock();
    let mut router = Router::start();
    let file = router.dir.path().join("no/such/place/thalweg.yaml");
    manager::keep_in(&mut router.c, Store::new(&file));
    let refused = error(&mut router, "config commit");
    assert!(refused.contains("no such directory; `mkdir -p "), "{refused}");
    let refused = error(&mut router, "config diff");
    assert!(refused.contains("nothing has been saved yet; `config commit'"), "{refused}");
    router.stop();
}

/// Commands of others while a change waits for its confirmation are not the change.
#[test]
fn a_rollback_takes_back_what_its_change_was_about() {
    let _one = ONE.lock();
    let (mut router, _) = with_file();
    router.run("create loopback interface instance 1\nset interface mtu packet 1400 loop1");
    let file = router.dir.path().join("change.yaml");
    fs::write(&file, "loopbacks: {loop1: {mtu: 1300}, loop2: {}}\n").unwrap();
    router.run(&format!("config apply {} confirm 1", file.display()));
    router.run("create loopback interface instance 9\nset interface ip address loop9 10.9.0.1/24");
    wait(&mut router, "the rollback", |r| {
        !r.run("show configuration revisions").contains("waiting for")
    });
    let now = router.run("show configuration");
    assert!(now.contains("loop9") && now.contains("10.9.0.1/24"), "{now}");
    assert!(!now.contains("loop2") && now.contains("mtu: 1400"), "{now}");
    router.stop();
}

/// Something that is missing anyway does not keep a rollback from its end.
#[test]
fn a_rollback_to_something_unresolved_ends() {
    let _one = ONE.lock();
    let (mut router, _) = with_file();
    start_with(&mut router, "interfaces: {host-nosuchdevice: {}}\nloopbacks: {loop1: {}}\n");
    let file = router.dir.path().join("change.yaml");
    fs::write(&file, "loopbacks: {loop2: {}}\n").unwrap();
    router.run(&format!("config apply {} confirm 1", file.display()));
    wait(&mut router, "the rollback", |r| {
        !r.run("show configuration revisions").contains("waiting for")
    });
    let now = router.run("show configuration");
    assert!(now.contains("loop1") && now.contains("host-nosuchdevice"), "{now}");
    assert!(!now.contains("loop2"), "{now}");
    // Nothing comes back to undo this.
    router.run("create loopback interface instance 5");
    assert!(router.run("show configuration unresolved").contains("host-nosuchdevice"));
    wait(&mut router, "the next try", |r| is_idle(&r.c));
    assert!(router.run("show configuration").contains("loop5"));
    router.stop();
}

/// A thing that exists once, such as a file, is given back by one setting before another takes it.
#[test]
fn settings_swap_what_exists_once() {
    let _one = ONE.lock();
    let mut router = Router::prepared();
    let [a, b] = ["a", "b"].map(|name| router.dir.path().join(name).display().to_string());
    router.run(&format!(
        "nat44 plugin enable sessions 1000\nnat44 log file {a}\nnat44 save {b} every 60"
    ));
    let first = router.dump();
    router.run(&format!(
        "nat44 save never\nnat44 log file {b}\nnat44 save {a} every 60\nnat44 log file {b} rate 7"
    ));
    let second = router.dump();
    router.run("nat44 log off");
    let without_log = router.dump();
    router.run(&format!("nat44 save never\nnat44 log file {a}"));
    let without_save = router.dump();
    for document in [&first, &second, &first, &without_log, &first, &without_save, &second] {
        router.become_(document);
        same(&router.dump(), document, "swapped");
    }
    router.stop();
}
