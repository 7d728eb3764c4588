//! Messages of the connection itself, which the server handles without any feature.
//!
//! The first ids are these messages', in the order of VPP's own file, since clients rely on two of
//! them. Messages for clients over shared memory keep their ids but are not offered.

use crate::json::Described;
use crate::schema::MessageDef;

pub use crate::message_types::{
    ApiVersions, ApiVersionsReply, ControlPing, ControlPingReply, GetApiJson, GetApiJsonReply,
    GetFirstMsgId, GetFirstMsgIdReply, MEMCLNT, MemclntKeepalive, MemclntKeepaliveReply,
    MessageTableEntry, ModuleVersion, SockclntCreate, SockclntCreateReply, SockclntDelete,
    SockclntDeleteReply,
};
pub(crate) use crate::message_types::{LAST, NUMBERS};

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
