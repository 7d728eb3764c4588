//! `l2_fib_table_dump`: the stations that a bridge domain knows.

use crate::Origin;
use crate::api_module::L2;
use thalweg_api::types::{InterfaceIndex, MacAddress};
use thalweg_api::{Details, Dump, Message, Walk};
use thalweg_graph::Control;

/// Numbers of stations that are looked at before it is looked whether the client reads on.
const AT_ONCE: u32 = 64;

/// Asks for stations.
#[derive(Debug, Message)]
#[api(request)]
pub struct L2FibTableDump {
    /// Of which bridge domain; all ones: of all.
    pub bd_id: u32,
}

/// A station.
#[derive(Debug, Message)]
#[api(details)]
pub struct L2FibTableDetails {
    /// The bridge domain.
    pub bd_id: u32,
    /// Its address.
    pub mac: MacAddress,
    /// The port that it is behind.
    pub sw_if_index: InterfaceIndex,
    /// It stays there.
    pub static_mac: bool,
    /// Frames to it are dropped.
    pub filter_mac: bool,
    /// It is the router itself.
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
                mac: MacAddress(a.mac),
                sw_if_index: InterfaceIndex(a.port),
                static_mac: matches!(a.origin, Origin::Static | Origin::Filter),
                filter_mac: a.origin == Origin::Filter,
                bvi_mac: false,
            });
        }
        at = next.unwrap_or_default();
        next.is_some()
    })
}
