//! `punt_reason_dump`: why packets are punted.

use crate::api::message_types::{PUNT, PuntReason, PuntReasonDetails, PuntReasonDump};
use thalweg_api::{Details, Dump};
use thalweg_engine::punt;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, PuntReasonDump, PuntReasonDetails> = Dump::new(&PUNT, handle);

fn handle(c: &mut Control, rq: PuntReasonDump, out: &mut Details<PuntReasonDetails>) {
    let asked = |name: &str| rq.reason.name.is_empty() || rq.reason.name == name;
    for r in punt::reasons(c).into_iter().filter(|r| asked(r.decl.name)) {
        let reason = PuntReason { id: r.reason.number(), name: r.decl.name.into() };
        out.send(&PuntReasonDetails { reason });
    }
}
