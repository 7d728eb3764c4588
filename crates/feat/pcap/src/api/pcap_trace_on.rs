//! `pcap_trace_on`: captures packets.

use crate::{PcapError, Plan};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_device::api_types::{INTERFACE, view};
use thalweg_graph::Control;

/// Begins a capture.
#[derive(Debug, Message)]
#[api(
    request,
    autoreply,
    vat_help = "pcap_trace_on [capture_rx] [capture_tx] [capture_drop] [max_packets <nn>] \
                [sw_if_index <sw_if_index>|0 for any] [error <node>.<error>] [filename <name>] \
                [max_bytes_per_packet <nnnn>] [filter] [preallocate_data] [free_data]"
)]
pub struct PcapTraceOn {
    /// Received packets.
    pub capture_rx: bool,
    /// Sent packets.
    pub capture_tx: bool,
    /// Dropped packets.
    pub capture_drop: bool,
    /// Only those that a filter takes.
    pub filter: bool,
    /// Memory is had beforehand, always.
    pub preallocate_data: bool,
    /// It is given back, always.
    pub free_data: bool,
    /// Packets at most.
    #[api(default = 1000)]
    pub max_packets: u32,
    /// Bytes kept of each.
    #[api(default = 512)]
    pub max_bytes_per_packet: u32,
    /// Of this interface; 0 means all.
    pub sw_if_index: InterfaceIndex,
    /// Of dropped packets, those that this node dropped for this reason.
    pub error: Text<128>,
    /// Name of the file.
    pub filename: Text<64>,
}

/// The service.
pub static SERVICE: Call<Control, PcapTraceOn, PcapTraceOnReply> = Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: PcapTraceOn) -> Result<PcapTraceOnReply, Retval> {
    if rq.filter || !rq.error.as_str().is_empty() {
        return Err(Retval::UNIMPLEMENTED.because("captures have no filters"));
    }
    let sw_if = match rq.sw_if_index {
        InterfaceIndex(0) | InterfaceIndex::NONE => None,
        one => Some(view(c, one)?.sw_if),
    };
    let plan = Plan {
        what: [rq.capture_rx, rq.capture_tx, rq.capture_drop],
        packets: rq.max_packets,
        bytes: rq.max_bytes_per_packet,
        sw_if,
        file: rq.filename.as_str().to_owned(),
    };
    crate::start(c, plan).map_err(retval)?;
    Ok(PcapTraceOnReply)
}

/// As VPP answers.
pub(super) fn retval(error: PcapError) -> Retval {
    let retval = match error {
        PcapError::Running | PcapError::Plan(_) => Retval::INVALID_VALUE,
        PcapError::NotRunning => Retval::VALUE_EXIST,
        PcapError::Empty => Retval::NO_SUCH_ENTRY,
        PcapError::File { .. } => Retval::CANNOT_CREATE_PCAP_FILE,
    };
    retval.because(error)
}
