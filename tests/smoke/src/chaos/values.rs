//! Values for the words of commands: few of each kind, so that commands meet each other.

use fastrand::Rng;
use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_wire::MacAddr;

/// VLAN ids.
pub(super) const VLANS: [u16; 4] = [10, 20, 100, 200];
pub(super) const LABELS: [u32; 7] = [0, 2, 3, 16, 100, 200, 300];

/// MAC address of packet generator port `port`.
pub(super) fn mac_of_port(port: u8) -> MacAddr {
    MacAddr([2, 0xfe, 0, 0, 0, port])
}

/// An IPv4 address: of a link, of the router, beyond, a group, or one that nobody has.
pub(super) fn ip4(rng: &mut Rng) -> Ipv4Addr {
    match rng.u8(..12) {
        0..4 => Ipv4Addr::new(10, 0, rng.u8(..3), rng.u8(1..5)),
        4..6 => Ipv4Addr::new(192, 0, 2, [1, 1, 3, 4][rng.usize(..4)]),
        6..9 => Ipv4Addr::new(198, 51, 100, rng.u8(..8)),
        9 => Ipv4Addr::new(239, 1, 0, rng.u8(..3)),
        10 => Ipv4Addr::new(10, 0, rng.u8(..3), 255),
        _ => Ipv4Addr::from(rng.u32(..)),
    }
}

/// An IPv6 address of the same kinds.
pub(super) fn ip6(rng: &mut Rng) -> Ipv6Addr {
    match rng.u8(..10) {
        0..5 => Ipv6Addr::new(0x2001, 0xdb8, 0, rng.u16(..3), 0, 0, 0, rng.u16(1..6)),
        5..7 => Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, rng.u16(..6)),
        7 => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, rng.u16(1..4)),
        8 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, rng.u16(1..4)),
        _ => Ipv6Addr::from(rng.u128(..)),
    }
}

pub(super) fn port(rng: &mut Rng) -> u16 {
    [53, 80, 1024, 5000, 5001][rng.usize(..5)]
}

fn one(rng: &mut Rng, of: &[&str]) -> String {
    of[rng.usize(..of.len())].to_owned()
}

/// A value for a word of a grammar. `interfaces` are those that exist.
pub(super) fn of_kind(rng: &mut Rng, kind: &str, interfaces: &[String], dir: &str) -> String {
    // A few strange ones everywhere.
    if rng.u8(..60) == 0 {
        return one(rng, &["0", "-1", "4294967296", "all", "''", "?", "none", "x"]);
    }
    match kind {
        // The kernel's: e0 is there from the start.
        "device" => one(rng, &["t0", "t1", "t2", "t3", "e0"]),
        "namespace" => one(rng, &["none-such", "", "/proc/self/ns/net"]),
        "interface" | "if" | "parent" => match interfaces.is_empty() || rng.u8(..12) == 0 {
            true => one(rng, &["pg7", "loop9", "local0", "pg0.777"]),
            false => interfaces[rng.usize(..interfaces.len())].clone(),
        },
        "port" => port(rng).to_string(),
        "prefix" => match rng.u8(..3) {
            0 => format!("{}/{}", ip6(rng), one(rng, &["0", "48", "64", "128"])),
            _ => format!("{}/{}", ip4(rng), one(rng, &["0", "8", "24", "30", "32"])),
        },
        "address" | "next hop" | "ip" | "pool-address" | "first" | "last" | "host" => {
            match rng.u8(..4) {
                0 => ip6(rng).to_string(),
                _ => ip4(rng).to_string(),
            }
        }
        "mac" => {
            let (port, host) = (rng.u8(..3), rng.u8(2..6));
            let [ours, theirs] = [mac_of_port(port), MacAddr([2, 0, 0, 0, port, host])];
            one(rng, &[&ours.to_string(), &theirs.to_string(), "00:00:5e:00:01:09"])
        }
        "label" => LABELS[rng.usize(..LABELS.len())].to_string(),
        "table" | "vrf" | "id" | "set" | "zone" | "worker" => one(rng, &["0", "1", "5", "9"]),
        "vlan" | "tag" | "outer" | "inner" => VLANS[rng.usize(..4)].to_string(),
        "name" | "text" => one(rng, &["a", "b", "lab", "s9"]),
        "file" | "path" => format!("{dir}/{}", one(rng, &["f1", "f2", "f3"])),
        "seconds" | "s" | "S" => one(rng, &["1", "2", "5", "30"]),
        "rule" => rule(rng, interfaces),
        "bytes" => one(rng, &["64", "128", "576", "1400", "1500", "9000"]),
        "list" => one(rng, &["0", "0-1", "1"]),
        "node" => {
            one(rng, &["ethernet-input", "ip4-input", "ip4-lookup", "pg-input", "error-drop"])
        }
        _ => one(rng, &["1", "2", "3", "5", "9", "10", "64", "100", "1000"]),
    }
}

/// A rule in Open vSwitch's words.
fn rule(rng: &mut Rng, interfaces: &[String]) -> String {
    let mut fields = vec![format!("table={}", rng.u8(..2)), format!("priority={}", rng.u8(..4))];
    let protocols =
        ["ip", "tcp", "udp", "icmp", "arp", "ipv6", "tcp6", "udp6", "icmp6", "mpls", ""];
    fields.push(one(rng, &protocols));
    let port = |rng: &mut Rng| of_kind(rng, "interface", interfaces, "");
    for _ in 0..rng.u8(..3) {
        let field = match rng.u8(..7) {
            0 => format!("in_port={}", port(rng)),
            1 => format!("ct_state={}", one(rng, &["-trk", "+trk+new", "+trk+est", "+trk+inv"])),
            2 => format!("nw_dst={}", ip4(rng)),
            3 => format!("tp_dst={}", self::port(rng)),
            4 => format!("nw_frag={}", one(rng, &["no", "first", "later"])),
            5 => format!("dl_vlan={}", VLANS[rng.usize(..4)]),
            _ => format!("ct_zone={}", rng.u8(..3)),
        };
        fields.push(field);
    }
    fields.retain(|field| !field.is_empty());
    let mut actions = Vec::new();
    for _ in 0..rng.u8(1..4) {
        actions.push(match rng.u8(..14) {
            0..2 => format!("ct(table={})", rng.u8(..2)),
            2 => format!("ct(commit,zone={})", rng.u8(..3)),
            3 => format!("ct(commit,nat(src=192.0.2.{}))", rng.u8(1..5)),
            4 => format!("ct(table=1,nat,zone={})", rng.u8(..3)),
            5 => format!("output:{}", port(rng)),
            6 => format!("resubmit(,{})", rng.u8(..2)),
            7 => format!("mod_nw_dst:{}", ip4(rng)),
            8 => format!("mod_vlan_vid:{}", VLANS[rng.usize(..4)]),
            9 => one(rng, &["strip_vlan", "push_vlan:0x8100", "dec_ttl", "in_port", "drop"]),
            10 => format!("mod_tp_dst:{}", self::port(rng)),
            _ => "normal".into(),
        });
    }
    let dropped = actions.iter().any(|action| action == "drop");
    let actions = if dropped { "drop".into() } else { actions.join(",") };
    format!("{},actions={actions}", fields.join(","))
}
