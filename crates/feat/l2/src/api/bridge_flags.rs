//! `bridge_flags`: switches a bridge domain's flags.

use crate::Settings;
use crate::api_module::{BdFlags, L2};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets or clears flags of a bridge domain.
#[derive(Debug, Message)]
#[api(request)]
pub struct BridgeFlags {
    /// Bridge domain id.
    pub bd_id: u32,
    /// True to set the flags, false to clear them.
    pub is_set: bool,
    /// Flags to change.
    pub flags: BdFlags,
}

/// Flags after the change.
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct BridgeFlagsReply {
    /// Flags as in `BdFlags`.
    pub resulting_feature_bitmap: u32,
}

/// The service.
pub static SERVICE: Call<Control, BridgeFlags, BridgeFlagsReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: BridgeFlags) -> Result<BridgeFlagsReply, Retval> {
    use BdFlags as F;
    if rq.flags.is_beyond(&[F::LEARN, F::FWD, F::FLOOD, F::UU_FLOOD, F::ARP_TERM, F::ARP_UFWD]) {
        return Err(Retval::INVALID_VALUE.because("unknown flags"));
    }
    let mut result = 0;
    crate::set_bridge(c, rq.bd_id, |s: &mut Settings| {
        let switches = [
            (BdFlags::LEARN, &mut s.learn),
            (BdFlags::FWD, &mut s.forward),
            (BdFlags::FLOOD, &mut s.flood),
            (BdFlags::UU_FLOOD, &mut s.flood_unknown),
            (BdFlags::ARP_TERM, &mut s.arp_term),
            (BdFlags::ARP_UFWD, &mut s.arp_ufwd),
        ];
        for (flag, switch) in switches {
            if rq.flags.has(flag) {
                *switch = rq.is_set;
            }
            result |= if *switch { flag.0 } else { 0 };
        }
    })?;
    Ok(BridgeFlagsReply { resulting_feature_bitmap: result })
}
