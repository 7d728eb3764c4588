//! `punt_socket_register`: hands packets to a program, which is not there yet.

use crate::api::message_types::{PUNT, PuntSocketRegister, PuntSocketRegisterReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, PuntSocketRegister, PuntSocketRegisterReply> =
    Call::new(&PUNT, handle);

fn handle(_: &mut Control, rq: PuntSocketRegister) -> Result<PuntSocketRegisterReply, Retval> {
    Err(rq.punt.refuse("punt sockets are not supported"))
}
