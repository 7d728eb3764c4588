//! `nat_worker_dump`: lists the workers that own sessions.

use crate::message_types::{NAT44_ED, NatWorkerDetails, NatWorkerDump};
use crate::{Nat44, view};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, NatWorkerDump, NatWorkerDetails> = Dump::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: NatWorkerDump, out: &mut Details<NatWorkerDetails>) {
    let owners = c.state::<Nat44>().borrow().owners(c.workers());
    for (i, t) in view::worker_threads(c, &owners) {
        out.send(&NatWorkerDetails {
            worker_index: i as u32,
            lcore_id: t.core.map_or(0, |core| core as u32),
            name: t.name.as_str().into(),
        });
    }
}
