//! Interfaces that take the index of one that has just gone, with its packets under way.

use super::*;

/// Rounds that a race gets to show itself.
const ROUNDS: usize = 60;

/// A frame of VLAN `vlan` from 10.VLAN.0.9 to the host behind both tables' default routes.
fn marked(vlan: u16) -> Vec<u8> {
    let packet = udp(ip(vlan as u8, 9), Ipv4Addr::new(192, 0, 2, 7), 16);
    ipv4(0, 9, &[dot1q(vlan)], &packet)
}

/// The VLAN that a sent frame came by.
fn mark(frame: &[u8]) -> u16 {
    parts(frame).4[13].into()
}

/// The default routes of tables 0 and 7 lead to `test1` and `test2`.
fn two_tables(workers: usize) -> Lab {
    let mut lab = lab(workers);
    lab.ok("ip table add 7\n\
         set interface ip table test2 7\n\
         set interface ip address test1 10.201.0.1/24\n\
         set interface ip address test2 10.202.0.1/24\n\
         ip route add 0.0.0.0/0 via 10.201.0.9 test1\n\
         ip route add 0.0.0.0/0 table 7 via 10.202.0.9 test2");
    for n in [1, 2] {
        let port = lab.sw_if(n);
        neighbor(&mut lab, port, ip(200 + n, 9), host(9));
    }
    lab
}

/// Makes a routed sub-interface of `test0` in a table.
fn routed_in(lab: &mut Lab, vlan: u16, table: u32) -> SwIfIndex {
    let sub = sub(lab, 0, vlan.into(), one(vlan));
    lab.ok(&format!(
        "set interface ip table test0.{vlan} {table}\n\
         set interface ip address test0.{vlan} 10.{vlan}.0.1/24"
    ));
    sub
}

/// Packets of a sub-interface that goes are not those of the one that gets its index: neither its
/// table nor its counters have them, and other VLANs lose none.
#[test]
fn packets_of_one_that_went_are_not_those_of_the_next() {
    for workers in [1, 2] {
        let mut lab = two_tables(workers);
        routed_in(&mut lab, 30, 0);
        let mut old = routed_in(&mut lab, 10, 0);
        let (test1, test2) = (lab.sw_if(1), lab.sw_if(2));
        let mut others = 0;
        for round in 0..ROUNDS {
            // Turns: 10 in table 0, 11 in table 7.
            let [(from, from_out), (to, to_out)] = match round % 2 {
                0 => [(10, test1), (11, test2)],
                _ => [(11, test2), (10, test1)],
            };
            for worker in 0..workers {
                let frames = (0..768).map(|i| (0, marked(if i % 8 == 0 { 30 } else { from })));
                lab.deliver_mixed(worker, frames.collect());
                others += 96;
            }
            // Half of the rounds begin in the midst of it.
            if round % 4 < 2 {
                lab.until("some", |lab| lab.sent_frames() > 0);
            }
            interface::delete(&mut lab.c, old).expect("delete");
            let new = routed_in(&mut lab, to, if to == 11 { 7 } else { 0 });
            assert_eq!(new, old, "the lowest that is free");
            lab.deliver(0, vec![marked(to); 20]);
            lab.settle();
            let sent = lab.sent();
            for (out, frame) in &sent {
                let expected = match mark(frame) {
                    30 => test1,
                    vlan if vlan == from => from_out,
                    _ => to_out,
                };
                assert_eq!(*out, expected, "of VLAN {}, round {round}", mark(frame));
            }
            let of = |vlan: u16| sent.iter().filter(|(_, frame)| mark(frame) == vlan).count();
            assert_eq!((of(to), counts(&lab, new)[0]), (20, 20), "round {round}");
            old = new;
            let stay = interface::find(&lab.c, "test0.30").expect("it stays");
            assert_eq!(counts(&lab, stay)[0], others);
            assert_eq!(of(30), 96 * workers);
        }
        lab.close();
    }
}

/// Packets sent by a sub-interface that goes are not counted for the next one, and have none of its
/// tags.
#[test]
fn packets_to_one_that_went_do_not_leave_by_the_next() {
    for workers in [1, 2] {
        let mut lab = two_tables(workers);
        let (mut old, test1) = (routed_in(&mut lab, 10, 0), lab.sw_if(1));
        for round in 0..ROUNDS {
            let [from, to] = if round % 2 == 0 { [10u16, 11] } else { [11, 10] };
            let far = ip(from as u8, 9);
            neighbor(&mut lab, old, far, host(9));
            for worker in 0..workers {
                let packet = udp(Ipv4Addr::new(192, 0, 2, 7), far, 16);
                lab.deliver_to(worker, 1, vec![ipv4(1, 9, &[], &packet); 512]);
            }
            if round % 4 < 2 {
                lab.until("some", |lab| lab.sent_frames() > 0);
            }
            interface::delete(&mut lab.c, old).expect("delete");
            let new = routed_in(&mut lab, to, 0);
            lab.settle();
            for (out, frame) in lab.sent() {
                let (_, _, tags, _, packet) = parts(&frame);
                if out != test1 {
                    let behind: [u8; 4] = *packet[16..].first_chunk().expect("a destination");
                    assert_eq!((out, &tags[..]), (lab.sw_if(0), &[dot1q(from)][..]));
                    assert_eq!(behind, far.octets());
                }
            }
            assert_eq!(counts(&lab, new), [0; 4], "round {round}");
            old = new;
        }
        lab.close();
    }
}

/// A port that gets the index of another one does not get the frames of the hosts behind that.
#[test]
fn hosts_of_one_that_went_are_not_behind_the_next() {
    const HOSTS: u32 = 12_000;
    let mut lab = lab(1);
    let old = sub(&mut lab, 0, 50, one(50));
    for port in ["test0.50", "test1", "test2"] {
        lab.ok(&format!("set interface l2 bridge {port} 10"));
    }
    let mac = |n: u32| MacAddr::new(2, 0, 0, 0x55, (n >> 8) as u8, n as u8);
    for n in 0..HOSTS {
        lab.ok(&format!("l2fib add {} 10 test0.50", mac(n)));
    }
    let to = |n: u32| {
        let mut bytes = ipv4(1, 9, &[], &udp(ip(1, 1), ip(1, 2), 8));
        bytes[..6].copy_from_slice(&mac(n).0);
        bytes
    };
    lab.receive(1, vec![to(HOSTS - 1)]);
    assert_eq!(sent_one(&mut lab).0, lab.sw_if(0));
    lab.ok("delete sub-interface test0.50");
    let next = sub(&mut lab, 0, 51, one(51));
    lab.ok("set interface l2 bridge test0.51 10");
    for n in [HOSTS - 1, HOSTS / 2, 0] {
        lab.deliver(1, vec![to(n)]);
        lab.pass();
        let mut sent: Vec<_> = lab.sent().into_iter().map(|(out, _)| out).collect();
        sent.sort_unstable();
        assert_eq!(sent, [lab.sw_if(0), lab.sw_if(2)], "flooded");
    }
    // The index is free again once they are forgotten.
    let known = |lab: &Lab| lab.c.state::<thalweg_feat_l2::L2>().borrow().bridges().count().0;
    lab.until("oblivion", |lab| known(lab) <= 1);
    let last = sub(&mut lab, 0, 52, one(52));
    assert!(next == old || last == old, "{old}, then {next} and {last}");
    lab.close();
}

/// A capture of a sub-interface that goes under load has nothing of the one that gets its index.
#[test]
fn captures_end_with_their_interface() {
    for workers in [1, 2] {
        let mut lab = two_tables(workers);
        let old = routed_in(&mut lab, 10, 0);
        lab.ok("pcap trace rx tx max 100000 intfc test0.10");
        let captured = |lab: &mut Lab| {
            let shown: serde_json::Value =
                lab.cli("pcap trace status | json").parse().expect("JSON");
            shown["packets"].as_u64().expect("a number")
        };
        let load = |lab: &mut Lab| {
            (0..workers).for_each(|worker| {
                lab.deliver_mixed(worker, vec![(0, marked(10)); 300]);
            });
        };
        load(&mut lab);
        lab.settle();
        let half = 300 * workers as u64;
        assert_eq!(captured(&mut lab), half);
        load(&mut lab);
        interface::delete(&mut lab.c, old).expect("delete");
        assert_eq!(routed_in(&mut lab, 11, 7), old);
        let before = captured(&mut lab);
        assert!((half..=2 * half).contains(&before), "{before}");
        lab.deliver(0, vec![marked(11); 200]);
        lab.settle();
        assert_eq!(captured(&mut lab), before);
        let status = lab.cli("pcap trace status");
        assert!(status.contains("of test0.10, which is deleted, for"), "{status}");
        lab.close();
    }
}
