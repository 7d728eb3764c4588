//! `nat_set_timeouts`: sets session timeouts.

use crate::api_types::NAT44_ED;
use crate::{Timeouts, state};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Request; timeouts are in seconds.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct NatSetTimeouts {
    /// UDP and other protocols.
    pub udp: u32,
    /// Established TCP.
    pub tcp_established: u32,
    /// TCP during setup and teardown.
    pub tcp_transitory: u32,
    /// ICMP queries.
    pub icmp: u32,
}

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
