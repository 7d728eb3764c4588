//! Documents against the schema, with a section that supports a few keys.

use super::*;

/// Supports MTUs and addresses, and dumps nothing.
struct Small;

impl Section<()> for Small {
    fn supports(&self) -> Vec<&'static str> {
        vec!["interfaces.*.mtu", "interfaces.*.addresses.[]", "loopbacks.*.mtu"]
    }
    fn rules(&'static self) -> Vec<Rule> {
        vec![Rule::new("thalweg.interfaces.*.promiscuous", Kind::Bool)]
    }
    fn dump(&self, (): &(), _: &mut Dump<'_>) {}
    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for i in doc.interfaces() {
            if i.name.starts_with("host-") || i.is_loopback() {
                out.claim(&i.name);
            }
            if let Some(mtu) = i.get("mtu") {
                let set = format!("mtu {} {}", i.name, mtu.node.value);
                out.add(Item::new(rank::MTU, format!("mtu {}", i.name), mtu.path, set));
            }
            for a in i.list("addresses") {
                let key = format!("address {} {}", i.name, a.node.value);
                out.add(Item::new(rank::ADDRESS, key.clone(), a.path, key));
            }
        }
    }
}

fn catalog() -> Catalog<()> {
    Catalog::new(vec![&Small]).unwrap()
}

fn wrong(text: &str) -> String {
    catalog().read("f.yaml", text).unwrap_err().to_string()
}

#[test]
fn the_schema_is_a_tree() {
    for rule in schema::RULES {
        if let Some((above, _)) = rule.path.rsplit_once('.') {
            let parent = schema::RULES.iter().find(|r| r.path == above);
            let kind = parent.map(|p| p.kind);
            let last = rule.path.rsplit('.').next().unwrap();
            let fits = match last {
                "*" => matches!(kind, Some(Kind::Named(_))),
                "[]" => matches!(kind, Some(Kind::List(..))),
                _ => matches!(kind, Some(Kind::Keys)),
            };
            assert!(fits, "{}: {kind:?}", rule.path);
        }
    }
}

#[test]
fn valid_documents_are_accepted() {
    let text = "
interfaces:
  host-eth0:
    description: uplink
    mtu: 1500
    addresses: [192.0.2.1/24, 2001:db8::1/64]
    mpls: false
loopbacks:
  loop0: {mtu: 9000}
bridgedomains: {}
acls:
thalweg:
  interfaces:
    host-eth0: {promiscuous: true}
";
    let document = catalog().read("f.yaml", text).unwrap();
    let keys: Vec<&str> = document.items().iter().map(Item::key).collect();
    assert_eq!(
        keys,
        [
            "mtu host-eth0",
            "address host-eth0 192.0.2.1/24",
            "address host-eth0 2001:db8::1/64",
            "mtu loop0"
        ]
    );
    let path = ["interfaces", "host-eth0"].map(String::from).to_vec();
    assert_eq!(document.notes(), [(path, "uplink".to_owned())]);
}

#[test]
fn errors_name_place_path_and_valid_values() {
    assert_eq!(
        wrong("interfaces:\n  host-eth0:\n    mtu: 100\n    adresses: [192.0.2.1/24]\n"),
        "f.yaml:3:10: interfaces.host-eth0.mtu: a whole number from 128 to 9216 expected, not \
         `100'\n\
         f.yaml:4:15: interfaces.host-eth0.adresses: unknown key; did you mean `addresses'?"
    );
    let text = wrong("loopbacks:\n  lo0: {}\n  loop1: {mac: 5}\n");
    assert!(
        text.contains("2:8: loopbacks: loop and a number, such as loop0 expected, not `lo0'"),
        "{text}"
    );
    assert!(text.contains("3:16: loopbacks.loop1.mac: a MAC address such as"), "{text}");
    assert!(wrong("interfaces: [a]\n").contains("each with a colon"));
    assert!(wrong("- a\n").contains("keys such as `interfaces' expected, not a list"));
    let text = wrong("vxlan_tunnels:\n  vxlan_tunnel0: {local: 192.0.2.1, vni: 5}\n");
    assert!(text.contains("`remote' is missing"), "{text}");
    let text = wrong("interfaces:\n  host-a: {addresses: [192.0.2.1]}\n");
    assert!(text.contains("host-a.addresses[0]: an address with its length"), "{text}");
    let text = wrong("interfaces:\n  host-a: {addresses: [10.0.0.1/8, 10.0.0.1/8]}\n");
    assert!(text.contains("configured twice"), "{text}");
}

#[test]
fn unsupported_settings_are_reported_once_and_never_ignored() {
    let text = wrong(
        "interfaces:
  host-eth0:
    lcp: ice0
    mpls: true
    sub-interfaces:
      100: {mtu: 1500, encapsulation: {dot1q: 100}}
      101:
  tap0: {mtu: 1500}
bridgedomains:
  bd1: {interfaces: [host-eth0]}
acls:
  acl01: {terms: [{action: permit, source-port: '1024-', icmp-type: any}]}
",
    );
    let lines: Vec<&str> = text.lines().map(|l| l.split_once(": ").unwrap().1).collect();
    assert_eq!(
        lines,
        [
            "not supported yet: interfaces.host-eth0.lcp",
            "not supported yet: interfaces.host-eth0.mpls",
            "not supported yet: interfaces.host-eth0.sub-interfaces.100",
            "not supported yet: interfaces.host-eth0.sub-interfaces.101",
            "not supported yet: interfaces.tap0 (interfaces are host-<device>, pg<n>, sink<n>, \
             loop<n> and local0)",
            "not supported yet: bridgedomains.bd1",
            "not supported yet: acls.acl01",
        ]
    );
    // Inside, problems are still found.
    let text = wrong("interfaces:\n  host-a:\n    sub-interfaces:\n      100: {mtu: 1}\n");
    assert!(text.contains("sub-interfaces.100.mtu: a whole number"), "{text}");
}

#[test]
fn a_section_cannot_support_an_unknown_path() {
    struct Wrong;
    impl Section<()> for Wrong {
        fn supports(&self) -> Vec<&'static str> {
            vec!["interfaces.*.colour"]
        }
        fn dump(&self, (): &(), _: &mut Dump<'_>) {}
        fn items(&self, _: &Doc<'_>, _: &mut Draft) {}
    }
    assert_eq!(Catalog::new(vec![&Wrong]).err(), Some(NoRule("interfaces.*.colour")));
}
