//! `punt_socket_deregister`: hands packets to a program no longer.

use crate::api::message_types::{PUNT, PuntSocketDeregister, PuntSocketDeregisterReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, PuntSocketDeregister, PuntSocketDeregisterReply> =
    Call::new(&PUNT, handle);

fn handle(_: &mut Control, rq: PuntSocketDeregister) -> Result<PuntSocketDeregisterReply, Retval> {
    Err(rq.punt.refuse("punt sockets are not supported"))
}
