//! Interfaces by the thousand, of all kinds without a device.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::Ipv4Addr;
use thalweg_device::testing::Lab;
use thalweg_device::testing::ip4::{framed, ip};
use thalweg_device::{Interfaces, interface};
use thalweg_program_router::features::FEATURES;
use thalweg_wire::build::Packet;

fn router() -> Lab {
    let mut lab = Lab::of_all(FEATURES).workers(2).interfaces(2).ip4(2..=3).start();
    lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test1");
    lab
}

/// Command that creates the nth interface, its name, and the command that deletes it.
fn nth(n: usize) -> [String; 3] {
    let of = n / 4;
    match n % 4 {
        0 => {
            let name = format!("loop{of}");
            [
                format!("create loopback interface instance {of}"),
                name.clone(),
                format!("delete loopback interface intfc {name}"),
            ]
        }
        1 => {
            let name = format!("bvi{of}");
            [format!("bvi create instance {of}"), name.clone(), format!("bvi delete {name}")]
        }
        2 => {
            let name = format!("mpls-tunnel{of}");
            [
                format!("mpls tunnel add {name} via 10.0.1.2 test1 out-labels 40"),
                name.clone(),
                format!("mpls tunnel del {name}"),
            ]
        }
        _ => {
            let (outer, inner) = (of / 4000 + 1, of % 4000 + 1);
            let name = format!("test0.{}", of + 1);
            [
                format!(
                    "create sub-interfaces test0 {} dot1q {outer} inner-dot1q {inner} exact-match",
                    of + 1
                ),
                name.clone(),
                format!("delete sub-interface {name}"),
            ]
        }
    }
}

/// Sends by several interfaces of each kind at once: their nodes find each one in the frame.
fn each_kind_sends(lab: &mut Lab, first: usize) {
    let (mut names, mut frames) = (Vec::new(), Vec::new());
    for (net, n) in (first..first + 12).enumerate() {
        let [_, name, _] = nth(n);
        lab.ok(&format!("set interface state {name} up"));
        let via = if name.starts_with("mpls") {
            name.clone()
        } else {
            lab.ok(&format!(
                "set interface ip address {name} 172.17.{net}.1/24\n\
                 ip neighbor {name} 172.17.{net}.2 02:00:00:00:00:99 static"
            ));
            format!("172.17.{net}.2 {name}")
        };
        lab.ok(&format!("ip route add 172.16.{net}.0/24 via {via}"));
        let to = Ipv4Addr::new(172, 16, net as u8, 1);
        let packet = Packet::new().ipv4(ip(0, 2), to).udp(1, 2).payload_len(64);
        frames.push(framed(0, 2, &packet.build()));
        names.push(name);
    }
    let before: Vec<u64> = names.iter().map(|name| sent(lab, name)).collect();
    // One frame in which neighbouring packets leave by different interfaces.
    lab.receive(0, (0..20).flat_map(|_| frames.clone()).collect());
    lab.settle();
    for (name, before) in names.iter().zip(before) {
        assert_eq!(sent(lab, name) - before, 20, "{name}: {}", lab.cli("show errors"));
    }
}

fn sent(lab: &Lab, name: &str) -> u64 {
    let sw_if = interface::find(&lab.c, name).expect("an interface");
    lab.c.interface_totals(sw_if).tx_packets
}

#[test]
fn interfaces_without_a_device_cost_no_nodes() {
    let mut lab = router();
    let nodes = lab.c.nodes().len();
    (0..400).for_each(|n| _ = lab.cli(&nth(n)[0]));
    assert_eq!(lab.c.nodes().len(), nodes);
    each_kind_sends(&mut lab, 388);
    // Their nodes go by the names that they had.
    for name in ["loop0-output", "loop0-tx", "mpls-tunnel3-tx", "test0.7-output", "bvi2-tx"] {
        assert!(lab.c.node(name).is_some(), "{name}");
        assert!(lab.cli(&format!("show node {name}")).contains("node"), "{name}");
    }
    lab.ok("trace add loop0-output 1");
    assert_eq!(lab.cli("show runtime").matches("interface-output").count(), 1);
    assert_eq!(lab.c.shut_down().in_use, 0);
}

/// Every name is another one, and what it takes returns.
#[test]
fn interfaces_that_come_and_go_leave_nothing() {
    let mut lab = router();
    let mut indices = 0;
    for n in 0..4000 {
        let [create, name, delete] = nth(n);
        lab.cli(&create);
        indices = indices.max(interface::find(&lab.c, &name).expect(&name).get());
        lab.ok(&delete);
        lab.c.sync();
    }
    assert!(indices < 200, "{indices}");
    assert_eq!(lab.c.state::<Interfaces>().borrow().iter().count(), 3);
    assert_eq!(lab.c.shut_down().in_use, 0);
}

/// More workers than processors: packets of all flows come to each, and go to the flow's owner.
#[test]
fn sixty_four_workers_hand_over_delete_and_stop() {
    const WORKERS: usize = 64;
    const FLOWS: usize = 40;
    let setup = Lab::of_all(FEATURES).workers(WORKERS).buffers(64 * 1024);
    let mut lab = setup.interfaces(2).ip4(2..=3).start();
    lab.ok("nat44 plugin enable sessions 1024\n\
         nat44 add address 10.0.1.100 - 10.0.1.163\n\
         set interface nat44 in test0 out test1");
    let flow = |n: usize| {
        let packet = Packet::new().ipv4(ip(0, 10 + n as u8), ip(1, 2)).udp(1000, 53);
        framed(0, 2, &packet.payload_len(20).build())
    };
    let flows: Vec<Vec<u8>> = (0..FLOWS).map(flow).collect();
    for worker in 0..WORKERS {
        lab.deliver_to(worker, 0, flows.clone());
        let n = worker + 1;
        lab.cli(&format!("create sub-interfaces test1 {n}"));
        lab.ok(&format!("delete sub-interface test1.{n}"));
    }
    lab.settle();
    assert_eq!(sent(&lab, "test1"), (WORKERS * FLOWS) as u64, "{}", lab.cli("show errors"));
    let handed: u64 = lab.c.hand_off_views().iter().map(|v| v.packets).sum();
    // A flow's owner keeps what it receives itself.
    assert_eq!(handed, ((WORKERS - 1) * FLOWS) as u64);
    lab.ok("nat44 plugin disable");
    assert_eq!(lab.c.shut_down().in_use, 0);
}
