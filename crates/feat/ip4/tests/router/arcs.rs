//! Features on the arcs of IPv4: where packets meet them, and in which order.

use crate::{router, setup};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use thalweg_buffer::PktMut;
use thalweg_device::testing::ip4::{framed, icmp_error, ip, sound, udp};
use thalweg_device::testing::{Lab, host_mac};
use thalweg_engine::{Feature, punt};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::build::Packet;

/// The nodes that packets passed, one after the other.
#[derive(Default)]
struct Visits(Mutex<Vec<&'static str>>);

struct Seen(&'static str, Arc<Visits>);

impl Node for Seen {
    fn packet(&mut self, _: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        assert_eq!(p.data()[0] >> 4, 4, "{}: at the IPv4 header", self.0);
        self.1.0.lock().expect("the visits").push(self.0);
        Verdict::CONTINUE
    }
}

/// Two features on an arc, the first of which comes second.
macro_rules! pair {
    ($arc:literal, $late:ident, $late_name:literal, $early:ident, $early_name:literal) => {
        static $late: NodeDecl = NodeDecl {
            name: $late_name,
            feature: Some(FeatureDecl::on($arc).after(&[$early_name])),
            build: |cx| Built::node(Seen($late_name, cx.shared())),
            ..NodeDecl::DEFAULT
        };
        static $early: NodeDecl = NodeDecl {
            name: $early_name,
            feature: Some(FeatureDecl::on($arc)),
            build: |cx| Built::node(Seen($early_name, cx.shared())),
            ..NodeDecl::DEFAULT
        };
    };
}

pair!("ip4-unicast", U2, "a-unicast", U1, "b-unicast");
pair!("ip4-multicast", M2, "a-multicast", M1, "b-multicast");
pair!("ip4-local", L2, "a-local", L1, "b-local");
pair!("ip4-punt", P2, "a-punt", P1, "b-punt");
pair!("ip4-drop", D2, "a-drop", D1, "b-drop");
pair!("ip4-output", O2, "a-output", O1, "b-output");

static HOLDS: NodeDecl = NodeDecl {
    name: "holds",
    feature: Some(FeatureDecl::on("ip4-output")),
    build: |_| Built::node(Holds(Vec::new())),
    ..NodeDecl::DEFAULT
};

/// Holds packets until it gets a message.
struct Holds(Vec<thalweg_buffer::Packet>);

impl Node for Holds {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let (packet, kept) = cx.take(p);
        self.0.push(packet);
        kept
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, _: Box<dyn std::any::Any + Send>) {
        self.0.drain(..).for_each(|packet| cx.send(packet, Verdict::CONTINUE));
    }
}

/// A feature with two nodes on each arc, and one that holds packets.
pub static ON_ARCS: Feature = Feature {
    name: "on-arcs",
    nodes: &[&U2, &U1, &M2, &M1, &L2, &L1, &P2, &P1, &D2, &D1, &O2, &O1, &HOLDS],
    init: |c| c.share(Arc::new(Visits::default())),
    ..Feature::DEFAULT
};

/// Each arc, its features in their order, the interface that selects them, and a packet that passes
/// them.
fn arcs() -> [(&'static str, [&'static str; 2], u8, Packet); 6] {
    let to = |dst: Ipv4Addr, port| Packet::new().ipv4(ip(0, 2), dst).udp(9, port).payload(&[0; 20]);
    [
        ("ip4-unicast", ["b-unicast", "a-unicast"], 0, to(ip(1, 2), 53)),
        ("ip4-multicast", ["b-multicast", "a-multicast"], 0, to([224, 0, 0, 9].into(), 520)),
        ("ip4-local", ["b-local", "a-local"], 0, to(ip(0, 1), 4789)),
        ("ip4-punt", ["b-punt", "a-punt"], 0, to(ip(0, 1), 9999)),
        ("ip4-drop", ["b-drop", "a-drop"], 0, to([192, 0, 2, 1].into(), 53)),
        ("ip4-output", ["b-output", "a-output"], 1, to(ip(1, 2), 53)),
    ]
}

fn visits(lab: &Lab) -> Vec<&'static str> {
    std::mem::take(&mut *lab.c.shared::<Visits>().0.lock().expect("the visits"))
}

/// Packets visit the features of an arc in its order, whatever was enabled first; and only the
/// packets of that arc, on that interface.
#[test]
fn features_are_visited_in_the_order_of_the_arc() {
    let mut lab = router();
    lab.ok("ip route add 192.0.2.0/24 drop");
    punt::take(&mut lab.c, "ip4-no-udp-listener", "taker").expect("the reason");
    for (arc, order, n, _) in arcs() {
        let sw_if = lab.sw_if(n);
        for enabled in [order, [order[1], order[0]]] {
            for feature in enabled {
                lab.c.enable_feature(arc, feature, sw_if, true).expect("a feature");
            }
            let on = lab.c.enabled_features(sw_if);
            assert!(on.contains(&(arc, order.to_vec())), "{on:?}");
            for many in [1, 40] {
                for (of, _, _, packet) in arcs() {
                    let frame = framed(0, 2, &packet.build());
                    lab.receive(0, vec![frame; many]);
                    let seen = visits(&lab);
                    // Packets routed to `test1` leave by it.
                    let passes = of == arc || (arc, of) == ("ip4-unicast", "ip4-output")
                        || (arc, of) == ("ip4-output", "ip4-unicast")
                        // Packets end as drops or as packets for the router, which are unicast.
                        || arc == "ip4-unicast" && of != "ip4-multicast"
                        || arc == "ip4-drop" && of == "ip4-multicast"
                        || arc == "ip4-local" && of == "ip4-punt";
                    assert_eq!(seen.len(), if passes { 2 * many } else { 0 }, "{arc}: {of}");
                    let mut ahead = 0;
                    for name in seen {
                        ahead += if name == order[0] { 1 } else { -1 };
                        assert!(ahead >= 0 && order.contains(&name), "{arc}: {of}: {name}");
                    }
                }
                let other = udp(ip(1, 2), ip(2, 2), 8).build();
                lab.receive(1, vec![framed(1, 2, &other)]);
                assert!(visits(&lab).is_empty(), "other interfaces");
                lab.sent();
            }
            for feature in order {
                lab.c.enable_feature(arc, feature, sw_if, false).expect("a feature");
            }
            lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, 2), 8));
            assert!(visits(&lab).is_empty());
            lab.sent();
        }
    }
    lab.close();
}

/// Features on output see the packet with TTL and length checked, and without a link header;
/// whatever becomes of it then, a packet is sent as without them.
#[test]
fn output_features_change_nothing_else() {
    let mut lab = setup().workers(2).buffers(8192).start();
    lab.ok("set interface mtu packet 576 test2
            ip route add 48.0.0.0/8 via 10.0.1.2 test1 via 10.0.2.2 test2");
    let to = |i: u8, len| udp(ip(0, 2), Ipv4Addr::new(48, 0, i, 7), len);
    let mut packets: Vec<Packet> = (0..60).map(|i| to(i, usize::from(i))).collect();
    packets.extend((0..20).map(|i| to(i, 900).id(i.into())));
    packets.extend((0..20).map(|i| to(i, 900).dont_fragment()));
    packets.extend((0..20).map(|i| to(i, 8).ttl(i % 3)));
    packets.extend((0..4).map(|i| to(i, 5000).id(i.into())));
    let frames: Vec<Vec<u8>> = packets.iter().map(|p| framed(0, 2, &p.build())).collect();
    let outcome = |lab: &mut Lab| {
        for worker in 0..2 {
            lab.deliver_to(worker, 0, frames.clone());
            frames.iter().for_each(|f| lab.deliver_to(worker, 0, vec![f.clone()]));
        }
        lab.settle();
        let mut sent = lab.sent();
        // Their number is limited by the clock.
        sent.retain(|(sw_if, _)| *sw_if != lab.sw_if(0));
        sent.sort();
        sent
    };
    let plain = outcome(&mut lab);
    for on in [&[1][..], &[2], &[1, 2]] {
        for n in on {
            let sw_if = lab.sw_if(*n);
            lab.c.enable_feature("ip4-output", "b-output", sw_if, true).expect("a feature");
        }
        assert!(outcome(&mut lab) == plain, "with features on {on:?}");
        let seen = visits(&lab).len();
        assert!(seen > 0);
        for n in on {
            let sw_if = lab.sw_if(*n);
            lab.c.enable_feature("ip4-output", "b-output", sw_if, false).expect("a feature");
        }
    }
    lab.close();
    // The router's own packets pass the features, with their TTL. Another router, whose limit of
    // ICMP errors is not used up.
    let mut lab = router();
    let sw_if = lab.sw_if(0);
    lab.c.enable_feature("ip4-output", "b-output", sw_if, true).expect("a feature");
    let expired = udp(ip(0, 2), ip(1, 2), 8).ttl(1).build();
    lab.until("the limit of errors", |lab| {
        lab.receive(0, vec![framed(0, 2, &expired)]);
        lab.sent_frames() > 0
    });
    let frame = lab.sent_one(0);
    assert_eq!((icmp_error(0, 2, &frame).kind, frame[14 + 8]), (11, 255));
    assert_eq!(visits(&lab), ["b-output"]);
    lab.close();
}

/// A packet waits for its neighbour before the features, and passes them once.
#[test]
fn packets_that_wait_for_a_neighbor_pass_once() {
    let mut lab = router();
    let sw_if = lab.sw_if(1);
    lab.c.enable_feature("ip4-output", "b-output", sw_if, true).expect("a feature");
    let packet = udp(ip(0, 2), ip(1, 99), 8).build();
    lab.deliver(0, vec![framed(0, 2, &packet)]);
    lab.until("the request for the neighbour", |lab| lab.sent_frames() > 0);
    assert!(visits(&lab).is_empty());
    lab.neighbor(1, ip(1, 99), host_mac(1, 99));
    lab.settle();
    let sent = lab.sent().into_iter().filter(|(_, frame)| frame[12..14] == [8, 0]);
    assert_eq!((sent.count(), visits(&lab).len()), (1, 1));
    lab.close();
}

/// A packet that a feature on output has held is sent as things are now, and never passes the
/// features again.
#[test]
fn held_packets_follow_their_next_hop() {
    let mut lab = router();
    let (sw_if, holds) = (lab.sw_if(1), lab.c.node("holds").expect("the node"));
    lab.c.enable_feature("ip4-output", "holds", sw_if, true).expect("a feature");
    let hold = |lab: &mut Lab| {
        let before = lab.c.worker_stats(0).node(holds).vectors.get();
        let packet = udp(ip(0, 2), ip(1, 2), 100).build();
        lab.deliver(0, vec![framed(0, 2, &packet); 5]);
        let stats = lab.c.worker_stats(0).clone();
        lab.until("the packets to be held", |_| stats.node(holds).vectors.get() == before + 5);
    };
    let release = |lab: &mut Lab| {
        lab.c.message(0, holds, Box::new(()));
        lab.settle();
        lab.sent()
    };
    hold(&mut lab);
    assert_eq!(release(&mut lab).len(), 5);
    // The neighbour moves.
    hold(&mut lab);
    lab.neighbor(1, ip(1, 2), host_mac(1, 9));
    let sent = release(&mut lab);
    assert_eq!(sent.len(), 5);
    sent.iter().for_each(|(_, frame)| _ = sound(1, 9, frame));
    // The interface goes down.
    hold(&mut lab);
    lab.up(1, false);
    assert!(release(&mut lab).is_empty());
    assert_eq!(lab.count("ip4-rewrite-out", "next hop lost during output features"), 5);
    // A smaller MTU fragments them; the feature goes.
    lab.up(1, true);
    hold(&mut lab);
    lab.ok("set interface mtu packet 100 test1");
    lab.c.enable_feature("ip4-output", "holds", sw_if, false).expect("a feature");
    assert_eq!(release(&mut lab).len(), 10);
    lab.close();
}
