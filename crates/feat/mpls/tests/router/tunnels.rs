//! Tunnels, and pseudowires between their ends.

use crate::lab::{FAR, Mpls, framed, inner, labelled, left, router, udp};
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip4::ip;
use thalweg_wire::build::Packet;
use thalweg_wire::mpls::Entry;

#[test]
fn a_tunnel_puts_its_labels_before_packets() {
    let mut lab = router();
    assert_eq!(lab.cli("show mpls tunnel").trim(), "No MPLS tunnels configured...");
    let made = lab.cli("mpls tunnel add via 10.0.1.2 test1 out-labels 40 41");
    assert_eq!(made.trim(), "mpls-tunnel0");
    lab.ok("set interface state mpls-tunnel0 up");
    lab.ok("ip route add 16.0.0.0/24 via mpls-tunnel0");
    let left = lab.one(0, &udp(64));
    assert_eq!((left.by, left.to), (1, host_mac(1, 2)));
    assert_eq!(left.labels, [(40, 0, false, 64), (41, 0, true, 64)]);
    assert_eq!(left.rest, inner(63));
    // Labels of a route, and of what is labelled already, come behind.
    lab.ok("ip route replace 16.0.0.0/24 via mpls-tunnel0 out-labels 17");
    let left = lab.one(0, &udp(64));
    assert_eq!(left.labels, [(40, 0, false, 64), (41, 0, false, 64), (17, 0, true, 64)]);
    lab.ok("mpls local-label add 20 eos via mpls-tunnel0 out-labels 21");
    let left = lab.one(0, &labelled(&[20], 9));
    assert_eq!(left.labels, [(40, 0, false, 64), (41, 0, false, 64), (21, 0, true, 8)]);
    lab.ok("mpls local-label add 22 eos via mpls-tunnel0");
    assert_eq!(lab.one(0, &labelled(&[22], 9)).labels, [(40, 0, false, 64), (41, 0, true, 64)]);
    // Other paths take effect at once, and routes need not change.
    lab.ok("mpls tunnel set mpls-tunnel0 via 1.1.1.1 out-labels 50");
    lab.ok("ip route add 1.1.1.1/32 via 10.0.2.3 test2 out-labels 60");
    let left = lab.one(0, &udp(64));
    assert_eq!((left.by, left.to), (2, host_mac(2, 3)));
    assert_eq!(left.labels, [(60, 0, false, 64), (50, 0, false, 64), (17, 0, true, 64)]);
    let text = lab.cli("show mpls tunnel 0");
    assert!(text.contains("[@0] mpls-tunnel0: sw_if_index:"), "{text}");
    assert!(text.contains("1.1.1.1 out-labels 50"), "{text}");
    lab.ok("set interface state mpls-tunnel0 down");
    assert_eq!(lab.forward(0, &udp(64), 3).len(), 0);
    lab.ok("set interface state mpls-tunnel0 up");
    lab.ok("ip route del 1.1.1.1/32");
    lab.lost(0, &udp(64), "mpls-tunnel-tx", "no path of the tunnel is up");
    lab.ok("mpls tunnel del mpls-tunnel0");
    assert_eq!(lab.forward(0, &udp(64), 3).len(), 0);
    assert_eq!(lab.cli("show mpls tunnel").trim(), "No MPLS tunnels configured...");
    lab.close();
}

#[test]
fn a_tunnel_shows_in_which_table_a_next_hop_is_followed() {
    let mut lab = router();
    lab.ok("ip table add 7\nip route add 1.1.1.2/32 table 7 via 10.0.1.2 test1");
    lab.cli("mpls tunnel add via 1.1.1.2 next-hop-table 7 out-labels 50");
    let text = lab.cli("show mpls tunnel 0");
    let want = "  path:[0] weight=1 pref=0 1.1.1.2 next-hop-table 7 out-labels 50\n";
    assert!(text.contains(want), "{text}");
    for path in ["mpls-lookup-in-table 0", "ip6-lookup-in-table 0", "l2-input-on test0", "drop"] {
        let said = lab.cli(&format!("mpls tunnel add via {path}"));
        assert!(said.contains("a path of a tunnel is one to a next hop"), "{path}: {said}");
    }
    lab.ok("mpls tunnel del mpls-tunnel0");
    lab.close();
}

#[test]
fn flows_in_a_tunnel_are_spread() {
    let mut lab = router();
    lab.cli("mpls tunnel add mpls-tunnel7 via 10.0.1.2 test1 out-labels 40");
    lab.ok("mpls tunnel add mpls-tunnel7 via 10.0.2.2 test2 out-labels 41");
    lab.ok("set interface state mpls-tunnel7 up");
    lab.ok("ip route add 16.0.0.0/24 via mpls-tunnel7");
    lab.ok("mpls local-label add 20 eos via mpls-tunnel7 out-labels 21");
    for is_labelled in [false, true] {
        let mut seen = [0; 3];
        for port in 0..100 {
            let start = if is_labelled { Packet::new().mpls(20) } else { Packet::new() };
            let packet = start.ipv4(ip(0, 2), FAR).udp(port, 53).payload(&[7; 40]);
            let sent = lab.forward(0, &packet, 2);
            assert_eq!(sent[0], sent[1], "a flow keeps its path");
            let left = left(&sent[0]);
            assert_eq!(left.labels[0].0, 39 + u32::from(left.by));
            seen[usize::from(left.by)] += 1;
        }
        assert!(seen[1] > 20 && seen[2] > 20, "{seen:?}");
    }
    lab.ok("mpls tunnel del mpls-tunnel7 via 10.0.1.2 test1");
    assert_eq!(lab.one(0, &udp(64)).by, 2);
    // The tunnel goes with the interface that its last path led by.
    let gone = lab.sw_if(2);
    thalweg_device::interface::delete(&mut lab.c, gone).expect("deleted");
    assert_eq!(lab.forward(0, &udp(64), 3).len(), 0);
    lab.until("the tunnel gone", |lab| lab.cli("show mpls tunnel").contains("No MPLS tunnels"));
    lab.close();
}

#[test]
fn packets_too_long_for_a_tunnel_are_fragmented_or_answered() {
    let mut lab = router();
    lab.cli("mpls tunnel add via 10.0.1.2 test1 out-labels 40 41");
    lab.ok("set interface state mpls-tunnel0 up");
    lab.ok("ip route add 16.0.0.0/24 via mpls-tunnel0");
    lab.ok("set interface mtu mpls 500 test1");
    let long = Packet::new().ipv4(ip(0, 2), FAR).udp(1, 2).payload(&[5; 1000]);
    let sent = lab.forward(0, &long, 1);
    assert_eq!(sent.len(), 3, "{}", lab.cli("show errors"));
    for frame in &sent {
        let piece = left(frame);
        assert_eq!((piece.by, piece.labels.len()), (1, 2));
        assert!(piece.rest.len() <= 492);
    }
    lab.ok("mpls local-label add 20 eos via mpls-tunnel0 out-labels 21");
    let sent = lab.forward(
        0,
        &Packet::new().mpls(20).ipv4(ip(0, 2), FAR).udp(1, 2).payload(&[5; 1000]),
        1,
    );
    assert_eq!(sent.len(), 3, "{}", lab.cli("show errors"));
    assert!(sent.iter().all(|frame| left(frame).labels.len() == 3));
    let mut frame = long.build();
    frame[6] = 0x40;
    frame[10..12].fill(0);
    let sum = thalweg_wire::checksum::checksum(&frame[..20]);
    frame[10..12].copy_from_slice(&sum.to_be_bytes());
    let sent = lab.forward(0, &Packet::new().payload(&frame), 1);
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    let answer = left(&sent[0]);
    assert_eq!((answer.by, &answer.rest[20..22]), (0, &[3, 4][..]));
    assert_eq!(answer.rest[26..28], 492u16.to_be_bytes());
    lab.close();
}

/// A frame of a customer.
fn customer(len: usize) -> Vec<u8> {
    let macs = [[2, 0, 0, 0xc, 0, 1], [2, 0, 0, 0xc, 0, 2]].concat();
    let fill = (0..len).map(|n| n as u8);
    macs.into_iter().chain([0x81, 0, 0, 9, 8, 0]).chain(fill).collect()
}

/// The frame behind the labels of what was sent, with the labels' numbers.
fn carried(frame: &[u8], word: bool) -> (Vec<u32>, Vec<u8>) {
    assert_eq!(frame[12..14], [0x88, 0x47]);
    let mut stack = thalweg_wire::mpls::Stack::new(&frame[14..]);
    let labels: Vec<u32> = stack.by_ref().map(|e: Entry| e.label().0).collect();
    assert!(stack.reached_bottom());
    let rest = stack.payload();
    let rest = if word { rest.strip_prefix(&[0; 4]).expect("a control word") } else { rest };
    (labels, rest.to_vec())
}

#[test]
fn a_pseudowire_carries_frames_both_ways() {
    for word in [false, true] {
        let mut lab = router();
        let (add, pop) = if word { (" control-word", " pop-pw-cw") } else { ("", "") };
        lab.cli(&format!("mpls tunnel add l2-only{add} via 10.0.1.2 test1 out-labels 60 61"));
        lab.ok(&format!(
            "set interface state mpls-tunnel0 up\n\
             mpls local-label add 71 eos via l2-input-on mpls-tunnel0{pop}"
        ));
        lab.ok("set interface ip address del test2 10.0.2.1/24");
        lab.ok("set interface l2 xconnect test2 mpls-tunnel0");
        lab.ok("set interface l2 xconnect mpls-tunnel0 test2");
        // Jumbo frames, too.
        for len in [46, 1500, 8900] {
            let frame = customer(len);
            for count in [1, 40] {
                lab.receive(2, vec![frame.clone(); count]);
                let sent = lab.sent();
                assert_eq!(sent.len(), count, "{}", lab.cli("show errors"));
                for (_, sent) in sent {
                    assert_eq!(carried(&sent, word), (vec![60, 61], frame.clone()));
                }
                let zeros: &[u8] = if word { &[0; 4] } else { &[] };
                let back = Packet::new().mpls(71).payload(&[zeros, &frame].concat());
                let back = lab.forward(1, &back, count);
                assert_eq!(back.len(), count, "{}", lab.cli("show errors"));
                assert!(back.iter().all(|(by, sent)| (*by, sent) == (2, &frame)));
            }
        }
        let counts = lab.cli("show interface mpls-tunnel0");
        assert!(counts.contains("rx packets                   123"), "{counts}");
        assert!(counts.contains("tx packets                   123"), "{counts}");
        if word {
            let channel =
                Packet::new().mpls(71).payload(&[vec![0x10, 0, 0, 7], customer(50)].concat());
            lab.lost(1, &channel, "pw-cw-pop", "pseudowire control word of no data packet");
            let short = Packet::new().mpls(71).payload(&[0, 0]);
            lab.lost(1, &short, "pw-cw-pop", "pseudowire packet shorter than its control word");
        }
        lab.ok("set interface mtu mpls 1400 test1");
        lab.receive(2, vec![customer(1500)]);
        assert_eq!(lab.sent().len(), 0);
        let why = "packet too long for the tunnel's path";
        assert_eq!(lab.count("mpls-tunnel-tx", why), 1);
        lab.ok("set interface state mpls-tunnel0 down");
        let frame = Packet::new().mpls(71).payload(&[vec![0; 4], customer(50)].concat());
        lab.lost(1, &frame, "interface-rx-dpo-l2", "interface of the pseudowire is down");
        lab.close();
    }
}

#[test]
fn pseudowires_are_ports_of_a_bridge_domain() {
    let mut lab = router();
    lab.cli("mpls tunnel add l2-only via 10.0.1.2 test1 out-labels 60");
    lab.cli("mpls tunnel add l2-only via 10.0.1.3 test1 out-labels 61");
    lab.ok("set interface ip address del test2 10.0.2.1/24");
    for port in ["mpls-tunnel0", "mpls-tunnel1", "test2"] {
        let group = if port == "test2" { 0 } else { 1 };
        lab.ok(&format!("set interface state {port} up\nset interface l2 bridge {port} 1 {group}"));
    }
    lab.ok("mpls local-label add 70 eos via l2-input-on mpls-tunnel0");
    lab.ok("mpls local-label add 71 eos via l2-input-on mpls-tunnel1");
    let frame = customer(50);
    lab.receive(2, vec![frame.clone()]);
    let mut flooded: Vec<_> = lab.sent().iter().map(|(_, f)| carried(f, false).0).collect();
    flooded.sort_unstable();
    assert_eq!(flooded, [[60], [61]]);
    // The other end of one wire answers: the other wire does not get it.
    let mut answer = frame.clone();
    answer[..12].rotate_left(6);
    let sent = lab.forward(1, &Packet::new().mpls(71).payload(&answer), 1);
    assert_eq!(sent, [(2, answer)]);
    lab.settle();
    lab.receive(2, vec![frame.clone()]);
    let sent = lab.sent();
    assert_eq!(sent.len(), 1, "{}", lab.cli("show l2fib all"));
    assert_eq!(carried(&sent[0].1, false), (vec![61], frame));
    lab.close();
}

#[test]
fn the_end_of_a_pseudowire_goes_with_its_label() {
    let mut lab = router();
    lab.cli("mpls tunnel add l2-only via 10.0.1.2 test1 out-labels 60");
    lab.ok("set interface state mpls-tunnel0 up");
    lab.ok("mpls local-label add 70 eos via l2-input-on mpls-tunnel0");
    // The tunnel in layer 3 takes what is for its own address.
    let frame = Packet::new().mpls(70).payload(&framed(0, &udp(9)));
    assert_eq!(lab.forward(1, &frame, 2).len(), 0);
    lab.ok("mpls tunnel del mpls-tunnel0");
    lab.lost(1, &frame, "mpls-lookup", "mpls label is not bound");
    lab.close();
}
