//! Connection tracking on a machine with little memory. A process of its own, whose address space
//! is bounded.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thalweg_device::testing::Lab;

/// Bounds the address space to what the process has and `more` bytes.
fn bound(more: u64) {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    let current = Some(pages * rustix::param::page_size() as u64 + more);
    let maximum = getrlimit(Resource::As).maximum;
    setrlimit(Resource::As, Rlimit { current, maximum }).unwrap();
}

/// Rules of a firewall.
const RULES: &str = "flow add 7 'ip,ct_state=-trk,actions=ct(table=0)'\n\
                     flow add 7 'ip,ct_state=+trk+new,actions=ct(commit),normal'\n\
                     set interface flow test0 7";

#[test]
fn what_there_is_no_memory_for_is_refused_and_changes_nothing() {
    let start = || {
        Lab::of(&thalweg_feat_flow::FEATURE)
            .with(&thalweg_feat_ip4::FEATURE)
            .with(&thalweg_feat_ip6::FEATURE)
            .ip4(2..=2)
            .start()
    };
    let (mut lab, mut other) = (start(), start());
    // Memory that is free now is taken by something else by the time it is needed.
    let (mut checked, mut ready) = (start(), start());
    assert_eq!(checked.cli("set conntrack limit 30000000"), "");
    let (rules, attach) = RULES.rsplit_once('\n').unwrap();
    assert_eq!(ready.cli(rules), "");
    bound(4 << 30);
    let error = lab.cli("set conntrack limit 100000000");
    assert!(error.contains("no memory to track 100000000 connections"), "{error}");
    // The limit is as before, and there is memory for that.
    assert_eq!(lab.cli(RULES), "");
    assert!(lab.cli("show conntrack summary").contains(" 1048576"));
    // The limit is refused once trackers exist, too.
    let error = lab.cli("set conntrack limit 100000000");
    assert!(error.contains("no memory to track 100000000 connections"), "{error}");
    assert!(lab.cli("show conntrack summary").contains(" 1048576"));

    bound(16 << 20);
    let error = other.cli(RULES);
    assert!(error.contains("no memory to track 1048576 connections"), "{error}");
    assert_eq!(thalweg_feat_flow::rules(&other.c).len(), 0);
    assert_eq!(other.cli(&format!("set conntrack limit 1000\n{RULES}")), "");

    let error = checked.cli(RULES);
    assert!(error.contains("no memory to track 30000000 connections"), "{error}");
    assert_eq!(thalweg_feat_flow::rules(&checked.c).len(), 0);
    let error = ready.cli(attach);
    assert!(error.contains("no memory to track 1048576 connections"), "{error}");
    assert_eq!(thalweg_feat_flow::following(&ready.c).len(), 0);
    // The others have taken what there was.
    bound(16 << 20);
    assert_eq!(ready.cli(&format!("set conntrack limit 1000\n{attach}")), "");
    assert_eq!(thalweg_feat_flow::following(&ready.c).len(), 1);
}
