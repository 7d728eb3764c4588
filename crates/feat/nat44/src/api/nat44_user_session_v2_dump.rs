//! `nat44_user_session_v2_dump`: lists the sessions of an inside host.

crate::api_types::session_dump! {
    Nat44UserSessionV2Dump, Nat44UserSessionV2Details, [], [is_timed_out]
}

/// The service.
pub static SERVICE: Dump<Control, Nat44UserSessionV2Dump, Nat44UserSessionV2Details> =
    Dump::slices(&NAT44_ED, handle);
