//! `pg_capture`: captures what a port transmits.

use crate::api_types::PG;
use std::path::Path;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::interface;
use thalweg_graph::Control;

/// Begins a capture, or ends it.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct PgCapture {
    /// The number in the port's name.
    pub interface_id: InterfaceIndex,
    /// Whether to capture.
    #[api(default = "true")]
    pub is_enabled: bool,
    /// Packets at most; 0 for all.
    pub count: u32,
    /// A file that does not exist yet.
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
