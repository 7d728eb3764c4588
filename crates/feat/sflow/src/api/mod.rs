//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod sflow_direction_get;
pub mod sflow_direction_set;
pub mod sflow_drop_monitoring_get;
pub mod sflow_drop_monitoring_set;
pub mod sflow_enable_disable;
pub mod sflow_header_bytes_get;
pub mod sflow_header_bytes_set;
pub mod sflow_interface_dump;
pub mod sflow_polling_interval_get;
pub mod sflow_polling_interval_set;
pub mod sflow_sampling_rate_get;
pub mod sflow_sampling_rate_set;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &sflow_direction_get::SERVICE,
    &sflow_direction_set::SERVICE,
    &sflow_drop_monitoring_get::SERVICE,
    &sflow_drop_monitoring_set::SERVICE,
    &sflow_enable_disable::SERVICE,
    &sflow_header_bytes_get::SERVICE,
    &sflow_header_bytes_set::SERVICE,
    &sflow_interface_dump::SERVICE,
    &sflow_polling_interval_get::SERVICE,
    &sflow_polling_interval_set::SERVICE,
    &sflow_sampling_rate_get::SERVICE,
    &sflow_sampling_rate_set::SERVICE,
];
