//! `l2_fib_clear_table`: forgets all stations.

use crate::Flush;
use crate::api_module::L2;
use crate::api_types::flush;
use thalweg_api::{Call, Later, Message};
use thalweg_graph::Control;

/// Forgets all stations of all bridge domains, configured ones as well.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2FibClearTable;

/// The service.
pub static SERVICE: Call<Control, L2FibClearTable, L2FibClearTableReply> = Call::later(&L2, handle);

fn handle(c: &mut Control, _: L2FibClearTable, later: Later<L2FibClearTableReply>) {
    flush(c, Flush::Everything, later);
}
