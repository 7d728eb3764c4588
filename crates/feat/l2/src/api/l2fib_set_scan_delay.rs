//! `l2fib_set_scan_delay`: how often clients are told of stations.

use crate::api_module::L2;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Changes how often clients that want events of stations get them.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2fibSetScanDelay {
    /// Hundredths of a second between events; not 0.
    #[api(default = 10)]
    pub scan_delay: u16,
}

/// The service.
pub static SERVICE: Call<Control, L2fibSetScanDelay, L2fibSetScanDelayReply> =
    Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2fibSetScanDelay) -> Result<L2fibSetScanDelayReply, Retval> {
    let why = "a hundredth of a second is the least";
    let delay = rq.scan_delay.try_into().map_err(|_| Retval::INVALID_VALUE.because(why))?;
    crate::set_scan_delay(c, delay);
    Ok(L2fibSetScanDelayReply)
}
