//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod disable_ip4_interface;
pub mod enable_ip4_interface;
pub mod ip_punt_redirect;
pub mod ip_route;
pub mod ip_table;
pub mod ping;
pub mod set_interface_ip_address;
pub mod set_interface_ip_table;
pub mod set_interface_unnumbered;
pub mod set_ip_pmtu;
pub mod show_ip_fib;
pub mod show_ip_pmtu;
pub mod show_ip_punt_redirect;
pub mod show_ip_table;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &disable_ip4_interface::COMMAND,
    &enable_ip4_interface::COMMAND,
    &ip_punt_redirect::COMMAND,
    &ip_route::COMMAND,
    &ip_table::COMMAND,
    &ping::COMMAND,
    &set_interface_ip_address::COMMAND,
    &set_interface_ip_table::COMMAND,
    &set_interface_unnumbered::COMMAND,
    &set_ip_pmtu::COMMAND,
    &show_ip_fib::COMMAND,
    &show_ip_pmtu::COMMAND,
    &show_ip_punt_redirect::COMMAND,
    &show_ip_table::COMMAND,
];
