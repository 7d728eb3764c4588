//! `classify_pcap_get_tables`: the tables of the filter of captures.

use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_engine::api_modules::CLASSIFY;
use thalweg_engine::classify::Classifier;
use thalweg_graph::Control;

/// Asks for the tables.
#[derive(Debug, Message)]
#[api(request)]
pub struct ClassifyPcapGetTables {
    /// The interface; 0 for captures of any.
    pub sw_if_index: InterfaceIndex,
}

/// Replies to [`ClassifyPcapGetTables`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ClassifyPcapGetTablesReply {
    /// Their numbers, in the order of the chain.
    #[api(count = "count: u32")]
    pub indices: Vec<u32>,
}

/// The service.
pub static SERVICE: Call<Control, ClassifyPcapGetTables, ClassifyPcapGetTablesReply> =
    Call::new(&CLASSIFY, handle);

fn handle(
    c: &mut Control,
    rq: ClassifyPcapGetTables,
) -> Result<ClassifyPcapGetTablesReply, Retval> {
    let user = super::classify_pcap_set_table::user(c, rq.sw_if_index)?;
    let indices = c.state::<Classifier>().borrow().of(user);
    Ok(ClassifyPcapGetTablesReply { indices })
}
