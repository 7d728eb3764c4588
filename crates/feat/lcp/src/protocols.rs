//! Frames other than ARP and IP that are passed between interfaces and their twins.

use crate::nodes::linux_cp_punt_xc;
use crate::{options, table};
use thalweg_engine::setting::Refused;
use thalweg_feat_ethernet as ethernet;
use thalweg_graph::Control;

/// VPP's number for what it does not support.
const UNSUPPORTED: i32 = -126;

/// Starts or stops passing frames of an ethertype.
///
/// # Errors
/// If the number is that of a length, or the router handles this type itself.
pub(crate) fn set_ethertype(c: &mut Control, kind: u16, on: bool) -> Result<(), Refused> {
    if kind < thalweg_wire::ethernet::MIN_ETHERTYPE {
        let text = format_args!("{kind:#06x} is a length: ethertypes begin with 0x0600");
        return Err(Refused::new(-73, text));
    }
    let node = linux_cp_punt_xc::NODE.name;
    ethernet::set(c, kind, node, on).map_err(|e| Refused::new(UNSUPPORTED, e))?;
    options::change(c, |options| match on {
        true => _ = options.ethertypes.insert(kind),
        false => _ = options.ethertypes.remove(&kind),
    });
    Ok(())
}

/// Starts or stops passing frames of an OSI protocol.
pub(crate) fn set_osi(c: &mut Control, protocol: u8, on: bool) {
    options::change(c, |options| match on {
        true => _ = options.osi.insert(protocol),
        false => _ = options.osi.remove(&protocol),
    });
    let all: Vec<u8> = options::get(c).osi.into_iter().collect();
    let node = (!all.is_empty()).then_some(linux_cp_punt_xc::NODE.name);
    table::update(c, |table| table.osi = all);
    ethernet::set_llc(c, node);
}
