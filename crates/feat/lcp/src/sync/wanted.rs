//! Orders for a twin: what its interface has and it has not.

use super::{Known, Prefixed, Sync, pair};
use crate::options;
use crate::pairs::{Made, Pair, Pairs};
use std::collections::BTreeSet;
use thalweg_device::{SwIfIndex, interface};
use thalweg_device_linux::mirror::Change;
use thalweg_feat_ip::Ip;
use thalweg_graph::Control;
use thalweg_tables::Address;

/// Orders what a twin lacks, as far as that is passed.
pub(super) fn push(c: &Control, phy: SwIfIndex) {
    order(c, phy, false);
}

/// The same for a new twin, which gets state and MTU in any case. Nothing is ordered before the
/// twin has been seen.
pub(super) fn order(c: &Control, phy: SwIfIndex, is_new: bool) {
    let Some(pair) = pair(c, phy) else { return };
    let Ok(view) = interface::view(c, phy) else { return };
    let options = options::get(c);
    let wanted = options.sync.then(|| addresses(c, &pair, options.sync_unnumbered));
    let sync = c.state::<Sync>();
    let mut sync = sync.borrow_mut();
    let Sync { mirrors, twins, .. } = &mut *sync;
    let Some(twin) = twins.get_mut(&phy).filter(|twin| !twin.is_held) else { return };
    let (Some(known), Some((_, mirror))) = (&mut twin.known, mirrors.get(&twin.place.0)) else {
        return;
    };
    let mut change = Change::default();
    // Frames to another MAC address are not for the twin. The kernel has those of VLAN links
    // follow the link below.
    if pair.made == Made::Tap && known.mac != Some(view.mac) {
        known.mac = Some(view.mac);
        change.mac = Some(view.mac.octets());
    }
    if is_new || wanted.is_some() {
        if known.up != view.admin_up {
            known.up = view.admin_up;
            change.up = Some(view.admin_up);
        }
        if view.mtu.l3 > 0 && known.mtu != view.mtu.l3 {
            known.mtu = view.mtu.l3;
            change.mtu = Some(view.mtu.l3);
        }
    }
    if let Some(wanted) = wanted {
        order_addresses(known, &mut twin.shared, wanted, &mut change);
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
) {
    for address in wanted.difference(&known.addresses) {
        change.addresses.insert(*address, true);
    }
    for address in shared.difference(&wanted).filter(|a| known.addresses.contains(a)) {
        change.addresses.insert(*address, false);
    }
    for (address, there) in &change.addresses {
        match there {
            true => known.addresses.insert(*address),
            false => known.addresses.remove(address),
        };
    }
    *shared = wanted;
}

/// Orders what twins on the twin of an interface lack: some of it they cannot have before that.
pub(super) fn push_above(c: &Control, phy: SwIfIndex) {
    let above: Vec<SwIfIndex> = {
        let pairs = c.state::<Pairs>();
        let pairs = pairs.borrow();
        let is_above = |p: &&Pair| matches!(p.made, Made::Vlan { upper, .. } if upper == phy);
        pairs.iter().filter(is_above).map(|p| p.phy).collect()
    };
    for sub in above {
        push(c, sub);
        push_above(c, sub);
    }
}

/// Returns the addresses that a twin is to have: those of the interface, and those that it borrows
/// as ones without a subnet, which is the lender's. Link-local ones of IPv6 are each side's own.
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
