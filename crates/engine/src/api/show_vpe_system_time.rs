//! `show_vpe_system_time`: the router's uptime.

use crate::api_modules::VPE;
use thalweg_api::types::Timestamp;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Requests the router's time.
#[derive(Debug, Message)]
#[api(request)]
pub struct ShowVpeSystemTime;

/// Replies to [`ShowVpeSystemTime`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ShowVpeSystemTimeReply {
    /// Seconds since the start, as `show clock` prints them.
    pub vpe_system_time: Timestamp,
}

/// The service.
pub static SERVICE: Call<Control, ShowVpeSystemTime, ShowVpeSystemTimeReply> =
    Call::new(&VPE, handle);

fn handle(c: &mut Control, _: ShowVpeSystemTime) -> Result<ShowVpeSystemTimeReply, Retval> {
    Ok(ShowVpeSystemTimeReply { vpe_system_time: Timestamp(c.uptime().as_secs_f64()) })
}
