//! Settings that are described once.
//!
//! A setting is a `static` that names its command, its key in documents, how its value is spelled
//! ([`Form`]), and the functions that read and set it. The command with its help and completion,
//! the rule for documents, the dump, the items that plans compare, and its line and JSON in
//! `show settings` follow from it. Plans compare
//! the one spelling that [`Form::words`] prints, so they compare values, however a document spelled
//! them.
//!
//! * [`Global`]: one value for the router.
//! * `thalweg_device::setting::PerInterface`: one value for each interface.
//!
//! A command that a declaration cannot express has a parser of its own, which calls the same
//! function; the setting then stands as a section only.

mod form;
mod global;
mod rare;
mod refused;
mod shown;

pub use form::{Form, Number, Optional, Switch, Word, Worded, read_words};
pub use global::Global;
pub use rare::Rare;
pub use refused::Refused;
pub use shown::Shown;

use thalweg_cli::Command;
use thalweg_config::declare::Section;
use thalweg_graph::Control;

/// A setting as its feature lists it.
pub trait Declared: Section<Control> {
    /// Returns the command that sets it, unless a parser by hand is in its place.
    fn command(&'static self) -> Option<&'static dyn Command<Control>>;

    /// Returns it with its value. A setting of interfaces has a row for each value that is not the
    /// default, or one row for `interface`; a setting of the router has none then.
    fn shown(&self, c: &Control, interface: Option<&str>) -> Vec<Shown>;
}
