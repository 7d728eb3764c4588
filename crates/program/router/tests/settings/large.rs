//! Very large documents: people read summaries, and hear within a second that something goes on.

use crate::router::{ONE, Router};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use thalweg_cli::{Execution, Progress, Script};
use thalweg_feat_config::{manager, store::Store};
use thalweg_testkit::processor_time;

/// Lines of any answer about the configuration that nobody has asked for in full.
const FEW: usize = 110;

/// A document with this many routes.
fn document(router: &Router, routes: u32) -> PathBuf {
    let mut text = String::from(
        "interfaces: {pg0: {}, pg1: {}}\nthalweg:\n  ip-tables:\n    0:\n      routes:\n",
    );
    for n in 0..routes {
        let [_, a, b, c] = (0x0010_0000 + n).to_be_bytes();
        writeln!(text, "        {a}.{b}.{c}.0/24: pg{}", n % 2).unwrap();
    }
    let file = router.dir.path().join(format!("{routes}.yaml"));
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn answers_are_summaries_unless_all_is_asked_for() {
    const ROUTES: usize = 3000;
    let _one = ONE.lock();
    let mut router = Router::start();
    manager::keep_in(&mut router.c, Store::new(router.dir.path().join("thalweg.yaml")));
    router.run("create packet-generator interface pg0\nconfig commit");
    let file = document(&router, ROUTES as u32);
    let at = file.display();
    let kind = "of thalweg.ip-tables.*.routes.*";
    let short = |router: &mut Router, line: &str| {
        let text = router.run(line);
        assert!(text.lines().count() < FEW, "{line}: {} lines", text.lines().count());
        text
    };
    let plan = short(&mut router, &format!("config plan {at}"));
    assert!(plan.contains(&format!("{ROUTES} {kind}")) && plan.contains("more"), "{plan}");
    // Half of a plan must not be run: a summary is all comments.
    let before = router.dump();
    router.run(&plan);
    assert_eq!(router.dump().root(), before.root());
    let whole = router.run(&format!("config plan {at} verbose"));
    assert!(whole.lines().count() > ROUTES, "{whole}");
    let listed: Value =
        serde_json::from_str(&router.run(&format!("config plan {at} | json"))).unwrap();
    assert!(listed.as_array().unwrap().len() > ROUTES);
    let applied = short(&mut router, &format!("config apply {at}"));
    assert!(applied.contains("applied and verified"), "{applied}");
    let differs = short(&mut router, "config diff");
    assert!(differs.contains(&format!("{ROUTES} {kind}")), "{differs}");
    assert!(differs.contains("`verbose' or `| json' has them"), "{differs}");
    let whole = router.run("config diff verbose");
    assert!(whole.lines().count() >= ROUTES, "{whole}");
    assert_eq!(router.run(&format!("config diff {at}")), "");
    let back = short(&mut router, "config rollback 0");
    assert!(back.contains(&format!("{ROUTES} {kind}")), "{back}");
    let whole = router.run(&format!("config apply {at} verbose"));
    assert!(whole.lines().count() > ROUTES, "{whole}");
    router.stop();
}

/// Missing and wrong settings may be as many.
#[test]
fn very_many_mistakes_are_counted() {
    const ROUTES: usize = 3000;
    let _one = ONE.lock();
    let mut router = Router::start();
    let file = router.dir.path().join("a.yaml");
    let routes: String = (0..ROUTES)
        .map(|n| format!("10.{}.{}.0/24: host-nosuchdevice, ", n >> 8, n & 255))
        .collect();
    let text = format!(
        "interfaces: {{host-nosuchdevice: {{}}}}\n\
         thalweg: {{ip-tables: {{0: {{routes: {{{routes}}}}}}}}}\n"
    );
    fs::write(&file, &text).unwrap();
    let applied = router.run(&format!("config apply {} best-effort", file.display()));
    assert!(applied.contains("unresolved; see"), "{applied}");
    assert!(applied.lines().count() < FEW, "{applied}");
    let listed = router.run("show configuration unresolved");
    assert!(listed.lines().count() < FEW && listed.contains("`verbose'"), "{listed}");
    let whole = router.run("show configuration unresolved verbose");
    assert!(whole.lines().count() >= ROUTES, "{}", whole.lines().count());
    fs::write(&file, text.replace(": host-nosuchdevice, ", ": 7, ")).unwrap();
    let refused = router.attempt(&format!("config apply {}", file.display()));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.lines().count() < FEW, "{} lines", refused.lines().count());
    assert!(refused.ends_with("... and 2900 more"), "{refused}");
    router.stop();
}

#[test]
fn an_apply_that_takes_long_says_what_it_does() {
    let _one = ONE.lock();
    let mut router = Router::start();
    let file = document(&router, thalweg_testkit::sized(20_000, 100_000));
    let script = Script::typed(format!("config apply {}", file.display())).unwrap();
    let mut execution = Execution::new(script);
    let (begin, mut said) = (Instant::now(), String::new());
    let end = loop {
        // The word is due by the next look at the time.
        let silent = said.is_empty() && begin.elapsed() > Duration::from_millis(600);
        let budget = Duration::from_millis(2);
        match execution.step(&router.tree, &mut router.c, Instant::now(), budget) {
            Progress::Running(_) => {}
            Progress::Finished(end) => break end,
        }
        said += &execution.take_output();
        assert!(!silent || !said.is_empty(), "no word for {:?}", begin.elapsed());
        router.c.run_once(Some(Duration::from_millis(1)));
    };
    end.unwrap();
    said += &execution.take_output();
    assert!(said.contains("applied and verified"), "{said}");
    router.stop();
}

/// Sub-interfaces of several ports, in no order: after an apply nothing differs, and all can go.
#[test]
fn very_many_sub_interfaces_come_and_go() {
    let count = thalweg_testkit::sized(300, 3000);
    let _one = ONE.lock();
    let mut router = Router::start();
    let mut text = String::from("loopbacks: {loop4: {}}\ninterfaces:\n");
    let mut more_text = String::from("thalweg:\n  interfaces:\n");
    for port in [7, 1, 4] {
        writeln!(text, "  pg{port}:\n    sub-interfaces:").unwrap();
        for n in 0..count {
            let id = 1 + (n * 7 + port) % 4000;
            let more = match n % 4 {
                0 => format!("mtu: 1400, encapsulation: {{dot1ad: {id}, exact-match: true}}"),
                1 => format!("encapsulation: {{dot1q: {id}, exact-match: true}}, state: down"),
                _ => String::new(),
            };
            writeln!(text, "      {id}: {{{more}}}").unwrap();
            if n % 4 > 1 {
                writeln!(more_text, "    pg{port}.{id}: {{directed-broadcast: true}}").unwrap();
            }
        }
    }
    let file = router.dir.path().join("subs.yaml");
    fs::write(&file, text + &more_text).unwrap();
    let applied = router.apply(&file);
    assert!(applied.contains("applied and verified"), "{applied}");
    for line in ["config diff", "config plan"] {
        let said = router.run(&format!("{line} {}", file.display()));
        assert_eq!(said.trim(), "", "{line}");
    }
    let saved = router.dir.path().join("saved.yaml");
    router.run(&format!("config save {}", saved.display()));
    assert_eq!(router.run(&format!("config diff {}", saved.display())), "");
    let none = router.dir.path().join("none.yaml");
    fs::write(&none, "interfaces: {}\n").unwrap();
    let begin = Instant::now();
    let deleted = router.apply(&none);
    assert!(deleted.contains("applied and verified"), "{deleted}: {:?}", begin.elapsed());
    assert_eq!(router.run(&format!("config diff {}", none.display())), "");
    router.stop();
}

/// Ten times as many take about ten times as long. Short times are no ratio.
#[test]
fn a_comparison_takes_as_long_as_there_are_routes() {
    const FLOOR: Duration = Duration::from_secs(10);
    let _one = ONE.lock();
    let mut took = [2000, 20_000].map(|routes| {
        let mut router = Router::start();
        let file = document(&router, routes);
        router.apply(&file);
        let begin = processor_time();
        assert_eq!(router.run(&format!("config diff {}", file.display())), "");
        let same = processor_time() - begin;
        // All of them differ.
        let other = router.dir.path().join("none.yaml");
        fs::write(&other, "interfaces: {pg0: {}, pg1: {}}\n").unwrap();
        let differs = router.run(&format!("config diff {}", other.display()));
        assert!(differs.contains(&format!("{routes} in all")), "{differs}");
        let took = same.max(processor_time() - begin - same);
        router.stop();
        took
    });
    took[0] *= 40;
    assert!(took[1] < took[0].max(FLOOR), "{took:?}");
}
