//! Messages of the connection itself, which the server handles without any feature.
//!
//! The first 28 ids are these messages', in the order of VPP's own file, since clients rely on two
//! of them. Those for clients over shared memory keep their ids but are not offered.

use crate::json::Described;
use crate::schema::{MessageDef, Module};
use crate::wire::Text;
use crate::{ApiType, Message};

/// The module.
pub static MODULE: Module = Module { name: "memclnt", folder: "core", version: "2.1.0" };

/// Opens a connection.
#[derive(Debug, Message)]
#[api(details)]
pub struct SockclntCreate {
    /// Name of the client.
    pub name: Text<64>,
}

/// An entry in the table of messages.
#[derive(Clone, Debug, ApiType)]
pub struct MessageTableEntry {
    /// Id of the message.
    pub index: u16,
    /// Its name and CRC.
    pub name: Text<64>,
}

/// Replies to [`SockclntCreate`].
#[derive(Debug, Message)]
#[api(bare)]
pub struct SockclntCreateReply {
    /// Unused.
    pub client_index: u32,
    /// Same as in the request.
    pub context: u32,
    /// Always 0.
    pub response: i32,
    /// Id of the client.
    pub index: u32,
    /// Every message.
    #[api(count = "count: u16")]
    pub message_table: Vec<MessageTableEntry>,
}

/// Closes a connection.
#[derive(Debug, Message)]
#[api(request)]
pub struct SockclntDelete {
    /// Id of the client.
    pub index: u32,
}

/// Replies to [`SockclntDelete`].
#[derive(Debug, Message)]
#[api(details)]
pub struct SockclntDeleteReply {
    /// Not negative.
    pub response: i32,
}

/// Requests a reply and nothing else: it ends dumps.
#[derive(Debug, Message)]
#[api(request)]
pub struct ControlPing;

/// Replies to [`ControlPing`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ControlPingReply {
    /// Id of the client.
    pub client_index: u32,
    /// Process id of the router.
    pub vpe_pid: u32,
}

/// Requests the description of all messages.
#[derive(Debug, Message)]
#[api(request)]
pub struct GetApiJson;

/// Replies to [`GetApiJson`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct GetApiJsonReply {
    /// A list of JSON documents.
    pub json: String,
}

/// Requests the versions of all modules.
#[derive(Debug, Message)]
#[api(request)]
pub struct ApiVersions;

/// A module's version.
#[derive(Clone, Debug, ApiType)]
pub struct ModuleVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
    /// Patch level.
    pub patch: u32,
    /// The module.
    pub name: Text<64>,
}

/// Replies to [`ApiVersions`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct ApiVersionsReply {
    /// Every module.
    #[api(count = "count: u32")]
    pub api_versions: Vec<ModuleVersion>,
}

/// Requests the first message id of a module.
#[derive(Debug, Message)]
#[api(request)]
pub struct GetFirstMsgId {
    /// Name of the module, with or without `_` and a CRC.
    pub name: Text<64>,
}

/// Replies to [`GetFirstMsgId`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct GetFirstMsgIdReply {
    /// The message id.
    pub first_msg_id: u16,
}

/// Checks whether the other side is alive.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct MemclntKeepalive;

/// Offered messages with their ids.
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

/// Last message id of this module.
pub(crate) const LAST: u16 = 28;

/// Returns its services.
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
