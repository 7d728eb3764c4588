//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod interface_rx_dpo_l2;
pub mod ip4_mpls_label_disposition_pipe;
pub mod ip4_mpls_label_disposition_uniform;
pub mod ip6_mpls_label_disposition_pipe;
pub mod ip6_mpls_label_disposition_uniform;
pub mod lookup_ip4_dst;
pub mod lookup_ip4_dst_itf;
pub mod lookup_ip6_dst;
pub mod lookup_ip6_dst_itf;
pub mod mpls_adj_incomplete;
pub mod mpls_frag;
pub mod mpls_icmp_error;
pub mod mpls_input;
pub mod mpls_label_imposition_uniform;
pub mod mpls_lookup;
pub mod mpls_not_enabled;
pub mod mpls_output;
pub mod mpls_rewrite;
pub mod mpls_tunnel_tx;
pub mod pw_cw_pop;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[
    &interface_rx_dpo_l2::NODE,
    &ip4_mpls_label_disposition_pipe::NODE,
    &ip4_mpls_label_disposition_uniform::NODE,
    &ip6_mpls_label_disposition_pipe::NODE,
    &ip6_mpls_label_disposition_uniform::NODE,
    &lookup_ip4_dst::NODE,
    &lookup_ip4_dst_itf::NODE,
    &lookup_ip6_dst::NODE,
    &lookup_ip6_dst_itf::NODE,
    &mpls_adj_incomplete::NODE,
    &mpls_frag::NODE,
    &mpls_icmp_error::NODE,
    &mpls_input::NODE,
    &mpls_label_imposition_uniform::NODE,
    &mpls_lookup::NODE,
    &mpls_not_enabled::NODE,
    &mpls_output::NODE,
    &mpls_rewrite::NODE,
    &mpls_tunnel_tx::NODE,
    &pw_cw_pop::NODE,
];
