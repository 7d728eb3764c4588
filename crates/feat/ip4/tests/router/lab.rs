//! A router of the real features between test interfaces, with IPv4 addresses and hosts.

use std::net::Ipv4Addr;
use std::ops::{Deref, DerefMut};
use thalweg_device::testing;
use thalweg_engine::Feature;
use thalweg_feat_neighbor as neighbor;
use thalweg_tables::Ipv4Prefix;
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::IcmpView;
use thalweg_wire::ipv4::{self, Ipv4View};

/// The MAC address of interface `testN`.
pub fn our_mac(n: u8) -> MacAddr {
    MacAddr(testing::our_mac(n))
}

/// The MAC address of host `host` behind interface `testN`.
pub fn host_mac(n: u8, host: u8) -> MacAddr {
    MacAddr::new(2, 0, 0, 0x99, n, host)
}

/// 10.0.n.host
pub fn ip(n: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, n, host)
}

pub fn prefix(text: &str) -> Ipv4Prefix {
    let (addr, len) = text.split_once('/').expect("a prefix");
    let addr: Ipv4Addr = addr.parse().expect("an address");
    Ipv4Prefix::new(addr.to_bits(), len.parse().expect("a length")).expect("a length")
}

/// Three interfaces.
pub struct Lab(testing::Lab);

impl Deref for Lab {
    type Target = testing::Lab;
    fn deref(&self) -> &testing::Lab {
        &self.0
    }
}

impl DerefMut for Lab {
    fn deref_mut(&mut self) -> &mut testing::Lab {
        &mut self.0
    }
}

impl Lab {
    /// Interfaces `test0` to `test2` that are up and have no address.
    pub fn bare() -> Lab {
        Lab::bare_of(1, 2048)
    }

    fn bare_of(workers: usize, buffers: usize) -> Lab {
        let features: [&Feature; 7] = [
            &thalweg_device::FEATURE,
            &thalweg_fib::FEATURE,
            &thalweg_feat_ethernet::FEATURE,
            &neighbor::FEATURE,
            &thalweg_feat_arp::FEATURE,
            &thalweg_feat_ip::FEATURE,
            &thalweg_feat_ip4::FEATURE,
        ];
        let features = [&features[..], crate::MORE].concat();
        let lab = testing::Lab::new(&features, workers, buffers, 3);
        // Requests are repeated by the clock, whatever packets come.
        neighbor::set_throttle(&lab.c, std::time::Duration::from_secs(3600));
        Lab(lab)
    }

    /// As [`bare`](Self::bare), with 10.0.n.1/24 on `testN` and static neighbours 10.0.n.2 to .4.
    pub fn new() -> Lab {
        Lab::of(1, 2048)
    }

    /// As [`new`](Self::new), with `workers` workers and `buffers` buffers.
    pub fn of(workers: usize, buffers: usize) -> Lab {
        let mut lab = Lab::bare_of(workers, buffers);
        for n in 0..3 {
            lab.ok(&format!("set interface ip address test{n} 10.0.{n}.1/24"));
            for host in 2..=4 {
                lab.neighbor(n, ip(n, host), host_mac(n, host));
            }
        }
        lab
    }

    pub fn neighbor(&mut self, n: u8, ip: Ipv4Addr, mac: MacAddr) {
        let flags = neighbor::NeighborFlags { is_static: true, ..Default::default() };
        let sw_if = self.sw_if(n);
        neighbor::set(&mut self.c, sw_if, ip.into(), mac, flags).expect("neighbour");
    }

    /// An IPv4 packet from host `host` behind `testN`.
    pub fn receive_packet(&mut self, n: u8, host: u8, packet: Packet) {
        self.receive(n, vec![framed(n, host, &packet.build())]);
    }

    /// The only frame sent since the last call, which must be on `testN`.
    pub fn sent_one(&mut self, n: u8) -> Vec<u8> {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:02x?}\n{}", self.cli("show errors"));
        assert_eq!(sent[0].0, self.sw_if(n));
        sent[0].1.clone()
    }

    /// All counters but those that depend on the clock.
    pub fn counters(&self) -> Vec<(String, u64)> {
        self.0.counters(&["ip4-icmp-error"])
    }

    /// Stops the router: all packets are accounted for, all buffers returned.
    pub fn close(self) {
        self.0.close();
    }
}

/// An Ethernet frame from a host to the router's interface.
pub fn framed(n: u8, host: u8, packet: &[u8]) -> Vec<u8> {
    let mut frame = [our_mac(n).0, host_mac(n, host).0].concat();
    frame.extend([8, 0]);
    frame.extend(packet);
    frame
}

/// A UDP packet of `len` data bytes.
pub fn udp(src: Ipv4Addr, dst: Ipv4Addr, len: usize) -> Packet {
    let data: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
    Packet::new().ipv4(src, dst).udp(1024, 53).payload(&data)
}

/// An ICMP error sent to `host` behind `testN`: type, code, and everything after the first four
/// bytes of its header.
pub struct IcmpError {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub kind: u8,
    pub code: u8,
    pub mtu: Option<u16>,
    pub quoted: Vec<u8>,
}

/// Parses a frame as an ICMP error to a host, checking addresses and checksums.
pub fn icmp_error(n: u8, host: u8, frame: &[u8]) -> IcmpError {
    let ip = sound(n, host, frame);
    assert_eq!(ip.protocol(), 1);
    let icmp = IcmpView::parse(ip.payload()).expect("icmp");
    assert!(icmp.checksum_ok());
    IcmpError {
        src: ip.src(),
        dst: ip.dst(),
        kind: icmp.kind(),
        code: icmp.code(),
        mtu: icmp.mtu(),
        quoted: icmp.payload().to_vec(),
    }
}

/// The IPv4 packet in a frame sent by the router to a host.
pub fn sound(n: u8, host: u8, frame: &[u8]) -> Ipv4View<'_> {
    assert_eq!(frame[..6], host_mac(n, host).0, "destination");
    assert_eq!(frame[6..12], our_mac(n).0, "source");
    assert_eq!(frame[12..14], [8, 0]);
    ipv4::check(&frame[14..]).expect("a sound header")
}
