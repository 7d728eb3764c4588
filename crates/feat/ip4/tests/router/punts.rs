//! Packets that a feature takes instead of the router.

use crate::{router, setup};
use thalweg_buffer::PktMut;
use thalweg_device::testing::Lab;
use thalweg_device::testing::ip4::{framed, icmp_error, ip, udp};
use thalweg_engine::Feature;
use thalweg_engine::punt::{self, Class, Punt, PuntError, Reason, ReasonDecl, ReasonView};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::IcmpRepr;

/// A reason with a limit of one packet a second.
static RARE: ReasonDecl =
    ReasonDecl { name: "rare", from: "taker", class: Class::Exception, rate: 1, burst: 5 };

/// A feature that takes packets, and that punts others.
pub static TAKER: Feature = Feature {
    name: "taker",
    nodes: &[&TAKES, &PUNTS],
    init: |c| {
        let rare = punt::add(c, &RARE);
        assert_eq!(rare, punt::add(c, &RARE), "it is shared");
        c.share(std::sync::Arc::new(rare));
    },
    ..Feature::DEFAULT
};

thalweg_graph::errors! { TAKEN: Info, UNKNOWN, "packets taken"; }

static TAKES: NodeDecl =
    NodeDecl { name: "taker", errors: ERRORS, build: |_| Built::node(Takes), ..NodeDecl::DEFAULT };

struct Takes;

impl Node for Takes {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let (packet, kept) = cx.take(p);
        assert_eq!(packet.data()[0], 0x45);
        cx.count(TAKEN, 1);
        cx.deliver(packet);
        kept
    }
}

static PUNTS: NodeDecl = NodeDecl {
    name: "punts-all",
    next: &["ip4-punt"],
    feature: Some(FeatureDecl::on("ip4-unicast")),
    build: |cx| Built::node(Punts(Punt::new(cx), *cx.shared())),
    ..NodeDecl::DEFAULT
};

struct Punts(Punt, Reason);

impl Node for Punts {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if !self.0.is_taken(cx.guard(), self.1) {
            return Verdict::CONTINUE;
        }
        self.1.mark(&mut p);
        Verdict::next(0)
    }
}

fn reason(lab: &Lab, name: &str) -> ReasonView {
    let found = punt::reasons(&lab.c).into_iter().find(|r| r.decl.name == name);
    found.expect("the reason")
}

fn punted_on(lab: &Lab, n: u8) -> u64 {
    lab.c.interface_totals(lab.sw_if(n)).punt
}

#[test]
fn a_feature_takes_what_the_router_refuses() {
    let to = |p: Packet| p.payload(&[0; 30]);
    let own = || Packet::new().ipv4(ip(0, 2), ip(0, 1));
    let cases = [
        ("ip4-unknown-protocol", to(own().protocol(89)), Some(2)),
        ("ip4-no-udp-listener", to(own().udp(9, 3784)), Some(3)),
        ("ip4-no-tcp-listener", to(own().tcp(9, 179)), None),
        ("ip4-icmp-message", own().icmp(IcmpRepr::unreachable(1)).payload(&[0; 28]), None),
    ];
    let mut lab = router();
    let refused = |lab: &mut Lab, packet: &Packet, code: Option<u8>| {
        lab.receive_packet(0, 2, packet.clone());
        match code {
            Some(code) => assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, code),
            None => assert!(lab.sent().is_empty()),
        }
    };
    for (i, (name, packet, code)) in cases.iter().enumerate() {
        refused(&mut lab, packet, *code);
        punt::take(&mut lab.c, name, "taker").expect("nobody has it");
        assert_eq!(punt::take(&mut lab.c, name, "taker"), Ok(()));
        let other = punt::take(&mut lab.c, name, "error-drop");
        let taken = PuntError::Taken { reason: (*name).into(), node: "taker" };
        assert_eq!(other, Err(taken));
        let before = lab.dropped();
        lab.receive_packet(0, 2, packet.clone());
        assert!(lab.sent().is_empty());
        let r = reason(&lab, name);
        let len = packet.build().len() as u64;
        assert_eq!((r.packets, r.bytes, r.limited), (1, len, 0), "{name}");
        assert_eq!((punted_on(&lab, 0), lab.dropped()), (i as u64 + 1, before));
        assert_eq!(lab.count("taker", "packets taken"), i as u64 + 1);
        punt::release(&mut lab.c, name).expect("the reason");
        refused(&mut lab, packet, *code);
        assert_eq!(reason(&lab, name).packets, 1);
    }
    let text = lab.cli("show punt stats");
    assert!(text.contains("ip4-no-udp-listener packets:1 bytes:58 limited:0"), "{text}");
    let none = punt::take(&mut lab.c, "no-such", "taker").expect_err("it does not exist");
    assert_eq!(none.to_string(), "no punt reason `no-such'; `show punt reasons' lists them");
    lab.close();
}

/// Packets with a listener, and unsound datagrams, are not punted.
#[test]
fn only_what_nobody_takes_is_punted() {
    let mut lab = router();
    punt::take(&mut lab.c, "ip4-no-udp-listener", "taker").expect("the reason");
    let to = |port| Packet::new().ipv4(ip(0, 2), ip(0, 1)).udp(9, port).payload(&[1; 20]);
    lab.receive_packet(0, 2, to(4789));
    assert_eq!(lab.count("listener", "datagrams heard"), 1);
    let mut long = to(9).build();
    long[24..26].copy_from_slice(&500u16.to_be_bytes());
    lab.receive(0, vec![framed(0, 2, &long)]);
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, 3);
    // A fragment is not punted either: its protocol cannot tell.
    lab.receive_packet(0, 2, to(9).fragment(0, true));
    assert_eq!((reason(&lab, "ip4-no-udp-listener").packets, punted_on(&lab, 0)), (0, 0));
    let text = lab.cli("show punt reasons");
    assert!(
        text.contains("ip4-no-udp-listener from:[ip4 ] class:host limit:10000 to:taker"),
        "{text}"
    );
    lab.close();
}

#[test]
fn the_limit_of_a_reason_can_be_set() {
    let mut lab = setup().workers(2).buffers(4096).start();
    let sw_if = lab.sw_if(0);
    lab.c.enable_feature("ip4-unicast", "punts-all", sw_if, true).expect("the feature");
    punt::take(&mut lab.c, "rare", "taker").expect("the reason");
    let passed = |lab: &mut Lab, limit: &str| {
        lab.ok(&format!("set punt limit rare {limit}"));
        let before = reason(lab, "rare").packets;
        for worker in 0..2 {
            let frame = framed(0, 2, &udp(ip(0, 2), ip(1, 2), 32).build());
            lab.deliver_to(worker, 0, vec![frame; 200]);
        }
        lab.settle();
        reason(lab, "rare").packets - before
    };
    assert_eq!(passed(&mut lab, "0"), 0);
    assert_eq!(passed(&mut lab, "4294967295"), 400);
    assert!(passed(&mut lab, "default") < 100);
    assert_eq!((reason(&lab, "rare").rate, reason(&lab, "rare").burst), (1, 5));
    assert!(lab.cli("set punt limit none 7").contains("no punt reason `none'"));
    lab.ok("set punt limit rare 3");
    assert!(lab.cli("show punt reasons").contains("limit:3 to:taker"));
    lab.close();
}

#[test]
fn each_worker_has_the_limit_of_a_reason() {
    let mut lab = setup().workers(2).buffers(4096).start();
    let sw_if = lab.sw_if(0);
    lab.c.enable_feature("ip4-unicast", "punts-all", sw_if, true).expect("the feature");
    let frames = |n| vec![framed(0, 2, &udp(ip(0, 2), ip(1, 2), 32).build()); n];
    lab.receive(0, frames(3));
    assert_eq!(lab.sent().len(), 3, "nobody takes them");
    punt::take(&mut lab.c, "rare", "taker").expect("the reason");
    for worker in 0..2 {
        lab.deliver_to(worker, 0, frames(200));
    }
    lab.settle();
    let r = reason(&lab, "rare");
    assert_eq!(r.packets + r.limited, 400);
    // Some more if this takes seconds.
    assert!((10..100).contains(&r.packets), "{r:?}");
    assert_eq!(lab.count("punt-dispatch", "punt rate limit exceeded"), r.limited);
    assert_eq!((r.packets, r.packets * 60), (punted_on(&lab, 0), r.bytes));
    // One that is released while packets come is not lost.
    for _ in 0..50 {
        lab.deliver_to(1, 0, frames(20));
        punt::release(&mut lab.c, "rare").expect("the reason");
        lab.deliver_to(0, 0, frames(20));
        punt::take(&mut lab.c, "rare", "taker").expect("the reason");
    }
    lab.settle();
    lab.close();
}
