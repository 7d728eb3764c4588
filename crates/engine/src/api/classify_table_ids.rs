//! `classify_table_ids`: the numbers of the classifier tables.

use crate::classify::Classifier;
use crate::message_types::{CLASSIFY, ClassifyTableIds, ClassifyTableIdsReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, ClassifyTableIds, ClassifyTableIdsReply> =
    Call::new(&CLASSIFY, handle);

fn handle(c: &mut Control, _: ClassifyTableIds) -> Result<ClassifyTableIdsReply, Retval> {
    let state = c.state::<Classifier>();
    let ids = state.borrow().tables().map(|(index, _)| index).collect();
    Ok(ClassifyTableIdsReply { ids })
}
