//! `punt_reason_dump`: reasons for which packets can be handed out, of which there are none.

use crate::api::punt::{PUNT, PuntReason};
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Asks for the reasons.
#[derive(Debug, Message)]
#[api(request)]
pub struct PuntReasonDump {
    /// Which one; no name means all.
    pub reason: PuntReason,
}

/// A reason.
#[derive(Debug, Message)]
#[api(details)]
pub struct PuntReasonDetails {
    /// The reason.
    pub reason: PuntReason,
}

/// The service.
pub static SERVICE: Dump<Control, PuntReasonDump, PuntReasonDetails> = Dump::new(&PUNT, handle);

fn handle(_: &mut Control, _: PuntReasonDump, _: &mut Details<PuntReasonDetails>) {}
