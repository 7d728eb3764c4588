//! Every command of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod lcp_create;
pub mod lcp_default;
pub mod lcp_delete;
pub mod lcp_ethertype;
pub mod lcp_osi_proto;
pub mod lcp_param;
pub mod lcp_resync;
pub mod set_punt_class;
pub mod show_lcp;
pub mod show_lcp_adj;
pub mod show_lcp_ethertype;
pub mod show_lcp_osi_proto;
pub mod show_lcp_routes;
pub mod show_punt;

/// Every command, in the order of the files' names.
pub static COMMANDS: &[&dyn thalweg_cli::Command<thalweg_graph::Control>] = &[
    &lcp_create::COMMAND,
    &lcp_default::COMMAND,
    &lcp_delete::COMMAND,
    &lcp_ethertype::COMMAND,
    &lcp_osi_proto::COMMAND,
    &lcp_param::COMMAND,
    &lcp_resync::COMMAND,
    &set_punt_class::COMMAND,
    &show_lcp::COMMAND,
    &show_lcp_adj::COMMAND,
    &show_lcp_ethertype::COMMAND,
    &show_lcp_osi_proto::COMMAND,
    &show_lcp_routes::COMMAND,
    &show_punt::COMMAND,
];
