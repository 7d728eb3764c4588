//! `ip_path_mtu_get`: lists path MTUs.

use crate::api_types::{IP, IpPathMtu};
use crate::path_mtu;
use thalweg_api::{Details, Message, Retval, Stream};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::Address;

/// Requests path MTUs.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpPathMtuGet {
    /// Where to continue; 0 at first.
    pub cursor: u32,
}

/// The path MTU of an address.
#[derive(Debug, Message)]
#[api(details)]
pub struct IpPathMtuDetails {
    /// The address and its path MTU.
    pub pmtu: IpPathMtu,
}

/// Reply to [`IpPathMtuGet`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct IpPathMtuGetReply {
    /// Where to continue; all ones at the end.
    pub cursor: u32,
}

/// The service.
pub static SERVICE: Stream<Control, IpPathMtuGet, IpPathMtuDetails, IpPathMtuGetReply> =
    Stream::new(&IP, handle);

fn row<A: Address>(((table, address), path_mtu): ((TableId, A), u16)) -> IpPathMtu {
    let (client_index, context) = (0, 0);
    let nh = address.to_ip().into();
    IpPathMtu { client_index, context, table_id: table.get(), nh, path_mtu }
}

fn handle(
    c: &mut Control,
    rq: IpPathMtuGet,
    out: &mut Details<IpPathMtuDetails>,
) -> (i32, IpPathMtuGetReply) {
    let (ip4, ip6) = (path_mtu::all::<u32>(c), path_mtu::all::<u128>(c));
    let all = ip4.into_iter().map(row).chain(ip6.into_iter().map(row));
    for (i, pmtu) in (0..).zip(all).skip(rq.cursor as usize) {
        if out.is_full() {
            return (Retval::EAGAIN.0, IpPathMtuGetReply { cursor: i });
        }
        out.send(&IpPathMtuDetails { pmtu });
    }
    (0, IpPathMtuGetReply { cursor: u32::MAX })
}
