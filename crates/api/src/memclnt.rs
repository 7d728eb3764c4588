//! Messages of the connection itself, which the server answers without any feature.
//!
//! The first 28 numbers are these messages', in the order of VPP's own file, since clients rely on
//! two of them. Those for clients over shared memory keep their numbers but are not offered.

use crate::json::Described;
use crate::schema::{MessageDef, Module};
use crate::wire::Text;
use crate::{ApiType, Message};

/// The module.
pub static MODULE: Module = Module { name: "memclnt", folder: "core", version: "2.1.0" };

/// Begins a connection.
#[derive(Debug, Message)]
#[api(details)]
pub struct SockclntCreate {
    /// What the client calls itself.
    pub name: Text<64>,
}

/// A message's number.
#[derive(Clone, Debug, ApiType)]
pub struct MessageTableEntry {
    /// The number.
    pub index: u16,
    /// Its name and CRC.
    pub name: Text<64>,
}

/// Answers [`SockclntCreate`].
#[derive(Debug, Message)]
#[api(bare)]
pub struct SockclntCreateReply {
    /// Has no meaning.
    pub client_index: u32,
    /// As in the request.
    pub context: u32,
    /// 0.
    pub response: i32,
    /// The client's number.
    pub index: u32,
    /// Every message.
    #[api(count = "count: u16")]
    pub message_table: Vec<MessageTableEntry>,
}

/// Ends a connection.
#[derive(Debug, Message)]
#[api(request)]
pub struct SockclntDelete {
    /// The client's number.
    pub index: u32,
}

/// Answers [`SockclntDelete`].
#[derive(Debug, Message)]
#[api(details)]
pub struct SockclntDeleteReply {
    /// Not negative.
    pub response: i32,
}

/// Asks for nothing but an answer: it ends dumps.
#[derive(Debug, Message)]
#[api(request)]
pub struct ControlPing;

/// Answers [`ControlPing`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ControlPingReply {
    /// The client's number.
    pub client_index: u32,
    /// The router's process number.
    pub vpe_pid: u32,
}

/// Asks for the description of all messages.
#[derive(Debug, Message)]
#[api(request)]
pub struct GetApiJson;

/// Answers [`GetApiJson`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct GetApiJsonReply {
    /// A list of JSON documents.
    pub json: String,
}

/// Asks for the versions of all modules.
#[derive(Debug, Message)]
#[api(request)]
pub struct ApiVersions;

/// A module's version.
#[derive(Clone, Debug, ApiType)]
pub struct ModuleVersion {
    /// Its first number.
    pub major: u32,
    /// The second.
    pub minor: u32,
    /// The third.
    pub patch: u32,
    /// The module.
    pub name: Text<64>,
}

/// Answers [`ApiVersions`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct ApiVersionsReply {
    /// Every module.
    #[api(count = "count: u32")]
    pub api_versions: Vec<ModuleVersion>,
}

/// Asks for the first of a module's numbers.
#[derive(Debug, Message)]
#[api(request)]
pub struct GetFirstMsgId {
    /// The module's name, with or without `_` and a CRC behind it.
    pub name: Text<64>,
}

/// Answers [`GetFirstMsgId`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct GetFirstMsgIdReply {
    /// The number.
    pub first_msg_id: u16,
}

/// Asks whether the other side lives.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct MemclntKeepalive;

/// What the module offers, with the numbers.
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

/// The last number of this module.
pub(crate) const LAST: u16 = 28;

/// Its services.
pub(crate) fn described() -> Vec<Described> {
    let pairs = NUMBERS.chunks_exact(2);
    let service = |pair: &[(u16, &'static MessageDef)]| Described {
        request: pair[0].1,
        reply: Some(pair[1].1),
        details: None,
        events: &[],
    };
    pairs.map(service).collect()
}
