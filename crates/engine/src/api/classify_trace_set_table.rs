//! `classify_trace_set_table`: makes a chain of tables the filter of traces.

use crate::api_modules::CLASSIFY;
use crate::classify::{Classifier, NONE, User};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Sets the filter of `trace add ... filter`.
#[derive(Debug, Message)]
#[api(request)]
pub struct ClassifyTraceSetTable {
    /// The first table; all ones ends the filter.
    #[api(default = 0xffff_ffff)]
    pub table_index: u32,
    /// True to put tables whose masks have more bits first.
    #[api(default = 0)]
    pub sort_masks: bool,
}

/// Replies to [`ClassifyTraceSetTable`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct ClassifyTraceSetTableReply {
    /// The table that is first now; all ones for none.
    pub table_index: u32,
}

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
