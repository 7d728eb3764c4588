//! Documents with settings of one version, and of both.

use crate::protocol::{SETTINGS_4, SETTINGS_6, STUB_4, STUB_6, lab};
use thalweg_config::declare::{Catalog, Doc, Document, Draft, Dump, Section};
use thalweg_graph::Control;

/// Takes any interface.
struct Claims;
impl Section<Control> for Claims {
    fn dump(&self, _: &Control, _: &mut Dump<'_>) {}
    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        doc.interfaces().iter().for_each(|i| out.claim(&i.name));
    }
}

fn catalog(sections: &[&'static dyn Section<Control>]) -> Catalog<Control> {
    let claims: &'static dyn Section<Control> = &Claims;
    Catalog::new([&[claims], sections].concat()).unwrap()
}

fn one() -> Catalog<Control> {
    catalog(&[&SETTINGS_4])
}

fn both() -> Catalog<Control> {
    catalog(&[&SETTINGS_4, &SETTINGS_6])
}

fn commands(catalog: &Catalog<Control>, text: &str) -> Vec<String> {
    let document = catalog.read("f", text).unwrap_or_else(|e| panic!("{e}"));
    Document::default().plan_to(&document).commands().map(str::to_owned).collect()
}

fn wrong(catalog: &Catalog<Control>, text: &str) -> String {
    catalog.read("f", text).unwrap_err().to_string()
}

#[test]
fn a_next_hop_precedes_routes_through_it() {
    let routes = "
interfaces: {pg0: {addresses: [10.0.0.1/24]}}
thalweg:
  ip-tables:
    0:
      routes:
        0.0.0.0/0: 172.16.0.1
        172.16.0.0/16: 192.168.0.1
        192.168.0.0/16: [10.0.0.2, 10.0.0.3 pg0 weight 2]
    7: {}
";
    assert_eq!(
        commands(&one(), routes),
        [
            "ip table add 7",
            "set interface ip address pg0 10.0.0.1/24",
            "ip route replace 192.168.0.0/16 via 10.0.0.2 via 10.0.0.3 pg0 weight 2",
            "ip route replace 172.16.0.0/16 via 192.168.0.1",
            "ip route replace 0.0.0.0/0 via 172.16.0.1",
        ]
    );
}

#[test]
fn mistakes_are_found_before_anything_is_done() {
    let one = one();
    let table = |routes: &str| {
        wrong(&one, &format!("thalweg: {{ip-tables: {{0: {{routes: {{{routes}}}}}}}}}\n"))
    };
    assert!(table("10.0.0.0/8: pg7").contains("no interface `pg7'"));
    assert!(table("10.0.0.0: drop").contains("an IPv4 prefix such as"));
    assert!(table("'2001:db8::/32': drop").contains("an IPv4 prefix such as"));
    assert!(table("10.0.0.0/8: 5").contains("a path or a list of paths"));
    assert!(table("10.0.0.0/8: [drop, pg0]").contains("a path or a list of paths"));
    let said = table("10.0.0.0/8: 192.0.2.1 weight 0");
    let why = "a number from 1 to 255 as weight in the place of `0' expected, not ";
    assert!(said.contains(why), "{said}");
    assert!(table("10.0.0.0/8: ip6-lookup-in-table 7").contains("is for IPv6 prefixes only"));
    assert!(table("10.0.0.0/8: '2001:db8::1'").contains("not supported yet"));
    let overlap =
        "interfaces:\n  pg0: {addresses: [10.0.0.1/24]}\n  pg1: {addresses: [10.0.0.9/25]}\n";
    assert!(wrong(&one, overlap).contains("10.0.0.9/25 overlaps with 10.0.0.1/24 on `pg0'"));
    let six = "interfaces: {pg0: {addresses: ['2001:db8::1/64']}}\n";
    assert!(wrong(&one, six).contains("not supported yet: interfaces.pg0.addresses[0]"));
    assert!(
        wrong(&one, "interfaces: {pg0: {addresses: [10.0.0.0/24]}}\n")
            .contains("it is the subnet address")
    );
    assert!(wrong(&one, "thalweg: {interfaces: {pg0: {ip-table: 5}}}\n").contains("no table 5"));
    let key = "thalweg: {interfaces: {pg0: {ip6-table: 5}}}\n";
    assert!(wrong(&one, key).contains("ip6-table"));
    assert!(wrong(&both(), key).contains("`thalweg.ip6-tables.5: {}' makes it"));
    let overlap = "interfaces:\n  pg0: {addresses: ['2001:db8::1/64']}\n  \
                   pg1: {addresses: ['2001:db8::9/65']}\n";
    let text = wrong(&both(), overlap);
    assert!(text.contains("2001:db8::9/65 overlaps with 2001:db8::1/64 on `pg0'"), "{text}");
    let text = wrong(&both(), "thalweg: {ip6-tables: {0: {routes: {10.0.0.0/8: drop}}}}\n");
    assert!(text.contains("an IPv6 prefix such as 2001:db8::/32 expected"), "{text}");
    let alone = catalog(&[&SETTINGS_6]);
    let text = wrong(&alone, "interfaces: {pg0: {addresses: [10.0.0.1/24]}}\n");
    assert!(text.contains("not supported yet: interfaces.pg0.addresses[0] (an IPv4 address)"));
}

#[test]
fn addresses_wait_for_their_table() {
    let text = "
interfaces: {pg0: {addresses: [10.0.0.1/24]}, pg1: {addresses: [10.0.0.1/24]}}
thalweg: {interfaces: {pg1: {ip-table: 7}}, ip-tables: {7: ~}}
";
    assert_eq!(
        commands(&one(), text),
        [
            "ip table add 7",
            "set interface ip table pg1 7",
            "set interface ip address pg0 10.0.0.1/24",
            "set interface ip address pg1 10.0.0.1/24",
        ]
    );
}

#[test]
fn documents_of_both_versions_are_applied_and_dumped() {
    let mut lab = lab(&[&STUB_4, &STUB_6]);
    let catalog = both();
    let empty = catalog.dump(&lab.c);
    let text = "interfaces:
  test0:
    addresses:
      - 10.0.0.1/24
      - 2001:db8::1/64
  test1:
    addresses:
      - 2001:db8::1/64
thalweg:
  interfaces:
    test1:
      ip6-table: 7
  ip-tables:
    '0':
      routes:
        192.0.2.0/24: 2001:db8::5 test0
        198.51.100.0/24: 10.0.0.2
  ip6-tables:
    '0':
      routes:
        ::/0: 2001:db8:5::1
        2001:db8:5::/48:
          - 2001:db8::2
          - 2001:db8::3 test0 weight 2
        2001:db8:6::/48: fe80::1 test0
    '4294967295': {}
    '7':
      routes:
        2001:db8:7::/48: prohibit
";
    let document = catalog.read("f", text).unwrap_or_else(|e| panic!("{e}"));
    let plan: Vec<String> = empty.plan_to(&document).commands().map(str::to_owned).collect();
    plan.iter().for_each(|line| lab.ok(line));
    let dumped = catalog.dump(&lab.c);
    assert_eq!(dumped.plan_to(&document).commands().next(), None);
    assert_eq!(document.plan_to(&dumped).commands().next(), None);
    let back: Vec<String> = dumped.plan_to(&empty).commands().map(str::to_owned).collect();
    back.iter().for_each(|line| lab.ok(line));
    let left = catalog.dump(&lab.c);
    assert_eq!(left.to_yaml().unwrap(), empty.to_yaml().unwrap());
    lab.close();
}
