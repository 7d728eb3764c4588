//! Labels that follow routes: next hops without an interface, and prefixes.

use crate::lab::{Mpls, inner, labelled, router};
use thalweg_device::testing::host_mac;

#[test]
fn next_hops_without_an_interface_are_followed() {
    let mut lab = router();
    lab.ok("mpls local-label add 16 eos via 1.1.1.1 out-labels 17");
    lab.ok("mpls local-label add 17 non-eos via 1.1.1.1 out-labels implicit-null");
    lab.ok("mpls local-label add 18 eos via 1.1.1.1");
    let why = "next hop of the mpls label leads nowhere";
    lab.lost(0, &labelled(&[16], 64), "mpls-lookup", why);
    lab.ok("ip route add 1.1.1.1/32 via 10.0.1.2 test1");
    let left = lab.one(0, &labelled(&[16], 64));
    assert_eq!((left.by, left.to), (1, host_mac(1, 2)));
    assert_eq!(left.labels, [(17, 0, true, 63)]);
    assert_eq!(lab.one(0, &labelled(&[17, 99], 64)).labels, [(99, 0, true, 64)]);
    let popped = lab.one(0, &labelled(&[18], 64));
    assert_eq!((popped.labels.len(), popped.rest), (0, inner(32)));
    // The labels of the route come before.
    lab.ok("ip route replace 1.1.1.1/32 via 10.0.2.3 test2 out-labels 55 56");
    let left = lab.one(0, &labelled(&[16], 64));
    assert_eq!((left.by, left.to), (2, host_mac(2, 3)));
    assert_eq!(left.labels, [(55, 0, false, 64), (56, 0, false, 64), (17, 0, true, 63)]);
    let left = lab.one(0, &labelled(&[17, 99], 64));
    assert_eq!(left.labels, [(55, 0, false, 64), (56, 0, false, 64), (99, 0, true, 64)]);
    let popped = lab.one(0, &labelled(&[18], 64));
    assert_eq!(popped.labels, [(55, 0, false, 64), (56, 0, true, 64)]);
    lab.ok("ip route del 1.1.1.1/32");
    lab.lost(0, &labelled(&[16], 64), "mpls-lookup", why);
    // Another table knows.
    lab.ok("ip table add 7");
    lab.ok("ip route add 1.1.1.1/32 table 7 via 10.0.1.3 test1 out-labels 60");
    lab.ok("mpls local-label replace 16 eos via 1.1.1.1 next-hop-table 7 out-labels 17");
    assert_eq!(lab.one(0, &labelled(&[16], 9)).labels, [(60, 0, false, 64), (17, 0, true, 8)]);
    lab.close();
}

#[test]
fn paths_with_other_labels_are_followed_together() {
    let mut lab = router();
    lab.ok("ip route add 1.1.1.1/32 via 10.0.1.2 test1");
    lab.ok("ip route add 2.2.2.2/32 via 10.0.2.2 test2 out-labels 55");
    lab.ok("mpls local-label add 16 eos via 1.1.1.1 out-labels 17 preference 1 \
            via 2.2.2.2 out-labels 18");
    let left = lab.one(0, &labelled(&[16], 64));
    assert_eq!((left.by, left.labels), (2, vec![(55, 0, false, 64), (18, 0, true, 63)]));
    // The other one takes over, with its own label.
    lab.up(2, false);
    let left = lab.one(0, &labelled(&[16], 64));
    assert_eq!((left.by, left.labels), (1, vec![(17, 0, true, 63)]));
    // One that pops among others.
    lab.ok("mpls local-label replace 16 eos via 1.1.1.1 via 2.2.2.2 out-labels 18");
    let left = lab.one(0, &labelled(&[16], 64));
    assert_eq!((left.by, left.labels.len(), left.rest), (1, 0, inner(32)));
    lab.close();
}

#[test]
fn a_label_follows_the_route_of_its_prefix() {
    let mut lab = router();
    lab.ok("mpls local-label add 30 16.0.0.0/24");
    lab.lost(0, &labelled(&[30], 64), "mpls-lookup", "mpls label is bound to a drop");
    lab.ok("ip route add 16.0.0.0/24 via 10.0.1.2 test1 out-labels 33");
    lab.settle();
    assert_eq!(lab.one(0, &labelled(&[30], 64)).labels, [(33, 0, true, 63)]);
    let two = lab.one(0, &labelled(&[30, 99], 64));
    assert_eq!(two.labels, [(33, 0, false, 63), (99, 0, true, 64)]);
    let text = lab.cli("show mpls fib 30");
    assert!(text.contains("bound to 16.0.0.0/24 in ipv4-VRF:0"), "{text}");
    // Without labels it is popped.
    lab.ok("ip route replace 16.0.0.0/24 via 10.0.2.2 test2");
    lab.settle();
    let left = lab.one(0, &labelled(&[30], 64));
    assert_eq!((left.by, left.labels.len(), left.rest), (2, 0, inner(32)));
    assert_eq!(lab.one(0, &labelled(&[30, 99], 64)).labels, [(99, 0, true, 64)]);
    lab.ok("ip route del 16.0.0.0/24");
    lab.settle();
    lab.lost(0, &labelled(&[30], 64), "mpls-lookup", "mpls label is bound to a drop");
    // A connected prefix: the host itself is looked up.
    lab.ok("ip table add 7");
    lab.ok("mpls local-label add 31 10.0.0.0/24");
    lab.ok("mpls local-label add 32 10.0.1.0/24 table 7");
    lab.settle();
    lab.lost(0, &labelled(&[31], 64), "ip4-lookup-tunneled", "no route");
    // Another label of a prefix takes the place of the first.
    lab.ok("mpls local-label add 34 16.0.0.0/24");
    lab.lost(0, &labelled(&[30], 64), "mpls-lookup", "mpls label is not bound");
    let text = lab.cli("mpls local-label add 34 eos via 10.0.1.2 test1 out-labels 17");
    assert!(text.contains("is bound to 16.0.0.0/24"), "{text}");
    lab.ok("mpls local-label del 34 16.0.0.0/24");
    // A table takes the labels of its prefixes along.
    lab.ok("ip table del 7");
    lab.settle();
    lab.lost(0, &labelled(&[32], 64), "mpls-lookup", "mpls label is not bound");
    lab.close();
}

#[test]
fn a_label_of_a_prefix_outlives_an_interface() {
    let mut lab = router();
    lab.ok("ip route add 16.0.0.0/24 via 10.0.1.2 test1 out-labels 33");
    lab.ok("ip route add 16.0.0.0/24 via 10.0.2.2 test2 out-labels 34");
    lab.ok("mpls local-label add 30 16.0.0.0/24");
    let gone = lab.sw_if(2);
    thalweg_device::interface::delete(&mut lab.c, gone).expect("deleted");
    lab.settle();
    assert_eq!(lab.one(0, &labelled(&[30], 64)).labels, [(33, 0, true, 63)]);
    lab.ok("ip route replace 16.0.0.0/24 via 10.0.1.3 test1 out-labels 35");
    lab.settle();
    assert_eq!(lab.one(0, &labelled(&[30], 64)).labels, [(35, 0, true, 63)]);
    lab.close();
}
