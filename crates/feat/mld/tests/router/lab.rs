//! A router between test interfaces, and queries of another router.

use std::net::Ipv6Addr;
use thalweg_device::testing::ip6::{at, icmp_packet, to_group};
use thalweg_device::testing::{Lab, host_mac};
use thalweg_wire::MacAddr;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::Ipv6View;

/// Interfaces with addresses of MAC addresses, and the clock to itself.
pub fn router() -> Lab {
    Lab::of(&thalweg_feat_mld::FEATURE).interfaces(2).alone().start()
}

/// A message: type, and records of a kind and a group, or the group alone.
#[derive(PartialEq, Eq, Debug)]
pub struct Said {
    pub kind: u8,
    pub src: Ipv6Addr,
    pub dst: Ipv6Addr,
    pub records: Vec<(u8, Ipv6Addr)>,
    /// Sources of all records.
    pub sources: Vec<Ipv6Addr>,
}

/// Messages of listeners.
pub trait Listens {
    /// Messages that `testN` has sent since the last call.
    fn said(&mut self, n: u8) -> Vec<Said>;
    /// The groups that `show ip6 mld` lists for `testN`.
    fn listed(&mut self, n: u8) -> Vec<String>;
    /// `testN` receives a message of another router.
    fn hear(&mut self, n: u8, dst: Ipv6Addr, message: &[u8]);
}

impl Listens for Lab {
    fn said(&mut self, n: u8) -> Vec<Said> {
        self.turn();
        let sw_if = self.sw_if(n);
        let sent = self.sent().into_iter().filter(|(i, _)| *i == sw_if);
        sent.filter_map(|(_, frame)| read(&frame)).collect()
    }
    fn listed(&mut self, n: u8) -> Vec<String> {
        let text = self.cli(&format!("show ip6 mld test{n}"));
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix("ff02::"));
        lines.map(str::to_owned).collect()
    }
    fn hear(&mut self, n: u8, dst: Ipv6Addr, message: &[u8]) {
        self.receive(n, vec![frame(at("fe80::9"), dst, 1, ALERT, message)]);
        self.turn();
    }
}

/// A hop-by-hop header with the router alert option.
pub const ALERT: &[u8] = &[58, 0, 5, 2, 0, 0, 1, 0];

/// A query of version 2, or with `old` of version 1.
pub fn query(group: Ipv6Addr, within_ms: u16, old: bool) -> Vec<u8> {
    let mut m = vec![130, 0, 0, 0];
    m.extend(within_ms.to_be_bytes());
    m.extend([0, 0]);
    m.extend(group.octets());
    if !old {
        m.extend([2, 20, 0, 0]);
    }
    m
}

/// A frame of another router.
pub fn frame(src: Ipv6Addr, dst: Ipv6Addr, hops: u8, options: &[u8], message: &[u8]) -> Vec<u8> {
    to_group(host_mac(0, 9), &icmp_packet((src, dst), hops, options, message))
}

/// Reads a message of a listener, which is sound.
fn read(frame: &[u8]) -> Option<Said> {
    let ip = Ipv6View::parse(frame.get(14..)?).ok()?;
    let transport = ip.transport().ok()?;
    let icmp = Icmp6View::parse(transport.payload).ok()?;
    let m = transport.payload;
    let group = |b: &[u8]| Ipv6Addr::from(*b.first_chunk::<16>().expect("a group"));
    let (mut records, mut sources) = (Vec::new(), Vec::new());
    match icmp.kind() {
        131 | 132 => records.push((0, group(&m[8..]))),
        143 => {
            let mut rest = &m[8..];
            for _ in 0..m[7] {
                let (record, behind) = rest.split_at(20);
                records.push((record[0], group(&record[4..])));
                let (listed, behind) = behind.split_at(16 * usize::from(record[3]));
                sources.extend(listed.chunks(16).map(group));
                rest = behind;
            }
            assert!(rest.is_empty());
        }
        _ => return None,
    }
    assert_eq!((ip.hop_limit(), ip.router_alert()), (1, Some(0)));
    assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
    assert_eq!(frame[..6], MacAddr::from_ipv6_multicast(ip.dst()).0);
    Some(Said { kind: icmp.kind(), src: ip.src(), dst: ip.dst(), records, sources })
}
