//! Rules about IPv6, and tracking and translation of its connections, with one worker and two.

use std::net::Ipv6Addr;

use crate::fragments::dropped;
use crate::lab::{CLIENT_MAC, Lab, SERVER_MAC};
use thalweg_device::SwIfIndex;
use thalweg_wire::build::{self, Packet};
use thalweg_wire::icmpv6::{self, Icmp6Repr, Icmp6View};
use thalweg_wire::ip::protocol::{GRE, SCTP};
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::tcp::flag::{ACK, SYN};

pub(crate) const CLIENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
pub(crate) const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
pub(crate) const OUTSIDE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1);
pub(crate) const HOP: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 7);
pub(crate) const WORKERS: [usize; 2] = [1, 2];

pub(crate) fn attached(workers: usize, rules: &str) -> Lab {
    let mut lab = Lab::new(workers, 4096);
    rules.lines().for_each(|rule| lab.ok(&format!("flow add 1 {}", rule.trim())));
    lab.ok("set interface flow port0 1\nset interface flow port1 1");
    lab
}

pub(crate) fn guarded(workers: usize) -> Lab {
    attached(
        workers,
        "priority=2,arp,actions=normal
         priority=2,icmp6,icmp_type=135,actions=normal
         priority=1,ipv6,ct_state=-trk,actions=ct(table=0)
         priority=1,ipv6,ct_state=+trk+new,in_port=port0,actions=ct(commit),normal
         priority=1,ipv6,ct_state=+trk+est,actions=normal
         priority=1,icmp6,ct_state=+trk+rel,actions=normal
         priority=0,actions=drop",
    )
}

/// A switch that translates what `port0` opens.
fn translating(workers: usize, range: &str) -> Lab {
    attached(
        workers,
        &format!(
            "table=0,ipv6,actions=ct(table=1,nat)
             table=1,ipv6,ct_state=+new,in_port=port0,actions=ct(commit,nat({range})),normal
             table=1,ipv6,ct_state=+est,actions=normal
             table=1,ipv6,ct_state=+rel,actions=normal"
        ),
    )
}

pub(crate) fn there() -> Packet {
    Packet::new().ether(CLIENT_MAC, SERVER_MAC)
}

pub(crate) fn back() -> Packet {
    Packet::new().ether(SERVER_MAC, CLIENT_MAC)
}

pub(crate) fn tcp(out: bool, port: u16, flags: u8, seq: u32, ack: u32) -> Vec<u8> {
    let packet = match out {
        true => there().ipv6(CLIENT, SERVER).tcp(port, 80),
        false => back().ipv6(SERVER, CLIENT).tcp(80, port),
    };
    packet.flags(flags).seq(seq).ack(ack).window(1000).build()
}

pub(crate) fn source(frame: &[u8]) -> Ipv6Addr {
    Ipv6View::parse(&frame[14..]).expect("a header").src()
}

fn destination(frame: &[u8]) -> Ipv6Addr {
    Ipv6View::parse(&frame[14..]).expect("a header").dst()
}

/// Ports of a packet without extension headers.
pub(crate) fn ports(frame: &[u8]) -> [u16; 2] {
    [54, 56].map(|at| u16::from_be_bytes([frame[at], frame[at + 1]]))
}

pub(crate) fn one(mut seen: Vec<(SwIfIndex, Vec<u8>)>) -> Vec<u8> {
    assert_eq!(seen.len(), 1, "{seen:02x?}");
    seen.remove(0).1
}

/// Puts an extension header behind the IPv6 header of a frame.
pub(crate) fn extended(frame: &[u8], kind: u8, header: &[u8]) -> Vec<u8> {
    let (mut frame, mut header) = (frame.to_vec(), header.to_vec());
    header[0] = std::mem::replace(&mut frame[20], kind);
    let length = u16::from_be_bytes([frame[18], frame[19]]) + header.len() as u16;
    frame[18..20].copy_from_slice(&length.to_be_bytes());
    frame.splice(54..54, header);
    frame
}

/// Cuts a frame into fragments with `each` bytes behind the fragment header.
pub(crate) fn cut(frame: &[u8], each: usize, id: u32) -> Vec<Vec<u8>> {
    let (head, payload) = frame.split_at(54);
    let count = payload.len().div_ceil(each);
    let part = |(n, data): (usize, &[u8])| {
        let mut part = [head, data].concat();
        part[18..20].copy_from_slice(&(data.len() as u16).to_be_bytes());
        let word = (n * each) as u16 | u16::from(n + 1 < count);
        let header = [&[0, 0], &word.to_be_bytes()[..], &id.to_be_bytes()].concat();
        extended(&part, 44, &header)
    };
    payload.chunks(each).enumerate().map(part).collect()
}

/// An ICMPv6 error of a hop about a packet that left by `port1`.
pub(crate) fn error(from: Ipv6Addr, about: &[u8], repr: Icmp6Repr) -> Vec<u8> {
    let mut l3 = [0; 1280];
    let length = icmpv6::emit_error(repr, from, &about[14..], &mut l3).expect("room");
    let mut frame = back().build();
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    frame.extend(&l3[..length]);
    frame
}

#[test]
fn rules_match_addresses_labels_and_neighbour_discovery() {
    let mut lab = attached(
        1,
        "priority=9,ipv6,ipv6_src=2001:db8:1::/48,ipv6_dst=2001:db8:2::1,actions=drop
         priority=8,ipv6,ipv6_dst=::2/::f,actions=drop
         priority=7,ipv6,ipv6_label=0x12345,actions=drop
         priority=6,icmp6,icmp_type=135,nd_target=fe80::/64,nd_sll=02:00:00:00:00:01,actions=drop
         priority=5,ip,nw_src=16.0.0.1,actions=drop
         priority=4,icmp6,icmp_type=136,nd_reserved=0x60000000,actions=drop
         priority=3,icmp6,icmp_type=136,nd_options_type=2,actions=drop
         priority=0,actions=normal",
    );
    let other = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);
    let udp = |from, to| there().ipv6(from, to).udp(1, 2).build();
    let solicitation = |target: Ipv6Addr, mac: u8| {
        let repr = Icmp6Repr { kind: 135, code: 0, rest: 0 };
        let options = [1, 1, 2, 0, 0, 0, 0, mac];
        let payload = [&target.octets()[..], &options].concat();
        there().ipv6(other, other).icmp6(repr).payload(&payload).build()
    };
    let advertisement = |flags: u32, option: &[u8]| {
        let repr = Icmp6Repr { kind: 136, code: 0, rest: flags };
        let payload = [&other.octets()[..], option].concat();
        there().ipv6(other, other).icmp6(repr).payload(&payload).build()
    };
    let mut labelled = udp(other, other);
    labelled[15..18].copy_from_slice(&[1, 0x23, 0x45]);
    let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 3);
    let near = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x12);
    let four = |n| there().ipv4([16, 0, 0, n].into(), [48, 0, 0, 1].into()).udp(1, 2).build();
    for (frame, passes) in [
        (udp(CLIENT, SERVER), false),
        (udp(CLIENT, other), true),
        (udp(other, SERVER), true),
        (udp(other, near), false),
        (udp(other, other), true),
        (labelled, false),
        (solicitation(local, 1), false),
        (solicitation(local, 2), true),
        (solicitation(other, 1), true),
        (advertisement(0x6000_0000, &[]), false),
        (advertisement(0x2000_0000, &[]), true),
        // The first of the options that hold an address of the link.
        (advertisement(0, &[14, 1, 0, 0, 0, 0, 0, 0, 2, 1, 2, 0, 0, 0, 0, 9]), false),
        (advertisement(0, &[1, 1, 2, 0, 0, 0, 0, 9, 2, 1, 2, 0, 0, 0, 0, 9]), true),
        (four(1), false),
        (four(2), true),
    ] {
        // The cache does the same; addresses are the same behind an extension header.
        let frames = vec![frame.clone(); 4];
        assert_eq!(lab.pass(0, &frames).len(), if passes { 4 } else { 0 }, "{frame:02x?}");
    }
    // All come mixed in one frame.
    let mixed = [udp(CLIENT, SERVER), four(2), udp(other, other), four(1), udp(CLIENT, other)];
    assert_eq!(lab.pass(0, &mixed).len(), 3);
    lab.close();
}

#[test]
fn one_side_opens_connections() {
    for workers in WORKERS {
        let mut lab = guarded(workers);
        let [left, right] = lab.ports;
        assert!(lab.pass(1, &[tcp(false, 5000, SYN, 9, 0)]).is_empty(), "from the wrong side");
        for port in 5000..5020 {
            let syn = tcp(true, port, SYN, 100, 0);
            assert_eq!(lab.pass(0, std::slice::from_ref(&syn)), [(right, syn)]);
            let answer = tcp(false, port, SYN | ACK, 500, 101);
            assert_eq!(lab.pass(1, std::slice::from_ref(&answer)), [(left, answer)]);
            let ack = tcp(true, port, ACK, 101, 501);
            assert_eq!(lab.pass(0, std::slice::from_ref(&ack)), [(right, ack)]);
            let far = back().ipv6(SERVER, CLIENT).tcp(80, port).flags(ACK).seq(900_000).ack(101);
            let far = far.window(1000).payload(b"abc").build();
            assert!(lab.pass(1, &[far]).is_empty(), "out of the window");
        }
        let broken = {
            let mut frame = tcp(true, 5000, ACK, 101, 501);
            frame[14 + 8] ^= 1;
            frame
        };
        assert!(lab.pass(0, &[broken]).is_empty(), "a wrong checksum");
        // Neighbour discovery is not tracked; a rule of its own lets it through.
        let repr = Icmp6Repr { kind: 135, code: 0, rest: 0 };
        let solicitation = there().ipv6(CLIENT, SERVER).icmp6(repr).payload_len(24).build();
        assert_eq!(lab.pass(0, &[solicitation]).len(), 1);
        // Pings, also behind an extension header.
        let ask = there().ipv6(CLIENT, SERVER).icmp6_echo_request(7, 1).build();
        let ask = extended(&ask, 60, &[0, 0, 1, 4, 0, 0, 0, 0]);
        assert_eq!(lab.pass(0, &[ask]).len(), 1);
        let reply = Icmp6Repr { kind: 129, code: 0, rest: 7 << 16 };
        assert_eq!(lab.pass(1, &[back().ipv6(SERVER, CLIENT).icmp6(reply).build()]).len(), 1);
        let other = Icmp6Repr { rest: 8 << 16, ..reply };
        assert!(lab.pass(1, &[back().ipv6(SERVER, CLIENT).icmp6(other).build()]).is_empty());
        // Errors of hops on the way about what was sent.
        let known = tcp(true, 5003, ACK, 101, 501);
        for repr in [Icmp6Repr::hop_limit_exceeded(), Icmp6Repr::packet_too_big(1280)] {
            assert_eq!(lab.pass(1, &[error(HOP, &known, repr)]).len(), 1, "{workers}");
            let unknown = tcp(true, 77, ACK, 101, 501);
            assert!(lab.pass(1, &[error(HOP, &unknown, repr)]).is_empty());
        }
        let shown = lab.cli("show conntrack");
        assert_eq!(shown.lines().count(), 21, "{shown}");
        let line = "tcp,orig=(src=2001:db8:1::1,dst=2001:db8:2::1,sport=5003,dport=80),\
                    reply=(src=2001:db8:2::1,dst=2001:db8:1::1,sport=80,dport=5003),\
                    protoinfo=(state=ESTABLISHED)";
        assert!(shown.lines().any(|l| l == line), "{shown}");
        assert!(shown.contains("icmpv6,orig=(src=2001:db8:1::1,dst=2001:db8:2::1,id=7,type=128"));
        let one = "show conntrack ct_ipv6_src=2001:db8:1::1,ct_nw_proto=6,ct_tp_src=5003";
        let listed: serde_json::Value = lab.cli(&format!("{one} | json")).parse().expect("JSON");
        assert_eq!(listed[0]["orig"]["dst"], SERVER.to_string(), "{listed}");
        assert_eq!(listed.as_array().map(Vec::len), Some(1));
        let summary = lab.cli("show conntrack summary");
        assert!(summary.contains("Total: 21\n  TCP: 20\n  ICMP: 1\n  of IPv6: 21\n"), "{summary}");
        let sent = |w| lab.c.worker_stats(w).totals.tx.get();
        assert!((0..lab.c.workers()).all(|w| sent(w) > 5), "all own connections");
        assert_eq!(
            lab.cli("clear conntrack ct_ipv6_dst=2001:db8:2::1"),
            "21 connections flushed\n"
        );
        lab.close();
    }
}

/// Both families in one frame, by the cache and without.
#[test]
fn both_families_pass_side_by_side() {
    for workers in WORKERS {
        let mut lab = guarded(workers);
        lab.ok("flow add 1 priority=1,ip,ct_state=-trk,actions=ct(table=0)
             flow add 1 priority=1,ip,ct_state=+trk+new,in_port=port0,actions=ct(commit),normal
             flow add 1 priority=1,ip,ct_state=+trk+est,actions=normal");
        let four = |out: bool, n: u16| {
            let (a, b) = ([16, 0, 0, 1].into(), [48, 0, 0, 1].into());
            match out {
                true => there().ipv4(a, b).udp(n, 53).payload(b"abc").build(),
                false => back().ipv4(b, a).udp(53, n).payload(b"abc").build(),
            }
        };
        let six = |out: bool, n: u16| match out {
            true => there().ipv6(CLIENT, SERVER).udp(n, 53).payload(b"abc").build(),
            false => back().ipv6(SERVER, CLIENT).udp(53, n).payload(b"abc").build(),
        };
        let mixed = |out: bool| -> Vec<Vec<u8>> {
            (1000..1064).flat_map(|n| [four(out, n), six(out, n)]).collect()
        };
        assert!(lab.pass(1, &mixed(false)).is_empty());
        for round in 0..6 {
            let out = round % 2 == 0;
            let mut seen = lab.pass(usize::from(!out), &mixed(out));
            let to = lab.ports[usize::from(out)];
            let mut want: Vec<_> = mixed(out).into_iter().map(|frame| (to, frame)).collect();
            seen.sort();
            want.sort();
            assert_eq!(seen, want, "{workers} workers, round {round}");
        }
        let shown = lab.cli("show conntrack -s");
        assert_eq!(shown.lines().count(), 128);
        assert!(shown.lines().all(|line| line.contains("packets=3/3")), "{shown}");
        // The limit counts both; each worker has a share of it.
        if lab.c.workers() == 1 {
            lab.ok("set conntrack limit 128");
            lab.pass(0, &[six(true, 5), four(true, 5)]);
            assert_eq!(lab.cli("show conntrack").lines().count(), 128);
        }
        lab.close();
    }
}

#[test]
fn fragments_go_the_way_of_the_first() {
    for workers in WORKERS {
        let mut lab = guarded(workers);
        let [left, right] = lab.ports;
        let datagram = |out: bool| match out {
            true => there().ipv6(CLIENT, SERVER).udp(5000, 53).payload_len(3000).build(),
            false => back().ipv6(SERVER, CLIENT).udp(53, 5000).payload_len(3000).build(),
        };
        assert!(lab.pass(1, &cut(&datagram(false), 1400, 1)).is_empty());
        let orders = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]];
        for (id, order) in (10..).zip(orders) {
            for (out, port, to) in [(true, 0, right), (false, 1, left)] {
                let parts = cut(&datagram(out), 1400, id);
                let mixed: Vec<Vec<u8>> = order.iter().map(|at| parts[*at].clone()).collect();
                let mut seen = lab.pass(port, &mixed);
                let mut want: Vec<_> = parts.into_iter().map(|part| (to, part)).collect();
                seen.sort();
                want.sort();
                assert_eq!(seen, want, "{workers} workers, {order:?}");
            }
        }
        let shown = lab.cli("show conntrack -s");
        assert_eq!(shown.lines().count(), 1, "{shown}");
        assert!(shown.contains("packets=12/12"), "{shown}");
        // One that overlaps the first is invalid; an atomic one is a whole packet.
        let parts = cut(&datagram(true), 1400, 99);
        let mut over = parts[1].clone();
        over[57] -= 8;
        let before = dropped(&mut lab, "dropped by a rule");
        assert_eq!(lab.pass(0, &[parts[0].clone(), over, parts[1].clone()]).len(), 2);
        assert_eq!(dropped(&mut lab, "dropped by a rule"), before + 1);
        let small = there().ipv6(CLIENT, SERVER).udp(5000, 53).payload_len(30).build();
        assert_eq!(lab.pass(0, &cut(&small, 1400, 5)).len(), 1);
        lab.close();
    }
}

/// Ports and identifiers are rewritten where a protocol has them; checksums follow.
#[test]
fn connections_are_translated() {
    for workers in WORKERS {
        let mut lab = translating(workers, "src=[2001:db8:9::1]:2000-3000");
        for sport in 5000..5020 {
            let out = there().ipv6(CLIENT, SERVER).udp(sport, 53).payload(b"abc");
            let seen = one(lab.pass(0, &[out.build()]));
            let [port, _] = ports(&seen);
            assert!((2000..=3000).contains(&port), "{port}");
            let want = there().ipv6(OUTSIDE, SERVER).udp(port, 53).payload(b"abc").build();
            assert_eq!(seen, want);
            let answer = back().ipv6(SERVER, OUTSIDE).udp(53, port).payload(b"x").build();
            let want = back().ipv6(SERVER, CLIENT).udp(53, sport).payload(b"x").build();
            assert_eq!(one(lab.pass(1, &[answer])), want, "{workers} workers");
        }
        let sent = |w| lab.c.worker_stats(w).totals.tx.get();
        assert!((0..lab.c.workers()).all(|w| sent(w) > 4), "all own connections");
        // SCTP, whose checksum covers no address.
        let any = [0, 0, 0, 0].into();
        let segment = |from, to| build::segment(SCTP, (any, from), (any, to), b"some data", 0);
        let out = there().ipv6(CLIENT, SERVER).protocol(SCTP).payload(&segment(77, 80)).build();
        let seen = one(lab.pass(0, &[out]));
        let [port, _] = ports(&seen);
        assert_eq!(seen[54..], segment(port, 80));
        // Other protocols have only the address; a second host has none left towards the same one.
        let gre = |from| there().ipv6(from, SERVER).protocol(GRE).payload(&[0; 24]).build();
        assert_eq!(source(&one(lab.pass(0, &[gre(CLIENT)]))), OUTSIDE);
        assert!(lab.pass(0, &[gre(HOP)]).is_empty());
        assert_eq!(dropped(&mut lab, "flow: no translation"), 1);
        lab.close();
    }
}

#[test]
fn pings_and_errors_are_translated() {
    for workers in WORKERS {
        let mut lab = translating(workers, "src=2001:db8:9::1");
        let ping = |from| there().ipv6(from, SERVER).icmp6_echo_request(7, 1).build();
        let other = Ipv6Addr::from_bits(CLIENT.to_bits() + 1);
        for from in [CLIENT, other] {
            let seen = one(lab.pass(0, &[ping(from)]));
            assert_eq!(source(&seen), OUTSIDE);
            let rest = u32::from(u16::from_be_bytes([seen[58], seen[59]])) << 16 | 1;
            let reply = Icmp6Repr { kind: 129, code: 0, rest };
            let answer = back().ipv6(SERVER, OUTSIDE).icmp6(reply).build();
            let reply = Icmp6Repr { rest: 7 << 16 | 1, ..reply };
            let want = back().ipv6(SERVER, from).icmp6(reply).build();
            assert_eq!(one(lab.pass(1, &[answer])), want);
        }
        for first in [
            there().ipv6(CLIENT, SERVER).udp(5000, 53).payload_len(64).build(),
            there().ipv6(CLIENT, SERVER).tcp(5000, 80).flags(SYN).payload_len(4).build(),
            ping(Ipv6Addr::from_bits(CLIENT.to_bits() + 2)),
        ] {
            let sent = one(lab.pass(0, std::slice::from_ref(&first)));
            for from in [HOP, SERVER] {
                for repr in [Icmp6Repr::hop_limit_exceeded(), Icmp6Repr::packet_too_big(1280)] {
                    let got = one(lab.pass(1, &[error(from, &sent, repr)]));
                    let want = error(from, &first, repr);
                    assert_eq!(got, want, "{workers} workers, from {from}");
                    let message = Icmp6View::parse(&got[54..]).expect("a message");
                    assert!(message.checksum_ok(&from, &source(&first)));
                }
            }
            // The error comes in two fragments, the second of which has addresses only.
            let parts = cut(&error(SERVER, &sent, Icmp6Repr::packet_too_big(1280)), 64, 5);
            let seen = lab.pass(1, &parts);
            assert_eq!(seen.len(), parts.len());
            assert!(seen.iter().all(|(_, part)| destination(part) == source(&first)));
        }
        lab.close();
    }
}

#[test]
fn fragments_are_translated_as_the_first_is() {
    for workers in WORKERS {
        let mut lab = translating(workers, "src=2001:db8:9::1");
        let whole = there().ipv6(CLIENT, SERVER).udp(5000, 53).payload_len(3000).build();
        let seen = lab.pass(0, &cut(&whole, 1400, 1));
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|(_, f)| source(f) == OUTSIDE));
        // Reassembled, they equal the datagram built with the translated address.
        let mut parts: Vec<&[u8]> = seen.iter().map(|(_, f)| &f[..]).collect();
        parts.sort_by_key(|part| u16::from_be_bytes([part[56], part[57]]) & !7);
        let payload = parts.iter().flat_map(|part| part[62..].to_vec()).collect::<Vec<u8>>();
        let sport = u16::from_be_bytes([payload[0], payload[1]]);
        let want = there().ipv6(OUTSIDE, SERVER).udp(sport, 53).payload_len(3000).build();
        assert_eq!(payload, want[54..]);
        let answer = back().ipv6(SERVER, OUTSIDE).udp(53, sport).payload_len(3000).build();
        let mut parts = cut(&answer, 1400, 2);
        parts.reverse();
        let seen = lab.pass(1, &parts);
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|(_, f)| destination(f) == CLIENT));
        lab.close();
    }
}

/// A destination is translated by the tracker, or set in front of it.
#[test]
fn destinations_are_changed() {
    let real = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 8);
    for workers in WORKERS {
        for (rules, unseen) in [
            (
                "ipv6,ct_state=-trk,actions=ct(table=1,nat)
                 table=1,tcp6,ct_state=+new,ipv6_dst=2001:db8:2::1,tp_dst=80,actions=ct(commit,nat(dst=[fd00::8]:8080)),normal
                 table=1,ipv6,ct_state=+est,actions=normal",
                true,
            ),
            (
                "priority=2,tcp6,ipv6_dst=2001:db8:2::1,actions=set_field:fd00::8->ipv6_dst,mod_tp_dst:8080,ct(commit),normal
                 priority=1,ipv6,actions=ct(table=1)
                 table=1,ipv6,ct_state=+est,actions=normal",
                false,
            ),
        ] {
            let mut lab = attached(workers, rules);
            for port in 5000..5016 {
                let syn = there().ipv6(CLIENT, SERVER).tcp(port, 80).flags(SYN).seq(100).build();
                let seen = one(lab.pass(0, &[syn]));
                let want = there().ipv6(CLIENT, real).tcp(port, 8080).flags(SYN).seq(100).build();
                assert_eq!(seen, want);
                let answer = |from, sport| {
                    let packet = back().ipv6(from, CLIENT).tcp(sport, port).flags(SYN | ACK);
                    packet.seq(500).ack(101).build()
                };
                let want = if unseen { answer(SERVER, 80) } else { answer(real, 8080) };
                assert_eq!(one(lab.pass(1, &[answer(real, 8080)])), want, "{workers}: {rules}");
            }
            lab.close();
        }
    }
}

#[test]
fn fields_of_ipv6_are_set() {
    let mut lab = attached(
        1,
        "priority=3,udp6,tp_dst=54,actions=set_field:fd00:1::/48->ipv6_src,set_field:::7/::ff->ipv6_dst,normal
         priority=2,udp6,actions=mod_nw_tos:184,mod_nw_ecn:1,mod_nw_ttl:9,dec_ttl,mod_tp_src:7,set_field:fd00::8->ipv6_src,normal
         priority=1,icmp6,actions=set_field:fd00::8->ipv6_src,normal",
    );
    let real = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 8);
    let udp = |from, port| there().ipv6(from, SERVER).udp(port, 53).payload(b"abc");
    let seen = one(lab.pass(0, &[udp(CLIENT, 5000).build()]));
    assert_eq!(seen, udp(real, 7).tos(0xb9).ttl(8).build());
    // Some bits of each address; the others stay, also of the next packets by the cache.
    for n in 1..4 {
        let ends = |net: [u16; 2], low| {
            let [a, b] = net;
            let src = Ipv6Addr::new(a, b, if b == 1 { 0 } else { 1 }, 0, 0, 0, 0, n);
            there().ipv6(src, Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, n, low)).udp(5000, 54).build()
        };
        let seen = one(lab.pass(0, &[ends([0x2001, 0xdb8], 0x1234)]));
        assert_eq!(seen, ends([0xfd00, 1], 0x1207));
    }
    let message = |from| there().ipv6(from, SERVER).icmp6(Icmp6Repr::hop_limit_exceeded());
    let seen = one(lab.pass(0, &[message(CLIENT).payload(b"quoted").build()]));
    assert_eq!(seen, message(real).payload(b"quoted").build());
    lab.close();
}

/// Headers that end early, chains and lengths that lie: no such packet passes, or ends a worker.
#[test]
fn malformed_packets_are_invalid() {
    for workers in WORKERS {
        let mut lab = translating(workers, "src=2001:db8:9::1");
        lab.ok("flow add 1 priority=9,table=0,dl_vlan=5,actions=pop_vlan,resubmit(,0)");
        let frame = there().ipv6(CLIENT, SERVER).tcp(5000, 80).flags(SYN).payload(b"abc").build();
        let tagged = there().vlan(5).ipv6(CLIENT, SERVER).tcp(5000, 80).payload(b"abc").build();
        let mut bad: Vec<Vec<u8>> = Vec::new();
        for end in 14..frame.len() {
            bad.push(frame[..end].to_vec());
        }
        for end in 18..tagged.len() {
            bad.push(tagged[..end].to_vec());
        }
        bad.push(extended(&frame, 43, &[0, 255, 0, 0, 0, 0, 0, 0]));
        bad.push(extended(&frame, 44, &[0, 0, 0xff, 0xf9, 0, 0, 0, 0]));
        // The fragment waits for its first.
        let passed = lab.pass_until(0, &bad, bad.len() - 1);
        assert!(passed.is_empty(), "{passed:02x?}");
        lab.close();
    }
}
