//! `punt_socket_dump`: programs that packets are handed to, of which there are none.

use crate::api::punt::{PUNT, Punt, PuntType};
use thalweg_api::{Details, Dump, Message, Text};
use thalweg_graph::Control;

/// Asks for the programs.
#[derive(Debug, Message)]
#[api(request)]
pub struct PuntSocketDump {
    /// Of which kind.
    pub r#type: PuntType,
}

/// A program.
#[derive(Debug, Message)]
#[api(details)]
pub struct PuntSocketDetails {
    /// Which packets.
    pub punt: Punt,
    /// Its socket.
    pub pathname: Text<108>,
}

/// The service.
pub static SERVICE: Dump<Control, PuntSocketDump, PuntSocketDetails> = Dump::new(&PUNT, handle);

fn handle(_: &mut Control, _: PuntSocketDump, _: &mut Details<PuntSocketDetails>) {}
