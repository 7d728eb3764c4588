//! Translation on the way out of an interface: after the checks of TTL, MTU and DF, before
//! fragmenting and the link header.

use crate::nat::{FAR, Nat, Out, SHARED, tcp, udp};
use std::net::Ipv4Addr;
use thalweg_buffer::{GsoKind, Offload};
use thalweg_device::testing::ip4::{framed, icmp_error, ip};
use thalweg_device::testing::{host_mac, our_mac};
use thalweg_device::{TagMatch, VlanTag, interface};
use thalweg_fib::{Forwarding, LinkType};
use thalweg_wire::build::Packet;
use thalweg_wire::ipv4;

const SYN: u8 = 2;
const ACK: u8 = 16;

/// A NAT on the way out of `test1`, which has a small MTU.
fn nat(workers: usize) -> Nat {
    let mut n = Nat::of(workers);
    n.lab.ok("set interface nat44 in test0 out test1 del\n\
              set interface nat44 in test0 out test1 output-feature\n\
              set interface mtu packet 1400 test1");
    n
}

/// Checks that the only packet sent is an ICMP error to host 2 about this packet of its own;
/// returns type, code and MTU.
fn refused(out: &[Out], packet: &[u8]) -> (u8, u8, Option<u16>) {
    assert_eq!(out.len(), 1, "{out:02x?}");
    let e = icmp_error(0, 2, &out[0].bytes);
    assert_eq!((e.src, e.dst), (ip(0, 1), ip(0, 2)));
    assert_eq!(e.quoted[12..], packet[12..e.quoted.len()], "addresses and ports");
    (e.kind, e.code, e.mtu)
}

#[test]
fn traceroute_and_path_mtu_discovery_see_inside_addresses() {
    for workers in [1, 2] {
        let mut n = nat(workers);
        let long =
            |flags| tcp((ip(0, 2), 5000), (FAR, 80), flags).dont_fragment().payload_len(1400);
        let probe = |ttl| udp((ip(0, 2), 5000), (FAR, 33_434)).ttl(ttl);
        for with_session in [false, true] {
            for worker in 0..workers {
                let packet = probe(1).build();
                let out = n.pass_on(worker, 0, vec![packet.clone()]);
                assert_eq!(refused(&out, &packet), (11, 0, None));
                let packet = long(ACK).build();
                let out = n.pass_on(worker, 0, vec![packet.clone()]);
                assert_eq!(refused(&out, &packet), (3, 4, Some(1400)));
            }
            assert_eq!(n.sessions().len(), if with_session { 2 } else { 0 });
            // The next hop of the traceroute, and the packets that fit.
            assert_eq!(n.one(0, 1, probe(2)).view().ttl(), 1);
            let fits = tcp((ip(0, 2), 5000), (FAR, 80), SYN).dont_fragment().payload_len(1300);
            assert_eq!(n.one(0, 1, fits).src(), SHARED);
        }
        n.close();
    }
}

/// The error of a router behind this one reaches the host, about the packet as it sent it.
#[test]
fn errors_from_outside_find_the_host() {
    let mut n = nat(1);
    let out = n.one(0, 1, udp((ip(0, 2), 5000), (FAR, 33_434)).ttl(2));
    let error = Packet::new()
        .ipv4(ip(1, 2), SHARED)
        .icmp(thalweg_wire::icmpv4::IcmpRepr::ttl_exceeded())
        .payload(&out.bytes[14..]);
    let back = n.one(1, 0, error);
    let v = back.view();
    let quoted = ipv4::Ipv4View::parse_prefix(&v.payload()[8..]).unwrap();
    assert_eq!((v.dst(), quoted.src()), (ip(0, 2), ip(0, 2)));
    n.close();
}

fn gso(gso_size: u16) -> Offload {
    Offload {
        gso_size,
        hdr_len: 40,
        csum_start: 20,
        csum_offset: 16,
        needs_csum: true,
        gso: GsoKind::Tcp4,
        ..Offload::default()
    }
}

#[test]
fn segments_that_exceed_the_mtu_are_refused_untranslated() {
    let mut n = nat(1);
    let packet = tcp((ip(0, 2), 5000), (FAR, 80), SYN).dont_fragment().payload_len(4000).build();
    n.lab.receive_offload(0, framed(0, 2, &packet), gso(1400));
    let bytes = n.lab.sent_one(0);
    let out = [Out { port: 0, worker: 0, bytes }];
    assert_eq!(refused(&out, &packet), (3, 4, Some(1400)));
    assert!(n.sessions().is_empty());
    n.lab.receive_offload(0, framed(0, 2, &packet), gso(1360));
    let sent = n.lab.sent();
    assert_eq!(sent.len(), 3);
    for (_, bytes) in sent {
        assert_eq!(Out { port: 1, worker: 0, bytes }.src(), SHARED);
    }
    n.close();
}

/// A frame that gets tags is translated, however many there are in a frame.
#[test]
fn tagged_frames_are_translated() {
    let mut n = nat(1);
    let (outer, inner) = (VlanTag::dot1ad(5), VlanTag::dot1q(7));
    let subs = [
        (11, TagMatch::Outer { tag: inner, exact: true }),
        (12, TagMatch::Pair { outer, inner, exact: true }),
        (13, TagMatch::Untagged),
    ];
    for (id, matches) in subs {
        let port = n.lab.sw_if(1);
        let sub = interface::create_sub(&mut n.lab.c, port, id, matches).unwrap();
        let mac = host_mac(1, 2);
        n.lab.ok(&format!(
            "set interface state test1.{id} up
             set interface ip address test1.{id} 10.9.{id}.1/24
             set ip neighbor test1.{id} 10.9.{id}.2 {mac} static
             set interface nat44 out test1.{id} output-feature
             ip route replace 198.51.100.0/24 via 10.9.{id}.2 test1.{id}"
        ));
        let tags = matches.tags().unwrap();
        let tags = tags.as_slice();
        n.lab.c.sync();
        let sent = |n: &Nat| n.lab.c.interface_totals(sub).tx_packets;
        let before = sent(&n);
        for count in [1, 2, 40] {
            let packets = vec![udp((ip(0, 2), 5000), (FAR, 53)).build(); count];
            let out = n.pass_all(0, packets);
            assert_eq!(out.len(), count);
            for mut o in out {
                assert_eq!(
                    (&o.bytes[..6], &o.bytes[6..12]),
                    (&host_mac(1, 2).0[..], &our_mac(1).0[..])
                );
                assert_eq!(o.bytes.drain(12..12 + tags.len()).as_slice(), tags);
                assert_eq!((o.src(), o.view().ttl()), (SHARED, 63));
            }
        }
        // Cut into fragments, too.
        let long = udp((ip(0, 2), 5000), (FAR, 53)).payload_len(3000).id(4).build();
        let out = n.pass_all(0, vec![long]);
        assert_eq!(out.len(), 3);
        for mut o in out {
            assert_eq!(o.bytes.drain(12..12 + tags.len()).as_slice(), tags);
            assert_eq!(o.src(), SHARED);
        }
        assert_eq!(sent(&n) - before, 1 + 2 + 40 + 3);
    }
    assert_eq!(n.sessions().len(), 1);
    n.close();
}

/// Pieces of a datagram: the bytes from `at` to `end` behind the IP header, with this first byte of
/// the identification.
fn piece(whole: &[u8], id: u8, at: usize, end: usize) -> Vec<u8> {
    let mut p = [&whole[..20], &whole[20 + at..20 + end]].concat();
    let len = p.len() as u16;
    p[2..4].copy_from_slice(&len.to_be_bytes());
    p[4] = id;
    let more = u16::from(20 + end < whole.len()) << 13;
    p[6..8].copy_from_slice(&((at / 8) as u16 | more).to_be_bytes());
    ipv4::fill_checksum(&mut p).unwrap();
    p
}

/// Fragments that arrive before their first one wait for it, and leave by the same adjacency.
#[test]
fn fragments_pass_in_any_order() {
    for workers in [1, 2] {
        let mut n = nat(workers);
        let whole = udp((ip(0, 2), 5000), (FAR, 53)).payload_len(1400).id(77).build();
        for worker in 0..workers {
            let piece = |at, end| piece(&whole, worker as u8, at, end);
            let pieces = vec![piece(1200, 1408), piece(600, 1200), piece(0, 600)];
            let out = n.pass_on(worker, 0, pieces);
            assert_eq!(out.len(), 3, "{}", n.lab.cli("show errors"));
            for o in &out {
                assert_eq!((o.port, o.src(), o.view().ttl()), (1, SHARED, 63));
                assert_eq!(o.bytes[..6], host_mac(1, 2).0);
            }
        }
        n.close();
    }
}

/// A fragment that waits while its adjacency is deleted, and its index becomes another
/// neighbour's, does not go there.
#[test]
fn a_waiting_fragment_does_not_follow_its_index_to_another_neighbour() {
    let mut n = nat(1);
    // The packet may have waited for too long on a very slow machine.
    let lost = |n: &Nat| {
        let late = n.lab.count("nat44-ed-ticker", "timeout waiting for the first fragment");
        late + n.lab.count("ip4-rewrite-out", "next hop lost during output features")
    };
    let adjacency = |n: &Nat, host: u8| {
        let f = n.lab.c.state::<Forwarding>();
        let to = std::net::IpAddr::V4(ip(1, host));
        f.borrow().find(n.lab.sw_if(1), LinkType::Ip4, to).map(|a| a.dpo)
    };
    let know = |n: &mut Nat, host: u8, del: &str| {
        let mac = host_mac(1, host);
        n.lab.ok(&format!("set ip neighbor test1 10.0.1.{host} {mac} static{del}"));
    };
    know(&mut n, 40, "");
    n.lab.ok("ip route add 203.0.113.0/24 via 10.0.1.40 test1");
    let far = (Ipv4Addr::new(203, 0, 113, 7), 53);
    let whole = udp((ip(0, 2), 5000), far).payload_len(1200).id(77).build();
    let old = adjacency(&n, 40).expect("an adjacency");
    n.lab.deliver_to(0, 0, vec![framed(0, 2, &piece(&whole, 1, 600, 1208))]);
    n.lab.seen();
    n.lab.ok("ip route del 203.0.113.0/24 via 10.0.1.40 test1");
    know(&mut n, 40, " del");
    let next = (41..=250).find(|host| {
        know(&mut n, *host, "");
        n.lab.c.sync();
        adjacency(&n, *host) == Some(old)
    });
    let next = next.expect("the index in use again");
    n.lab.ok("ip route add 203.0.113.0/24 via 10.0.1.2 test1");
    let out = n.pass_all(0, vec![piece(&whole, 1, 0, 600)]);
    let to: Vec<&[u8]> = out.iter().map(|o| &o.bytes[..6]).collect();
    assert_eq!(to, [&host_mac(1, 2).0[..]], "not to host {next}");
    assert_eq!(lost(&n), 1, "{}", n.lab.cli("show errors"));
    n.close();
}

/// Packets that are handed over by one worker to another leave by the adjacency that they had.
#[test]
fn packets_from_other_workers_keep_their_adjacency() {
    let mut n = nat(2);
    for host in 40..48 {
        let mac = host_mac(1, host);
        n.lab.ok(&format!(
            "set ip neighbor test1 10.0.1.{host} {mac} static
             ip route add 203.0.113.{host}/32 via 10.0.1.{host} test1"
        ));
    }
    for worker in 0..2 {
        for count in [1, 64] {
            let to = |i: u8| Ipv4Addr::new(203, 0, 113, 40 + i % 8);
            let packets = (0..count).map(|i| udp((ip(0, 2 + i % 2), 5000), (to(i), 53)).build());
            let out = n.pass_on(worker, 0, packets.collect());
            assert_eq!(out.len(), usize::from(count), "{}", n.lab.cli("show errors"));
            for o in &out {
                let host = o.dst().octets()[3];
                assert_eq!((o.src(), &o.bytes[..6]), (SHARED, &host_mac(1, host).0[..]));
            }
        }
    }
    n.close();
}

/// No packet is lost while the feature comes and goes; each is translated or not.
#[test]
fn the_feature_comes_and_goes_under_traffic() {
    let mut n = nat(2);
    let own: Vec<Ipv4Addr> = vec![SHARED, ip(0, 2), ip(0, 3)];
    let mut seen = [0; 3];
    for round in 0..60u16 {
        for worker in 0..2 {
            let from = |i: u16| (ip(0, 2 + (i % 2) as u8), 5000 + i % 7);
            let packet = |i: u16| {
                udp(from(i), (FAR, 53)).id(i).payload_len(1500 * usize::from(i.is_multiple_of(40)))
            };
            let frames = (0..80).map(|i| framed(0, 2, &packet(i).build())).collect();
            n.lab.deliver_to(worker, 0, frames);
        }
        let del = if round % 2 == 0 { " del" } else { "" };
        n.lab.ok(&format!("set interface nat44 in test0 out test1 output-feature{del}"));
        n.lab.settle();
        let sent = n.lab.sent();
        assert_eq!(sent.len(), 2 * (78 + 2 * 2), "{}", n.lab.cli("show errors"));
        for (sw_if, bytes) in sent {
            assert_eq!(sw_if, n.lab.sw_if(1));
            let o = Out { port: 1, worker: 0, bytes };
            assert_eq!(o.view().ttl(), 63);
            seen[own.iter().position(|a| *a == o.src()).expect("a known source")] += 1;
        }
    }
    assert!(seen[0] > 0 && seen[1] + seen[2] > 0, "{seen:?}");
    n.close();
}

/// A packet that another worker has to translate, and that is then refused: the host gets the
/// error, about the packet that it has sent.
#[test]
fn errors_about_packets_handed_over_reach_the_host() {
    for output in [false, true] {
        let mut n = Nat::of(2);
        if output {
            n.lab.ok("set interface nat44 in test0 out test1 del\n\
                      set interface nat44 in test0 out test1 output-feature");
        }
        n.know(3..30);
        let mut workers = std::collections::BTreeSet::new();
        for host in 2..20 {
            let near = (ip(0, host), 5000);
            n.one(0, 1, tcp(near, (FAR, 80), SYN));
            n.lab.ok("set interface mtu packet 1000 test1");
            for worker in 0..2 {
                let long = tcp(near, (FAR, 80), ACK).dont_fragment().payload_len(1200).build();
                let out = n.pass_on(worker, 0, vec![long.clone()]);
                assert_eq!(out.len(), 1, "{}", n.lab.cli("show errors"));
                let e = icmp_error(0, 2, &out[0].bytes);
                assert_eq!((e.kind, e.code, e.mtu, e.dst), (3, 4, Some(1000), near.0));
                assert_eq!(e.quoted[12..40], long[12..40]);
                workers.insert((worker, out[0].worker));
            }
            n.lab.ok("set interface mtu packet 9000 test1");
        }
        // Before NAT on output, the worker that received the packet answers.
        assert_eq!(workers.len(), if output { 2 } else { 4 }, "{workers:?}");
        // The translation itself is refused.
        n.lab.ok("set nat44 session limit 1 per-host");
        for host in 20..30 {
            let opens = |port| udp((ip(0, host), port), (FAR, 53)).build();
            n.pass_on(0, 0, vec![opens(1000)]);
            for worker in 0..2 {
                let out = n.pass_on(worker, 0, vec![opens(2000)]);
                assert_eq!(out.len(), 1, "{}", n.lab.cli("show errors"));
                let e = icmp_error(0, 2, &out[0].bytes);
                assert_eq!((e.kind, e.code, e.dst), (3, 1, ip(0, host)));
                assert_eq!(e.quoted[12..], opens(2000)[12..e.quoted.len()]);
            }
        }
        n.close();
    }
}

/// Without a role of its own, an inside interface has its hosts meet the translation on output,
/// also where they call each other by external address.
#[test]
fn hosts_call_each_other_on_the_way_out() {
    for workers in [1, 2] {
        let mut n = Nat::of(workers);
        n.lab.ok("set interface nat44 in test0 out test1 del\n\
                  set interface nat44 out test1 output-feature\n\
                  ip route add 192.0.2.0/24 via 10.0.1.2 test1\n\
                  nat44 add static mapping udp local 10.0.0.2 53 external 192.0.2.1 5353");
        for worker in 0..workers {
            let ask = udp((ip(2, 2), 5000), (SHARED, 5353)).build();
            let out = n.pass_on(worker, 2, vec![ask]);
            assert_eq!(out.len(), 1, "{}", n.lab.cli("show errors"));
            assert_eq!((out[0].port, out[0].src(), out[0].dst()), (0, SHARED, ip(0, 2)));
            assert_eq!((out[0].ports().1, out[0].view().ttl()), (53, 62));
            let back = udp((ip(0, 2), 53), (SHARED, out[0].ports().0)).build();
            let back = n.pass_on(worker, 0, vec![back]);
            assert_eq!(back.len(), 1, "{}", n.lab.cli("show errors"));
            assert_eq!((back[0].port, back[0].src(), back[0].dst()), (2, SHARED, ip(2, 2)));
            assert_eq!(back[0].ports(), (5353, 5000));
        }
        n.close();
    }
}
