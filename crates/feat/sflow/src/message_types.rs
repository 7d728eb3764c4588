//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::Message;
use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;

/// Module `sflow`.
pub static SFLOW: Module = Module { name: "sflow", folder: "plugins", version: "0.1.0" };

/// Message `sflow_direction_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SflowDirectionGet;

/// Message `sflow_direction_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, in_progress)]
pub struct SflowDirectionGetReply {
    #[api(name = "sampling_D")]
    pub sampling_d: u32,
}

/// Message `sflow_direction_set`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SflowDirectionSet {
    #[api(name = "sampling_D")]
    pub sampling_d: u32,
}

/// Message `sflow_drop_monitoring_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SflowDropMonitoringGet;

/// Message `sflow_drop_monitoring_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, in_progress)]
pub struct SflowDropMonitoringGetReply {
    #[api(name = "drop_M")]
    pub drop_m: u32,
}

/// Message `sflow_drop_monitoring_set`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SflowDropMonitoringSet {
    #[api(name = "drop_M")]
    pub drop_m: u32,
}

/// Message `sflow_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SflowEnableDisable {
    pub enable_disable: bool,
    pub hw_if_index: InterfaceIndex,
}

/// Message `sflow_header_bytes_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SflowHeaderBytesGet;

/// Message `sflow_header_bytes_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, in_progress)]
pub struct SflowHeaderBytesGetReply {
    #[api(name = "header_B")]
    pub header_b: u32,
}

/// Message `sflow_header_bytes_set`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SflowHeaderBytesSet {
    #[api(name = "header_B", default = 128)]
    pub header_b: u32,
}

/// Message `sflow_interface_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SflowInterfaceDump {
    #[api(default = 4294967295)]
    pub hw_if_index: InterfaceIndex,
}

/// Message `sflow_interface_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct SflowInterfaceDetails {
    pub hw_if_index: InterfaceIndex,
}

/// Message `sflow_polling_interval_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SflowPollingIntervalGet;

/// Message `sflow_polling_interval_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, in_progress)]
pub struct SflowPollingIntervalGetReply {
    #[api(name = "polling_S")]
    pub polling_s: u32,
}

/// Message `sflow_polling_interval_set`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SflowPollingIntervalSet {
    #[api(name = "polling_S", default = 20)]
    pub polling_s: u32,
}

/// Message `sflow_sampling_rate_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SflowSamplingRateGet;

/// Message `sflow_sampling_rate_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, in_progress)]
pub struct SflowSamplingRateGetReply {
    #[api(name = "sampling_N")]
    pub sampling_n: u32,
}

/// Message `sflow_sampling_rate_set`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SflowSamplingRateSet {
    #[api(name = "sampling_N", default = 10000)]
    pub sampling_n: u32,
}
