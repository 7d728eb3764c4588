//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod mpls_interface_dump;
pub mod mpls_ip_bind_unbind;
pub mod mpls_route_add_del;
pub mod mpls_route_dump;
pub mod mpls_table_add_del;
pub mod mpls_table_dump;
pub mod mpls_tunnel_add_del;
pub mod mpls_tunnel_dump;
pub mod sw_interface_set_mpls_enable;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &mpls_interface_dump::SERVICE,
    &mpls_ip_bind_unbind::SERVICE,
    &mpls_route_add_del::SERVICE,
    &mpls_route_dump::SERVICE,
    &mpls_table_add_del::SERVICE,
    &mpls_table_dump::SERVICE,
    &mpls_tunnel_add_del::SERVICE,
    &mpls_tunnel_dump::SERVICE,
    &sw_interface_set_mpls_enable::SERVICE,
];
