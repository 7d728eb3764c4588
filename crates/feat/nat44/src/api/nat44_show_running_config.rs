//! `nat44_show_running_config`: asks how the translator is set.

use crate::Nat44;
use crate::api_types::{NAT44_ED, Nat44ConfigFlags, NatLogLevel, NatTimeouts};
use crate::log::Target;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for it.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44ShowRunningConfig;

/// Answers [`Nat44ShowRunningConfig`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct Nat44ShowRunningConfigReply {
    /// Routing table of hosts inside, in mappings that name none.
    pub inside_vrf: u32,
    /// Routing table of hosts outside; 0: those of interfaces.
    pub outside_vrf: u32,
    /// Not used.
    pub users: u32,
    /// Sessions of each worker; 0 for the default.
    pub sessions: u32,
    /// Not used.
    pub user_sessions: u32,
    /// Not used.
    pub user_buckets: u32,
    /// Not used.
    pub translation_buckets: u32,
    /// Whether packets from the outside pass that belong to no session.
    pub forwarding_enabled: bool,
    /// Whether sessions are noted by IPFIX messages.
    pub ipfix_logging_enabled: bool,
    /// How long sessions live.
    pub timeouts: NatTimeouts,
    /// Not used.
    pub log_level: NatLogLevel,
    /// Qualities.
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
        inside_vrf: nat.default_vrfs().inside,
        outside_vrf: nat.default_vrfs().outside,
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
