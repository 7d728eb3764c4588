//! `classify_trace_set_table`: makes a chain of tables the filter of traces.

use crate::classify::{Classifier, NONE, User};
use crate::message_types::{CLASSIFY, ClassifyTraceSetTable, ClassifyTraceSetTableReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

impl Default for ClassifyTraceSetTableReply {
    fn default() -> Self {
        ClassifyTraceSetTableReply { table_index: NONE }
    }
}

/// The service.
pub static SERVICE: Call<Control, ClassifyTraceSetTable, ClassifyTraceSetTableReply> =
    Call::new(&CLASSIFY, handle);

fn handle(
    c: &mut Control,
    rq: ClassifyTraceSetTable,
) -> Result<ClassifyTraceSetTableReply, Retval> {
    let table_index = set(c, User::Trace, rq.table_index, rq.sort_masks)?;
    Ok(ClassifyTraceSetTableReply { table_index })
}

/// Makes the chain that begins with a table a user's filter, or ends the filter (all ones).
/// Returns the first table.
///
/// # Errors
/// [`Retval::INVALID_VALUE`] if there is no such table.
pub fn set(c: &Control, user: User, table: u32, sort: bool) -> Result<u32, Retval> {
    let first = Some(table).filter(|table| *table != NONE);
    let set = c.state::<Classifier>().borrow_mut().set(user, first, sort);
    match set {
        Ok(first) => Ok(first.unwrap_or(NONE)),
        Err(e) => Err(Retval::INVALID_VALUE.because(e)),
    }
}
