//! The commands: what they print, what they refuse, what they complete.

use crate::{bare, router};
use serde_json::Value;
use thalweg_device::testing::Lab;
use thalweg_testkit::golden;

/// A router with routes of every kind.
fn configured() -> Lab {
    let mut lab = router();
    lab.ok("ip table add 7\n\
         set interface ip address test1 10.0.1.9/24\n\
         ip route add 192.0.2.0/24 via 10.0.1.2 test1\n\
         ip route add 198.51.100.77/24 via 10.0.1.2 weight 1 via 10.0.2.2 test2 weight 3\n\
         ip route add 203.0.113.0/26 drop\n\
         ip route add 203.0.113.64/26 via unreachable\n\
         ip route add 203.0.113.128/26 via null-send-prohibit\n\
         ip route add 203.0.113.192/26 local\n\
         ip route add 100.64.0.0/16 via test2\n\
         ip route add 100.65.0.0/16 via 198.51.100.1 via 10.0.0.3 test0\n\
         ip route add 192.0.2.0/24 table 7 via 10.0.2.77 test2\n\
         ip route 172.16.0.0/12 via 10.0.0.4");
    lab
}

#[test]
fn routes_are_shown_as_vpp_shows_them() {
    let mut lab = configured();
    golden!("tests/golden/show_ip_fib.txt", lab.cli("show ip fib"));
    golden!("tests/golden/show_ip_fib_detail.txt", lab.cli("show ip fib table 0 detail"));
    golden!("tests/golden/show_ip_fib_summary.txt", lab.cli("show ip fib summary"));
    golden!("tests/golden/show_ip_fib_lookup.txt", lab.cli("show ip fib 192.0.2.200"));
    golden!("tests/golden/show_ip_fib_route.txt", lab.cli("sh ip fib table 0 198.51.100.0/24"));
    golden!("tests/golden/show_ip_table.txt", lab.cli("show ip table"));
    assert_eq!(lab.cli("show ip fib 10.0.1.2"), lab.cli("show ip fib 10.0.1.2/32 table 0"));
    lab.close();
}

#[test]
fn every_show_command_has_json() {
    let mut lab = configured();
    let json = |lab: &mut Lab, line: &str| -> Value {
        let text = lab.cli(&format!("{line} | json"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{line}: {e}: {text}"))
    };
    let fib = json(&mut lab, "show ip fib");
    assert_eq!((fib[0]["table"].as_u64(), fib[1]["table"].as_u64()), (Some(0), Some(7)));
    let routes = fib[0]["routes"].as_array().expect("routes");
    let find = |p: &str| routes.iter().find(|r| r["prefix"] == p).unwrap_or_else(|| panic!("{p}"));
    let ecmp = find("198.51.100.0/24");
    assert_eq!(ecmp["source"], "CLI");
    assert_eq!(ecmp["forwarding"].as_array().map(Vec::len), Some(2));
    assert_eq!(ecmp["forwarding"][1]["via"], "10.0.2.2");
    assert_eq!(ecmp["forwarding"][1]["weight"], 3);
    assert_eq!(ecmp["forwarding"][1]["interface"], "test2");
    assert_eq!(ecmp["forwarding"][1]["rewrite"], "02000099020202000000001208 00".replace(' ', ""));
    assert_eq!(find("203.0.113.0/26")["forwarding"][0]["kind"], "drop");
    assert_eq!(find("10.0.1.1/32")["forwarding"][0]["kind"], "receive");
    assert_eq!(find("100.65.0.0/16")["paths"][0]["next_hop"], "10.0.0.3");
    let one = json(&mut lab, "show ip fib 192.0.2.1 table 7");
    assert_eq!(one[0]["routes"][0]["forwarding"][0]["kind"], "incomplete");
    let summary = json(&mut lab, "show ip fib summary");
    assert_eq!(summary[0]["routes"].as_u64(), Some(routes.len() as u64));
    let tables = json(&mut lab, "show ip table");
    assert_eq!(tables[0]["interfaces"], serde_json::json!(["test0", "test1", "test2"]));
    assert_eq!(tables[1]["table"], 7);
    lab.close();
}

#[test]
fn every_setting_can_be_undone() {
    let mut lab = bare().start();
    let empty = (lab.cli("show ip fib"), lab.cli("show interface address"));
    lab.ok("set interface ip address test0 10.0.0.1/24\n\
         set int ip addr test0 10.0.5.1/30\n\
         ip table add 3\n\
         set interface ip table test2 3\n\
         set interface ip address test2 10.0.0.1/24\n\
         ip route add 192.0.2.0/24 via 10.0.0.2 via 10.0.0.3");
    assert!(lab.cli("ip route add count 3 198.51.100.0/30 drop").ends_with("routes/sec\n"));
    let text = lab.cli("show interface address");
    assert!(text.contains("L3 10.0.0.1/24") && text.contains("table-id 3"), "{text}");
    // One path less, then the rest.
    lab.ok("ip route del 192.0.2.0/24 via 10.0.0.3");
    let fib = lab.cli("show ip fib 192.0.2.0/24");
    assert!(fib.contains("via 10.0.0.2") && !fib.contains("10.0.0.3"), "{fib}");
    lab.ok("ip route del 192.0.2.0/24\n\
         set interface ip address del test0 10.0.5.1/30\n\
         set interface ip address del test0 all\n\
         set interface ip address del test2 all\n\
         set interface ip table test2 0\n\
         ip table del 3");
    assert!(lab.cli("ip route del count 3 198.51.100.0/30").ends_with("routes/sec\n"));
    assert_eq!((lab.cli("show ip fib"), lab.cli("show interface address")), empty);
    lab.close();
}

#[test]
fn routes_that_lead_nowhere_are_kept_and_say_why() {
    let mut lab = router();
    for (via, why) in [
        ("172.16.0.1", "next hop 172.16.0.1 is not reachable: no connected subnet"),
        ("10.0.1.1", "next hop 10.0.1.1 is this router's own address"),
        ("192.0.2.1", "next hop 192.0.2.1 resolves through itself"),
    ] {
        lab.ok(&format!("ip route replace 192.0.2.0/24 via {via}"));
        let text = lab.cli("show ip fib 192.0.2.0/24");
        assert!(text.contains("recursive: oper-flags:drop,"), "{text}");
        assert!(text.contains(&format!("unresolved: {why}")), "{text}");
        assert!(text.contains("dpo-drop: unresolved"), "{text}");
    }
    // One of two paths; the other follows with its subnet.
    lab.ok("ip route replace 192.0.2.0/24 via 10.0.1.2 via 10.9.0.2 weight 3 preference 1");
    let text = lab.cli("show ip fib 192.0.2.0/24");
    assert_eq!(text.matches("unresolved: ").count(), 1, "{text}");
    assert!(text.contains("weight=3 pref=1"), "{text}");
    assert!(
        text.contains("oper-flags:resolved,") && !text.contains("dpo-drop: unresolved"),
        "{text}"
    );
    lab.ok("set interface ip address test0 10.9.0.1/24");
    let text = lab.cli("show ip fib 192.0.2.0/24");
    assert!(!text.contains("unresolved: "), "{text}");
    lab.close();
}

#[test]
fn mistakes_are_reported() {
    let mut lab = router();
    lab.ok("ip table add 7");
    let cases = [
        ("ip route add 192.0.2.0/24 via 10.0.1.2 preference 256", "a number from 0 to 255"),
        ("ip route add 192.0.2.0/24 via test9", "an interface (did you mean test0"),
        ("ip route add 192.0.2.0/24 via 10.0.1.2 test9", "interface"),
        ("ip route add 192.0.2.0/24", "`via <next hop>'"),
        ("ip route add via 10.0.1.2", "an IPv4 prefix such as 192.0.2.0/24"),
        ("ip route add 192.0.2.0/33 via 10.0.1.2", "an IPv4 prefix such as"),
        ("ip route add 192.0.2.0 via 10.0.1.2", "an IPv4 prefix such as"),
        ("ip route add 192.0.2.0/24 via", "a next hop, an interface, or a word such as `drop'"),
        ("ip route add 192.0.2.0/24 via 1", "a next hop such as 192.0.2.1"),
        ("ip route add 192.0.2.0/24 via 10.0.1.2 weight 0", "a number from 1 to 255"),
        ("ip route add 192.0.2.0/24 drop via 10.0.1.2", "`drop' cannot share a route"),
        (
            "ip route add 192.0.2.0/24 table 9 via 10.0.1.2 test1",
            "no IPv4 table 9; `ip table add 9`",
        ),
        (
            "ip route add 192.0.2.0/24 10.0.0.0/8 drop",
            "unexpected `10.0.0.0/8' after `192.0.2.0/24'",
        ),
        ("ip route add count 0 192.0.2.0/24 drop", "a number from 1 to"),
        (
            "ip route add count 257 255.0.0.0/16 drop",
            "only 256 prefixes of length 16 from 255.0.0.0",
        ),
        ("ip route del 192.0.2.0/24", "no route 192.0.2.0/24 in table 0"),
        ("ip route del 10.0.1.0/24", "that was configured (this one is from: interface)"),
        ("ip table del 0", "table 0 is the default table of all interfaces"),
        ("ip table del 8", "no IPv4 table 8"),
        ("ip table", "`add', `del' or `unreachables'"),
        ("set interface ip table test0 7", "`test0` has addresses"),
        ("set interface ip table test0 8", "no IPv4 table 8"),
        ("set interface ip address test1 10.0.0.77/16", "overlaps with 10.0.0.1/24 on `test0`"),
        (
            "set interface ip address test1 10.0.1.1/24",
            "`test1` has the address 10.0.1.1/24 already",
        ),
        ("ip route add 10.8.0.0/16 via 10.0.0.300", "bad next hop `10.0.0.300' (argument 4)"),
        (
            "ip route add 10.8.0.0/16 via 10.0.0.9 wieght 3",
            "bad word after the next hop `wieght' (argument 5): expected an interface, or \
             `weight', `preference', `out-labels', `next-hop-table', `via' (did you mean weight?)",
        ),
        (
            "ip route add 10.8.0.0/16 via 10.0.0.9 10.0.0.10",
            "bad word after the next hop `10.0.0.10' (argument 5): expected an interface (",
        ),
        ("set interface ip address test1 10.9.0.0/24", "it is the subnet address"),
        ("set interface ip address test1 224.0.0.1/24", "it is a multicast address"),
        ("set interface ip address test1 10.9.0.1", "an IPv4 prefix such as"),
        ("set interface ip address test9 10.9.0.1/24", "interface"),
        (
            "set interface ip address del test1 10.0.1.2/24",
            "has no address 10.0.1.2/24; it has 10.0.1.1/24",
        ),
        ("set interface ip address test1 all", "an IPv4 prefix such as"),
        ("show ip fib table 9", "no IPv4 table 9"),
        ("show ip fib table 0 192.0.2.0/24", "no route 192.0.2.0/24 in table 0"),
        (
            "show ip fib table 0 10.0.1.0/25",
            "no route 10.0.1.0/25 in table 0; 10.0.1.0/24 covers it",
        ),
        ("show ip fib nonsense", "an address or prefix such as 192.0.2.1"),
        ("ping 192.0.2.1", "Failed: no egress interface: no route to 192.0.2.1 in table 0"),
        ("ping 10.0.1.2 table-id 9", "no IPv4 table 9"),
        ("ping 10.0.1.2 interval 0", "seconds from 0.00001 to 86400"),
        ("ping 10.0.1.2 repeat 0", "a number from 1 to"),
        ("ping 10.0.1.2 size 65500", "a number from 0 to 65499"),
        ("ping host", "an IPv4 address such as"),
        ("ping 10.0.1.2 source test9", "interface"),
    ];
    let before = lab.cli("show ip fib");
    for (line, want) in cases {
        let text = lab.cli(line);
        assert!(text.contains(want), "{line}\nsaid: {text}wanted: {want}");
    }
    assert_eq!(lab.cli("show ip fib"), before);
    lab.close();
}

#[test]
fn words_and_names_complete() {
    let lab = router();
    let all = |line: &str| lab.complete(line);
    let has = |line: &str, word: &str| all(line).iter().any(|w| w == word);
    assert_eq!(all("set interface ip address te"), ["test0", "test1", "test2"]);
    assert_eq!(all("set interface ip address del test1 "), ["10.0.1.1/24", "all"]);
    assert_eq!(all("set interface ip table test1 "), ["0"]);
    assert_eq!(all("ip route a"), ["add"]);
    assert_eq!(all("ip route add 192.0.2.0/24 v"), ["via"]);
    assert!(has("ip route add 192.0.2.0/24 via ", "test2"));
    assert!(has("ip route add 192.0.2.0/24 via ", "prohibit"));
    assert!(has("ip route add 192.0.2.0/24 via 10.0.1.2 ", "test1"));
    assert!(has("ip route add 192.0.2.0/24 via 10.0.1.2 ", "weight"));
    assert_eq!(all("ip route add 192.0.2.0/24 via 10.0.1.2 test1 w"), ["weight"]);
    assert_eq!(all("ping 10.0.1.2 source "), ["local0", "test0", "test1", "test2"]);
    assert_eq!(all("ping 10.0.1.2 i"), ["interval", "ipv4"]);
    assert_eq!(all("show ip fib s"), ["summary"]);
    lab.close();
}
