//! `mss_clamp_get`: lists the MSS limits.

use crate::Limits;
use crate::message_types::{
    MSS_CLAMP, MssClampDetails, MssClampDir, MssClampGet, MssClampGetReply,
};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Retval, Stream};
use thalweg_device::SwIfIndex;
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Stream<Control, MssClampGet, MssClampDetails, MssClampGetReply> =
    Stream::new(&MSS_CLAMP, handle);

/// VPP's answer for an interface without a limit.
const FEATURE_DISABLED: Retval = Retval(-30);

fn handle(
    c: &mut Control,
    rq: MssClampGet,
    out: &mut Details<MssClampDetails>,
) -> (i32, MssClampGetReply) {
    let end = |retval: Retval, cursor: u32| (retval.0, MssClampGetReply { cursor });
    let all = match rq.sw_if_index {
        InterfaceIndex::NONE => crate::all(c),
        one => match view(c, one) {
            Err(retval) => return end(retval, u32::MAX),
            Ok(view) => match crate::get(c, view.sw_if) {
                limits if limits == Limits::default() => return end(FEATURE_DISABLED, u32::MAX),
                limits => vec![(view.sw_if, limits)],
            },
        },
    };
    for (sw_if, limits) in all.into_iter().filter(|(i, _)| *i >= SwIfIndex(rq.cursor)) {
        if out.is_full() {
            return end(Retval::EAGAIN, sw_if.get());
        }
        out.send(&MssClampDetails {
            sw_if_index: InterfaceIndex(sw_if.get()),
            ipv4_mss: limits.ip4.map_or(u16::MAX, |clamp| clamp.mss),
            ipv6_mss: limits.ip6.map_or(u16::MAX, |clamp| clamp.mss),
            ipv4_direction: MssClampDir::of(limits.ip4),
            ipv6_direction: MssClampDir::of(limits.ip6),
        });
    }
    end(Retval(0), u32::MAX)
}
