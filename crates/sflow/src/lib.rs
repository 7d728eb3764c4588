//! sFlow version 5: the codec, a decoder that prints as sflowtool does, and traffic estimates with
//! their confidence intervals. `thalweg-sflow-agent` has what sends.
//!
//! * [`decode::Datagram`] takes datagrams apart, lazily and without trusting them.
//! * [`encode::DatagramEncoder`] packs samples.
//! * [`text::Printer`] writes a datagram as text, CSV or JSON.
//! * [`pcapfile::PcapReader`], [`listen::Listener`] and [`sniff::Sniffer`] bring datagrams in;
//!   [`forward::Forwarder`] passes them on, [`pcapout::PcapOut`] makes captures of what is in them.
//! * [`estimate`] turns samples into traffic.

#![forbid(unsafe_code)]

pub mod decode;
pub mod encode;
pub mod estimate;
pub mod forward;
mod frame;
pub mod fuzz;
pub mod header;
pub mod listen;
mod merged;
pub mod model;
pub mod named;
pub mod pcapfile;
pub mod pcapout;
pub mod sniff;
pub mod text;
pub mod value;
pub mod xdr;

pub use decode::{CounterSample, Datagram, DiscardSample, FlowSample, Sample};
pub use fuzz::fuzz_decode;
pub use model::{CounterRecord, DataSource, DiscardReason, FlowRecord, Interface, SFLOW_PORT, Tag};
pub use xdr::{DecodeError, Fault};
