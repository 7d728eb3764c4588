//! `mpls_tunnel_add_del`: adds or deletes tunnels of labels, or paths of them.

use crate::api_types::tunnel_paths;
use crate::message_types::{MPLS, MplsTunnelAddDel, MplsTunnelAddDelReply};
use crate::tunnels::{self, TunnelKind, Tunnels};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::types::fib::FibPathFlags;
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

impl Default for MplsTunnelAddDelReply {
    fn default() -> Self {
        Self { sw_if_index: InterfaceIndex(u32::MAX), tunnel_index: u32::MAX }
    }
}

/// The service.
pub static SERVICE: Call<Control, MplsTunnelAddDel, MplsTunnelAddDelReply> =
    Call::new(&MPLS, handle);

fn handle(c: &mut Control, rq: MplsTunnelAddDel) -> Result<MplsTunnelAddDelReply, Retval> {
    let t = &rq.mt_tunnel;
    if t.mt_is_multicast {
        return Err(Retval::UNIMPLEMENTED.because("multicast tunnels are not supported yet"));
    }
    let paths = tunnel_paths(t)?;
    let new = t.mt_sw_if_index.0 == u32::MAX;
    let sw_if = match (rq.mt_is_add, new) {
        (true, true) => {
            let has_word = |flags: FibPathFlags| flags == FibPathFlags::POP_PW_CW;
            let control_word = t.mt_paths.iter().any(|p| has_word(p.flags));
            if control_word && !t.mt_l2_only {
                let why = "a control word is for tunnels of layer 2 only";
                return Err(Retval::INVALID_VALUE.because(why));
            }
            tunnels::create(c, None, TunnelKind { layer2: t.mt_l2_only, control_word }, paths)?
        }
        (true, false) => {
            let sw_if = SwIfIndex(t.mt_sw_if_index.0);
            tunnels::add_paths(c, sw_if, paths)?;
            sw_if
        }
        (false, _) => {
            tunnels::del_paths(c, SwIfIndex(t.mt_sw_if_index.0), &paths)?;
            return Ok(MplsTunnelAddDelReply::default());
        }
    };
    let tag = t.mt_tag.as_str();
    if !tag.is_empty() {
        thalweg_device::interface::set_tag(c, sw_if, tag)?;
    }
    let tunnel_index = c.state::<Tunnels>().borrow().get(sw_if).map_or(u32::MAX, |t| t.number);
    Ok(MplsTunnelAddDelReply { sw_if_index: InterfaceIndex(sw_if.get()), tunnel_index })
}
