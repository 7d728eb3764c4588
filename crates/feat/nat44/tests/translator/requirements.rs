//! The requirements of RFC 4787, RFC 5382 and RFC 5508, one by one.
//!
//! Each row has a requirement, its content, and a test that demonstrates it; or the reason why it
//! does not apply to endpoint-dependent NAT.

use crate::nat::{FAR, Nat, Out, SHARED, echo, tcp, udp};
use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::ip;
use thalweg_wire::icmpv4::{self, IcmpRepr};
use thalweg_wire::ipv4::Ipv4View;

const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Standing of a requirement.
enum Standing {
    /// Met, as the test demonstrates.
    Holds(fn(&mut Nat)),
    /// Missed, by design.
    Not(&'static str),
}

use Standing::{Holds, Not};

const ENDPOINT_DEPENDENT: &str = "endpoint-dependent NAT: an external port belongs to a single session, and \
     packets from other endpoints are dropped";

/// An external host that no inside host has contacted.
const STRANGER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 8);

const TABLE: &[(&str, &str, Standing)] = &[
    ("4787 REQ-1", "endpoint-independent mapping", Not(ENDPOINT_DEPENDENT)),
    ("4787 REQ-2", "paired address pooling", Holds(one_address)),
    ("4787 REQ-3", "no port overloading", Holds(no_overloading)),
    ("4787 REQ-3a", "ports in 1024-65535 stay there", Holds(high_ports)),
    ("4787 REQ-4", "port parity is kept", Holds(parity)),
    ("4787 REQ-5", "UDP timeout of at least two minutes, five by default", Holds(udp_timer)),
    ("4787 REQ-6", "outbound refresh", Holds(outbound_refresh)),
    ("4787 REQ-7", "inbound refresh is permitted", Holds(inbound_refresh)),
    ("4787 REQ-8", "filtering: address and port dependent", Holds(filtering)),
    ("4787 REQ-9", "hairpinning, with the external address as source", Holds(hairpin)),
    ("4787 REQ-9", "hairpinning with `output-feature`", Holds(hairpin_on_the_way_out)),
    ("4787 REQ-10", "application gateways are off", Holds(payload_stays)),
    ("4787 REQ-11", "behaviour does not change with time", Holds(deterministic)),
    ("4787 REQ-12", "ICMP errors end no mapping", Holds(icmp_ends_nothing)),
    ("4787 REQ-13", "fragmentation needed is reported", Holds(too_long)),
    ("4787 REQ-14", "fragments in order are translated", Holds(fragments)),
    ("5382 REQ-1", "endpoint-independent mapping", Not(ENDPOINT_DEPENDENT)),
    ("5382 REQ-2", "all TCP opens, including simultaneous open", Holds(simultaneous)),
    ("5382 REQ-3", "filtering: address and port dependent", Holds(filtering)),
    ("5382 REQ-4", "unsolicited inbound SYNs are not answered at once", Holds(unsolicited_syn)),
    ("5382 REQ-5", "established timeout of at least two hours and four minutes", Holds(tcp_timers)),
    ("5382 REQ-6", "no application gateway for TCP", Holds(payload_stays)),
    ("5382 REQ-7", "no port overloading", Holds(no_overloading)),
    ("5382 REQ-8", "hairpinning", Holds(hairpin)),
    ("5382 REQ-9", "ICMP errors about TCP are translated", Holds(icmp_translated)),
    ("5382 REQ-10", "ICMP errors end no connection", Holds(icmp_ends_nothing)),
    ("5508 REQ-1", "queries are mapped by identifier", Holds(ping)),
    ("5508 REQ-2", "ICMP query timeout of at least one minute", Holds(ping_timer)),
    ("5508 REQ-3", "broken errors are not translated", Holds(broken_error)),
    ("5508 REQ-4", "ICMP errors from outside reach the original sender", Holds(icmp_translated)),
    ("5508 REQ-5", "ICMP errors from inside leave with a mapped source", Holds(error_from_inside)),
    ("5508 REQ-6", "hairpinned errors", Holds(hairpinned_error)),
    ("5508 REQ-7", "the NAT's own errors are sent", Holds(own_errors)),
    ("5508 REQ-8", "refused sessions are answered: host unreachable", Holds(refused)),
];

#[test]
fn requirements_hold() {
    for (number, what, standing) in TABLE {
        match standing {
            Not(why) => println!("{number:12} {what}: no; {why}"),
            Holds(test) => {
                println!("{number:12} {what}: ...");
                let mut n = Nat::new();
                n.know(3..10);
                test(&mut n);
                n.close();
                println!("{number:12} {what}: holds");
            }
        }
    }
    let not = TABLE.iter().filter(|(_, _, s)| matches!(s, Not(_))).count();
    assert!((TABLE.len(), not) == (34, 2), "{} rows, {not} do not hold", TABLE.len());
}

fn near(port: u16) -> (Ipv4Addr, u16) {
    (ip(0, 2), port)
}

/// A host's ICMP error about a packet.
fn error_about(packet: &[u8], by: Ipv4Addr) -> Vec<u8> {
    let mut error = vec![0; 600];
    let view = Ipv4View::parse(packet).unwrap();
    let len = icmpv4::emit_error(IcmpRepr::unreachable(3), by, &view, &mut error).unwrap();
    error.truncate(len);
    error
}

fn established(n: &mut Nat) -> u16 {
    let port = n.one(0, 1, tcp(near(5000), (FAR, 80), SYN)).ports().0;
    n.one(1, 0, tcp((FAR, 80), (SHARED, port), SYN | ACK));
    n.one(0, 1, tcp(near(5000), (FAR, 80), ACK));
    port
}

fn left(n: &mut Nat) -> u32 {
    n.sessions()[0].left.div_ceil(1000)
}

fn one_address(n: &mut Nat) {
    n.lab.ok("nat44 add address 192.0.2.2 - 192.0.2.9");
    let mut address = |port| n.one(0, 1, udp(near(port), (FAR, 53))).src();
    let first = address(1);
    assert!((2..30).all(|port| address(port) == first));
}

fn no_overloading(n: &mut Nat) {
    let mut all: Vec<u16> = (0..60)
        .map(|i| n.one(0, 1, udp((ip(0, 2 + i % 3), 7), (FAR, 53 + u16::from(i)))).ports().0)
        .collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 60);
}

fn parity(n: &mut Nat) {
    for port in 5000..5200 {
        let outside = n.one(0, 1, udp(near(port), (FAR, 53))).ports().0;
        assert_eq!((outside ^ port) & 1, 0, "{port} became {outside}");
    }
}

fn high_ports(n: &mut Nat) {
    for port in 5000..5040 {
        assert!(n.one(0, 1, udp(near(port), (FAR, 53))).ports().0 >= 1024);
    }
}

fn udp_timer(n: &mut Nat) {
    n.one(0, 1, udp(near(5000), (FAR, 53)));
    assert_eq!(left(n), 300);
}

/// Waits until a session has some milliseconds less than five minutes left; how many it has.
fn passed(n: &mut Nat) -> u32 {
    let left = || match n.sessions()[0].left {
        left if left < 299_900 => Ok(left),
        left => Err(left),
    };
    thalweg_testkit::wait_until_seen(thalweg_testkit::WAIT_LIMIT, "time to pass", left).unwrap()
}

fn outbound_refresh(n: &mut Nat) {
    n.one(0, 1, udp(near(5000), (FAR, 53)));
    let left = passed(n);
    n.one(0, 1, udp(near(5000), (FAR, 53)));
    assert!(n.sessions()[0].left > left);
}

fn inbound_refresh(n: &mut Nat) {
    let port = n.one(0, 1, udp(near(5000), (FAR, 53))).ports().0;
    let left = passed(n);
    n.one(1, 0, udp((FAR, 53), (SHARED, port)));
    assert!(n.sessions()[0].left > left);
}

fn filtering(n: &mut Nat) {
    let port = n.one(0, 1, udp(near(5000), (FAR, 53))).ports().0;
    for from in [(FAR, 54), (STRANGER, 53)] {
        assert!(n.pass(1, udp(from, (SHARED, port))).is_empty());
    }
    assert_eq!(n.pass(1, udp((FAR, 53), (SHARED, port))).len(), 1);
    let port = established(n);
    assert!(n.pass(1, tcp((STRANGER, 80), (SHARED, port), ACK)).is_empty());
}

fn hairpin(n: &mut Nat) {
    n.lab.ok("nat44 add static mapping udp local 10.0.0.9 53 external 192.0.2.1 5353");
    let out = n.pass(0, udp(near(5000), (SHARED, 5353)));
    assert_eq!((out.len(), out[0].port, out[0].dst()), (1, 0, ip(0, 9)));
    assert_eq!(out[0].src(), SHARED, "the external address, not the inside one");
}

fn hairpin_on_the_way_out(n: &mut Nat) {
    n.lab.ok("set interface nat44 in test0 out test1 del\n\
              set interface nat44 in test0 out test1 output-feature");
    hairpin(n);
    // All fields match, and the external side is unchanged.
    n.lab.ok("nat44 add static mapping tcp local 10.0.0.9 8080 external 192.0.2.1 80");
    let mut port = None;
    for flags in [(SYN, SYN | ACK), (ACK, ACK), (ACK, ACK)] {
        let out = n.one(0, 0, tcp(near(5000), (SHARED, 80), flags.0));
        assert_eq!((out.src(), out.dst(), out.ports().1), (SHARED, ip(0, 9), 8080));
        assert_eq!(*port.get_or_insert(out.ports().0), out.ports().0);
        let back = n.one(0, 0, tcp((ip(0, 9), 8080), (SHARED, out.ports().0), flags.1));
        assert_eq!((back.src(), back.dst(), back.ports()), (SHARED, ip(0, 2), (80, 5000)));
    }
    filtering(n);
    // Packets to an unmapped address do not reach the inside and open no session.
    n.lab.ok("ip route add 192.0.2.0/24 via 10.0.1.2 test1");
    let before = n.sessions().len();
    assert!(n.pass(0, udp(near(5000), (SHARED, 7))).is_empty());
    assert_eq!(n.sessions().len(), before);
}

fn payload_stays(n: &mut Nat) {
    let text = b"PORT 10,0,0,2,19,136\r\n".to_vec();
    let port = n.one(0, 1, tcp(near(5000), (FAR, 21), SYN)).ports().0;
    n.one(1, 0, tcp((FAR, 21), (SHARED, port), SYN | ACK));
    let out = n.one(0, 1, tcp(near(5000), (FAR, 21), ACK).payload(&text));
    assert!(out.bytes.ends_with(&text));
}

fn deterministic(n: &mut Nat) {
    for _ in 0..3 {
        filtering(n);
        n.lab.ok("clear nat44 sessions");
        n.await_no_sessions();
    }
}

fn icmp_ends_nothing(n: &mut Nat) {
    let port = established(n);
    let sent = n.one(0, 1, tcp(near(5000), (FAR, 80), ACK));
    assert_eq!(n.pass_all(1, vec![error_about(&sent.bytes[14..], FAR)]).len(), 1);
    assert_eq!((n.sessions().len(), left(n)), (1, 7440));
    n.one(1, 0, tcp((FAR, 80), (SHARED, port), ACK));
}

fn too_long(n: &mut Nat) {
    n.lab.ok("set interface mtu packet 600 test1");
    let out = n.pass(0, udp(near(5000), (FAR, 53)).payload_len(900).dont_fragment());
    assert_eq!((out.len(), out[0].port, out[0].dst()), (1, 0, ip(0, 2)));
    assert_eq!(out[0].view().payload()[..2], [3, 4]);
}

/// The fragments of a datagram: 16 bytes of UDP header and data, and 8 more.
fn parts(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> [Vec<u8>; 2] {
    let whole = udp(from, to).payload_len(16).no_checksum().build();
    let cut = |offset: usize, len: usize, more: bool| {
        let mut p = whole[..20].to_vec();
        p.extend(&whole[20 + offset..20 + offset + len]);
        let total = (p.len() as u16).to_be_bytes();
        p[2..4].copy_from_slice(&total);
        let field = (offset / 8) as u16 | if more { 0x2000 } else { 0 };
        p[6..8].copy_from_slice(&field.to_be_bytes());
        p[10..12].fill(0);
        let sum = thalweg_wire::checksum::checksum(&p[..20]);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p
    };
    [cut(0, 16, true), cut(16, 8, false)]
}

fn fragments(n: &mut Nat) {
    let out = n.pass_all(0, parts(near(5000), (FAR, 53)).to_vec());
    assert_eq!(out.len(), 2);
    assert!(out.iter().all(|o: &Out| o.src() == SHARED && o.port == 1));
}

fn simultaneous(n: &mut Nat) {
    let port = n.one(0, 1, tcp(near(5000), (FAR, 80), SYN)).ports().0;
    n.one(1, 0, tcp((FAR, 80), (SHARED, port), SYN));
    n.one(0, 1, tcp(near(5000), (FAR, 80), SYN | ACK));
    n.one(1, 0, tcp((FAR, 80), (SHARED, port), SYN | ACK));
    n.one(0, 1, tcp(near(5000), (FAR, 80), ACK));
    assert_eq!(left(n), 7440);
}

fn unsolicited_syn(n: &mut Nat) {
    assert!(n.pass(1, tcp((FAR, 80), (SHARED, 5000), SYN)).is_empty());
}

fn tcp_timers(n: &mut Nat) {
    n.one(0, 1, tcp(near(5000), (FAR, 80), SYN));
    assert_eq!(left(n), 240);
    let port = established(n);
    assert_eq!(left(n), 7440);
    n.one(1, 0, tcp((FAR, 80), (SHARED, port), RST));
    assert_eq!(left(n), 240);
}

fn icmp_translated(n: &mut Nat) {
    let sent = n.one(0, 1, tcp(near(5000), (FAR, 80), SYN));
    let hop = Ipv4Addr::new(203, 0, 113, 5);
    let back = n.pass_all(1, vec![error_about(&sent.bytes[14..], hop)]);
    assert_eq!((back.len(), back[0].src(), back[0].dst()), (1, hop, ip(0, 2)));
    let quote = back[0].view().payload()[8..].to_vec();
    assert_eq!((&quote[12..16], &quote[20..22]), (&[10, 0, 0, 2][..], &5000u16.to_be_bytes()[..]));
}

fn ping(n: &mut Nat) {
    let [a, b] = [ip(0, 2), ip(0, 3)].map(|host| n.one(0, 1, echo(host, FAR, 7)).ports().0);
    assert_ne!(a, b);
}

fn ping_timer(n: &mut Nat) {
    n.one(0, 1, echo(ip(0, 2), FAR, 7));
    assert_eq!(left(n), 60);
}

fn broken_error(n: &mut Nat) {
    let sent = n.one(0, 1, udp(near(5000), (FAR, 53)));
    let mut error = error_about(&sent.bytes[14..], FAR);
    // The quote is too short to identify the session.
    error.truncate(20 + 8 + 20);
    error[2..4].copy_from_slice(&48u16.to_be_bytes());
    error[10..12].fill(0);
    let sum = thalweg_wire::checksum::checksum(&error[..20]);
    error[10..12].copy_from_slice(&sum.to_be_bytes());
    assert!(n.pass_all(1, vec![error]).is_empty());
}

fn error_from_inside(n: &mut Nat) {
    let port = n.one(0, 1, udp(near(5000), (FAR, 53))).ports().0;
    let got = n.one(1, 0, udp((FAR, 53), (SHARED, port)));
    let out = n.pass_all(0, vec![error_about(&got.bytes[14..], ip(0, 2))]);
    assert_eq!((out.len(), out[0].port, out[0].src(), out[0].dst()), (1, 1, SHARED, FAR));
    let quote = out[0].view().payload()[8..].to_vec();
    assert_eq!((&quote[16..20], &quote[22..24]), (&[192, 0, 2, 1][..], &port.to_be_bytes()[..]));
}

fn hairpinned_error(n: &mut Nat) {
    n.lab.ok("nat44 add static mapping udp local 10.0.0.9 53 external 192.0.2.1 5353");
    let got = n.pass(0, udp(near(5000), (SHARED, 5353))).remove(0);
    let out = n.pass_all(0, vec![error_about(&got.bytes[14..], ip(0, 9))]);
    assert_eq!((out.len(), out[0].port, out[0].dst()), (1, 0, ip(0, 2)), "{out:02x?}");
    let quote = out[0].view().payload()[8..].to_vec();
    assert_eq!((&quote[12..16], &quote[20..22]), (&[10, 0, 0, 2][..], &5000u16.to_be_bytes()[..]));
}

fn own_errors(n: &mut Nat) {
    let out = n.pass(0, udp(near(5000), (FAR, 33_434)).ttl(1));
    assert_eq!((out.len(), out[0].src(), out[0].dst()), (1, ip(0, 1), ip(0, 2)));
}

fn refused(n: &mut Nat) {
    n.lab.ok("nat44 add address 192.0.2.1 del");
    let out = n.pass(0, udp(near(5000), (FAR, 53)));
    assert_eq!((out.len(), out[0].dst()), (1, ip(0, 2)));
    assert_eq!(out[0].view().payload()[..2], [3, 1]);
}
