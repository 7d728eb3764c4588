//! Parts of an sFlow agent, without a dataplane.
//!
//! * [`agent::Agent`] keeps the sequence numbers of samples and packs them;
//!   [`agent::Collectors`] sends the datagrams.
//! * [`netlink`] speaks with dataplanes and with hsflowd: PSAMPLE, USERSOCK and NET_DM.
//! * [`host`] reads this host's counters; [`conf`] reads `hsflowd.conf`; [`relay`] makes datagrams
//!   of what comes over [`netlink`].

#![forbid(unsafe_code)]

pub mod agent;
pub mod conf;
pub mod fuzz;
pub mod host;
pub mod netlink;
pub mod relay;
