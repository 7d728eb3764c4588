//! `classify_trace_lookup_table`: finds the table of the filter of traces that has a mask.

use crate::api_modules::CLASSIFY;
use crate::classify::{Classifier, MAX_VECTORS, NONE, User, VECTOR};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Asks for the table of a mask.
#[derive(Debug, Message)]
#[api(request)]
pub struct ClassifyTraceLookupTable {
    /// Vectors before the mask.
    #[api(default = 0)]
    pub skip_n_vectors: u32,
    /// Vectors of the mask.
    #[api(default = 1)]
    pub match_n_vectors: u32,
    /// The mask.
    #[api(count = "mask_len: u32")]
    pub mask: Vec<u8>,
}

/// Replies to [`ClassifyTraceLookupTable`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct ClassifyTraceLookupTableReply {
    /// The table; all ones for none.
    pub table_index: u32,
}

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
