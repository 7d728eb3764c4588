//! `nat44_show_running_config`: reports the configuration.

use crate::Nat44;
use crate::api_types::{NAT44_ED, Nat44ConfigFlags, NatLogLevel, NatTimeouts};
use crate::log::Target;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44ShowRunningConfig;

/// Reply to [`Nat44ShowRunningConfig`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct Nat44ShowRunningConfigReply {
    /// Default routing table of mappings.
    pub inside_vrf: u32,
    /// Routing table for inside hosts whose own table has no route; 0 = none.
    pub outside_vrf: u32,
    /// Not used.
    pub users: u32,
    /// Maximum number of sessions per worker; 0 for the default.
    pub sessions: u32,
    /// Not used.
    pub user_sessions: u32,
    /// Not used.
    pub user_buckets: u32,
    /// Not used.
    pub translation_buckets: u32,
    /// Whether packets from outside without a session are forwarded.
    pub forwarding_enabled: bool,
    /// Whether sessions are logged by IPFIX.
    pub ipfix_logging_enabled: bool,
    /// Session timeouts.
    pub timeouts: NatTimeouts,
    /// Not used.
    pub log_level: NatLogLevel,
    /// Flags.
    pub flags: Nat44ConfigFlags,
}

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
