//! `pcap_trace_on`: starts a packet capture.

use crate::message_types::{INTERFACE, PcapTraceOn, PcapTraceOnReply};
use crate::{PcapError, Plan};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_engine::classify::{self, User};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, PcapTraceOn, PcapTraceOnReply> = Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: PcapTraceOn) -> Result<PcapTraceOnReply, Retval> {
    let error = match rq.error.as_str() {
        "" => None,
        word => Some(crate::reason(c, word).map_err(retval)?),
    };
    let sw_if = match rq.sw_if_index {
        InterfaceIndex(0) | InterfaceIndex::NONE => None,
        one => Some(view(c, one)?.sw_if),
    };
    let filter = match rq.filter {
        true => Some(classify::filter(c, sw_if.map_or(User::Pcap, User::PcapOf))?),
        false => None,
    };
    let plan = Plan {
        what: [rq.capture_rx, rq.capture_tx, rq.capture_drop],
        packets: rq.max_packets,
        bytes: rq.max_bytes_per_packet,
        sw_if,
        error,
        filter,
        file: rq.filename.as_str().to_owned(),
    };
    crate::start(c, plan).map_err(retval)?;
    Ok(PcapTraceOnReply)
}

/// VPP's return code for an error.
pub(super) fn retval(error: PcapError) -> Retval {
    let retval = match error {
        PcapError::Running | PcapError::Plan(_) => Retval::INVALID_VALUE,
        PcapError::NotRunning => Retval::VALUE_EXIST,
        PcapError::Empty => Retval::NO_SUCH_ENTRY,
        PcapError::File { .. } => Retval::CANNOT_CREATE_PCAP_FILE,
    };
    retval.because(error)
}
