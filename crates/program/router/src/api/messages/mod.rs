//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod acl_dump;
pub mod acl_interface_list_dump;
pub mod cli_inband;
pub mod punt_reason_dump;
pub mod punt_socket_deregister;
pub mod punt_socket_dump;
pub mod punt_socket_register;
pub mod set_punt;
pub mod sw_bond_interface_dump;
pub mod sw_member_interface_dump;
pub mod vxlan_tunnel_v2_dump;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &acl_dump::SERVICE,
    &acl_interface_list_dump::SERVICE,
    &cli_inband::SERVICE,
    &punt_reason_dump::SERVICE,
    &punt_socket_deregister::SERVICE,
    &punt_socket_dump::SERVICE,
    &punt_socket_register::SERVICE,
    &set_punt::SERVICE,
    &sw_bond_interface_dump::SERVICE,
    &sw_member_interface_dump::SERVICE,
    &vxlan_tunnel_v2_dump::SERVICE,
];
