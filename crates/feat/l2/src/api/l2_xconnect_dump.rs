//! `l2_xconnect_dump`: lists cross connects.

use crate::message_types::{L2, L2XconnectDetails, L2XconnectDump};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, L2XconnectDump, L2XconnectDetails> = Dump::new(&L2, handle);

fn handle(c: &mut Control, _: L2XconnectDump, out: &mut Details<L2XconnectDetails>) {
    for (rx, tx) in c.state::<crate::L2>().borrow().xconnects() {
        let (rx_sw_if_index, tx_sw_if_index) = (InterfaceIndex(rx.get()), InterfaceIndex(tx.get()));
        out.send(&L2XconnectDetails { rx_sw_if_index, tx_sw_if_index });
    }
}
