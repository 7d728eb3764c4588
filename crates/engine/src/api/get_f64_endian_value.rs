//! `get_f64_endian_value`: checks that client and router agree on the byte order of floating-point
//! numbers.

use crate::message_types::{GetF64EndianValue, GetF64EndianValueReply, VLIB};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, GetF64EndianValue, GetF64EndianValueReply> =
    Call::new(&VLIB, handle);

fn handle(_: &mut Control, rq: GetF64EndianValue) -> Result<GetF64EndianValueReply, Retval> {
    /// VPP's return value for a failed check.
    const ENDIAN_CHECK_FAILED: i32 = -159;
    let retval = if rq.f64_one == 1.0 { 0 } else { ENDIAN_CHECK_FAILED as u32 };
    Ok(GetF64EndianValueReply { retval, f64_one_result: 1.0 })
}
