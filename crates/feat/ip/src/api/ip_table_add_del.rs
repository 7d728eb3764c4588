//! `ip_table_add_del`: adds or deletes a routing table.

use crate::api_types::add_del_table;
use crate::message_types::{IP, IpTableAddDel, IpTableAddDelReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpTableAddDel, IpTableAddDelReply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpTableAddDel) -> Result<IpTableAddDelReply, Retval> {
    add_del_table(c, rq.is_add, &rq.table)?;
    Ok(IpTableAddDelReply)
}
