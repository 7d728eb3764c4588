//! `punt_socket_deregister`: hands packets to a program no longer.

use crate::api::punt::{PUNT, Punt};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Hands packets to a socket no longer.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct PuntSocketDeregister {
    /// Which packets.
    pub punt: Punt,
}

/// The service.
pub static SERVICE: Call<Control, PuntSocketDeregister, PuntSocketDeregisterReply> =
    Call::new(&PUNT, handle);

fn handle(_: &mut Control, rq: PuntSocketDeregister) -> Result<PuntSocketDeregisterReply, Retval> {
    Err(rq.punt.refuse("punt sockets are not supported"))
}
