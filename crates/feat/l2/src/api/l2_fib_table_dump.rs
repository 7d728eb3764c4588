//! `l2_fib_table_dump`: lists the MAC addresses of a bridge domain.

use crate::Origin;
use crate::api_module::L2;
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Details, Dump, Message, Walk};
use thalweg_graph::Control;

/// Table entries visited between checks that the client keeps reading.
const AT_ONCE: u32 = 64;

/// Requests MAC addresses.
#[derive(Debug, Message)]
#[api(request)]
pub struct L2FibTableDump {
    /// Bridge domain id; all ones for every bridge domain.
    pub bd_id: u32,
}

/// A MAC address entry.
#[derive(Debug, Message)]
#[api(details)]
pub struct L2FibTableDetails {
    /// Bridge domain id.
    pub bd_id: u32,
    /// MAC address.
    pub mac: MacAddr,
    /// Port of the address.
    pub sw_if_index: InterfaceIndex,
    /// Static: neither moves nor ages.
    pub static_mac: bool,
    /// Filter: frames to this address are dropped.
    pub filter_mac: bool,
    /// The address is a BVI.
    pub bvi_mac: bool,
}

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
