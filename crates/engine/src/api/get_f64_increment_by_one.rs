//! `get_f64_increment_by_one`: adds one to a floating-point number.

use crate::api_modules::VLIB;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Sends a number.
#[derive(Debug, Message)]
#[api(request)]
pub struct GetF64IncrementByOne {
    /// The number.
    #[api(default = 1.0)]
    pub f64_value: f64,
}

/// Replies to [`GetF64IncrementByOne`].
#[derive(Debug, Default, Message)]
#[api(details)]
pub struct GetF64IncrementByOneReply {
    /// Always 0.
    pub retval: u32,
    /// The number plus one.
    pub f64_value: f64,
}

/// The service.
pub static SERVICE: Call<Control, GetF64IncrementByOne, GetF64IncrementByOneReply> =
    Call::new(&VLIB, handle);

fn handle(_: &mut Control, rq: GetF64IncrementByOne) -> Result<GetF64IncrementByOneReply, Retval> {
    Ok(GetF64IncrementByOneReply { retval: 0, f64_value: rq.f64_value + 1.0 })
}
