//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Message, api_enum};

/// Module `pg`.
pub static PG: Module = Module { name: "pg", folder: "core", version: "2.1.0" };

/// Message `pg_capture`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct PgCapture {
    pub interface_id: InterfaceIndex,
    #[api(default = "true")]
    pub is_enabled: bool,
    pub count: u32,
    pub pcap_file_name: String,
}

/// Message `pg_create_interface`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, deprecated)]
pub struct PgCreateInterface {
    pub interface_id: InterfaceIndex,
    pub gso_enabled: bool,
    pub gso_size: u32,
}

/// Message `pg_create_interface_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply, deprecated)]
pub struct PgCreateInterfaceReply {
    pub sw_if_index: InterfaceIndex,
}

api_enum! {
    /// Type `pg_interface_mode`.
    pub struct PgInterfaceMode: u8 = "pg_interface_mode" {
        ETHERNET = 0, "PG_API_MODE_ETHERNET";
        IP4 = 1, "PG_API_MODE_IP4";
        IP6 = 2, "PG_API_MODE_IP6";
    }
}

/// Message `pg_create_interface_v2`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, deprecated)]
pub struct PgCreateInterfaceV2 {
    pub interface_id: InterfaceIndex,
    pub gso_enabled: bool,
    pub gso_size: u32,
    pub mode: PgInterfaceMode,
}

/// Message `pg_create_interface_v2_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply, deprecated)]
pub struct PgCreateInterfaceV2Reply {
    pub sw_if_index: InterfaceIndex,
}

api_enum! {
    /// Type `pg_interface_flags`.
    pub struct PgInterfaceFlags: u32 = "pg_interface_flags" {
        NONE = 0, "PG_API_FLAG_NONE";
        CSUM_OFFLOAD = 1, "PG_API_FLAG_CSUM_OFFLOAD";
        GSO = 2, "PG_API_FLAG_GSO";
        GRO_COALESCE = 4, "PG_API_FLAG_GRO_COALESCE";
    }
}

/// Message `pg_create_interface_v3`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct PgCreateInterfaceV3 {
    pub interface_id: InterfaceIndex,
    pub pg_flags: PgInterfaceFlags,
    pub gso_size: u32,
    pub mode: PgInterfaceMode,
}

/// Message `pg_create_interface_v3_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct PgCreateInterfaceV3Reply {
    pub sw_if_index: InterfaceIndex,
}

/// Message `pg_delete_interface`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct PgDeleteInterface {
    pub sw_if_index: InterfaceIndex,
}

/// Message `pg_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct PgEnableDisable {
    #[api(default = "true")]
    pub is_enabled: bool,
    pub stream_name: String,
}

/// Message `pg_interface_enable_disable_coalesce`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply, status = "in_progress")]
pub struct PgInterfaceEnableDisableCoalesce {
    pub sw_if_index: InterfaceIndex,
    pub coalesce_enabled: bool,
}
