//! Reason why a packet was discarded (sFlow Dropped Packet Notification Structures).

use std::fmt;

/// A reason code. Codes below 256 are ICMP unreachable codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DiscardReason(pub u32);

macro_rules! reasons {
    ($($code:literal $constant:ident $name:literal;)*) => {
        impl DiscardReason {
            $(
                #[doc = concat!("`", $name, "`, code ", $code)]
                pub const $constant: DiscardReason = DiscardReason($code);
            )*

            /// Every named reason, by code.
            pub const ALL: &'static [(DiscardReason, &'static str)] =
                &[$( (DiscardReason($code), $name), )*];
        }
    };
}

// One name (code 12) is misspelt where it was first published, and tools know it by that name.
reasons! {
    0 NET_UNREACHABLE "net_unreachable";
    1 HOST_UNREACHABLE "host_unreachable";
    2 PROTOCOL_UNREACHABLE "protocol_unreachable";
    3 PORT_UNREACHABLE "port_unreachable";
    4 FRAG_NEEDED "frag_needed";
    5 SRC_ROUTE_FAILED "src_route_failed";
    6 DST_NET_UNKNOWN "dst_net_unknown";
    7 DST_HOST_UNKNOWN "dst_host_unknown";
    8 SRC_HOST_ISOLATED "src_host_isolated";
    9 DST_NET_PROHIBITED "dst_net_prohibited";
    10 DST_HOST_PROHIBITED "dst_host_prohibited";
    11 DST_NET_TOS_UNREACHABLE "dst_net_tos_unreachable";
    12 DST_HOST_TOS_UNREACHABLE "dst_host_tos_unreacheable";
    13 COMM_ADMIN_PROHIBITED "comm_admin_prohibited";
    14 HOST_PRECEDENCE_VIOLATION "host_precedence_violation";
    15 PRECEDENCE_CUTOFF "precedence_cutoff";
    256 UNKNOWN "unknown";
    257 TTL_EXCEEDED "ttl_exceeded";
    258 ACL "acl";
    259 NO_BUFFER_SPACE "no_buffer_space";
    260 RED "red";
    261 TRAFFIC_SHAPING "traffic_shaping";
    262 PKT_TOO_BIG "pkt_too_big";
    263 SRC_MAC_IS_MULTICAST "src_mac_is_multicast";
    264 VLAN_TAG_MISMATCH "vlan_tag_mismatch";
    265 INGRESS_VLAN_FILTER "ingress_vlan_filter";
    266 INGRESS_SPANNING_TREE_FILTER "ingress_spanning_tree_filter";
    267 PORT_LIST_IS_EMPTY "port_list_is_empty";
    268 PORT_LOOPBACK_FILTER "port_loopback_filter";
    269 BLACKHOLE_ROUTE "blackhole_route";
    270 NON_IP "non_ip";
    271 UC_DIP_OVER_MC_DMAC "uc_dip_over_mc_dmac";
    272 DIP_IS_LOOPBACK_ADDRESS "dip_is_loopback_address";
    273 SIP_IS_MC "sip_is_mc";
    274 SIP_IS_LOOPBACK_ADDRESS "sip_is_loopback_address";
    275 IP_HEADER_CORRUPTED "ip_header_corrupted";
    276 IPV4_SIP_IS_LIMITED_BC "ipv4_sip_is_limited_bc";
    277 IPV6_MC_DIP_RESERVED_SCOPE "ipv6_mc_dip_reserved_scope";
    278 IPV6_MC_DIP_INTERFACE_LOCAL_SCOPE "ipv6_mc_dip_interface_local_scope";
    279 UNRESOLVED_NEIGH "unresolved_neigh";
    280 MC_REVERSE_PATH_FORWARDING "mc_reverse_path_forwarding";
    281 NON_ROUTABLE_PACKET "non_routable_packet";
    282 DECAP_ERROR "decap_error";
    283 OVERLAY_SMAC_IS_MC "overlay_smac_is_mc";
    284 UNKNOWN_L2 "unknown_l2";
    285 UNKNOWN_L3 "unknown_l3";
    286 UNKNOWN_L3_EXCEPTION "unknown_l3_exception";
    287 UNKNOWN_BUFFER "unknown_buffer";
    288 UNKNOWN_TUNNEL "unknown_tunnel";
    289 UNKNOWN_L4 "unknown_l4";
    290 SIP_IS_UNSPECIFIED "sip_is_unspecified";
    291 MLAG_PORT_ISOLATION "mlag_port_isolation";
    292 BLACKHOLE_ARP_NEIGH "blackhole_arp_neigh";
    293 SRC_MAC_IS_DMAC "src_mac_is_dmac";
    294 DMAC_IS_RESERVED "dmac_is_reserved";
    295 SIP_IS_CLASS_E "sip_is_class_e";
    296 MC_DMAC_MISMATCH "mc_dmac_mismatch";
    297 SIP_IS_DIP "sip_is_dip";
    298 DIP_IS_LOCAL_NETWORK "dip_is_local_network";
    299 DIP_IS_LINK_LOCAL "dip_is_link_local";
    300 OVERLAY_SMAC_IS_DMAC "overlay_smac_is_dmac";
    301 EGRESS_VLAN_FILTER "egress_vlan_filter";
    302 UC_REVERSE_PATH_FORWARDING "uc_reverse_path_forwarding";
    303 SPLIT_HORIZON "split_horizon";
    304 LOCKED_PORT "locked_port";
    305 DMAC_FILTER "dmac_filter";
    306 BLACKHOLE_NEXTHOP "blackhole_nexthop";
    307 VXLAN_PARSING "vxlan_parsing";
    308 LLC_SNAP_PARSING "llc_snap_parsing";
    309 VLAN_PARSING "vlan_parsing";
    310 PPPOE_PPP_PARSING "pppoe_ppp_parsing";
    311 MPLS_PARSING "mpls_parsing";
    312 ARP_PARSING "arp_parsing";
    313 IP_1_PARSING "ip_1_parsing";
    314 IP_N_PARSING "ip_n_parsing";
    315 GRE_PARSING "gre_parsing";
    316 UDP_PARSING "udp_parsing";
    317 TCP_PARSING "tcp_parsing";
    318 IPSEC_PARSING "ipsec_parsing";
    319 SCTP_PARSING "sctp_parsing";
    320 DCCP_PARSING "dccp_parsing";
    321 GTP_PARSING "gtp_parsing";
    322 ESP_PARSING "esp_parsing";
    323 UNKNOWN_PARSING "unknown_parsing";
    324 PKT_TOO_SMALL "pkt_too_small";
    325 UNHANDLED_PROTO "unhandled_proto";
    326 IPV6DISABLED "ipv6disabled";
    327 INVALID_PROTO "invalid_proto";
    328 IP_NOPROTO "ip_noproto";
    329 SKB_CSUM "skb_csum";
    330 SKB_UCOPY_FAULT "skb_ucopy_fault";
    331 DEV_READY "dev_ready";
    332 DEV_HDR "dev_hdr";
    333 DUP_FRAG "dup_frag";
    334 SKB_GSO_SEG "skb_gso_seg";
    335 REVERSE_PATH_FORWARDING "reverse_path_forwarding";
    336 ICMP_PARSING "icmp_parsing";
    337 TCP_MD5NOTFOUND "tcp_md5notfound";
    338 TCP_MD5UNEXPECTED "tcp_md5unexpected";
    339 TCP_MD5FAILURE "tcp_md5failure";
    340 TCP_FLAGS "tcp_flags";
    341 TCP_ZEROWINDOW "tcp_zerowindow";
    342 TCP_OLD_DATA "tcp_old_data";
    343 TCP_OVERWINDOW "tcp_overwindow";
    344 TCP_OFOMERGE "tcp_ofomerge";
    345 TCP_RFC7323_PAWS "tcp_rfc7323_paws";
    346 TCP_INVALID_SEQUENCE "tcp_invalid_sequence";
    347 TCP_RESET "tcp_reset";
    348 TCP_INVALID_SYN "tcp_invalid_syn";
    349 TCP_CLOSE "tcp_close";
    350 TCP_FASTOPEN "tcp_fastopen";
    351 TCP_OLD_ACK "tcp_old_ack";
    352 TCP_TOO_OLD_ACK "tcp_too_old_ack";
    353 TCP_ACK_UNSENT_DATA "tcp_ack_unsent_data";
    354 TCP_OFO_QUEUE_PRUNE "tcp_ofo_queue_prune";
    355 TCP_OFO_DROP "tcp_ofo_drop";
    356 TCP_MINTTL "tcp_minttl";
    357 IPV6_BAD_EXTHDR "ipv6_bad_exthdr";
    358 IPV6_NDISC_FRAG "ipv6_ndisc_frag";
    359 IPV6_NDISC_HOP_LIMIT "ipv6_ndisc_hop_limit";
    360 IPV6_NDISC_BAD_CODE "ipv6_ndisc_bad_code";
    361 IPV6_NDISC_BAD_OPTIONS "ipv6_ndisc_bad_options";
    362 IPV6_NDISC_NS_OTHERHOST "ipv6_ndisc_ns_otherhost";
    363 TAP_FILTER "tap_filter";
    364 TAP_TXFILTER "tap_txfilter";
    365 TC_INGRESS "tc_ingress";
    366 TC_EGRESS "tc_egress";
    367 XDP "xdp";
    368 CPU_BACKLOG "cpu_backlog";
    369 BPF_CGROUP_EGRESS "bpf_cgroup_egress";
    370 XFRM_POLICY "xfrm_policy";
    371 SOCKET_FILTER "socket_filter";
    372 BGP_FLOWSPEC "bgp_flowspec";
}

impl DiscardReason {
    /// The name of the code, when it has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let at = Self::ALL.binary_search_by_key(&self, |(reason, _)| *reason).ok()?;
        Some(Self::ALL[at].1)
    }

    /// The reason of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(reason, _)| *reason)
    }
}

impl fmt::Display for DiscardReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "reason {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_known_both_ways() {
        assert!(DiscardReason::ALL.is_sorted_by(|a, b| a.0 < b.0));
        for (reason, name) in DiscardReason::ALL {
            assert_eq!(reason.name(), Some(*name));
            assert_eq!(DiscardReason::from_name(name), Some(*reason));
        }
        assert_eq!(DiscardReason::TTL_EXCEEDED.0, 257);
        assert_eq!(DiscardReason(1000).to_string(), "reason 1000");
    }
}
