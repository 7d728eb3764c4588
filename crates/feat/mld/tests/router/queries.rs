//! Queries are answered, those that are not sound are dropped.

use crate::lab::{ALERT, Listens, frame, query, router};
use std::net::Ipv6Addr;
use thalweg_device::testing::Lab;
use thalweg_device::testing::ip6::at;

const ALL: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

/// A router whose first reports are over.
fn quiet() -> Lab {
    let mut lab = router();
    lab.ok("set interface ip address test0 2001:db8::aa:1/64");
    lab.wait(3000);
    lab.said(0);
    lab
}

#[test]
fn queries_of_version_2_are_answered_in_one_report() {
    let mut lab = quiet();
    lab.hear(0, at("ff02::1"), &query(ALL, 1000, false));
    lab.wait(1500);
    let said = lab.said(0);
    assert_eq!((said.len(), said[0].kind, said[0].records.len()), (1, 143, 4));
    assert!(said[0].records.iter().all(|(kind, _)| *kind == 2));
    let group = at("ff02::1:ffaa:1");
    lab.hear(0, group, &query(group, 10, false));
    lab.wait(500);
    let said = lab.said(0);
    assert_eq!((said.len(), &said[0].records[..]), (1, &[(2, group)][..]));
    // About the group of all hosts nobody answers.
    lab.hear(0, at("ff02::1"), &query(at("ff02::1"), 10, false));
    lab.wait(500);
    assert!(lab.said(0).is_empty());
    let text = lab.cli("show ip6 mld test0");
    assert!(text.contains("MLDv2, robustness 2, query interval 20 seconds"), "{text}");
    assert!(text.contains("queries received: 3, of version 1: 0"), "{text}");
    assert_eq!(lab.count("icmp6-mld-query", "multicast listener queries received"), 3);
    lab.close();
}

#[test]
fn sources_that_are_asked_for_are_answered() {
    let mut lab = quiet();
    let group = at("ff02::1:ffaa:1");
    let [a, b] = ["2001:db8::1", "2001:db8::2"].map(at);
    let asked = |sources: &[Ipv6Addr]| {
        let mut query = query(group, 10, false);
        query[27] = sources.len() as u8;
        query.extend(sources.iter().flat_map(Ipv6Addr::octets));
        query
    };
    lab.hear(0, group, &asked(&[a, b]));
    lab.wait(500);
    let said = lab.said(0);
    assert_eq!((&said[0].records[..], &said[0].sources[..]), (&[(1, group)][..], &[a, b][..]));
    // More than are kept: for the whole group.
    lab.hear(0, group, &asked(&[a; 9]));
    lab.wait(500);
    let said = lab.said(0);
    assert_eq!((&said[0].records[..], said[0].sources.len()), (&[(2, group)][..], 0));
    lab.close();
}

#[test]
fn queries_of_version_1_are_answered_by_group() {
    let mut lab = quiet();
    lab.hear(0, at("ff02::1"), &query(ALL, 1000, true));
    lab.wait(1500);
    let said = lab.said(0);
    assert_eq!(said.len(), 4);
    assert!(said.iter().all(|s| s.kind == 131 && s.dst == s.records[0].1), "{said:?}");
    // Changes are reported in the same version.
    lab.ok("set interface ip address test0 2001:db8:1::bb:1/64");
    assert_eq!(lab.said(0)[0].kind, 131);
    lab.wait(11_000);
    lab.said(0);
    lab.ok("set interface ip address del test0 2001:db8:1::bb:1/64");
    let said = lab.said(0);
    assert_eq!((said.len(), said[0].kind, said[0].dst), (1, 132, at("ff02::2")));
    assert!(lab.cli("show ip6 mld").contains("MLDv1"));
    lab.close();
}

#[test]
fn unsound_queries_are_dropped() {
    let mut lab = quiet();
    let (host, all) = (at("fe80::9"), at("ff02::1"));
    let (sound, own) = (query(ALL, 10, false), at("fe80::dcad:ff:fe00:0"));
    let named = [130, 0, 0, 0, 0, 10, 0, 0];
    let sources = [&query(at("ff02::2"), 10, false)[..26], &[0, 9]].concat();
    for (frame, reason) in [
        (frame(host, all, 255, ALERT, &sound), "query with a hop limit other than 1"),
        (frame(at("2001:db8::9"), all, 1, ALERT, &sound), "query source not link-local"),
        (frame(ALL, all, 1, ALERT, &sound), "query source not link-local"),
        (frame(host, all, 1, &[], &sound), "query without router alert option"),
        (frame(host, all, 1, &[58, 0, 1, 4, 0, 0, 0, 0], &sound), "query without router alert"),
        (frame(host, all, 1, ALERT, &named), "query of a length that no version has"),
        (frame(host, all, 1, ALERT, &sound[..26]), "query of a length that no version has"),
        (frame(host, all, 1, ALERT, &sources), "query of a length that no version has"),
        (frame(host, all, 1, ALERT, &query(own, 10, false)), "query for a unicast address"),
    ] {
        let before = lab.dropped();
        lab.receive(0, vec![frame]);
        lab.wait(500);
        assert!(lab.said(0).is_empty(), "{reason}");
        assert_eq!(lab.dropped(), before + 1, "{reason}");
        assert!(lab.cli("show errors").contains(reason), "{reason}");
    }
    assert!(lab.cli("show ip6 mld").contains("queries received: 0"));
    lab.close();
}

#[test]
fn a_flood_of_queries_is_bounded() {
    let mut lab = quiet();
    let one = frame(at("fe80::9"), at("ff02::1"), 1, ALERT, &query(ALL, 0, false));
    for _ in 0..20 {
        lab.receive(0, vec![one.clone(); 200]);
        lab.turn();
    }
    lab.wait(500);
    // Answers are at most one each tenth of a second, however long the test takes.
    let said = lab.said(0).len() as u64;
    let received = lab.count("icmp6-mld-query", "multicast listener queries received");
    let throttled =
        lab.count("icmp6-mld-query", "multicast listener queries not answered: rate limit");
    assert!(received == 4000 && throttled > 0 && said < 50, "{received} {throttled} {said}");
    lab.close();
}

#[test]
fn interfaces_go_while_answers_are_due() {
    let mut lab = quiet();
    lab.cli("create sub-interfaces test0 99");
    lab.ok("set interface state test0.99 up");
    lab.ok("enable ip6 interface test0.99");
    lab.wait(1000);
    lab.hear(0, at("ff02::1"), &query(ALL, 10_000, true));
    lab.ok("delete sub-interface test0.99");
    lab.up(0, false);
    lab.said(0);
    lab.wait(15_000);
    assert!(lab.said(0).is_empty());
    lab.close();
}
