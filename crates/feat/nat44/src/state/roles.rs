//! Roles of interfaces, and the nodes that translate their packets.

use super::{Nat44, lent};
use crate::config::{INSIDE, OUTPUT, OUTSIDE};
use thalweg_device::{Interfaces, SwIfIndex};
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

/// Place at which the router's errors about translated packets are restored.
const ERRORS: Place = ("ip4-icmp-error-reply", "nat44-ed-icmp-error");

/// Place at which the outside interfaces translate.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mix {
    /// Some on input: not all packets to the outside are translated on output.
    on_input: bool,
    /// Some on output, whatever interface the packets came by.
    on_output: bool,
}

impl Mix {
    fn of(outsides: [usize; 2]) -> Mix {
        Mix { on_input: outsides[0] > 0, on_output: outsides[1] > 0 }
    }
}

/// The graph features of an interface.
fn features(role: Role, mix: Mix) -> Vec<Place> {
    let mixed = mix.on_input;
    let on_input = match (role.inside, role.outside, role.output) {
        (false, false, _) => return mix.on_output.then_some(ERRORS).into_iter().collect(),
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
    all.push(ERRORS);
    all
}

impl Role {
    /// Place in the counts of outside interfaces.
    fn place(self) -> Option<usize> {
        self.outside.then_some(usize::from(self.output))
    }

    /// The bits by which workers know it.
    fn bits(self) -> u8 {
        let bit = |bit: u8, is: bool| if is { bit } else { 0 };
        bit(INSIDE, self.inside) | bit(OUTSIDE, self.outside) | bit(OUTPUT, self.output)
    }
}

/// Publishes the role of an interface.
pub(super) fn publish_role(c: &mut Control, sw_if: SwIfIndex) {
    {
        let nat = c.state::<Nat44>();
        let mut nat = nat.borrow_mut();
        let role = nat.roles.get(&sw_if).copied().unwrap_or_default();
        let mut config = nat.config().clone();
        config.set_role(sw_if, role.bits());
        config.any_output = nat.outsides[1] > 0;
        nat.writer.publish(c.domain(), config);
    }
    lent::follow_role(c, sw_if);
}

/// Restores errors about packets of a new interface, if they are translated when they leave.
pub(super) fn greet(c: &mut Control, sw_if: SwIfIndex) {
    let mix = Mix::of(c.state::<Nat44>().borrow().outsides);
    for (arc, feature) in features(Role::default(), mix) {
        enable(c, sw_if, (arc, feature), true);
    }
}

fn enable(c: &mut Control, sw_if: SwIfIndex, (arc, feature): Place, on: bool) {
    if let Err(e) = c.enable_feature(arc, feature, sw_if, on) {
        tracing::error!("NAT44 on {}: {e}", c.interface_name(sw_if));
    }
}

pub(super) fn set_role(c: &mut Control, sw_if: SwIfIndex, role: Role) {
    let nat = c.state::<Nat44>();
    let mut changes = Vec::new();
    {
        let mut nat = nat.borrow_mut();
        let Nat44 { roles, outsides, .. } = &mut *nat;
        let was = Mix::of(*outsides);
        let old = roles.get(&sw_if).copied().unwrap_or_default();
        old.place().into_iter().for_each(|at| outsides[at] -= 1);
        role.place().into_iter().for_each(|at| outsides[at] += 1);
        match role == Role::default() {
            true => drop(roles.remove(&sw_if)),
            false => drop(roles.insert(sw_if, role)),
        }
        let mix = Mix::of(*outsides);
        let mut change = |sw_if: SwIfIndex, old: Role, new: Role| {
            let (before, after) = (features(old, was), features(new, mix));
            let come = after.iter().filter(|f| !before.contains(f)).map(|f| (sw_if, *f, true));
            let gone = before.iter().filter(|f| !after.contains(f)).map(|f| (sw_if, *f, false));
            changes.extend(come.chain(gone));
        };
        change(sw_if, old, role);
        if mix.on_input != was.on_input {
            let others = roles.iter().filter(|(other, role)| **other != sw_if && role.inside);
            others.for_each(|(other, role)| change(*other, *role, *role));
        }
        if mix.on_output != was.on_output {
            let all = c.state::<Interfaces>();
            let all = all.borrow();
            let others = all.iter().map(|view| view.sw_if).filter(|other| *other != sw_if);
            let others = others.filter(|other| !roles.contains_key(other));
            others.for_each(|other| change(other, Role::default(), Role::default()));
        }
    }
    // New ones first: no packet goes untranslated in between.
    changes.sort_by_key(|change| !change.2);
    for (sw_if, place, on) in changes {
        enable(c, sw_if, place, on);
    }
    c.publish(RolesChanged(sw_if));
}
