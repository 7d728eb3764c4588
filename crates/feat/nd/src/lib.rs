//! Neighbour discovery (RFC 4861): resolves IPv6 neighbours.
//!
//! Workers answer solicitations and report senders; the table of neighbours, and what happens to
//! packets meanwhile, is [`thalweg_feat_neighbor`]'s.
//!
//! * [`nodes`]: solicitations and advertisements of neighbours and routers, `ip6-discover-neighbor`
//!   and `ip6-glean`.
//! * Events for other features are [`RouterSolicited`], [`RouterHeard`], [`ListenersQueried`] and
//!   [`AddressUsed`].
//! * [`addrs`]: the interfaces' addresses, which the IPv6 feature passes with [`set_addresses`].
#![forbid(unsafe_code)]

pub mod addrs;
mod asker;
pub mod counters;
mod message;
pub mod nodes;
pub mod packet;
mod reports;
mod resolver;

pub use addrs::{IfAddr, IfAddrs, Proxy};
pub use counters::NdCounters;
pub use reports::{
    AddressUsed, ListenersQueried, MAX_PREFIXES, RouterHeard, RouterPrefix, RouterSolicited,
};
pub use resolver::{
    GroupsChanged, groups, has_joined, probe, set_addresses, set_proxies, set_routed_peers,
    set_router, set_table, set_unusable,
};

use thalweg_buffer::IcmpCause;
use thalweg_engine::Feature;

/// Error to hosts whose neighbour does not answer (RFC 4443 section 3.1).
pub(crate) const ADDRESS_UNREACHABLE: IcmpCause = IcmpCause { kind: 1, code: 3, mtu: 0 };

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "nd",
    about: "neighbour discovery, which resolves IPv6 neighbours",
    needs: &[&thalweg_device::FEATURE, &thalweg_fib::FEATURE, &thalweg_feat_neighbor::FEATURE],
    nodes: nodes::NODES,
    init: resolver::init,
    ..Feature::DEFAULT
};

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
