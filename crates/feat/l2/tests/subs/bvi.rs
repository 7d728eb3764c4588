//! Bridge domains with a port of the router's own, and with one for unknown unicast frames.

use super::*;

/// `test0` and `test1.20` are bridged with `loop0`, which has 10.1.0.1; `test2` has 10.2.0.1.
fn lab_with_bvi(workers: usize) -> Lab {
    let mut lab = lab(workers);
    sub(&mut lab, 1, 20, one(20));
    lab.cli("create loopback interface");
    lab.ok("set interface state loop0 up\n\
         set interface l2 bridge loop0 10 bvi\n\
         set interface l2 bridge test0 10\nset interface l2 bridge test1.20 10\n\
         set interface l2 tag-rewrite test1.20 pop 1\n\
         set interface ip address loop0 10.1.0.1/24\n\
         set interface ip address test2 10.2.0.1/24");
    let test2 = lab.sw_if(2);
    neighbor(&mut lab, test2, ip(2, 9), host(9));
    lab
}

fn loop0(lab: &Lab) -> (SwIfIndex, MacAddr) {
    let sw_if = interface::find(&lab.c, "loop0").expect("loop0");
    (sw_if, interface::view(&lab.c, sw_if).expect("loop0").mac)
}

/// A frame from a host to an address, with tags.
fn to(mac: MacAddr, from: u8, tags: &[VlanTag], packet: &Packet) -> Vec<u8> {
    let mut frame = ipv4(0, from, tags, packet);
    frame[..6].copy_from_slice(&mac.0);
    frame
}

fn arp_request(from: u8, tags: &[VlanTag], target: Ipv4Addr) -> Vec<u8> {
    let request = ArpRepr::request(host(from), ip(1, from), target);
    let mut packet = vec![0; 28];
    request.emit(&mut packet).expect("room");
    let mut frame = frame(0, from, tags, [8, 6], &packet);
    frame[..6].fill(0xff);
    frame
}

#[test]
fn hosts_of_a_bridge_domain_are_routed_for() {
    for workers in [1, 2] {
        let mut lab = lab_with_bvi(workers);
        let (bvi, mac) = loop0(&lab);
        // Unknown destinations would be flooded.
        lab.receive(1, vec![to(host(77), 5, &[dot1q(20)], &udp(ip(1, 5), ip(1, 6), 9))]);
        lab.until("learning", |lab| lab.cli("show l2fib verbose").contains(&host(5).to_string()));
        lab.sent();
        let seen = counts(&lab, bvi)[0];
        // The router answers ARP where it was asked, and the bridge floods the request.
        lab.receive(1, vec![arp_request(5, &[dot1q(20)], ip(1, 1))]);
        let mut sent = lab.sent();
        sent.sort_unstable();
        assert_eq!(sent.len(), 2, "{sent:02x?}\n{}", lab.cli("show errors"));
        assert_eq!(sent[0], (lab.sw_if(0), arp_request(5, &[], ip(1, 1))));
        let (dst, src, tags, kind, packet) = parts(&sent[1].1);
        assert_eq!(
            (sent[1].0, dst, src, &tags[..]),
            (lab.sw_if(1), host(5).0, mac.0, &[dot1q(20)][..])
        );
        let reply = ArpView::parse(packet).expect("ARP");
        assert_eq!((kind, reply.sender_ip(), reply.target_ip()), ([8, 6], ip(1, 1), ip(1, 5)));
        // Packets go from a tagged port of the domain out, and back: the router knows the host by
        // its request.
        let out = udp(ip(1, 5), ip(2, 9), 20);
        lab.receive(1, vec![to(mac, 5, &[dot1q(20)], &out)]);
        let (sw_if, frame) = sent_one(&mut lab);
        let (dst, _, tags, _, packet) = parts(&frame);
        assert_eq!((sw_if, dst, tags, packet[8]), (lab.sw_if(2), host(9).0, vec![], 63));
        let back = udp(ip(2, 9), ip(1, 5), 20);
        lab.receive(2, vec![ipv4(2, 9, &[], &back)]);
        let (sw_if, frame) = sent_one(&mut lab);
        let (dst, src, tags, _, packet) = parts(&frame);
        assert_eq!((sw_if, dst, src), (lab.sw_if(1), host(5).0, mac.0));
        assert_eq!((tags, packet[8]), (vec![dot1q(20)], 63));
        // Received: request and datagram. Sent: reply and datagram.
        let [rx, _, tx, _] = counts(&lab, bvi);
        assert_eq!((rx - seen, tx), (2, 2), "{}", lab.cli("show interface"));
        // Bridging goes on.
        let between = to(host(5), 6, &[], &udp(ip(1, 6), ip(1, 5), 9));
        lab.receive(0, vec![between.clone()]);
        let tagged = to(host(5), 6, &[dot1q(20)], &udp(ip(1, 6), ip(1, 5), 9));
        assert_eq!(sent_one(&mut lab), (lab.sw_if(1), tagged));
        lab.close();
    }
}

#[test]
fn a_bvis_address_follows_and_is_its_own() {
    let mut lab = lab_with_bvi(1);
    let (bvi, old) = loop0(&lab);
    let listed = |lab: &mut Lab| lab.cli("show l2fib verbose | json");
    assert!(listed(&mut lab).contains(&old.to_string()));
    lab.ok("set interface mac address loop0 02:00:00:00:00:77");
    let new: MacAddr = "02:00:00:00:00:77".parse().expect("an address");
    let shown = listed(&mut lab);
    assert!(shown.contains("02:00:00:00:00:77") && !shown.contains(&old.to_string()), "{shown}");
    lab.ok("clear l2fib");
    assert!(listed(&mut lab).contains("02:00:00:00:00:77"));
    for line in ["l2fib del 02:00:00:00:00:77 10", "l2fib add 02:00:00:00:00:77 10 test0 static"] {
        let answer = lab.cli(line);
        assert!(answer.contains("the BVI's own address"), "{answer}");
    }
    // A host that takes the address is not learned.
    let mut stolen = to(host(1), 3, &[], &udp(ip(1, 3), ip(1, 5), 9));
    stolen[6..12].copy_from_slice(&new.0);
    lab.receive(0, vec![stolen]);
    lab.sent();
    lab.receive(0, vec![to(new, 3, &[], &udp(ip(1, 3), ip(2, 9), 9))]);
    assert_eq!(sent_one(&mut lab).0, lab.sw_if(2));
    // Frames to other hosts do not enter the router, though they are flooded to it.
    let before = counts(&lab, lab.sw_if(2));
    lab.receive(0, vec![to(host(77), 3, &[], &udp(ip(1, 3), ip(2, 9), 9))]);
    assert_eq!(sent_one(&mut lab).0, lab.sw_if(1));
    assert_eq!(counts(&lab, lab.sw_if(2)), before);
    lab.cli("create loopback interface");
    assert!(lab.cli("set interface l2 bridge loop1 10 bvi").contains("`loop0'"));
    assert!(lab.cli("set interface l2 bridge test2 10 bvi").contains("a BVI is a loopback"));
    // The interface is a loopback again outside the domain.
    lab.ok("set interface l3 loop0");
    lab.receive(0, vec![to(new, 3, &[], &udp(ip(1, 3), ip(2, 9), 9))]);
    assert_eq!(sent_one(&mut lab).0, lab.sw_if(1), "flooded");
    assert_eq!(interface::view(&lab.c, bvi).expect("loop0").mode, thalweg_device::Mode::Routed);
    lab.ok("delete loopback interface intfc loop0\nset interface l2 bridge loop1 10 bvi");
    assert!(lab.cli("show mode loop1").contains("l2 bridge loop1 bd_id 10 bvi shg 0"));
    lab.close();
}

#[test]
fn unknown_unicast_frames_go_to_a_port_of_their_own() {
    let mut lab = lab(1);
    sub(&mut lab, 2, 30, one(30));
    lab.ok("set interface l2 bridge test0 10\nset interface l2 bridge test1 10\n\
         set interface l2 bridge test2.30 10 uu-fwd\n\
         set interface l2 tag-rewrite test2.30 pop 1\n\
         set bridge-domain uu-flood 10 disable");
    let unknown = |tags: &[VlanTag]| to(host(50), 3, tags, &udp(ip(1, 3), ip(1, 50), 9));
    lab.receive(0, vec![unknown(&[])]);
    assert_eq!(sent_one(&mut lab), (lab.sw_if(2), unknown(&[dot1q(30)])));
    // Broadcasts do not go there.
    lab.receive(0, vec![arp_request(3, &[], ip(1, 1))]);
    assert_eq!(sent_one(&mut lab).0, lab.sw_if(1));
    // Frames from there are bridged, and not sent back.
    lab.receive(2, vec![unknown(&[dot1q(30)])]);
    assert_eq!((lab.sent().len(), lab.count("l2-uu-fwd", "reflection drop")), (0, 1));
    lab.until("learning", |lab| lab.cli("show l2fib verbose").contains(&host(3).to_string()));
    lab.receive(2, vec![to(host(3), 50, &[dot1q(30)], &udp(ip(1, 50), ip(1, 3), 9))]);
    lab.sent();
    let shown = lab.cli("show bridge-domain 10 detail");
    assert!(shown.contains("test2.30") && shown.contains(" uu "), "{shown}");
    // A `uu-fwd` port is no member: the domain may go once the others have.
    lab.ok("set interface l3 test2.30");
    lab.receive(0, vec![unknown(&[])]);
    assert_eq!(lab.sent().len(), 0, "neither flooded nor forwarded");
    lab.close();
}

#[test]
fn bvis_have_a_name_and_a_command_of_their_own() {
    let mut lab = lab(1);
    assert_eq!(lab.cli("bvi create instance 3"), "bvi3\n");
    let sw_if = interface::find(&lab.c, "bvi3").expect("bvi3");
    let view = interface::view(&lab.c, sw_if).expect("bvi3");
    assert_eq!((view.dev_type, view.mac.to_string()), ("BVI", "b0:b0:00:00:00:03".to_owned()));
    assert!(lab.cli("bvi create instance 3").contains("exists"));
    lab.ok("set interface l2 bridge bvi3 10 bvi\nset interface ip address bvi3 10.9.0.1/24");
    assert!(lab.cli("bvi delete test0").contains("bvi delete"));
    lab.ok("bvi delete bvi3");
    assert!(interface::find(&lab.c, "bvi3").is_err());
    lab.close();
}

#[test]
fn addresses_need_frames_of_one_kind() {
    let mut lab = lab(1);
    sub(&mut lab, 0, 7, TagMatch::Outer { tag: dot1q(7), exact: false });
    sub(&mut lab, 0, 8, one(8));
    for (name, said) in [
        ("test0.7", "sub-interface without exact-match doesn't support IP addressing"),
        ("local0", "local0 interface doesn't support IP addressing"),
        ("test0.8", ""),
    ] {
        let text = lab.cli(&format!("set interface ip address {name} 10.9.0.1/24"));
        assert!(text.contains(said) && text.is_empty() == said.is_empty(), "{name}: {text}");
    }
    lab.close();
}

/// A bridge domain has no port for what a sub-interface of its BVI sends, and says so; one of a
/// loopback, and of what was a BVI, sends into nothing, as the loopback does.
#[test]
fn a_sub_interface_of_a_bvi_is_no_port() {
    for (workers, is_first) in [(1, true), (1, false), (2, true)] {
        let mut lab = lab_with_bvi(workers);
        let (bvi, _) = loop0(&lab);
        let leave = "set interface l3 loop0";
        let join = "set interface l2 bridge loop0 10 bvi";
        if is_first {
            lab.ok(leave);
        }
        let sub = interface::create_sub(&mut lab.c, bvi, 30, one(30)).expect("a sub-interface");
        interface::set_admin(&mut lab.c, sub, true).expect("up");
        lab.ok("set interface ip address loop0.30 10.3.0.1/24");
        if is_first {
            lab.ok(join);
        }
        neighbor(&mut lab, sub, ip(3, 9), host(9));
        let send = |lab: &mut Lab| {
            lab.receive(2, vec![ipv4(2, 9, &[], &udp(ip(2, 9), ip(3, 9), 20))]);
            assert!(lab.sent().is_empty());
            lab.cli("show errors")
        };
        let shown = send(&mut lab);
        assert!(shown.contains("sub-interface of a BVI"), "{shown}");
        lab.ok("clear errors");
        lab.ok(leave);
        let shown = send(&mut lab);
        assert!(!shown.contains("BVI"), "{shown}");
        // The BVI itself sends on.
        lab.ok(join);
        let request = arp_request(5, &[], ip(1, 1));
        lab.receive(0, vec![request]);
        // The request goes on, and the answer to its sender, known or not.
        assert!(lab.sent().len() >= 2, "{}", lab.cli("show errors"));
        lab.close();
    }
}
