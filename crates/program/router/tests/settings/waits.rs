//! Settings that name something which is not there wait for it, and are in force once it has come.

use crate::router::{ONE, Router};
use crate::setters::SETTERS;
use crate::whole::{start_with, wait};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use thalweg_feat_config::manager::is_idle;

/// Items that are always described along with what needs them: by the same part of a document, or
/// by one that must be there, which the document's check says.
const TOGETHER: &[&str] = &[
    "bridge",
    "bridge port",
    "index",
    "ip-table of",
    "ip6-table of",
    "link-mtu",
    "nat44",
    "nat44 vrf table",
    "router-advertisements of",
];

/// Things that may come later, by the first words of their items' keys, with parts of documents
/// that name them and the commands that make them come.
const LATER: &[(&str, &[(&str, &str)])] = &[
    (
        "interface",
        &[
            ("thalweg: {ip-tables: {0: {routes: {10.9.0.0/16: pg7}}}}", PG7),
            (
                "thalweg: {ip-tables: {0: {routes: {10.9.0.0/16: [10.0.0.2 pg7, 10.0.0.3 pg0]}}}}",
                PG7,
            ),
            ("thalweg: {ip6-tables: {0: {routes: {\"2001:db8::/32\": pg7}}}}", PG7),
            ("thalweg: {ip-punt-redirects: {pg7: 10.0.0.2 pg0}}", PG7),
            ("thalweg: {ip-punt-redirects: {all: 10.0.0.2 pg7}}", PG7),
            ("thalweg: {interfaces: {pg1: {unnumbered: pg7}}}", PG7),
            ("interfaces: {pg1: {l2xc: pg7}, pg0: {}}", PG7),
            ("thalweg: {flow: {rules: {1: [\"ip,actions=output:pg7\"]}}}", PG7),
            ("thalweg: {flow: {rules: {1: [\"in_port=pg7,actions=normal\"]}}}", PG7),
            ("thalweg: {mpls-tables: {0: {labels: {40/eos: 10.0.0.2 pg7}}}}", PG7),
            ("thalweg: {mpls-tunnels: {mpls-tunnel0: {paths: 10.0.0.2 pg7 out-labels 30}}}", PG7),
            ("bridgedomains: {bd10: {interfaces: [pg7]}}", PG7),
            (
                "thalweg: {nat44: {static-mappings: \
                 [tcp local 10.0.0.9 80 external pg7 80]}}",
                PG7,
            ),
        ],
    ),
    (
        "ip-table",
        &[
            ("thalweg: {interfaces: {pg1: {ip-table: 7}}}", "ip table add 7"),
            (
                "thalweg: {ip-tables: {0: {routes: {10.9.0.0/16: 10.0.0.2 next-hop-table 7}}}}",
                "ip table add 7",
            ),
            (
                "thalweg: {ip-tables: {0: {routes: {10.9.0.0/16: ip4-lookup-in-table 7}}}}",
                "ip table add 7",
            ),
            (
                "thalweg: {mpls-tables: {0: {labels: {40/eos: ip4-lookup-in-table 7}}}}",
                "ip table add 7",
            ),
            ("thalweg: {arp-proxies: [10.0.0.1 - 10.0.0.9 table-id 7]}", "ip table add 7"),
        ],
    ),
    (
        "ip6-table",
        &[
            ("thalweg: {interfaces: {pg1: {ip6-table: 7}}}", "ip6 table add 7"),
            (
                "thalweg: {ip6-tables: {0: {routes: {\"2001:db8::/32\": ip6-lookup-in-table 7}}}}",
                "ip6 table add 7",
            ),
            (
                "thalweg: {mpls-tables: {0: {labels: {40/eos: ip6-lookup-in-table 7}}}}",
                "ip6 table add 7",
            ),
        ],
    ),
    (
        "mpls table",
        &[(
            "thalweg: {mpls-tables: {0: {labels: {40/non-eos: mpls-lookup-in-table 7}}}}",
            "mpls table add 7",
        )],
    ),
];

const PG7: &str = "create packet-generator interface pg7";

/// The words of a key before the name.
fn kind(key: &str) -> &str {
    key.rsplit_once(' ').map_or(key, |(kind, _)| kind)
}

#[test]
fn every_kind_of_reference_is_known() {
    let _one = ONE.lock();
    let known: BTreeSet<&str> =
        LATER.iter().map(|(kind, _)| *kind).chain(TOGETHER.iter().copied()).collect();
    let mut unknown = BTreeSet::new();
    for (_, examples) in SETTERS {
        for example in *examples {
            let mut router = Router::prepared();
            // Some need more than is there.
            if router.attempt(example).is_ok() {
                for key in router.dump().items().iter().flat_map(|item| item.needed()) {
                    if !known.contains(kind(key)) {
                        unknown.insert(format!("{key} ({example})"));
                    }
                }
            }
            router.stop();
        }
    }
    assert!(unknown.is_empty(), "may these come later? Then put them into LATER: {unknown:#?}");
}

/// Returns all settings that are not in force.
fn listed(router: &mut Router) -> Vec<serde_json::Value> {
    let text = router.run("show configuration unresolved | json");
    serde_json::from_str::<serde_json::Value>(&text).unwrap().as_array().unwrap().clone()
}

/// Without an event, settings are tried again after this time.
const EVENTLESS: Duration = Duration::from_secs(10);

#[test]
fn what_waits_is_completed_by_what_comes() {
    let _one = ONE.lock();
    let mut wrong = Vec::new();
    for (text, comes) in LATER.iter().flat_map(|(_, documents)| documents.iter()) {
        let mut router = Router::start();
        let ports = "create packet-generator interface pg0\ncreate packet-generator interface pg1";
        start_with(&mut router, &format!("{text}\n"));
        // A document may have made them already.
        ports.lines().for_each(|line| drop(router.attempt(line)));
        router.settle();
        let missing = |router: &mut Router| {
            let all = router.run("show configuration unresolved");
            (!all.contains("all of the configuration is in force")).then_some(all)
        };
        let Some(before) = missing(&mut router) else {
            wrong.push(format!("{text}: nothing waits"));
            router.stop();
            continue;
        };
        for part in listed(&mut router) {
            let (state, awaited) = (&part["state"], &part["waits-for"]);
            if state != "unresolved" || awaited.is_null() {
                wrong.push(format!("{text}: {part}"));
            }
        }
        let begin = Instant::now();
        router.run(comes);
        let mut after = Some(before);
        while after.is_some() && begin.elapsed() < EVENTLESS / 2 {
            router.c.run_once(Some(Duration::from_millis(10)));
            after = missing(&mut router);
        }
        if let Some(after) = after {
            wrong.push(format!("{text}, then {comes}: {after}"));
        }
        router.stop();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Something comes while what waits is being tried again because of something else.
#[test]
fn an_event_during_a_try_is_not_lost() {
    let _one = ONE.lock();
    let mut router = Router::start();
    let routes: String =
        (0..500).map(|n| format!("10.9.{}.{}/32: pg8, ", n / 250, n % 250)).collect();
    start_with(
        &mut router,
        &format!("thalweg: {{ip-tables: {{0: {{routes: {{{routes} 10.8.0.0/16: pg7}}}}}}}}\n"),
    );
    let begin = Instant::now();
    router.run("create packet-generator interface pg8");
    wait(&mut router, "the next try", |r| !is_idle(&r.c));
    router.run("create packet-generator interface pg7");
    wait(&mut router, "all", |r| {
        r.run("show configuration unresolved").contains("all of the configuration is in force")
    });
    assert!(begin.elapsed() < EVENTLESS, "{:?}", begin.elapsed());
    router.stop();
}

/// Tries for one thing touch nothing else.
#[test]
fn waiting_for_one_thing_disturbs_nothing_else() {
    let _one = ONE.lock();
    let mut router = Router::start();
    start_with(
        &mut router,
        "interfaces: {pg0: {addresses: [10.0.0.1/24]}}\n\
         thalweg: {ip-tables: {0: {routes: {10.8.0.0/16: pg0, 10.9.0.0/16: pg7}}}}\n",
    );
    let fib = router.run("show ip fib 10.8.0.0/16");
    router.run("ip table add 7\ncreate packet-generator interface pg6");
    wait(&mut router, "the next try", |r| is_idle(&r.c));
    router.settle();
    assert_eq!(router.run("show ip fib 10.8.0.0/16"), fib);
    assert!(router.run("show configuration unresolved").contains("10.9.0.0/16"));
    router.stop();
}

/// Settings that are not in force wait for something, or were refused.
#[test]
fn what_waits_and_what_was_refused_are_told_apart() {
    let _one = ONE.lock();
    let mut router = Router::start();
    let directory = router.dir.path().join("logs/nat44");
    // The address is reserved for documentation (RFC 5737), so nobody can listen there.
    let text = format!(
        "interfaces: {{host-nosuchdevice: {{}}}}\n\
         taps: {{tap3: {{host: {{name: far, namespace: no-such-namespace}}}}}}\n\
         thalweg:\n  metrics: {{listen: \"203.0.113.9:9\"}}\n  \
         nat44: {{sessions: 1000, log: file {}/log}}\n  \
         ip-tables: {{0: {{routes: {{10.9.0.0/16: pg7, 10.8.0.0/16: 7}}}}}}\n",
        directory.display()
    );
    start_with(&mut router, &text);
    let mut seen: Vec<String> = listed(&mut router)
        .iter()
        .map(|part| format!("{} {} {}", part["path"], part["state"], part["waits-for"]))
        .map(|line| line.replace('"', ""))
        .collect();
    seen.sort();
    let log = format!("thalweg.nat44.log unresolved directory {}", directory.display());
    let expected = [
        "interfaces.host-nosuchdevice unresolved device nosuchdevice",
        "taps.tap3 unresolved network namespace no-such-namespace",
        "thalweg.ip-tables.0.routes.10.8.0.0/16 failed null",
        "thalweg.ip-tables.0.routes.10.9.0.0/16 unresolved interface pg7",
        "thalweg.metrics.listen failed null",
        &log,
    ];
    assert_eq!(seen, expected);
    let shown = router.run("show configuration unresolved");
    assert!(shown.contains("thalweg.metrics.listen: failed: "), "{shown}");
    // The directory completes the log, by event.
    let begin = Instant::now();
    std::fs::create_dir_all(&directory).unwrap();
    wait(&mut router, "the log", |r| r.run("show nat44 log").contains("nat44/log"));
    assert!(begin.elapsed() < EVENTLESS, "{:?}", begin.elapsed());
    router.stop();
}
