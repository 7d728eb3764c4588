//! `fib_source_dump`: who may say that a route exists.

use crate::api_types::{SOURCES, source_id};
use thalweg_api::schema::Module;
use thalweg_api::{ApiType, Details, Dump, Message, Text};
use thalweg_graph::Control;

static FIB: Module = Module { name: "fib", folder: "core", version: "1.0.0" };

/// Asks for sources of routes.
#[derive(Debug, Message)]
#[api(request)]
pub struct FibSourceDump;

/// A source of routes.
#[derive(Debug, ApiType)]
pub struct FibSource {
    /// The lowest counts most.
    pub priority: u8,
    /// Its number.
    pub id: u8,
    /// Its name.
    pub name: Text<64>,
}

/// A source of routes.
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
