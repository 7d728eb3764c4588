//! `pcap_set_filter_function`: selects the filter function of captures; only the default exists.

use crate::message_types::{INTERFACE, PcapSetFilterFunction, PcapSetFilterFunctionReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, PcapSetFilterFunction, PcapSetFilterFunctionReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    _: &mut Control,
    rq: PcapSetFilterFunction,
) -> Result<PcapSetFilterFunctionReply, Retval> {
    match rq.filter_function_name.as_str() {
        "vnet_is_packet_traced" => Ok(PcapSetFilterFunctionReply),
        _ => Err(Retval::NO_SUCH_ENTRY),
    }
}
