//! Interfaces and their twins take labelled packets alike: when they meet, one that does has the
//! other do so, too; after that the last of two changes wins.

use super::Sync;
use super::wishes::{self, Wish};
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::TableId;
use thalweg_feat_mpls::{Mpls, MplsError, need_table, set_enabled};
use thalweg_graph::Control;

/// Returns whether an interface takes labelled packets.
pub(super) fn are_taken(c: &Control, phy: SwIfIndex) -> bool {
    c.state::<Mpls>().borrow().is_enabled(phy)
}

/// Has an interface take them, if its new twin does.
pub(super) fn meet(c: &mut Control, phy: SwIfIndex) {
    let sync = c.state::<Sync>();
    let on = sync.borrow().twins.get(&phy).and_then(|twin| twin.known.as_ref()?.labels);
    if on == Some(true) {
        set(c, phy, true, true);
    }
}

/// Gives an interface what has changed in its twin.
pub(super) fn changed(c: &mut Control, phy: SwIfIndex, before: Option<bool>, now: Option<bool>) {
    let Some(on) = now else { return wishes::end(c, phy, Wish::Labels) };
    // The kernel has come to know labels: a link that does not take them says nothing.
    let says_nothing = before.is_none() && !on;
    set(c, phy, on, before != now && !says_nothing);
}

fn set(c: &mut Control, phy: SwIfIndex, on: bool, is_new: bool) {
    let is_met = are_taken(c, phy) == on;
    let what = if on { "that it takes labelled packets" } else { "that it drops labelled packets" };
    wishes::grant(c, phy, Wish::Labels, (is_new, is_met), what, |c| -> Result<(), MplsError> {
        need_table(c, TableId(0)).and_then(|()| set_enabled(c, phy, on))
    });
}
