//! `mss_clamp_enable_disable`: sets or removes the MSS limit of an interface.

use crate::api_types::{MSS_CLAMP, MssClampDir};
use crate::{Clamp, Limits};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// Sets the limits of an interface; a direction of 0 removes one.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct MssClampEnableDisable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Limit for IPv4 in bytes.
    pub ipv4_mss: u16,
    /// Limit for IPv6 in bytes.
    pub ipv6_mss: u16,
    /// Packets that the limit for IPv4 is for.
    pub ipv4_direction: MssClampDir,
    /// Packets that the limit for IPv6 is for.
    pub ipv6_direction: MssClampDir,
}

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
