//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod lcp_default_ns_get;
pub mod lcp_default_ns_set;
pub mod lcp_ethertype_enable;
pub mod lcp_ethertype_get;
pub mod lcp_itf_pair_add_del;
pub mod lcp_itf_pair_add_del_v2;
pub mod lcp_itf_pair_add_del_v3;
pub mod lcp_itf_pair_get;
pub mod lcp_itf_pair_get_v2;
pub mod lcp_itf_pair_replace_begin;
pub mod lcp_itf_pair_replace_end;
pub mod lcp_osi_proto_enable;
pub mod lcp_osi_proto_get;
pub mod lcp_sync_unnumbered_get;
pub mod lcp_sync_unnumbered_set;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &lcp_default_ns_get::SERVICE,
    &lcp_default_ns_set::SERVICE,
    &lcp_ethertype_enable::SERVICE,
    &lcp_ethertype_get::SERVICE,
    &lcp_itf_pair_add_del::SERVICE,
    &lcp_itf_pair_add_del_v2::SERVICE,
    &lcp_itf_pair_add_del_v3::SERVICE,
    &lcp_itf_pair_get::SERVICE,
    &lcp_itf_pair_get_v2::SERVICE,
    &lcp_itf_pair_replace_begin::SERVICE,
    &lcp_itf_pair_replace_end::SERVICE,
    &lcp_osi_proto_enable::SERVICE,
    &lcp_osi_proto_get::SERVICE,
    &lcp_sync_unnumbered_get::SERVICE,
    &lcp_sync_unnumbered_set::SERVICE,
];
