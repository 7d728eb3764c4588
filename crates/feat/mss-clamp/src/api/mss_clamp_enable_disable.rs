//! `mss_clamp_enable_disable`: sets or removes the MSS limit of an interface.

use crate::api_types::{MSS_CLAMP, MssClampDir};
use crate::{Clamp, ClampError};
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
    if rq.ipv6_direction.direction()?.is_some() {
        return Err(ClampError::NoIp6.into());
    }
    let direction = rq.ipv4_direction.direction()?;
    crate::set(c, sw_if, direction.map(|direction| Clamp { mss: rq.ipv4_mss, direction }))?;
    Ok(MssClampEnableDisableReply)
}
