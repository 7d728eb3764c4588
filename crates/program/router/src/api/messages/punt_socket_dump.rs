//! `punt_socket_dump`: programs that packets are handed to, of which there are none.

use crate::api::message_types::{PUNT, PuntSocketDetails, PuntSocketDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, PuntSocketDump, PuntSocketDetails> = Dump::new(&PUNT, handle);

fn handle(_: &mut Control, _: PuntSocketDump, _: &mut Details<PuntSocketDetails>) {}
