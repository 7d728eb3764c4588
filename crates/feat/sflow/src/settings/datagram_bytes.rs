//! `sflow datagram-bytes`.

use crate::exporting::{say_if_cut, set_datagram_bytes};
use crate::state::{Settings, values};
use thalweg_engine::setting::{Global, Number, Rare};
use thalweg_sflow::encode::DATAGRAM_BYTES;

/// The most bytes of a datagram.
pub static SETTING: Global<Number> = Global {
    command: "sflow datagram-bytes",
    help: "Set the maximum size of an sFlow datagram\n\
           The default, 1400, fits into an Ethernet frame and leaves room for tunnel headers. \
           Headers of sampled packets that do not fit are cut.",
    form: Number {
        usage: "<bytes>",
        name: "bytes",
        range: (*DATAGRAM_BYTES.start() as u32, *DATAGRAM_BYTES.end() as u32),
    },
    key: "thalweg.sflow.datagram-bytes",
    default: || Settings::default().export.datagram_bytes as u32,
    get: |c| values(c, |all| all.export.datagram_bytes as u32),
    set: |c, bytes| Ok(set_datagram_bytes(c, bytes as usize)?),
    rare: Rare { note: |c, _, out| say_if_cut(c, out), ..Rare::NONE },
};
