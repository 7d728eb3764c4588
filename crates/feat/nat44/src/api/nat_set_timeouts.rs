//! `nat_set_timeouts`: sets session timeouts.

use crate::message_types::{NAT44_ED, NatSetTimeouts, NatSetTimeoutsReply};
use crate::{Timeouts, state};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, NatSetTimeouts, NatSetTimeoutsReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, rq: NatSetTimeouts) -> Result<NatSetTimeoutsReply, Retval> {
    let t = Timeouts {
        udp: rq.udp,
        tcp_established: rq.tcp_established,
        tcp_transitory: rq.tcp_transitory,
        icmp: rq.icmp,
    };
    let all = [t.udp, t.tcp_established, t.tcp_transitory, t.icmp];
    if all.iter().any(|s| !(1..=Timeouts::MAX).contains(s)) {
        return Err(Retval::INVALID_VALUE.because("timeouts must be 1 to 1000000 seconds"));
    }
    state::set_timeouts(c, t)?;
    Ok(NatSetTimeoutsReply)
}
