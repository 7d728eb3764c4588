//! `nat44_user_session_dump`: lists the sessions of an inside host.

crate::api_types::session_dump! {
    Nat44UserSessionDump, Nat44UserSessionDetails, [], []
}

/// The service.
pub static SERVICE: Dump<Control, Nat44UserSessionDump, Nat44UserSessionDetails> =
    Dump::slices(&NAT44_ED, handle);
