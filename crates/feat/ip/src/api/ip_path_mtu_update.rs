//! `ip_path_mtu_update`: sets or removes the path MTU of an address.

use crate::message_types::{IP, IpPathMtuUpdate, IpPathMtuUpdateReply};
use crate::path_mtu::{self, PathMtuError};
use std::net::IpAddr;
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpPathMtuUpdate, IpPathMtuUpdateReply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpPathMtuUpdate) -> Result<IpPathMtuUpdateReply, Retval> {
    let table = TableId(rq.pmtu.table_id);
    let mtu = Some(rq.pmtu.path_mtu).filter(|mtu| !matches!(*mtu, 0 | u16::MAX));
    let done = match rq.pmtu.nh.ip()? {
        IpAddr::V4(ip) => path_mtu::set(c, table, ip.to_bits(), mtu),
        IpAddr::V6(ip) => path_mtu::set(c, table, ip.to_bits(), mtu),
    };
    match done {
        // A missing path MTU is no error: clients repeat removals.
        Err(PathMtuError::Unknown(_)) => {}
        done => done?,
    }
    Ok(IpPathMtuUpdateReply)
}
