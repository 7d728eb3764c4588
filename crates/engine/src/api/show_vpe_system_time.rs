//! `show_vpe_system_time`: the time of day.

use crate::message_types::{ShowVpeSystemTime, ShowVpeSystemTimeReply, VPE};
use std::time::SystemTime;
use thalweg_api::types::Timestamp;
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, ShowVpeSystemTime, ShowVpeSystemTimeReply> =
    Call::new(&VPE, handle);

fn handle(_: &mut Control, _: ShowVpeSystemTime) -> Result<ShowVpeSystemTimeReply, Retval> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(ShowVpeSystemTimeReply { vpe_system_time: Timestamp(since.as_secs_f64()) })
}
