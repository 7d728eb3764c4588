//! Types of the API messages, and events.

use thalweg_api::schema::Module;
use thalweg_api::types::{InterfaceIndex, Ip6Address, Prefix};
use thalweg_api::{ApiType, Clients, Message, Subscribers};
use thalweg_feat_nd::RouterHeard;
use thalweg_graph::Control;

/// The API module of neighbour discovery.
pub static IP6_ND: Module = Module { name: "ip6_nd", folder: "core", version: "1.1.0" };
/// The API module of autoconfiguration.
pub static RD_CP: Module = Module { name: "rd_cp", folder: "core", version: "1.0.1" };

/// A prefix that is advertised.
#[derive(Clone, Debug, ApiType)]
pub struct Ip6ndRaPrefix {
    /// The prefix.
    pub prefix: Prefix,
    /// Its addresses are on the link.
    pub onlink_flag: bool,
    /// Hosts may make addresses from it.
    pub autonomous_flag: bool,
    /// Seconds that it is valid; all ones: for ever.
    pub val_lifetime: u32,
    /// Seconds that its addresses are preferred; all ones: for ever.
    pub pref_lifetime: u32,
    /// Seconds until it ends; 0 if it does not.
    pub valid_lifetime_expires: f64,
    /// Seconds until its addresses are not preferred any more; 0 if that does not come.
    pub pref_lifetime_expires: f64,
    /// Lifetimes end in real time.
    pub decrement_lifetime_flag: bool,
    /// It is not sent.
    pub no_advertise: bool,
}

/// A prefix that another router advertises.
#[derive(Clone, Debug, ApiType)]
pub struct Ip6RaPrefixInfo {
    /// The prefix.
    pub prefix: Prefix,
    /// On-link (0x80) and autonomous (0x40).
    pub flags: u8,
    /// Seconds that it is valid.
    pub valid_time: u32,
    /// Seconds that its addresses are preferred.
    pub preferred_time: u32,
}

/// Event: another router advertises itself.
#[derive(Debug, Message)]
#[api(event)]
pub struct Ip6RaEvent {
    /// Process id given in the subscription.
    pub pid: u32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The router's link-local address.
    pub router_addr: Ip6Address,
    /// Hop limit for hosts, 0 for unspecified.
    pub current_hop_limit: u8,
    /// Managed (0x80), other (0x40), preference (0x18).
    pub flags: u8,
    /// Lifetime as a default router.
    pub router_lifetime_in_sec: u16,
    /// How long a neighbour stays reachable, 0 for unspecified.
    pub neighbor_reachable_time_in_msec: u32,
    /// Interval of solicitations, 0 for unspecified.
    pub time_in_msec_between_retransmitted_neighbor_solicitations: u32,
    /// Its prefixes.
    #[api(count = "n_prefixes: u32")]
    pub prefixes: Vec<Ip6RaPrefixInfo>,
}

/// Subscribed clients.
#[derive(Default)]
pub(crate) struct Watchers(pub(crate) Subscribers<()>);

pub(crate) fn init(c: &mut Control) {
    c.insert(Watchers::default());
    c.subscribe(|c, heard: &RouterHeard| {
        let watchers = c.state::<Watchers>();
        let mut watchers = watchers.borrow_mut();
        if watchers.0.is_empty() {
            return;
        }
        let clients = c.state::<Clients>().borrow().clone();
        watchers.0.notify(&clients, |pid, ()| Some(event(pid, heard)));
    });
}

fn event(pid: u32, heard: &RouterHeard) -> Ip6RaEvent {
    let prefix = |p: &thalweg_feat_nd::RouterPrefix| Ip6RaPrefixInfo {
        prefix: Prefix::from((std::net::IpAddr::V6(p.prefix), p.len)),
        flags: p.flags,
        valid_time: p.valid,
        preferred_time: p.preferred,
    };
    Ip6RaEvent {
        pid,
        sw_if_index: InterfaceIndex(heard.sw_if.get()),
        router_addr: Ip6Address(heard.router.octets()),
        current_hop_limit: heard.hop_limit,
        flags: heard.flags,
        router_lifetime_in_sec: heard.lifetime,
        neighbor_reachable_time_in_msec: heard.reachable_ms,
        time_in_msec_between_retransmitted_neighbor_solicitations: heard.retransmit_ms,
        prefixes: heard.prefixes.iter().map(prefix).collect(),
    }
}
