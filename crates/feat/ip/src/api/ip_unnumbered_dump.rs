//! `ip_unnumbered_dump`: lists unnumbered interfaces.

use crate::Ip4;
use crate::api_types::IP;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Requests unnumbered interfaces.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpUnnumberedDump {
    /// Interface; all ones for all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// An unnumbered interface.
#[derive(Debug, Message)]
#[api(details)]
pub struct IpUnnumberedDetails {
    /// Interface index.
    pub sw_if_index: InterfaceIndex,
    /// Interface whose addresses it borrows.
    pub ip_sw_if_index: InterfaceIndex,
}

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
