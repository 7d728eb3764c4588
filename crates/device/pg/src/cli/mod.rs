//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod create_packet_generator_interface;
pub mod delete_packet_generator_interface;
pub mod packet_generator_capture;
pub mod packet_generator_configure;
pub mod packet_generator_delete;
pub mod packet_generator_disable_stream;
pub mod packet_generator_enable_stream;
pub mod packet_generator_new;
pub mod show_packet_generator;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &create_packet_generator_interface::COMMAND,
    &delete_packet_generator_interface::COMMAND,
    &packet_generator_capture::COMMAND,
    &packet_generator_configure::COMMAND,
    &packet_generator_delete::COMMAND,
    &packet_generator_disable_stream::COMMAND,
    &packet_generator_enable_stream::COMMAND,
    &packet_generator_new::COMMAND,
    &show_packet_generator::COMMAND,
];
