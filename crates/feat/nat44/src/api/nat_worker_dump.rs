//! `nat_worker_dump`: lists the workers that own sessions.

use crate::api_types::NAT44_ED;
use crate::{Nat44, view};
use thalweg_api::{Details, Dump, Message, Text};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request)]
pub struct NatWorkerDump;

/// Entry of the dump.
#[derive(Debug, Message)]
#[api(details)]
pub struct NatWorkerDetails {
    /// Worker index.
    pub worker_index: u32,
    /// Processor.
    pub lcore_id: u32,
    /// Thread name.
    pub name: Text<64>,
}

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
