//! Messages that the server handles by itself, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::{MessageDef, Module};
use thalweg_api::{ApiType, Message, Text};

/// Module `memclnt`.
pub static MEMCLNT: Module = Module { name: "memclnt", folder: "core", version: "2.1.0" };

/// Message `get_first_msg_id`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct GetFirstMsgId {
    pub name: Text<64>,
}

/// Message `get_first_msg_id_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct GetFirstMsgIdReply {
    pub first_msg_id: u16,
}

/// Message `api_versions`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ApiVersions;

/// Type `module_version`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct ModuleVersion {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
    pub name: Text<64>,
}

/// Message `api_versions_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ApiVersionsReply {
    #[api(count = "count: u32")]
    pub api_versions: Vec<ModuleVersion>,
}

/// Message `sockclnt_create`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct SockclntCreate {
    pub name: Text<64>,
}

/// Type `message_table_entry`.
#[derive(Clone, Debug, Default, PartialEq, Eq, ApiType)]
pub struct MessageTableEntry {
    pub index: u16,
    pub name: Text<64>,
}

/// Message `sockclnt_create_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(bare)]
pub struct SockclntCreateReply {
    pub client_index: u32,
    pub context: u32,
    pub response: i32,
    pub index: u32,
    #[api(count = "count: u16")]
    pub message_table: Vec<MessageTableEntry>,
}

/// Message `sockclnt_delete`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct SockclntDelete {
    pub index: u32,
}

/// Message `sockclnt_delete_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details)]
pub struct SockclntDeleteReply {
    pub response: i32,
}

/// Message `memclnt_keepalive`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct MemclntKeepalive;

/// Message `control_ping`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct ControlPing;

/// Message `control_ping_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct ControlPingReply {
    pub client_index: u32,
    pub vpe_pid: u32,
}

/// Message `get_api_json`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request)]
pub struct GetApiJson;

/// Message `get_api_json_reply`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(reply)]
pub struct GetApiJsonReply {
    pub json: String,
}

/// Ids of these messages.
pub(crate) const NUMBERS: [(u16, &MessageDef); 14] = [
    (10, GetFirstMsgId::DEF),
    (11, GetFirstMsgIdReply::DEF),
    (12, ApiVersions::DEF),
    (13, ApiVersionsReply::DEF),
    (15, SockclntCreate::DEF),
    (16, SockclntCreateReply::DEF),
    (17, SockclntDelete::DEF),
    (18, SockclntDeleteReply::DEF),
    (21, MemclntKeepalive::DEF),
    (22, MemclntKeepaliveReply::DEF),
    (23, ControlPing::DEF),
    (24, ControlPingReply::DEF),
    (27, GetApiJson::DEF),
    (28, GetApiJsonReply::DEF),
];

/// Last id of the module, which has messages that are not offered.
pub(crate) const LAST: u16 = 28;
