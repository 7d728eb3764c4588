//! `nat_set_workers`: sets the workers that own sessions.

use crate::message_types::{NAT44_ED, NatSetWorkers, NatSetWorkersReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, NatSetWorkers, NatSetWorkersReply> = Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, rq: NatSetWorkers) -> Result<NatSetWorkersReply, Retval> {
    let named: Vec<u16> = (0..64).filter(|bit| rq.worker_mask >> bit & 1 != 0).collect();
    state::set_workers(c, Some(&named))?;
    Ok(NatSetWorkersReply)
}
