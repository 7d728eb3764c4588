//! `nat44_user_session_v3_dump`: lists the sessions of an inside host.

crate::api_types::session_dump! {
    Nat44UserSessionV3Dump, Nat44UserSessionV3Details, [time_since_last_heard], [is_timed_out]
}

/// The service.
pub static SERVICE: Dump<Control, Nat44UserSessionV3Dump, Nat44UserSessionV3Details> =
    Dump::slices(&NAT44_ED, handle);
