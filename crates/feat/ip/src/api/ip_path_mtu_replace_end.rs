//! `ip_path_mtu_replace_end`: ends replacing all path MTUs.

use crate::message_types::{IP, IpPathMtuReplaceEnd, IpPathMtuReplaceEndReply};
use crate::path_mtu;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpPathMtuReplaceEnd, IpPathMtuReplaceEndReply> =
    Call::new(&IP, handle);

fn handle(c: &mut Control, _: IpPathMtuReplaceEnd) -> Result<IpPathMtuReplaceEndReply, Retval> {
    path_mtu::replace_end::<u32>(c);
    path_mtu::replace_end::<u128>(c);
    Ok(IpPathMtuReplaceEndReply)
}
