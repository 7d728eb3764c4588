//! Interfaces speak a version of IP while they have an address, or are enabled: the others drop it.

use crate::{AddressesChanged, Ip, Version};
use std::collections::BTreeSet;
use std::marker::PhantomData;
use thalweg_device::{InterfaceEvent, Interfaces, SwIfIndex};
use thalweg_graph::Control;
use thalweg_tables::Address;

/// Interfaces that drop a version.
struct Silent<A> {
    all: BTreeSet<SwIfIndex>,
    version: PhantomData<fn(A)>,
}

/// Lets interfaces that do not speak the version drop it. For the version's feature, in its `init`.
pub fn init<A: Address>(c: &mut Control) {
    c.insert(Silent::<A> { all: BTreeSet::new(), version: PhantomData });
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::Created(i) => update::<A>(c, i),
        // Its features go with it.
        InterfaceEvent::Deleted(i) => _ = c.state::<Silent<A>>().borrow_mut().all.remove(&i),
        _ => {}
    });
    c.subscribe(|c, change: &AddressesChanged| {
        let is_there = c.state::<Interfaces>().borrow().get(change.sw_if).is_some();
        if change.version == Version::of::<A>() && is_there {
            update::<A>(c, change.sw_if);
        }
    });
}

fn update<A: Address>(c: &mut Control, sw_if: SwIfIndex) {
    let silent = !c.state::<Ip<A>>().borrow().is_enabled(sw_if);
    {
        let state = c.state::<Silent<A>>();
        let all = &mut state.borrow_mut().all;
        if all.contains(&sw_if) == silent {
            return;
        }
        if silent {
            all.insert(sw_if)
        } else {
            all.remove(&sw_if)
        };
    }
    let (arcs, node) = match Version::of::<A>() {
        Version::V4 => (["ip4-unicast", "ip4-multicast"], "ip4-not-enabled"),
        Version::V6 => (["ip6-unicast", "ip6-multicast"], "ip6-not-enabled"),
    };
    for arc in arcs {
        if let Err(e) = c.enable_feature(arc, node, sw_if, silent) {
            tracing::error!("{}: {e}", c.interface_name(sw_if));
        }
    }
}
