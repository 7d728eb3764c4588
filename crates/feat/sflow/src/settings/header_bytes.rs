//! `sflow header-bytes`.

use crate::exporting::say_if_cut;
use crate::state::{DEFAULT_HEADER_BYTES, header_bytes, set_header_bytes, values};
use thalweg_engine::setting::{Global, Number, Rare};

/// Number of bytes of a sampled packet that are sent.
pub static SETTING: Global<Number> = Global {
    command: "sflow header-bytes",
    help: "Set the number of header bytes sent of a sampled packet\n\
           Rounded up to a multiple of 32 between 64 and 256. The default is 128.",
    form: Number { usage: "<B>", name: "header bytes", range: (0, u32::MAX) },
    key: "sflow.header-bytes",
    default: || DEFAULT_HEADER_BYTES.into(),
    get: |c| values(c, |all| all.header_bytes.into()),
    set: |c, bytes| {
        set_header_bytes(c, bytes);
        Ok(())
    },
    rare: Rare {
        comes_to: |asked| header_bytes(asked).into(),
        note: |c, asked, out| {
            let taken = header_bytes(*asked);
            if *asked != u32::from(taken) {
                tracing::warn!("sflow: header-bytes {asked} rounded to {taken}");
                out.line(format_args!(
                    "header-bytes {asked} rounded to {taken}: a multiple of 32 from 64 to 256"
                ));
            }
            say_if_cut(c, out);
            out.json(serde_json::json!({ "asked": asked, "header_bytes": taken }));
        },
        ..Rare::NONE
    },
};
