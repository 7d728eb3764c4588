//! `sw_member_interface_dump`: members of bonds, of which there are none yet; clients such as
//! `vppcfg` insist on the message.

use crate::api::message_types::{BOND, SwMemberInterfaceDetails, SwMemberInterfaceDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, SwMemberInterfaceDump, SwMemberInterfaceDetails> =
    Dump::new(&BOND, handle);

fn handle(_: &mut Control, _: SwMemberInterfaceDump, _: &mut Details<SwMemberInterfaceDetails>) {}
