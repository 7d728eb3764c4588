//! `nat44_address_dump`: lists pool addresses.

use crate::Nat44;
use crate::api_types::flags;
use crate::message_types::{NAT44_ED, Nat44AddressDetails, Nat44AddressDump, NatConfigFlags};
use thalweg_api::types::Ip4Address;
use thalweg_api::{Details, Dump};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, Nat44AddressDump, Nat44AddressDetails> =
    Dump::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: Nat44AddressDump, out: &mut Details<Nat44AddressDetails>) {
    for a in c.state::<Nat44>().borrow().all_addresses() {
        out.send(&Nat44AddressDetails {
            ip_address: Ip4Address(a.address.octets()),
            flags: flags(&[(a.twice, NatConfigFlags::TWICE_NAT)]),
            vrf_id: a.table.unwrap_or(TableId::MAX).get(),
        });
    }
}
