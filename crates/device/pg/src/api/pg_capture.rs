//! `pg_capture`: captures a port's transmitted packets.

use crate::message_types::{PG, PgCapture, PgCaptureReply};
use crate::stream::Settling;
use std::path::Path;
use thalweg_api::{Call, Later, Retval};
use thalweg_device::interface;
use thalweg_graph::Control;

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
