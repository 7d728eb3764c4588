//! `create_subif`: creates a sub-interface.

use crate::api_types::view;
use crate::interface::{self, DeviceError, TagKind, TagMatch, VlanTag};
use crate::message_types::{CreateSubif, CreateSubifReply, INTERFACE, SubIfFlags};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;
use thalweg_wire::vlan::VlanId;

/// The service.
pub static SERVICE: Call<Control, CreateSubif, CreateSubifReply> = Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: CreateSubif) -> Result<CreateSubifReply, Retval> {
    let parent = view(c, rq.sw_if_index)?.sw_if;
    let of = tag_match(&rq)?;
    match interface::create_sub(c, parent, rq.sub_id, of) {
        Ok(sw_if) => Ok(CreateSubifReply { sw_if_index: InterfaceIndex(sw_if.get()) }),
        Err(e @ DeviceError::Exists(_)) => Err(Retval::VLAN_ALREADY_EXISTS.because(e)),
        Err(e @ DeviceError::TagsInUse { .. }) => Err(Retval::UNSPECIFIED.because(e)),
        Err(e) => Err(e.into()),
    }
}

/// Reads the flags. Bits that say what the ids say already are not needed.
fn tag_match(rq: &CreateSubif) -> Result<TagMatch, Retval> {
    let has = |flag: SubIfFlags| rq.sub_if_flags.0 & flag.0 != 0;
    let unknown = rq.sub_if_flags.0 & !(SubIfFlags::MASK_VNET.0 | SubIfFlags::NO_TAGS.0);
    if unknown != 0 {
        return Err(Retval::UNSUPPORTED.because(format!("flags {unknown:#x} are not supported")));
    }
    let wrong = |why: &str| Err(Retval::INVALID_VALUE.because(why));
    let (any_outer, any_inner) =
        (has(SubIfFlags::OUTER_VLAN_ID_ANY), has(SubIfFlags::INNER_VLAN_ID_ANY));
    let tags = has(SubIfFlags::ONE_TAG) || has(SubIfFlags::TWO_TAGS) || any_outer || any_inner;
    let others = has(SubIfFlags::NO_TAGS) || has(SubIfFlags::DEFAULT);
    let kind = if has(SubIfFlags::DOT1AD) { TagKind::Dot1ad } else { TagKind::Dot1q };
    let exact = has(SubIfFlags::EXACT_MATCH);
    if tags && others {
        return wrong("frames with tags, without, or all others: one of these");
    }
    if has(SubIfFlags::DEFAULT) {
        return Ok(TagMatch::Default);
    }
    if has(SubIfFlags::NO_TAGS) {
        return Ok(TagMatch::Untagged);
    }
    if !tags {
        return wrong("no flag says which frames it receives");
    }
    if (any_outer || any_inner) && exact {
        return wrong("exact-match needs VLAN ids: `any' stands for no tags to send");
    }
    let two = has(SubIfFlags::TWO_TAGS) || any_inner;
    let outer = VlanTag { kind, id: VlanId(rq.outer_vlan_id) };
    Ok(match (any_outer, two) {
        (true, true) => return wrong("an inner VLAN id needs an outer one"),
        (true, false) => TagMatch::AnyOuter(kind),
        (false, false) => TagMatch::Outer { tag: outer, exact },
        (false, true) if any_inner => TagMatch::AnyInner(outer),
        (false, true) => {
            let inner = VlanTag { kind: TagKind::Dot1q, id: VlanId(rq.inner_vlan_id) };
            TagMatch::Pair { outer, inner, exact }
        }
    })
}
