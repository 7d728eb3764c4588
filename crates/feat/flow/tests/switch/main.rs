//! Rules in the real graph, with clients and a server at its ports.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod actions;
mod attacks;
mod fragments;
mod ipv6;
mod lab;
mod megaflows;
mod nat;
mod originals;

use lab::{CLIENT_MAC, Lab, SERVER_MAC};
use std::net::Ipv4Addr;
use std::time::Duration;
use thalweg_load::Profile;
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::IcmpRepr;
use thalweg_wire::tcp::flag::{ACK, SYN};

/// Rules in a file of ovs-ofctl.
const FOUR_RULES: &str = "\
# stateful switching
priority=2,arp,actions=normal
priority=1 ip ct_state=-trk actions=ct(table=0)
priority=1,ip,ct_state=+trk+new,in_port=port0,actions=ct(commit),normal
priority=1,ip,ct_state=+trk+est,actions=normal

priority=0,actions=drop
";

const CLIENT: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(48, 0, 0, 1);

fn guarded(workers: usize) -> Lab {
    guard(Lab::new(workers, 8192))
}

/// Applies the four rules at both ports.
fn guard(mut lab: Lab) -> Lab {
    let file = tempfile();
    std::fs::write(&file, FOUR_RULES).unwrap();
    lab.ok(&format!("flow add 1 file {}", file.display()));
    std::fs::remove_file(&file).unwrap();
    lab.ok("set interface flow port0 1\nset interface flow port1 1");
    lab
}

fn tempfile() -> std::path::PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    std::env::temp_dir().join(format!("thalweg-flow-{}-{n}.txt", std::process::id()))
}

fn profile() -> Profile {
    Profile {
        client: CLIENT,
        clients: 4,
        ports: (1024, 5000),
        server: (SERVER, 80),
        concurrent: 100,
        ..Profile::default()
    }
}

fn tcp(there: bool, flags: u8, seq: u32, ack: u32) -> Vec<u8> {
    let packet = Packet::new();
    let packet = match there {
        true => packet.ether(CLIENT_MAC, SERVER_MAC).ipv4(CLIENT, SERVER).tcp(5000, 80),
        false => packet.ether(SERVER_MAC, CLIENT_MAC).ipv4(SERVER, CLIENT).tcp(80, 5000),
    };
    packet.flags(flags).seq(seq).ack(ack).window(1000).build()
}

/// Packets matched by a rule, found by a word in it.
fn taken(lab: &mut Lab, word: &str) -> u64 {
    let text = lab.cli("flow dump 1");
    let line = text.lines().find(|line| line.contains(word)).expect("the rule");
    let (_, rest) = line.split_once("n_packets=").expect("a count");
    rest[..rest.find(',').expect("more")].parse().expect("a number")
}

#[test]
fn the_four_rules_let_one_side_open() {
    let mut lab = guarded(1);
    let (left, right) = (lab.ports[0], lab.ports[1]);
    assert!(lab.pass(1, &[tcp(false, SYN, 9, 0)]).is_empty(), "opened from the wrong side");
    let syn = tcp(true, SYN, 100, 0);
    assert_eq!(lab.pass(0, std::slice::from_ref(&syn)), [(right, syn)]);
    let answer = tcp(false, SYN | ACK, 500, 101);
    assert_eq!(lab.pass(1, std::slice::from_ref(&answer)), [(left, answer)]);
    let ack = tcp(true, ACK, 101, 501);
    assert_eq!(lab.pass(0, std::slice::from_ref(&ack)), [(right, ack)]);
    assert!(lab.pass(1, &[tcp(false, ACK, 999_999, 101)]).len() == 1, "no data, no window");
    let far = Packet::new().ether(SERVER_MAC, CLIENT_MAC).ipv4(SERVER, CLIENT).tcp(80, 5000);
    let far = far.flags(ACK).seq(900_000).ack(101).window(1000).payload(b"abc").build();
    assert!(lab.pass(1, &[far]).is_empty(), "out of the window");
    let arp = Packet::arp_request(CLIENT_MAC, CLIENT, SERVER).build();
    assert_eq!(lab.pass(0, std::slice::from_ref(&arp)), [(right, arp)]);
    let shown = lab.cli("show conntrack");
    assert_eq!(
        shown,
        "tcp,orig=(src=16.0.0.1,dst=48.0.0.1,sport=5000,dport=80),\
         reply=(src=48.0.0.1,dst=16.0.0.1,sport=80,dport=5000),protoinfo=(state=ESTABLISHED)\n"
    );
    let listed: serde_json::Value = lab.cli("show conntrack | json").parse().expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!((&listed[0]["state"], &listed[0]["protocol"]), (&"ESTABLISHED".into(), &6.into()));
    assert_eq!(listed[0]["orig"]["dst"], SERVER.to_string());
    assert_eq!(taken(&mut lab, "ct(commit),normal"), 1);
    assert_eq!((taken(&mut lab, "+trk+est"), taken(&mut lab, "arp")), (3, 1));
    assert_eq!((taken(&mut lab, "-trk"), taken(&mut lab, "actions=drop")), (6, 2));
    let summary = lab.cli("show conntrack summary");
    assert!(summary.contains("Total: 1\n  TCP: 1\n"), "{summary}");
    let far = summary.lines().find(|line| line.contains("out of window")).expect("a count");
    assert!(far.ends_with(" 1"), "{summary}");
    assert_eq!(lab.cli("clear conntrack ct_nw_src=9.9.9.9"), "0 connections flushed\n");
    assert_eq!(lab.cli("clear conntrack zone=0"), "1 connection flushed\n");
    assert_eq!(lab.cli("show conntrack"), "");
    assert_eq!(lab.cli("show conntrack | json"), "[]\n");
    lab.close();
}

/// A worker without a processor for longer than commands wait for one still tracks.
#[test]
fn a_silent_worker_gets_its_tracker() {
    let lab = Lab::new(1, 8192);
    let mut lab = guard_late(lab, Duration::from_millis(1_300));
    let right = lab.ports[1];
    let syn = tcp(true, SYN, 100, 0);
    assert_eq!(lab.pass(0, std::slice::from_ref(&syn)), [(right, syn)]);
    assert_eq!(lab.cli("show conntrack").lines().count(), 1);
    lab.close();
}

/// Applies the four rules while all workers are busy with something else for a time.
fn guard_late(mut lab: Lab, time: Duration) -> Lab {
    // Paced: a worker that another program keeps from its processor.
    drop(lab.c.begin_asking(move |_| std::thread::sleep(time)));
    guard(lab)
}

/// Connections pass with one worker, and with two that they are distributed to by hash.
#[test]
fn thousands_of_connections_pass() {
    for workers in [1, 2] {
        let mut lab = guard(Lab::with(workers, 8192));
        lab.load(&profile(), 20);
        lab.wait(|lab| lab.counts().0.completed >= 5000);
        lab.finish();
        // The acknowledgements of the last FINs are still under way.
        lab.wait(|lab| lab.counts().1.received >= lab.counts().0.sent);
        let (client, server) = lab.counts();
        assert_eq!((client.lost, client.unexpected, client.foreign, server.foreign), (0, 0, 0, 0));
        assert_eq!(client.opened, client.completed);
        assert_eq!(taken(&mut lab, "ct(commit),normal"), client.opened);
        let ways = taken(&mut lab, "-trk");
        assert_eq!(ways, 8 * client.opened, "each packet is tracked once");
        assert_eq!(taken(&mut lab, "actions=drop"), 0);
        let handed: u64 = (0..workers).map(|w| lab.c.worker_stats(w).totals.handed_out.get()).sum();
        assert_eq!(handed > 0, workers > 1);
        let shown = lab.cli("show conntrack -s").lines().count() as u64;
        assert!(shown > 0 && shown <= client.opened);
        lab.close();
    }
}

#[test]
fn pairs_of_hosts_are_remembered() {
    let mut lab = guarded(1);
    lab.ok("set conntrack checksums disable");
    lab.pairs(3000);
    let summary = lab.cli("show conntrack summary");
    assert!(summary.contains("UDP: 3000\n"), "{summary}");
    assert_eq!(taken(&mut lab, "+trk+est"), 3000);
    assert!(lab.c.worker_stats(0).loops.read().count() > 10);
    assert_eq!(lab.cli("clear conntrack"), "3000 connections flushed\n");
    lab.close();
}

/// Nothing is handed over with devices that deliver packets to the owner.
#[test]
fn nothing_is_handed_over_where_devices_spread() {
    let mut lab = guarded(2);
    lab.load_spread(&profile(), 20, 2);
    lab.wait(|lab| lab.counts().0.completed >= 5000);
    lab.finish();
    let (client, _) = lab.counts();
    assert_eq!((client.lost, client.unexpected, client.foreign), (0, 0, 0));
    let handed = |w| lab.c.worker_stats(w).totals.handed_out.get();
    assert_eq!([0, 1].map(handed), [0, 0]);
    lab.close();
}

#[test]
fn connections_are_translated() {
    for workers in [1, 2] {
        let mut lab = Lab::new(workers, 4096);
        let (left, right) = (lab.ports[0], lab.ports[1]);
        lab.ok(
            "flow add 7 table=0,ip,ct_state=-trk,actions=ct(table=1,nat)
             flow add 7 table=1,ip,ct_state=+trk+new,in_port=port0,actions=ct(commit,nat(src=203.0.113.5:7000-7099)),normal
             flow add 7 table=1,ip,ct_state=+trk+est+rpl+dnat,actions=normal
             flow add 7 table=1,ip,ct_state=+trk+est-rpl+snat,actions=normal
             flow add 7 table=1,ip,ct_state=+trk+rel+rpl,actions=normal
             set interface flow port0 7
             set interface flow port1 7",
        );
        let outside = Ipv4Addr::new(203, 0, 113, 5);
        for sport in 5000..5020 {
            let there = |src, sport, flags| {
                let packet = Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(src, SERVER);
                packet.tcp(sport, 80).flags(flags).seq(100).window(1000).build()
            };
            let seen = lab.pass(0, &[there(CLIENT, sport, SYN)]);
            let port = u16::from_be_bytes([seen[0].1[34], seen[0].1[35]]);
            assert!((7000..7100).contains(&port), "{port}");
            let translated = there(outside, port, SYN);
            assert_eq!(seen, [(right, translated.clone())]);
            let back = |dst, dport| {
                let packet = Packet::new().ether(SERVER_MAC, CLIENT_MAC).ipv4(SERVER, dst);
                packet.tcp(80, dport).flags(SYN | ACK).seq(500).ack(101).window(1000).build()
            };
            assert_eq!(lab.pass(1, &[back(outside, port)]), [(left, back(CLIENT, sport))]);
            // A router behind the NAT reports an error; the sender receives it with its original
            // packet quoted.
            let error = |dst, quote: &[u8]| {
                let packet = Packet::new().ether(SERVER_MAC, CLIENT_MAC).ipv4(SERVER, dst);
                packet.icmp(IcmpRepr::unreachable(1)).payload(&quote[14..]).build()
            };
            let got = lab.pass(1, &[error(outside, &translated)]);
            assert_eq!(got, [(left, error(CLIENT, &there(CLIENT, sport, SYN)))]);
        }
        let shown = lab.cli("show conntrack");
        assert_eq!(shown.matches("dst=203.0.113.5,sport=80,dport=70").count(), 20, "{shown}");
        lab.close();
    }
}

#[test]
fn fields_are_set() {
    let mut lab = Lab::new(1, 2048);
    let right = lab.ports[1];
    lab.ok("flow add 7 tcp,actions=mod_nw_src:9.9.9.9,mod_nw_dst:8.8.8.8,mod_tp_src:7,mod_tp_dst:6,normal
         set interface flow port0 7");
    let with = |src, dst, sport, dport| {
        let packet = Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(src, dst);
        packet.tcp(sport, dport).flags(ACK).payload(b"odd").build()
    };
    let expected = with(Ipv4Addr::new(9, 9, 9, 9), Ipv4Addr::new(8, 8, 8, 8), 7, 6);
    assert_eq!(lab.pass(0, &[with(CLIENT, SERVER, 5000, 80)]), [(right, expected)]);
    for wrong in
        ["ip,actions=mod_tp_src:7", "actions=mod_nw_src:9.9.9.9", "ip,actions=ct(nat(src=1.2.3.4))"]
    {
        assert!(lab.cli(&format!("flow add 7 {wrong}")).contains('`'), "{wrong}");
    }
    lab.close();
}

/// Each change of a tag equals a frame built with it, and later tables match it.
#[test]
fn tags_are_changed() {
    let with = |tags: &[(u16, u16)]| {
        let packet = Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(CLIENT, SERVER);
        let mut frame = packet.tcp(5000, 80).flags(SYN).window(9).build();
        for (kind, tci) in tags {
            let tag = [kind.to_be_bytes(), tci.to_be_bytes()].concat();
            frame.splice(12..12, tag);
        }
        frame
    };
    let (c, s) = (0x8100, 0x88a8);
    for (actions, before, after) in [
        ("push_vlan:0x8100", &[][..], &[(c, 0)][..]),
        ("push_vlan:0x88a8,set_field:0x1005->vlan_vid", &[(c, 7)], &[(c, 7), (s, 5)]),
        ("mod_vlan_vid:5", &[], &[(c, 5)]),
        ("mod_vlan_pcp:5", &[], &[(c, 0xa000)]),
        ("mod_vlan_vid:5", &[(s, 0xf007)], &[(s, 0xf005)]),
        ("mod_vlan_pcp:1", &[(c, 0xf007)], &[(c, 0x3007)]),
        ("strip_vlan", &[], &[]),
        ("pop_vlan", &[(c, 7)], &[]),
        ("pop_vlan", &[(c, 7), (s, 9)], &[(c, 7)]),
        ("pop_vlan,pop_vlan,pop_vlan", &[(c, 7), (s, 9)], &[]),
        ("pop_vlan,push_vlan:0x8100,mod_vlan_vid:2", &[(c, 0xe007)], &[(c, 2)]),
    ] {
        let mut lab = Lab::new(1, 2048);
        let right = lab.ports[1];
        let (vlan, ip) = match after {
            [] => ("dl_vlan=0xffff".into(), "ip,"),
            [(_, tci)] => (format!("dl_vlan={},dl_vlan_pcp={}", tci & 0xfff, tci >> 13), "ip,"),
            // The outer tag is matched, and the header behind both.
            [.., (_, tci)] => (format!("dl_vlan={}", tci & 0xfff), "ip,"),
        };
        lab.ok(&format!(
            "flow add 7 table=0,actions={actions},resubmit(,1)
             flow add 7 table=1,{ip}{vlan},actions=normal
             set interface flow port0 7"
        ));
        assert_eq!(lab.pass(0, &[with(before)]), [(right, with(after))], "{actions}");
        lab.close();
    }
}

/// A copy has the tag of its time; packets with tags are tracked and translated.
#[test]
fn tags_and_connections() {
    let mut lab = Lab::with(1, 2048);
    let (left, right) = (lab.ports[0], lab.ports[1]);
    lab.ok(
        "flow add 7 in_port=port0,dl_vlan=5,actions=in_port,strip_vlan,resubmit(,1)
         flow add 7 in_port=port0,dl_vlan=9,actions=strip_vlan,strip_vlan,resubmit(,1)
         flow add 7 table=1,ip,actions=ct(commit,nat(src=192.0.2.1)),push_vlan:0x8100,mod_vlan_vid:6,normal
         set interface flow port0 7",
    );
    let with = |src, sport, tags: &[u8]| {
        let packet = Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(src, SERVER);
        let mut frame = packet.tcp(sport, 80).flags(SYN).window(9).build();
        frame.splice(12..12, tags.iter().copied());
        frame
    };
    let outside = Ipv4Addr::new(192, 0, 2, 1);
    let one = with(CLIENT, 5000, &[0x81, 0, 0, 5]);
    let mut seen = lab.pass(0, std::slice::from_ref(&one));
    seen.sort();
    assert_eq!(seen, [(left, one), (right, with(outside, 5000, &[0x81, 0, 0, 6]))]);
    let two = with(CLIENT, 5001, &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5]);
    assert_eq!(lab.pass(0, &[two]), [(right, with(outside, 5001, &[0x81, 0, 0, 6]))]);
    assert_eq!(lab.cli("show conntrack").lines().count(), 2);
    lab.close();
}

/// The lab has one worker: each has its share of the room.
#[test]
fn a_full_table_refuses_or_recycles() {
    let mut lab = guard(Lab::with(1, 8192));
    lab.ok("set conntrack limit 10");
    let syns = |first: u16| -> Vec<Vec<u8>> {
        let one = |n: u16| {
            let packet = Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(CLIENT, SERVER);
            packet.tcp(first + n, 80).flags(SYN).window(1000).build()
        };
        (0..50).map(one).collect()
    };
    // Packets that are not committed pass nevertheless, like in Open vSwitch.
    assert_eq!(lab.pass(0, &syns(1000)).len(), 50);
    assert_eq!(lab.cli("show conntrack").lines().count(), 10);
    lab.ok("set conntrack when-full recycle");
    assert_eq!(lab.pass(0, &syns(2000)).len(), 50);
    let shown = lab.cli("show conntrack");
    assert_eq!((shown.lines().count(), shown.matches("sport=204").count()), (10, 10));
    let refused = lab.cli("set conntrack limit 2000000");
    assert!(refused.contains("clear conntrack"), "{refused}");
    lab.close();
}

/// Each takes the room of two, because replies have other addresses.
#[test]
fn translated_connections_fill_the_table_and_are_recycled() {
    let mut lab = Lab::new(1, 8192);
    lab.ok("set conntrack limit 800
         flow add 7 table=0,ip,actions=ct(table=1,nat)
         flow add 7 table=1,ip,ct_state=+new,actions=ct(commit,nat(src=192.0.2.1)),normal
         flow add 7 table=1,ip,ct_state=+est,actions=normal
         set interface flow port0 7");
    let ask = |n: u16| {
        Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(CLIENT, SERVER).udp(1024 + n, 53).build()
    };
    let frames: Vec<Vec<u8>> = (0..2000).map(ask).collect();
    let counter = |lab: &mut Lab, name: &str| -> u64 {
        let text = lab.cli("show conntrack summary");
        let line = text.lines().find(|line| line.contains(name)).expect("a count");
        line.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number")
    };
    // One that finds no room is dropped: it does not pass as it is.
    let seen = lab.pass(0, &frames[..900]);
    assert_eq!(seen.len(), 800);
    assert!(seen.iter().all(|(_, f)| f[26..30] == [192, 0, 2, 1]));
    assert_eq!(fragments::dropped(&mut lab, "flow: no translation"), 100);
    let full = counter(&mut lab, "connections refused: table full");
    assert_eq!((lab.cli("show conntrack").lines().count(), full), (800, 100));
    lab.ok("set conntrack when-full recycle");
    assert_eq!(lab.pass(0, &frames[900..]).len(), 1100);
    assert_eq!(lab.cli("show conntrack").lines().count(), 800);
    let counts = ["recycled", "refused: table full"].map(|what| counter(&mut lab, what));
    assert_eq!(counts, [1100, 100]);
    lab.close();
}

/// A command sends workers what it changes, not all settings.
#[test]
fn settings_of_many_zones_do_not_make_each_other_slow() {
    const ZONES: u16 = 1000;
    let mut lab = guard(Lab::with(1, 8192));
    let began = std::time::Instant::now();
    for zone in 1..=ZONES {
        lab.ok(&format!("set conntrack timeouts {zone} udp_first={}", 1 + zone));
        lab.ok(&format!("set conntrack zone-limit {zone} {}", u32::from(zone) + 5));
    }
    for turn in 0..100 {
        let word = if turn % 2 == 0 { "disable" } else { "enable" };
        lab.ok(&format!("set conntrack tcp-seq-chk {word}"));
    }
    // Each took tenths of a second when all zones were sent with it.
    let took = began.elapsed();
    assert!(took < std::time::Duration::from_secs(20), "2100 commands took {took:?}");
    lab.ok("set conntrack timeouts 7 none
         set conntrack zone-limit 8 1
         set conntrack timeouts default udp_first=5000");
    lab.ok("flow del 1
         flow add 1 priority=1,udp,tp_dst=7,actions=ct(commit,zone=7),normal
         flow add 1 priority=1,udp,tp_dst=8,actions=ct(commit,zone=8),normal
         flow add 1 priority=1,udp,tp_dst=1000,actions=ct(commit,zone=1000),normal");
    let from = |sport: u16, dport: u16| {
        Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(CLIENT, SERVER).udp(sport, dport).build()
    };
    let frames: Vec<Vec<u8>> =
        (1..4).flat_map(|sport| [7, 8, 1000].map(|dport| from(sport, dport))).collect();
    assert_eq!(lab.pass(0, &frames).len(), frames.len());
    let shown = lab.cli("show conntrack -s");
    let of = |zone: u16, least: u32, most: u32| {
        let word = format!(",zone={zone},timeout=");
        let left = shown.lines().filter_map(|line| line.split_once(&word));
        let left = left.map(|(_, rest)| rest.split(',').next()?.parse().ok());
        left.filter(|left| left.is_some_and(|left: u32| (least..=most).contains(&left))).count()
    };
    // Zone timeouts were removed, zone limits changed, and all set as at first.
    assert_eq!([of(7, 4000, 5000), of(8, 1, 9), of(1000, 900, 1001)], [3, 1, 3], "{shown}");
    lab.close();
}

#[test]
fn tables_zones_marks_and_copies() {
    let mut lab = Lab::new(1, 2048);
    let (left, right) = (lab.ports[0], lab.ports[1]);
    lab.ok(
        "flow add 7 table=0,ip,actions=ct(zone=5,table=1)
         flow add 7 table=1,ip,ct_state=+new,in_port=port0,actions=ct(commit,zone=5,exec(set_field:0x7->ct_mark)),resubmit(,2)
         flow add 7 table=1,ip,ct_state=+est,ct_zone=5,ct_mark=0x7,actions=mod_nw_ttl:9,output:port0
         flow add 7 table=2,ip,actions=in_port,mod_dl_dst:02:00:00:00:00:55,normal
         set interface flow port0 7
         set interface flow port1 7",
    );
    let ask = Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(CLIENT, SERVER);
    let ask = ask.icmp_echo_request(3, 1).build();
    let mut seen = lab.pass(0, std::slice::from_ref(&ask));
    seen.sort();
    let mut changed = ask.clone();
    changed[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0x55]);
    assert_eq!(seen, [(left, ask), (right, changed)]);
    let answer = Packet::new().ether(SERVER_MAC, CLIENT_MAC).ipv4(SERVER, CLIENT);
    let seen = lab.pass(1, &[answer.icmp_echo_reply(3, 1).build()]);
    assert_eq!((seen.len(), seen[0].0, seen[0].1[22]), (1, left, 9));
    let shown = lab.cli("show conntrack zone=5");
    assert!(shown.contains(",zone=5,mark=7"), "{shown}");
    assert_eq!(lab.cli("show conntrack zone=0"), "");
    lab.ok("flow del 7 table=1");
    assert_eq!(lab.cli("flow dump 7").lines().count(), 2);
    check_json_dump(&mut lab);
    lab.ok("flow del 7");
    let arp = Packet::arp_request(CLIENT_MAC, CLIENT, SERVER).build();
    assert!(lab.pass(0, std::slice::from_ref(&arp)).is_empty(), "no rules, no packets");
    lab.ok("set interface flow port0 disable");
    assert_eq!(lab.pass(0, std::slice::from_ref(&arp)), [(right, arp)]);
    lab.close();
}

/// JSON output of set 7's two rules, one of which matches packets.
fn check_json_dump(lab: &mut Lab) {
    let read = |lab: &mut Lab, command: &str| -> serde_json::Value {
        serde_json::from_str(&lab.cli(&format!("{command} | json"))).expect("JSON")
    };
    let sets = read(lab, "flow dump");
    let set = sets.as_array().and_then(|all| all.iter().find(|s| s["set"] == 7)).expect("set 7");
    assert_eq!(read(lab, "flow dump 7")[0]["interfaces"], set["interfaces"]);
    let rules = set["rules"].as_array().expect("rules");
    let text = lab.cli("flow dump 7");
    assert_eq!(rules.len(), text.lines().count());
    for (rule, line) in rules.iter().zip(text.lines()) {
        let part = |key: &str| rule[key].as_str().expect(key).to_owned();
        assert!(
            line.contains(&format!(
                ", table={}, n_packets={}, n_bytes={}, priority={}",
                rule["table"], rule["packets"], rule["bytes"], rule["priority"]
            )),
            "{rule} {line}"
        );
        assert!(line.ends_with(&format!("{} actions={}", part("match"), part("actions"))));
        assert!(rule["age_ms"].is_u64() && rule["number"].is_u64() && rule["cookie"].is_u64());
    }
    // The rules can be added again in the form they are printed.
    for rule in rules {
        lab.ok(&format!("flow add 8 {}", rule["rule"].as_str().expect("a rule")));
    }
    let again = read(lab, "flow dump 8");
    let texts = |rules: &serde_json::Value| -> Vec<String> {
        rules.as_array().expect("rules").iter().map(|r| r["rule"].to_string()).collect()
    };
    assert_eq!(texts(&again[0]["rules"]), texts(&set["rules"]));
    assert_eq!(again[0]["interfaces"], serde_json::json!([]));
    lab.ok("flow del 8");
    assert_eq!(lab.cli("flow dump 8 | json"), "[]\n");
}

#[test]
fn resubmit_loops_end() {
    let mut lab = Lab::new(1, 2048);
    lab.ok("flow add 7 table=0,actions=resubmit(,1)
         flow add 7 table=1,actions=resubmit(,0)
         set interface flow port0 7");
    assert!(lab.pass(0, &[tcp(true, SYN, 1, 0)]).is_empty());
    lab.close();
}

#[test]
fn errors_in_files_have_line_numbers() {
    let mut lab = Lab::new(1, 2048);
    let file = tempfile();
    std::fs::write(&file, "priority=1,ip,actions=normal\n\nip,tp_dst=1,actions=drop\n").unwrap();
    let output = lab.cli(&format!("flow add 1 file {}", file.display()));
    std::fs::remove_file(&file).unwrap();
    assert!(output.contains("line 3: `tp_dst=1`: write tcp, udp or sctp before it"), "{output}");
    assert_eq!(lab.cli("flow dump"), "", "a file is taken whole or not at all");
    let output = lab.cli("flow add 1 file /nowhere/rules");
    assert!(output.contains("cannot read /nowhere/rules"), "{output}");
    lab.close();
}
