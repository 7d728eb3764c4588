//! Descriptions, the packets made from them, and streams from one port to another.

use crate::grammar::{self, Outermost};
use crate::template::{Generator, Sizes, Vary};
use crate::{FEATURE, PgError, pcap};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use thalweg_buffer::{PktMut, PoolConfig};
use thalweg_cli::{CommandTree, Execution, Progress, Script};
use thalweg_device::interface;
use thalweg_engine::Feature;
use thalweg_graph::{
    BuildCx, Built, Control, EngineConfig, Node, NodeCx, NodeDecl, NodeId, Verdict,
};
use thalweg_testkit::{PacketLog, PacketTap};
use thalweg_wire::checksum::{checksum, pseudo_v4, pseudo_v6};
use thalweg_wire::ethernet::EthernetView;
use thalweg_wire::icmpv4::IcmpView;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv4::{self, Ipv4View};
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::tcp::TcpView;
use thalweg_wire::udp::UdpView;

fn fixed(n: usize) -> Sizes {
    Sizes { min: n, max: n, vary: Vary::Increment }
}

fn generator(text: &str, sizes: Option<Sizes>) -> Generator {
    let layers = grammar::parse(text, Outermost::Ethernet).unwrap();
    layers.compile(sizes.unwrap_or(layers.default_sizes())).unwrap()
}

fn packets(g: &mut Generator, n: usize) -> Vec<Vec<u8>> {
    let mut one = || {
        let mut p = vec![0xee; g.next_len()];
        g.write(&mut p);
        p
    };
    (0..n).map(|_| one()).collect()
}

/// Every length and checksum of a packet is right.
fn check(packet: &[u8]) {
    let eth = EthernetView::parse(packet).unwrap();
    if eth.ethertype() == 0x86dd {
        let ip = Ipv6View::parse(eth.payload()).unwrap();
        assert_eq!(usize::from(ip.payload_len()), packet.len() - 54);
        let (src, dst) = (ip.src(), ip.dst());
        let pseudo = pseudo_v6(&src, &dst, ip.next_header(), (packet.len() - 54) as u32);
        match ip.next_header() {
            17 => {
                let udp = UdpView::parse(ip.payload()).unwrap();
                assert!(udp.checksum_ok(pseudo) && udp.checksum() != 0);
            }
            6 => assert!(TcpView::parse(ip.payload()).unwrap().checksum_ok(pseudo)),
            _ => assert!(Icmp6View::parse(ip.payload()).unwrap().checksum_ok(&src, &dst)),
        }
        return;
    }
    let ip = ipv4::check(eth.payload()).unwrap();
    assert_eq!(usize::from(ip.total_len()), packet.len() - 14);
    let l4 = ip.payload();
    let pseudo = pseudo_v4(ip.src(), ip.dst(), ip.protocol(), l4.len() as u32);
    match ip.protocol() {
        17 => {
            let udp = UdpView::parse(l4).unwrap();
            assert_eq!(usize::from(udp.length()), l4.len());
            assert!(udp.checksum() != 0 && udp.checksum_ok(pseudo));
        }
        6 => assert!(TcpView::parse(l4).unwrap().checksum_ok(pseudo)),
        1 => assert!(IcmpView::parse(l4).unwrap().checksum_ok()),
        _ => {}
    }
}

const EXAMPLE: &str = "IP4: 0200.0000.00aa -> 02fe.0000.0000
    UDP: 10.0.0.1 - 10.0.0.99 -> 48.0.0.0 - 48.0.3.255
    UDP: 1234 -> 4321 incrementing 22";

#[test]
fn the_example_counts_through_its_ranges() {
    let mut g = generator(EXAMPLE, None);
    assert_eq!(g.period(), None);
    for (i, p) in packets(&mut g, 1500).iter().enumerate() {
        check(p);
        let i = i as u32;
        let ip = Ipv4View::parse(&p[14..]).unwrap();
        assert_eq!(u32::from(ip.src()), 0x0a00_0001 + i % 99);
        assert_eq!(u32::from(ip.dst()), 0x3000_0000 + i % 1024);
        assert_eq!(p[42..], std::array::from_fn::<u8, 22, _>(|n| n as u8));
        assert_eq!(p[..6], [0x02, 0xfe, 0, 0, 0, 0]);
    }
}

#[test]
fn a_ring_holds_what_the_generator_makes() {
    let text = "IP4: 1.2.3 - 1.2.5 -> 4.5.6 UDP: 1.2.3.4 -> 5.6.7.8 - 5.6.7.9 ttl 1-2
        UDP: 1 - 4 -> 9 incrementing 7";
    let mut g = generator(text, Some(Sizes { min: 60, max: 64, vary: Vary::Increment }));
    assert_eq!(g.period(), Some(60));
    let ring = g.ring().unwrap();
    assert_eq!(ring, packets(&mut g, 60));
    assert_eq!(ring[..30], packets(&mut g, 30));
    ring.iter().for_each(|p| check(p));
    assert!(
        generator("IP4: 1.2.3 -> 4.5.6 UDP: 1.1.1.1 + 1.1.1.9 -> 1.2.2.2", None).ring().is_none()
    );
}

#[test]
fn every_layer_is_emitted_as_described() {
    let one = |text: &str| packets(&mut generator(text, None), 1).remove(0);
    let p = one("IP4: 1.2.3 -> 4.5.6 vlan 10 vlan-priority 3 UDP: 1.2.3.4 -> 5.6.7.8 UDP: 1 -> 2");
    assert_eq!(p[12..18], [0x81, 0, 0x60, 10, 8, 0]);
    let p = one("IP4: 1.2.3 -> 4.5.6 TCP: 1.2.3.4 -> 5.6.7.8 tos 16 df ttl 9
        TCP: 80 -> 99 SYN ACK seqno 7 ackno 0x100 window 512");
    check(&p);
    let ip = Ipv4View::parse(&p[14..]).unwrap();
    assert_eq!((ip.tos(), ip.ttl(), ip.dont_fragment()), (16, 9, true));
    let tcp = TcpView::parse(ip.payload()).unwrap();
    assert_eq!((tcp.seq(), tcp.ack(), tcp.window(), tcp.flags()), (7, 256, 512, 0x12));
    let p = one("IP4: 1.2.3 -> 4.5.6 ICMP: 1.2.3.4 -> 5.6.7.8 ICMP echo_request id 5 seq 6");
    check(&p);
    assert_eq!(p[34..42], [&[8, 0][..], &p[36..38], &[0, 5, 0, 6]].concat()[..]);
    let p = one("ARP: 2.0.1 -> ffff.ffff.ffff request: 2.0.1/10.0.0.1 -> 0.0.0/10.0.0.2");
    assert_eq!(
        (p.len(), p[20..22].to_vec(), p[38..42].to_vec()),
        (64, vec![0, 1], vec![10, 0, 0, 2])
    );
    let p = one("IP6: 2.0.1 -> 2.0.2 UDP: 2001:db8::1 -> 2001:db8::2 UDP: 1 -> 2 incrementing 9");
    check(&p);
    let p =
        one("IP6: 2.0.1 -> 2.0.2 ICMP6: 2001:db8::1 -> 2001:db8::2 hop-limit 9 traffic-class 18
        ICMP6 echo_request id 5 seq 6 incrementing 9");
    check(&p);
    assert_eq!((p[14], p[15], p[21]), (0x61, 0x20, 9));
    assert_eq!(p[54..62], [&[128, 0][..], &p[56..58], &[0, 5, 0, 6]].concat()[..]);
    let p = one("0x9000: 2.0.1 -> 2.0.2 hex 0x0102 03");
    assert_eq!(p[12..], [0x90, 0, 1, 2, 3]);
    let p = one("IP4: 2.0.1 -> 2.0.2 UDP: 1.1.1.1 -> 2.2.2.2 checksum 0xbeef
        UDP: 1 -> 2 checksum 0 length 9");
    assert_eq!((p[24..26].to_vec(), p[38..42].to_vec()), (vec![0xbe, 0xef], vec![0, 9, 0, 0]));
    assert_eq!(one("hex 0xabcdef"), [0xab, 0xcd, 0xef]);
    let ip = grammar::parse("UDP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 2", Outermost::Ip4).unwrap();
    assert_eq!((ip.headers.len(), ip.headers[0]), (28, 0x45));
}

#[test]
fn mistakes_are_named() {
    let fails = |text: &str| grammar::parse(text, Outermost::Ethernet).unwrap_err().to_string();
    for (text, want) in [
        ("IP9: 1.2.3 -> 4.5.6", "an Ethernet type"),
        ("IP4: 1.2.3 4.5.6", "expected `->', found `4.5.6'"),
        ("IP4: 1.2.3 -> 4.5", "a MAC address"),
        ("IP4: 1.2.3 -> 4.5.6 UDP: 1.2.3.400 -> 1.1.1.1", "found `1.2.3.400"),
        ("IP4: 1.2.3 -> 4.5.6 UDP: 1.1.1.2 - 1.1.1.1 -> 1.1.1.1", "source address must increase"),
        ("IP4: 1.2.3 -> 4.5.6 UDP: 1.1.1.1 -> 1.1.1.1 UDP: 1 -> 70000", "fit into 16 bits"),
        ("IP4: 1.2.3 -> 4.5.6 UDP: 1.1.1.1 -> 1.1.1.1 TCP: 1 -> 7", "`UDP:' with two ports"),
        ("IP4: 1.2.3 -> 4.5.6 UDP: 1.1.1.1 -> 1.1.1.1 UDP: 1 -> 7 bogus", "the end of the"),
        ("IP4: 1.2.3 -> 4.5.6 hex 0x1", "an even number"),
        ("IP4: 1.2.3 -> 4.5.6 vlan 5000", "VLAN must"),
    ] {
        let got = fails(text);
        assert!(got.contains(want), "{text}: {got}");
    }
    let layers = grammar::parse(EXAMPLE, Outermost::Ethernet).unwrap();
    assert!(matches!(layers.compile(fixed(41)), Err(PgError::Size { least: 42, .. })));
    assert!(layers.compile(fixed(65_536)).is_err());
    assert!(layers.compile(Sizes { min: 64, max: 60, vary: Vary::Random }).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_description_panics(
        text in "(IP4:|IP6:|ARP:|UDP:|TCP:|ICMP|ICMP6|->|-|\\+|1.2.3|1.2.3.4|::1|hex|0x1234|incrementing\
                 |vlan|ttl|length|request:|/|\\PC|7| ){0,24}",
    ) {
        for outermost in [Outermost::Ethernet, Outermost::Ip4, Outermost::Ip6] {
            if let Ok(layers) = grammar::parse(&text, outermost)
                && let Ok(mut g) = layers.compile(layers.default_sizes())
            {
                packets(&mut g, 3);
            }
        }
    }

    #[test]
    fn lengths_and_checksums_hold_for_all_packets(
        proto in 0usize..3, src in any::<u32>(), span in 0u32..3000, dst in any::<u32>(),
        ports in any::<(u16, u16)>(), ttl in 1u8..250, min in 74usize..200, more in 0usize..90,
        six: bool, random: bool, fill in 1u16..300,
    ) {
        let mark = if random { '+' } else { '-' };
        let low = std::net::Ipv4Addr::from(src.min(u32::MAX - span));
        let high = std::net::Ipv4Addr::from(src.min(u32::MAX - span) + span);
        let dst = std::net::Ipv4Addr::from(dst);
        let (a, b) = (ports.0.min(ports.1), ports.0.max(ports.1));
        let l4 = match proto {
            0 => format!(
                "UDP: {low} {mark} {high} -> {dst} ttl {ttl} {mark} {} UDP: {a} {mark} {b} -> 5",
                ttl + 3
            ),
            1 => format!(
                "TCP: {dst} -> {low} {mark} {high} tos 3-7 TCP: 5 -> {a} {mark} {b} seqno 1-99"
            ),
            _ => format!("ICMP: {low} {mark} {high} -> {dst} ICMP 8 code 0-3 seq {a} {mark} {b}"),
        };
        let v6 = |v4: std::net::Ipv4Addr| v4.to_ipv6_compatible();
        let (low, high, dst) = (v6(low), v6(high), v6(dst));
        let l4_six = match proto {
            0 => format!(
                "UDP: {low} {mark} {high} -> {dst} ttl {ttl} {mark} {} UDP: {a} {mark} {b} -> 5",
                ttl + 3
            ),
            1 => format!(
                "TCP: {dst} -> {low} {mark} {high} traffic-class 7 TCP: 5 -> {a} {mark} {b}"
            ),
            _ => format!("ICMP6: {low} {mark} {high} -> {dst} ICMP6 128 seq {a} {mark} {b}"),
        };
        let text = match six {
            false => format!("IP4: 2.0.1 -> 2.0.2 {l4} incrementing {fill}"),
            true => format!("IP6: 2.0.1 -> 2.0.2 {l4_six} incrementing {fill}"),
        };
        let vary = if random { Vary::Random } else { Vary::Increment };
        let mut g = generator(&text, Some(Sizes { min, max: min + more, vary }));
        for p in packets(&mut g, 40) {
            prop_assert!(p.len() >= min && p.len() <= min + more);
            check(&p);
        }
    }
}

/// Checksums left to the device are computed, whatever the description says.
#[test]
fn offloaded_checksums_are_computed() {
    let text = "IP4: 2.0.1 -> 2.0.2 UDP: 10.0.0.1 -> 10.0.0.2 ttl 2 checksum 13 \
                UDP: 1234 -> 2345 checksum 11 incrementing 22";
    let sum = |p: &[u8], at: usize| u16::from_be_bytes([p[at], p[at + 1]]);
    let made = |offload: crate::template::Offload| {
        let mut layers = crate::grammar::parse(text, crate::grammar::Outermost::Ethernet).unwrap();
        layers.compute(offload);
        let sizes = layers.default_sizes();
        packets(&mut layers.compile(sizes).unwrap(), 1).remove(0)
    };
    let typed = made(crate::template::Offload::default());
    assert_eq!((sum(&typed, 24), sum(&typed, 40)), (13, 11));
    let all = crate::template::Offload { ip: true, tcp: true, udp: true };
    check(&made(all));
    let only_ip = made(crate::template::Offload { udp: false, ..all });
    assert_eq!((sum(&only_ip, 24), sum(&only_ip, 40)), (sum(&made(all), 24), 11));
}

#[test]
fn buffer_flags_are_checked() {
    let mut lab = Lab::new(1, 1024);
    let line = |words: &str| {
        format!("packet-generator new {{ name x {words} data {{ IP4: 2.0.1 -> 2.0.2 }} }}")
    };
    lab.run(&line(
        "buffer-flags ip4 offload buffer-offload-flags offload-ip-cksum offload-udp-cksum",
    ));
    for words in ["buffer-flags gso", "buffer-flags limit 3", "buffer-offload-flags ip4"] {
        assert!(lab.fail(&line(words)).contains("expected "), "{words}");
    }
    lab.finish();
}

/// Passes packets to the output node of the interface that the test names.
static ETHERNET_INPUT: NodeDecl =
    NodeDecl { name: "ethernet-input", build: build_switch, ..NodeDecl::DEFAULT };
static IP4_INPUT: NodeDecl =
    NodeDecl { name: "ip4-input", build: build_switch, ..NodeDecl::DEFAULT };
static STUBS: Feature = Feature {
    name: "stubs",
    nodes: &[&ETHERNET_INPUT, &IP4_INPUT],
    init: stubs,
    ..Feature::DEFAULT
};

struct Target(AtomicU32);
/// Packets from all ports, for a file if a test fails. A port sends the same.
struct Taken(PacketTap);
struct Switch(Arc<Target>, Arc<Taken>);

fn stubs(c: &mut Control) {
    c.share(Arc::new(Target(AtomicU32::new(0))));
}
fn build_switch(bcx: &BuildCx<'_>) -> Built {
    Built::node(Switch(bcx.shared::<Target>(), bcx.shared::<Taken>()))
}
impl Node for Switch {
    fn packet(&mut self, _: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        self.1.0.received(p.segments());
        Verdict::node(NodeId(self.0.0.load(Relaxed) as u16))
    }
}

pub(crate) struct Lab {
    pub(crate) c: Control,
    tree: CommandTree<Control>,
    /// Written when a panic drops the lab, after the engine.
    _packets: PacketLog,
}

impl Lab {
    pub(crate) fn new(workers: usize, buffers: usize) -> Lab {
        let pool = PoolConfig { buffers, ..Default::default() };
        let workers = vec![None; workers];
        let mut c = Control::new(EngineConfig { pool, workers, ..Default::default() }).unwrap();
        let log = PacketLog::new();
        c.share(Arc::new(Taken(log.interface("ports"))));
        thalweg_engine::start(&mut c, &thalweg_engine::with_needs(&[&STUBS, &FEATURE])).unwrap();
        let commands = [FEATURE.commands, thalweg_device::FEATURE.commands].concat();
        Lab { c, tree: CommandTree::new(commands).unwrap(), _packets: log }
    }

    pub(crate) fn run(&mut self, line: &str) -> String {
        let mut execution = Execution::new(Script::typed(line).unwrap());
        let end = loop {
            match execution.step(&self.tree, &mut self.c, Instant::now(), Duration::MAX) {
                Progress::Finished(end) => break end,
                Progress::Running(_) => self.c.run_once(Some(Duration::from_millis(1))),
            }
        };
        assert!(end.is_ok(), "{line}: {end:?}");
        self.c.finish_late();
        execution.take_output()
    }

    fn fail(&mut self, line: &str) -> String {
        self.tree.run_line(&mut self.c, line).1.unwrap_err().to_string()
    }

    /// Forwards all received packets to an interface.
    pub(crate) fn forward_to(&mut self, name: &str) {
        let sw_if = interface::find(&self.c, name).unwrap();
        let node = interface::view(&self.c, sw_if).unwrap().output;
        self.c.shared::<Target>().0.store(u32::from(node.0), Relaxed);
    }

    /// Waits until no stream is enabled, as users do.
    fn wait_until_no_stream_is_enabled(&mut self) {
        let start = Instant::now();
        while self.run("show packet-generator").contains("Yes") {
            self.c.run_once(Some(Duration::from_millis(20)));
            let shown = self.run("show packet-gen");
            assert!(start.elapsed() < thalweg_testkit::WAIT_LIMIT, "{shown}");
        }
    }

    fn finish(mut self) {
        self.run("packet-generator disable-stream");
        assert_eq!(self.c.shut_down().in_use, 0);
    }
}

fn written(path: &Path) -> Vec<Vec<u8>> {
    pcap::read(path).unwrap().packets
}

#[test]
fn a_stream_goes_from_one_port_to_another_and_into_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pcap");
    let mut lab = Lab::new(1, 2048);
    assert_eq!(lab.run("create packet-generator interface pg0"), "pg0\n");
    assert_eq!(lab.run("create packet-generator interface pg1"), "pg1\n");
    assert_eq!(lab.run("create packet interface pg1 mode ip4"), "pg1\n");
    lab.forward_to("pg1");
    lab.run("set int state pg1 up");
    assert_eq!(lab.run("show packet-generator"), "no streams are defined\n");
    lab.run(&format!(
        "packet-generator new {{ name s0 limit 1000 interface pg0 node ethernet-input
        size 60-200 data {{ {EXAMPLE} }} }}"
    ));
    lab.run(&format!("packet-generator capture pg1 pcap {}", out.display()));
    assert!(!out.exists());
    lab.run("pa en");
    lab.wait_until_no_stream_is_enabled();
    let got = written(&out);
    let sizes = Sizes { min: 60, max: 200, vary: Vary::Increment };
    assert!(got == packets(&mut generator(EXAMPLE, Some(sizes)), 1000));
    let text = lab.run("show packet-generator");
    let want = "Name               Enabled        Count     Parameters\n\
        s0                   No           1000      \
        limit 1000, rate 0.00e0 pps, size 60-200, worker 0\n";
    assert_eq!(text.lines().take(2).collect::<Vec<_>>().join("\n") + "\n", want);
    assert!(text.contains("pg1: capture to") && text.contains("1000 packets written, 0 lost"));
    let rx = lab.c.interface_totals(interface::find(&lab.c, "pg0").unwrap());
    let tx = lab.c.interface_totals(interface::find(&lab.c, "pg1").unwrap());
    assert_eq!((rx.rx_packets, tx.tx_packets, rx.rx_bytes), (1000, 1000, tx.tx_bytes));
    assert!(lab.fail(&format!("pa capture pg1 pcap {}", out.display())).contains("already exists"));
    lab.run("packet-generator capture pg1 disable");
    lab.run(&format!("packet-generator capture pg1 pcap {} disable", out.display()));
    lab.finish();
}

/// A file is made with the first packet: until then another port could name it, too.
#[test]
fn two_ports_do_not_capture_to_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pcap");
    let mut lab = Lab::new(1, 2048);
    for port in ["pg0", "pg1"] {
        lab.run(&format!("create packet-generator interface {port}"));
    }
    let capture = |port: &str| format!("packet-generator capture {port} pcap {}", out.display());
    for (port, other) in [("pg0", "pg1"), ("pg1", "pg0")] {
        lab.run(&capture(port));
        let said = lab.fail(&capture(other));
        assert!(said.contains("the router writes a capture there"), "{said}");
        // The same one begins again, and has given the name back once the command is done.
        lab.run(&format!("{} count 5", capture(port)));
        lab.run(&format!("packet-generator capture {port} disable"));
    }
    lab.finish();
}

#[test]
fn a_file_is_replayed_in_loops_on_two_workers() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in.pcap"), dir.path().join("out.pcap"));
    let mut bytes = pcap::file_header(pcap::LINK_ETHERNET).to_vec();
    let lens = [14, 60, 1514, 9014, 65_535];
    for (i, len) in lens.iter().enumerate() {
        bytes.extend(pcap::record_header(0, *len));
        bytes.extend(vec![i as u8 + 1; *len as usize]);
    }
    std::fs::write(&input, bytes).unwrap();
    let mut lab = Lab::new(2, 4096);
    lab.run("create packet-generator interface pg7");
    lab.forward_to("pg7");
    let file = input.display();
    // The port is created with its stream.
    lab.run(&format!("packet-generator new pcap {file} source pg0 name a limit 12 worker 1"));
    lab.run(&format!("packet-generator new pcap {file} source pg0 name b"));
    lab.run(&format!("packet-generator capture pg7 pcap {}", out.display()));
    lab.run("set int state pg7 up");
    lab.run("packet-generator enable-stream");
    lab.wait_until_no_stream_is_enabled();
    let mut got: Vec<_> = written(&out).iter().map(Vec::len).collect();
    got.sort_unstable();
    let mut want: Vec<_> = (0..12).chain(0..5).map(|i| lens[i % 5] as usize).collect();
    want.sort_unstable();
    assert_eq!(got, want);
    assert!(lab.fail("packet-generator new pcap /nonexistent name x").contains("/nonexistent"));
    assert!(lab.fail("packet-generator new name x worker 2 pcap x").contains("worker 2"));
    lab.run("packet-generator delete a");
    assert!(lab.fail("packet-generator delete a").contains("no stream `a'"));
    lab.run("delete packet-generator interface pg0");
    assert!(lab.run("show packet-generator").starts_with("no streams are defined\n"));
    assert!(lab.fail("packet-generator delete b").contains("no stream"));
    lab.finish();
}

#[test]
fn rates_hold_and_endless_streams_stop() {
    let mut lab = Lab::new(1, 1024);
    lab.run("create packet-generator interface pg0");
    lab.run("create packet-generator interface pg1");
    lab.forward_to("pg1");
    lab.run("set int state pg1 up");
    let data = "data { IP4: 2.0.1 -> 2.0.2 UDP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 2 }";
    lab.run(&format!("packet-generator new {{ name slow rate 2e4 interface pg0 {data} }}"));
    lab.run(&format!(
        "packet-generator new {{ name fast limit -1 interface pg0 maxframe 32 {data} }}"
    ));
    let start = Instant::now();
    lab.run("packet-generator enable-stream slow");
    let text = lab.run("show packet-generator");
    assert!(text.contains("slow                 Yes    "), "{text}");
    assert!(lab.fail("packet-generator configure slow rate 5").contains("is enabled"));
    let pg0 = interface::find(&lab.c, "pg0").unwrap();
    // A rate is measured over a time, on a loaded machine over a longer one.
    while start.elapsed() < Duration::from_millis(300)
        || lab.c.interface_totals(pg0).rx_packets <= 200
    {
        let shown = lab.run("show packet-generator");
        assert!(start.elapsed() < thalweg_testkit::WAIT_LIMIT, "{shown}");
        lab.c.run_once(Some(Duration::from_millis(20)));
    }
    lab.run("packet-generator disable-stream slow");
    let seconds = start.elapsed().as_secs_f64();
    let sent = lab.c.interface_totals(pg0).rx_packets as f64;
    // A busy machine may keep the worker from its work, but never make it send too much.
    assert!(sent <= 2e4 * seconds + 2.0 && sent > 200.0, "{sent} in {seconds} s");
    assert!(!lab.run("show packet-generator").contains("Yes"));
    lab.run("packet-generator configure slow rate 0 limit 77 size 100-101");
    lab.run("clear interfaces");
    lab.run("packet-generator enable-stream");
    lab.c.run_once(Some(Duration::from_millis(20)));
    lab.run("packet-generator disable-stream fast");
    lab.wait_until_no_stream_is_enabled();
    let json: serde_json::Value =
        serde_json::from_str(&lab.run("show packet-generator | json")).unwrap();
    assert_eq!(json["streams"][0]["count"], 77);
    let all = json["streams"][1]["count"].as_u64().unwrap() + 77;
    assert_eq!(lab.c.interface_totals(pg0).rx_packets, all);
    lab.finish();
}

#[test]
fn ip_ports_and_other_nodes_get_packets_without_ethernet() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pcap");
    let mut lab = Lab::new(1, 1024);
    lab.run("create packet-generator interface pg0 mode ip4");
    assert!(lab.fail("create packet-generator interface pg1 mode ip6").contains("ip6-input"));
    lab.run("create packet-generator interface pg1");
    lab.forward_to("pg0");
    lab.run(&format!("packet-generator capture pg0 pcap {} count 3", out.display()));
    let udp = "data { UDP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 2 }";
    lab.run(&format!("packet-generator new {{ name a limit 2 interface pg0 {udp} }}"));
    lab.run(&format!(
        "packet-generator new {{ name b limit 2 interface pg1 node ip4-input {udp} }}"
    ));
    lab.run(&format!("packet-generator new {{ name c limit 2 interface pg1 node pg0 {udp} }}"));
    lab.run("packet-generator enable");
    lab.wait_until_no_stream_is_enabled();
    let got = written(&out);
    assert_eq!((got.len(), got[0][0], got[0].len()), (3, 0x45, 64));
    assert_eq!(checksum(&got[0][..20]), 0);
    assert_eq!(std::fs::read(&out).unwrap()[20..24], pcap::LINK_RAW.to_le_bytes());
    let pg0 = interface::find(&lab.c, "pg0").unwrap();
    assert_eq!(lab.c.interface_totals(pg0).tx_packets, 6);
    assert!(lab.fail("set interface mac address pg0 02:00:00:00:00:01").contains("not supported"));
    for (line, want) in [
        ("packet-generator new { name x }", "either by `data"),
        ("packet-generator new { name x node bogus data { hex 0x01 } }", "neither a node nor"),
        ("packet-generator new { name x interface bogus data { hex 0x01 } }", "bogus"),
        ("packet-generator new { data { hex 0x01 } }", "`name' and"),
        ("packet-generator new { name x size 1-x data { hex 0x01 } }", "sizes such as"),
        ("packet-generator capture local0 pcap /tmp/x", "not a packet-generator interface"),
        ("packet-generator capture pg0", "`pcap' and a file name"),
        ("packet-generator enable-stream bogus", "no stream"),
        ("delete packet-generator interface local0", "not a packet-generator interface"),
    ] {
        let text = lab.fail(line);
        assert!(text.contains(want), "{line}: {text}");
    }
    assert!(lab.run("show hardware-interfaces pg0").contains("packet generator, ip4 mode"));
    lab.finish();
}

#[test]
fn packets_are_traced_from_the_stream_to_the_port() {
    let mut lab = Lab::new(1, 1024);
    lab.run("create packet-generator interface pg0");
    lab.run("create packet-generator interface pg1");
    lab.forward_to("pg1");
    lab.run("set int state pg1 up");
    lab.run(&format!(
        "packet-generator new {{ name s limit 9 interface pg0 data {{ {EXAMPLE} }} }}"
    ));
    let input = lab.c.node("pg-input").unwrap();
    lab.c.ask(move |core| core.trace_add(input, 2, None));
    lab.run("packet-generator enable-stream s");
    lab.wait_until_no_stream_is_enabled();
    let traces = lab.c.ask(|core| core.traces()).remove(0).unwrap();
    assert_eq!(traces.len(), 2);
    let steps: Vec<_> = traces[0]
        .steps
        .iter()
        .map(|s| (lab.c.nodes()[s.node.0 as usize].name.to_string(), s.text.clone()))
        .collect();
    let names: Vec<_> = steps.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["pg-input", "ethernet-input", "pg1-output", "pg1-tx"]);
    assert!(steps[0].1.starts_with("stream 0, 64 bytes, sw_if_index 1\n"), "{}", steps[0].1);
    for step in [&steps[0].1, &steps[3].1] {
        assert!(step.contains("10.0.0.1 -> 48.0.0.0") && step.contains("1234 -> 4321"), "{step}");
    }
    lab.finish();
}

#[test]
fn packets_that_enter_at_a_node_are_traced() {
    let mut lab = Lab::new(1, 1024);
    lab.run("create packet-generator interface pg0");
    lab.run(&format!(
        "packet-generator new {{ name s limit 9 interface pg0 node error-drop data {{ {EXAMPLE} }} }}"
    ));
    let input = lab.c.node("pg-input").unwrap();
    lab.c.ask(move |core| core.trace_add(input, 2, None));
    lab.run("packet-generator enable-stream s");
    lab.wait_until_no_stream_is_enabled();
    let traces = lab.c.ask(|core| core.traces()).remove(0).unwrap();
    assert_eq!(traces.len(), 2);
    let steps = &traces[0].steps;
    let name = |at: usize| lab.c.nodes()[steps[at].node.0 as usize].name.to_string();
    assert_eq!((name(0), name(1)), ("pg-input".into(), "error-drop".into()));
    assert!(steps[0].text.contains("10.0.0.1 -> 48.0.0.0"), "{}", steps[0].text);
    lab.finish();
}

/// The number of a node may be another interface's once its own is deleted: a stream to it ends,
/// and its packets do not go elsewhere.
#[test]
fn streams_end_with_the_interface_whose_node_they_enter() {
    let mut lab = Lab::new(1, 1024);
    lab.run("create packet-generator interface pg0");
    let places = [("pg1-tx", ""), ("pg1-tx", "tx-interface pg0"), ("pg1-output", ""), ("pg1", "")];
    for (node, tx) in places {
        lab.run("create packet-generator interface pg1");
        let number = lab.c.node("pg1-tx").unwrap();
        lab.run(&format!(
            "packet-generator new {{ name s rate 1000 interface pg0 {tx} node {node} \
             data {{ {EXAMPLE} }} }}"
        ));
        lab.run("set interface state pg1 up");
        lab.run("packet-generator enable-stream s");
        lab.run("delete packet-generator interface pg1");
        assert_eq!(lab.run("show packet-generator"), "no streams are defined\n", "{node} {tx}");
        // Others come until one has the number.
        let mut others = Vec::new();
        for n in 10.. {
            let name = format!("pg{n}");
            lab.run(&format!("create packet-generator interface {name}"));
            lab.run(&format!("set interface state {name} up"));
            let is_it = lab.c.node(&format!("{name}-tx")) == Some(number);
            others.push(name);
            if is_it {
                break;
            }
            lab.run(&format!("delete packet-generator interface {}", others.pop().unwrap()));
            lab.c.sync();
        }
        lab.c.sync();
        let last = interface::find(&lab.c, others.last().unwrap()).unwrap();
        assert_eq!(lab.c.interface_totals(last).tx_packets, 0, "{node}");
        let gone = format!(
            "packet-generator new {{ name t interface pg0 node {node} data {{ {EXAMPLE} }} }}"
        );
        assert!(lab.fail(&gone).contains(&format!("`{node}'")), "{}", lab.fail(&gone));
        others
            .iter()
            .for_each(|name| _ = lab.run(&format!("delete packet-generator interface {name}")));
    }
    lab.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn no_command_panics(lines in prop::collection::vec(
        "packet-generator (new|configure|delete|enable|disable)( s| pg[0-3]| name| limit| size\
         | rate| 1-?9?| worker| interface| node| ip4-input| data| \\{ [a-z0-9:.> -]{0,20} \\}\
         | pcap| disable| mode){0,8}",
        1..60,
    )) {
        let mut lab = Lab::new(1, 512);
        for line in lines {
            let _ = lab.tree.run_line(&mut lab.c, &line);
        }
        lab.finish();
    }
}

#[test]
fn lists_are_current() {
    thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
}

#[test]
fn labels_come_before_the_packet() {
    let text = "MPLS: 2.0.aa -> 2fe.0.0 label 16 exp 5 ttl 9 label 17 IP4: UDP: 10.0.0.1 -> 48.0.0.1 \
                UDP: 1 -> 2 incrementing 22";
    let all = packets(&mut generator(text, None), 2);
    for p in all {
        assert_eq!(p[12..22], [0x88, 0x47, 0, 1, 0x0a, 9, 0, 1, 0x11, 64]);
        let ip = ipv4::check(&p[22..]).unwrap();
        assert_eq!(usize::from(ip.total_len()), p.len() - 22);
        let pseudo = pseudo_v4(ip.src(), ip.dst(), 17, ip.payload().len() as u32);
        assert!(UdpView::parse(ip.payload()).unwrap().checksum_ok(pseudo));
    }
    // A stack without an end, and one without a packet.
    let open = "MPLS: 2.0.aa -> 2fe.0.0 label 16 s 0 hex 0x00";
    assert_eq!(packets(&mut generator(open, None), 1)[0][16], 0);
    let bare = "MPLS: 2.0.aa -> 2fe.0.0 label 16 incrementing 40";
    assert_eq!(packets(&mut generator(bare, None), 1)[0][16], 1);
    for bad in
        ["label 1048576 incrementing 9", "label 16 exp 8 incrementing 9", "label 16 UDP: 1 -> 2"]
    {
        let text = format!("MPLS: 2.0.aa -> 2fe.0.0 {bad}");
        assert!(grammar::parse(&text, Outermost::Ethernet).is_err(), "{bad}");
    }
}
