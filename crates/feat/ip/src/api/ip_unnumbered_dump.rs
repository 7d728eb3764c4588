//! `ip_unnumbered_dump`: lists unnumbered interfaces.

use crate::Ip4;
use crate::message_types::{IP, IpUnnumberedDetails, IpUnnumberedDump};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, IpUnnumberedDump, IpUnnumberedDetails> = Dump::new(&IP, handle);

fn handle(c: &mut Control, rq: IpUnnumberedDump, out: &mut Details<IpUnnumberedDetails>) {
    let (ip4, one) = (c.state::<Ip4>(), rq.sw_if_index.0);
    let is_meant = |i: SwIfIndex| one == u32::MAX || one == i.get();
    for (borrower, lender) in ip4.borrow().lenders().filter(|(i, _)| is_meant(*i)) {
        out.send(&IpUnnumberedDetails {
            sw_if_index: InterfaceIndex(borrower.get()),
            ip_sw_if_index: InterfaceIndex(lender.get()),
        });
    }
}
