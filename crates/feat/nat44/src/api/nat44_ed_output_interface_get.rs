//! `nat44_ed_output_interface_get`: lists interfaces with translation on output.

use crate::Nat44;
use crate::message_types::{
    NAT44_ED, Nat44EdOutputInterfaceDetails, Nat44EdOutputInterfaceGet,
    Nat44EdOutputInterfaceGetReply,
};
use std::collections::BTreeSet;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Retval, Stream};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Stream<
    Control,
    Nat44EdOutputInterfaceGet,
    Nat44EdOutputInterfaceDetails,
    Nat44EdOutputInterfaceGetReply,
> = Stream::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44EdOutputInterfaceGet,
    out: &mut Details<Nat44EdOutputInterfaceDetails>,
) -> (i32, Nat44EdOutputInterfaceGetReply) {
    let nat = c.state::<Nat44>();
    let nat = nat.borrow();
    let all: BTreeSet<SwIfIndex> =
        nat.roles().iter().filter(|r| r.1.output).map(|r| *r.0).collect();
    for sw_if in all.range(SwIfIndex(rq.cursor)..) {
        if out.is_full() {
            return (Retval::EAGAIN.0, Nat44EdOutputInterfaceGetReply { cursor: sw_if.get() });
        }
        out.send(&Nat44EdOutputInterfaceDetails { sw_if_index: InterfaceIndex(sw_if.get()) });
    }
    (0, Nat44EdOutputInterfaceGetReply { cursor: u32::MAX })
}
