//! `sw_interface_dump`: lists interfaces.

use crate::api_types::{flags, indices};
use crate::message_types::{
    INTERFACE, IfType, LinkDuplex, SubIfFlags, SwInterfaceDetails, SwInterfaceDump,
};
use crate::{InterfaceView, TagKind, TagMatch, interface};
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Details, Dump, Walk, walk_each};
use thalweg_graph::Control;
use thalweg_wire::vlan::VlanId;

/// The service.
pub static SERVICE: Dump<Control, SwInterfaceDump, SwInterfaceDetails> =
    Dump::slices(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceDump, out: Details<SwInterfaceDetails>) -> Walk<Control> {
    let filter = rq.name_filter_valid.then(|| rq.name_filter.to_lowercase());
    walk_each(indices(c, rq.sw_if_index), out, move |c: &mut Control, index, out| {
        // The interface may have been deleted since.
        let Ok(mut view) = interface::view(c, index) else { return };
        // Clients know a sub-interface by its parent's driver.
        if let Some(Ok(parent)) = view.parent.map(|parent| interface::view(c, parent)) {
            view.dev_type = parent.dev_type;
        }
        if filter.as_ref().is_none_or(|part| view.name.to_lowercase().contains(part.as_str())) {
            out.send(&details(&view));
        }
    })
}

/// Number of tags, outer and inner VLAN id, and the flags of `create_subif`.
fn tags(of: TagMatch) -> (u8, VlanId, VlanId, SubIfFlags) {
    let exact = |is: bool| if is { SubIfFlags::EXACT_MATCH.0 } else { 0 };
    let kind = |kind| if kind == TagKind::Dot1ad { SubIfFlags::DOT1AD.0 } else { 0 };
    let (one, two) = (SubIfFlags::ONE_TAG.0, SubIfFlags::TWO_TAGS.0);
    let none = VlanId(0);
    let (n, outer, inner, flags) = match of {
        TagMatch::Untagged => (0, none, none, SubIfFlags::NO_TAGS.0 | exact(true)),
        TagMatch::Default => (0, none, none, SubIfFlags::DEFAULT.0),
        TagMatch::AnyOuter(k) => (1, none, none, one | kind(k) | SubIfFlags::OUTER_VLAN_ID_ANY.0),
        TagMatch::Outer { tag, exact: e } => (1, tag.id, none, one | kind(tag.kind) | exact(e)),
        TagMatch::AnyInner(tag) => {
            (2, tag.id, none, two | kind(tag.kind) | SubIfFlags::INNER_VLAN_ID_ANY.0)
        }
        TagMatch::Pair { outer, inner, exact: e } => {
            (2, outer.id, inner.id, two | kind(outer.kind) | exact(e))
        }
    };
    (n, outer, inner, SubIfFlags(flags))
}

fn details(view: &InterfaceView) -> SwInterfaceDetails {
    let (number_of_tags, outer, inner, sub_if_flags) =
        view.sub.map_or((0, VlanId(0), VlanId(0), SubIfFlags(0)), |(_, of)| tags(of));
    let (vtr_op, vtr_push_dot1q, vtr_tag1, vtr_tag2) = view.rewrite.to_api();
    SwInterfaceDetails {
        sw_if_index: InterfaceIndex(view.sw_if.get()),
        sup_sw_if_index: view.parent.unwrap_or(view.sw_if).get(),
        l2_address: view.mac,
        flags: flags(view),
        r#type: if view.sub.is_some() { IfType::SUB } else { IfType::HARDWARE },
        link_duplex: LinkDuplex::UNKNOWN,
        link_speed: view.speed_kbps,
        link_mtu: u16::try_from(view.link_mtu).unwrap_or(u16::MAX),
        mtu: view.mtu.into(),
        sub_id: view.sub.map_or(0, |(id, _)| id),
        sub_number_of_tags: number_of_tags,
        sub_outer_vlan_id: outer.0,
        sub_inner_vlan_id: inner.0,
        sub_if_flags,
        vtr_op,
        vtr_push_dot1q,
        vtr_tag1,
        vtr_tag2,
        outer_tag: 0,
        b_dmac: MacAddr::default(),
        b_smac: MacAddr::default(),
        b_vlanid: 0,
        i_sid: 0,
        interface_name: view.name.as_str().into(),
        interface_dev_type: view.dev_type.into(),
        tag: view.tag.as_str().into(),
    }
}
