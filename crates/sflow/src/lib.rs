//! sFlow version 5 without a dataplane: the codec, an agent that packs and sends datagrams, a
//! decoder that prints as sflowtool does, and traffic estimates with their confidence intervals.
//!
//! * [`decode::Datagram`] takes datagrams apart, lazily and without trusting them.
//! * [`encode::DatagramEncoder`] packs samples; [`agent::Agent`] keeps their sequence numbers and
//!   sends them.
//! * [`text::Printer`] writes a datagram as text, CSV or JSON.
//! * [`netlink`] speaks with dataplanes and with hsflowd: PSAMPLE, USERSOCK and NET_DM.
//! * [`pcapfile::PcapReader`], [`listen::Listener`] and [`sniff::Sniffer`] bring datagrams in;
//!   [`forward::Forwarder`] passes them on, [`pcapout::PcapOut`] makes captures of what is in them.
//! * [`host`] reads this host's counters; [`conf`] reads `hsflowd.conf`; [`relay`] makes datagrams
//!   of what comes over [`netlink`].
//! * [`estimate`] turns samples into traffic.

#![forbid(unsafe_code)]

pub mod agent;
pub mod conf;
pub mod decode;
pub mod encode;
pub mod estimate;
pub mod forward;
mod frame;
pub mod fuzz;
pub mod header;
pub mod host;
pub mod listen;
mod merged;
pub mod model;
pub mod named;
pub mod netlink;
pub mod pcapfile;
pub mod pcapout;
pub mod relay;
pub mod sniff;
pub mod text;
pub mod value;
pub mod xdr;

pub use decode::{CounterSample, Datagram, DiscardSample, FlowSample, Sample};
pub use fuzz::fuzz_decode;
pub use model::{CounterRecord, DataSource, DiscardReason, FlowRecord, Interface, SFLOW_PORT, Tag};
pub use xdr::{DecodeError, Fault};
