//! Attacks: tags without end, floods of addresses, loops, and settings that change meanwhile.

use super::*;
use thalweg_feat_l2::L2;
use thalweg_testkit::sized;
use thalweg_wire::ipv4::Ipv4View;

const UNKNOWN: MacAddr = MacAddr::new(2, 0, 0, 0x88, 0, 1);

/// A frame that is flooded unless its destination is known.
fn between(from: MacAddr, to: MacAddr, tags: &[VlanTag], packet: &[u8]) -> Vec<u8> {
    let mut bytes = frame(0, 0, tags, [8, 0], packet);
    bytes[..6].copy_from_slice(&to.0);
    bytes[6..12].copy_from_slice(&from.0);
    bytes
}

/// One of very many hosts.
fn stranger(n: u32) -> MacAddr {
    let [_, a, b, c] = n.to_be_bytes();
    MacAddr::new(2, 0x66, 0, a, b, c)
}

/// Sent frames by port, in order.
fn sent_of(lab: &mut Lab) -> Vec<(SwIfIndex, Vec<u8>)> {
    let mut sent = lab.sent();
    sent.sort_unstable();
    sent
}

/// No to nine tags of both kinds, priority tags and reserved ids among them, each frame cut at each
/// byte: as packets alone, in one frame, and by two workers.
#[test]
fn tags_without_end_and_cut_off() {
    let mut frames: Vec<(u8, Vec<u8>)> = Vec::new();
    let (q, ad) = (VlanTag::dot1q as fn(u16) -> VlanTag, VlanTag::dot1ad as fn(u16) -> VlanTag);
    let mixes = [
        ([q, q], [10, 7]),
        ([ad, q], [30, 7]),
        ([q, ad], [0, 50]),
        ([q, q], [40, 7]),
        ([q, q], [50, 50]),
    ];
    for (kinds, ids) in mixes {
        for count in 0..=9 {
            let tags: Vec<_> = (0..count).map(|i| kinds[i % 2](ids[i % 2])).collect();
            let packet = udp(ip(4, 9), ip(2, 9), 3);
            let whole = ipv4(0, 9, &tags, &packet);
            frames.extend((12..whole.len().min(62)).map(|len| (0, whole[..len].to_vec())));
            frames.extend([40, 50, 99, 4095].map(|id| {
                let mut other = whole.clone();
                if count > 0 {
                    other[14..16].copy_from_slice(&u16::to_be_bytes(id | 0xe000));
                }
                ((id % 2) as u8, other)
            }));
        }
    }
    let mut one = mixed::everything(1);
    let alone = mixed::taken(&mut one, &frames, 1);
    assert!(alone.0.len() > 100, "{}", alone.0.len());
    assert_eq!(alone, mixed::taken(&mut one, &frames, 256));
    one.0.close();
    let mut two = mixed::everything(2);
    assert_eq!(alone, mixed::taken(&mut two, &frames, 100));
    two.0.close();
}

/// Tags pile up in a loop of rewrites, until there are more than any frame should have; then they
/// are removed again. Nothing else of the frame changes.
#[test]
fn tags_pile_up_and_go() {
    const MOST: usize = 60;
    for n in [1, 30] {
        let mut lab = lab(1);
        lab.ok("set interface l2 xconnect test0 test2\n\
             set interface l2 tag-rewrite test0 push dot1ad 100 200\n\
             set interface l2 xconnect test1 test0");
        for len in [0, 1, 30, 1400, 5000] {
            let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let plain = between(host(1), UNKNOWN, &[], &payload);
            let mut bytes = plain.clone();
            for count in 1..=MOST {
                lab.receive(0, vec![bytes; n]);
                let mut sent = lab.sent();
                sent.dedup();
                assert_eq!(sent.len(), 1);
                bytes = sent.remove(0).1;
                assert_eq!(bytes.len(), plain.len() + 8 * count);
            }
            let found = parts(&bytes);
            assert_eq!((found.2.len(), found.4), (2 * MOST, &payload[..]));
            for left in (0..MOST).rev() {
                lab.receive(1, vec![bytes; n]);
                let mut sent = lab.sent();
                sent.dedup();
                assert_eq!(sent.len(), 1, "{left} left");
                bytes = sent.remove(0).1;
                assert_eq!(bytes.len(), plain.len() + 8 * left);
            }
            assert_eq!(bytes, plain);
            // The frame has no tags to remove.
            let before = lab.count("l2-output", "L2 output tag rewrite drops");
            lab.receive(1, vec![bytes; n]);
            assert_eq!(lab.sent().len(), 0);
            let after = lab.count("l2-output", "L2 output tag rewrite drops");
            assert_eq!(after - before, n as u64);
        }
        lab.close();
    }
}

/// GSO packets whose tags are rewritten leave as segments with the new ones, and one that is too
/// large behind a routed sub-interface is refused as its sender understands it.
#[test]
fn segments_have_the_new_tags() {
    let mut lab = lab(1);
    sub(&mut lab, 0, 10, one(10));
    sub(&mut lab, 1, 20, two(VlanTag::dot1ad(20), dot1q(5)));
    for (port, words) in [("test0.10", "pop 1"), ("test1.20", "pop 2"), ("test2", "push dot1q 7")] {
        lab.ok(&format!(
            "set interface l2 bridge {port} 10\n\
             set interface l2 tag-rewrite {port} {words}"
        ));
    }
    let data: Vec<u8> = (0..3500).map(|i| (i % 251) as u8).collect();
    let packet = Packet::new().ipv4(ip(1, 1), ip(1, 2)).tcp(1, 2).payload(&data).build();
    let offload = Offload {
        gso: GsoKind::Tcp4,
        gso_size: 1000,
        hdr_len: 40,
        csum_start: 20,
        csum_offset: 16,
        needs_csum: true,
        ..Offload::default()
    };
    lab.receive_offload(0, between(host(1), UNKNOWN, &[dot1q(10)], &packet), offload);
    // Frames to `test2` are those with the tag that it pushes on frames that it receives.
    let sent = lab.sent();
    assert_eq!(sent.len(), 4, "{}", lab.cli("show errors"));
    let mut whole: Vec<u8> = Vec::new();
    for (port, bytes) in &sent {
        let (.., tags, kind, packet) = parts(bytes);
        assert_eq!((*port, &tags[..]), (lab.sw_if(1), &[VlanTag::dot1ad(20), dot1q(5)][..]));
        assert_eq!(kind, [8, 0]);
        let ip = Ipv4View::parse(packet).expect("IPv4");
        assert_eq!(usize::from(ip.total_len()), packet.len());
        whole.extend(&ip.payload()[20..]);
    }
    assert_eq!(whole, data);
    assert_eq!(lab.count("l2-output", "L2 output tag rewrite drops"), 1);
    lab.close();
}

fn learned(lab: &Lab) -> u32 {
    lab.c.state::<L2>().borrow().bridges().count().1
}

/// A flood of addresses by two workers, with a limit that falls and flushes meanwhile. Hosts that
/// are configured lose nothing, and hosts that move are found at last.
#[test]
fn floods_of_addresses() {
    let mut lab = lab(2);
    sub(&mut lab, 0, 10, one(10));
    for port in ["test0.10", "test1", "test2"] {
        lab.ok(&format!("set interface l2 bridge {port} 10"));
    }
    lab.ok("set interface l2 tag-rewrite test0.10 pop 1");
    lab.ok(&format!("set bridge-domain learn-limit 10 300\nl2fib add {} 10 test2 static", host(2)));
    let test2 = lab.sw_if(2);
    let (mut limit, mut next, mut known) = (300, 0, 0);
    for round in 0..40u32 {
        for worker in 0..2 {
            let mut frames: Vec<(u8, Vec<u8>)> = Vec::new();
            for i in 0..200 {
                let tags: &[VlanTag] = if i % 2 == 0 { &[dot1q(10)] } else { &[] };
                // A tenth are hosts that are there twice.
                let from = stranger(if i % 10 < 2 { i / 10 } else { next });
                next += 1;
                frames.push(((i % 2) as u8, between(from, host(2), tags, &[0x45; 40])));
            }
            lab.deliver_mixed(worker, frames);
        }
        match round {
            15 => {
                limit = 20;
                lab.ok("set bridge-domain learn-limit 10 20");
            }
            25 => lab.ok("l2fib flush-mac all\nl2fib flush-mac bridge-domain 10"),
            28 => lab.ok("l2fib flush-mac interface test1"),
            _ => {}
        }
        lab.settle();
        let now = learned(&lab);
        if round >= 15 {
            assert!(now <= known.max(limit), "{round}: {now}, {known} before");
        }
        assert!(now <= 300, "{round}: {now}");
        known = now;
        let sent = lab.sent();
        let kept = sent.iter().filter(|(out, _)| *out == test2).count();
        assert_eq!((sent.len(), kept), (400, 400), "{round}");
    }
    assert!(learned(&lab) <= 20);
    // The hosts that were there twice are where they speak last.
    lab.ok("l2fib flush-mac all");
    lab.until("room", |lab| learned(lab) == 0);
    for n in [0, 1, 0] {
        let tags: &[VlanTag] = if n == 0 { &[dot1q(10)] } else { &[] };
        let says = between(stranger(3), host(2), tags, &[0x45; 40]);
        let asks = between(host(2), stranger(3), &[], &[0x45; 40]);
        lab.until("it to be there", |lab| {
            lab.receive(n, vec![says.clone()]);
            lab.sent();
            lab.receive(2, vec![asks.clone()]);
            let to: Vec<_> = lab.sent().into_iter().map(|(out, _)| out).collect();
            to == [lab.sw_if(n)]
        });
    }
    lab.close();
}

/// Reports of new addresses leave room for others: a neighbour is heard in the midst of them.
#[test]
fn a_flood_of_addresses_leaves_neighbours_alone() {
    let mut lab = lab(1);
    sub(&mut lab, 0, 10, one(10));
    lab.ok("set interface l2 bridge test1 10\nset interface l2 bridge test2 10\n\
         set interface ip address test0.10 10.1.0.1/24");
    let flood: Vec<_> =
        (0..9000).map(|n| between(stranger(n), UNKNOWN, &[], &[0x45; 40])).collect();
    lab.deliver(1, flood);
    let mut ask = [0; 28];
    ArpRepr::request(host(9), ip(1, 9), ip(1, 1)).emit(&mut ask).expect("room");
    let mut bytes = frame(0, 9, &[dot1q(10)], [8, 6], &ask);
    bytes[..6].fill(0xff);
    lab.deliver(0, vec![bytes]);
    // All while the main thread is busy with something else.
    lab.pass();
    lab.settle();
    lab.until("the neighbour", |lab| lab.cli("show ip neighbors").contains("10.1.0.9"));
    let known = learned(&lab);
    assert!((1000..9000).contains(&known), "{known}");
    lab.close();
}

/// Two ports that are cabled together: each broadcast goes round both ways, and no more than that.
/// The source moves, which is counted, and a split horizon group ends it.
#[test]
fn a_loop_of_cables_multiplies_nothing() {
    let mut lab = lab(1);
    for port in ["test0", "test1", "test2"] {
        lab.ok(&format!("set interface l2 bridge {port} 10"));
    }
    let (test1, test2) = (lab.sw_if(1), lab.sw_if(2));
    let moved = |lab: &Lab| lab.c.state::<L2>().borrow().bridges().counts().moved;
    let mut all = between(host(1), UNKNOWN, &[], &[0x45; 40]);
    all[..6].fill(0xff);
    lab.receive(0, vec![all.clone(); 5]);
    for round in 0..60 {
        let sent = sent_of(&mut lab);
        let of = |port| sent.iter().filter(|(out, _)| *out == port).count();
        assert_eq!((of(test1), of(test2)), (5, 5), "{round}");
        let turn = |(out, bytes): &(SwIfIndex, Vec<u8>)| match *out {
            out if out == test1 => Some((2, bytes.clone())),
            out if out == test2 => Some((1, bytes.clone())),
            _ => None,
        };
        lab.deliver_mixed(0, sent.iter().filter_map(turn).collect());
        lab.settle();
    }
    lab.until("moves", |lab| moved(lab) > 3);
    let shown = lab.cli("show l2fib | json");
    assert!(shown.contains("\"moved\""), "{shown}");
    lab.sent();
    lab.ok("set interface l2 bridge test1 10 1\nset interface l2 bridge test2 10 1");
    lab.receive(1, vec![all.clone(); 5]);
    lab.receive(2, vec![all; 5]);
    let test0 = lab.sw_if(0);
    assert!(lab.sent().iter().all(|(out, _)| *out == test0));
    lab.close();
}

/// A BVI that changes its address, its domain and its life, while hosts of both domains send to it
/// and it to them. A VLAN next to it loses nothing.
#[test]
fn a_bvi_changes_under_load() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        sub(&mut lab, 0, 30, one(30));
        sub(&mut lab, 1, 20, one(20));
        sub(&mut lab, 1, 21, one(21));
        lab.ok("set interface ip address test0.30 10.3.0.1/24\n\
             set interface ip address test2 10.2.0.1/24\n\
             set interface l2 bridge test1.20 10\nset interface l2 bridge test1.21 11\n\
             set interface l2 tag-rewrite test1.20 pop 1\n\
             set interface l2 tag-rewrite test1.21 pop 1");
        let make = |lab: &mut Lab, domain: u32, mac: MacAddr| {
            lab.cli("create loopback interface instance 0");
            lab.ok(&format!(
                "set interface mac address loop0 {mac}\n\
                 set interface state loop0 up\n\
                 set interface l2 bridge loop0 {domain} bvi\n\
                 set interface ip address loop0 10.1.0.1/24"
            ));
            let loop0 = interface::find(&lab.c, "loop0").expect("loop0");
            neighbor(lab, loop0, ip(1, 5), host(5));
        };
        let mac = |n: usize| MacAddr::new(2, 0, 0, 0x44, 0, 1 + (n % 2) as u8);
        make(&mut lab, 10, mac(0));
        let test2 = lab.sw_if(2);
        neighbor(&mut lab, test2, ip(2, 9), host(9));
        for round in 0..24 {
            for worker in 0..workers {
                let frames = (0..200).map(|i| {
                    let vlan = 20 + (i / 4 % 2) as u16;
                    match i % 4 {
                        0 => {
                            let packet = udp(ip(3, 9), ip(2, 9), 20).build();
                            (0, frame(0, 9, &[dot1q(30)], [8, 0], &packet))
                        }
                        1 => {
                            let packet = udp(ip(1, 5), ip(2, 9), 20).build();
                            (1, between(host(5), mac(i / 8), &[dot1q(vlan)], &packet))
                        }
                        2 => {
                            let packet = udp(ip(2, 9), ip(1, 5), 20).build();
                            (2, frame(2, 9, &[], [8, 0], &packet))
                        }
                        _ => (1, between(host(5), UNKNOWN, &[dot1q(vlan)], &[0x45; 30])),
                    }
                });
                lab.deliver_mixed(worker, frames.collect());
            }
            match round % 8 {
                1 => lab.ok(&format!("set interface mac address loop0 {}", mac(1))),
                2 => lab.ok("set interface l3 loop0\nset interface l2 bridge loop0 11 bvi"),
                4 => {
                    lab.ok("set interface l3 loop0\ndelete loopback interface intfc loop0");
                    make(&mut lab, 11, mac(0));
                }
                5 => {
                    lab.ok("delete loopback interface intfc loop0");
                    make(&mut lab, 10, mac(1));
                }
                6 => lab.ok(&format!("set interface mac address loop0 {}", mac(0))),
                _ => {}
            }
            lab.settle();
            let sent = lab.sent();
            let from_30 = |bytes: &[u8]| parts(bytes).4.get(12..16) == Some(&ip(3, 9).octets());
            let others = sent.iter().filter(|(out, b)| *out == test2 && from_30(b));
            assert_eq!(others.count(), 50 * workers, "{round}");
            // Hosts of the domain that the BVI is not in do not reach it, nor it them.
            for (out, bytes) in &sent {
                let (_, src, tags, ..) = parts(bytes);
                if *out == lab.sw_if(1) && [mac(0).0, mac(1).0].contains(&src) {
                    assert!(tags == [dot1q(20)] || tags == [dot1q(21)], "{tags:?}");
                }
            }
        }
        // The sub-interface works in the end.
        let packet = udp(ip(1, 5), ip(2, 9), 20).build();
        lab.receive(1, vec![between(host(5), mac(0), &[dot1q(20)], &packet)]);
        let (out, bytes) = sent_one(&mut lab);
        assert_eq!((out, parts(&bytes).0), (test2, host(9).0));
        lab.close();
    }
}

/// Thousands of VLANs come and go next to a port's own traffic, which loses nothing.
#[test]
fn thousands_come_and_go_beside_traffic() {
    let mut lab = lab(2);
    lab.ok("set interface ip address test0 10.1.0.1/24\n\
         set interface ip address test1 10.2.0.1/24");
    let (test0, test1) = (lab.sw_if(0), lab.sw_if(1));
    neighbor(&mut lab, test1, ip(2, 9), host(9));
    let plain = ipv4(0, 9, &[], &udp(ip(1, 9), ip(2, 9), 20));
    let nodes = lab.c.nodes().len();
    let thousands = sized(1088, 4094u16);
    let mut sent = 0;
    let load = |lab: &mut Lab, sent: &mut usize, id: u16| {
        let tagged = ipv4(0, 9, &[dot1q(id)], &udp(ip(1, 9), ip(2, 9), 20));
        for worker in 0..2 {
            let mut frames = vec![(0, plain.clone()); 40];
            frames.extend(vec![(0, tagged.clone()); 10]);
            lab.deliver_mixed(worker, frames);
            *sent += 40;
        }
    };
    for _ in 0..2 {
        for id in 1..=thousands {
            sub(&mut lab, 0, id.into(), one(id));
            if id % 64 == 0 {
                load(&mut lab, &mut sent, id);
                lab.c.run_once(Some(std::time::Duration::ZERO));
            }
        }
        for id in 1..=thousands {
            let gone = interface::find(&lab.c, &format!("test0.{id}")).expect("it is there");
            if id % 64 == 0 {
                load(&mut lab, &mut sent, id);
            }
            interface::delete(&mut lab.c, gone).expect("delete");
            lab.c.run_once(Some(std::time::Duration::ZERO));
        }
        lab.settle();
    }
    let all = lab.sent();
    assert_eq!((all.len(), all.iter().filter(|(out, _)| *out == test1).count()), (sent, sent));
    assert_eq!(lab.c.interface_totals(test0).ip4, sent as u64);
    assert_eq!(lab.c.nodes().len(), nodes);
    assert_eq!(lab.c.state::<thalweg_device::Interfaces>().borrow().iter().count(), 4);
    lab.close();
}
