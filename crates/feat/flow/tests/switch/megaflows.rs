//! Packets that hit the megaflow cache have the same outputs and counters as those that take each
//! step of their rules, as traced packets do.

use super::lab::{CLIENT_MAC, Lab, SERVER_MAC};
use super::{CLIENT, SERVER};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use thalweg_wire::build::Packet;
use thalweg_wire::tcp::flag::{ACK, FIN, RST, SYN};

fn pick(all: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(all)
}

/// A rule, possibly an invalid one.
fn rule() -> impl Strategy<Value = String> {
    let matches = pick(&[
        "",
        "arp",
        "ip",
        "ip",
        "tcp",
        "tcp",
        "udp",
        "icmp",
        "tcp,tp_dst=80",
        "tcp,tp_src=80",
        "tcp,tp_dst=1001",
        "tcp,nw_src=16.0.0.0/8",
        "ip,nw_src=48.0.0.1",
        "tcp,tcp_flags=+syn-ack",
    ]);
    let port = pick(&["", "", "", ",in_port=port0", ",in_port=port1"]);
    let state = pick(&[
        "",
        "",
        ",ct_state=-trk",
        ",ct_state=-trk",
        ",ct_state=+trk",
        ",ct_state=+trk+new",
        ",ct_state=+trk+est",
        ",ct_state=+est-rpl",
        ",ct_state=+trk+inv",
        ",ct_state=+trk,ct_mark=7",
        ",ct_state=+trk,ct_zone=5",
        ",ct_state=+trk,ct_label=3",
        ",ct_state=+trk+est,ct_nw_proto=6,ct_tp_dst=80",
        ",ct_state=+new,ct_nw_proto=17",
        ",ct_state=+trk-inv,ct_nw_src=16.0.0.0/8",
    ]);
    let actions = pick(&[
        "normal",
        "normal",
        "drop",
        "output:port0",
        "in_port",
        "ct(table=0)",
        "ct(table=1)",
        "ct(table=1)",
        "ct(zone=5,table=1)",
        "ct(commit),normal",
        "ct(commit),normal",
        "ct(commit)",
        "ct(commit,zone=5),normal",
        "ct(commit,force),normal",
        "resubmit(,1)",
        "mod_nw_ttl:9,normal",
        "ct(commit,exec(set_field:7->ct_mark)),output:port1",
        "ct(commit),ct(table=1)",
        "ct(commit,exec(set_field:3->ct_label)),normal",
        "ct(table=1),normal",
        "normal,output:port0",
    ]);
    (0u8..3, 0u8..4, matches, port, state, actions).prop_map(
        |(table, priority, matches, port, state, actions)| {
            format!("table={table},priority={priority},{matches}{port}{state},actions={actions}")
        },
    )
}

/// Realistic rules, so that most paths have two tables.
fn rules() -> impl Strategy<Value = Vec<String>> {
    let usual = [
        "table=0,priority=4,ip,ct_state=-trk,actions=ct(table=1)",
        "table=1,priority=3,ip,ct_state=+trk+new,in_port=port0,actions=ct(commit),normal",
        "table=1,priority=3,ip,ct_state=+trk+est,actions=normal",
    ];
    let usual: Vec<String> = usual.iter().map(|rule| rule.to_string()).collect();
    let begin = prop_oneof![2 => Just(usual), 1 => Just(Vec::new())];
    (begin, prop::collection::vec(rule(), 1..16)).prop_map(|(mut all, more)| {
        all.extend(more);
        all
    })
}

/// A packet of one of a few connections, and the port it is received on.
fn packet() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let flags = prop::sample::select(vec![SYN, SYN | ACK, ACK, ACK, ACK, FIN | ACK, RST, 0]);
    (0u8..8, 0u16..4, any::<bool>(), flags, 0usize..3).prop_map(|(kind, n, there, flags, data)| {
        let (port, macs, ends) = match there {
            true => (0, (CLIENT_MAC, SERVER_MAC), (CLIENT, SERVER)),
            false => (1, (SERVER_MAC, CLIENT_MAC), (SERVER, CLIENT)),
        };
        let ports = if there { (1000 + n, 80) } else { (80, 1000 + n) };
        let p = Packet::new().ether(macs.0, macs.1);
        let frame = match kind {
            0 => Packet::arp_request(macs.0, ends.0, ends.1).build(),
            1 => p.ipv4(ends.0, ends.1).udp(ports.0, ports.1).build(),
            2 => p.ipv4(ends.0, ends.1).icmp_echo_request(n, 1).build(),
            _ => {
                let (seq, ack) = if there { (100, 500) } else { (500, 100) };
                let opens = flags & SYN != 0;
                let seq = if opens { seq - 1 } else { seq };
                let ack = if flags & ACK == 0 { 0 } else { ack };
                let p = p.ipv4(ends.0, ends.1).tcp(ports.0, ports.1).flags(flags);
                let data = if opens { 0 } else { data };
                p.seq(seq).ack(ack).window(1000).payload(&b"abc"[..data]).build()
            }
        };
        (port, frame)
    })
}

/// Rules with their counters, and connections.
fn accounts(lab: &mut Lab) -> (Vec<String>, Vec<String>) {
    let dump = lab.cli("flow dump 9");
    let rule = |line: &str| {
        let (head, rest) = line.split_once("duration=").expect("a rule");
        format!("{head}{}", rest.split_once(',').expect("more").1)
    };
    let rules = dump.lines().map(rule).collect();
    let mut connections: Vec<String> =
        lab.cli("show conntrack").lines().map(str::to_owned).collect();
    connections.sort();
    (rules, connections)
}

fn clear(lab: &mut Lab) {
    lab.cli("clear trace");
    lab.cli("clear conntrack");
    lab.cli("flow del 9");
}

#[test]
fn megaflows_agree_with_steps() {
    let labs = RefCell::new([Lab::new(1, 4096), Lab::new(1, 4096)]);
    for lab in labs.borrow_mut().iter_mut() {
        // Labels are in use from the start, so that connections with one do not wait for memory.
        lab.ok("flow add 9 ip,actions=ct(commit,exec(set_field:1->ct_label)),normal
             set interface flow port0 9
             set interface flow port1 9");
    }
    let batches = prop::collection::vec((0usize..2, prop::collection::vec(packet(), 1..40)), 1..6);
    let mut runner = TestRunner::new(Config { cases: 160, ..Config::default() });
    runner
        .run(&(rules(), batches), |(rules, batches)| {
            let mut labs = labs.borrow_mut();
            for (n, lab) in labs.iter_mut().enumerate() {
                clear(lab);
                for rule in &rules {
                    lab.cli(&format!("flow add 9 {rule}"));
                }
                if n == 1 {
                    lab.cli("trace add load-input 1000");
                }
            }
            for (port, packets) in &batches {
                let frames: Vec<Vec<u8>> =
                    packets.iter().filter(|p| p.0 == *port).map(|p| p.1.clone()).collect();
                if frames.is_empty() {
                    continue;
                }
                let [ways, steps] = &mut *labs;
                let [ways, steps] = [ways, steps].map(|lab| {
                    let mut seen = lab.pass(*port, &frames);
                    seen.sort();
                    seen
                });
                prop_assert_eq!(ways, steps);
            }
            let [ways, steps] = &mut *labs;
            prop_assert_eq!(accounts(ways), accounts(steps));
            Ok(())
        })
        .unwrap();
    for lab in labs.into_inner() {
        lab.close();
    }
}
