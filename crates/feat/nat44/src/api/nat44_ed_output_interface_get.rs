//! `nat44_ed_output_interface_get`: lists interfaces with translation on output.

use crate::Nat44;
use crate::api_types::NAT44_ED;
use std::collections::BTreeSet;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Message, Retval, Stream};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44EdOutputInterfaceGet {
    /// Position to continue at: the lowest index; 0 to start.
    pub cursor: u32,
}

/// Entry of the dump.
#[derive(Debug, Message)]
#[api(details)]
pub struct Nat44EdOutputInterfaceDetails {
    /// Interface.
    pub sw_if_index: InterfaceIndex,
}

/// Reply to [`Nat44EdOutputInterfaceGet`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct Nat44EdOutputInterfaceGetReply {
    /// Position to continue at; all ones at the end.
    pub cursor: u32,
}

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
