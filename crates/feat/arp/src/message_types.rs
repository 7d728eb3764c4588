//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::Message;
use thalweg_api::schema::Module;
use thalweg_api::types::{Address, InterfaceIndex, MacAddr};

/// Module `arping`.
pub static ARPING: Module = Module { name: "arping", folder: "plugins", version: "1.0.0" };

/// Message `arping`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, vat_help = "<address> <interface> [gratuitouss] [repeat <count>] [interval <sec>]")]
pub struct Arping {
    pub address: Address,
    pub sw_if_index: InterfaceIndex,
    pub is_garp: bool,
    #[api(default = 1)]
    pub repeat: u32,
    #[api(default = 1.0)]
    pub interval: f64,
}

/// Message `arping_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ArpingReply {
    pub reply_count: u32,
}

/// Message `arping_acd`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ArpingAcd {
    pub address: Address,
    pub sw_if_index: InterfaceIndex,
    pub is_garp: bool,
    #[api(default = 1)]
    pub repeat: u32,
    #[api(default = 1.0)]
    pub interval: f64,
}

/// Message `arping_acd_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ArpingAcdReply {
    pub reply_count: u32,
    pub mac_address: MacAddr,
}
