//! `ip_path_mtu_get`: lists path MTUs.

use crate::message_types::{IP, IpPathMtu, IpPathMtuDetails, IpPathMtuGet, IpPathMtuGetReply};
use crate::path_mtu;
use thalweg_api::{Details, Retval, Stream};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::Address;

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
