//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod ip_neighbor_add_del;
pub mod ip_neighbor_config;
pub mod ip_neighbor_config_get;
pub mod ip_neighbor_dump;
pub mod ip_neighbor_flush;
pub mod ip_neighbor_replace_begin;
pub mod ip_neighbor_replace_end;
pub mod want_ip_neighbor_events;
pub mod want_ip_neighbor_events_v2;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &ip_neighbor_add_del::SERVICE,
    &ip_neighbor_config::SERVICE,
    &ip_neighbor_config_get::SERVICE,
    &ip_neighbor_dump::SERVICE,
    &ip_neighbor_flush::SERVICE,
    &ip_neighbor_replace_begin::SERVICE,
    &ip_neighbor_replace_end::SERVICE,
    &want_ip_neighbor_events::SERVICE,
    &want_ip_neighbor_events_v2::SERVICE,
];
