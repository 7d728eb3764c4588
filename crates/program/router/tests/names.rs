//! Names that users' scripts, clients and dashboards rely on stay: nodes, arcs, counters, commands,
//! messages and keys of documents of release 0.1.0. New ones may be added at any time;
//! `UPDATE_GOLDEN=1` adds them to the list, and takes away what is gone, which the changelog then
//! has to say.

#![allow(clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::Path;
use thalweg_api::Registry;
use thalweg_buffer::PoolConfig;
use thalweg_engine::{ENGINE, Feature};
use thalweg_graph::{Control, EngineConfig};
use thalweg_program_router::api::services;
use thalweg_program_router::features::FEATURES;

/// Returns all names, each with its kind.
fn names() -> BTreeSet<String> {
    let pool = PoolConfig { buffers: 1024, ..PoolConfig::default() };
    let config = EngineConfig { pool, ..EngineConfig::default() };
    let mut c = Control::new(config).expect("an engine");
    thalweg_engine::start(&mut c, FEATURES).expect("a graph");
    let mut all = BTreeSet::new();
    for node in c.nodes() {
        all.insert(format!("node {}", node.name));
    }
    for (node, error) in c.errors() {
        all.insert(format!("counter {}: {}", c.nodes()[usize::from(node.0)].name, error.text));
    }
    for command in thalweg_engine::commands(&c) {
        all.insert(format!("command {}", command.path()));
    }
    c.shut_down();
    let features: Vec<&'static Feature> =
        [&ENGINE].into_iter().chain(FEATURES.iter().copied()).collect();
    for feature in &features {
        all.extend(feature.arcs.iter().map(|arc| format!("arc {}", arc.name)));
        for rule in feature.sections().flat_map(|section| section.rules()) {
            all.insert(format!("key {}", rule.path));
        }
    }
    let registry = Registry::new(services(&features)).expect("messages");
    // Names of messages include the checksum of their fields.
    all.extend(registry.messages().iter().map(|def| format!("message {}", def.name_crc())));
    all
}

#[test]
fn what_users_rely_on_stays() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/names.txt");
    let now = names();
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        let lines: String = now.iter().map(|name| format!("{name}\n")).collect();
        std::fs::write(&path, lines).expect("the list");
    }
    let list = std::fs::read_to_string(&path).expect("the list");
    let gone: Vec<&str> = list.lines().filter(|name| !now.contains(*name)).collect();
    assert!(
        gone.is_empty(),
        "these names are gone or have changed:\n{}\nKeep the old ones, or say so in CHANGELOG.md and \
         run this test with UPDATE_GOLDEN=1",
        gone.join("\n")
    );
    // A list that nobody keeps is of no use.
    let kinds: BTreeSet<&str> = list.lines().filter_map(|name| name.split(' ').next()).collect();
    assert_eq!(kinds, ["arc", "command", "counter", "key", "message", "node"].into());
}
