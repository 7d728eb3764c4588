//! Translation by rules, whatever the protocol, and whichever worker a connection belongs to.

use std::net::Ipv4Addr;

use crate::fragments::{cut, dropped};
use crate::lab::{CLIENT_MAC, Lab, SERVER_MAC};
use crate::{CLIENT, SERVER};
use thalweg_wire::build::{self, Packet};
use thalweg_wire::icmpv4::IcmpRepr;
use thalweg_wire::ip::protocol::{DCCP, ESP, GRE, SCTP, UDP_LITE};
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::{checksum, ipv4};

const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const WORKERS: [usize; 2] = [1, 2];

/// A switch that translates what `port0` opens.
fn translating(workers: usize, range: &str) -> Lab {
    let mut lab = Lab::new(workers, 4096);
    lab.ok(&format!(
        "flow add 7 table=0,ip,actions=ct(table=1,nat)
         flow add 7 table=1,ip,ct_state=+new,in_port=port0,actions=ct(commit,nat({range})),normal
         flow add 7 table=1,ip,ct_state=+est,actions=normal
         flow add 7 table=1,ip,ct_state=+rel,actions=normal
         set interface flow port0 7
         set interface flow port1 7"
    ));
    lab
}

fn there() -> Packet {
    Packet::new().ether(CLIENT_MAC, SERVER_MAC)
}

fn back() -> Packet {
    Packet::new().ether(SERVER_MAC, CLIENT_MAC)
}

fn transport(number: u8, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
    build::segment(number, from, to, b"some data of an odd length.", 3)
}

#[test]
fn protocols_without_ports_are_translated() {
    for workers in WORKERS {
        for number in [GRE, ESP] {
            let mut lab = translating(workers, "src=192.0.2.1");
            let far = |n: u8| Ipv4Addr::new(48, 0, 1, n);
            let to = |n| there().ipv4(CLIENT, far(n)).protocol(number).payload(&[0; 24]).build();
            let frames: Vec<Vec<u8>> = (0..24).map(to).collect();
            let seen = lab.pass(0, &frames);
            assert_eq!(seen.len(), 24, "{workers} workers, protocol {number}");
            assert!(seen.iter().all(|(_, f)| f[26..30] == OUTSIDE.octets()));
            let from = |n| back().ipv4(far(n), OUTSIDE).protocol(number).payload(&[0; 24]).build();
            let frames: Vec<Vec<u8>> = (0..24).map(from).collect();
            let seen = lab.pass(1, &frames);
            assert_eq!(seen.len(), 24, "{workers} workers, protocol {number}");
            assert!(seen.iter().all(|(_, f)| f[30..34] == CLIENT.octets()));
            // Another host has no address left towards the same one.
            let other = Ipv4Addr::new(16, 0, 0, 2);
            let frame = there().ipv4(other, far(3)).protocol(number).payload(&[0; 24]).build();
            assert!(lab.pass(0, &[frame]).is_empty());
            assert_eq!(dropped(&mut lab, "flow: no translation"), 1);
            lab.close();
        }
    }
}

/// Ports are written where a protocol has them, and checksums of each kind follow.
#[test]
fn protocols_with_ports_are_translated() {
    for workers in WORKERS {
        for number in [UDP_LITE, DCCP, SCTP] {
            let mut lab = translating(workers, "src=192.0.2.1:2000-3000");
            for sport in 5000..5010u16 {
                let (near, far) = ((CLIENT, sport), (SERVER, 80));
                let l4 = transport(number, near, far);
                let frame = there().ipv4(CLIENT, SERVER).protocol(number).payload(&l4).build();
                let seen = lab.pass(0, &[frame]);
                let [(_, out)] = &seen[..] else { panic!("{number}: {seen:02x?}") };
                let port = u16::from_be_bytes([out[34], out[35]]);
                assert!((2000..=3000).contains(&port), "{number}: {port}");
                assert_eq!(out[26..30], OUTSIDE.octets());
                assert_eq!(out[34..], transport(number, (OUTSIDE, port), far), "{number}");
                let l4 = transport(number, far, (OUTSIDE, port));
                let frame = back().ipv4(SERVER, OUTSIDE).protocol(number).payload(&l4).build();
                let seen = lab.pass(1, &[frame]);
                let [(_, got)] = &seen[..] else { panic!("{number}: {seen:02x?}") };
                assert_eq!(got[34..], transport(number, far, near), "{number}");
            }
            lab.close();
        }
    }
}

/// Passes 40 connections from `port0` to `to`, and their answers, and asserts that all live, and
/// that each worker has a part of them.
fn both_directions(lab: &mut Lab, workers: usize, (to, real): ([Ipv4Addr; 2], [Ipv4Addr; 2])) {
    let tx = |lab: &Lab, worker: usize| lab.c.worker_stats(worker).totals.tx.get();
    for (sport, n) in (5000..5040).zip([0, 1].into_iter().cycle()) {
        let frame = there().ipv4(CLIENT, to[n]).udp(sport, 53).payload(b"abc").build();
        let seen = lab.pass(0, &[frame]);
        assert_eq!(seen.len(), 1, "{workers} workers, {sport}");
        let out = &seen[0].1;
        assert_eq!(out[30..34], real[n].octets());
        let from: [u8; 4] = out[26..30].try_into().unwrap();
        let port = u16::from_be_bytes([out[34], out[35]]);
        let frame = back().ipv4(real[n], from.into()).udp(53, port).payload(b"abc").build();
        let want = back().ipv4(to[n], CLIENT).udp(53, sport).payload(b"abc").build();
        let seen = lab.pass(1, &[frame]);
        assert_eq!(seen.iter().map(|(_, f)| f).collect::<Vec<_>>(), [&want], "{workers}: {sport}");
    }
    // The lab may have more workers than were asked for.
    let workers = lab.c.workers();
    let sent: Vec<u64> = (0..workers).map(|worker| tx(lab, worker)).collect();
    assert_eq!(sent.iter().sum::<u64>(), 80);
    assert!(sent.iter().all(|sent| *sent >= 80 / workers as u64 / 3), "{sent:?}");
}

fn attached(workers: usize, rules: &str) -> Lab {
    let mut lab = Lab::new(workers, 4096);
    rules.lines().for_each(|rule| lab.ok(&format!("flow add 7 {}", rule.trim())));
    lab.ok("set interface flow port0 7\nset interface flow port1 7");
    lab
}

/// The address is changed before the connection is tracked: in its rule, in a table before it, by
/// parts of a field that an earlier rule has set, and with a translation.
#[test]
fn connections_belong_to_the_worker_of_the_tuple_that_is_tracked() {
    let real = Ipv4Addr::new(48, 0, 0, 9);
    let other = Ipv4Addr::new(48, 0, 1, 9);
    let second = Ipv4Addr::new(48, 0, 0, 2);
    let one = ([SERVER; 2], [real; 2]);
    let two = ([SERVER, second], [real, other]);
    for workers in WORKERS {
        for (rules, ends) in [
            (
                "table=0,ip,in_port=port0,actions=mod_nw_dst:48.0.0.9,ct(commit),normal
                 table=0,ip,in_port=port1,actions=ct(table=1)
                 table=1,ip,ct_state=+est,actions=mod_nw_src:48.0.0.1,normal",
                one,
            ),
            (
                "table=0,ip,in_port=port0,nw_dst=48.0.0.1,actions=mod_nw_dst:48.0.0.9,dec_ttl,resubmit(,2)
                 table=0,ip,in_port=port0,nw_dst=48.0.0.2,actions=resubmit(,3),resubmit(,2)
                 table=3,ip,actions=load:0x09->NXM_OF_IP_DST[0..7],load:0x01->NXM_OF_IP_DST[8..15]
                 table=2,ip,nw_dst=48.0.0.0/16,actions=ct(commit,table=4)
                 table=4,ip,actions=normal
                 table=0,ip,in_port=port1,actions=ct(table=1)
                 table=1,ip,ct_state=+est,nw_src=48.0.0.9,actions=mod_nw_src:48.0.0.1,normal
                 table=1,ip,ct_state=+est,nw_src=48.0.1.9,actions=mod_nw_src:48.0.0.2,normal",
                two,
            ),
            (
                "table=0,ip,in_port=port0,actions=mod_nw_dst:48.0.0.9,ct(commit,nat(src=192.0.2.1)),normal
                 table=0,ip,in_port=port1,actions=ct(nat,table=1)
                 table=1,ip,ct_state=+est,actions=mod_nw_src:48.0.0.1,normal",
                one,
            ),
        ] {
            let mut lab = attached(workers, rules);
            both_directions(&mut lab, workers, ends);
            lab.close();
        }
    }
}

/// Translations in several zones do not meet if each packet is tracked in one of them.
#[test]
fn translations_in_several_zones_are_shared_out() {
    for workers in WORKERS {
        let mut lab = attached(
            workers,
            "table=0,ip,in_port=port0,nw_dst=48.0.0.1,actions=ct(commit,zone=1,nat(src=192.0.2.1)),normal
             table=0,ip,in_port=port0,nw_dst=48.0.0.2,actions=ct(commit,zone=2,nat(src=192.0.2.1)),normal
             table=0,ip,in_port=port1,nw_src=48.0.0.1,actions=ct(zone=1,nat),normal
             table=0,ip,in_port=port1,nw_src=48.0.0.2,actions=ct(zone=2,nat),normal",
        );
        let ends = [SERVER, Ipv4Addr::new(48, 0, 0, 2)];
        both_directions(&mut lab, workers, (ends, ends));
        lab.close();
    }
}

/// Connections tracked under two tuples are in one place.
#[test]
fn connections_of_several_tuples_share_a_worker() {
    for workers in WORKERS {
        let mut lab = attached(
            workers,
            "table=0,ip,in_port=port0,actions=ct(commit,zone=1),mod_nw_dst:48.0.0.9,ct(commit,zone=2),normal
             table=0,ip,in_port=port1,actions=ct(zone=2,table=1)
             table=1,ip,ct_state=+est,actions=mod_nw_src:48.0.0.1,ct(zone=1,table=2)
             table=2,ip,ct_state=+est,actions=normal",
        );
        let real = Ipv4Addr::new(48, 0, 0, 9);
        for sport in 5000..5040 {
            let frame = there().ipv4(CLIENT, SERVER).udp(sport, 53).build();
            assert_eq!(lab.pass(0, &[frame]).len(), 1);
            let frame = back().ipv4(real, CLIENT).udp(53, sport).build();
            assert_eq!(lab.pass(1, &[frame]).len(), 1, "{workers} workers, port {sport}");
        }
        lab.close();
    }
}

/// Two tags, one of which a rule pops before the tracker sees the packet.
#[test]
fn connections_behind_two_tags_have_one_worker() {
    for workers in WORKERS {
        let mut lab = Lab::new(workers, 4096);
        lab.ok("flow add 7 table=0,actions=pop_vlan,resubmit(,1)
             flow add 7 table=1,ip,in_port=port0,actions=ct(commit),normal
             flow add 7 table=1,ip,in_port=port1,actions=ct(table=2)
             flow add 7 table=2,ip,ct_state=+est,actions=normal
             set interface flow port0 7
             set interface flow port1 7");
        for sport in 5000..5040 {
            let frame = there().vlan(5).vlan(6).ipv4(CLIENT, SERVER).udp(sport, 53).build();
            assert_eq!(lab.pass(0, &[frame]).len(), 1);
            let frame = back().vlan(5).vlan(6).ipv4(SERVER, CLIENT).udp(53, sport).build();
            assert_eq!(lab.pass(1, &[frame]).len(), 1, "{workers} workers, port {sport}");
        }
        lab.close();
    }
}

/// A single port is translated to whichever worker the connection would belong to.
#[test]
fn few_ports_are_used_up_before_connections_are_refused() {
    for workers in WORKERS {
        let mut lab = translating(workers, "src=192.0.2.1:2000-2003");
        let to = |n: u16| there().ipv4(CLIENT, SERVER).udp(5000 + n, 53).build();
        let frames: Vec<Vec<u8>> = (0..6).map(to).collect();
        let seen = lab.pass(0, &frames);
        let mut ports: Vec<u16> =
            seen.iter().map(|(_, f)| u16::from_be_bytes([f[34], f[35]])).collect();
        ports.sort_unstable();
        assert_eq!(ports, [2000, 2001, 2002, 2003], "{workers} workers");
        assert_eq!(dropped(&mut lab, "flow: no translation"), 2);
        lab.close();
    }
}

fn error(from: Ipv4Addr, quote: &[u8], repr: IcmpRepr) -> Packet {
    back().ipv4(from, OUTSIDE).icmp(repr).payload(quote)
}

/// Errors are translated with what they quote, a trailer or a second fragment notwithstanding;
/// redirects are dropped.
#[test]
fn errors_about_translated_connections() {
    let hop = Ipv4Addr::new(48, 0, 9, 9);
    for workers in WORKERS {
        let mut lab = translating(workers, "src=192.0.2.1");
        let first = there().ipv4(CLIENT, SERVER).udp(5000, 53).payload_len(64).build();
        let sent = lab.pass(0, std::slice::from_ref(&first)).remove(0).1;
        let whole = error(hop, &sent[14..], IcmpRepr::ttl_exceeded());
        let check = |frame: &[u8]| {
            let ip = ipv4::check(&frame[14..]).expect("a sound header");
            assert_eq!((ip.src(), ip.dst()), (hop, CLIENT));
            assert!(checksum::verify(ip.payload()), "{workers}: {frame:02x?}");
            assert_eq!(ip.payload()[8..], first[14..14 + ip.payload().len() - 8]);
        };
        let mut frame = whole.build();
        check(&lab.pass(1, std::slice::from_ref(&frame)).remove(0).1);
        // A trailer behind the least that an error quotes.
        let mut short = error(hop, &sent[14..14 + 28], IcmpRepr::ttl_exceeded()).build();
        short.extend([0x55; 40]);
        let got = lab.pass(1, &[short]).remove(0).1;
        check(&got);
        assert_eq!(got[got.len() - 40..], [0x55; 40]);
        // Errors come in two fragments, from a hop and from the server itself.
        for from in [hop, SERVER] {
            let parts = cut(&error(from, &sent[14..], IcmpRepr::unreachable(3)).build(), 64, 5);
            assert_eq!(parts.len(), 2);
            let seen = lab.pass(1, &parts);
            assert_eq!(seen.len(), 2);
            for (_, part) in seen {
                let ip = Ipv4View::parse(&part[14..]).expect("a header");
                assert_eq!((ip.src(), ip.dst(), ip.checksum_ok()), (from, CLIENT, true));
            }
        }
        let redirect = IcmpRepr { kind: 5, ..IcmpRepr::unreachable(1) };
        frame = error(hop, &sent[14..], redirect).build();
        assert!(lab.pass(1, &[frame]).is_empty());
        assert_eq!(dropped(&mut lab, "flow: no translation"), 1);
        lab.close();
    }
}

/// Packets that no rule of a later table matches are misses, like in the first.
#[test]
fn misses_are_counted_in_all_tables() {
    let mut lab = Lab::new(1, 2048);
    lab.ok("flow add 7 table=0,ip,actions=ct(table=1)
         flow add 7 table=1,udp,actions=drop
         set interface flow port0 7");
    let tcp = |n| there().ipv4(CLIENT, SERVER).tcp(n, 80).flags(2).build();
    let udp = |n| there().ipv4(CLIENT, SERVER).udp(n, 80).build();
    // Packets go by the cache, and without.
    let frames: Vec<Vec<u8>> = (1..9).map(tcp).chain((1..5).map(udp)).collect();
    for frame in &frames {
        lab.pass(0, std::slice::from_ref(frame));
    }
    lab.pass(0, &frames);
    let counts = ["flow: table miss", "flow: dropped by a rule"].map(|r| dropped(&mut lab, r));
    assert_eq!(counts, [16, 8]);
    lab.ok("flow del 7
         flow add 7 table=0,ip,actions=resubmit(,3)
         flow add 7 table=0,arp,actions=drop");
    lab.pass(0, &frames);
    assert_eq!(dropped(&mut lab, "flow: table miss"), 16 + 12);
    lab.close();
}
