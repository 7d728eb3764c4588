//! Reasons why packets were dropped, from what their sender says of them.

use crate::netlink::PacketDrop;
use thalweg_sflow::model::DiscardReason as R;
use thalweg_sflow::value::Text;

/// The kernel's reasons (linux/dropreason-core.h) whose names differ from sFlow's.
const REASONS: &[(&str, R)] = &[
    ("no_socket", R::PORT_UNREACHABLE),
    ("pkt_too_small", R::PKT_TOO_SMALL),
    ("tcp_csum", R::TCP_PARSING),
    ("udp_csum", R::UDP_PARSING),
    ("icmp_csum", R::SKB_CSUM),
    ("ip_csum", R::IP_HEADER_CORRUPTED),
    ("ip_inhdr", R::IP_1_PARSING),
    ("ip_rpfilter", R::REVERSE_PATH_FORWARDING),
    ("ip_outnoroutes", R::NET_UNREACHABLE),
    ("ip_innoroutes", R::NET_UNREACHABLE),
    ("ip_inaddrerrors", R::HOST_UNREACHABLE),
    ("otherhost", R::DST_HOST_UNKNOWN),
    ("netfilter_drop", R::ACL),
    ("unicast_in_l2_multicast", R::UC_DIP_OVER_MC_DMAC),
    ("socket_rcvbuff", R::NO_BUFFER_SPACE),
    ("proto_mem", R::NO_BUFFER_SPACE),
    ("nomem", R::NO_BUFFER_SPACE),
    ("full_ring", R::NO_BUFFER_SPACE),
    ("qdisc_drop", R::TRAFFIC_SHAPING),
    ("neigh_createfail", R::UNRESOLVED_NEIGH),
    ("neigh_failed", R::UNRESOLVED_NEIGH),
    ("neigh_queuefull", R::UNRESOLVED_NEIGH),
    ("neigh_dead", R::UNRESOLVED_NEIGH),
    ("ip_localnet", R::DIP_IS_LOCAL_NETWORK),
    ("ip_invalid_dest", R::NON_ROUTABLE_PACKET),
];

/// Traps of devices (devlink-trap) and of routers whose names differ from sFlow's.
const TRAPS: &[(&str, R)] = &[
    ("source_mac_is_multicast", R::SRC_MAC_IS_MULTICAST),
    ("ttl_value_is_too_small", R::TTL_EXCEEDED),
    ("tail_drop", R::NO_BUFFER_SPACE),
    ("early_drop", R::RED),
    ("mtu_value_is_too_small", R::PKT_TOO_BIG),
    ("reject_route", R::NET_UNREACHABLE),
    ("ipv4_lpm_miss", R::NET_UNREACHABLE),
    ("ipv6_lpm_miss", R::NET_UNREACHABLE),
    ("unresolved_neigh", R::UNRESOLVED_NEIGH),
    ("ingress_flow_action_drop", R::ACL),
    ("egress_flow_action_drop", R::ACL),
    ("ingress_stp_filter", R::INGRESS_SPANNING_TREE_FILTER),
    ("dip_is_loopback", R::DIP_IS_LOOPBACK_ADDRESS),
    ("sip_is_loopback", R::SIP_IS_LOOPBACK_ADDRESS),
    ("non_routable", R::NON_ROUTABLE_PACKET),
    ("decap_error", R::DECAP_ERROR),
];

/// Parts of the names of a software router's error counters.
const COUNTERS: &[(&str, R)] = &[
    ("ttl", R::TTL_EXCEEDED),
    ("time_to_live", R::TTL_EXCEEDED),
    ("hop_limit", R::TTL_EXCEEDED),
    ("mtu", R::PKT_TOO_BIG),
    ("acl", R::ACL),
    ("deny", R::ACL),
    ("checksum", R::IP_HEADER_CORRUPTED),
    ("no_route", R::NET_UNREACHABLE),
    ("unreachable", R::NET_UNREACHABLE),
    ("blackhole", R::BLACKHOLE_ROUTE),
];

/// Functions of the kernel by how their names begin.
const SYMBOLS: &[(&str, R)] = &[
    ("tcp", R::UNKNOWN_L4),
    ("__udp", R::UNKNOWN_L4),
    ("udp", R::UNKNOWN_L4),
    ("icmp", R::UNKNOWN_L4),
    ("raw", R::UNKNOWN_L4),
    ("sctp", R::UNKNOWN_L4),
    ("ip", R::UNKNOWN_L3),
    ("__ip", R::UNKNOWN_L3),
    ("arp", R::UNKNOWN_L3),
    ("neigh", R::UNKNOWN_L3),
    ("nf_", R::ACL),
    ("br_", R::UNKNOWN_L2),
    ("vlan", R::UNKNOWN_L2),
    ("__netif", R::UNKNOWN_L2),
    ("netif", R::UNKNOWN_L2),
    ("dev_", R::UNKNOWN_L2),
    ("unix", R::UNKNOWN_BUFFER),
    ("sock", R::UNKNOWN_BUFFER),
    ("skb", R::UNKNOWN_BUFFER),
];

fn lower(text: Option<Text<'_>>) -> Option<String> {
    text.map(|text| text.to_str().to_ascii_lowercase()).filter(|text| !text.is_empty())
}

fn exactly(table: &[(&str, R)], name: &str) -> Option<R> {
    let listed = table.iter().find(|(n, _)| *n == name).map(|(_, reason)| *reason);
    listed.or_else(|| R::from_name(name))
}

/// Returns the reason; `None` for an unknown trap.
///
/// The kernel's reason comes first, unless it says that it has none; then the trap, the trap's
/// group, the function. A software router's traps are its error counters.
pub(super) fn reason(drop: &PacketDrop<'_>) -> Option<R> {
    if let Some(reason) = lower(drop.reason).filter(|r| r != "not_specified")
        && let Some(known) = exactly(REASONS, &reason)
    {
        return Some(known);
    }
    if let Some(trap) = lower(drop.trap) {
        if let Some(counter) = trap.strip_prefix("vpp_") {
            let part = || COUNTERS.iter().find(|(part, _)| counter.contains(part));
            return Some(part().map_or(R::UNKNOWN, |(_, reason)| *reason));
        }
        let group = || lower(drop.trap_group).and_then(|group| exactly(TRAPS, &group));
        return exactly(TRAPS, &trap).or_else(group);
    }
    let symbol = lower(drop.symbol).unwrap_or_default();
    let begins = SYMBOLS.iter().find(|(begin, _)| symbol.starts_with(begin));
    Some(begins.map_or(R::UNKNOWN, |(_, reason)| *reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::dropmon::reason_word;

    /// Reasons that a router sends are read as it meant them.
    #[test]
    fn words_that_are_sent_are_understood() {
        for (meant, _) in R::ALL {
            let word = reason_word(*meant);
            assert_eq!(word.is_none(), *meant == R::UNKNOWN, "{meant}");
            let Some(word) = word else { continue };
            let drop = PacketDrop { reason: Some(Text::from(word)), ..PacketDrop::default() };
            assert_eq!(reason(&drop), Some(*meant), "{word}");
        }
    }

    #[test]
    fn reasons_are_found() {
        let text = |text: &'static str| (!text.is_empty()).then(|| Text::from(text));
        for (kernel, trap, symbol, expected) in [
            ("NO_SOCKET", "", "udp_rcv", Some(R::PORT_UNREACHABLE)),
            ("TCP_OLD_DATA", "", "", R::from_name("tcp_old_data")),
            ("NOT_SPECIFIED", "", "ip_rcv_finish_core", Some(R::UNKNOWN_L3)),
            ("NOT_SPECIFIED", "", "tcp_v4_rcv", Some(R::UNKNOWN_L4)),
            ("", "", "something", Some(R::UNKNOWN)),
            ("", "vpp_ip4_ttl_<=_1", "", Some(R::TTL_EXCEEDED)),
            ("", "vpp_no_listener", "", Some(R::UNKNOWN)),
            ("", "blackhole_route", "", Some(R::BLACKHOLE_ROUTE)),
            ("", "mtu_value_is_too_small", "", Some(R::PKT_TOO_BIG)),
            ("", "nobody_knows", "", None),
        ] {
            let drop = PacketDrop {
                reason: text(kernel),
                trap: text(trap),
                symbol: text(symbol),
                ..PacketDrop::default()
            };
            assert_eq!(reason(&drop), expected, "{kernel} {trap} {symbol}");
        }
    }
}
