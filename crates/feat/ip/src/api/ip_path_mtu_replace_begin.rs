//! `ip_path_mtu_replace_begin`: starts replacing all path MTUs.

use crate::api_types::IP;
use crate::path_mtu;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Marks all path MTUs. `ip_path_mtu_replace_end` removes those that were not set again.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpPathMtuReplaceBegin;

/// The service.
pub static SERVICE: Call<Control, IpPathMtuReplaceBegin, IpPathMtuReplaceBeginReply> =
    Call::new(&IP, handle);

fn handle(c: &mut Control, _: IpPathMtuReplaceBegin) -> Result<IpPathMtuReplaceBeginReply, Retval> {
    path_mtu::replace_begin::<u32>(c);
    path_mtu::replace_begin::<u128>(c);
    Ok(IpPathMtuReplaceBeginReply)
}
