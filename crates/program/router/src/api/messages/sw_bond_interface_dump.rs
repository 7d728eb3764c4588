//! `sw_bond_interface_dump`: bonds, of which there are none yet; clients such as `vppcfg` insist on
//! the message.

use crate::api::message_types::{BOND, SwBondInterfaceDetails, SwBondInterfaceDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, SwBondInterfaceDump, SwBondInterfaceDetails> =
    Dump::new(&BOND, handle);

fn handle(_: &mut Control, _: SwBondInterfaceDump, _: &mut Details<SwBondInterfaceDetails>) {}
