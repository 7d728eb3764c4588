//! `mss_clamp_enable_disable`: sets or removes the MSS limit of an interface.

use crate::message_types::{
    MSS_CLAMP, MssClampDir, MssClampEnableDisable, MssClampEnableDisableReply,
};
use crate::{Clamp, Limits};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, MssClampEnableDisable, MssClampEnableDisableReply> =
    Call::new(&MSS_CLAMP, handle);

fn handle(
    c: &mut Control,
    rq: MssClampEnableDisable,
) -> Result<MssClampEnableDisableReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let clamp = |direction: MssClampDir, mss| -> Result<Option<Clamp>, Retval> {
        Ok(direction.direction()?.map(|direction| Clamp { mss, direction }))
    };
    let limits = Limits {
        ip4: clamp(rq.ipv4_direction, rq.ipv4_mss)?,
        ip6: clamp(rq.ipv6_direction, rq.ipv6_mss)?,
    };
    crate::set(c, sw_if, limits)?;
    Ok(MssClampEnableDisableReply)
}
