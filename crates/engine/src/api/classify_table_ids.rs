//! `classify_table_ids`: the numbers of the classifier tables.

use crate::api_modules::CLASSIFY;
use crate::classify::Classifier;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Asks for the tables.
#[derive(Debug, Message)]
#[api(request)]
pub struct ClassifyTableIds;

/// Replies to [`ClassifyTableIds`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ClassifyTableIdsReply {
    /// Their numbers.
    #[api(count = "count: u32")]
    pub ids: Vec<u32>,
}

/// The service.
pub static SERVICE: Call<Control, ClassifyTableIds, ClassifyTableIdsReply> =
    Call::new(&CLASSIFY, handle);

fn handle(c: &mut Control, _: ClassifyTableIds) -> Result<ClassifyTableIdsReply, Retval> {
    let state = c.state::<Classifier>();
    let ids = state.borrow().tables().map(|(index, _)| index).collect();
    Ok(ClassifyTableIdsReply { ids })
}
