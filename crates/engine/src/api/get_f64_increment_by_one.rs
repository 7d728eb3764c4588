//! `get_f64_increment_by_one`: adds one to a floating-point number.

use crate::message_types::{GetF64IncrementByOne, GetF64IncrementByOneReply, VLIB};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, GetF64IncrementByOne, GetF64IncrementByOneReply> =
    Call::new(&VLIB, handle);

fn handle(_: &mut Control, rq: GetF64IncrementByOne) -> Result<GetF64IncrementByOneReply, Retval> {
    Ok(GetF64IncrementByOneReply { retval: 0, f64_value: rq.f64_value + 1.0 })
}
