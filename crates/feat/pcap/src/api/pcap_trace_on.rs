//! `pcap_trace_on`: starts a packet capture.

use crate::{PcapError, Plan};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_device::api_types::{INTERFACE, view};
use thalweg_engine::classify::{self, User};
use thalweg_graph::Control;

/// Starts a capture.
#[derive(Debug, Message)]
#[api(
    request,
    autoreply,
    vat_help = "pcap_trace_on [capture_rx] [capture_tx] [capture_drop] [max_packets <nn>] \
                [sw_if_index <sw_if_index>|0 for any] [error <node>.<error>] [filename <name>] \
                [max_bytes_per_packet <nnnn>] [filter] [preallocate_data] [free_data]"
)]
pub struct PcapTraceOn {
    /// Capture received packets.
    pub capture_rx: bool,
    /// Capture transmitted packets.
    pub capture_tx: bool,
    /// Capture dropped packets.
    pub capture_drop: bool,
    /// Only packets that match `classify filter pcap`.
    pub filter: bool,
    /// Preallocate memory; always done.
    pub preallocate_data: bool,
    /// Free memory at the end; always done.
    pub free_data: bool,
    /// Maximum number of packets.
    #[api(default = 1000)]
    pub max_packets: u32,
    /// Bytes kept per packet.
    #[api(default = 512)]
    pub max_bytes_per_packet: u32,
    /// Interface; 0 for all.
    pub sw_if_index: InterfaceIndex,
    /// Only packets dropped for this reason (`<node>.<error>`).
    pub error: Text<128>,
    /// Name of the file.
    pub filename: Text<64>,
}

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
