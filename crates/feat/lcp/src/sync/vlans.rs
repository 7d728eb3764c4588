//! VLAN links that Linux has on twins become sub-interfaces, with `lcp lcp-auto-subint`.

use super::Sync;
use crate::make::{self, Wanted};
use crate::options;
use crate::pairs::{Made, Pair, Pairs};
use thalweg_device::{Interfaces, SwIfIndex, TagKind, TagMatch, VlanTag, interface};
use thalweg_device_linux::NamespaceId;
use thalweg_graph::Control;
use thalweg_netlink::Link;
use thalweg_wire::vlan::VlanId;

/// Takes a VLAN link as it is. One that went away and was a twin is reported as such.
pub(super) fn take(c: &mut Control, ns: NamespaceId, index: u32, link: Option<Link>) {
    let Some(link) = link.filter(|_| options::get(c).auto_subint) else { return };
    let sync = c.state::<Sync>();
    let lower = link.lower.and_then(|lower| sync.borrow().by_place.get(&(ns, lower)).copied());
    let is_twin = sync.borrow().by_place.contains_key(&(ns, index));
    let Some(lower) = lower.filter(|_| !is_twin) else { return };
    sync.borrow_mut().making = true;
    let made = make_sub(c, lower, &link);
    sync.borrow_mut().making = false;
    if let Err(why) = made {
        tracing::warn!("{} in Linux has no interface: {why}", link.name);
    }
}

/// Makes the sub-interface for a VLAN link, unless it is there, and the pair.
fn make_sub(c: &mut Control, lower: SwIfIndex, link: &Link) -> Result<(), String> {
    let Some((tpid, id)) = link.vlan else { return Ok(()) };
    let kind = [TagKind::Dot1q, TagKind::Dot1ad].into_iter().find(|kind| kind.tpid() == tpid);
    let kind = kind.ok_or_else(|| format!("its tag has TPID {tpid:#06x}"))?;
    let tag = VlanTag { kind, id: VlanId(id) };
    let view = interface::view(c, lower).map_err(|e| e.to_string())?;
    let (parent, of) = match (view.sub, view.parent) {
        (Some((_, TagMatch::Outer { tag: outer, exact: true })), Some(parent)) => {
            (parent, TagMatch::Pair { outer, inner: tag, exact: true })
        }
        (None, _) => (lower, TagMatch::Outer { tag, exact: true }),
        _ => return Err(format!("`{}' takes no further tag", view.name)),
    };
    let (sub, is_new) = match sub_of(c, parent, of) {
        Some(sub) => (sub, false),
        None => {
            let number = free_number(c, parent, of, id);
            (interface::create_sub(c, parent, number, of).map_err(|e| e.to_string())?, true)
        }
    };
    if c.state::<Pairs>().borrow().of_phy(sub).is_some() {
        return Ok(());
    }
    let wanted = Wanted { phy: sub, name: link.name.clone(), namespace: None, tun: false };
    if let Err(e) = make::create(c, &wanted) {
        if is_new {
            let _ = interface::delete(c, sub);
        }
        return Err(e.to_string());
    }
    if is_new {
        c.state::<Sync>().borrow_mut().from_linux.insert(sub);
    }
    Ok(())
}

fn sub_of(c: &Control, parent: SwIfIndex, of: TagMatch) -> Option<SwIfIndex> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let is_it = |sub: &SwIfIndex| {
        all.get(*sub).and_then(|view| view.sub).is_some_and(|(_, matches)| matches == of)
    };
    all.subs_of(parent).find(is_it)
}

/// Returns the number of a new sub-interface: its VLAN id, with the outer one before it if there
/// are two, or another.
fn free_number(c: &Control, parent: SwIfIndex, of: TagMatch, id: u16) -> u32 {
    let outer = match of {
        TagMatch::Pair { outer, .. } => u32::from(outer.id.0) * 10_000,
        _ => 0,
    };
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let used = |number: u32| {
        let of_number = |sub: SwIfIndex| all.get(sub).and_then(|v| v.sub).map(|(n, _)| n);
        all.subs_of(parent).any(|sub| of_number(sub) == Some(number))
    };
    (outer + u32::from(id)..).find(|number| !used(*number)).unwrap_or(u32::MAX)
}

/// The VLAN link that was a twin is gone: so is the pair, and the sub-interface that was made for
/// it.
pub(super) fn gone(c: &mut Control, pair: &Pair) {
    if !matches!(pair.made, Made::Vlan { .. }) {
        return;
    }
    let interface = c.interface_name(pair.phy);
    let was_made = c.state::<Sync>().borrow_mut().from_linux.remove(&pair.phy);
    if was_made {
        tracing::info!("{interface} goes with {}, which was deleted in Linux", pair.name);
        let _ = interface::delete(c, pair.phy);
    } else {
        tracing::warn!("{interface} has no twin any more: {} was deleted in Linux", pair.name);
        let _ = make::delete(c, pair.phy);
    }
}
