//! A router of the real features between test interfaces, with IPv6 addresses and hosts.

use std::net::Ipv6Addr;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use thalweg_device::testing;
use thalweg_engine::Feature;
use thalweg_feat_neighbor as neighbor;
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::Ipv6View;

/// The MAC address of interface `testN`.
pub fn our_mac(n: u8) -> MacAddr {
    MacAddr(testing::our_mac(n))
}

/// The MAC address of host `host` behind interface `testN`.
pub fn host_mac(n: u8, host: u8) -> MacAddr {
    MacAddr::new(2, 0, 0, 0x99, n, host)
}

pub fn at(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}

/// 2001:db8:0:n::host
pub fn ip(n: u8, host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, n.into(), 0, 0, 0, host.into())
}

/// The link-local address of host `host`.
pub fn link(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0x99, host.into())
}

/// The clock of timers is the process's: tests that move it run one after the other.
static CLOCK: Mutex<()> = Mutex::new(());

/// Three interfaces.
pub struct Lab(testing::Lab, Option<MutexGuard<'static, ()>>);

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
        Lab::bare_of(1)
    }

    fn bare_of(workers: usize) -> Lab {
        let features: [&Feature; 7] = [
            &thalweg_device::FEATURE,
            &thalweg_fib::FEATURE,
            &thalweg_feat_ethernet::FEATURE,
            &neighbor::FEATURE,
            &thalweg_feat_nd::FEATURE,
            &thalweg_feat_ip::FEATURE,
            &thalweg_feat_ip6::FEATURE,
        ];
        let lab = testing::Lab::new(&features, workers, 2048, 3);
        // Requests are repeated by the clock, whatever packets come.
        neighbor::set_throttle(&lab.c, std::time::Duration::from_secs(3600));
        Lab(lab, None)
    }

    /// As [`bare`](Self::bare), with the clock to itself.
    pub fn bare_alone() -> Lab {
        let alone = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lab = Lab::bare();
        lab.1 = Some(alone);
        lab
    }

    /// As [`bare`](Self::bare), with 2001:db8:0:n::1/64 on `testN` and static neighbours from `::2`
    /// to `::4`.
    pub fn new() -> Lab {
        Lab::of(1)
    }

    /// The same with several workers.
    pub fn of(workers: usize) -> Lab {
        let mut lab = Lab::bare_of(workers);
        for n in 0..3 {
            lab.ok(&format!("set interface ip address test{n} {}/64", ip(n, 1)));
            for host in 2..=4 {
                lab.neighbor(n, ip(n, host), host_mac(n, host));
            }
        }
        lab
    }

    pub fn neighbor(&mut self, n: u8, ip: Ipv6Addr, mac: MacAddr) {
        let flags = neighbor::NeighborFlags { is_static: true, ..Default::default() };
        let sw_if = self.sw_if(n);
        neighbor::set(&mut self.c, sw_if, ip.into(), mac, flags).expect("neighbour");
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
        self.0.counters(&["ip6-icmp-error"])
    }

    /// The link-local address of `testN`.
    pub fn link_local(&self, n: u8) -> Ipv6Addr {
        thalweg_feat_ip6::link_local::of(&self.c, self.sw_if(n)).expect("IPv6")
    }

    /// Stops the router: all packets are accounted for, all buffers returned.
    pub fn close(self) {
        self.0.close();
    }
}

/// An Ethernet frame from a host to the router's interface.
pub fn framed(n: u8, host: u8, packet: &[u8]) -> Vec<u8> {
    framed_to(our_mac(n), host_mac(n, host), packet)
}

/// An Ethernet frame.
pub fn framed_to(to: MacAddr, from: MacAddr, packet: &[u8]) -> Vec<u8> {
    let mut frame = [to.0, from.0].concat();
    frame.extend([0x86, 0xdd]);
    frame.extend(packet);
    frame
}

/// A UDP packet of `len` data bytes.
pub fn udp(src: Ipv6Addr, dst: Ipv6Addr, len: usize) -> Packet {
    let data: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
    Packet::new().ipv6(src, dst).udp(1024, 53).payload(&data)
}

/// The IPv6 packet in a frame sent by the router to a host.
pub fn sound(n: u8, host: u8, frame: &[u8]) -> Ipv6View<'_> {
    assert_eq!(frame[..6], host_mac(n, host).0, "destination");
    assert_eq!(frame[6..12], our_mac(n).0, "source");
    assert_eq!(frame[12..14], [0x86, 0xdd]);
    Ipv6View::parse(&frame[14..]).expect("a sound header")
}

/// An ICMPv6 message sent to `host` behind `testN`: its packet, and the message, whose checksum is
/// right.
pub fn icmp(n: u8, host: u8, frame: &[u8]) -> (Ipv6Addr, Icmp6View<'_>) {
    let ip = sound(n, host, frame);
    assert_eq!(ip.next_header(), 58);
    let icmp = Icmp6View::parse(ip.payload()).expect("icmp");
    assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
    (ip.src(), icmp)
}
