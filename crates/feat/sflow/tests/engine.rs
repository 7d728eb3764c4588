//! Tests from the tap to the collector, with the engine running.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use lab::{DELIVER, DROP, Flow, Lab, frames, frames_of, packet};
use std::time::{Duration, Instant};
use thalweg_device::{SwIfIndex, interface};
use thalweg_feat_sflow::state::report;
use thalweg_sflow::Interface;
use thalweg_wire::ethernet::MacAddr;

#[test]
fn at_one_in_one_every_packet_arrives_once_in_order_and_whole() {
    let mut lab = Lab::new(1);
    let sw_if = lab.interface();
    let mut collector = lab.collector();
    lab.cli("sflow agent-address 192.0.2.7");
    lab.cli("sflow sampling-rate 1");
    lab.cli("sflow enable loop0");
    // Portions fit the socket's buffer, however late we read.
    let (mut flows, mut portion, mut waiting) = (0usize, Vec::new(), 0);
    let sizes = (1..=20).chain([31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256]);
    for size in sizes {
        portion.extend(frames((flows + waiting) as u32, [size]));
        waiting += size;
        if waiting > 500 || size == 256 {
            lab.receive(0, sw_if, std::mem::take(&mut portion));
            flows += std::mem::take(&mut waiting);
            lab.flows(&mut collector, flows);
        }
    }
    for (i, flow) in collector.flows.iter().enumerate() {
        let n = i as u32 + 1;
        assert_eq!((flow.sequence, flow.pool, flow.drops, flow.rate), (n, n, 0, 1));
        assert_eq!((flow.source, flow.input), ((0, sw_if.0), Interface::Index(sw_if.get())));
        // The graph ends at once: they are for the router itself.
        assert_eq!((flow.output, flow.frame_length), (Interface::INTERNAL, 64));
        assert_eq!(flow.header, packet(i as u32, 60));
    }
    assert!(collector.agents.iter().all(|a| a == "192.0.2.7"));
    let sequences: Vec<u32> = (1..=collector.datagrams.len() as u32).collect();
    assert_eq!(collector.datagrams, sequences);
    assert_eq!(lab.count("sflow packets processed"), flows as u64);
    assert_eq!(lab.count("sflow packets sampled"), flows as u64);
    assert_eq!(lab.count("sflow packets dropped"), 0);
    assert_eq!(lab.marked(), flows as u64);
    let json = lab.json();
    assert_eq!(json["interfaces"][0]["pool"], flows);
    assert_eq!(json["interfaces"][0]["samples"], flows);
    assert_eq!(json["samples"]["taken"], flows);
    lab.until("all is shown as sent", |lab| lab.json()["samples"]["sent"] == flows);
    lab.until("the collector is shown", |lab| {
        lab.json()["collectors"][0]["datagrams"] == collector.datagrams.len()
    });
    assert_eq!(lab.json()["collectors"][0]["errors"], 0);
    lab.close();
}

#[test]
fn headers_and_lengths_of_chained_and_short_packets() {
    // Small buffers: 9000 bytes make a chain.
    let mut lab = Lab::with_buffers(1, 1024);
    let sw_if = lab.interface();
    let mut collector = lab.collector();
    lab.cli("sflow sampling-rate 1");
    lab.cli("sflow enable loop0");
    let lengths = [9000, 14, 60, 127, 128, 129, 255, 256, 257, 64, 1518];
    let mut expected = 0;
    for (asked, bytes) in [("128", 128), ("200", 224), ("4000", 256), ("1", 64)] {
        let text = lab.cli(&format!("sflow header-bytes {asked}"));
        assert_eq!(text.is_empty(), asked == bytes.to_string(), "{text}");
        // The header goes on in the next segment if the first has little of it.
        for first in [256, 200, 40, 1] {
            lab.first = first;
            let packets = (1..).zip(lengths).map(|(i, length)| packet(i, length)).collect();
            lab.receive(0, sw_if, vec![packets]);
            expected += lengths.len();
            lab.flows(&mut collector, expected);
            let last = &collector.flows[expected - lengths.len()..];
            for ((i, length), flow) in (1..).zip(lengths).zip(last) {
                assert_eq!(flow.frame_length as usize, length + 4);
                assert_eq!(flow.header, packet(i, length)[..length.min(bytes)], "{length}");
            }
        }
    }
    lab.close();
}

/// Headers and datagrams may be of any length, in any order: what fits is sent.
#[test]
fn headers_are_cut_to_what_datagrams_hold() {
    let mut lab = Lab::new(1);
    let sw_if = lab.interface();
    let mut collector = lab.collector();
    lab.cli("sflow enable loop0 rate 1");
    let mut expected = 0;
    for (command, cut, sent) in [
        ("sflow datagram-bytes 300", false, 128),
        ("sflow header-bytes 256", true, 172),
        ("sflow datagram-bytes 200", true, 72),
        ("sflow header-bytes 64", false, 64),
        ("sflow header-bytes 256", true, 72),
        ("sflow datagram-bytes 384", false, 256),
    ] {
        let text = lab.cli(command);
        assert_eq!(text.contains("are cut to"), cut, "{text}");
        lab.receive(0, sw_if, frames_of(300, 0, [3]));
        expected += 3;
        lab.flows(&mut collector, expected);
        assert!(
            collector.flows[expected - 3..].iter().all(|f| f.header.len() == sent),
            "{command}"
        );
    }
    lab.close();
}

/// Header size at which the service takes several times as long as a worker.
const LONG: &str = "sflow header-bytes 256";

#[test]
fn what_a_full_ring_loses_is_counted_and_told() {
    let mut lab = Lab::with_buffers(1, 2048);
    let sw_if = lab.interface();
    let mut collector = lab.collector();
    lab.cli("sflow enable loop0 rate 1");
    lab.cli(LONG);
    let packets = 256 * 256u64;
    let mut dropped = 0;
    // A burst of sixteen rings; should the service keep pace with it, there is another.
    for round in 1..=20 {
        lab.receive(0, sw_if, frames_of(256, 0, [256; 256]));
        dropped = lab.count("sflow packets dropped");
        let sampled = lab.count("sflow packets sampled");
        assert_eq!(sampled, round * packets);
        if dropped > 0 {
            break;
        }
    }
    assert!(dropped > 0, "no ring was ever full");
    let json = lab.json();
    assert_eq!(json["interfaces"][0]["drops"], dropped);
    let taken = json["interfaces"][0]["samples"].as_u64().unwrap();
    assert_eq!(taken + dropped, json["interfaces"][0]["pool"].as_u64().unwrap());
    lab.until("the ring is empty", |lab| lab.json()["samples"]["sent"] == taken);
    // The next sample reports them. The socket may have lost datagrams of the burst; it must have
    // room for this one.
    while collector.receive() {}
    lab.receive(0, sw_if, frames(7, [1]));
    lab.until("the last sample is here", |_| {
        collector.receive();
        collector.flows.last().is_some_and(|f| f.sequence as u64 == taken + 1)
    });
    let last = collector.flows.last().unwrap();
    assert_eq!(u64::from(last.drops), dropped);
    assert_eq!(u64::from(last.pool), taken + dropped + 1);
    lab.close();
}

/// Two workers with two interfaces each, whose frames come in turns: no interface loses samples
/// rather than another's, and the next sample of each interface reports the number.
#[test]
fn what_is_lost_is_shared_by_interfaces_and_told_by_each() {
    let mut lab = Lab::with_buffers(2, 2048);
    let ports = [lab.interface(), lab.interface()];
    let mut collector = lab.collector();
    lab.cli("sflow enable loop0 rate 1");
    lab.cli("sflow enable loop1 rate 1");
    lab.cli(LONG);
    let lost = |lab: &mut Lab| {
        let json = lab.json();
        [0, 1].map(|i| json["interfaces"][i]["drops"].as_u64().unwrap())
    };
    for _ in 0..20 {
        for worker in 0..2 {
            lab.receive_in_turns(worker, &ports, &frames_of(256, 0, [256; 128]));
        }
        if lost(&mut lab).iter().sum::<u64>() > 100_000 {
            break;
        }
    }
    let [a, b] = lost(&mut lab);
    let all = a + b;
    assert!(all > 0, "no ring was ever full");
    // Both have sent the same, so that half of the loss is fair.
    let share = a as f64 / all as f64;
    assert!((0.4..0.6).contains(&share), "{a} and {b} samples lost");
    let json = lab.json();
    let taken = json["samples"]["taken"].as_u64().unwrap();
    assert_eq!(lab.count("sflow packets dropped"), all);
    assert_eq!(taken + all, lab.count("sflow packets processed"));
    lab.until("the rings are empty", |lab| lab.json()["samples"]["sent"] == taken);
    while collector.receive() {}
    // One more by each worker, which reports its own losses.
    let last = 1 << 31;
    for (sw_if, lost) in ports.into_iter().zip([a, b]) {
        for worker in 0..2 {
            lab.receive(worker, sw_if, frames(last, [1]));
        }
        let of = |f: &&Flow| f.source == (0, sw_if.get()) && f.header[..4] == last.to_be_bytes();
        lab.until("both samples are here", |_| {
            collector.receive();
            collector.flows.iter().filter(of).count() == 2
        });
        let reported = collector.flows.iter().filter(of).map(|f| u64::from(f.drops)).max();
        assert_eq!(reported, Some(lost));
    }
    lab.close();
}

#[test]
fn two_workers_and_two_interfaces_keep_their_counts_apart() {
    let mut lab = Lab::new(2);
    let (a, b) = (lab.interface(), lab.interface());
    let mut collector = lab.collector();
    lab.cli("sflow enable loop0 1");
    lab.cli("sflow enable loop1 rate 5");
    lab.cli("sflow sampling-rate 3");
    let mut on_a = 0;
    for round in 0..10 {
        for worker in 0..2 {
            lab.receive(worker, a, frames(round, [17, 3]));
            lab.receive(worker, b, frames(round, [100, 150]));
            on_a += 20;
        }
        lab.until("all samples are here", |lab| {
            while collector.receive() {}
            lab.json()["samples"]["taken"] == collector.flows.len()
        });
    }
    let of =
        |sw_if: SwIfIndex| collector.flows.iter().filter(move |f| f.source == (0, sw_if.get()));
    assert_eq!(of(a).count(), on_a);
    assert_eq!(of(a).next_back().map(|f| f.pool), Some(400));
    // 5000 packets, one in five: the skip's variance makes this a range of six standard errors.
    let n = of(b).count();
    assert!((700..1300).contains(&n), "{n} samples of 5000 at 1:5");
    assert!(of(b).all(|f| f.rate == 5) && of(a).all(|f| f.rate == 1));
    for sw_if in [a, b] {
        let all: Vec<_> = of(sw_if).collect();
        assert!(all.iter().map(|f| f.sequence).eq(1..=all.len() as u32));
        assert!(all.windows(2).all(|w| w[0].pool < w[1].pool), "pools grow");
    }
    let json = lab.json();
    assert_eq!(json["interfaces"][0]["pool"], 400);
    assert_eq!(json["interfaces"][1]["pool"], 5000);
    assert_eq!(lab.count("sflow packets processed"), 5400);
    lab.close();
}

#[test]
fn rates_change_on_the_fly_and_disabling_ends_it() {
    let mut lab = Lab::new(1);
    let (a, b) = (lab.interface(), lab.interface());
    let mut collector = lab.collector();
    lab.cli("sflow enable-disable loop0");
    lab.cli("sflow enable-disable loop1 4000000000");
    let send = |lab: &mut Lab, n: usize| {
        lab.receive(0, a, frames(0, [n]));
        lab.receive(0, b, frames(0, [n]));
    };
    lab.cli("sflow sampling-rate 0");
    send(&mut lab, 200);
    lab.cli("sflow sampling-rate 1");
    send(&mut lab, 100);
    lab.flows(&mut collector, 100);
    // An own rate wins over the general one, and other interfaces do not notice.
    lab.cli("sflow enable loop1 rate 1");
    lab.cli("sflow sampling-rate 0");
    send(&mut lab, 50);
    lab.flows(&mut collector, 150);
    assert!(collector.flows[..100].iter().all(|f| f.source == (0, a.get())));
    assert!(collector.flows[100..].iter().all(|f| f.source == (0, b.get())));
    assert_eq!(collector.flows[0].pool, 201);
    assert_eq!(collector.flows[149].pool, 350);
    lab.cli("sflow enable loop1 disable");
    send(&mut lab, 10);
    // Enabled again, sequence numbers and the pool go on; what passed meanwhile is in neither.
    lab.cli("sflow enable loop1 rate 1");
    send(&mut lab, 1);
    lab.flows(&mut collector, 151);
    let last = collector.flows.last().unwrap();
    assert_eq!((last.sequence, last.pool), (51, 351));
    // The general rate, which is 0 by now, without a gap in what is counted.
    lab.cli("sflow enable loop1 rate default");
    send(&mut lab, 9);
    lab.cli("sflow enable loop1 1");
    send(&mut lab, 1);
    lab.flows(&mut collector, 152);
    let last = collector.flows.last().unwrap();
    assert_eq!((last.sequence, last.pool), (52, 361));
    lab.cli("sflow enable loop0 disable");
    lab.cli("sflow enable-disable loop1 1 disable");
    let processed = lab.count("sflow packets processed");
    send(&mut lab, 100);
    assert_eq!(lab.count("sflow packets processed"), processed);
    let json = lab.json();
    assert!(json["interfaces"].as_array().unwrap().is_empty());
    // Counts stay, also when the interfaces are gone.
    assert_eq!(json["samples"]["taken"], 152);
    for sw_if in [a, b] {
        interface::delete(&mut lab.c, sw_if).unwrap();
    }
    assert_eq!(lab.json()["samples"]["taken"], 152);
    lab.close();
}

/// Each change of the rate shows the next frame to the tap, though it may hold no sample.
#[test]
fn frames_shown_early_let_no_sample_pass() {
    const ROUNDS: u64 = 300;
    let mut lab = Lab::new(1);
    let sw_if = lab.interface();
    lab.cli("sflow enable loop0");
    for n in 0..ROUNDS {
        lab.cli(&format!("sflow sampling-rate {}", 1000 + n % 2));
        // The tap itself asserts that none was missed.
        lab.receive(0, sw_if, frames(0, [256; 8]));
    }
    let packets = ROUNDS * 8 * 256;
    lab.until("all are counted", |lab| lab.count("sflow packets processed") == packets);
    // One is due within 2,000 packets of each change.
    assert!(lab.count("sflow packets sampled") >= ROUNDS);
    lab.close();
}

#[test]
fn counters_are_polled() {
    let mut lab = Lab::new(2);
    let sw_if = lab.interface();
    lab.interface();
    let mut collector = lab.collector();
    interface::set_admin(&mut lab.c, sw_if, true).unwrap();
    lab.cli("sflow polling-interval 1");
    lab.receive(0, sw_if, frames(0, [30]));
    lab.receive(1, sw_if, frames(0, [12]));
    lab.cli("sflow enable loop0");
    lab.until("counters come twice", |_| {
        collector.receive();
        collector.counters.len() >= 2
    });
    for (i, counters) in collector.counters.iter().enumerate() {
        assert_eq!(counters.sequence, i as u32 + 1);
        assert_eq!((counters.source, counters.name.as_str()), ((0, sw_if.0), "loop0"));
        let c = &counters.interface;
        assert_eq!((c.index, c.network_type, c.speed), (sw_if.0, 24, 1_000_000_000));
        assert_eq!((c.status, c.direction), (3, 1));
        assert_eq!((c.in_octets, c.in_unicast), (42 * 60, 42));
    }
    lab.until("they are shown", |lab| lab.json()["counter_samples"]["sent"].as_u64().unwrap() >= 2);
    lab.close();
}

/// Counter samples describe the interface as it is when they are sent.
#[test]
fn counters_follow_the_interface() {
    let mut lab = Lab::new(1);
    let sw_if = lab.interface();
    let mut collector = lab.collector();
    lab.cli("sflow polling-interval 1");
    lab.cli("sflow enable loop0");
    let mut next = |lab: &mut Lab, what: &str, want: (u32, u32)| {
        lab.until(what, |_| {
            collector.receive();
            let last = collector.counters.last();
            last.is_some_and(|c| (c.interface.status, c.interface.promiscuous) == want)
        });
    };
    next(&mut lab, "down", (0, 0));
    for on in [true, false, true] {
        interface::set_promiscuous(&mut lab.c, sw_if, on).unwrap();
        next(&mut lab, "promiscuous mode", (0, on.into()));
    }
    interface::set_admin(&mut lab.c, sw_if, true).unwrap();
    next(&mut lab, "up", (3, 1));
    lab.close();
}

#[test]
fn a_deleted_interface_is_forgotten_and_its_heir_starts_clean() {
    let mut lab = Lab::new(1);
    let sw_if = lab.interface();
    let mut collector = lab.collector();
    lab.cli("sflow polling-interval 1");
    lab.cli("sflow enable loop0 rate 1");
    lab.receive(0, sw_if, frames(0, [70]));
    lab.flows(&mut collector, 70);
    interface::delete(&mut lab.c, sw_if).unwrap();
    assert!(lab.json()["interfaces"].as_array().unwrap().is_empty());
    assert_eq!(lab.interface(), sw_if, "the number is taken again");
    assert!(!lab.cli("show sflow").contains("loop0"));
    collector.counters.clear();
    lab.cli("sflow enable loop0 rate 1");
    lab.receive(0, sw_if, frames(0, [5]));
    lab.flows(&mut collector, 75);
    let first = &collector.flows[70];
    assert_eq!((first.sequence, first.pool, first.drops), (1, 1, 0));
    assert_eq!(lab.json()["interfaces"][0]["pool"], 5);
    lab.until("its counters come", |_| {
        collector.receive();
        !collector.counters.is_empty()
    });
    let counters = &collector.counters[0];
    assert_eq!((counters.sequence, counters.interface.in_unicast), (1, 5));
    lab.close();
}

#[test]
fn collectors_come_and_go_and_none_disturbs_another() {
    let mut lab = Lab::new(1);
    let sw_if = lab.interface();
    lab.cli("sflow enable loop0 rate 1");
    // Nothing wants these: they are counted.
    lab.receive(0, sw_if, frames(0, [9]));
    lab.until("they are counted", |lab| lab.json()["samples"]["without_collector"] == 9);
    // An address at which no other test listens.
    lab.cli("sflow collector add 127.0.0.2 port 9");
    let mut first = lab.collector();
    lab.receive(0, sw_if, frames(0, [20]));
    lab.flows(&mut first, 20);
    assert_eq!(first.flows[0].sequence, 1);
    assert_eq!(first.flows[0].pool, 10);
    let mut second = lab.collector();
    lab.receive(0, sw_if, frames(0, [20]));
    lab.flows(&mut first, 40);
    lab.flows(&mut second, 20);
    assert_eq!(second.flows[0], first.flows[20]);
    lab.cli(&format!("sflow collector del 127.0.0.1 port {}", first.addr.port()));
    lab.receive(0, sw_if, frames(0, [20]));
    lab.flows(&mut second, 40);
    assert!(second.flows.iter().map(|f| f.sequence).eq(21..=60));
    let sequences = &second.datagrams;
    assert!(sequences.windows(2).all(|w| w[1] == w[0] + 1), "{sequences:?}");
    // Another name is another agent.
    lab.cli("sflow agent-address 198.51.100.1");
    lab.receive(0, sw_if, frames(0, [1]));
    lab.flows(&mut second, 41);
    assert_eq!(second.datagrams.last(), Some(&1));
    assert_eq!(second.agents.last().map(String::as_str), Some("198.51.100.1"));
    // Numbering goes on under the name that it had before.
    let number = second.datagrams[second.datagrams.len() - 2];
    lab.cli("sflow agent-address auto");
    lab.receive(0, sw_if, frames(0, [1]));
    lab.flows(&mut second, 42);
    assert_eq!(second.datagrams.last(), Some(&(number + 1)));
    assert_eq!(second.flows.last().map(|f| f.sequence), Some(61));
    assert!(!first.receive() && first.flows.len() == 40);
    let json = lab.json();
    assert_eq!(json["collectors"].as_array().unwrap().len(), 2);
    assert!(json["collectors"][0]["errors"].as_u64().unwrap() > 0, "{json:#}");
    assert_eq!(json["collectors"][1]["errors"], 0);
    lab.close();
}

/// Sets the interface up, as its packets must leave.
fn bring_up(lab: &mut Lab, sw_if: SwIfIndex) {
    interface::set_admin(&mut lab.c, sw_if, true).expect("it can be up");
    lab.c.sync();
}

#[test]
fn samples_know_where_their_packets_went() {
    let mut lab = Lab::new(1);
    let (a, b) = (lab.interface(), lab.interface());
    bring_up(&mut lab, b);
    let mut collector = lab.collector();
    lab.cli("sflow enable loop0 rate 1");
    let out = lab.out_by("loop1");
    // The feature has reasons of its own, which come when samples are taken already.
    lab.interface();
    let down = lab.out_by("loop2");
    let mut tagged = packet(1, 100);
    tagged[12..16].copy_from_slice(&[0x81, 0, 0x20, 7]);
    for (way, output) in [
        (DELIVER, Interface::INTERNAL),
        (DROP, Interface::Discarded(269)),
        (down, Interface::Discarded(331)),
        (out, Interface::Index(b.get())),
    ] {
        let before = collector.flows.len();
        lab.packets_go(way);
        let mut packets = frames(0, [256, 3]);
        packets.push(vec![tagged.clone()]);
        lab.receive(0, a, packets);
        lab.flows(&mut collector, before + 260);
        for flow in &collector.flows[before..] {
            assert_eq!((flow.input, flow.output), (Interface::Index(a.get()), output));
        }
        let vlans = collector.flows.last().unwrap().vlans;
        let after = if way == out { 7 } else { u32::MAX };
        assert_eq!(vlans, Some((7, after)));
        assert_eq!(collector.flows[before].vlans, None);
    }
    lab.close();
}

/// An adapter of the host's has the number that its interface has in all other samples.
#[test]
fn the_hosts_adapters_are_the_routers_interfaces() {
    let mut lab = Lab::new(1);
    let (_, b) = (lab.interface(), lab.interface());
    bring_up(&mut lab, b);
    let mut collector = lab.collector();
    lab.cli("sflow host-interval 1");
    lab.cli("sflow enable loop0");
    lab.until("they are reported", |_| {
        collector.receive();
        !collector.adapters.is_empty()
    });
    let mac = interface::view(&lab.c, b).expect("an interface").mac;
    assert_eq!(collector.adapters, [(b.0, vec![MacAddr(mac.0)])]);
    lab.close();
}

#[test]
fn another_worker_tells_where_packets_went() {
    let mut lab = Lab::new(2);
    let (a, b) = (lab.interface(), lab.interface());
    bring_up(&mut lab, b);
    let mut collector = lab.collector();
    lab.cli("sflow enable loop0 rate 1");
    let out = lab.out_by("loop1");
    let mut all = 0;
    for (worker, owner) in [(0, 1), (1, 0), (0, 0)] {
        lab.owned_by(Some(owner));
        for (way, output) in [
            (DELIVER, Interface::INTERNAL),
            (DROP, Interface::Discarded(269)),
            (out, Interface::Index(b.get())),
        ] {
            lab.packets_go(way);
            lab.receive(worker, a, frames(0, [256, 3]));
            lab.flows(&mut collector, all + 259);
            for flow in &collector.flows[all..] {
                assert_eq!((flow.input, flow.output), (Interface::Index(a.get()), output));
            }
            all += 259;
        }
    }
    let flows = &collector.flows;
    assert!(flows.iter().map(|f| f.sequence).eq(1..=all as u32));
    assert!(flows.windows(2).all(|w| w[0].pool <= w[1].pool), "pools grow");
    assert_eq!(flows.last().map(|f| f.pool), Some(all as u32));
    lab.close();
}

#[test]
fn sent_packets_are_sampled_and_directions_change_without_a_gap() {
    let mut lab = Lab::new(1);
    let (a, b) = (lab.interface(), lab.interface());
    bring_up(&mut lab, b);
    let mut collector = lab.collector();
    lab.cli("sflow direction tx");
    lab.cli("sflow sampling-rate 1");
    lab.cli("sflow enable loop0");
    lab.cli("sflow enable loop1");
    let out = lab.out_by("loop1");
    lab.packets_go(out);
    let (mut all, mut pool) = (0, 0);
    for (direction, rx, tx) in
        [("tx", false, true), ("both", true, true), ("rx", true, false), ("both", true, true)]
    {
        lab.cli(&format!("sflow direction {direction}"));
        let before = collector.flows.len();
        lab.receive(0, a, frames(0, [20, 256]));
        all += 276 * (usize::from(rx) + usize::from(tx));
        lab.flows(&mut collector, all);
        let of = |sw_if: SwIfIndex| {
            let new = collector.flows[before..].iter();
            new.filter(move |f| f.source == (0, sw_if.get())).collect::<Vec<_>>()
        };
        assert_eq!(of(a).len(), 276 * usize::from(rx), "{direction}");
        assert_eq!(of(b).len(), 276 * usize::from(tx), "{direction}");
        for flow in &collector.flows[before..] {
            assert_eq!(
                (flow.input, flow.output),
                (Interface::Index(a.get()), Interface::Index(b.get()))
            );
        }
        pool += 276 * u32::from(tx);
        assert!(of(b).last().is_none_or(|f| f.pool == pool));
        assert!(lab.cli("show sflow").contains(&format!("sflow direction {direction}\n")));
    }
    assert_eq!(lab.json()["interfaces"][0]["pool"], 3 * 276);
    assert_eq!(lab.json()["interfaces"][1]["pool"], 3 * 276);
    assert_eq!(lab.count("sflow packets processed"), 6 * 276);
    // An interface that is off costs nothing and says nothing.
    lab.cli("sflow enable loop1 disable");
    lab.receive(0, a, frames(0, [10]));
    lab.flows(&mut collector, all + 10);
    lab.close();
}

#[test]
fn dropped_packets_are_told_of_and_floods_are_counted() {
    let mut lab = Lab::new(1);
    let (a, b) = (lab.interface(), lab.interface());
    let mut collector = lab.collector();
    lab.cli("sflow drop-monitoring enable limit 1000000");
    lab.cli("sflow sampling-rate 0");
    lab.cli("sflow enable loop0");
    lab.packets_go(DROP);
    lab.receive(0, a, frames(0, [9]));
    // No reports come from an interface without sFlow.
    lab.receive(0, b, frames(0, [9]));
    lab.until("they are here", |_| {
        collector.receive();
        collector.discards.len() >= 9
    });
    assert!(collector.flows.is_empty());
    for (i, discard) in (0..).zip(&collector.discards) {
        assert_eq!((discard.sequence, discard.drops), (i + 1, 0));
        assert_eq!((discard.input, discard.reason), (a.0, 269));
        let (group, trap) = (&*discard.trap.0, &*discard.trap.1);
        assert_eq!((group, trap), ("vpp_ethernet-input", "vpp_the_test_drops_it"));
        assert_eq!((discard.frame_length, &discard.header), (60, &packet(i, 60)));
    }
    lab.until("they are shown", |lab| lab.json()["drop_samples"]["sent"] == 9);
    assert_eq!(lab.count("sflow discards processed"), 9);
    // A flood: a limited number per second, and the rest is counted.
    lab.cli("sflow drop-monitoring enable limit 1");
    lab.receive(0, a, frames(0, [256; 20]));
    let start = Instant::now();
    // Do not wait for the next reported drop.
    lab.until("those that are not reported are shown", |lab| {
        let samples = lab.json()["drop_samples"].clone();
        samples["sent"].as_u64().zip(samples["dropped"].as_u64()).is_some_and(|(sent, dropped)| {
            (9..=11).contains(&sent) && sent + dropped == 9 + 20 * 256
        })
    });
    lab.until("a new second begins", |_| start.elapsed() > Duration::from_millis(1010));
    lab.receive(0, a, frames(0, [1]));
    lab.until("it is reported", |_| {
        collector.receive();
        collector.discards.last().is_some_and(|d| d.drops > 0)
    });
    let last = collector.discards.last().unwrap();
    assert_eq!(last.drops as usize, 20 * 256 + 1 - (collector.discards.len() - 9));
    lab.cli("sflow drop-monitoring disable");
    let processed = lab.count("sflow discards processed");
    lab.receive(0, a, frames(0, [30]));
    assert_eq!(lab.count("sflow discards processed"), processed);
    lab.close();
}

/// A dropped GSO packet is reported as its segments.
#[test]
fn dropped_super_packets_are_told_of_as_on_the_wire() {
    let mut lab = Lab::new(1);
    let a = lab.interface();
    let mut collector = lab.collector();
    lab.cli("sflow drop-monitoring enable limit 1000000");
    lab.cli("sflow sampling-rate 0");
    lab.cli("sflow enable loop0");
    lab.packets_go(DROP);
    lab.gso = 100;
    let mut tcp = vec![2; 12];
    tcp.extend([0x08, 0, 0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1]);
    tcp.extend([0, 80, 0, 81, 0, 0, 0, 100, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    tcp.extend((0..250).map(|i| (i / 10) as u8));
    lab.receive(0, a, vec![vec![tcp.clone(), tcp.clone()]]);
    lab.until("they are here", |_| {
        collector.receive();
        collector.discards.len() >= 6
    });
    let lengths = collector.discards.iter().map(|d| (d.frame_length - 54, d.header[41]));
    assert_eq!(lengths.collect::<Vec<_>>(), [(100, 100), (100, 200), (50, 44)].repeat(2));
    assert_eq!(lab.count("sflow discards processed"), 6);
    lab.close();
}

/// Drops are reported without a sampling rate, as soon as that is wanted, and no more of an
/// interface whose sFlow ends.
#[test]
fn drop_monitoring_begins_alone_and_ends_with_the_interface() {
    let mut lab = Lab::new(1);
    let (a, b) = (lab.interface(), lab.interface());
    let mut collector = lab.collector();
    lab.cli("sflow sampling-rate 0");
    lab.cli("sflow enable loop0");
    lab.cli("sflow enable loop1");
    lab.packets_go(DROP);
    lab.receive(0, a, frames(0, [4]));
    assert_eq!(lab.count("sflow discards processed"), 0);
    lab.cli("sflow drop-monitoring enable limit 1000000");
    lab.receive(0, a, frames(0, [5]));
    lab.cli("sflow enable loop0 disable");
    lab.receive(0, a, frames(0, [7]));
    lab.receive(0, b, frames(0, [3]));
    assert_eq!(lab.count("sflow discards processed"), 8);
    lab.until("they are here", |_| {
        collector.receive();
        collector.discards.len() >= 8
    });
    let inputs: Vec<_> = collector.discards.iter().map(|d| d.input).collect();
    assert_eq!(inputs, [[a.0; 5].as_slice(), &[b.0; 3]].concat());
    lab.close();
}

#[test]
fn what_was_taken_is_sent_when_the_router_stops() {
    let mut lab = Lab::new(1);
    let sw_if = lab.interface();
    let mut collector = lab.collector();
    lab.cli("sflow enable loop0 rate 1");
    lab.receive(0, sw_if, frames(0, [123]));
    lab.close();
    while collector.receive() {}
    assert_eq!(collector.flows.len(), 123);
}

#[test]
fn without_interfaces_the_service_rests() {
    let mut lab = Lab::new(1);
    lab.interface();
    lab.cli("sflow collector add 127.0.0.2 port 9");
    let wakeups = |lab: &Lab| report(&lab.c).service.map(|s| s.wakeups).expect("a service");
    lab.until("the order is obeyed", |lab| wakeups(lab) > 0);
    let (before, start) = (wakeups(&lab), Instant::now());
    lab.until("time has passed", |_| start.elapsed() > Duration::from_millis(150));
    // The creation of the interface may be seen late, but there is no beat.
    assert!(wakeups(&lab) - before <= 2);
    lab.cli("sflow enable loop0");
    lab.until("it looks for samples", |lab| wakeups(lab) > before + 5);
    lab.close();
}
