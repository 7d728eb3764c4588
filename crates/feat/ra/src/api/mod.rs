//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod ip6_nd_address_autoconfig;
pub mod ip6nd_send_router_solicitation;
pub mod sw_interface_ip6nd_ra_config;
pub mod sw_interface_ip6nd_ra_dump;
pub mod sw_interface_ip6nd_ra_prefix;
pub mod want_ip6_ra_events;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &ip6_nd_address_autoconfig::SERVICE,
    &ip6nd_send_router_solicitation::SERVICE,
    &sw_interface_ip6nd_ra_config::SERVICE,
    &sw_interface_ip6nd_ra_dump::SERVICE,
    &sw_interface_ip6nd_ra_prefix::SERVICE,
    &want_ip6_ra_events::SERVICE,
];
