//! Rules that name interfaces: the name distinguishes a rule from others, also while the interface
//! is missing, or another one has its old index.

use crate::router;
use crate::subs::bare;
use thalweg_device::testing::Lab;
use thalweg_device::{SwIfIndex, interface};

/// The rules of set 10 as they are typed.
fn rules(lab: &Lab) -> Vec<String> {
    let of = |view: &thalweg_feat_flow::RuleView| view.rule.to_string();
    thalweg_feat_flow::rules(&lab.c).get(&10).into_iter().flatten().map(of).collect()
}

fn index(lab: &Lab, name: &str) -> SwIfIndex {
    interface::find(&lab.c, name).unwrap()
}

const DROP: &str = "priority=5,ip,in_port=test0.20,actions=drop";

/// A rule of `test0.20`, which then got another index; `test0.60` has its old one.
fn swapped() -> Lab {
    let mut lab = router();
    let old = bare(&mut lab, 0, 20);
    lab.ok(&format!("flow add 10 {DROP}"));
    lab.ok("delete sub-interface test0.20");
    assert_eq!(bare(&mut lab, 0, 60), old);
    assert_ne!(bare(&mut lab, 0, 20), old);
    lab
}

#[test]
fn a_rule_of_the_interface_with_the_old_index_is_another_one() {
    let mut lab = swapped();
    let other = "priority=5,ip,in_port=test0.60,actions=normal";
    lab.ok(&format!("flow add 10 {other}"));
    assert_eq!(rules(&lab), [DROP, other]);
    assert!(lab.cli("flow del 10 in_port=test0.60").is_empty());
    assert_eq!(rules(&lab), [DROP]);
    lab.close();
}

#[test]
fn a_rule_follows_the_name_of_its_interface() {
    let mut lab = swapped();
    assert!(lab.cli("flow del 10 in_port=test0.60").contains("no rule was deleted"));
    let new = "priority=5,ip,in_port=test0.20,actions=normal";
    lab.ok(&format!("flow add 10 {new}"));
    assert_eq!(rules(&lab), [new]);
    // Other names of it: number, tag.
    let number = index(&lab, "test0.20");
    lab.ok("set interface tag test0.20 blue");
    for word in [number.to_string(), "blue".into()] {
        let new = format!("priority=5,ip,in_port={word},actions=drop");
        lab.ok(&format!("flow add 10 {new}"));
        assert_eq!(rules(&lab), [new]);
    }
    lab.ok("flow del 10 strict priority=5,ip,in_port=test0.20");
    assert_eq!(rules(&lab), [""; 0]);
    lab.close();
}

#[test]
fn rules_of_a_missing_interface_can_be_deleted() {
    for del in ["strict priority=5,ip,in_port=test0.20", "in_port=test0.20", "ip"] {
        let mut lab = swapped();
        lab.ok("delete sub-interface test0.20");
        let other = "priority=5,ip,in_port=test0.60,actions=normal";
        lab.ok(&format!("flow add 10 {other}"));
        assert!(lab.cli("flow del 10 strict priority=5,ip,in_port=test0.99").contains("no rule"));
        assert!(lab.cli(&format!("flow del 10 {del}")).is_empty(), "{del}");
        let left = if del == "ip" { vec![] } else { vec![other] };
        assert_eq!(rules(&lab), left, "{del}");
        lab.close();
    }
}
