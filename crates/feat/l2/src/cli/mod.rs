//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod bvi_create;
pub mod bvi_delete;
pub mod clear_l2fib;
pub mod create_bridge_domain;
pub mod l2fib_add;
pub mod l2fib_del;
pub mod l2fib_flush_mac;
pub mod set_bridge_domain;
pub mod set_interface_l2_arp_term;
pub mod set_interface_l2_bridge;
pub mod set_interface_l2_flood;
pub mod set_interface_l2_forward;
pub mod set_interface_l2_learn;
pub mod set_interface_l2_tag_rewrite;
pub mod set_interface_l2_uu_flood;
pub mod set_interface_l2_xconnect;
pub mod set_interface_l3;
pub mod show_bridge_domain;
pub mod show_interface_vtr;
pub mod show_l2fib;
pub mod show_mode;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &bvi_create::COMMAND,
    &bvi_delete::COMMAND,
    &clear_l2fib::COMMAND,
    &create_bridge_domain::COMMAND,
    &l2fib_add::COMMAND,
    &l2fib_del::COMMAND,
    &l2fib_flush_mac::COMMAND,
    &set_bridge_domain::COMMAND,
    &set_interface_l2_arp_term::COMMAND,
    &set_interface_l2_bridge::COMMAND,
    &set_interface_l2_flood::COMMAND,
    &set_interface_l2_forward::COMMAND,
    &set_interface_l2_learn::COMMAND,
    &set_interface_l2_tag_rewrite::COMMAND,
    &set_interface_l2_uu_flood::COMMAND,
    &set_interface_l2_xconnect::COMMAND,
    &set_interface_l3::COMMAND,
    &show_bridge_domain::COMMAND,
    &show_interface_vtr::COMMAND,
    &show_l2fib::COMMAND,
    &show_mode::COMMAND,
];
