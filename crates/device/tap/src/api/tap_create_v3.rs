//! `tap_create_v3`: creates a TAP or TUN interface.

use crate::api_types::{create, wanted};
use crate::message_types::{TAPV2, TapCreateV3, TapCreateV3Reply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, TapCreateV3, TapCreateV3Reply> = Call::new(&TAPV2, handle);

fn handle(c: &mut Control, rq: TapCreateV3) -> Result<TapCreateV3Reply, Retval> {
    let queues = (rq.num_rx_queues, rq.num_tx_queues);
    Ok(TapCreateV3Reply { sw_if_index: create(c, wanted!(rq, queues))? })
}
