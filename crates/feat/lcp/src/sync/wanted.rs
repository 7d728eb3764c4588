//! Orders for a twin: what its interface has and it has not.

use super::{Known, Prefixed, Sync, Twin, labels, pair};
use crate::options;
use crate::pairs::{Made, Pair, Pairs};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use thalweg_device::{SwIfIndex, interface};
use thalweg_device_linux::mirror::Change;
use thalweg_feat_ip::Ip;
use thalweg_graph::Control;
use thalweg_tables::Address;

/// Most time on the main thread per slice.
const SLICE: Duration = Duration::from_millis(1);

/// Orders soon what a twin lacks, as far as that is passed, after a change of the interface: the
/// kernel may take now what it has refused before. An order compares all addresses, so that many
/// changes share one.
pub(super) fn push(c: &mut Control, phy: SwIfIndex) {
    if let Some(twin) = c.state::<Sync>().borrow_mut().twins.get_mut(&phy) {
        (twin.denied_for, twin.said) = (0, Change::default());
    }
    push_again(c, phy);
}

/// Orders again what the kernel has refused: after one interval, after two, after four …
pub(super) fn try_again(c: &mut Control) {
    let due: Vec<SwIfIndex> = {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        let is_due = |twin: &mut Twin| {
            let has_some = twin.denied != Change::default();
            twin.denied_for = twin.denied_for.saturating_add(u32::from(has_some));
            has_some && twin.denied_for.is_power_of_two()
        };
        let denied = sync.twins.iter_mut().filter_map(|(phy, twin)| is_due(twin).then_some(*phy));
        denied.collect()
    };
    for phy in due {
        push_again(c, phy);
    }
}

fn push_again(c: &mut Control, phy: SwIfIndex) {
    let is_first = {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        let Sync { twins, due, .. } = &mut *sync;
        let Some(twin) = twins.get_mut(&phy) else { return };
        twin.denied = Change::default();
        if std::mem::replace(&mut twin.is_due, true) {
            return;
        }
        due.push_back(phy);
        due.len() == 1
    };
    if is_first {
        c.after(Duration::ZERO, order_due);
    }
}

/// Orders what is due, for about a millisecond, and goes on later.
fn order_due(c: &mut Control) {
    let begin = Instant::now();
    while order_next_due(c) {
        if begin.elapsed() >= SLICE {
            c.after(Duration::ZERO, order_due);
            return;
        }
    }
}

/// Orders all that is due at once.
pub(super) fn order_all_due(c: &Control) {
    while order_next_due(c) {}
}

fn order_next_due(c: &Control) -> bool {
    let Some(phy) = c.state::<Sync>().borrow_mut().due.pop_front() else { return false };
    order_if_due(c, phy);
    true
}

/// Orders what is due of a twin, before a report of it is looked at: what an interface has lost
/// would seem to be new on its twin.
pub(super) fn order_if_due(c: &Control, phy: SwIfIndex) {
    let is_due = {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        sync.twins.get_mut(&phy).is_some_and(|twin| std::mem::take(&mut twin.is_due))
    };
    if is_due {
        order(c, phy, false);
    }
}

/// Orders the same at once after a change of the twin, without what the kernel has refused; a new
/// one gets state and MTU in any case. Nothing is ordered before the twin has been seen.
pub(super) fn order(c: &Control, phy: SwIfIndex, is_new: bool) {
    let Some(pair) = pair(c, phy) else { return };
    let Ok(view) = interface::view(c, phy) else { return };
    let options = options::get(c);
    let takes_labels = labels::are_taken(c, phy);
    let wanted = options.sync.then(|| addresses(c, &pair, options.sync_unnumbered));
    let sync = c.state::<Sync>();
    let mut sync = sync.borrow_mut();
    let Sync { mirrors, twins, .. } = &mut *sync;
    let is_free = |twin: &&mut Twin| !twin.is_held && !twin.is_displaced && !twin.is_taken;
    let Some(twin) = twins.get_mut(&phy).filter(is_free) else { return };
    let (Some(known), Some((_, mirror))) = (&mut twin.known, mirrors.get(&twin.place.0)) else {
        return;
    };
    let mut change = Change::default();
    let denied = &twin.denied;
    // Frames to another MAC address are not for the twin. In the kernel those of VLAN links follow
    // the link below.
    let mac = view.mac.octets();
    if pair.made == Made::Tap && known.mac != Some(view.mac) && denied.mac != Some(mac) {
        known.mac = Some(view.mac);
        change.mac = Some(mac);
    }
    if is_new || wanted.is_some() {
        // The kernel has no VLAN link up on one that is down.
        let up = view.admin_up && known.lower.is_none_or(|lower| lower.up);
        if known.up != up && denied.up != Some(up) {
            known.up = up;
            change.up = Some(up);
        }
        // The kernel has no VLAN link with a greater MTU than that, either.
        let mtu = known.lower.map_or(view.mtu.l3, |lower| view.mtu.l3.min(lower.mtu));
        if mtu > 0 && known.mtu != mtu && denied.mtu != Some(mtu) {
            known.mtu = mtu;
            change.mtu = Some(mtu);
        }
        if known.labels == Some(!takes_labels) && denied.labels != Some(takes_labels) {
            known.labels = Some(takes_labels);
            change.labels = Some(takes_labels);
        }
    }
    if let Some(wanted) = wanted {
        order_addresses(known, &mut twin.shared, wanted, &mut change, denied);
    }
    if change != Change::default() {
        twin.order = mirror.order(twin.place.1, change);
    }
}

/// Orders addresses: what the twin lacks, and the end of what both have had.
fn order_addresses(
    known: &mut Known,
    shared: &mut BTreeSet<Prefixed>,
    wanted: BTreeSet<Prefixed>,
    change: &mut Change,
    denied: &Change,
) {
    for address in wanted.difference(&known.addresses) {
        change.addresses.insert(*address, true);
    }
    for address in shared.difference(&wanted).filter(|a| known.addresses.contains(a)) {
        change.addresses.insert(*address, false);
    }
    change.addresses.retain(|address, there| denied.addresses.get(address) != Some(there));
    for (address, there) in &change.addresses {
        match there {
            true => known.addresses.insert(*address),
            false => known.addresses.remove(address),
        };
    }
    *shared = wanted;
}

/// Orders what twins on the twin of an interface lack: some of it they cannot have before that.
pub(super) fn push_above(c: &mut Control, phy: SwIfIndex) {
    let above = c.state::<Pairs>().borrow().above(phy);
    for sub in above {
        push(c, sub);
        push_above(c, sub);
    }
}

/// Returns the addresses of a twin: those of the interface, and those that it borrows as ones
/// without a subnet, which is the lender's. Link-local ones of IPv6 are each side's own.
pub(super) fn addresses(c: &Control, pair: &Pair, borrowed: bool) -> BTreeSet<Prefixed> {
    let mut all = of_version::<u32>(c, pair.phy, borrowed);
    all.extend(of_version::<u128>(c, pair.phy, borrowed));
    all
}

fn of_version<A: Address>(c: &Control, phy: SwIfIndex, borrowed: bool) -> BTreeSet<Prefixed> {
    let ip = c.state::<Ip<A>>();
    let ip = ip.borrow();
    let own = ip.addresses(phy).iter().map(|a| (a.addr.to_ip(), a.len));
    let lender = ip.lender(phy).filter(|_| borrowed);
    let of_lender = lender.map_or(&[][..], |lender| ip.addresses(lender));
    own.chain(of_lender.iter().map(|a| (a.addr.to_ip(), A::BITS))).collect()
}
