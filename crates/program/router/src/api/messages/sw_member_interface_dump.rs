//! `sw_member_interface_dump`: members of bonds, of which there are none yet; clients such as
//! `vppcfg` insist on the message.

use super::sw_bond_interface_dump::BOND;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message, Text};
use thalweg_graph::Control;

/// Asks for members of a bond.
#[derive(Debug, Message)]
#[api(request)]
pub struct SwMemberInterfaceDump {
    /// The bond.
    pub sw_if_index: InterfaceIndex,
}

/// A member of a bond.
#[derive(Debug, Message)]
#[api(details)]
pub struct SwMemberInterfaceDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Its name.
    pub interface_name: Text<64>,
    /// It waits for the other side to begin.
    pub is_passive: bool,
    /// It waits long for the other side.
    pub is_long_timeout: bool,
    /// It is on the socket of its worker.
    pub is_local_numa: bool,
    /// Its share.
    pub weight: u32,
}

/// The service.
pub static SERVICE: Dump<Control, SwMemberInterfaceDump, SwMemberInterfaceDetails> =
    Dump::new(&BOND, handle);

fn handle(_: &mut Control, _: SwMemberInterfaceDump, _: &mut Details<SwMemberInterfaceDetails>) {}
