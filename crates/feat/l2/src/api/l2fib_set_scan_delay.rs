//! `l2fib_set_scan_delay`: sets the interval of MAC address events.

use crate::message_types::{L2, L2fibSetScanDelay, L2fibSetScanDelayReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, L2fibSetScanDelay, L2fibSetScanDelayReply> =
    Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2fibSetScanDelay) -> Result<L2fibSetScanDelayReply, Retval> {
    let why = "the scan delay is at least one hundredth of a second";
    let delay = rq.scan_delay.try_into().map_err(|_| Retval::INVALID_VALUE.because(why))?;
    crate::set_scan_delay(c, delay);
    Ok(L2fibSetScanDelayReply)
}
