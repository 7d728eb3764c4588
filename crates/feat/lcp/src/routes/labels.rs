//! Routes of labels: a label of the kernel is bound in the router's label table 0, at the bottom of
//! the stack and above it, unless a user has bound it.
//!
//! A next hop swaps the label, or pops it. By the kernel's loopback or a VRF what is behind the
//! label is looked up: an IP packet by its own version, in the table that the link stands for.
//!
//! The kernel shares flows among next hops of any kind. The router does so among those of one kind:
//! a look-up shares no label with next hops, and the packet behind a label that is popped is of one
//! version. Others are left out, and shown with the reason.

use super::{KernelRoutes, Origin, is_alone, refused, table_of};
use crate::sync;
use std::fmt::Display;
use thalweg_device_linux::NamespaceId;
use thalweg_device_linux::routes::{LabelChange, LabelRoute, LabelTtl, NextHop, Routes};
use thalweg_feat_ip::{Path, Source, TableId, Version, need_table as need_ip_table};
use thalweg_feat_mpls::{Key, MplsError, Via, need_table, set_found_label};
use thalweg_fib::rib::{Labels, MAX_LABELS, Mark, Mode};
use thalweg_graph::Control;
use thalweg_netlink::fib::{LinkRole, PROTOCOL_STATIC};
use thalweg_wire::mpls::Label;

/// The router's label table for those of the kernel, which has one.
pub(super) const TABLE: TableId = TableId(0);

/// Takes the route of a label as the kernel, or `zebra`, has it now.
pub(super) fn apply(c: &mut Control, id: NamespaceId, change: LabelChange) {
    match is_alone(c) {
        true => put(c, change.label, change.now.map(|route| (id, route))),
        false => settle(c, change.label),
    }
}

/// Gives a label the route of the first namespace in which it leads somewhere.
pub(super) fn settle(c: &mut Control, label: u32) {
    let found: Vec<(NamespaceId, LabelRoute)> = {
        let state = c.state::<KernelRoutes>();
        let state = state.borrow();
        let all = state.followed.iter().flat_map(|(id, of)| of.all(*id));
        let find =
            |(origin, routes): (Origin, &Routes)| Some((origin.id, routes.find_label(label)?));
        all.filter_map(find).collect()
    };
    let leads = |(id, route): &(NamespaceId, LabelRoute)| {
        [false, true].into_iter().any(|eos| !vias(c, *id, route, eos).is_empty())
    };
    let found = found.into_iter().find(leads);
    put(c, label, found);
}

/// Binds a label to a route, or to none.
fn put(c: &mut Control, label: u32, route: Option<(NamespaceId, LabelRoute)>) {
    let mut failed = None;
    for eos in [false, true] {
        let key = Key { label: Label(label), eos };
        let paths = |id, route| fitting(vias(c, id, route, eos), eos).0;
        let bound = route.as_ref().map(|(id, route)| (source(route), paths(*id, route)));
        let (source, vias) = bound.unwrap_or((Source::KernelDynamic, Vec::new()));
        if let Err(e) = set(c, key, source, vias) {
            failed = Some(e);
            // There is nothing to be refused.
            let _ = set_found_label(c, TABLE, key, source, Vec::new());
        }
    }
    refused::label(c, label, failed.as_ref().map_or(Ok(()), |e| Err(e as &dyn Display)));
}

fn set(c: &mut Control, key: Key, source: Source, vias: Vec<Via>) -> Result<(), MplsError> {
    if vias.is_empty() {
        return match set_found_label(c, TABLE, key, source, vias) {
            // A table that is not there has no labels.
            Err(MplsError::NoTable(_)) => Ok(()),
            done => done,
        };
    }
    need_table(c, TABLE)?;
    for via in &vias {
        if let Via::AnyIp(table, _) = via {
            need_ip_table::<u32>(c, *table)?;
            need_ip_table::<u128>(c, *table)?;
        }
    }
    set_found_label(c, TABLE, key, source, vias)
}

fn source(route: &LabelRoute) -> Source {
    let is_static = route.protocol <= PROTOCOL_STATIC;
    if is_static { Source::KernelStatic } else { Source::KernelDynamic }
}

/// Returns the paths of a label at the bottom of the stack, or above it; those that the router
/// does not have are left out.
fn vias(c: &Control, id: NamespaceId, route: &LabelRoute, eos: bool) -> Vec<Via> {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let Some(of) = state.followed.get(&id) else { return Vec::new() };
    let propagates = route.propagates_ttl.unwrap_or_else(|| of.routes.label_ttl().propagates);
    // Only an IP packet has something to take over.
    let mode = if propagates && eos { Mode::Ttl } else { Mode::Pipe };
    let via = |hop: &NextHop| match place(c, id, hop, |link| of.routes.role(link)).ok()? {
        Place::Hop(path) if hop.labels.is_empty() => {
            Some(Via::Path(Path { labels: Via::popped(mode), ..path }))
        }
        Place::Hop(path) => Some(Via::Path(path)),
        Place::Table(table) if eos => Some(Via::AnyIp(table, mode)),
        // The kernel has the next label looked up as one that its loopback has received. A VRF
        // takes no labels.
        Place::Table(TABLE) => Some(Via::Mpls(TABLE)),
        Place::Table(_) => None,
    };
    route.hops.iter().filter_map(via).collect()
}

/// Leaves those paths of a label that can share it, and returns why others are left out: next hops
/// rather than look-ups, and the version of more of those that pop it at the bottom of the stack.
fn fitting(mut vias: Vec<Via>, eos: bool) -> (Vec<Via>, Option<&'static str>) {
    let is_hop = |via: &Via| matches!(via, Via::Path(_));
    if !vias.iter().any(is_hop) {
        vias.sort_unstable();
        vias.dedup();
        let why = (vias.len() > 1).then_some("a label has one look-up");
        vias.truncate(1);
        return (vias, why);
    }
    let mut why = None;
    if !vias.iter().all(is_hop) {
        vias.retain(is_hop);
        why = Some("a look-up shares no label with next hops");
    }
    let version = |via: &Via| match via {
        Via::Path(path) if path.labels.sent() == Labels::NONE => path.next_hop.map(Version::of_ip),
        _ => None,
    };
    let count = |of| vias.iter().filter(|via| version(via) == Some(of)).count();
    let [v4, v6] = [Version::V4, Version::V6].map(count);
    if eos && v4 > 0 && v6 > 0 {
        let kept = if v6 > v4 { Version::V6 } else { Version::V4 };
        vias.retain(|via| version(via).is_none_or(|of| of == kept));
        why = Some("the packet behind a label that is popped is of one version");
    }
    (vias, why)
}

/// Destination of a label's next hop.
enum Place {
    /// To a neighbour.
    Hop(Path),
    /// Into a look-up.
    Table(TableId),
}

fn place(
    c: &Control,
    id: NamespaceId,
    hop: &NextHop,
    role: impl Fn(u32) -> LinkRole,
) -> Result<Place, String> {
    if hop.is_odd {
        return Err(ODD.into());
    }
    let Some(gateway) = hop.gateway else {
        let table = match role(hop.link) {
            LinkRole::Loopback => Some(TABLE),
            LinkRole::Vrf(table) => Some(table_of(table)),
            LinkRole::Usual => None,
        };
        let has_labels = !hop.labels.is_empty();
        let table = table.filter(|_| !has_labels);
        return table.map(Place::Table).ok_or_else(|| format!("link {} has no next hop", hop.link));
    };
    let phy =
        sync::phy_at(c, id, hop.link).ok_or_else(|| format!("no twin is link {}", hop.link))?;
    let labels = labels_of(&hop.labels)?;
    // The kernel gives labels that it adds the TTL of the one that they are added to.
    let mode = if labels.as_slice().len() > 1 { Mode::Uniform } else { Mode::Pipe };
    Ok(Place::Hop(Path { labels: labels.in_mode(mode), ..Path::via(gateway, Some(phy)) }))
}

/// Reason to leave out a next hop.
pub(super) const ODD: &str = "the next hop is a MAC address, or in another encapsulation";

/// Returns why a label's route, or a part of it that cannot share the label, stays in the kernel
/// alone; `None` if it does not.
pub(super) fn why_not(
    c: &Control,
    id: NamespaceId,
    route: &LabelRoute,
    role: impl Fn(u32) -> LinkRole,
) -> Option<String> {
    let mut why = Vec::new();
    for hop in route.hops.iter() {
        match place(c, id, hop, &role) {
            Ok(_) => return fitting(vias(c, id, route, true), true).1.map(Into::into),
            Err(e) => why.push(e),
        }
    }
    why.sort();
    why.dedup();
    Some(why.join(", "))
}

/// Returns the labels of entries of four bytes.
fn labels_of(entries: &[u8]) -> Result<Labels, String> {
    let (entries, _) = entries.as_chunks::<4>();
    let all: Vec<Label> = entries.iter().map(|e| Label(u32::from_be_bytes(*e) >> 12)).collect();
    Labels::new(&all).ok_or_else(|| format!("{} labels, more than {MAX_LABELS}", all.len()))
}

/// Returns the labels that a next hop of an IP route puts before packets. Without a TTL of their
/// own, they have what `usual` returns.
pub(super) fn imposed(hop: &NextHop, usual: impl Fn() -> LabelTtl) -> Result<Labels, String> {
    let labels = labels_of(&hop.labels)?;
    if labels == Labels::NONE {
        return Ok(labels);
    }
    let ttl = match (hop.ttl, usual()) {
        (Some(0), _) | (None, LabelTtl { propagates: true, .. }) => {
            return Ok(labels.in_mode(Mode::Uniform));
        }
        (Some(ttl), _) | (None, LabelTtl { usual: ttl, .. }) => ttl,
    };
    // 64 is what 0 stands for.
    let mark = Mark { ttl: if ttl == 64 { 0 } else { ttl }, class: 0 };
    Ok(labels.marked(&[mark; MAX_LABELS]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(labels: &[u32], ttl: Option<u8>) -> NextHop {
        let entries = labels.iter().flat_map(|label| (label << 12).to_be_bytes()).collect();
        NextHop { link: 7, gateway: None, weight: 1, labels: entries, ttl, is_odd: false }
    }

    #[test]
    fn labels_have_the_ttl_that_the_kernel_gives_them() {
        let of = |labels: &[u32], ttl, propagates| {
            let labels =
                imposed(&hop(labels, ttl), || LabelTtl { propagates, usual: 255 }).unwrap();
            let ttls: Vec<u8> = labels.marks().iter().map(|mark| mark.sent_ttl()).collect();
            (labels.mode(), ttls)
        };
        assert_eq!(of(&[16, 17], None, true).0, Mode::Uniform);
        assert_eq!(of(&[16, 17], Some(0), false).0, Mode::Uniform);
        assert_eq!(of(&[16, 17], None, false), (Mode::Pipe, vec![255, 255]));
        assert_eq!(of(&[16], Some(64), true), (Mode::Pipe, vec![64]));
        assert_eq!(of(&[16], Some(9), true), (Mode::Pipe, vec![9]));
        assert_eq!(of(&[], None, true), (Mode::Pipe, vec![]));
    }

    /// Paths that the router cannot share are left out, not the whole route.
    #[test]
    fn paths_that_fit_are_taken() {
        let by = |ip: &str, label: Option<u32>| {
            let labels = label.map_or(Labels::NONE, |l| Labels::new(&[Label(l)]).unwrap());
            let path = Path::via(
                ip.parse::<std::net::IpAddr>().unwrap(),
                Some(thalweg_device::SwIfIndex(1)),
            );
            Via::Path(Path { labels, ..path })
        };
        let ip = |table| Via::AnyIp(TableId(table), Mode::Ttl);
        let (v4, v6) = (by("10.0.0.1", None), by("fe80::1", None));
        let (other, swap) = (by("fe80::2", None), by("10.0.0.1", Some(77)));
        for (eos, all, fit, is_whole) in [
            (true, vec![v4, by("10.0.0.2", None)], vec![v4, by("10.0.0.2", None)], true),
            (true, vec![ip(0), v4], vec![v4], false),
            (true, vec![v6, ip(7), swap], vec![v6, swap], false),
            (false, vec![Via::Mpls(TABLE), v6], vec![v6], false),
            (true, vec![ip(0), ip(0)], vec![ip(0)], true),
            (true, vec![ip(7), ip(0)], vec![ip(0)], false),
            (true, vec![v4, v6], vec![v4], false),
            (true, vec![v4, v6, other], vec![v6, other], false),
            (false, vec![v4, v6], vec![v4, v6], true),
            (true, vec![swap, v6], vec![swap, v6], true),
            (true, vec![], vec![], true),
        ] {
            let (taken, why) = fitting(all.clone(), eos);
            assert_eq!((taken, why.is_none()), (fit, is_whole), "{all:?}");
        }
    }

    #[test]
    fn a_stack_has_a_limit() {
        let stack = |n: u32| (16..16 + n).collect::<Vec<u32>>();
        let usual = LabelTtl::default;
        assert!(imposed(&hop(&stack(12), None), usual).is_ok());
        let said = imposed(&hop(&stack(16), None), usual).unwrap_err();
        assert_eq!(said, "16 labels, more than 12");
    }
}
