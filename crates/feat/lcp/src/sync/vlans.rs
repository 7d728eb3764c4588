//! VLAN links that Linux has on twins become sub-interfaces, with `lcp lcp-auto-subint`.

use super::{Sync, end, pair, place};
use crate::make::{self, Wanted};
use crate::options;
use crate::pairs::{Made, Pair, Pairs, Place};
use std::ops::Bound;
use std::time::{Duration, Instant};
use thalweg_device::{Interfaces, SwIfIndex, TagKind, TagMatch, VlanTag, interface};
use thalweg_device_linux::{Backoff, NamespaceId};
use thalweg_device_tap as tap;
use thalweg_graph::Control;
use thalweg_netlink::{Link, Port};
use thalweg_wire::vlan::VlanId;

/// Most time on the main thread per slice.
const SLICE: Duration = Duration::from_millis(1);

/// A pair without its VLAN link.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Reason why the last attempt to make one failed; empty if there was none.
    why: String,
    again: Backoff,
}

/// Takes a VLAN link as it is. One that went away and was a twin is reported as such.
pub(super) fn take(c: &mut Control, ns: NamespaceId, index: u32, link: Option<Link>) {
    let Some(link) = link.filter(|_| options::get(c).auto_subint) else { return };
    let sync = c.state::<Sync>();
    let lower = link.lower.and_then(|lower| sync.borrow().by_place.get(&(ns, lower)).copied());
    let is_twin = sync.borrow().by_place.contains_key(&(ns, index));
    let Some(lower) = lower.filter(|_| !is_twin) else { return };
    // A notice from before its deletion would make it again, as the twin of a sub-interface.
    let ask = |port: &Port, _| Link::find_by(port, index);
    let now = pair(c, lower).and_then(|pair| tap::ask_host(c, end(&pair), ask)?.ok()?);
    let Some(link) = now.filter(|now| (now.lower, now.vlan) == (link.lower, link.vlan)) else {
        return;
    };
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

/// Fate of a pair whose twin is a VLAN link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The link is as it should be.
    Stays,
    /// The link waits: what it belongs on does not exist.
    Waits,
    /// The link is made on what is there.
    Made,
    /// The link was deleted alone: so is the pair.
    Ends,
}

/// Returns what becomes of a pair. `lower` is the link that its own should be on, if that is there;
/// `on` the one that it was made on, and `there` says whether it still is.
fn fate(lower: Option<Place>, on: Option<Place>, there: bool) -> Fate {
    match lower {
        None => Fate::Waits,
        Some(_) if lower != on => Fate::Made,
        Some(_) if there => Fate::Stays,
        Some(_) => Fate::Ends,
    }
}

/// Returns the place of the twin that a pair's VLAN link should be on.
fn lower(c: &Control, upper: SwIfIndex) -> Option<Place> {
    place(c, &pair(c, upper)?).map(|(at, _)| at)
}

/// Makes the VLAN link of a pair again when there is what it is on, and leaves one that went with
/// that.
pub(super) fn settle(c: &mut Control, phy: SwIfIndex) {
    let Some(pair) = pair(c, phy) else { return };
    let Made::Vlan { tag, upper, tap, link } = pair.made else { return };
    let lower = lower(c, upper);
    let now = match fate(lower, link.map(|link| link.on), true) {
        Fate::Stays | Fate::Ends => return,
        Fate::Waits => Err(String::new()),
        Fate::Made => {
            let made = make::make_link(c, &pair.name, tap, lower.map(|(_, index)| index), tag);
            made.map_err(|e| e.to_string())
        }
    };
    c.state::<Pairs>().borrow_mut().set_link(phy, now.as_ref().ok().copied());
    let sync = c.state::<Sync>();
    let mut sync = sync.borrow_mut();
    let Err(why) = now else {
        sync.waiting.remove(&phy);
        return;
    };
    let waiting = sync.waiting.entry(phy).or_default();
    match why.is_empty() {
        // The device below is away: its return is reported.
        true => _ = waiting.again.succeed(),
        false => _ = waiting.again.fail(),
    }
    if std::mem::replace(&mut waiting.why, why.clone()) != why && !why.is_empty() {
        tracing::warn!("{} waits for its twin: {why}", c.interface_name(phy));
    }
}

/// Makes VLAN links that could not be made before, those behind one of them, for about a
/// millisecond; goes on later.
pub(super) fn try_again(c: &mut Control, behind: Option<SwIfIndex>) {
    let (begin, mut behind) = (Instant::now(), behind);
    loop {
        let next = {
            let sync = c.state::<Sync>();
            let sync = sync.borrow();
            let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
            let mut all = sync.waiting.range((from, Bound::Unbounded));
            all.find(|(_, waiting)| waiting.again.is_due()).map(|(phy, _)| *phy)
        };
        let Some(phy) = next else { return };
        // Most wait for a namespace; another one may have been made by now, or be gone.
        let upper = pair(c, phy).and_then(|pair| match pair.made {
            Made::Vlan { upper, link: None, .. } => Some(upper),
            _ => None,
        });
        if upper.is_some_and(|upper| lower(c, upper).is_some()) {
            super::settle(c, phy);
        }
        behind = Some(phy);
        if begin.elapsed() >= SLICE {
            c.after(Duration::ZERO, move |c| try_again(c, behind));
            return;
        }
    }
}

/// A VLAN link that was a twin is gone. If the one that it was on is there (`has_lower`), the pair
/// ends, with the sub-interface that was made for it; else it waits for that.
pub(super) fn gone(c: &mut Control, pair: &Pair, has_lower: bool) {
    let Made::Vlan { upper, link, .. } = pair.made else { return };
    let lower = lower(c, upper).filter(|_| has_lower);
    if fate(lower, link.map(|link| link.on), false) != Fate::Ends {
        c.state::<Pairs>().borrow_mut().set_link(pair.phy, None);
        super::settle(c, pair.phy);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_ends_with_a_link_that_is_deleted_alone() {
        let (ns, other) = (NamespaceId::default(), NamespaceId::own());
        let (e0, again, moved) = (Some((ns, 7)), Some((ns, 9)), Some((other, 7)));
        assert_eq!(fate(e0, e0, true), Fate::Stays);
        assert_eq!(fate(e0, e0, false), Fate::Ends);
        for there in [false, true] {
            // The device below is away, with or without its namespace.
            assert_eq!(fate(None, e0, there), Fate::Waits);
            assert_eq!(fate(None, None, there), Fate::Waits);
            // The device is back: as another one, in another namespace, or for the first time.
            assert_eq!(fate(again, e0, there), Fate::Made);
            assert_eq!(fate(moved, e0, there), Fate::Made);
            assert_eq!(fate(e0, None, there), Fate::Made);
        }
    }
}
