//! Features that each send packets to the worker that owns them: together they decide, too.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::Ipv4Addr;
use std::time::Duration;
use thalweg_device::testing::Lab;
use thalweg_device::testing::ip4::{framed, ip};
use thalweg_program_router::features::FEATURES;
use thalweg_wire::build::Packet;

/// A host beyond `test1`.
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// A part of the datagram with id 7: the first one if `offset` is 0.
fn part(port: u16, offset: usize) -> Vec<u8> {
    let packet = Packet::new().ipv4(ip(0, 2), FAR).udp(port, 53).payload_len(64);
    framed(0, 2, &packet.id(7).fragment(offset, offset == 0).build())
}

fn handed_over(lab: &Lab) -> u64 {
    lab.c.hand_off_views().iter().map(|view| view.packets).sum()
}

/// First fragments of one id belong to different workers by their ports, and NAT44 and the rules
/// spread them differently: what they tell later fragments need not agree.
#[test]
fn fragments_of_one_id_are_handed_over_a_few_times() {
    for port in 5000..5006 {
        for (first, later, second) in [(0, 0, 0), (0, 1, 0), (1, 0, 0), (0, 0, 1), (1, 1, 0)] {
            let mut lab = Lab::of_all(FEATURES).workers(2).interfaces(2).ip4(2..=3).start();
            lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test1\n\
                    nat44 plugin enable sessions 1000\nnat44 add address 192.0.2.1\n\
                    set interface nat44 in test0 out test1\n\
                    flow add 1 priority=1,ip,ct_state=-trk,actions=ct(table=0)\n\
                    flow add 1 priority=1,ip,ct_state=+trk,actions=ct(commit),normal\n\
                    flow add 1 priority=0,actions=normal\n\
                    set interface flow test0 1\nset interface flow test1 1");
            lab.c.sync();
            lab.deliver_to(first, 0, vec![part(port, 0)]);
            lab.deliver_to(later, 0, vec![part(port, 72)]);
            lab.deliver_to(second, 0, vec![part(port + 17, 0)]);
            lab.deliver_to(later, 0, vec![part(port, 144)]);
            for _ in 0..200 {
                lab.c.run_once(Some(Duration::from_micros(100)));
                lab.c.sync();
            }
            let n = handed_over(&lab);
            assert!(n <= 24, "{n} hand-overs of four packets; workers {first} {later} {second}");
            // Shut down without waiting for what waits for a first fragment.
            assert_eq!(lab.c.shut_down().in_use, 0);
        }
    }
}
