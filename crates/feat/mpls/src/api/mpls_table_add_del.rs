//! `mpls_table_add_del`: adds or deletes a label table.

use crate::MplsError;
use crate::message_types::{MPLS, MplsTableAddDel, MplsTableAddDelReply};
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, MplsTableAddDel, MplsTableAddDelReply> = Call::new(&MPLS, handle);

fn handle(c: &mut Control, rq: MplsTableAddDel) -> Result<MplsTableAddDelReply, Retval> {
    let id = TableId(rq.mt_table.mt_table_id);
    match rq.mt_is_add {
        true => {
            let name = Some(rq.mt_table.mt_name.as_str()).filter(|name| !name.is_empty());
            crate::add_table(c, id, name)?;
        }
        false => match crate::del_table(c, id) {
            Err(MplsError::NoTable(_)) => {}
            done => done?,
        },
    }
    Ok(MplsTableAddDelReply)
}
