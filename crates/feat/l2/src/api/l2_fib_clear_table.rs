//! `l2_fib_clear_table`: flushes all MAC addresses.

use crate::Flush;
use crate::api_module::L2;
use crate::api_types::flush;
use thalweg_api::{Call, Later, Message};
use thalweg_graph::Control;

/// Flushes all MAC addresses of all bridge domains, static ones included.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2FibClearTable;

/// The service.
pub static SERVICE: Call<Control, L2FibClearTable, L2FibClearTableReply> = Call::later(&L2, handle);

fn handle(c: &mut Control, _: L2FibClearTable, later: Later<L2FibClearTableReply>) {
    flush(c, Flush::Everything, later);
}
