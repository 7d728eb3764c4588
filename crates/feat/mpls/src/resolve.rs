//! Resolution of a label's paths into an action.

use crate::error::MplsError;
use crate::label_table::{Action, Behind, Key, To};
use crate::via::{Bound, Via};
use std::collections::BTreeSet;
use thalweg_device::{SwIfIndex, interface};
use thalweg_feat_ip::table::{Followed, follow};
use thalweg_feat_ip::{Ip, RouteError};
use thalweg_fib::rib::{Before, Labels, Mode, Path, PathKind};
use thalweg_fib::{FibError, Version};
use thalweg_graph::Control;
use thalweg_wire::mpls::{Label, label};

/// Returns the version of the IP packets behind a label that is the bottom: that of the prefix that
/// it is bound to, or of the next hops by which it is popped.
fn behind(vias: &[Via], bound: Option<Bound>) -> Result<Version, MplsError> {
    if let Some(bound) = bound {
        return Ok(bound.version());
    }
    let popped = vias.iter().filter_map(|via| match via {
        Via::Ip6(_) => Some(Version::V6),
        Via::Path(path) if swapped(path).1.is_none() => path.next_hop.map(Version::of_ip),
        _ => None,
    });
    let all: BTreeSet<Version> = popped.collect();
    match all.len() {
        2 => Err(MplsError::Unsuitable(
            "next hops of both versions by which a label is popped: the packet behind it has one",
        )),
        _ => Ok(all.first().copied().unwrap_or(Version::V4)),
    }
}

/// The action of a label, the paths to its object, and the family whose routes they follow.
pub(crate) type Resolved = (Action, Option<(Version, Followed)>);

/// Returns what becomes of a label with these paths, or those of the prefix that it is bound to.
pub(crate) fn resolve(
    c: &Control,
    key: Key,
    vias: &[Via],
    bound: Option<Bound>,
) -> Result<Resolved, MplsError> {
    let paths: Vec<&Path> = vias
        .iter()
        .filter_map(|via| match via {
            Via::Path(path) if path.kind == PathKind::Normal => Some(path),
            _ => None,
        })
        .collect();
    match vias {
        [via] if paths.is_empty() => return Ok((special(c, key, via)?, None)),
        _ if paths.len() < vias.len() => return Err(MplsError::Alone),
        _ => {}
    }
    let version = if key.eos { behind(vias, bound)? } else { Version::V4 };
    let swaps: BTreeSet<Option<Label>> = paths.iter().map(|path| swapped(path).1).collect();
    let alike = swaps.len() == 1;
    let modes: BTreeSet<Mode> = paths.iter().map(|path| path.labels.mode()).collect();
    let mode = modes.first().copied().filter(|_| modes.len() == 1).unwrap_or_default();
    let put_before = |swap| match (alike, swap) {
        (true, None) if key.eos => Before::Packet,
        (true, _) => Before::Labels,
        (false, Some(label)) => Before::Swapped(label),
        (false, None) if key.eos => Before::Popped,
        (false, None) => Before::Swapped(label::IMPLICIT_NULL),
    };
    let list = paths.into_iter().map(|path| {
        let (outer, swap) = swapped(path);
        Path { labels: outer.put_before(put_before(swap)), ..*path }
    });
    let followed = match version {
        Version::V4 => follow::<u32>(c, list.collect())?,
        Version::V6 => follow::<u128>(c, list.collect())?,
    };
    let dpo = followed.dpo;
    let action = match swaps.first() {
        Some(Some(label)) if alike => Action::Swap(*label, dpo),
        _ if !alike => Action::Member(version, dpo),
        _ if key.eos => Action::Ip(Behind { version, mode }, To::Sent(dpo)),
        _ => Action::Pop(dpo),
    };
    Ok((action, Some((version, followed))))
}

/// Splits the labels of a path into those that are pushed and the one that is swapped.
fn swapped(path: &Path) -> (Labels, Option<Label>) {
    let sent = path.labels.sent();
    match sent.as_slice().split_last() {
        Some((last, outer)) => {
            let outer = Labels::new(outer).unwrap_or_default().marked(sent.marks());
            // Without labels there is no mode.
            let mode = if outer == Labels::NONE { Mode::Pipe } else { sent.mode() };
            (outer.in_mode(mode), Some(*last))
        }
        None => (Labels::NONE, None),
    }
}

/// Returns what becomes of a label by a path that is none to a next hop.
fn special(c: &Control, key: Key, via: &Via) -> Result<Action, MplsError> {
    let at_bottom = |action| match key.eos {
        true => Ok(action),
        false => Err(MplsError::Unsuitable("no packet follows a label that is `non-eos'")),
    };
    let (version, path) = match via {
        Via::Path(path) => (Version::V4, path),
        Via::Ip6(path) => (Version::V6, path),
        Via::Mpls(table) if !key.eos => return Ok(Action::LookUpMpls(*table)),
        Via::Mpls(_) => {
            let why =
                "no label follows the bottom of the stack: `mpls-lookup-in-table' is for `non-eos'";
            return Err(MplsError::Unsuitable(why));
        }
        Via::AnyIp(table, mode) => return at_bottom(Action::AnyIp(*mode, *table)),
        Via::Layer2 { sw_if, control_word } => {
            if !interface::view(c, *sw_if)?.ethernet {
                let why = "`l2-input-on' needs an interface of Ethernet frames, such as an \
                           `mpls tunnel' with `l2-only'";
                return Err(MplsError::Unsuitable(why));
            }
            return at_bottom(Action::ReceiveL2(sw_if.get(), *control_word));
        }
    };
    if path.kind != PathKind::Normal && !path.labels.sent().as_slice().is_empty() {
        let why = "no labels are put before a packet that is looked up: only `out-labels \
                   implicit-null uniform' means something there";
        return Err(MplsError::Unsuitable(why));
    }
    let how = Behind { version, mode: path.labels.mode() };
    match path.kind {
        PathKind::Lookup(table) => {
            let serial = match version {
                Version::V4 => c.state::<Ip<u32>>().borrow().serial(table),
                Version::V6 => c.state::<Ip<u128>>().borrow().serial(table),
            };
            if serial.is_none() {
                return Err(RouteError::NoTable(version, table.get()).into());
            }
            at_bottom(Action::Ip(how, To::LookedUp(table)))
        }
        PathKind::InterfaceRx => {
            let sw_if = path.sw_if.ok_or(FibError::NoInterface(SwIfIndex(0)))?;
            interface::view(c, sw_if)?;
            at_bottom(Action::Ip(how, To::Received(sw_if.get())))
        }
        PathKind::Local => Ok(Action::Punt),
        PathKind::Drop | PathKind::Normal => Ok(Action::Drop),
        PathKind::Unreachable | PathKind::Prohibit | PathKind::Group(_) => {
            Err(MplsError::Unsuitable("such a path is for IP routes only"))
        }
    }
}
