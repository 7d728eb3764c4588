//! `nat44_show_running_config`: reports the configuration.

use crate::Nat44;
use crate::log::Target;
use crate::message_types::{
    NAT44_ED, Nat44ConfigFlags, Nat44ShowRunningConfig, Nat44ShowRunningConfigReply, NatTimeouts,
};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44ShowRunningConfig, Nat44ShowRunningConfigReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    _: Nat44ShowRunningConfig,
) -> Result<Nat44ShowRunningConfigReply, Retval> {
    let nat = c.state::<Nat44>();
    let nat = nat.borrow();
    let t = nat.timeouts();
    Ok(Nat44ShowRunningConfigReply {
        inside_vrf: nat.default_vrfs().inside.get(),
        outside_vrf: nat.default_vrfs().outside.get(),
        sessions: nat.sessions().unwrap_or(0),
        forwarding_enabled: nat.forwarding(),
        ipfix_logging_enabled: nat.log().is_some_and(|l| matches!(l.target, Target::Ipfix(_))),
        timeouts: NatTimeouts {
            udp: t.udp,
            tcp_established: t.tcp_established,
            tcp_transitory: t.tcp_transitory,
            icmp: t.icmp,
        },
        flags: Nat44ConfigFlags::ENDPOINT_DEPENDENT,
        ..Default::default()
    })
}
