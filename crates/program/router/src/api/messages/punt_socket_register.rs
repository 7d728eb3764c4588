//! `punt_socket_register`: hands packets to a program, which is not there yet.

use crate::api::punt::{PUNT, Punt};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Hands packets to a socket.
#[derive(Debug, Message)]
#[api(request)]
pub struct PuntSocketRegister {
    /// How packets are described.
    pub header_version: u32,
    /// Which packets.
    pub punt: Punt,
    /// The program's socket.
    pub pathname: Text<108>,
}

/// Answers [`PuntSocketRegister`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct PuntSocketRegisterReply {
    /// The router's socket.
    pub pathname: Text<108>,
}

/// The service.
pub static SERVICE: Call<Control, PuntSocketRegister, PuntSocketRegisterReply> =
    Call::new(&PUNT, handle);

fn handle(_: &mut Control, rq: PuntSocketRegister) -> Result<PuntSocketRegisterReply, Retval> {
    Err(rq.punt.refuse("punt sockets are not supported"))
}
