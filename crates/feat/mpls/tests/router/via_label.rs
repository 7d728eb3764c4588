//! Paths that follow a label's paths: `via-label`.

use crate::lab::{FAR, Mpls, inner, labelled, left, router, router_with_ip6, udp};
use thalweg_device::testing::ip4::ip;
use thalweg_device::testing::ip6::ip as ip6;
use thalweg_device::testing::{Lab, host_mac};
use thalweg_wire::build::Packet;

/// Does what is due after a change.
fn turn(lab: &mut Lab) {
    lab.settle();
    lab.settle();
}

#[test]
fn routes_follow_a_label() {
    let mut lab = router_with_ip6();
    lab.ok("ip route add 16.0.0.0/24 via via-label 32 out-labels 55");
    turn(&mut lab);
    let nowhere = "next hop of the route leads nowhere";
    lab.lost(0, &udp(50), "ip4-lookup", nowhere);
    let text = lab.cli("show ip fib 16.0.0.1");
    assert!(text.contains("via-label 32") && text.contains("label 32 leads nowhere"), "{text}");
    lab.ok("mpls local-label add 32 via 10.0.1.2 test1 out-labels 33");
    turn(&mut lab);
    let sent = lab.one(0, &udp(50));
    assert_eq!((sent.by, sent.to), (1, host_mac(1, 2)));
    assert_eq!(sent.labels, [(33, 0, false, 64), (55, 0, true, 64)]);
    assert_eq!(sent.rest, inner(49));
    let text = lab.cli("show ip fib 16.0.0.1");
    assert!(text.contains("recursive: oper-flags:resolved"), "{text}");
    // Without labels of its own it is in the mode of the label's.
    lab.ok("ip route replace 16.0.0.0/24 via via-label 32");
    turn(&mut lab);
    assert_eq!(lab.one(0, &udp(50)).labels, [(33, 0, true, 64)]);
    lab.ok("mpls local-label replace 32 via 10.0.2.3 test2 out-labels 34 35 uniform");
    turn(&mut lab);
    let sent = lab.one(0, &udp(50));
    assert_eq!((sent.by, sent.to), (2, host_mac(2, 3)));
    assert_eq!(sent.labels, [(34, 0, false, 49), (35, 0, true, 49)]);
    // One that pops puts nothing before.
    lab.ok("mpls local-label replace 32 via 10.0.2.3 test2 out-labels implicit-null");
    turn(&mut lab);
    let sent = lab.one(0, &udp(50));
    assert_eq!((sent.by, sent.labels.len(), sent.rest), (2, 0, inner(49)));
    // The label where it is the bottom is another one.
    lab.ok("mpls local-label add 32 eos via 10.0.1.2 test1 out-labels 99");
    turn(&mut lab);
    assert_eq!(lab.one(0, &udp(50)).by, 2);
    // IPv6 takes the same way.
    lab.ok("mpls local-label replace 32 via 10.0.1.2 test1 out-labels 33");
    lab.ok("ip route add 2001:db8:9::/48 via via-label 32 out-labels 2");
    turn(&mut lab);
    let far = "2001:db8:9::1".parse().expect("an address");
    let packet = Packet::new().ipv6(ip6(0, 2), far).udp(1, 2).payload(&[7; 60]);
    let sent = lab.one(0, &packet);
    assert_eq!((sent.by, sent.labels), (1, vec![(33, 0, false, 64), (2, 0, true, 64)]));
    lab.ok("mpls local-label del 32 non-eos");
    turn(&mut lab);
    lab.lost(0, &udp(50), "ip4-lookup", nowhere);
    lab.close();
}

#[test]
fn labels_follow_labels() {
    let mut lab = router();
    lab.ok("mpls local-label add 34 eos via via-label 32 out-labels 44 45");
    lab.ok("mpls local-label add 34 non-eos via via-label 32 out-labels 44 46");
    lab.ok("mpls local-label add 32 non-eos via 10.0.1.2 test1 out-labels 33");
    turn(&mut lab);
    let sent = lab.one(0, &labelled(&[34], 9));
    assert_eq!(sent.labels, [(33, 0, false, 64), (44, 0, false, 64), (45, 0, true, 8)]);
    let sent = lab.one(0, &labelled(&[34, 99], 9));
    let want = [(33, 0, false, 64), (44, 0, false, 64), (46, 0, false, 8), (99, 0, true, 9)];
    assert_eq!(sent.labels, want);
    // A route behind both.
    lab.ok("ip route add 16.0.0.0/24 via via-label 34 out-labels 55");
    turn(&mut lab);
    let want = [(33, 0, false, 64), (44, 0, false, 64), (46, 0, false, 64), (55, 0, true, 64)];
    assert_eq!(lab.one(0, &udp(50)).labels, want);
    let text = lab.cli("show mpls fib 34");
    assert!(text.contains("via-label 32") && text.contains("mpls via 10.0.1.2 test1"), "{text}");
    // All follow the last one: by a route now, which moves.
    lab.ok("mpls local-label replace 32 non-eos via 1.1.1.1 out-labels 33");
    lab.ok("ip route add 1.1.1.1/32 via 10.0.2.2 test2 out-labels 20");
    turn(&mut lab);
    let sent = lab.one(0, &labelled(&[34], 9));
    assert_eq!(sent.by, 2);
    assert_eq!(sent.labels.iter().map(|l| l.0).collect::<Vec<_>>(), [20, 33, 44, 45]);
    lab.ok("ip route replace 1.1.1.1/32 via 10.0.1.3 test1");
    turn(&mut lab);
    let sent = lab.one(0, &udp(50));
    assert_eq!((sent.by, sent.to), (1, host_mac(1, 3)));
    assert_eq!(sent.labels.iter().map(|l| l.0).collect::<Vec<_>>(), [33, 44, 46, 55]);
    // Without labels, the label is popped.
    lab.ok("mpls local-label add 36 eos via via-label 32");
    turn(&mut lab);
    assert_eq!(lab.one(0, &labelled(&[36], 9)).labels, [(33, 0, true, 64)]);
    lab.close();
}

#[test]
fn customers_routes_lead_by_a_label() {
    let mut lab = router();
    lab.ok("ip table add 10\nset interface ip address del test0 10.0.0.1/24\n\
            set interface ip table test0 10\nset interface ip address test0 10.0.0.1/24");
    lab.ok("ip route add 16.0.0.0/24 table 10 via 10.255.0.2 next-hop-table 0 out-labels 102");
    lab.ok("ip route add 10.255.0.2/32 via via-label 32");
    lab.ok(
        "mpls local-label add 32 via 10.0.1.2 test1 out-labels 33 via 10.0.2.2 test2 out-labels 34",
    );
    turn(&mut lab);
    let mut ways = std::collections::BTreeSet::new();
    for port in 0..100 {
        let packet = Packet::new().ipv4(ip(0, 2), FAR).udp(port, 53).payload(&[7; 40]);
        let sent = lab.forward(0, &packet, 1);
        assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
        let sent = left(&sent[0]);
        ways.insert((sent.by, sent.labels.iter().map(|l| l.0).collect::<Vec<_>>()));
    }
    assert_eq!(ways.into_iter().collect::<Vec<_>>(), [(1, vec![33, 102]), (2, vec![34, 102])]);
    // A path that fails is left out at once.
    lab.up(1, false);
    assert_eq!(lab.one(0, &udp(50)).labels, [(34, 0, false, 64), (102, 0, true, 64)]);
    let gone = lab.sw_if(2);
    thalweg_device::interface::delete(&mut lab.c, gone).expect("deleted");
    lab.up(1, true);
    turn(&mut lab);
    assert_eq!(lab.one(0, &udp(50)).labels, [(33, 0, false, 64), (102, 0, true, 64)]);
    // Tunnels, too.
    lab.cli("mpls tunnel add via via-label 32 out-labels 77");
    lab.ok("set interface state mpls-tunnel0 up\n\
            ip route replace 16.0.0.0/24 table 10 via mpls-tunnel0");
    turn(&mut lab);
    assert_eq!(lab.one(0, &udp(50)).labels, [(33, 0, false, 64), (77, 0, true, 64)]);
    let text = lab.cli("show mpls tunnel");
    assert!(text.contains("via-label 32 out-labels 77"), "{text}");
    lab.close();
}

#[test]
fn no_label_leads_to_itself() {
    let mut lab = router();
    lab.ok("mpls local-label add 32 via via-label 33 out-labels 40");
    let why = lab.cli("mpls local-label add 32 via via-label 32 out-labels 40");
    assert!(why.contains("would lead to itself"), "{why}");
    lab.ok("mpls local-label add 33 via via-label 34 out-labels 41");
    let why = lab.cli("mpls local-label add 34 via via-label 32 out-labels 42");
    assert!(why.contains("label 34 would lead to itself"), "{why}");
    for reserved in [0, 3, 7, 15] {
        let why = lab.cli(&format!("ip route add 16.0.0.0/24 via via-label {reserved}"));
        assert!(why.contains("16"), "{why}");
    }
    // Circles by a route: nothing goes round, and what is right again is followed again.
    lab.ok("mpls local-label add 50 via 16.0.0.9 out-labels 51");
    lab.ok("ip route add 16.0.0.0/24 via via-label 50");
    lab.ok("mpls local-label add 60 via 17.0.0.9");
    lab.ok("ip route add 17.0.0.0/24 via via-label 60");
    turn(&mut lab);
    lab.lost(0, &udp(50), "ip4-lookup", "next hop of the route leads nowhere");
    lab.ok("ip route add 16.0.0.9/32 via 10.0.1.2 test1");
    lab.until("the route leads on", |lab| {
        lab.c.run_once(Some(std::time::Duration::from_millis(1)));
        !lab.cli("show ip fib 16.0.0.1").contains("unresolved")
    });
    assert_eq!(lab.one(0, &udp(50)).labels, [(51, 0, true, 64)]);
    // More labels than there may be.
    let many = (100..110).map(|l: u32| l.to_string()).collect::<Vec<_>>().join(" ");
    lab.ok(&format!("mpls local-label add 70 via 10.0.1.2 test1 out-labels {many}"));
    lab.ok("ip route replace 16.0.0.0/24 via via-label 70 out-labels 1000 1001");
    turn(&mut lab);
    assert_eq!(lab.one(0, &udp(50)).labels.len(), 12);
    lab.ok("ip route replace 16.0.0.0/24 via via-label 70 out-labels 1000 1001 1002");
    turn(&mut lab);
    lab.lost(0, &udp(50), "ip4-lookup", "next hop of the route leads nowhere");
    lab.close();
}

#[test]
fn what_nobody_follows_is_forgotten() {
    let mut lab = router();
    turn(&mut lab);
    let objects = |lab: &Lab| lab.c.state::<thalweg_fib::Forwarding>().borrow().len();
    let before = objects(&lab);
    lab.ok("mpls local-label add 32 via 10.0.1.2 test1 out-labels 33");
    for n in 0..50 {
        lab.ok(&format!("ip route add 17.0.{n}.0/24 via via-label 32 out-labels {}", 100 + n));
    }
    lab.until("objects", |lab| {
        lab.c.state::<thalweg_fib::Forwarding>().borrow().len() >= before + 100
    });
    for n in 0..50 {
        lab.ok(&format!("ip route del 17.0.{n}.0/24"));
    }
    lab.ok("mpls local-label del 32");
    lab.until("objects gone", |lab| {
        lab.c.run_once(Some(std::time::Duration::from_millis(20)));
        lab.c.state::<thalweg_fib::Forwarding>().borrow().len() <= before
    });
    lab.close();
}
