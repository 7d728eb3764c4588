//! `bridge_flags`: switches a bridge domain's flags.

use crate::Settings;
use crate::message_types::{BdFlags, BridgeFlags, BridgeFlagsReply, L2};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// VPP's bit of the port for unknown unicast frames.
const UU_FWD: u32 = 1 << 6;

/// The service.
pub static SERVICE: Call<Control, BridgeFlags, BridgeFlagsReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: BridgeFlags) -> Result<BridgeFlagsReply, Retval> {
    use BdFlags as F;
    if rq.flags.is_beyond(&[F::LEARN, F::FWD, F::FLOOD, F::UU_FLOOD, F::ARP_TERM, F::ARP_UFWD]) {
        return Err(Retval::INVALID_VALUE.because("unknown flags"));
    }
    let mut result = u32::MAX;
    crate::set_bridge(c, rq.bd_id, |s: &mut Settings| {
        let switches = [
            (BdFlags::LEARN, 1 << 9, &mut s.learn),
            (BdFlags::FWD, 1 << 7, &mut s.forward),
            (BdFlags::FLOOD, 1 << 2, &mut s.flood),
            (BdFlags::UU_FLOOD, 1 << 5, &mut s.flood_unknown),
            (BdFlags::ARP_TERM, 1 << 4, &mut s.arp_term),
            (BdFlags::ARP_UFWD, 1 << 3, &mut s.arp_ufwd),
        ];
        for (flag, bit, switch) in switches {
            if rq.flags.has(flag) {
                *switch = rq.is_set;
            }
            result &= if *switch { u32::MAX } else { !bit };
        }
    })?;
    let l2 = c.state::<crate::L2>();
    let has_port =
        l2.borrow().bridges().get(rq.bd_id).is_some_and(|d| d.unknown_forward().is_some());
    if !has_port {
        result &= !UU_FWD;
    }
    Ok(BridgeFlagsReply { resulting_feature_bitmap: result })
}
