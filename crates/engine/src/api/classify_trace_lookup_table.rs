//! `classify_trace_lookup_table`: finds the table of the filter of traces that has a mask.

use crate::classify::{Classifier, MAX_VECTORS, NONE, User, VECTOR};
use crate::message_types::{CLASSIFY, ClassifyTraceLookupTable, ClassifyTraceLookupTableReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

impl Default for ClassifyTraceLookupTableReply {
    fn default() -> Self {
        ClassifyTraceLookupTableReply { table_index: NONE }
    }
}

/// The service.
pub static SERVICE: Call<Control, ClassifyTraceLookupTable, ClassifyTraceLookupTableReply> =
    Call::new(&CLASSIFY, handle);

fn handle(
    c: &mut Control,
    rq: ClassifyTraceLookupTable,
) -> Result<ClassifyTraceLookupTableReply, Retval> {
    let table_index = find(c, User::Trace, rq.skip_n_vectors, rq.match_n_vectors, &rq.mask)?;
    Ok(ClassifyTraceLookupTableReply { table_index })
}

/// Finds the table of a filter that has this mask; all ones if none has.
///
/// # Errors
/// [`Retval::INVALID_VALUE`] if no table can have it.
pub fn find(c: &Control, user: User, skip: u32, vectors: u32, mask: &[u8]) -> Result<u32, Retval> {
    let fits = (1..=MAX_VECTORS).contains(&vectors) && mask.len() == vectors as usize * VECTOR;
    if skip > MAX_VECTORS || !fits {
        return Err(Retval::INVALID_VALUE.because("no table can have this mask"));
    }
    Ok(c.state::<Classifier>().borrow().find(user, skip, mask).unwrap_or(NONE))
}
