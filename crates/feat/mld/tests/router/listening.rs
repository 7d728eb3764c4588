//! Groups are reported as they are joined and left.

use crate::lab::{Listens, Said, router};
use std::net::Ipv6Addr;
use thalweg_device::testing::ip6::at;
use thalweg_feat_ip6::link_local;

/// The records of all reports of version 2, sorted.
fn records(said: &[Said]) -> Vec<(u8, Ipv6Addr)> {
    assert!(said.iter().all(|s| (s.kind, s.dst) == (143, at("ff02::16"))), "{said:?}");
    let mut all: Vec<_> = said.iter().flat_map(|s| s.records.clone()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The group in which an address is solicited.
fn solicited(ip: Ipv6Addr) -> Ipv6Addr {
    thalweg_wire::nd::solicited_node(ip)
}

#[test]
fn groups_are_reported_as_they_come_and_go() {
    let mut lab = router();
    assert!(lab.said(0).is_empty());
    lab.ok("set interface ip address test0 2001:db8::aa:1/64");
    let own = link_local::of(&lab.c, lab.sw_if(0)).unwrap();
    let first = lab.said(0);
    let mut all = [at("ff02::2"), at("ff02::16"), solicited(own), at("ff02::1:ffaa:1")];
    all.sort_unstable();
    let joined: Vec<_> = all.iter().map(|group| (4, *group)).collect();
    assert_eq!((first.len(), first[0].src, records(&first)), (1, own, joined.clone()));
    // The router repeats the report once within a second.
    lab.wait(1500);
    assert_eq!(records(&lab.said(0)), joined);
    lab.wait(5000);
    assert!(lab.said(0).is_empty());
    // Another address of the same group changes nothing; one of another group does.
    lab.ok("set interface ip address test0 2001:db8:1::aa:1/64");
    lab.wait(2000);
    assert!(lab.said(0).is_empty());
    lab.ok("set interface ip address test0 2001:db8:2::bb:1/64");
    assert_eq!(records(&lab.said(0)), [(4, at("ff02::1:ffbb:1"))]);
    lab.ok("set interface ip address del test0 2001:db8::aa:1/64");
    lab.wait(2000);
    assert_eq!(records(&lab.said(0)), [(4, at("ff02::1:ffbb:1"))]);
    lab.ok("set interface ip address del test0 2001:db8:1::aa:1/64");
    assert_eq!(records(&lab.said(0)), [(3, at("ff02::1:ffaa:1"))]);
    assert_eq!(lab.listed(0).len(), 4);
    lab.close();
}

#[test]
fn an_interface_that_comes_up_reports_all() {
    let mut lab = router();
    lab.ok("enable ip6 interface test0");
    lab.wait(3000);
    lab.said(0);
    lab.up(0, false);
    lab.wait(3000);
    assert!(lab.said(0).is_empty() && lab.listed(0).is_empty());
    lab.up(0, true);
    assert_eq!(records(&lab.said(0)).len(), 3);
    assert_eq!(lab.listed(0).len(), 3);
    // Without IPv6 it leaves them, and has nothing more to say.
    lab.wait(3000);
    lab.said(0);
    lab.ok("disable ip6 interface test0");
    let left = records(&lab.said(0));
    assert!(left.len() == 3 && left.iter().all(|(kind, _)| *kind == 3), "{left:?}");
    lab.wait(3000);
    lab.said(0);
    assert!(lab.cli("show ip6 mld").is_empty());
    lab.close();
}

#[test]
fn sub_interfaces_report_with_their_tags() {
    let mut lab = router();
    lab.cli("create sub-interfaces test0 99");
    lab.ok("set interface state test0.99 up");
    lab.ok("set interface ip address test0.99 2001:db8::aa:1/64");
    lab.turn();
    let tagged: Vec<_> = lab.sent().into_iter().map(|(_, frame)| frame).collect();
    let report = tagged.iter().find(|f| f[12..18] == [0x81, 0, 0, 99, 0x86, 0xdd] && f[24] == 0);
    let report = report.expect("a report with a tag");
    // Four records: that of all hosts is not reported.
    assert_eq!((report[66], report[73]), (143, 4));
    lab.close();
}

#[test]
fn addresses_under_test_are_no_source() {
    let mut lab = router();
    lab.ok("set ip6 dad enable");
    lab.ok("enable ip6 interface test0");
    let first = lab.said(0);
    assert!(first.iter().all(|s| s.src.is_unspecified()) && records(&first).len() == 3);
    lab.wait(2500);
    let own = link_local::of(&lab.c, lab.sw_if(0)).unwrap();
    let later = lab.said(0);
    // The router says all again once the address is tested.
    let known: Vec<_> = later.into_iter().filter(|s| s.src == own).collect();
    assert_eq!(records(&known).len(), 3);
    lab.close();
}

#[test]
fn many_addresses_take_several_reports() {
    let mut lab = router();
    for n in 1..=200 {
        lab.ok(&format!("set interface ip address test0 2001:db8:{n:x}::{n:x}/64"));
    }
    let said = lab.said(0);
    let groups = records(&said).len();
    assert!(said.len() == 4 && groups == lab.listed(0).len() && groups > 200, "{groups}");
    lab.close();
}

#[test]
fn groups_of_hosts_behind_others_are_reported() {
    let mut lab = router();
    lab.ok("enable ip6 interface test0\nenable ip6 interface test1");
    lab.wait(3000);
    lab.said(0);
    lab.ok("set ip6 nd proxy test1 2001:db8::cc:1");
    assert_eq!(records(&lab.said(0)), [(4, at("ff02::1:ffcc:1"))]);
    lab.ok("set ip6 nd proxy test1 del 2001:db8::cc:1");
    lab.wait(3000);
    assert!(!lab.listed(0).contains(&"1:ffcc:1".to_owned()));
    lab.close();
}
