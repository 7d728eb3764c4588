//! `mpls_interface_dump`: interfaces that take MPLS, of which there are none yet; `vppcfg` asks.

use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

static MPLS: Module = Module { name: "mpls", folder: "core", version: "1.1.1" };

/// Asks for interfaces that take MPLS.
#[derive(Debug, Message)]
#[api(request)]
pub struct MplsInterfaceDump {
    /// Which one; none means all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// An interface that takes MPLS.
#[derive(Debug, Message)]
#[api(details)]
pub struct MplsInterfaceDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Dump<Control, MplsInterfaceDump, MplsInterfaceDetails> =
    Dump::new(&MPLS, handle);

fn handle(_: &mut Control, _: MplsInterfaceDump, _: &mut Details<MplsInterfaceDetails>) {}
