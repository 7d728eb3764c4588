//! `nat_set_workers`: sets the workers that own sessions.

use crate::api_types::NAT44_ED;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct NatSetWorkers {
    /// Bit mask of workers.
    pub worker_mask: u64,
}

/// The service.
pub static SERVICE: Call<Control, NatSetWorkers, NatSetWorkersReply> = Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, rq: NatSetWorkers) -> Result<NatSetWorkersReply, Retval> {
    let named: Vec<u16> = (0..64).filter(|bit| rq.worker_mask >> bit & 1 != 0).collect();
    state::set_workers(c, Some(&named))?;
    Ok(NatSetWorkersReply)
}
