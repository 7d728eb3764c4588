//! `acl_interface_list_dump`: access lists of interfaces, of which there are none yet; clients such
//! as `vppcfg` insist on a record per interface.

use crate::api::message_types::{ACL, AclInterfaceListDetails, AclInterfaceListDump};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_device::api_types::indices;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, AclInterfaceListDump, AclInterfaceListDetails> =
    Dump::new(&ACL, handle);

fn handle(c: &mut Control, rq: AclInterfaceListDump, out: &mut Details<AclInterfaceListDetails>) {
    for sw_if in indices(c, rq.sw_if_index) {
        let sw_if_index = InterfaceIndex(sw_if.get());
        out.send(&AclInterfaceListDetails { sw_if_index, n_input: 0, acls: Vec::new() });
    }
}
