//! Interfaces speak IPv6 while they have an address, or are enabled: the others drop it.

use std::collections::BTreeSet;
use thalweg_device::{InterfaceEvent, Interfaces, SwIfIndex};
use thalweg_feat_ip::{AddressesChanged, Ip6, Version};
use thalweg_graph::Control;

/// Interfaces that drop IPv6.
#[derive(Default)]
struct Silent(BTreeSet<SwIfIndex>);

pub(crate) fn init(c: &mut Control) {
    c.insert(Silent::default());
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::Created(i) => update(c, i),
        // Its features go with it.
        InterfaceEvent::Deleted(i) => _ = c.state::<Silent>().borrow_mut().0.remove(&i),
        _ => {}
    });
    c.subscribe(|c, change: &AddressesChanged| {
        let is_there = c.state::<Interfaces>().borrow().get(change.sw_if).is_some();
        if change.version == Version::V6 && is_there {
            update(c, change.sw_if);
        }
    });
}

fn update(c: &mut Control, sw_if: SwIfIndex) {
    let silent = !c.state::<Ip6>().borrow().is_enabled(sw_if);
    {
        let state = c.state::<Silent>();
        let all = &mut state.borrow_mut().0;
        if all.contains(&sw_if) == silent {
            return;
        }
        if silent {
            all.insert(sw_if)
        } else {
            all.remove(&sw_if)
        };
    }
    if let Err(e) = c.enable_feature("ip6-unicast", "ip6-not-enabled", sw_if, silent) {
        tracing::error!("{}: {e}", c.interface_name(sw_if));
    }
}
