//! `ip_path_mtu_replace_begin`: starts replacing all path MTUs.

use crate::message_types::{IP, IpPathMtuReplaceBegin, IpPathMtuReplaceBeginReply};
use crate::path_mtu;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpPathMtuReplaceBegin, IpPathMtuReplaceBeginReply> =
    Call::new(&IP, handle);

fn handle(c: &mut Control, _: IpPathMtuReplaceBegin) -> Result<IpPathMtuReplaceBeginReply, Retval> {
    path_mtu::replace_begin::<u32>(c);
    path_mtu::replace_begin::<u128>(c);
    Ok(IpPathMtuReplaceBeginReply)
}
