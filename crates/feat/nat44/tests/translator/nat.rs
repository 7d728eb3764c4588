//! A NAT between `test0`, inside, and `test1`, outside.

use crate::setup;
use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::{framed, ip, sound};
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_feat_nat44::view::{SessionView, all_sessions};
use thalweg_wire::build::Packet;
use thalweg_wire::ipv4;

/// An Internet host behind 10.0.1.2.
pub const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// The pool address.
pub const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// A packet that was sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Out {
    pub port: u8,
    pub worker: usize,
    pub bytes: Vec<u8>,
}

impl Out {
    pub fn view(&self) -> ipv4::Ipv4View<'_> {
        let v = ipv4::check(&self.bytes[14..]).expect("a sound header");
        let payload = v.payload();
        match v.protocol() {
            _ if v.is_fragment() => {}
            6 => {
                let tcp = thalweg_wire::tcp::TcpView::parse(payload).expect("tcp");
                assert!(tcp.checksum_ok(v.pseudo_header()), "tcp checksum of {self:02x?}");
            }
            17 => {
                let udp = thalweg_wire::udp::UdpView::parse(payload).expect("udp");
                assert!(udp.checksum_ok(v.pseudo_header()), "udp checksum of {self:02x?}");
            }
            1 => {
                let icmp = thalweg_wire::icmpv4::IcmpView::parse(payload).expect("icmp");
                assert!(icmp.checksum_ok(), "icmp checksum of {self:02x?}");
            }
            _ => {}
        }
        v
    }
    pub fn src(&self) -> Ipv4Addr {
        self.view().src()
    }
    pub fn dst(&self) -> Ipv4Addr {
        self.view().dst()
    }
    /// Source and destination port; for ICMP queries, the identifier twice.
    pub fn ports(&self) -> (u16, u16) {
        let v = self.view();
        let p = v.payload();
        let word = |at: usize| u16::from_be_bytes([p[at], p[at + 1]]);
        if v.protocol() == 1 { (word(4), word(4)) } else { (word(0), word(2)) }
    }
}

/// A lab with NAT.
pub struct Nat {
    pub lab: Lab,
}

impl Nat {
    pub fn new() -> Nat {
        Nat::of(thalweg_testkit::workers())
    }

    pub fn of(workers: usize) -> Nat {
        Nat::with(workers, "nat44 plugin enable sessions 1000")
    }

    pub fn with(workers: usize, first: &str) -> Nat {
        let mut lab = setup().workers(workers).start();
        lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test1");
        lab.ok(first);
        lab.ok("nat44 add address 192.0.2.1\nset interface nat44 in test0 out test1");
        lab.c.sync();
        Nat { lab }
    }

    /// Adds neighbours for inside hosts, all with the same MAC address.
    pub fn know(&mut self, hosts: std::ops::Range<u8>) {
        hosts.for_each(|host| self.lab.neighbor(0, ip(0, host), host_mac(0, 2)));
    }

    /// The packets sent in response to one received.
    pub fn pass(&mut self, port: u8, packet: Packet) -> Vec<Out> {
        self.pass_all(port, vec![packet.build()])
    }

    pub fn pass_all(&mut self, port: u8, packets: Vec<Vec<u8>>) -> Vec<Out> {
        self.pass_on(0, port, packets)
    }

    pub fn pass_on(&mut self, worker: usize, port: u8, packets: Vec<Vec<u8>>) -> Vec<Out> {
        let frames = packets.iter().map(|p| framed(port, 2, p)).collect();
        self.lab.deliver_to(worker, port, frames);
        self.lab.settle();
        let sent = self.lab.sent_by_workers().into_iter();
        let out = |(sw_if, worker, bytes)| Out { port: self.lab.number(sw_if), worker, bytes };
        sent.map(out).collect()
    }

    /// The only packet sent in response to one received, on a given port.
    pub fn one(&mut self, from: u8, to: u8, packet: Packet) -> Out {
        let mut out = self.pass(from, packet);
        let errors = self.lab.cli("show errors");
        assert_eq!(out.len(), 1, "{out:02x?}\n{errors}");
        assert_eq!(out[0].port, to);
        let out = out.remove(0);
        assert_eq!(out.bytes[..6], host_mac(to, 2).0);
        assert_eq!(out.bytes[6..12], our_mac(to).0);
        out
    }

    pub fn sessions(&mut self) -> Vec<SessionView> {
        all_sessions(&mut self.lab.c)
    }

    /// Waits until the last session has ended.
    pub fn await_no_sessions(&mut self) {
        self.await_sessions(0);
    }

    /// Waits until there are as many sessions.
    pub fn await_sessions(&mut self, wanted: usize) {
        let end = std::time::Instant::now() + thalweg_testkit::WAIT_LIMIT;
        loop {
            let there = self.sessions();
            if there.len() == wanted {
                return;
            }
            let now = std::time::Instant::now();
            assert!(now < end, "{} sessions, not {wanted}: {:?}", there.len(), there.first());
            self.lab.c.run_once(Some(std::time::Duration::from_millis(5)));
        }
    }

    pub fn close(self) {
        self.lab.close();
    }
}

/// A UDP packet.
pub fn udp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Packet {
    Packet::new().ipv4(from.0, to.0).udp(from.1, to.1).payload_len(31)
}

/// A TCP packet.
pub fn tcp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), flags: u8) -> Packet {
    Packet::new().ipv4(from.0, to.0).tcp(from.1, to.1).flags(flags).payload_len(7)
}

/// An ICMP echo request.
pub fn echo(from: Ipv4Addr, to: Ipv4Addr, id: u16) -> Packet {
    Packet::new().ipv4(from, to).icmp_echo_request(id, 1).payload_len(24)
}

#[test]
fn udp_goes_out_and_comes_back() {
    let mut n = Nat::new();
    let out = n.one(0, 1, udp((ip(0, 2), 5000), (FAR, 53)));
    assert_eq!((out.src(), out.dst(), out.ports().1), (SHARED, FAR, 53));
    let port = out.ports().0;
    assert!(port >= 1024);
    // The same packet again, by the fast path; then first and second reply.
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 5000), (FAR, 53))).ports(), (port, 53));
    for _ in 0..2 {
        let back = n.one(1, 0, udp((FAR, 53), (SHARED, port)));
        assert_eq!((back.src(), back.dst(), back.ports()), (FAR, ip(0, 2), (53, 5000)));
    }
    let s = n.sessions();
    assert_eq!(s.len(), 1);
    assert_eq!((s[0].packets, s[0].bytes), (4, 4 * 59));
    assert!(s[0].left > 290_000 && s[0].left <= 300_000, "{:?}", s[0]);
    n.close();
}

#[test]
fn tcp_goes_out_and_comes_back() {
    let mut n = Nat::new();
    let (near, far) = ((ip(0, 2), 40_000), (FAR, 443));
    let out = n.one(0, 1, tcp(near, far, 2));
    let mapped = (SHARED, out.ports().0);
    assert_eq!(n.sessions()[0].left.div_ceil(1000), 240);
    assert_eq!(n.one(1, 0, tcp(far, mapped, 0x12)).dst(), ip(0, 2));
    assert_eq!(n.one(0, 1, tcp(near, far, 0x10)).src(), SHARED);
    assert!(n.sessions()[0].left > 7_400_000);
    for _ in 0..3 {
        let back = n.one(1, 0, tcp(far, mapped, 0x18));
        assert_eq!((back.dst(), back.ports()), (ip(0, 2), (443, 40_000)));
        assert_eq!(n.one(0, 1, tcp(near, far, 0x10)).ports(), (mapped.1, 443));
    }
    n.one(0, 1, tcp(near, far, 0x11));
    n.one(1, 0, tcp(far, mapped, 0x11));
    n.one(0, 1, tcp(near, far, 0x10));
    assert!(n.sessions()[0].left <= 240_000);
    assert_eq!(n.sessions()[0].packets, 12);
    n.close();
}

#[test]
fn pings_go_out_and_come_back() {
    let mut n = Nat::new();
    let out = n.one(0, 1, echo(ip(0, 2), FAR, 77));
    assert_eq!((out.src(), out.dst()), (SHARED, FAR));
    let id = out.ports().0;
    let reply = Packet::new().ipv4(FAR, SHARED).icmp_echo_reply(id, 1).payload_len(24);
    let back = n.one(1, 0, reply);
    assert_eq!((back.dst(), back.ports().0), (ip(0, 2), 77));
    assert!(n.pass(1, echo(FAR, SHARED, id ^ 1)).is_empty());
    n.close();
}

#[test]
fn other_protocols_go_by_address() {
    let mut n = Nat::new();
    let gre = |a, b| Packet::new().ipv4(a, b).gre().payload_len(20);
    assert_eq!(n.one(0, 1, gre(ip(0, 2), FAR)).src(), SHARED);
    assert_eq!(n.one(1, 0, gre(FAR, SHARED)).dst(), ip(0, 2));
    // Another inside host has no address left for it.
    let out = n.pass(0, gre(ip(0, 3), FAR));
    assert_eq!(out.iter().map(|o| o.port).collect::<Vec<_>>(), [0], "an ICMP error");
    n.close();
}

#[test]
fn strangers_are_dropped_unless_forwarding_is_on() {
    let mut n = Nat::new();
    let stranger = || udp((FAR, 9), (ip(0, 2), 9));
    assert!(n.pass(1, stranger()).is_empty());
    assert!(n.pass(1, udp((FAR, 9), (SHARED, 2000))).is_empty());
    assert_eq!(n.lab.count("nat44-ed-out2in", "no translation"), 2);
    n.lab.ok("nat44 forwarding enable");
    assert_eq!(n.one(1, 0, stranger()).src(), FAR);
    assert!(n.pass(1, udp((FAR, 9), (SHARED, 2000))).is_empty());
    // Pings to the router itself are answered on both sides.
    let reply = n.one(1, 1, echo(ip(1, 2), ip(1, 1), 1));
    assert_eq!(reply.dst(), ip(1, 2));
    assert_eq!(n.one(0, 0, echo(ip(0, 2), ip(0, 1), 1)).src(), ip(0, 1));
    // Packets that do not go outside are not translated.
    let out = n.pass(0, udp((ip(0, 2), 1), (ip(2, 2), 2)));
    assert_eq!((out[0].port, out[0].src()), (2, ip(0, 2)));
    // The stranger's flow is known, so that its answers are not translated, until forwarding ends.
    assert_eq!(n.sessions().iter().map(|s| s.is_direct()).collect::<Vec<_>>(), [true]);
    n.lab.ok("nat44 forwarding disable");
    n.await_no_sessions();
    n.close();
}

#[test]
fn packets_to_unmapped_addresses_open_no_session() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add static mapping udp local 10.0.0.3 53 external 192.0.2.1 53\n\
              nat44 add address 10.0.1.77\nnat44 add interface address test1\n\
              ip route add 192.0.2.0/24 via 10.0.1.2 test1");
    let wrong = [(SHARED, 54), (Ipv4Addr::new(10, 0, 1, 77), 53)];
    for to in wrong {
        assert!(n.pass(0, udp((ip(0, 2), 5000), to)).is_empty());
        assert!(n.pass(0, tcp((ip(0, 2), 5000), to, 2)).is_empty());
    }
    assert_eq!(n.lab.count("nat44-ed-in2out", "no translation"), 4);
    assert!(n.sessions().is_empty());
    // The router replies from its own address, shared or not.
    assert_eq!(n.one(0, 0, echo(ip(0, 2), ip(1, 1), 1)).src(), ip(1, 1));
    n.close();
}

#[test]
fn errors_about_what_was_sent_come_back() {
    let mut n = Nat::new();
    for first in [
        udp((ip(0, 2), 5000), (FAR, 53)),
        tcp((ip(0, 2), 5000), (FAR, 80), 2),
        echo(ip(0, 2), FAR, 9),
    ] {
        let sent = first.clone().ttl(63).build();
        let out = n.one(0, 1, first);
        let hop = Ipv4Addr::new(203, 0, 113, 5);
        let quoted = out.bytes[14..].to_vec();
        let mut error = vec![0; 1500];
        let view = ipv4::Ipv4View::parse(&quoted).unwrap();
        let repr = thalweg_wire::icmpv4::IcmpRepr::ttl_exceeded();
        let len = thalweg_wire::icmpv4::emit_error(repr, hop, &view, &mut error).unwrap();
        error.truncate(len);
        let back = n.pass_all(1, vec![error]);
        assert_eq!(back.len(), 1);
        assert_eq!((back[0].src(), back[0].dst()), (hop, ip(0, 2)));
        // The quoted packet equals the original, including checksums.
        let v = back[0].view();
        let quote = &v.payload()[8..];
        assert_eq!(quote, &sent[..quote.len()], "{:02x?}", back[0]);
    }
    n.close();
}

#[test]
fn the_routers_own_errors_are_about_what_was_sent() {
    let mut n = Nat::new();
    // The TTL expires here, on the way out.
    let sent = udp((ip(0, 2), 5000), (FAR, 33_434)).ttl(1).build();
    let out = n.pass_all(0, vec![sent.clone()]);
    assert_eq!((out.len(), out[0].port, out[0].src(), out[0].dst()), (1, 0, ip(0, 1), ip(0, 2)));
    assert_eq!(out[0].view().payload()[8..36], sent[..28]);
    assert!(n.sessions().is_empty());
    // The packet is too large for the outside.
    n.lab.ok("set interface mtu packet 600 test1");
    let sent = Packet::new().ipv4(ip(0, 2), FAR).udp(5000, 53).payload_len(900).dont_fragment();
    let out = n.pass_all(0, vec![sent.build()]);
    assert_eq!((out.len(), out[0].port, out[0].src(), out[0].dst()), (1, 0, ip(0, 1), ip(0, 2)));
    let sent = sent.build();
    // Its TTL was decremented by then.
    assert_eq!(out[0].view().payload()[20..36], sent[12..28]);
    // The TTL expires on the way in.
    let port = n.sessions()[0].mapped().1;
    let back = udp((FAR, 53), (SHARED, port)).ttl(1).build();
    let out = n.pass_all(1, vec![back.clone()]);
    assert_eq!((out.len(), out[0].port, out[0].src(), out[0].dst()), (1, 1, ip(1, 1), FAR));
    assert_eq!(out[0].view().payload()[8..36], back[..28]);
    n.close();
}

#[test]
fn arp_requests_for_shared_addresses_are_answered() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add address 10.0.1.77");
    let ask = |target| Packet::arp_request(host_mac(1, 2), ip(1, 2), target).padded().build();
    n.lab.receive(1, vec![ask(Ipv4Addr::new(10, 0, 1, 77))]);
    assert_eq!(n.lab.sent().len(), 1);
    n.lab.receive(1, vec![ask(Ipv4Addr::new(10, 0, 1, 78)), ask(SHARED)]);
    assert_eq!(n.lab.sent().len(), 0);
    n.lab.ok("nat44 add address 10.0.1.77 del");
    n.lab.receive(1, vec![ask(Ipv4Addr::new(10, 0, 1, 77))]);
    assert_eq!(n.lab.sent().len(), 0);
    n.close();
}

/// `test1` is outside, and its table has the external addresses. `test0` is a tenant's, with the
/// same subnet; `test2` is in the table of `test1`, borrows its subnet, and has no role.
#[test]
fn arp_requests_for_shared_addresses_are_answered_where_these_are_translated() {
    let mut lab = setup().start();
    lab.ok("set interface ip address del test0 all\n\
            set interface ip address del test2 all\n\
            set interface unnumbered test2 use test1\n\
            ip table add 7\n\
            set interface ip table test0 7\n\
            set interface ip address test0 10.0.1.1/24\n\
            nat44 plugin enable sessions 1000\n\
            nat44 add address 10.0.1.77\n\
            nat44 add static mapping tcp local 10.0.1.9 80 external 10.0.1.78 80 vrf 7\n\
            nat44 add address 10.0.1.99 twice-nat\n\
            nat44 add address 10.0.1.98 twice-nat tenant-vrf 7");
    let mut answered = |command: &str| -> Vec<(u8, u8)> {
        lab.ok(command);
        lab.c.sync();
        let mut all = Vec::new();
        for (on, host) in (0..3).flat_map(|on| [77, 78, 98, 99].map(|host| (on, host))) {
            let request = Packet::arp_request(host_mac(on, 2), ip(1, 2), ip(1, host));
            lab.receive(on, vec![request.padded().build()]);
            let sent = lab.sent();
            assert!(sent.iter().all(|(i, _)| *i == lab.sw_if(on)));
            all.extend(sent.iter().map(|_| (on, host)));
        }
        all
    };
    assert_eq!(answered("comment nothing translates"), []);
    let outside = [(1, 77), (1, 78)];
    assert_eq!(answered("set interface nat44 out test1"), outside);
    // Inside hosts of another table: only what they answer to.
    let twice = [(0, 98), (0, 99)];
    assert_eq!(answered("set interface nat44 in test0"), [twice, outside].concat());
    // Hosts of the same table may call each other by external addresses.
    let inside = [(2, 77), (2, 78), (2, 99)];
    let all = [&twice[..], &outside, &inside].concat();
    assert_eq!(answered("set interface nat44 in test2"), all);
    // An interface moves to another table.
    let moved = [&twice[..], &outside, &[(2, 98), (2, 99)]].concat();
    assert_eq!(answered("set interface ip table test2 7"), moved);
    assert_eq!(answered("set interface ip table test2 0"), all);
    // A mapping more, and one less, at a time.
    let mapping = "nat44 add static mapping tcp local 10.0.1.9 80 external 10.0.1.78 80 vrf 7";
    let less = all.iter().filter(|(_, host)| *host != 78).copied().collect::<Vec<_>>();
    assert_eq!(answered(&format!("{mapping} del")), less);
    assert_eq!(answered(mapping), all);
    assert_eq!(answered("set interface nat44 out test1 del"), [&twice[..], &[(2, 99)]].concat());
    lab.close();
}

#[test]
fn on_the_way_out_of_an_interface() {
    let mut n = Nat::new();
    n.lab.ok("set interface nat44 in test0 out test1 del\n\
              set interface nat44 out test1 output-feature");
    let out = n.one(0, 1, udp((ip(0, 2), 5000), (FAR, 53)));
    let port = out.ports().0;
    assert_eq!(out.src(), SHARED);
    assert_eq!(n.one(2, 1, udp((ip(2, 2), 5000), (FAR, 53))).src(), SHARED);
    for _ in 0..2 {
        assert_eq!(n.one(0, 1, udp((ip(0, 2), 5000), (FAR, 53))).ports().0, port);
        assert_eq!(n.one(1, 0, udp((FAR, 53), (SHARED, port))).ports(), (53, 5000));
    }
    let out = n.pass(0, udp((ip(0, 2), 1), (ip(2, 2), 2)));
    assert_eq!((out[0].port, out[0].src()), (2, ip(0, 2)));
    // The router's own packets are not translated.
    assert_eq!(n.one(1, 1, echo(ip(1, 2), ip(1, 1), 1)).src(), ip(1, 1));
    n.close();
}

/// A NAT on the way out of `test1`, with a small MTU there.
fn narrow_on_the_way_out(workers: usize) -> Nat {
    let mut n = Nat::of(workers);
    n.lab.ok("set interface nat44 in test0 out test1 del\n\
              set interface nat44 out test1 output-feature\n\
              set interface mtu packet 1500 test1");
    n
}

/// No packet leaves with its inside address, whichever side opens the flow, and however its packets
/// are cut.
#[test]
fn fragments_made_here_are_translated() {
    for workers in [1, 2] {
        let mut n = narrow_on_the_way_out(workers);
        for round in 0..3 {
            for worker in 0..workers {
                let long = udp((ip(0, 2), 5000), (FAR, 53)).payload_len(3000).id(7 + round);
                let out = n.pass_on(worker, 0, vec![long.build()]);
                assert_eq!(out.len(), 3, "{out:02x?}");
                for (i, part) in out.iter().enumerate() {
                    let v = part.view();
                    assert_eq!((part.port, v.src(), v.ttl()), (1, SHARED, 63));
                    assert_eq!(v.more_fragments(), i < 2);
                }
            }
        }
        assert_eq!(n.sessions().len(), 1);
        n.close();
    }
}

#[test]
fn segments_made_here_are_translated() {
    let mut n = narrow_on_the_way_out(1);
    for flags in [2, 0x10, 0x10] {
        let packet = tcp((ip(0, 2), 5000), (FAR, 80), flags).payload_len(2900).build();
        let offload = thalweg_buffer::Offload {
            gso_size: 1400,
            hdr_len: 40,
            csum_start: 20,
            csum_offset: 16,
            needs_csum: true,
            gso: thalweg_buffer::GsoKind::Tcp4,
            ..Default::default()
        };
        n.lab.receive_offload(0, framed(0, 2, &packet), offload);
        let sent = n.lab.sent();
        assert_eq!(sent.len(), 3);
        for (sw_if, bytes) in sent {
            let out = Out { port: 1, worker: 0, bytes };
            assert_eq!((sw_if, out.src(), out.view().ttl()), (n.lab.sw_if(1), SHARED, 63));
        }
    }
    assert_eq!(n.sessions().len(), 1);
    n.close();
}

#[test]
fn answers_find_the_worker_that_asked() {
    let mut n = Nat::of(2);
    let mut owners = std::collections::BTreeSet::new();
    for host in 2..=12 {
        n.lab.neighbor(0, ip(0, host), host_mac(0, host));
        for port in 5000..5003 {
            for arrives in [0, 1] {
                let ask = udp((ip(0, host), port), (FAR, 53)).build();
                let out = n.pass_on(arrives, 0, vec![ask]);
                assert_eq!((out.len(), out[0].src()), (1, SHARED));
                let mapped = out[0].ports().0;
                owners.insert(out[0].worker);
                assert_eq!(usize::from(mapped >= 1024 + 32_256), out[0].worker);
                let back = udp((FAR, 53), (SHARED, mapped)).build();
                let back = n.pass_on(1 - arrives, 1, vec![back]);
                assert_eq!((back.len(), back[0].dst()), (1, ip(0, host)));
                assert_eq!(back[0].worker, out[0].worker);
            }
        }
    }
    assert_eq!(n.sessions().len(), 33);
    assert_eq!(owners.len(), 2, "hosts of one worker only: {owners:?}");
    n.close();
}

#[test]
fn a_frame_is_made_sound_of() {
    // The slow path handles the first packet, the fast path the rest, with the same result.
    let mut n = Nat::new();
    let flows: Vec<Vec<u8>> =
        (0..200).map(|i| udp((ip(0, 2), 5000 + i), (FAR, 53)).build()).collect();
    let first = n.pass_all(0, flows.clone());
    let second = n.pass_all(0, flows.clone());
    let bytes = |all: &[Out]| {
        let mut all: Vec<_> = all.iter().map(|o| o.bytes.clone()).collect();
        all.sort();
        all
    };
    assert_eq!(first.len(), 200);
    assert_eq!(bytes(&first), bytes(&second));
    second.iter().for_each(|o| assert_eq!(o.src(), SHARED));
    let back: Vec<Vec<u8>> =
        second.iter().map(|o| udp((FAR, 53), (SHARED, o.ports().0)).build()).collect();
    for _ in 0..2 {
        let got = n.pass_all(1, back.clone());
        let mut ports: Vec<u16> = got.iter().map(|o| o.ports().1).collect();
        ports.sort_unstable();
        assert_eq!(ports, (5000..5200).collect::<Vec<u16>>());
    }
    let _ = sound(0, 2, &n.one(1, 0, udp((FAR, 53), (SHARED, second[0].ports().0))).bytes);
    n.close();
}

#[test]
fn fragments_go_the_way_of_the_first() {
    for workers in [1, 2] {
        let mut n = Nat::of(workers);
        let whole =
            Packet::new().ipv4(ip(0, 2), FAR).udp(5000, 53).payload_len(1400).id(77).build();
        let pieces = |whole: &[u8]| -> Vec<Vec<u8>> {
            let (header, payload) = whole.split_at(20);
            let cut = |at: usize, end: usize, more: bool| {
                let mut p = [header, &payload[at..end]].concat();
                let len = p.len() as u16;
                p[2..4].copy_from_slice(&len.to_be_bytes());
                let word = (at / 8) as u16 | u16::from(more) << 13;
                p[6..8].copy_from_slice(&word.to_be_bytes());
                ipv4::fill_checksum(&mut p).expect("a header");
                p
            };
            vec![cut(0, 600, true), cut(600, 1200, true), cut(1200, payload.len(), false)]
        };
        let out = n.pass_all(0, pieces(&whole));
        assert_eq!(out.len(), 3);
        let mut got = Vec::new();
        for o in &out {
            assert_eq!((o.src(), o.dst()), (SHARED, FAR));
            let v = o.view();
            got.resize(got.len().max(v.fragment_offset() + v.payload().len()), 0);
            got[v.fragment_offset()..][..v.payload().len()].copy_from_slice(v.payload());
        }
        let pseudo = thalweg_wire::checksum::pseudo_v4(SHARED, FAR, 17, got.len() as u32);
        assert!(thalweg_wire::udp::UdpView::parse(&got).unwrap().checksum_ok(pseudo));
        let port = u16::from_be_bytes([got[0], got[1]]);
        let back = Packet::new().ipv4(FAR, SHARED).udp(53, port).payload_len(1400).id(9).build();
        for worker in 0..workers {
            let back = n.pass_on(worker, 1, pieces(&back));
            assert_eq!(back.iter().map(Out::dst).collect::<Vec<_>>(), [ip(0, 2); 3]);
        }
        // Pieces come in any order.
        for worker in 0..workers {
            let mut back = pieces(&back);
            back.iter_mut().for_each(|p| {
                p[4] = 20 + worker as u8;
                ipv4::fill_checksum(p).expect("a header");
            });
            back.reverse();
            let first = back.pop().expect("three");
            let out = n.pass_on(worker, 1, [back, vec![first]].concat());
            assert_eq!(out.iter().map(Out::dst).collect::<Vec<_>>(), [ip(0, 2); 3]);
        }
        // A fragment whose first one is missing.
        let mut lost = pieces(&whole);
        lost.iter_mut().for_each(|p| {
            p[4] = 9;
            ipv4::fill_checksum(p).expect("a header");
        });
        assert!(n.pass_all(0, lost.split_off(1)).is_empty());
        n.close();
    }
}

#[test]
fn waiting_fragments_end_with_their_interface() {
    for workers in [1, 2] {
        let mut n = Nat::of(workers);
        let lonely = |from: Ipv4Addr, id| {
            let mut part =
                Packet::new().ipv4(from, FAR).udp(5000, 53).payload_len(600).id(id).build();
            part[6..8].copy_from_slice(&75u16.to_be_bytes());
            ipv4::fill_checksum(&mut part).expect("a header");
            part
        };
        n.lab.ok("set interface nat44 in test2");
        for (port, id) in [(0, 1), (2, 2), (2, 3)] {
            n.lab.deliver_to(0, port, vec![framed(port, 2, &lonely(ip(port, 2), id))]);
        }
        // Twice, as one worker may hand them to the other.
        n.lab.seen();
        n.lab.c.sync();
        n.lab.c.sync();
        let gone = n.lab.sw_if(2);
        thalweg_device::interface::delete(&mut n.lab.c, gone).expect("it exists");
        n.lab.c.sync();
        let ended = "interface of a waiting fragment is deleted";
        let errors = n.lab.cli("show errors");
        assert_eq!(n.lab.count("nat44-ed-ticker", ended), 2, "{errors}");
        n.close();
    }
}
