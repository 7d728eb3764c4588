//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod disable_ip6_interface;
pub mod enable_ip6_interface;
pub mod ip6_punt_redirect;
pub mod ip6_table;
pub mod set_interface_ip6_table;
pub mod set_ip6_dad;
pub mod set_ip6_nd_proxy;
pub mod show_ip6_dad;
pub mod show_ip6_fib;
pub mod show_ip6_interface;
pub mod show_ip6_ll;
pub mod show_ip6_nd_proxy;
pub mod show_ip6_punt_redirect;
pub mod show_ip6_table;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &disable_ip6_interface::COMMAND,
    &enable_ip6_interface::COMMAND,
    &ip6_punt_redirect::COMMAND,
    &ip6_table::COMMAND,
    &set_interface_ip6_table::COMMAND,
    &set_ip6_dad::COMMAND,
    &set_ip6_nd_proxy::COMMAND,
    &show_ip6_dad::COMMAND,
    &show_ip6_fib::COMMAND,
    &show_ip6_interface::COMMAND,
    &show_ip6_ll::COMMAND,
    &show_ip6_nd_proxy::COMMAND,
    &show_ip6_punt_redirect::COMMAND,
    &show_ip6_table::COMMAND,
];
