//! `pcap_set_filter_function`: selects the filter function of captures; only the default exists.

use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::INTERFACE;
use thalweg_graph::Control;

/// Selects a filter function.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct PcapSetFilterFunction {
    /// Name of the function.
    pub filter_function_name: String,
}

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
