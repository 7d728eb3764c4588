//! The setting of docs/first-setting.md: its command, its key in documents, and plans.

use thalweg_config::declare::Catalog;
use thalweg_device::testing::Lab;
use thalweg_device::testing::ip4::{framed, ip, udp};
use thalweg_feat_first::FEATURE;

fn lab() -> Lab {
    let setup = Lab::of(&FEATURE).with(&thalweg_feat_ip4::FEATURE);
    setup.workers(1).interfaces(2).ip4(2..=2).start()
}

#[test]
fn the_command_sets_what_the_node_reads() {
    let mut lab = lab();
    let sw_if = lab.sw_if(0);
    lab.c.enable_feature("ip4-unicast", "drop-ttl-chosen", sw_if, true).expect("a feature");
    lab.ok("first unlucky-ttl 7");
    let frame = |ttl| framed(0, 2, &udp(ip(0, 2), ip(1, 2), 20).ttl(ttl).build());
    lab.receive(0, vec![frame(7), frame(13)]);
    assert_eq!((lab.sent().len(), lab.count("drop-ttl-chosen", "unlucky ttl")), (1, 1));
    lab.close();
}

#[test]
fn documents_have_its_key_and_plans_its_command() {
    let mut lab = lab();
    let catalog = Catalog::new(FEATURE.sections().collect()).expect("rules");
    let wanted = catalog.read("wanted", "thalweg: {first: {unlucky-ttl: 7}}").expect("a document");
    let plan = |lab: &Lab| -> Vec<String> {
        catalog.dump(&lab.c).plan_to(&wanted).commands().map(str::to_owned).collect()
    };
    assert_eq!(plan(&lab), ["first unlucky-ttl 7"]);
    lab.ok("first unlucky-ttl 007");
    assert_eq!(plan(&lab), [] as [&str; 0]);
    let back = catalog.read("empty", "{}").expect("a document");
    let commands = catalog.dump(&lab.c).plan_to(&back);
    assert_eq!(commands.commands().collect::<Vec<_>>(), ["first unlucky-ttl 13"]);
    lab.close();
}

#[test]
fn a_value_that_cannot_be_is_refused() {
    let mut lab = lab();
    assert!(lab.cli("first unlucky-ttl 64").contains("cannot be unlucky"));
    assert!(lab.cli("first unlucky-ttl 256").contains("255"));
    let catalog = Catalog::new(FEATURE.sections().collect()).expect("rules");
    assert!(catalog.read("wrong", "thalweg: {first: {unlucky-ttl: many}}").is_err());
    lab.close();
}
