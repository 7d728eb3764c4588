//! Rules that look at the original direction of connections, with one worker and two.

use std::net::Ipv4Addr;

use crate::ipv6::{
    CLIENT, HOP, OUTSIDE, SERVER, WORKERS, attached, back, cut, error, extended, one, ports,
    source, tcp, there,
};
use crate::lab::Lab;
use thalweg_wire::icmpv6::Icmp6Repr;
use thalweg_wire::tcp::flag::{ACK, SYN};

/// The hop limit, which rules set to show which of them was taken.
fn mark(frame: &[u8]) -> u8 {
    if frame[12] == 8 { frame[22] } else { frame[21] }
}

/// The marks of frames that pass, sorted.
fn marks(lab: &mut Lab, port: usize, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut marks: Vec<u8> = lab.pass(port, frames).iter().map(|(_, frame)| mark(frame)).collect();
    marks.sort();
    marks
}

/// Both directions of translated connections, and errors about them, have the tuple of the first
/// packet, before its translation.
#[test]
fn replies_and_errors_have_the_tuple_of_the_opener() {
    for workers in WORKERS {
        let mut lab = attached(
            workers,
            "table=0,ipv6,actions=ct(table=1,nat)
             table=1,ipv6,ct_state=+new,ct_ipv6_src=2001:db8:1::/48,ct_nw_proto=6,in_port=port0,\
                actions=ct(commit,nat(src=2001:db8:9::1)),normal
             table=1,priority=5,ipv6,ct_state=+est,ct_ipv6_src=2001:db8:1::1,\
                ct_ipv6_dst=2001:db8:2::1/ffff::ff,ct_nw_proto=6,ct_tp_src=5000/0xfffe,ct_tp_dst=80,\
                actions=mod_nw_ttl:50,normal
             table=1,priority=4,ipv6,ct_state=+est,ct_ipv6_src=2001:db8:9::1,actions=mod_nw_ttl:49,normal
             table=1,priority=3,ipv6,ct_state=+est,actions=mod_nw_ttl:48,normal
             table=1,priority=2,icmp6,ct_state=+rel,ct_ipv6_src=2001:db8:1::1,ct_nw_proto=6,\
                ct_tp_src=5000,actions=mod_nw_ttl:47,normal
             table=1,priority=1,icmp6,ct_state=+rel,actions=mod_nw_ttl:46,normal",
        );
        // The first two of these are in the rule's range of ports.
        for (port, established, related) in [(5000, 50, 47), (5001, 50, 46), (5002, 48, 46)] {
            let syn = one(lab.pass(0, &[tcp(true, port, SYN, 100, 0)]));
            assert_eq!(source(&syn), OUTSIDE);
            let [outside, _] = ports(&syn);
            let reply = |flags, seq, ack| {
                let packet = back().ipv6(SERVER, OUTSIDE).tcp(80, outside);
                packet.flags(flags).seq(seq).ack(ack).window(1000).build()
            };
            assert_eq!(marks(&mut lab, 1, &[reply(SYN | ACK, 500, 101)]), [established], "{port}");
            let ack = tcp(true, port, ACK, 101, 501);
            assert_eq!(marks(&mut lab, 0, &vec![ack; 5]), [established; 5], "{port}");
            assert_eq!(marks(&mut lab, 1, &vec![reply(ACK, 501, 101); 5]), [established; 5]);
            let known = {
                let packet = there().ipv6(OUTSIDE, SERVER).tcp(outside, 80);
                packet.flags(ACK).seq(101).ack(501).window(1000).build()
            };
            let error = error(HOP, &known, Icmp6Repr::hop_limit_exceeded());
            assert_eq!(marks(&mut lab, 1, &[error]), [related], "{port}");
        }
        lab.close();
    }
}

/// A packet of no connection yet has its own tuple; with `force`, it opens the other way round.
#[test]
fn new_packets_have_their_own_tuple() {
    for workers in WORKERS {
        let mut lab = attached(
            workers,
            "table=0,priority=40000,ip,nw_tos=4,actions=ct(commit,force)
             table=0,ip,ct_state=-trk,actions=ct(table=0)
             table=0,ip,ct_state=+new,ct_nw_proto=17,ct_tp_dst=53/0xfffe,actions=mod_nw_ttl:50,normal
             table=0,ip,ct_state=+new,ct_nw_src=48.0.0.0/8,actions=mod_nw_ttl:49,normal
             table=0,ip,ct_state=+new,ct_nw_proto=47,ct_tp_src=0,ct_nw_src=16.0.0.1,\
                actions=ct(commit,table=1),mod_nw_ttl:48,normal
             table=1,ip,ct_state=+new,ct_nw_src=16.0.0.1,ct_nw_dst=48.0.0.1,actions=output:port1
             table=0,ip,ct_state=+est,ct_nw_src=16.0.0.1,actions=mod_nw_ttl:47,normal
             table=0,ip,ct_state=+est,ct_nw_src=48.0.0.1,actions=mod_nw_ttl:46,normal",
        );
        let (a, b): (Ipv4Addr, Ipv4Addr) = ([16, 0, 0, 1].into(), [48, 0, 0, 1].into());
        let udp = |to: u16| there().ipv4(a, b).udp(7, to).build();
        let mixed: Vec<_> = (0..3).flat_map(|_| (51..55).map(udp)).collect();
        assert_eq!(marks(&mut lab, 0, &mixed), [50; 6]);
        assert_eq!(marks(&mut lab, 1, &[back().ipv4(b, a).udp(7, 9).build()]), [49]);
        let gre = |out: bool, tos: u8| match out {
            true => there().ipv4(a, b).tos(tos).protocol(47).payload(&[0; 8]).build(),
            false => back().ipv4(b, a).tos(tos).protocol(47).payload(&[0; 8]).build(),
        };
        // Committed, and seen as such in the next table; the rest of the rule has its own copy.
        assert_eq!(marks(&mut lab, 0, &[gre(true, 0)]), [48, 64]);
        assert_eq!(marks(&mut lab, 1, &[gre(false, 0)]), [47]);
        assert_eq!(marks(&mut lab, 0, &[gre(true, 0)]), [47]);
        assert!(marks(&mut lab, 1, &[gre(false, 4)]).is_empty());
        assert_eq!(marks(&mut lab, 1, &[gre(false, 0)]), [49], "new, the other way round");
        assert_eq!(marks(&mut lab, 0, &[gre(true, 0)]), [46]);
        assert_eq!(marks(&mut lab, 1, &[gre(false, 0)]), [46]);
        lab.close();
    }
}

/// Each zone has its own original direction, and nothing is left of one behind `ct_clear` or an
/// invalid state.
#[test]
fn zones_have_their_own() {
    for workers in WORKERS {
        let mut lab = attached(
            workers,
            "table=0,udp6,actions=ct(zone=1,table=1)
             table=1,udp6,ct_state=+new,in_port=port0,actions=ct(commit,zone=1),normal
             table=1,udp6,ct_state=+est-rpl,actions=normal
             table=1,udp6,ct_state=+est+rpl,ct_ipv6_src=2001:db8:1::1,actions=ct(zone=2,table=2)
             table=2,priority=1,udp6,ct_state=+new,ct_ipv6_src=2001:db8:2::1,ct_tp_src=53,\
                ct_nw_proto=17,actions=ct_clear,resubmit(,3)
             table=3,priority=2,ct_state=-inv+trk,ct_nw_proto=17,actions=drop
             table=3,priority=1,udp6,actions=mod_nw_ttl:50,normal",
        );
        let ask = there().ipv6(CLIENT, SERVER).udp(5000, 53).payload(b"abc").build();
        let answer = back().ipv6(SERVER, CLIENT).udp(53, 5000).payload(b"abc").build();
        assert_eq!(marks(&mut lab, 0, &[ask.clone(), ask]), [64, 64]);
        assert_eq!(marks(&mut lab, 1, &vec![answer; 4]), [50; 4]);
        lab.close();
    }
}

/// All fragments have the tuple of their datagram, whether it is committed or not.
#[test]
fn fragments_have_the_tuple_of_their_datagram() {
    for (workers, commit) in [(1, true), (1, false), (2, true), (2, false)] {
        let action =
            if commit { "ct(commit),mod_nw_ttl:50,normal" } else { "mod_nw_ttl:50,normal" };
        let mut lab = attached(
            workers,
            &format!(
                "ipv6,ct_state=-trk,actions=ct(table=0)
                 ipv6,ct_state=+new,ct_nw_proto=17,ct_tp_dst=53,ct_ipv6_dst=2001:db8:2::1,actions={action}
                 ipv6,ct_state=+est,ct_tp_dst=53,ct_nw_proto=17,actions=mod_nw_ttl:49,normal"
            ),
        );
        let there = |to| there().ipv6(CLIENT, SERVER).udp(5000, to).payload_len(3000).build();
        let back = back().ipv6(SERVER, CLIENT).udp(53, 5000).payload_len(3000).build();
        for (n, order) in [[0, 1, 2], [2, 1, 0], [1, 0, 2]].into_iter().enumerate() {
            let n = n as u32 * 10;
            let in_order = |frames: &[Vec<u8>]| order.map(|i| frames[i].clone());
            assert!(marks(&mut lab, 0, &in_order(&cut(&there(54), 1400, n + 1))).is_empty());
            let want = if commit && n > 0 { 49 } else { 50 };
            assert_eq!(marks(&mut lab, 0, &in_order(&cut(&there(53), 1400, n + 2))), [want; 3]);
            let replies = marks(&mut lab, 1, &in_order(&cut(&back, 1400, n + 3)));
            assert_eq!(replies, vec![49; if commit { 3 } else { 0 }]);
        }
        lab.close();
    }
}

/// Fields that share their places with those of other packets: messages of neighbour discovery, and
/// ARP.
#[test]
fn neighbour_discovery_and_arp_have_no_tuple() {
    let mut lab = attached(
        1,
        "table=0,priority=9,ipv6,ct_state=-trk,actions=ct(table=0)
         table=0,priority=8,icmp6,icmp_type=135,nd_target=2001:db8:2::1,actions=mod_nw_ttl:50,normal
         table=0,priority=7,ipv6,ct_state=+trk-inv,ct_ipv6_src=2001:db8:2::1,actions=mod_nw_ttl:49,normal
         table=0,priority=6,ct_state=+trk-inv,ct_nw_proto=58,ct_tp_src=128,actions=mod_nw_ttl:48,normal
         table=0,priority=5,icmp6,ct_state=+inv,actions=mod_nw_ttl:47,normal
         table=0,priority=4,arp,arp_tha=00:00:00:00:00:07,actions=normal
         table=0,priority=3,vlan_tci=0x1000/0x1000,actions=pop_vlan,resubmit(,0)",
    );
    let solicitation = |target: std::net::Ipv6Addr| {
        let repr = Icmp6Repr { kind: 135, code: 0, rest: 0 };
        there().ipv6(CLIENT, SERVER).icmp6(repr).payload(&target.octets()).build()
    };
    let echo = there().ipv6(CLIENT, SERVER).icmp6_echo_request(7, 1).build();
    let from_server = back().ipv6(SERVER, CLIENT).icmp6_echo_request(7, 1).build();
    let behind = extended(&echo, 60, &[0, 0, 1, 4, 0, 0, 0, 0]);
    for (frame, want) in [
        (solicitation(SERVER), 50),
        (solicitation(CLIENT), 47),
        (echo.clone(), 48),
        (behind, 48),
        (from_server, 49),
    ] {
        assert_eq!(marks(&mut lab, 0, &vec![frame.clone(); 3]), [want; 3], "{frame:02x?}");
    }
    let [a, b] = [Ipv4Addr::new(16, 0, 0, 1), Ipv4Addr::new(48, 0, 0, 1)];
    let mut arp = thalweg_wire::build::Packet::arp_request(crate::lab::CLIENT_MAC, a, b).build();
    assert!(lab.pass(0, &[arp.clone()]).is_empty());
    arp[37] = 7;
    assert_eq!(lab.pass(0, &[arp.clone()]).len(), 1);
    // Fields behind two tags show once the outer one is gone.
    for tags in 1..3 {
        let tagged = (0..tags).fold(arp.clone(), |mut frame, _| {
            frame.splice(12..12, [0x81, 0, 0, 5]);
            frame
        });
        assert_eq!(lab.pass(0, &[tagged]).len(), 1, "{tags}");
    }
    lab.close();
}
