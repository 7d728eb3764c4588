//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod af_packet_create;
pub mod af_packet_create_v2;
pub mod af_packet_create_v3;
pub mod af_packet_delete;
pub mod af_packet_dump;
pub mod af_packet_set_l4_cksum_offload;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &af_packet_create::SERVICE,
    &af_packet_create_v2::SERVICE,
    &af_packet_create_v3::SERVICE,
    &af_packet_delete::SERVICE,
    &af_packet_dump::SERVICE,
    &af_packet_set_l4_cksum_offload::SERVICE,
];
