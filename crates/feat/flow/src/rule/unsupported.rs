//! Open vSwitch's fields and actions that are not supported, and what to use instead.

/// Fields, by hint.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "no tunnels; only interfaces carry packets",
        &[
            "tun_id",
            "tunnel_id",
            "tun_src",
            "tun_dst",
            "tun_ipv6_src",
            "tun_ipv6_dst",
            "tun_flags",
            "tun_gbp_id",
            "tun_gbp_flags",
            "tun_erspan_ver",
            "tun_erspan_idx",
            "tun_erspan_dir",
            "tun_erspan_hwid",
            "tun_gtpu_flags",
            "tun_gtpu_msgtype",
            "tun_metadata",
        ],
    ),
    (
        "no registers; ct_mark and ct_label carry values from rule to rule",
        &[
            "reg",
            "xreg",
            "xxreg",
            "metadata",
            "pkt_mark",
            "skb_priority",
            "conj_id",
            "recirc_id",
            "dp_hash",
            "actset_output",
        ],
    ),
    (
        "MPLS headers are not parsed",
        &["mpls", "mplsm", "mpls_label", "mpls_tc", "mpls_bos", "mpls_ttl"],
    ),
    (
        "all packets are Ethernet",
        &[
            "packet_type",
            "nsh_flags",
            "nsh_ttl",
            "nsh_mdtype",
            "nsh_np",
            "nsh_spi",
            "nsh_si",
            "nsh_c1",
            "nsh_c2",
            "nsh_c3",
            "nsh_c4",
        ],
    ),
    ("in_port takes a name or number", &["in_port_oxm"]),
    ("flow del and flow dump select by match", &["out_port", "out_group"]),
    (
        "rules are kept until deleted, and always counted",
        &[
            "send_flow_rem",
            "check_overlap",
            "no_packet_counts",
            "no_byte_counts",
            "reset_counts",
            "importance",
        ],
    ),
    (
        "shown by flow dump, and not part of a rule",
        &["duration", "n_packets", "n_bytes", "idle_age", "hard_age"],
    ),
];

/// Actions, by hint.
const ACTIONS: &[(&str, &[&str])] = &[
    ("no meters", &["meter"]),
    ("no groups; several outputs make copies", &["group", "bundle", "bundle_load", "multipath"]),
    (
        "normal floods unknown destinations on a bridge; output:NAME can be repeated",
        &["all", "flood"],
    ),
    (
        "no controller; output:NAME to a tap interface passes packets to a program",
        &["controller", "local", "userspace"],
    ),
    ("interfaces have a single transmit queue", &["enqueue", "set_queue", "pop_queue"]),
    (
        "MPLS headers cannot be changed",
        &["push_mpls", "pop_mpls", "set_mpls_label", "set_mpls_tc", "set_mpls_ttl", "dec_mpls_ttl"],
    ),
    (
        "no registers; ct(commit,exec(set_field:N->ct_mark)) stores a value",
        &[
            "move",
            "reg_load",
            "reg_move",
            "push",
            "pop",
            "output_reg",
            "write_metadata",
            "delete_field",
        ],
    ),
    (
        "no tunnels; only interfaces carry packets",
        &["set_tunnel", "set_tunnel64", "encap", "decap", "dec_nsh_ttl"],
    ),
    ("rules cannot add rules; ct(commit) remembers connections", &["learn", "fin_timeout"]),
    (
        "actions are applied in the order listed",
        &[
            "write_actions",
            "clear_actions",
            "apply_actions",
            "clone",
            "exit",
            "conjunction",
            "check_pkt_larger",
        ],
    ),
    ("sFlow samples interfaces: `sflow enable-disable'", &["sample"]),
];

fn find(list: &[(&'static str, &[&str])], name: &str) -> Option<&'static str> {
    // `reg3`, `tun_metadata12`.
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let has = |names: &[&str]| names.contains(&name) || names.contains(&bare);
    list.iter().find(|(_, names)| has(names)).map(|(why, _)| *why)
}

/// The error for a field of Open vSwitch that is not supported.
pub(crate) fn field(name: &str) -> Option<String> {
    find(FIELDS, name).map(|why| format!("not supported: {why}"))
}

/// The error for an action of Open vSwitch that is not supported.
pub(crate) fn action(name: &str) -> Option<String> {
    find(ACTIONS, name).map(|why| format!("not supported: {why}"))
}
