//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod add_del_ip_punt_redirect_v2;
pub mod fib_source_dump;
pub mod ip_address_dump;
pub mod ip_dump;
pub mod ip_path_mtu_get;
pub mod ip_path_mtu_replace_begin;
pub mod ip_path_mtu_replace_end;
pub mod ip_path_mtu_update;
pub mod ip_punt_redirect;
pub mod ip_punt_redirect_dump;
pub mod ip_punt_redirect_v2_dump;
pub mod ip_route_add_del;
pub mod ip_route_add_del_v2;
pub mod ip_route_dump;
pub mod ip_route_lookup;
pub mod ip_route_lookup_v2;
pub mod ip_route_v2_dump;
pub mod ip_table_add_del;
pub mod ip_table_add_del_v2;
pub mod ip_table_allocate;
pub mod ip_table_dump;
pub mod ip_table_flush;
pub mod ip_table_replace_begin;
pub mod ip_table_replace_end;
pub mod ip_unnumbered_dump;
pub mod sw_interface_add_del_address;
pub mod sw_interface_address_replace_begin;
pub mod sw_interface_address_replace_end;
pub mod sw_interface_get_table;
pub mod sw_interface_ip4_enable_disable;
pub mod sw_interface_set_table;
pub mod sw_interface_set_unnumbered;
pub mod want_ping_finished_events;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &add_del_ip_punt_redirect_v2::SERVICE,
    &fib_source_dump::SERVICE,
    &ip_address_dump::SERVICE,
    &ip_dump::SERVICE,
    &ip_path_mtu_get::SERVICE,
    &ip_path_mtu_replace_begin::SERVICE,
    &ip_path_mtu_replace_end::SERVICE,
    &ip_path_mtu_update::SERVICE,
    &ip_punt_redirect::SERVICE,
    &ip_punt_redirect_dump::SERVICE,
    &ip_punt_redirect_v2_dump::SERVICE,
    &ip_route_add_del::SERVICE,
    &ip_route_add_del_v2::SERVICE,
    &ip_route_dump::SERVICE,
    &ip_route_lookup::SERVICE,
    &ip_route_lookup_v2::SERVICE,
    &ip_route_v2_dump::SERVICE,
    &ip_table_add_del::SERVICE,
    &ip_table_add_del_v2::SERVICE,
    &ip_table_allocate::SERVICE,
    &ip_table_dump::SERVICE,
    &ip_table_flush::SERVICE,
    &ip_table_replace_begin::SERVICE,
    &ip_table_replace_end::SERVICE,
    &ip_unnumbered_dump::SERVICE,
    &sw_interface_add_del_address::SERVICE,
    &sw_interface_address_replace_begin::SERVICE,
    &sw_interface_address_replace_end::SERVICE,
    &sw_interface_get_table::SERVICE,
    &sw_interface_ip4_enable_disable::SERVICE,
    &sw_interface_set_table::SERVICE,
    &sw_interface_set_unnumbered::SERVICE,
    &want_ping_finished_events::SERVICE,
];
