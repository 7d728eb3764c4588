//! `acl_interface_list_dump`: access lists of interfaces, of which there are none yet; clients such
//! as `vppcfg` insist on a record per interface.

use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_device::api_types::indices;
use thalweg_graph::Control;

pub(super) static ACL: Module = Module { name: "acl", folder: "plugins", version: "2.0.1" };

/// Asks for interfaces' access lists.
#[derive(Debug, Message)]
#[api(request, vat_help = "[<intfc> | sw_if_index <if-idx>]")]
pub struct AclInterfaceListDump {
    /// Which one; none and 0 mean all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// An interface's access lists.
#[derive(Debug, Message)]
#[api(details)]
pub struct AclInterfaceListDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// How many are for what it receives.
    pub n_input: u8,
    /// The lists.
    #[api(count = "count: u8", at = "n_input")]
    pub acls: Vec<u32>,
}

/// The service.
pub static SERVICE: Dump<Control, AclInterfaceListDump, AclInterfaceListDetails> =
    Dump::new(&ACL, handle);

fn handle(c: &mut Control, rq: AclInterfaceListDump, out: &mut Details<AclInterfaceListDetails>) {
    for sw_if in indices(c, rq.sw_if_index) {
        let sw_if_index = InterfaceIndex(sw_if.get());
        out.send(&AclInterfaceListDetails { sw_if_index, n_input: 0, acls: Vec::new() });
    }
}
