//! `classify_pcap_get_tables`: the tables of the filter of captures.

use crate::message_types::{CLASSIFY, ClassifyPcapGetTables, ClassifyPcapGetTablesReply};
use thalweg_api::{Call, Retval};
use thalweg_engine::classify::Classifier;
use thalweg_graph::Control;

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
