//! `pcap_trace_off`: ends a capture and writes its file.

use super::pcap_trace_on::retval;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::INTERFACE;
use thalweg_graph::Control;

/// Ends the capture.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct PcapTraceOff;

/// The service.
pub static SERVICE: Call<Control, PcapTraceOff, PcapTraceOffReply> = Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, _: PcapTraceOff) -> Result<PcapTraceOffReply, Retval> {
    crate::stop(c).map_err(retval)?;
    Ok(PcapTraceOffReply)
}
