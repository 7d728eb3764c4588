//! `l2_fib_clear_table`: flushes all MAC addresses.

use crate::Flush;
use crate::api_types::flush;
use crate::message_types::{L2, L2FibClearTable, L2FibClearTableReply};
use thalweg_api::{Call, Later};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, L2FibClearTable, L2FibClearTableReply> = Call::later(&L2, handle);

fn handle(c: &mut Control, _: L2FibClearTable, later: Later<L2FibClearTableReply>) {
    flush(c, Flush::Everything, later);
}
