//! Flow records of application operations.

use crate::value::{Field, Text, Value, record};
use crate::xdr::{DecodeError, Reader, Writer};

record! {
    /// A memcache operation.
    MemcacheOperation<'a>, "flowSampleType" => "memcache" {
        protocol: u32 = "memcache_op_protocol",
        command: u32 = "memcache_op_cmd",
        key: Text<'a> = "memcache_op_key",
        keys: u32 = "memcache_op_nkeys",
        value_bytes: u32 = "memcache_op_value_bytes",
        /// Microseconds.
        duration: u32 = "memcache_op_duration_uS",
        status: u32 = "memcache_op_status",
    }
}

record! {
    /// An HTTP request, first form.
    HttpRequest<'a>, "flowSampleType" => "http" {
        method: u32 = "http_method",
        /// Thousands are the major version.
        protocol: u32 = "http_protocol",
        uri: Text<'a> = "http_uri",
        host: Text<'a> = "http_host",
        referrer: Text<'a> = "http_referrer",
        user_agent: Text<'a> = "http_useragent",
        user: Text<'a> = "http_authuser",
        mime_type: Text<'a> = "http_mimetype",
        bytes: u64 = "http_bytes",
        /// Microseconds.
        duration: u32 = "http_duration_uS",
        status: u32 = "http_status",
    }
}

record! {
    /// An HTTP request.
    HttpRequest2<'a>, "flowSampleType" => "http" {
        method: u32 = "http_method",
        /// Thousands are the major version.
        protocol: u32 = "http_protocol",
        uri: Text<'a> = "http_uri",
        host: Text<'a> = "http_host",
        referrer: Text<'a> = "http_referrer",
        user_agent: Text<'a> = "http_useragent",
        forwarded_for: Text<'a> = "http_xff",
        user: Text<'a> = "http_authuser",
        mime_type: Text<'a> = "http_mimetype",
        request_bytes: u64 = "http_request_bytes",
        bytes: u64 = "http_bytes",
        /// Microseconds.
        duration: u32 = "http_duration_uS",
        status: u32 = "http_status",
    }
}

/// Outcome of an application operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AppStatus(pub u32);

const APP_STATUS: [&str; 11] = [
    "SUCCESS",
    "OTHER",
    "TIMEOUT",
    "INTERNAL_ERROR",
    "BAD_REQUEST",
    "FORBIDDEN",
    "TOO_LARGE",
    "NOT_IMPLEMENTED",
    "NOT_FOUND",
    "UNAVAILABLE",
    "UNAUTHORIZED",
];

impl<'a> Field<'a> for AppStatus {
    fn get(r: &mut Reader<'a>, what: &'static str) -> Result<Self, DecodeError> {
        r.u32(what).map(AppStatus)
    }
    fn put(&self, w: &mut Writer<'_>) {
        w.u32(self.0);
    }
    fn value(&self) -> Option<Value<'_>> {
        Some(match APP_STATUS.get(self.0 as usize) {
            Some(name) => Value::Str(name),
            None => Value::U32(self.0),
        })
    }
}

record! {
    /// An operation of an application.
    AppOperation<'a>, "flowSampleType" => "applicationOperation" {
        application: Text<'a> = "application",
        operation: Text<'a> = "operation",
        attributes: Text<'a> = "attributes",
        status_text: Text<'a> = "status_descr",
        request_bytes: u64 = "request_bytes",
        response_bytes: u64 = "response_bytes",
        /// Microseconds.
        duration: u32 = "duration_uS",
        status: AppStatus = "status",
    }
}

record! {
    /// The operation that caused this one.
    AppContext<'a> {
        application: Text<'a> = "server_context_application",
        operation: Text<'a> = "server_context_operation",
        attributes: Text<'a> = "server_context_attributes",
    }
}

record! {
    /// The actor that asked for the operation.
    AppActorInitiator<'a> {
        actor: Text<'a> = "actor_initiator",
    }
}

record! {
    /// The actor that performed the operation.
    AppActorTarget<'a> {
        actor: Text<'a> = "actor_target",
    }
}
