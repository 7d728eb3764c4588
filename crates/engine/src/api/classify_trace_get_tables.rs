//! `classify_trace_get_tables`: the tables of the filter of traces.

use crate::classify::{Classifier, User};
use crate::message_types::{CLASSIFY, ClassifyTraceGetTables, ClassifyTraceGetTablesReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, ClassifyTraceGetTables, ClassifyTraceGetTablesReply> =
    Call::new(&CLASSIFY, handle);

fn handle(
    c: &mut Control,
    _: ClassifyTraceGetTables,
) -> Result<ClassifyTraceGetTablesReply, Retval> {
    let indices = c.state::<Classifier>().borrow().of(User::Trace);
    Ok(ClassifyTraceGetTablesReply { indices })
}
