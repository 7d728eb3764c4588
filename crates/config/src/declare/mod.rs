//! The declarative configuration: one document describes the desired configuration.
//!
//! A document is YAML with the keys of vppcfg ([`schema`]) and, below `thalweg`, keys for what
//! vppcfg does not have. Each feature contributes a [`Section`]: it writes its part of the running
//! configuration, and reads its part of a document as [`Item`]s, each with the commands that set
//! and unset it. All else follows from items: the [`Plan`] from one configuration to another is
//! their difference, in order; a configuration is applied if planning again finds no steps; rolling
//! back is planning in the other direction.

mod catalog;
mod diff;
mod item;
mod node;
mod part;
mod plan;
mod report;
mod rules;
pub mod schema;
mod section;
mod summary;
mod yaml;

pub use catalog::{Catalog, Collected, Document, NoRule};
pub use diff::{Difference, diff, differences};
pub use item::{Draft, Item, interface_key, no_interface, rank};
pub use node::{Node, Place, Value};
pub use part::{Part, PathStep, State};
pub use plan::{Phase, Plan, Step, plan};
pub use report::{Problem, Problems};
pub use rules::{Kind, Name, Reads, Rule, address, file_path, mac};
pub use section::{Doc, Dump, Found, Interface, Later, OURS, Section, Slices, Walk, is_loopback};
pub use summary::{Kinds, WHOLE};
pub use yaml::{MAX_TEXT, parse, parse_within, parse_words, write};

/// Entry for fuzzing: reads a text, writes it, and reads that again.
pub fn fuzz_document(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let bare = yaml::parse_bare(text);
    let Ok(root) = parse(text) else { return assert!(bare.is_err()) };
    assert_eq!(bare.as_ref(), Ok(&root));
    if let Ok(catalog) = Catalog::<()>::new(Vec::new()) {
        let strict = catalog.check("fuzz", root.clone());
        let lenient = catalog.salvage("fuzz", root.clone());
        if let Ok((_, wrong)) = lenient {
            assert_eq!(strict.is_ok(), wrong.is_empty());
        }
    }
    if let Ok(written) = write(&root) {
        let again = parse(&written);
        let same = again
            .as_ref()
            .is_ok_and(|again| *again == root || again.value.is_empty() && root.value.is_empty());
        assert!(same, "{root:?}\n{written}\n{again:?}");
    }
}

#[cfg(test)]
mod tests;
