//! Label stacks in samples, held against what came and what left, and the names of paths.

#![allow(clippy::expect_used, clippy::panic)]

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};
use thalweg_device::testing::ip4::ip;
use thalweg_device::testing::{Lab, framed, host_mac, our_mac};
use thalweg_sflow::{Datagram, FlowRecord, Sample};
use thalweg_wire::build::Packet;
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::mpls::Stack;

/// 16.0.0.1 is far away.
const FAR: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 1);

/// Records of a sample about labels.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    stacks: Option<(String, Vec<u32>, Vec<u32>)>,
    tunnel: Option<(String, u32)>,
    wire: Option<(String, u32)>,
    prefix: Option<(String, u32)>,
}

struct Router {
    lab: Lab,
    socket: UdpSocket,
}

impl Router {
    fn new() -> Router {
        let (sflow, mpls) = (&thalweg_feat_sflow::FEATURE, &thalweg_feat_mpls::FEATURE);
        let mut lab = Lab::of_all(&[sflow, mpls, &thalweg_feat_l2::FEATURE]).ip4(2..=2).start();
        lab.ok("mpls table add 0");
        for n in 0..3 {
            lab.ok(&format!("set interface mpls test{n} enable"));
        }
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(5))).expect("a timeout");
        let port = socket.local_addr().expect("an address").port();
        lab.ok(&format!("sflow collector add 127.0.0.1 port {port}"));
        lab.ok("sflow agent-address 192.0.2.7\nsflow sampling-rate 1\nsflow enable test0");
        lab.c.sync();
        Router { lab, socket }
    }

    /// Passes a packet from `test0` on; what its sample says, and what left.
    fn pass(&mut self, packet: &Packet) -> (Said, Vec<u8>) {
        let bytes = packet.clone().build();
        let ethertype = if bytes[0] == 0x45 { ethertype::IPV4 } else { ethertype::MPLS };
        self.pass_frame(framed(our_mac(0), host_mac(0, 2), ethertype, &bytes))
    }

    fn pass_frame(&mut self, frame: Vec<u8>) -> (Said, Vec<u8>) {
        self.lab.receive(0, vec![frame]);
        let sent = self.lab.sent().pop().map(|(_, frame)| frame).unwrap_or_default();
        self.lab.settle();
        let (mut buf, start) = ([0; 65_536], Instant::now());
        loop {
            assert!(start.elapsed() < thalweg_testkit::WAIT_LIMIT, "no sample");
            self.lab.c.run_once(Some(Duration::ZERO));
            let Ok(n) = self.socket.recv(&mut buf) else { continue };
            let datagram = Datagram::parse(&buf[..n]).expect("a datagram");
            for sample in datagram.samples() {
                let Sample::Flow(sample) = sample.expect("a sample") else { continue };
                let mut said = Said::default();
                for record in sample.records {
                    match record.expect("a record") {
                        FlowRecord::Mpls(m) => {
                            let hop = m.next_hop.0.map(|hop| hop.to_string());
                            said.stacks = Some((hop.unwrap_or_default(), m.input, m.output));
                        }
                        FlowRecord::MplsTunnel(t) => {
                            said.tunnel = Some((t.name.to_str().into(), t.id))
                        }
                        FlowRecord::MplsVc(t) => said.wire = Some((t.name.to_str().into(), t.id)),
                        FlowRecord::MplsFtn(f) => {
                            said.prefix = Some((f.description.to_str().into(), f.mask));
                        }
                        _ => {}
                    }
                }
                return (said, sent);
            }
        }
    }

    /// The stacks of a sample are those of what came and left.
    fn agree(&mut self, packet: &Packet, hop: &str) -> Said {
        let came: Vec<u32> = match packet.clone().build() {
            bytes if bytes[0] == 0x45 => Vec::new(),
            bytes => Stack::new(&bytes).map(|e| e.0).collect(),
        };
        let (said, sent) = self.pass(packet);
        let left: Vec<u32> = match sent.get(12..14) {
            Some([0x88, 0x47]) => Stack::new(&sent[14..]).map(|e| e.0).collect(),
            _ => Vec::new(),
        };
        assert_eq!(said.stacks, Some((hop.to_owned(), came, left)));
        said
    }
}

fn labelled(labels: &[u32]) -> Packet {
    let stack = labels.iter().fold(Packet::new(), |p, label| p.mpls(*label).ttl(9));
    stack.ipv4(ip(0, 2), FAR).udp(1024, 53).payload(&[7; 40])
}

#[test]
fn stacks_are_those_that_came_and_left() {
    let mut r = Router::new();
    r.lab.ok(
        "mpls table add 5
         ip table add 7
         ip route add 16.0.0.0/24 table 7 via 10.0.2.2 test2
         ip route add 16.0.0.0/24 via 10.0.1.2 test1 out-labels 40 41
         mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17
         mpls local-label add 16 non-eos via 10.0.1.2 test1 out-labels 60 17
         mpls local-label add 18 eos via 10.0.1.2 test1
         mpls local-label add 19 non-eos via 10.0.1.2 test1 out-labels implicit-null
         mpls local-label add 20 eos via ip4-lookup-in-table 7
         mpls local-label add 21 non-eos via mpls-lookup-in-table 5
         mpls local-label add 16 eos table 5 via 10.0.2.2 test2 out-labels 99
         mpls local-label add 22 eos via 10.0.1.2 test1 out-labels 70 preference 1 via 10.0.2.2 test2 out-labels 71",
    );
    r.agree(&labelled(&[16]), "10.0.1.2");
    r.agree(&labelled(&[16, 77, 78]), "10.0.1.2");
    r.agree(&labelled(&[18]), "10.0.1.2");
    r.agree(&labelled(&[19, 77]), "10.0.1.2");
    r.agree(&labelled(&[20]), "10.0.2.2");
    r.agree(&labelled(&[21, 16]), "10.0.2.2");
    r.agree(&labelled(&[22]), "10.0.2.2");
    let said = r.agree(&labelled(&[]), "10.0.1.2");
    assert_eq!(said.prefix, Some(("16.0.0.0/24".into(), 24)));
    // Without labels there is nothing to say.
    r.lab.ok("ip route replace 16.0.0.0/24 via 10.0.1.2 test1");
    assert_eq!(r.pass(&labelled(&[])).0, Said::default());
    // A dropped packet went nowhere; a stack without an end disturbs nobody.
    assert_eq!(r.pass(&labelled(&[4000])).0.stacks, None);
    let _ = r.pass(&Packet::new().payload(&[0, 1, 0, 9, 0, 1, 0]));
    r.lab.close();
}

#[test]
fn tunnels_and_pseudowires_are_named() {
    let mut r = Router::new();
    for line in [
        "mpls tunnel add mpls-tunnel3 via 10.0.1.2 test1 out-labels 40",
        "mpls tunnel add mpls-tunnel4 l2-only via 10.0.1.2 test1 out-labels 50",
    ] {
        r.lab.cli(line);
    }
    r.lab.ok("set interface state mpls-tunnel3 up
         set interface state mpls-tunnel4 up
         set interface tag mpls-tunnel4 acme
         ip route add 16.0.0.0/24 via mpls-tunnel3
         mpls local-label add 16 eos via mpls-tunnel3 out-labels 17");
    let said = r.agree(&labelled(&[]), "10.0.1.2");
    assert_eq!(said.tunnel, Some(("mpls-tunnel3".into(), 3)));
    let said = r.agree(&labelled(&[16]), "10.0.1.2");
    assert_eq!(said.tunnel, Some(("mpls-tunnel3".into(), 3)));
    // The labels below the tunnel's are not known: the sample leaves them out.
    r.lab.ok("ip route replace 16.0.0.0/24 via mpls-tunnel3 out-labels 18");
    let (said, _) = r.pass(&labelled(&[]));
    assert_eq!((said.stacks, said.tunnel), (None, Some(("mpls-tunnel3".into(), 3))));
    r.lab.ok("set interface ip address del test0 10.0.0.1/24\nset interface l2 xconnect test0 mpls-tunnel4");
    let (to, from) = (host_mac(0, 8), host_mac(0, 9));
    let (said, sent) = r.pass_frame(framed(to, from, ethertype::IPV4, &labelled(&[]).build()));
    assert_eq!((said.wire, said.prefix), (Some(("acme".into(), 4)), None));
    assert_eq!(sent.get(12..14), Some(&[0x88, 0x47][..]));
    r.lab.close();
}
