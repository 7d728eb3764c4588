//! Every reason for which a packet is dropped has a name in sFlow, and a line in one table.

#![allow(clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fmt::Write;
use thalweg_buffer::PoolConfig;
use thalweg_graph::{Control, EngineConfig, Severity};
use thalweg_sflow::DiscardReason;

/// Reasons that the standard has no word for.
const UNNAMED: [&str; 10] = [
    "interface is deleted",
    "ARP hw addr does not match L2 frame src addr",
    "IP4 source address matches local interface",
    "ip4 fragments to local address not reassembled",
    "IP6 source address matches local interface",
    "neighbor advertisement of our own address",
    "neighbor advertisement of an address that we test",
    "router advertisement from our own address",
    "multicast listener query from our own address",
    "ip6 fragments to local address not reassembled",
];

#[test]
fn all_have_a_standard_code() {
    let pool = PoolConfig { buffers: 1024, ..PoolConfig::default() };
    let config = EngineConfig { pool, ..EngineConfig::default() };
    let mut c = Control::new(config).expect("an engine");
    thalweg_engine::start(&mut c, thalweg_program_router::features::FEATURES).expect("a graph");
    let tree = thalweg_engine::command_tree(&c).expect("commands");
    for line in ["create loopback interface", "create packet-generator interface pg0"] {
        let (text, end) = tree.run_line(&mut c, line);
        assert!(end.is_ok(), "{line}: {text}");
    }
    let mut rows = BTreeSet::new();
    for (node, error) in c.errors() {
        let name = &c.nodes()[usize::from(node.0)].name;
        let code = u32::from(error.discard);
        let known = DiscardReason::ALL.iter().find(|(reason, _)| reason.0 == code);
        let Some((_, word)) = known else { panic!("{name}: `{}' has code {code}", error.text) };
        if error.severity == Severity::Error {
            assert!(
                code != DiscardReason::UNKNOWN.0 || UNNAMED.contains(&error.text),
                "{name}: `{}' has no code: see DiscardReason",
                error.text
            );
            rows.insert(format!("{name:<24} {code:>3} {word:<32} {}", error.text));
        }
    }
    let mut table = String::new();
    rows.iter().for_each(|row| writeln!(table, "{row}").expect("a string"));
    thalweg_testkit::golden!("tests/golden/drop_reasons.txt", table);
    c.shut_down();
}
