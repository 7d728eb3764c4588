//! The ways that packets go in the benchmarks: commands, routes, streams.

use std::fs;
use std::io::Result;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use thalweg_feat_ip::TableId;

use thalweg_feat_ip::{Path as Way, add_route};
use thalweg_tables::hash::mix64;
use thalweg_tables::lpm4::internet;
use thalweg_tables::lpm6::internet6;
use thalweg_tables::{Address, Ipv4Prefix, Ipv6Prefix, Prefix};
use thalweg_wire::{MacAddr, pcap};

use crate::Router;

/// Two ports of the generator, up.
pub const PORTS: &str = "create packet-generator interface pg0
    create packet-generator interface pg1
    set interface state pg0 up
    set interface state pg1 up";

/// Their addresses.
pub const ADDRESSES: &str = "set interface mac address pg0 02:fe:00:00:00:01
    set interface mac address pg1 02:fe:00:00:00:02
    set interface ip address pg0 10.0.0.254/24
    set interface ip address pg1 10.1.0.254/24";

/// Neighbours behind `pg1`: 10.1.0.1 and so on.
pub const NEIGHBORS: u8 = 16;

/// A way for packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// Layer 2 cross connect.
    L2,
    /// A bridge domain that learns, one MAC address each side.
    Bridge,
    /// The same, 10,000 MAC addresses each side.
    Macs,
    /// One flow.
    OneFlow,
    /// 10,000 flows over 10,000 /32 routes by one next hop.
    HostRoutes,
    /// 10,000 flows over 10,000 /32 routes by 16 next hops in turn.
    NextHops,
    /// 10,000 flows over one route by 16 next hops.
    Ecmp,
    /// 500,000 routes as in the Internet's table, 16 next hops, destinations at random.
    Internet,
    /// One flow between two dot1q sub-interfaces, one on each port.
    Vlan,
    /// The same while 4,094 sub-interfaces exist.
    VlanOfMany,
    /// Flows between all of 4,094 sub-interfaces, at random.
    VlanRandom,
    /// A bridge domain of two sub-interfaces that pop their tags, one MAC address each side.
    Retag,
    /// The same, 10,000 MAC addresses each side.
    RetagMacs,
    /// IPv6, one flow.
    Six,
    /// IPv6, 10,000 destinations under one /48.
    SixDestinations,
    /// IPv6, 10,000 routes to /64 by 16 next hops in turn.
    SixNextHops,
    /// IPv6, 250,000 routes as in the Internet's table, 16 next hops, destinations at random.
    SixInternet,
    /// A label is swapped.
    MplsSwap,
    /// A label is pushed on IPv4 packets.
    MplsPush,
    /// A label is popped, and the IPv4 packet sent to a next hop.
    MplsPop,
    /// 100,000 labels at random are swapped, 16 next hops.
    MplsLabels,
}

/// Numbers for cases that have many.
pub struct Many {
    /// Sub-interfaces of each of two ports.
    pub vlans: u16,
    /// Labels that are swapped.
    pub labels: u32,
    /// Packets of a stream in which they come at random.
    pub packets: u64,
}

impl Many {
    /// Numbers that the cases' names state.
    pub const ALL: Many = Many { vlans: 2047, labels: 100_000, packets: 1 << 18 };
    /// Few enough for an emulator to set up in a moment.
    pub const FEW: Many = Many { vlans: 64, labels: 1000, packets: 1 << 12 };
}

impl Case {
    /// All of them.
    pub const ALL: [Case; 21] = [
        Case::L2,
        Case::Bridge,
        Case::Macs,
        Case::OneFlow,
        Case::HostRoutes,
        Case::NextHops,
        Case::Ecmp,
        Case::Internet,
        Case::Vlan,
        Case::VlanOfMany,
        Case::VlanRandom,
        Case::Retag,
        Case::RetagMacs,
        Case::Six,
        Case::SixDestinations,
        Case::SixNextHops,
        Case::SixInternet,
        Case::MplsSwap,
        Case::MplsPush,
        Case::MplsPop,
        Case::MplsLabels,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Case::L2 => "L2 cross connect",
            Case::Bridge => "L2 bridge domain, 1 MAC address",
            Case::Macs => "L2 bridge domain, 10,000 MAC addresses",
            Case::OneFlow => "IPv4, 1 flow",
            Case::HostRoutes => "IPv4, 10,000 flows over 10,000 /32 routes",
            Case::NextHops => "IPv4, 10,000 /32 routes over 16 next hops",
            Case::Ecmp => "IPv4, 10,000 flows, 16-way ECMP",
            Case::Internet => "IPv4, 500,000 routes, random destinations",
            Case::Vlan => "IPv4, 1 flow between VLANs",
            Case::VlanOfMany => "IPv4, 1 flow between 2 of 4,094 VLANs",
            Case::VlanRandom => "IPv4, 4,094 VLANs at random",
            Case::Retag => "L2 bridge domain, tag rewrite, 1 MAC address",
            Case::RetagMacs => "L2 bridge domain, tag rewrite, 10,000 MAC addresses",
            Case::Six => "IPv6, 1 flow",
            Case::SixDestinations => "IPv6, 10,000 destinations under one /48",
            Case::SixNextHops => "IPv6, 10,000 /64 routes over 16 next hops",
            Case::SixInternet => "IPv6, 250,000 routes, random destinations",
            Case::MplsSwap => "MPLS, 1 label swapped",
            Case::MplsPush => "IPv4, 1 flow, 1 label pushed",
            Case::MplsPop => "MPLS, 1 label popped, then IPv4",
            Case::MplsLabels => "MPLS, 100,000 labels swapped, at random",
        }
    }

    /// Configures a fresh router for it, its stream `s0` on worker 0 included.
    pub fn set_up(self, r: &mut Router) {
        self.set_up_with(r, &Many::ALL);
    }

    /// The same with other numbers of VLANs and labels.
    pub fn set_up_with(self, r: &mut Router, many: &Many) {
        r.cli(PORTS);
        match self {
            Case::L2 => drop(r.cli("set interface l2 xconnect pg0 pg1")),
            Case::Bridge => bridge(r, ["pg0", "pg1"], 1),
            Case::Macs => {
                bridge(r, ["pg0", "pg1"], MACS);
                return stream_of(r, "s0", 0, each_with_each());
            }
            Case::Vlan => return vlans(r, 1, &[1]),
            Case::VlanOfMany => return vlans(r, many.vlans, &[many.vlans / 2]),
            Case::VlanRandom => {
                let vlan = |n: u64| 1 + (mix64(n) % u64::from(many.vlans)) as u16;
                let packets = many.packets.min(1 << 16);
                return vlans(r, many.vlans, &(0..packets).map(vlan).collect::<Vec<_>>());
            }
            Case::Retag => {
                retag(r, 1);
                return stream_of(r, "s0", 0, [tagged(10, packet(48 << 24))].into_iter());
            }
            Case::RetagMacs => {
                retag(r, MACS);
                return stream_of(r, "s0", 0, each_with_each().map(|p| tagged(10, p)));
            }
            Case::Six | Case::SixDestinations | Case::SixNextHops | Case::SixInternet => {
                address6(r);
                let to = self.set_up6(r);
                return stream_of(r, "s0", 0, to.into_iter().map(packet6));
            }
            _ => address(r),
        }
        match self {
            Case::OneFlow => drop(r.cli("ip route add 48.0.0.0/8 via 10.1.0.1 pg1")),
            Case::MplsPush => {
                r.cli("ip route add 48.0.0.0/8 via 10.1.0.1 pg1 out-labels 17");
            }
            Case::MplsSwap | Case::MplsPop => return mpls(self, r, 1, 1),
            Case::MplsLabels => return mpls(self, r, many.labels, many.packets),
            Case::HostRoutes => {
                r.cli("ip route add 48.0.0.0/32 count 10000 via 10.1.0.1 pg1");
            }
            Case::NextHops => add_routes(r, &hosts(10_000)),
            Case::Ecmp => {
                let hops = (1..=NEIGHBORS).map(|n| format!(" via 10.1.0.{n} pg1"));
                r.cli(&format!("ip route add 48.0.0.0/8{}", hops.collect::<String>()));
            }
            Case::Internet => {
                let routes = internet(500_000);
                add_routes(r, &routes);
                stream_to(r, "s0", &destinations(&routes, 1 << 18));
                return;
            }
            _ => {}
        }
        let to = match self {
            Case::L2 | Case::Bridge | Case::OneFlow | Case::MplsPush => "48.0.0.1",
            _ => "48.0.0.0 - 48.0.39.15",
        };
        r.cli(&stream("s0", "pg0", 0, to));
    }

    /// Adds the routes of an IPv6 case; returns the destinations.
    fn set_up6(self, r: &mut Router) -> Vec<u128> {
        let base = 0x2001_0db8u128 << 96;
        let net = |n: u64| base | u128::from(n) << 64;
        match self {
            Case::SixDestinations => {
                r.cli("ip route add 2001:db8::/48 via 2001:db8:ffff::1 pg1");
                (0..10_000).map(|n| base | u128::from(mix64(n)) & 0xffff_ffff_ffff_ffff).collect()
            }
            Case::SixNextHops => {
                let prefixes: Vec<_> = (0..10_000).map(|n| prefix6(net(n), 64)).collect();
                add_routes(r, &prefixes);
                (0..10_000).map(|n| net(n) | u128::from(mix64(n))).collect()
            }
            Case::SixInternet => {
                let routes = internet6(250_000);
                add_routes(r, &routes);
                destinations6(&routes, 1 << 18)
            }
            _ => {
                r.cli("ip route add 2001:db8::/48 via 2001:db8:ffff::1 pg1");
                vec![base | 1]
            }
        }
    }
}

fn prefix6(addr: u128, len: u8) -> Ipv6Prefix {
    Ipv6Prefix::new(addr, len).unwrap_or_else(|e| panic!("{e}"))
}

/// `n` addresses in these prefixes, drawn at random, the same in each run.
fn destinations6(prefixes: &[Ipv6Prefix], n: usize) -> Vec<u128> {
    let one = |i: u64| {
        let prefix = prefixes[(mix64(i ^ 0x5eed) % prefixes.len() as u64) as usize];
        let random = u128::from(mix64(!i ^ 0x5eed)) << 64 | u128::from(mix64(!i));
        prefix.addr() | random & !prefix.mask()
    };
    (0..n as u64).map(one).collect()
}

/// 64 bytes of Ethernet, IPv6 and UDP from 2001:db8:fffe::2, for `pg0` to receive.
fn packet6(to: u128) -> [u8; 64] {
    let mut p = [0; 64];
    p[..12].copy_from_slice(&[2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xaa]);
    p[12..22].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 10, 17, 64]);
    p[22..38].copy_from_slice(&(0x2001_0db8_fffe_u128 << 80 | 2).to_be_bytes());
    p[38..54].copy_from_slice(&to.to_be_bytes());
    p[54..60].copy_from_slice(&[0x04, 0xd2, 0x10, 0xe1, 0, 10]);
    p
}

/// Gives the ports IPv6 addresses and neighbours.
fn address6(r: &mut Router) {
    r.cli(
        "set interface mac address pg0 02:fe:00:00:00:01
         set interface mac address pg1 02:fe:00:00:00:02
         set interface ip address pg0 2001:db8:fffe::254/64
         set interface ip address pg1 2001:db8:ffff::254/64",
    );
    for n in 1..=NEIGHBORS {
        r.cli(&format!("set ip neighbor pg1 2001:db8:ffff::{n:x} 02:00:00:00:01:{n:02x} static"));
    }
}

/// The first label that is no reserved one.
const FIRST_LABEL: u32 = 16;

/// Binds labels, and defines the stream of labelled packets.
fn mpls(case: Case, r: &mut Router, labels: u32, packets: u64) {
    r.cli("mpls table add 0\nset interface mpls pg0 enable");
    for n in 0..labels {
        let (hop, label) = (1 + n % u32::from(NEIGHBORS), FIRST_LABEL + n);
        let out = match case {
            Case::MplsPop => String::new(),
            _ => format!(" out-labels {label}"),
        };
        r.cli(&format!("mpls local-label add {label} eos via 10.1.0.{hop} pg1{out}"));
    }
    let one = |n: u64| labelled(FIRST_LABEL + mix64(n) as u32 % labels, packet(48 << 24 | 1));
    stream_of(r, "s0", 0, (0..packets).map(one));
}

/// Puts a label on a packet of [`packet`], which loses its last four bytes for it.
fn labelled(label: u32, p: [u8; 64]) -> [u8; 64] {
    // Labels are as long as a VLAN tag, which is before the ethertype.
    let mut out = tagged(0, p);
    out[12..14].copy_from_slice(&[0x88, 0x47]);
    out[14..18].copy_from_slice(&(label << 12 | 1 << 8 | 64).to_be_bytes());
    out
}

/// Hosts on each side of a bridge domain.
const MACS: u32 = 10_000;

/// The MAC address of a host on a side; those of the first are what [`stream`] sends from and to.
fn mac(side: u8, n: u32) -> [u8; 6] {
    let [_, a, b, c] = n.to_be_bytes();
    match (side, n) {
        (0, 0) => [2, 0, 0, 0, 0, 0xaa],
        (1, 0) => [2, 0xfe, 0, 0, 0, 1],
        _ => [2, 0xb0 + side, 0, a, b, c],
    }
}

/// Packets between the hosts of both sides: each with each, in no order that a prefetcher knows.
fn each_with_each() -> impl Iterator<Item = [u8; 64]> {
    (0..1 << 16).map(|n| {
        let mut p = packet(48 << 24);
        p[..6].copy_from_slice(&mac(1, mix64(n) as u32 % MACS));
        p[6..12].copy_from_slice(&mac(0, mix64(!n) as u32 % MACS));
        p
    })
}

/// Puts a dot1q tag on a packet of [`packet`], which loses its last four bytes for it.
fn tagged(vlan: u16, p: [u8; 64]) -> [u8; 64] {
    let mut out = [0; 64];
    out[..12].copy_from_slice(&p[..12]);
    out[12..14].copy_from_slice(&[0x81, 0]);
    out[14..16].copy_from_slice(&vlan.to_be_bytes());
    out[16..].copy_from_slice(&p[12..60]);
    // IP and UDP are shorter, too.
    out[20..22].copy_from_slice(&46u16.to_be_bytes());
    out[42..44].copy_from_slice(&26u16.to_be_bytes());
    out[28..30].fill(0);
    let sum: u32 = out[18..38].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let check = !(((sum & 0xffff) + (sum >> 16)) as u16);
    out[28..30].copy_from_slice(&check.to_be_bytes());
    out
}

/// Makes `n` sub-interfaces on each port, and a neighbour and a route by each of `pg1`. Packets
/// come by these VLANs one after the other, each to an unrelated VLAN of the other port.
fn vlans(r: &mut Router, n: u16, from: &[u16]) {
    r.cli("set interface mac address pg0 02:fe:00:00:00:01");
    let to = |vlan: u16| (48 << 24) + u32::from(vlan);
    for vlan in 1..=n {
        let net = format!("10.{}.{}", 128 + (vlan >> 8), vlan & 0xff);
        r.cli(&format!(
            "create sub-interfaces pg0 {vlan}
             create sub-interfaces pg1 {vlan}
             set interface state pg0.{vlan} up
             set interface state pg1.{vlan} up
             enable ip4 interface pg0.{vlan}
             set interface ip address pg1.{vlan} {net}.254/24
             set ip neighbor pg1.{vlan} {net}.1 02:00:00:00:01:01 static
             ip route add {}/32 via {net}.1 pg1.{vlan}",
            Ipv4Addr::from_bits(to(vlan)),
        ));
    }
    let other = |vlan: u16| 1 + (mix64(u64::from(vlan) ^ 0x5eed) % u64::from(n)) as u16;
    let packets: Vec<_> = from.iter().map(|v| tagged(*v, packet(to(other(*v))))).collect();
    stream_of(r, "s0", 0, packets.into_iter());
}

/// A bridge domain of two sub-interfaces that pop their tags, VLAN 10 and VLAN 20.
fn retag(r: &mut Router, n: u32) {
    r.cli(
        "create sub-interfaces pg0 10
         create sub-interfaces pg1 20
         set interface state pg0.10 up
         set interface state pg1.20 up",
    );
    bridge(r, ["pg0.10", "pg1.20"], n);
    r.cli(
        "set interface l2 tag-rewrite pg0.10 pop 1
         set interface l2 tag-rewrite pg1.20 pop 1",
    );
}

/// A bridge domain of both ports that knows `n` hosts behind each, as if it had learned them.
fn bridge(r: &mut Router, ports: [&str; 2], n: u32) {
    for port in ports {
        r.cli(&format!("set interface l2 bridge {port} 1"));
    }
    let origin = thalweg_feat_l2::Origin::Added;
    for (side, port) in (0..).zip(ports) {
        let port = thalweg_device::interface::find(r.control(), port);
        let port = port.unwrap_or_else(|e| panic!("{e}"));
        for n in 0..n {
            let added = thalweg_feat_l2::add_address(
                r.control(),
                1,
                MacAddr(mac(side, n)),
                Some(port),
                origin,
            );
            added.unwrap_or_else(|e| panic!("{e}"));
        }
    }
    r.cli("");
}

/// Gives the ports addresses and neighbours.
pub fn address(r: &mut Router) {
    r.cli(ADDRESSES);
    for n in 1..=NEIGHBORS {
        r.cli(&format!("set ip neighbor pg1 10.1.0.{n} 02:00:00:00:01:{n:02x} static"));
    }
}

/// The command for an endless stream of 64-byte packets.
pub fn stream(name: &str, port: &str, worker: usize, to: &str) -> String {
    format!(
        "packet-generator new {{ name {name} limit -1 size 64-64 interface {port} worker {worker} \
         data {{ IP4: 0200.0000.00aa -> 02fe.0000.0001 UDP: 10.0.0.1 -> {to} \
         UDP: 1234 -> 4321 incrementing 22 }} }}"
    )
}

/// The /32 prefixes from 48.0.0.0 on.
pub fn hosts(n: u32) -> Vec<Ipv4Prefix> {
    (0..n).map(|i| Ipv4Prefix::host((48 << 24) + i)).collect()
}

/// Adds a route for each prefix, by the neighbours in turn.
///
/// # Panics
/// If one is refused.
pub fn add_routes<A: Address>(r: &mut Router, prefixes: &[Prefix<A>]) {
    let c = r.control();
    let pg1 = thalweg_device::interface::find(c, "pg1").unwrap_or_else(|e| panic!("{e}"));
    for (i, prefix) in prefixes.iter().enumerate() {
        let n = 1 + (i % usize::from(NEIGHBORS)) as u8;
        let hop = match A::BITS {
            32 => Ipv4Addr::new(10, 1, 0, n).into(),
            _ => IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, n.into())),
        };
        let path = Way::via(hop, Some(pg1));
        if let Err(e) = add_route(c, TableId(0), *prefix, vec![path], true) {
            panic!("{prefix}: {e}");
        }
    }
    r.cli("");
}

/// `n` addresses in these prefixes, drawn at random, the same in each run.
pub fn destinations(prefixes: &[Ipv4Prefix], n: usize) -> Vec<u32> {
    let one = |i: u64| {
        let prefix = prefixes[(mix64(i ^ 0x5eed) % prefixes.len() as u64) as usize];
        prefix.addr() | mix64(!i ^ 0x5eed) as u32 & !prefix.mask()
    };
    // Packets to an address of one link are not forwarded.
    (0..).map(one).filter(|to| to >> 16 != 0xa9fe).take(n).collect()
}

/// Defines an endless stream of packets to these addresses, one after the other.
///
/// # Panics
/// If the file in which they go to the generator cannot be written.
pub fn stream_to(r: &mut Router, name: &str, to: &[u32]) {
    stream_of(r, name, 0, to.iter().map(|to| packet(*to)));
}

/// Defines an endless stream of these packets on a worker, one after the other.
///
/// # Panics
/// If the file in which they go to the generator cannot be written.
pub fn stream_of(
    r: &mut Router,
    name: &str,
    worker: usize,
    packets: impl Iterator<Item = [u8; 64]>,
) {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("a folder for packets: {e}"));
    let file = dir.path().join("packets.pcap");
    write_pcap(&file, packets).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    r.cli(&format!(
        "packet-generator new {{ name {name} limit 1e18 interface pg0 worker {worker} pcap {} }}",
        file.display()
    ));
}

fn write_pcap(file: &Path, packets: impl Iterator<Item = [u8; 64]>) -> Result<()> {
    let mut out = pcap::File::new(pcap::LINK_ETHERNET, 65_535);
    packets.for_each(|packet| out.packet(0, 64, [&packet[..]]));
    fs::write(file, out.bytes())
}

/// 64 bytes of Ethernet, IPv4 and UDP with both checksums, for `pg0` to receive.
pub fn flow_packet(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> [u8; 64] {
    let mut p = packet(to.0.to_bits());
    p[26..30].copy_from_slice(&from.0.octets());
    p[34..36].copy_from_slice(&from.1.to_be_bytes());
    p[36..38].copy_from_slice(&to.1.to_be_bytes());
    p[24..26].fill(0);
    let sum = |bytes: &[u8], start: u32| {
        let words = bytes.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        let sum = words.fold(start, |a, b| a + b);
        let sum = (sum & 0xffff) + (sum >> 16);
        !(((sum & 0xffff) + (sum >> 16)) as u16)
    };
    let ip = sum(&p[14..34], 0);
    p[24..26].copy_from_slice(&ip.to_be_bytes());
    // Sum of what is behind the addresses, protocol and length of the pseudo-header.
    let udp = sum(&p[26..64], 17 + 30);
    p[40..42].copy_from_slice(&udp.to_be_bytes());
    p
}

/// Translation of addresses, from `pg0` to `pg1`.
pub mod nat {
    use super::{Ipv4Addr, PORTS, Router, address, flow_packet};
    use thalweg_feat_nat44::worker::owner;

    /// Destination of all flows.
    pub const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(48, 0, 0, 1), 443);
    /// Flows of a host inside.
    const PORTS_EACH: u32 = 16;

    /// The source of a flow: hosts from 10.64.0.0 on.
    pub fn source(flow: u32) -> (Ipv4Addr, u16) {
        let host = Ipv4Addr::from_bits(0x0a40_0000 + flow / PORTS_EACH);
        (host, 1024 + (flow % PORTS_EACH) as u16)
    }

    /// A packet of a flow, from the inside.
    pub fn packet(flow: u32) -> [u8; 64] {
        flow_packet(source(flow), SERVER)
    }

    /// Flows for one of two workers, in the order of their numbers, none of which the other one
    /// gets; if workers are `apart`, their hosts are that worker's.
    pub fn flows(worker: usize, apart: bool) -> impl Iterator<Item = u32> {
        // Numbers enough for the hosts that are needed, however they fall.
        const ALL: u32 = 1 << 22;
        let mine = move |n: &u32| !apart || owner(source(*n).0, 2) == worker;
        (0..ALL).map(move |n| n + (worker as u32) * ALL).filter(mine)
    }

    /// Makes a fresh router know how to translate this number of sessions.
    pub fn set_up(r: &mut Router, sessions: u32) {
        r.cli(PORTS);
        address(r);
        r.cli(&format!(
            "ip route add 48.0.0.0/8 via 10.1.0.1 pg1
             nat44 plugin enable sessions {sessions}
             nat44 add address 203.0.113.0 - 203.0.113.63"
        ));
    }
}

/// 64 bytes of Ethernet, IPv4 and UDP from 10.0.0.1, for `pg0` to receive.
pub fn packet(to: u32) -> [u8; 64] {
    let mut p = [0; 64];
    p[..12].copy_from_slice(&[2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xaa]);
    p[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 50]);
    p[22..24].copy_from_slice(&[64, 17]);
    p[26..30].copy_from_slice(&[10, 0, 0, 1]);
    p[30..34].copy_from_slice(&to.to_be_bytes());
    p[34..40].copy_from_slice(&[0x04, 0xd2, 0x10, 0xe1, 0, 30]);
    let sum: u32 = p[14..34].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let check = !(((sum & 0xffff) + (sum >> 16)) as u16);
    p[24..26].copy_from_slice(&check.to_be_bytes());
    p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_routed() {
        let routes = internet(5000);
        for to in destinations(&routes, 1000) {
            assert!(routes.iter().any(|p| p.contains(to)), "{to:x}");
        }
    }

    #[test]
    fn packets_of_a_file_are_forwarded() {
        let mut r = Router::start(&[None]);
        r.cli(PORTS);
        address(&mut r);
        let routes = internet(100);
        add_routes(&mut r, &routes);
        stream_to(&mut r, "s0", &destinations(&routes, 1000));
        r.cli("packet-generator configure s0 limit 3000\npacket-generator enable-stream s0");
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while r.control().worker_stats(0).totals.rx.get() < 3000 {
            assert!(std::time::Instant::now() < end, "{}", r.cli("show packet-generator"));
            r.wait(std::time::Duration::from_millis(5));
        }
        r.stop();
    }
}
