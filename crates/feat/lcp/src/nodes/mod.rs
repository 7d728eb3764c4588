//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod linux_cp_arp_host;
pub mod linux_cp_arp_phy;
pub mod linux_cp_host_ip4;
pub mod linux_cp_host_ip6;
pub mod linux_cp_mcast_ip4;
pub mod linux_cp_mcast_ip6;
pub mod linux_cp_nd_phy;
pub mod linux_cp_punt;
pub mod linux_cp_punt_l3;
pub mod linux_cp_punt_xc;
pub mod linux_cp_xc_ip4;
pub mod linux_cp_xc_ip6;
pub mod linux_cp_xc_l3_ip4;
pub mod linux_cp_xc_l3_ip6;
pub mod linux_cp_xc_mpls;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[
    &linux_cp_arp_host::NODE,
    &linux_cp_arp_phy::NODE,
    &linux_cp_host_ip4::NODE,
    &linux_cp_host_ip6::NODE,
    &linux_cp_mcast_ip4::NODE,
    &linux_cp_mcast_ip6::NODE,
    &linux_cp_nd_phy::NODE,
    &linux_cp_punt::NODE,
    &linux_cp_punt_l3::NODE,
    &linux_cp_punt_xc::NODE,
    &linux_cp_xc_ip4::NODE,
    &linux_cp_xc_ip6::NODE,
    &linux_cp_xc_l3_ip4::NODE,
    &linux_cp_xc_l3_ip6::NODE,
    &linux_cp_xc_mpls::NODE,
];
