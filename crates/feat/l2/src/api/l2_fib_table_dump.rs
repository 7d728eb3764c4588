//! `l2_fib_table_dump`: lists the MAC addresses of a bridge domain.

use crate::Origin;
use crate::message_types::{L2, L2FibTableDetails, L2FibTableDump};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Walk};
use thalweg_graph::Control;

/// Table entries visited between checks that the client keeps reading.
const AT_ONCE: u32 = 64;

/// The service.
pub static SERVICE: Dump<Control, L2FibTableDump, L2FibTableDetails> = Dump::slices(&L2, handle);

fn handle(
    _: &mut Control,
    rq: L2FibTableDump,
    mut out: Details<L2FibTableDetails>,
) -> Walk<Control> {
    let mut at = 0;
    Box::new(move |c| {
        let state = c.state::<crate::L2>();
        let l2 = state.borrow();
        let (some, next) = l2.bridges().addresses(at, AT_ONCE);
        for a in some.iter().filter(|a| rq.bd_id == u32::MAX || a.bridge == rq.bd_id) {
            out.send(&L2FibTableDetails {
                bd_id: a.bridge,
                mac: a.mac,
                sw_if_index: InterfaceIndex(a.port.get()),
                static_mac: matches!(a.origin, Origin::Static | Origin::Filter | Origin::Bvi),
                filter_mac: a.origin == Origin::Filter,
                bvi_mac: a.origin == Origin::Bvi,
            });
        }
        at = next.unwrap_or_default();
        next.is_some()
    })
}
