//! The schema of vppcfg 1.2.4: names, kinds and ranges of its keys. Sections declare which of them
//! the router supports.

use super::node::Value;
use super::rules::{Kind, Name, Rule, address};
use std::net::IpAddr;

/// Tag that vppcfg gives to the objects it manages.
pub const VPPCFG: &str = "vppcfg";

const MTU: Kind = Kind::Int(128, 9216);
// vppcfg states a length of 64 in a way that its library does not check.
const NOTE: Kind = Kind::Text(4096);
const LCP: Kind = Kind::Name(Name::Device(15));
const VLAN: Kind = Kind::Int(1, 4095);
const RING: Kind = Kind::Int(8, 32_768);
const STATE: Kind = Kind::Word(&["up", "down"]);
const ANY_NAME: Kind = Kind::Name(Name::Any);
const LOOPBACK: Kind = Kind::Name(Name::Numbered("loop"));

/// Maximum number of addresses of an interface in the schema.
pub const MAX_ADDRESSES: usize = 6;

/// All rules.
pub const RULES: &[Rule] = &[
    Rule::new("interfaces", Kind::Named(Name::Any)),
    Rule::new("interfaces.*", Kind::Keys),
    Rule::new("interfaces.*.description", NOTE),
    Rule::new("interfaces.*.mac", Kind::Mac),
    Rule::new("interfaces.*.lcp", LCP),
    Rule::new("interfaces.*.mtu", MTU),
    Rule::new("interfaces.*.addresses", Kind::List(1, MAX_ADDRESSES)),
    Rule::new("interfaces.*.addresses.[]", Kind::Address),
    Rule::new("interfaces.*.unnumbered", ANY_NAME),
    Rule::new("interfaces.*.l2xc", ANY_NAME),
    Rule::new("interfaces.*.state", STATE),
    Rule::new("interfaces.*.mpls", Kind::Bool),
    Rule::new("interfaces.*.device-type", Kind::Word(&["dpdk", "af-packet", "rdma"])),
    Rule::new("interfaces.*.sflow", Kind::Bool),
    Rule::new("interfaces.*.sub-interfaces", Kind::Named(Name::Number(1, u32::MAX as u64))),
    Rule::new("interfaces.*.sub-interfaces.*", Kind::Keys),
    Rule::new("interfaces.*.sub-interfaces.*.description", NOTE),
    Rule::new("interfaces.*.sub-interfaces.*.lcp", LCP),
    Rule::new("interfaces.*.sub-interfaces.*.mtu", MTU),
    Rule::new("interfaces.*.sub-interfaces.*.addresses", Kind::List(0, usize::MAX)),
    Rule::new("interfaces.*.sub-interfaces.*.addresses.[]", Kind::Address),
    Rule::new("interfaces.*.sub-interfaces.*.unnumbered", ANY_NAME),
    Rule::new("interfaces.*.sub-interfaces.*.l2xc", ANY_NAME),
    Rule::new("interfaces.*.sub-interfaces.*.state", STATE),
    Rule::new("interfaces.*.sub-interfaces.*.mpls", Kind::Bool),
    Rule::new("interfaces.*.sub-interfaces.*.encapsulation", Kind::Keys),
    Rule::new("interfaces.*.sub-interfaces.*.encapsulation.dot1q", VLAN),
    Rule::new("interfaces.*.sub-interfaces.*.encapsulation.dot1ad", VLAN),
    Rule::new("interfaces.*.sub-interfaces.*.encapsulation.inner-dot1q", VLAN),
    Rule::new("interfaces.*.sub-interfaces.*.encapsulation.exact-match", Kind::Bool),
    Rule::new("loopbacks", Kind::Named(Name::Numbered("loop"))),
    Rule::new("loopbacks.*", Kind::Keys),
    Rule::new("loopbacks.*.description", NOTE),
    Rule::new("loopbacks.*.mac", Kind::Mac),
    Rule::new("loopbacks.*.lcp", LCP),
    Rule::new("loopbacks.*.mtu", MTU),
    Rule::new("loopbacks.*.addresses", Kind::List(1, MAX_ADDRESSES)),
    Rule::new("loopbacks.*.addresses.[]", Kind::Address),
    Rule::new("loopbacks.*.unnumbered", ANY_NAME),
    Rule::new("loopbacks.*.mpls", Kind::Bool),
    Rule::new("bondethernets", Kind::Named(Name::Numbered("BondEthernet"))),
    Rule::new("bondethernets.*", Kind::Keys),
    Rule::new("bondethernets.*.description", NOTE),
    Rule::new("bondethernets.*.mac", Kind::Mac),
    Rule::new("bondethernets.*.interfaces", Kind::List(0, usize::MAX)),
    Rule::new("bondethernets.*.interfaces.[]", ANY_NAME),
    Rule::new(
        "bondethernets.*.mode",
        Kind::Word(&["round-robin", "active-backup", "broadcast", "lacp", "xor"]),
    ),
    Rule::new("bondethernets.*.load-balance", Kind::Word(&["l2", "l23", "l34"])),
    Rule::new("bridgedomains", Kind::Named(Name::Numbered("bd"))),
    Rule::new("bridgedomains.*", Kind::Keys),
    Rule::new("bridgedomains.*.description", NOTE),
    Rule::new("bridgedomains.*.mtu", MTU),
    Rule::new("bridgedomains.*.bvi", LOOPBACK),
    Rule::new("bridgedomains.*.interfaces", Kind::List(0, usize::MAX)),
    Rule::new("bridgedomains.*.interfaces.[]", ANY_NAME),
    Rule::new("bridgedomains.*.settings", Kind::Keys),
    Rule::new("bridgedomains.*.settings.learn", Kind::Bool),
    Rule::new("bridgedomains.*.settings.unicast-flood", Kind::Bool),
    Rule::new("bridgedomains.*.settings.unknown-unicast-flood", Kind::Bool),
    Rule::new("bridgedomains.*.settings.unicast-forward", Kind::Bool),
    Rule::new("bridgedomains.*.settings.arp-termination", Kind::Bool),
    Rule::new("bridgedomains.*.settings.arp-unicast-forward", Kind::Bool),
    Rule::new("bridgedomains.*.settings.mac-age-minutes", Kind::Int(0, 255)),
    Rule::new("vxlan_tunnels", Kind::Named(Name::Numbered("vxlan_tunnel"))),
    Rule::new("vxlan_tunnels.*", Kind::Keys),
    Rule::new("vxlan_tunnels.*.description", NOTE),
    Rule::required("vxlan_tunnels.*.local", Kind::Ip),
    Rule::required("vxlan_tunnels.*.remote", Kind::Ip),
    Rule::required("vxlan_tunnels.*.vni", Kind::Int(1, 16_777_215)),
    Rule::new("taps", Kind::Named(Name::Numbered("tap"))),
    Rule::new("taps.*", Kind::Keys),
    Rule::new("taps.*.description", NOTE),
    Rule::required("taps.*.host", Kind::Keys),
    Rule::required("taps.*.host.name", LCP),
    Rule::new("taps.*.host.mac", Kind::Mac),
    Rule::new("taps.*.host.mtu", MTU),
    Rule::new("taps.*.host.bridge", LCP),
    Rule::new("taps.*.host.bridge-create", Kind::Bool),
    Rule::new("taps.*.host.namespace", Kind::Name(Name::Device(64))),
    Rule::new("taps.*.host.namespace-create", Kind::Bool),
    Rule::new("taps.*.rx-ring-size", RING),
    Rule::new("taps.*.tx-ring-size", RING),
    Rule::new("prefixlists", Kind::Named(Name::Label(64))),
    Rule::new("prefixlists.*", Kind::Keys),
    Rule::new("prefixlists.*.description", NOTE),
    Rule::required("prefixlists.*.members", Kind::List(0, usize::MAX)),
    Rule::new("prefixlists.*.members.[]", Kind::Other(prefix_or_ip)),
    Rule::new("acls", Kind::Named(Name::Label(56))),
    Rule::new("acls.*", Kind::Keys),
    Rule::new("acls.*.description", NOTE),
    Rule::required("acls.*.terms", Kind::List(1, 100)),
    Rule::new("acls.*.terms.[]", Kind::Keys),
    Rule::new("acls.*.terms.[].description", NOTE),
    Rule::required("acls.*.terms.[].action", Kind::Word(&["permit", "deny", "permit+reflect"])),
    Rule::new("acls.*.terms.[].family", Kind::Word(&["ipv4", "ipv6", "any"])),
    Rule::new("acls.*.terms.[].source", Kind::Other(prefix_or_name)),
    Rule::new("acls.*.terms.[].destination", Kind::Other(prefix_or_name)),
    Rule::new("acls.*.terms.[].protocol", Kind::Other(protocol)),
    Rule::new("acls.*.terms.[].source-port", Kind::Other(port)),
    Rule::new("acls.*.terms.[].destination-port", Kind::Other(port)),
    Rule::new("acls.*.terms.[].icmp-type", Kind::Other(icmp)),
    Rule::new("acls.*.terms.[].icmp-code", Kind::Other(icmp)),
    Rule::new("sflow", Kind::Keys),
    Rule::new("sflow.header-bytes", Kind::Int(1, 256)),
    Rule::new("sflow.polling-interval", Kind::Int(5, 600)),
    Rule::new("sflow.sampling-rate", Kind::Int(100, 1_000_000)),
];

fn prefix_or_ip(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(t) if address(t).is_some() || t.parse::<IpAddr>().is_ok() => Ok(()),
        _ => Err("an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24".into()),
    }
}

fn prefix_or_name(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(t) if prefix_or_ip(value).is_ok() || (1..=56).contains(&t.len()) => Ok(()),
        _ => Err("an address, a prefix or the name of a prefix list".into()),
    }
}

fn is_label(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn protocol(value: &Value) -> Result<(), String> {
    match value {
        Value::Int(1..=255) => Ok(()),
        Value::Text(text) if is_label(text) => Ok(()),
        _ => Err("a protocol's number from 1 to 255, or its name, such as tcp".into()),
    }
}

/// `10-20`, `10-` or `-20`.
fn is_range(text: &str) -> bool {
    let number = |s: &str| s.is_empty() || s.parse::<u16>().is_ok_and(|_| !s.starts_with('+'));
    text != "-" && text.split_once('-').is_some_and(|(a, b)| number(a) && number(b))
}

fn port(value: &Value) -> Result<(), String> {
    match value {
        Value::Int(1..=65_535) => Ok(()),
        Value::Text(text) if is_range(text) || is_label(text) => Ok(()),
        _ => Err("a port from 1 to 65535, its name, a range such as \"1024-\", or any".into()),
    }
}

fn icmp(value: &Value) -> Result<(), String> {
    match value {
        Value::Int(0..=255) => Ok(()),
        Value::Text(text) if is_range(text) || text == "any" => Ok(()),
        _ => Err("a number from 0 to 255, a range such as \"10-\", or any".into()),
    }
}
