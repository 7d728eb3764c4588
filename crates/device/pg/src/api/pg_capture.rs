//! `pg_capture`: captures a port's transmitted packets.

use crate::api_types::PG;
use std::path::Path;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::interface;
use thalweg_graph::Control;

/// Starts or stops a capture.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct PgCapture {
    /// Port number.
    pub interface_id: InterfaceIndex,
    /// True to start, false to stop.
    #[api(default = "true")]
    pub is_enabled: bool,
    /// Maximum number of packets; 0 for no limit.
    pub count: u32,
    /// Name of a new pcap file.
    pub pcap_file_name: String,
}

/// The service.
pub static SERVICE: Call<Control, PgCapture, PgCaptureReply> = Call::new(&PG, handle);

fn handle(c: &mut Control, rq: PgCapture) -> Result<PgCaptureReply, Retval> {
    let name = crate::port::port_name(rq.interface_id.0);
    let sw_if = interface::find(c, &name).map_err(|_| Retval::INVALID_INTERFACE)?;
    let count = if rq.count == 0 { u64::MAX } else { rq.count.into() };
    let to = rq.is_enabled.then(|| (Path::new(&rq.pcap_file_name), count));
    crate::set_capture(c, sw_if, to)?;
    Ok(PgCaptureReply)
}
