//! `ip_path_mtu_replace_end`: ends replacing all path MTUs.

use crate::api_types::IP;
use crate::path_mtu;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Removes the path MTUs that were not set again since `ip_path_mtu_replace_begin`.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpPathMtuReplaceEnd;

/// The service.
pub static SERVICE: Call<Control, IpPathMtuReplaceEnd, IpPathMtuReplaceEndReply> =
    Call::new(&IP, handle);

fn handle(c: &mut Control, _: IpPathMtuReplaceEnd) -> Result<IpPathMtuReplaceEndReply, Retval> {
    path_mtu::replace_end::<u32>(c);
    path_mtu::replace_end::<u128>(c);
    Ok(IpPathMtuReplaceEndReply)
}
