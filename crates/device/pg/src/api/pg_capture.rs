//! `pg_capture`: captures a port's transmitted packets.

use crate::api_types::PG;
use crate::stream::Settling;
use std::path::Path;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Later, Message, Retval};
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
pub static SERVICE: Call<Control, PgCapture, PgCaptureReply> = Call::later(&PG, handle);

fn handle(c: &mut Control, rq: PgCapture, later: Later<PgCaptureReply>) {
    match set(c, &rq) {
        Err(retval) => later.answer(retval.0, &PgCaptureReply),
        Ok(_) if rq.is_enabled => later.answer(0, &PgCaptureReply),
        Ok(settling) => later.answer_aside(0, || {
            settling.wait();
            PgCaptureReply
        }),
    }
}

fn set(c: &mut Control, rq: &PgCapture) -> Result<Settling, Retval> {
    let name = crate::port::port_name(rq.interface_id.0);
    let sw_if = interface::find(c, &name).map_err(|_| Retval::INVALID_INTERFACE)?;
    let count = if rq.count == 0 { u64::MAX } else { rq.count.into() };
    let to = rq.is_enabled.then(|| (Path::new(&rq.pcap_file_name), count));
    Ok(crate::set_capture(c, sw_if, to)?)
}
