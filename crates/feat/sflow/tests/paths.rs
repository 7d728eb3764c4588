//! Samples of packets that are routed, bridged, answered and dropped by the real features, held
//! against the packets that came and left.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;
use thalweg_buffer::{GsoKind, Offload};
use thalweg_device::testing::ip4::ip;
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_device::{SwIfIndex, TagMatch, VlanTag, interface};
use thalweg_sflow::{Datagram, FlowRecord, Interface, Sample};
use thalweg_wire::build::Packet;

/// Bytes of a sampled packet that are sent.
const HEADER: usize = 128;
/// Ports 0 and 1 are routed, 2, 3 and 4 bridged, and this one carries IP packets alone.
const TUNNEL: u8 = 5;

/// A sample, without what differs from one run to the next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Taken {
    source: SwIfIndex,
    input: u32,
    output: String,
    protocol: u32,
    stripped: u32,
    frame_length: usize,
    header: Vec<u8>,
    /// VLAN and priority in and out.
    vlans: Option<[u32; 4]>,
    /// Prefix lengths of source and destination.
    router: Option<(u32, u32)>,
}

/// A discarded packet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Discard {
    input: u32,
    protocol: u32,
    stripped: u32,
    frame_length: usize,
    header: Vec<u8>,
}

struct Router {
    lab: Lab,
    socket: UdpSocket,
    taken: Vec<Taken>,
    discards: Vec<Discard>,
    /// Samples that were lost, by the last one.
    lost: u32,
}

impl Router {
    fn new(workers: usize) -> Router {
        let (ip4, ip6) = (&thalweg_feat_ip4::FEATURE, &thalweg_feat_ip6::FEATURE);
        let sampled = Lab::of(&thalweg_feat_sflow::FEATURE).with(&thalweg_feat_flow::FEATURE);
        let setup = sampled.with(ip4).with(ip6).workers(workers).buffers(8192);
        let mut lab = setup.interfaces(5).start();
        lab.tunnel(TUNNEL);
        for n in [0, 1, TUNNEL] {
            lab.ok(&format!("set interface ip address test{n} {}/24", ip(n, 1)));
        }
        for n in [0, 1] {
            lab.neighbor(n, ip(n, 2), host_mac(n, 2));
        }
        for n in 2..5 {
            lab.ok(&format!("set interface l2 bridge test{n} 1"));
        }
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(5))).expect("a timeout");
        let port = socket.local_addr().expect("an address").port();
        lab.ok(&format!("sflow collector add 127.0.0.1 port {port}"));
        lab.ok("sflow agent-address 192.0.2.7");
        lab.ok("sflow sampling-rate 1");
        lab.ok("sflow direction both");
        for n in 0..=TUNNEL {
            lab.ok(&format!("sflow enable test{n}"));
        }
        lab.c.sync();
        let (taken, discards) = (Vec::new(), Vec::new());
        Router { lab, socket, taken, discards, lost: 0 }
    }

    fn receive_datagram(&mut self) -> bool {
        let mut buf = [0; 65_536];
        let Ok(n) = self.socket.recv(&mut buf) else { return false };
        let datagram = Datagram::parse(&buf[..n]).expect("a datagram");
        for sample in datagram.samples() {
            match sample.expect("a sample") {
                Sample::Flow(f) => {
                    let mut taken = Taken {
                        source: SwIfIndex(f.source.index),
                        input: index(f.input),
                        output: f.output.to_string(),
                        protocol: 0,
                        stripped: 0,
                        frame_length: 0,
                        header: Vec::new(),
                        vlans: None,
                        router: None,
                    };
                    for record in f.records {
                        match record.expect("a record") {
                            FlowRecord::RawHeader(raw) => {
                                taken.protocol = raw.protocol.0;
                                taken.stripped = raw.stripped;
                                taken.frame_length = raw.frame_length as usize;
                                taken.header = raw.header.to_vec();
                            }
                            FlowRecord::Switch(s) => {
                                let before = [s.source_vlan, s.source_priority];
                                let after = [s.destination_vlan, s.destination_priority];
                                let [[a, b], [c, d]] = [before, after];
                                taken.vlans = Some([a, b, c, d]);
                            }
                            FlowRecord::Router(r) => {
                                taken.router = Some((r.source_mask, r.destination_mask));
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                    self.lost = f.drops;
                    self.taken.push(taken);
                }
                Sample::Discard(d) => {
                    for record in d.records {
                        if let FlowRecord::RawHeader(raw) = record.expect("a record") {
                            self.discards.push(Discard {
                                input: d.input,
                                protocol: raw.protocol.0,
                                stripped: raw.stripped,
                                frame_length: raw.frame_length as usize,
                                header: raw.header.to_vec(),
                            });
                        }
                    }
                }
                _ => {}
            }
        }
        true
    }

    /// Takes the samples, of which there are `n`.
    fn samples(&mut self, n: usize) -> Vec<Taken> {
        self.lab.settle();
        let start = std::time::Instant::now();
        while self.taken.len() < n {
            let seen = self.taken.len();
            assert!(start.elapsed() < thalweg_testkit::WAIT_LIMIT, "{seen} samples of {n}");
            self.receive_datagram();
            self.lab.c.run_once(Some(Duration::ZERO));
        }
        assert_eq!(self.taken.len(), n, "samples");
        std::mem::take(&mut self.taken)
    }

    fn discard(&mut self) -> Discard {
        self.lab.settle();
        let start = std::time::Instant::now();
        while self.discards.is_empty() {
            assert!(start.elapsed() < thalweg_testkit::WAIT_LIMIT, "no discarded packet");
            self.receive_datagram();
            self.lab.c.run_once(Some(Duration::ZERO));
        }
        self.taken.clear();
        self.discards.remove(0)
    }

    /// A sample of a packet that came by one port and leaves by another.
    fn sample(&self, port: u8, bytes: &[u8]) -> Taken {
        let (protocol, stripped) = if port == TUNNEL { (11, 0) } else { (1, 4) };
        Taken {
            source: self.lab.sw_if(port),
            input: 0,
            output: String::new(),
            protocol,
            stripped,
            frame_length: bytes.len() + stripped as usize,
            header: bytes[..bytes.len().min(HEADER)].to_vec(),
            vlans: None,
            router: None,
        }
    }
}

fn index(interface: Interface) -> u32 {
    match interface {
        Interface::Index(index) => index,
        other => panic!("{other:?}"),
    }
}

const INTERNAL: u32 = 0x3fff_ffff;

/// The fate of a packet.
#[derive(Debug, Clone, Copy)]
enum Way {
    Routed {
        from: u8,
        to: u8,
    },
    Bridged {
        from: u8,
        to: u8,
        tags: usize,
        priority: u16,
    },
    Echo {
        from: u8,
    },
    Expired {
        from: u8,
        to: u8,
    },
    /// A GSO packet, with segments of this size.
    Super {
        from: u8,
        to: u8,
        size: u16,
    },
}

fn routed_port() -> impl Strategy<Value = u8> {
    prop::sample::select([0, 1, TUNNEL].as_slice())
}

fn ways() -> impl Strategy<Value = Way> {
    let pair = || (routed_port(), routed_port()).prop_filter("two ports", |(a, b)| a != b);
    prop_oneof![
        3 => pair().prop_map(|(from, to)| Way::Routed { from, to }),
        3 => (2u8..5, 1u8..3, 0usize..4, 0u16..8).prop_map(|(from, by, tags, priority)| {
            Way::Bridged { from, to: 2 + (from - 2 + by) % 3, tags, priority }
        }),
        1 => routed_port().prop_map(|from| Way::Echo { from }),
        1 => pair().prop_map(|(from, to)| Way::Expired { from, to }),
        1 => (pair(), 100u16..1500).prop_map(|((from, to), size)| Way::Super { from, to, size }),
    ]
}

/// The packet as it comes, `payload` bytes behind its headers.
fn packet(way: Way, payload: usize) -> (u8, Vec<u8>) {
    let payload: Vec<u8> = (0..payload).map(|i| (i / 3) as u8).collect();
    let link = |from: u8| match from {
        TUNNEL => Packet::new(),
        n => Packet::new().ether(host_mac(n, 2), our_mac(n)),
    };
    match way {
        Way::Routed { from, to } => {
            let ip = link(from).ipv4(ip(from, 2), ip(to, 2));
            (from, ip.udp(1000, 2000).payload(&payload).build())
        }
        Way::Super { from, to, .. } => (from, tcp(from, to, payload.len())),
        Way::Expired { from, to } => {
            let ip = link(from).ipv4(ip(from, 2), ip(to, 2)).ttl(1);
            (from, ip.udp(1000, 2000).payload(&payload).build())
        }
        Way::Echo { from } => {
            let ip = link(from).ipv4(ip(from, 2), ip(from, 1));
            (from, ip.icmp_echo_request(7, 1).payload(&payload).build())
        }
        Way::Bridged { from, to, tags, priority } => {
            let mut frame: Vec<u8> = [host_mac(to, 2).0, host_mac(from, 2).0].concat();
            for tag in 0..tags as u16 {
                frame.extend([0x81, 0]);
                frame.extend((priority << 13 | (100 + tag)).to_be_bytes());
            }
            frame.extend([0x88, 0xb5]);
            frame.extend(payload);
            (from, frame)
        }
    }
}

/// Returns the expected samples of a packet, as it comes and as it left: that is `sent`.
fn expected(r: &Router, way: Way, came: &[u8], sent: &[(SwIfIndex, Vec<u8>)]) -> Vec<Taken> {
    let port_of = |sw_if| (0..=TUNNEL).find(|n| r.lab.sw_if(*n) == sw_if).expect("a port");
    let sw_if = |n| r.lab.sw_if(n).0;
    let (from, output, input, vlans, router) = match way {
        Way::Routed { from, to } | Way::Super { from, to, .. } => {
            (from, sw_if(to).to_string(), sw_if(from), None, Some((24, 24)))
        }
        Way::Bridged { from, to, tags, priority } => {
            let vlan = [100, u32::from(priority)];
            let vlans = (tags > 0).then_some([vlan[0], vlan[1], vlan[0], vlan[1]]);
            (from, sw_if(to).to_string(), sw_if(from), vlans, None)
        }
        Way::Echo { from } => (from, INTERNAL.to_string(), INTERNAL, None, None),
        Way::Expired { from, .. } => (from, "dropCode 257".into(), INTERNAL, None, None),
    };
    let rx = |came: &[u8]| Taken {
        input: sw_if(from),
        output: output.clone(),
        vlans,
        router,
        ..r.sample(from, came)
    };
    let rx: Vec<Taken> = match way {
        Way::Super { from, to, .. } => {
            sent.iter().map(|(_, segment)| rx(&before_routing(from, to, segment, came))).collect()
        }
        _ => vec![rx(came)],
    };
    let tx = sent.iter().map(|(sw_if, frame)| {
        let router = match way {
            Way::Routed { .. } | Way::Bridged { .. } | Way::Super { .. } => router,
            // The router's own address has a route of its own.
            Way::Echo { .. } | Way::Expired { .. } => Some((32, 24)),
        };
        Taken {
            input,
            output: sw_if.to_string(),
            vlans,
            router,
            ..r.sample(port_of(*sw_if), frame)
        }
    });
    rx.into_iter().chain(tx).collect()
}

/// A segment as it was when it came: with that link header, and not forwarded yet.
fn before_routing(from: u8, to: u8, segment: &[u8], came: &[u8]) -> Vec<u8> {
    let link = |n: u8| if n == TUNNEL { 0 } else { 14 };
    let mut before = [&came[..link(from)], &segment[link(to)..]].concat();
    let ip = &mut before[link(from)..];
    ip[8] += 1;
    thalweg_wire::ipv4::fill_checksum(ip).unwrap();
    before
}

/// Checksums of samples of segments are those of their headers.
fn without_tcp_checksum(mut taken: Taken) -> Taken {
    let ip = if taken.protocol == 1 { 14 } else { 0 };
    let is_tcp = taken.header.get(ip).is_some_and(|b| *b == 0x45) && taken.header[ip + 9] == 6;
    if is_tcp && taken.vlans.is_none() {
        taken.header[ip + 36..ip + 38].fill(0);
    }
    taken
}

/// Lets the bridge learn where its hosts are.
fn learn(r: &mut Router) {
    for n in 2..5 {
        let way = Way::Bridged { from: n, to: 2 + (n - 1) % 3, tags: 0, priority: 0 };
        let (from, frame) = packet(way, 46);
        r.lab.receive(from, vec![frame]);
    }
    r.lab.until("its hosts are learned", |lab| {
        lab.c.state::<thalweg_feat_l2::L2>().borrow().bridges().count().0 == 3
    });
    let sent = r.lab.sent().len();
    r.samples(3 + sent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Lengths, strip counts, header protocols, directions, VLANs and prefix lengths.
    #[test]
    fn samples_say_what_came_and_left(
        workers in 1usize..3,
        packets in prop::collection::vec((ways(), 0usize..300, any::<bool>(), any::<bool>()), 1..40),
    ) {
        let mut r = Router::new(workers);
        learn(&mut r);
        let mut all = Vec::new();
        for (way, payload, jumbo, other) in packets {
            let payload = if jumbo { payload * 28 } else { payload };
            let (from, frame) = packet(way, payload);
            let worker = usize::from(other) % workers;
            match way {
                Way::Super { size, .. } => r.lab.receive_offload(from, frame.clone(), gso(size)),
                _ => r.lab.deliver_to(worker, from, vec![frame.clone()]),
            }
            r.lab.settle();
            let sent = r.lab.sent();
            all.extend(expected(&r, way, &frame, &sent));
        }
        let taken = r.samples(all.len());
        let [mut taken, mut all] =
            [taken, all].map(|all| all.into_iter().map(without_tcp_checksum).collect::<Vec<_>>());
        taken.sort_unstable();
        all.sort_unstable();
        prop_assert_eq!(taken, all);
        prop_assert_eq!(r.lost, 0);
        r.lab.close();
    }
}

fn tcp(from: u8, to: u8, payload: usize) -> Vec<u8> {
    let packet = match from {
        TUNNEL => Packet::new(),
        n => Packet::new().ether(host_mac(n, 2), our_mac(n)),
    };
    let data: Vec<u8> = (0..payload).map(|i| (i / 7) as u8).collect();
    packet.ipv4(ip(from, 2), ip(to, 2)).tcp(80, 81).payload(&data).build()
}

fn gso(size: u16) -> Offload {
    let (needs_csum, csum_start, csum_offset) = (true, 20, 16);
    Offload {
        gso: GsoKind::Tcp4,
        gso_size: size,
        needs_csum,
        csum_start,
        csum_offset,
        ..Offload::default()
    }
}

/// A GSO packet is sampled as its segments, with and without an Ethernet header.
#[test]
fn super_packets_are_sampled_as_on_the_wire() {
    let mut r = Router::new(1);
    for (from, to) in [(0, 1), (0, TUNNEL), (TUNNEL, 0)] {
        r.lab.receive_offload(from, tcp(from, to, 3300), gso(1000));
        let sent = r.lab.sent();
        let lengths =
            |from: u8| [1040, 1040, 1040, 340].map(|n| if from == TUNNEL { n } else { n + 14 });
        assert_eq!(sent.iter().map(|(_, f)| f.len()).collect::<Vec<_>>(), lengths(to));
        let taken = r.samples(8);
        for (port, protocol) in
            [(from, 0), (to, 0)].map(|(n, _)| (n, if n == TUNNEL { 11 } else { 1 }))
        {
            let of: Vec<_> = taken.iter().filter(|t| t.source == r.lab.sw_if(port)).collect();
            let stripped = if port == TUNNEL { 0 } else { 4 };
            let expected = lengths(port).map(|n| (n + stripped, protocol));
            let seen: Vec<_> = of.iter().map(|t| (t.frame_length, t.protocol)).collect();
            assert_eq!(seen, expected, "{from} to {to} at {port}");
            assert!(of.iter().all(|t| t.router == Some((24, 24))));
        }
        let counted = r.lab.c.worker_stats(0).interface(r.lab.sw_if(from));
        assert!(counted.rx_error.get() == 0);
    }
    r.lab.close();
}

/// The cost of a packet is bounded, whatever segment size a sender writes: its samples are, and the
/// segments that it may have.
#[test]
fn what_one_packet_costs_has_a_limit() {
    let mut r = Router::new(1);
    r.lab.ok("sflow direction rx");
    // At 1:1: of 2,000 segments, 128 are taken and the rest is lost.
    r.lab.receive_offload(0, tcp(0, 1, 60_000), gso(30));
    assert_eq!(r.lab.sent().len(), 2000);
    r.samples(128);
    r.lab.receive_offload(0, tcp(0, 1, 100), gso(100));
    r.samples(1);
    assert_eq!(r.lost, 2000 - 128);
    r.lab.sent();
    // More segments than any sender needs: one packet, which cannot be cut.
    for size in [1, 29] {
        r.lab.receive_offload(0, tcp(0, 1, 60_000), gso(size));
        assert!(r.lab.sent().is_empty());
        let taken = r.samples(1);
        assert_eq!((taken[0].frame_length, &*taken[0].output), (60_058, "dropCode 275"));
    }
    // Its drops cost no more than the limit allows, either.
    r.lab.ok("sflow drop-monitoring enable limit 1000000");
    r.lab.ok("set interface state test1 down");
    r.lab.receive_offload(0, tcp(0, 1, 60_000), gso(30));
    let dropped = r.lab.count("sflow", "sflow discards processed");
    assert_eq!(dropped, 2000);
    assert_eq!(r.lab.count("sflow", "sflow discards dropped"), 2000 - 128);
    r.lab.close();
}

/// The tags of bridged frames are known on both sides, when flooded as well; what a rule has
/// changed is not.
#[test]
fn tags_of_bridged_frames_are_known_where_they_are_not_changed() {
    let mut r = Router::new(1);
    learn(&mut r);
    let way = Way::Bridged { from: 2, to: 3, tags: 1, priority: 5 };
    let mut frame = packet(way, 100).1;
    frame[..6].fill(0xff);
    let both = Some([100, 5, 100, 5]);
    r.lab.receive(2, vec![frame.clone()]);
    let taken = r.samples(3);
    let rx = taken.iter().find(|t| t.source == r.lab.sw_if(2)).unwrap();
    assert_eq!((&*rx.output, rx.vlans), ("multiple 2", both));
    assert!(taken.iter().all(|t| t.vlans == both && t.input == r.lab.sw_if(2).0));
    // A rule sends it with another tag, or without one.
    let unknown = u32::MAX;
    for (table, actions, after) in
        [(7, "mod_vlan_vid:9,normal", Some([9, 5])), (8, "strip_vlan,normal", None)]
    {
        r.lab.ok(&format!("flow add {table} 'actions={actions}'"));
        r.lab.ok(&format!("set interface flow test2 {table}"));
        frame[..6].copy_from_slice(&host_mac(3, 2).0);
        r.lab.sent();
        r.lab.receive(2, vec![frame.clone()]);
        let taken = r.samples(2);
        let of = |n: u8| taken.iter().find(|t| t.source == r.lab.sw_if(n)).unwrap();
        let [vlan, priority] = after.unwrap_or_default();
        assert_eq!(of(2).vlans, Some([100, 5, vlan, priority]), "{actions}");
        let out = after.map(|[vlan, priority]| [unknown, unknown, vlan, priority]);
        assert_eq!(of(3).vlans, out, "{actions}");
    }
    r.lab.close();
}

/// Dropped packets begin as they came: behind an Ethernet header, or with their IP header.
#[test]
fn discards_begin_with_the_header_of_their_link() {
    let mut r = Router::new(1);
    r.lab.ok("sflow drop-monitoring enable limit 1000000");
    let expect = |r: &Router, port: u8, bytes: &[u8]| {
        let Taken { protocol, stripped, header, source, .. } = r.sample(port, bytes);
        Discard { input: source.get(), protocol, stripped, frame_length: bytes.len(), header }
    };
    for (from, to) in [(0, 1), (0, TUNNEL), (TUNNEL, 1)] {
        // Packets end by their TTL, and by the output of an interface that is down, behind the new
        // header.
        let (_, frame) = packet(Way::Expired { from, to }, 60);
        r.lab.receive(from, vec![frame.clone()]);
        assert_eq!(r.discard(), expect(&r, from, &frame), "{from} to {to}");
    }
    // The router's own answer, for which there is no route.
    for from in [0, TUNNEL] {
        let (_, mut frame) = packet(Way::Echo { from }, 60);
        let at = frame.len() - 60 - 8 - 8;
        frame[at..at + 4].copy_from_slice(&[203, 0, 113, 9]);
        let ip = &mut frame[if from == TUNNEL { 0 } else { 14 }..];
        thalweg_wire::ipv4::fill_checksum(ip).unwrap();
        r.lab.receive(from, vec![frame.clone()]);
        let seen = r.discard();
        let expected = expect(&r, from, &frame);
        assert_eq!((seen.input, seen.protocol), (INTERNAL, expected.protocol));
        let link = expected.header.len() - seen.header.len().min(expected.header.len());
        assert_eq!((seen.frame_length, link), (frame.len(), 0));
        if from != TUNNEL {
            assert_eq!(seen.header[12..15], [8, 0, 0x45]);
        }
    }
    r.lab.close();
}

/// Packets of a sub-interface came by its port: their drops are reported, whatever comes first.
#[test]
fn drops_of_sub_interfaces_are_reported_with_their_port() {
    let mut r = Router::new(2);
    let make = |r: &mut Router, id: u16| {
        let port = r.lab.sw_if(0);
        let matches = TagMatch::Outer { tag: VlanTag::dot1q(id), exact: true };
        let sub = interface::create_sub(&mut r.lab.c, port, id.into(), matches).unwrap();
        interface::set_admin(&mut r.lab.c, sub, true).unwrap();
        r.lab.ok(&format!("set interface ip address test0.{id} 10.1.{id}.1/24"));
        r.lab.ok(&format!("set ip neighbor test0.{id} 10.1.{id}.2 {} static", host_mac(0, 2)));
        sub
    };
    let packet = |id: u16| {
        let tagged = Packet::new().ether(host_mac(0, 2), our_mac(0)).vlan(id);
        tagged.ipv4(ip_of(id, 2), ip(1, 2)).ttl(1).udp(1, 2).payload(&[7; 60]).build()
    };
    let before = make(&mut r, 30);
    r.lab.ok("sflow drop-monitoring enable limit 1000000");
    let behind = make(&mut r, 40);
    for (sub, id) in [(before, 30), (behind, 40)] {
        for worker in 0..2 {
            // Named only if that is wanted.
            let (word, input) = [("disable", r.lab.sw_if(0)), ("enable", sub)][worker];
            r.lab.ok(&format!("sflow sub-interfaces {word}"));
            r.lab.deliver_to(worker, 0, vec![packet(id)]);
            let seen = r.discard();
            let Taken { stripped, header, .. } = r.sample(0, &packet(id));
            let frame_length = packet(id).len();
            let expected =
                Discard { input: input.get(), protocol: 1, stripped, frame_length, header };
            assert_eq!(seen, expected);
        }
    }
    let count = |r: &Router| r.lab.count("sflow", "sflow discards processed");
    assert_eq!(count(&r), 4);
    // Another interface takes the number of one that has gone, and is not the port's.
    interface::delete(&mut r.lab.c, behind).unwrap();
    r.lab.ok("sflow enable test0 disable");
    r.lab.receive(0, vec![packet(30)]);
    assert_eq!(count(&r), 4);
    r.lab.ok("sflow enable test0");
    r.lab.receive(0, vec![packet(30)]);
    r.lab.settle();
    assert_eq!(count(&r), 5);
    r.lab.close();
}

/// Ports are sampled, and named in samples; sub-interfaces are named if that is wanted. The tags
/// are there in any case.
#[test]
fn samples_name_sub_interfaces_if_wanted() {
    let mut r = Router::new(2);
    let subs = [30, 40].map(|id| {
        let port = r.lab.sw_if(0);
        let matches = TagMatch::Outer { tag: VlanTag::dot1q(id), exact: true };
        let sub = interface::create_sub(&mut r.lab.c, port, id.into(), matches).unwrap();
        interface::set_admin(&mut r.lab.c, sub, true).unwrap();
        r.lab.ok(&format!("set interface ip address test0.{id} {}/24", ip_of(id, 1)));
        r.lab.ok(&format!("set ip neighbor test0.{id} {} {} static", ip_of(id, 2), host_mac(0, 2)));
        sub
    });
    let routed = |from: u16, to: Ipv4Addr| {
        let tagged = Packet::new().ether(host_mac(0, 2), our_mac(0)).vlan(from);
        tagged.ipv4(ip_of(from, 2), to).udp(1, 2).payload(&[7; 60]).build()
    };
    let error = r.lab.cli("sflow enable test0.30");
    assert!(error.contains("test0.30"), "{error}");
    for n in [1, 40] {
        for (word, named) in [("enable", subs), ("disable", [r.lab.sw_if(0); 2])] {
            r.lab.ok(&format!("sflow sub-interfaces {word}"));
            for worker in 0..2 {
                r.lab.deliver_to(worker, 0, vec![routed(30, ip_of(40, 2)); n]);
                let taken = r.samples(2 * n);
                assert!(taken.iter().all(|t| t.source == r.lab.sw_if(0)));
                let ways = taken.iter().map(|t| (t.input, &*t.output, t.vlans));
                let output = named[1].to_string();
                let (mut rx, mut tx) = (0, 0);
                for (input, out, vlans) in ways {
                    assert_eq!((input, out), (named[0].get(), &*output), "{word}");
                    match vlans {
                        Some([30, 0, 40, 0]) => rx += 1,
                        Some([u32::MAX, u32::MAX, 40, 0]) => tx += 1,
                        other => panic!("{other:?}"),
                    }
                }
                assert_eq!((rx, tx), (n, n));
            }
        }
        r.lab.sent();
    }
    r.lab.close();
}

fn ip_of(net: u16, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, net as u8, host)
}
