//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Message, api_enum};

/// Module `mss_clamp`.
pub static MSS_CLAMP: Module = Module { name: "mss_clamp", folder: "plugins", version: "1.0.0" };

api_enum! {
    /// Type `mss_clamp_dir`.
    pub struct MssClampDir: u8 flags "mss_clamp_dir" {
        NONE = 0, "MSS_CLAMP_DIR_NONE";
        RX = 1, "MSS_CLAMP_DIR_RX";
        TX = 2, "MSS_CLAMP_DIR_TX";
    }
}

/// Message `mss_clamp_enable_disable`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct MssClampEnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub ipv4_mss: u16,
    pub ipv6_mss: u16,
    pub ipv4_direction: MssClampDir,
    pub ipv6_direction: MssClampDir,
}

/// Message `mss_clamp_get`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct MssClampGet {
    pub cursor: u32,
    pub sw_if_index: InterfaceIndex,
}

/// Message `mss_clamp_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct MssClampDetails {
    pub sw_if_index: InterfaceIndex,
    pub ipv4_mss: u16,
    pub ipv6_mss: u16,
    pub ipv4_direction: MssClampDir,
    pub ipv6_direction: MssClampDir,
}

/// Message `mss_clamp_get_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct MssClampGetReply {
    pub cursor: u32,
}
