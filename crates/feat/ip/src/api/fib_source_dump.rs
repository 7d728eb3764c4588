//! `fib_source_dump`: lists route sources.

use crate::api_types::{SOURCES, source_id};
use thalweg_api::schema::Module;
use thalweg_api::{ApiType, Details, Dump, Message, Text};
use thalweg_graph::Control;

static FIB: Module = Module { name: "fib", folder: "core", version: "1.0.0" };

/// Requests route sources.
#[derive(Debug, Message)]
#[api(request)]
pub struct FibSourceDump;

/// A route source.
#[derive(Debug, ApiType)]
pub struct FibSource {
    /// Priority; the lowest wins.
    pub priority: u8,
    /// Number of the source.
    pub id: u8,
    /// Name of the source.
    pub name: Text<64>,
}

/// A route source.
#[derive(Debug, Message)]
#[api(details)]
pub struct FibSourceDetails {
    /// The source.
    pub src: FibSource,
}

/// The service.
pub static SERVICE: Dump<Control, FibSourceDump, FibSourceDetails> = Dump::new(&FIB, handle);

fn handle(_: &mut Control, _: FibSourceDump, out: &mut Details<FibSourceDetails>) {
    for source in SOURCES {
        let id = source_id(source);
        let src = FibSource { priority: id, id, name: source.word().into() };
        out.send(&FibSourceDetails { src });
    }
}
