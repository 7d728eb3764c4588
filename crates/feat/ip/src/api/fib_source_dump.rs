//! `fib_source_dump`: lists route sources.

use crate::api_types::{SOURCES, source_id};
use crate::message_types::{FIB, FibSource, FibSourceDetails, FibSourceDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, FibSourceDump, FibSourceDetails> = Dump::new(&FIB, handle);

fn handle(_: &mut Control, _: FibSourceDump, out: &mut Details<FibSourceDetails>) {
    for source in SOURCES {
        let id = source_id(source);
        let src = FibSource { priority: id, id, name: source.word().into() };
        out.send(&FibSourceDetails { src });
    }
}
