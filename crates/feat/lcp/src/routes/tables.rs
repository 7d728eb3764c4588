//! Tables that the kernel's routes and VRFs have needed go once it has none of these.

use super::{KernelRoutes, labels, table_of};
use std::collections::BTreeSet;
use std::time::Duration;
use thalweg_feat_ip::{TableId, drop_needed};
use thalweg_feat_mpls::drop_needed_table;
use thalweg_graph::Control;

/// Interval at which unused tables are looked for.
const LOOK: Duration = Duration::from_secs(2);

pub(super) fn init(c: &mut Control) {
    c.every(LOOK, |c| {
        let used = used(c);
        drop_needed::<u32>(c, |id| used.contains(&id));
        drop_needed::<u128>(c, |id| used.contains(&id));
        if !has_labels(c) {
            drop_needed_table(c, labels::TABLE);
        }
        true
    });
}

/// Returns the tables for which the kernel or `zebra` has routes, or the kernel a VRF.
pub(super) fn used(c: &Control) -> BTreeSet<TableId> {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let all = state.followed.iter().flat_map(|(id, of)| of.all(*id));
    all.flat_map(|(_, routes)| routes.tables()).map(table_of).collect()
}

fn has_labels(c: &Control) -> bool {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let mut all = state.followed.iter().flat_map(|(id, of)| of.all(*id));
    all.any(|(_, routes)| routes.state().labels > 0)
}
