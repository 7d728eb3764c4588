//! `tap_delete_v2`: deletes a TAP or TUN interface.

use crate::device::{self, Taps};
use crate::message_types::{TAPV2, TapDeleteV2, TapDeleteV2Reply};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, TapDeleteV2, TapDeleteV2Reply> = Call::new(&TAPV2, handle);

fn handle(c: &mut Control, rq: TapDeleteV2) -> Result<TapDeleteV2Reply, Retval> {
    let sw_if = SwIfIndex(rq.sw_if_index.0);
    if Taps::get(c, sw_if).is_none() {
        return Err(Retval::INVALID_SW_IF_INDEX.because("not a tap interface"));
    }
    device::delete(c, sw_if)?;
    Ok(TapDeleteV2Reply)
}
