//! `classify_trace_get_tables`: the tables of the filter of traces.

use crate::api_modules::CLASSIFY;
use crate::classify::{Classifier, User};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Asks for the tables.
#[derive(Debug, Message)]
#[api(request)]
pub struct ClassifyTraceGetTables;

/// Replies to [`ClassifyTraceGetTables`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ClassifyTraceGetTablesReply {
    /// Their numbers, in the order of the chain.
    #[api(count = "count: u32")]
    pub indices: Vec<u32>,
}

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
