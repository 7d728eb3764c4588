//! `tap_create_v2`: creates a TAP or TUN interface.

use crate::api_types::{create, wanted};
use crate::message_types::{TAPV2, TapCreateV2, TapCreateV2Reply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, TapCreateV2, TapCreateV2Reply> = Call::new(&TAPV2, handle);

fn handle(c: &mut Control, rq: TapCreateV2) -> Result<TapCreateV2Reply, Retval> {
    let queues = (u16::from(rq.num_rx_queues), 1);
    Ok(TapCreateV2Reply { sw_if_index: create(c, wanted!(rq, queues))? })
}
