//! `acl_dump`: access lists, of which there are none yet; clients such as `vppcfg` insist on the
//! message.

use crate::api::message_types::{ACL, AclDetails, AclDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, AclDump, AclDetails> = Dump::new(&ACL, handle);

fn handle(_: &mut Control, _: AclDump, _: &mut Details<AclDetails>) {}
