//! `get_f64_endian_value`: checks that client and router agree on the byte order of floating-point
//! numbers.

use crate::api_modules::VLIB;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Sends the number 1.
#[derive(Debug, Message)]
#[api(request)]
pub struct GetF64EndianValue {
    /// The number 1.
    #[api(default = 1.0)]
    pub f64_one: f64,
}

/// Replies to [`GetF64EndianValue`].
#[derive(Debug, Default, Message)]
#[api(details)]
pub struct GetF64EndianValueReply {
    /// 0 if the number 1 arrived.
    pub retval: u32,
    /// The number 1.
    pub f64_one_result: f64,
}

/// The service.
pub static SERVICE: Call<Control, GetF64EndianValue, GetF64EndianValueReply> =
    Call::new(&VLIB, handle);

fn handle(_: &mut Control, rq: GetF64EndianValue) -> Result<GetF64EndianValueReply, Retval> {
    /// VPP's return value for a failed check.
    const ENDIAN_CHECK_FAILED: i32 = -159;
    let retval = if rq.f64_one == 1.0 { 0 } else { ENDIAN_CHECK_FAILED as u32 };
    Ok(GetF64EndianValueReply { retval, f64_one_result: 1.0 })
}
