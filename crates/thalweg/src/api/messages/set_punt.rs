//! `set_punt`: hands packets to the kernel, which is not there yet.

use crate::api::punt::{PUNT, Punt};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Hands packets to the kernel, or no longer.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SetPunt {
    /// From now on.
    pub is_add: bool,
    /// Which packets.
    pub punt: Punt,
}

/// The service.
pub static SERVICE: Call<Control, SetPunt, SetPuntReply> = Call::new(&PUNT, handle);

fn handle(_: &mut Control, rq: SetPunt) -> Result<SetPuntReply, Retval> {
    Err(rq.punt.refuse("punting to the host stack is not supported; `ip punt redirect' sends what nothing here takes elsewhere"))
}
