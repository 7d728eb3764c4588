//! Roles of interfaces, and the nodes that translate their packets.

use super::Nat44;
use std::collections::BTreeMap;
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Roles of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Role {
    /// The interface is inside.
    pub inside: bool,
    /// The interface is outside.
    pub outside: bool,
    /// Packets are translated on output instead of input (`output-feature`).
    pub output: bool,
}

/// An interface got or lost a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RolesChanged(pub SwIfIndex);

/// An arc and a feature on it.
type Place = (&'static str, &'static str);

/// The graph features of an interface with a role. `mixed`: some outside interface translates on
/// input, so that not all packets to the outside are translated on output.
fn features(role: Role, mixed: bool) -> Vec<Place> {
    let on_input = match (role.inside, role.outside, role.output) {
        (false, false, _) => return Vec::new(),
        (true, true, false) => vec!["nat44-ed-classify"],
        (true, true, true) if mixed => vec!["nat44-ed-classify"],
        (true, true, true) => vec!["nat44-ed-out2in", "nat44-ed-hairpin"],
        (true, false, true) if !mixed => vec!["nat44-ed-hairpin"],
        (true, false, _) => vec!["nat44-ed-in2out"],
        (false, true, _) => vec!["nat44-ed-out2in"],
    };
    let mut all: Vec<Place> = on_input.into_iter().map(|node| ("ip4-unicast", node)).collect();
    if role.outside && role.output {
        all.push(("ip4-output", "nat44-ed-in2out-output"));
    }
    all.push(("ip4-icmp-error-reply", "nat44-ed-icmp-error"));
    all
}

/// Returns whether an outside interface translates on input.
fn is_mixed(roles: &BTreeMap<SwIfIndex, Role>) -> bool {
    roles.values().any(|role| role.outside && !role.output)
}

pub(super) fn set_role(c: &mut Control, sw_if: SwIfIndex, role: Role) {
    let nat = c.state::<Nat44>();
    let mut changes = Vec::new();
    {
        let roles = &mut nat.borrow_mut().roles;
        let (was_mixed, old) = (is_mixed(roles), roles.get(&sw_if).copied().unwrap_or_default());
        match role == Role::default() {
            true => drop(roles.remove(&sw_if)),
            false => drop(roles.insert(sw_if, role)),
        }
        let mixed = is_mixed(roles);
        let mut change = |sw_if: SwIfIndex, old: Role, new: Role| {
            let (before, after) = (features(old, was_mixed), features(new, mixed));
            let come = after.iter().filter(|f| !before.contains(f)).map(|f| (sw_if, *f, true));
            let gone = before.iter().filter(|f| !after.contains(f)).map(|f| (sw_if, *f, false));
            changes.extend(come.chain(gone));
        };
        change(sw_if, old, role);
        if mixed != was_mixed {
            let others = roles.iter().filter(|(other, role)| **other != sw_if && role.inside);
            others.for_each(|(other, role)| change(*other, *role, *role));
        }
    }
    // New ones first: no packet goes untranslated in between.
    changes.sort_by_key(|change| !change.2);
    for (sw_if, (arc, feature), on) in changes {
        if let Err(e) = c.enable_feature(arc, feature, sw_if, on) {
            tracing::error!("NAT44 on {}: {e}", c.interface_name(sw_if));
        }
    }
    c.publish(RolesChanged(sw_if));
}
