//! Labels that the kernel has routes of, and those that users write.

use crate::lab::{Left, Mpls, inner, labelled, router, router_with_ip6};
use proptest::prelude::*;
use std::collections::BTreeMap;
use thalweg_device::interface;
use thalweg_device::testing::Lab;
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip4::ip;
use thalweg_feat_mpls::{Key, Mpls as Labelled, MplsError, Via, need_table, set_found_label};
use thalweg_fib::TableId;
use thalweg_fib::rib::{Labels, Mode, Path, Source};
use thalweg_wire::build::Packet;
use thalweg_wire::mpls::Label;

const TABLE: TableId = TableId(0);

fn key(label: u32, eos: bool) -> Key {
    Key { label: Label(label), eos }
}

/// A path to a host behind `testN`, with a label in the place of the one that it is bound to, or
/// with none.
fn to(lab: &Lab, n: u8, swap: Option<u32>) -> Via {
    let labels: Vec<Label> = swap.map(Label).into_iter().collect();
    let labels = Labels::new(&labels).expect("one label");
    Via::Path(Path { labels, ..Path::via(ip(n, 2), Some(lab.sw_if(n))) })
}

fn found(lab: &mut Lab, label: u32, eos: bool, vias: Vec<Via>) -> Result<(), MplsError> {
    set_found_label(&lab.c, TABLE, key(label, eos), Source::KernelDynamic, vias)
}

#[test]
fn a_written_label_wins_and_leaves_the_kernels() {
    let mut lab = router();
    let by_kernel = vec![to(&lab, 1, Some(200))];
    found(&mut lab, 100, true, by_kernel.clone()).expect("a path");
    let left = |lab: &mut Lab| {
        let left = lab.one(0, &labelled(&[100], 64));
        (left.by, left.labels[0].0)
    };
    assert_eq!(left(&mut lab), (1, 200));
    let text = lab.cli("show mpls fib 100");
    assert!(text.contains("lcp-rt-dynamic refs:1 src-flags:added,contributing"), "{text}");
    // A user has not written it.
    assert!(lab.cli("mpls local-label del 100 eos").contains("no label"));
    lab.ok("mpls local-label add 100 eos via 10.0.2.2 test2 out-labels 300");
    assert_eq!(left(&mut lab), (2, 300));
    let text = lab.cli("show mpls fib 100");
    assert!(text.contains("CLI refs:1") && text.contains("lcp-rt-dynamic refs:1"), "{text}");
    // The kernel's changes meanwhile.
    let by_kernel = vec![to(&lab, 1, Some(201))];
    found(&mut lab, 100, true, by_kernel).expect("a path");
    assert_eq!(left(&mut lab), (2, 300));
    lab.ok("mpls local-label del 100 eos");
    assert_eq!(left(&mut lab), (1, 201));
    // A label that is bound to a prefix is a written one, too.
    lab.ok("ip route add 16.0.0.0/24 via 10.0.2.2 test2 out-labels 400");
    lab.ok("mpls local-label add 100 16.0.0.0/24");
    assert_eq!(left(&mut lab), (2, 400));
    lab.ok("mpls local-label del 100 16.0.0.0/24");
    assert_eq!(left(&mut lab), (1, 201));
    found(&mut lab, 100, true, vec![]).expect("none");
    lab.lost(0, &labelled(&[100], 64), "mpls-lookup", "mpls label is not bound");
    // Paths that wait behind written ones go without a trace.
    lab.ok("mpls local-label add 100 eos via 10.0.2.2 test2 out-labels 300");
    let by_kernel = vec![to(&lab, 1, Some(201))];
    found(&mut lab, 100, true, by_kernel).expect("a path");
    found(&mut lab, 100, true, vec![]).expect("none");
    lab.ok("mpls local-label del 100 eos");
    lab.lost(0, &labelled(&[100], 64), "mpls-lookup", "mpls label is not bound");
    lab.close();
}

#[test]
fn reserved_labels_and_tables_that_are_not_there_are_refused() {
    let mut lab = router();
    for label in 0..16 {
        let via = vec![to(&lab, 1, Some(200))];
        assert!(found(&mut lab, label, true, via).is_err(), "{label}");
    }
    let via = vec![to(&lab, 1, None)];
    let done = set_found_label(&lab.c, TableId(9), key(16, true), Source::KernelStatic, via);
    assert!(matches!(done, Err(MplsError::NoTable(_))), "{done:?}");
    // Needed by labels of the kernel, it is in no document until a user says so.
    need_table(&mut lab.c, TableId(9)).expect("a table");
    let is_written = |lab: &Lab| lab.c.state::<Labelled>().borrow().is_written(TableId(9));
    assert!(!is_written(&lab));
    lab.ok("mpls table add 9");
    assert!(is_written(&lab));
    need_table(&mut lab.c, TableId(9)).expect("a table");
    assert!(is_written(&lab));
    lab.close();
}

/// Its TTL goes to the packet, whose class stays, by next hops and by tables.
#[test]
fn a_packet_takes_over_the_ttl_alone() {
    let mut lab = router_with_ip6();
    lab.ok("ip table add 10");
    lab.ok("ip6 table add 10");
    lab.ok("ip route add 16.0.0.0/24 table 10 via 10.0.2.2 test2");
    lab.ok("ip route add 2001:db8:9::/48 table 10 via 2001:db8:0:2::2 test2");
    let hop = Path { labels: Via::popped(Mode::Ttl), ..Path::via(ip(1, 2), Some(lab.sw_if(1))) };
    found(&mut lab, 100, true, vec![Via::Path(hop)]).expect("a path");
    found(&mut lab, 101, true, vec![Via::AnyIp(TableId(10), Mode::Ttl)]).expect("a table");
    found(&mut lab, 102, true, vec![Via::AnyIp(TableId(10), Mode::Pipe)]).expect("a table");
    let packet = |label: u32, ttl: u8| {
        let stack = Packet::new().mpls(label).ttl(ttl);
        stack.ipv4(ip(0, 2), crate::lab::FAR).ttl(33).tos(0xb8).udp(1024, 53).payload(&[7; 100])
    };
    for (label, by, ttl, want) in
        [(100, 1, 9, 8), (100, 1, 200, 32), (101, 2, 9, 8), (101, 2, 200, 32), (102, 2, 9, 32)]
    {
        let left = lab.one(0, &packet(label, ttl));
        let (ttl_now, tos) = (left.rest[8], left.rest[1]);
        assert_eq!((left.by, ttl_now, tos), (by, want, 0xb8), "{label} {ttl}");
        assert!(thalweg_wire::checksum::verify(&left.rest[..20]));
    }
    let v6 = Packet::new().mpls(101).ttl(9).ipv6(
        "2001:db8::2".parse().expect("an address"),
        "2001:db8:9::1".parse().expect("an address"),
    );
    let left = lab.one(0, &v6.ttl(33).udp(1024, 53).payload(&[7; 100]));
    assert_eq!((left.by, left.rest[0] >> 4, left.rest[7]), (2, 6, 8));
    // Neither version.
    let odd = Packet::new().mpls(101).payload(&[0x10; 40]);
    lab.lost(0, &odd, "mpls-lookup", "no ip packet after the last mpls label");
    let none = Packet::new().mpls(101);
    lab.lost(0, &none, "mpls-lookup", "no ip packet after the last mpls label");
    lab.close();
}

#[test]
fn stacks_that_are_added_have_the_ttl_of_the_label() {
    let mut lab = router();
    let labels = Labels::new(&[Label(300), Label(301)]).expect("two").in_mode(Mode::Uniform);
    let path = Path { labels, ..Path::via(ip(1, 2), Some(lab.sw_if(1))) };
    found(&mut lab, 100, true, vec![Via::Path(path)]).expect("a path");
    let left = lab.one(0, &labelled(&[100], 9));
    let labels = vec![(300, 0, false, 8), (301, 0, true, 8)];
    assert_eq!(left, Left { by: 1, to: host_mac(1, 2), labels, rest: inner(33) });
    lab.close();
}

/// A stack of labels that lead to the next one ends.
#[test]
fn labels_that_lead_to_each_other_end() {
    let mut lab = router();
    found(&mut lab, 100, false, vec![Via::Mpls(TABLE)]).expect("a table");
    let by_kernel = vec![to(&lab, 1, Some(200))];
    found(&mut lab, 101, true, by_kernel).expect("a path");
    let stack = |n: usize| [vec![100; n], vec![101]].concat();
    assert_eq!(lab.one(0, &labelled(&stack(8), 64)).labels, [(200, 0, true, 63)]);
    lab.lost(0, &labelled(&stack(16), 64), "mpls-lookup", "too many mpls look-ups of one packet");
    lab.close();
}

#[test]
fn an_interface_that_goes_takes_the_kernels_paths_with_it() {
    let mut lab = router();
    for label in 100..200 {
        let via = vec![to(&lab, 1, Some(label)), to(&lab, 2, Some(label))];
        found(&mut lab, label, true, via).expect("paths");
    }
    lab.ok("mpls local-label add 100 eos via 10.0.1.2 test1 out-labels 300");
    lab.ok("mpls local-label add 101 eos via 10.0.2.2 test2 out-labels 300");
    let gone = lab.sw_if(1);
    interface::delete(&mut lab.c, gone).expect("an interface");
    lab.turn();
    // The written one had no other path: the kernel's other one is followed.
    let left = lab.one(0, &labelled(&[100], 64));
    assert_eq!((left.by, left.labels[0].0), (2, 100));
    assert_eq!(lab.one(0, &labelled(&[101], 64)).labels[0].0, 300);
    lab.ok("mpls local-label del 101 eos");
    assert_eq!(lab.one(0, &labelled(&[101], 64)).labels[0].0, 101);
    assert_eq!(lab.one(0, &labelled(&[150], 64)).by, 2);
    lab.close();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(30) })]
    /// Labels of both come and go; each packet follows the user's, or else the kernel's.
    #[test]
    fn both_sources_agree_with_plain_maps(
        ops in prop::collection::vec((16u32..20, any::<bool>(), any::<bool>(), 16u32..0xf_ffff, 1u8..3), 1..30),
    ) {
        let mut lab = router();
        let mut models = [BTreeMap::new(), BTreeMap::new()];
        for (label, of_kernel, add, out, n) in ops {
            let model = &mut models[usize::from(of_kernel)];
            let was = match add {
                true => model.insert(label, (out, n)),
                false => model.remove(&label),
            };
            match (of_kernel, add) {
                (true, _) => {
                    let vias = add.then(|| to(&lab, n, Some(out))).into_iter().collect();
                    prop_assert!(found(&mut lab, label, true, vias).is_ok());
                }
                (false, true) => lab.ok(&format!(
                    "mpls local-label replace {label} eos via 10.0.{n}.2 test{n} out-labels {out}"
                )),
                (false, false) => {
                    let done = lab.cli(&format!("mpls local-label del {label} eos"));
                    prop_assert_eq!(done.contains("no label"), was.is_none(), "{}", done);
                }
            }
            for label in 16..20 {
                let sent = lab.forward(0, &labelled(&[label], 64), 1);
                let got = sent.first().map(|f| (crate::lab::left(f).labels[0].0, f.0));
                let want = models[0].get(&label).or_else(|| models[1].get(&label));
                prop_assert_eq!(got, want.copied());
            }
        }
        for label in 16..20 {
            prop_assert!(found(&mut lab, label, true, vec![]).is_ok());
        }
        lab.close();
    }
}
