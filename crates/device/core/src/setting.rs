//! Settings of interfaces that are described once; see [`thalweg_engine::setting`].

use crate::command_line::{interface_arg, interface_names};
use thalweg_buffer::SwIfIndex;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::{
    Doc, Draft, Dump, Item, Kind, Reads, Rule, Section, Value, interface_key,
};
use thalweg_engine::setting::{Declared, Form, Refused};
use thalweg_graph::Control;

/// Returns the interfaces that have a value.
pub type All<V> = fn(&Control) -> Vec<(SwIfIndex, V)>;

/// Gives an interface a value, or takes it away.
pub type Set<V> = fn(&mut Control, SwIfIndex, Option<V>) -> Result<(), Refused>;

/// A value that an interface may have, which a command sets and a document has under a key of the
/// interface.
pub struct PerInterface<F: Form> {
    /// Path of the command; the interface and the words of the value follow.
    pub command: &'static str,
    /// Help of the command.
    pub help: &'static str,
    /// The spelling of the value.
    pub form: F,
    /// Words in place of the value that take it away.
    pub none: &'static str,
    /// Key below `thalweg.interfaces.<name>` in documents.
    pub key: &'static str,
    /// The same as the path of its rule: `thalweg.interfaces.*.<key>`.
    pub rule: &'static str,
    /// Order among other settings ([`thalweg_config::declare::rank`]).
    pub rank: u16,
    /// Returns the interfaces that have a value.
    pub all: All<F::Value>,
    /// Gives an interface a value, or takes it away.
    pub set: Set<F::Value>,
    /// A command elsewhere sets it, with a parser of its own, which takes these words.
    pub by_hand: bool,
}

impl<F: Form> PerInterface<F> {
    fn line(&self, interface: &str, words: &str) -> String {
        format!("{} {interface} {words}", self.command)
    }
}

impl<F: Form> Command<Control> for PerInterface<F> {
    fn path(&self) -> &'static str {
        self.command
    }

    fn usage(&self) -> &'static str {
        self.form.usage()
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let value = match args.exact(self.none) {
            true => None,
            false => Some(self.form.take(args)?),
        };
        args.end()?;
        (self.set)(c, sw_if, value)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [_, words @ ..] => self.form.complete(words),
        }
    }
}

impl<F: Form> Declared for PerInterface<F> {
    fn command(&'static self) -> Option<&'static dyn Command<Control>> {
        (!self.by_hand).then_some(self)
    }
}

impl<F: Form> Reads for PerInterface<F> {
    fn check(&self, value: &Value) -> Result<(), String> {
        self.form.read(value).map(drop)
    }
}

impl<F: Form> Section<Control> for PerInterface<F> {
    fn rules(&'static self) -> Vec<Rule> {
        vec![Rule::new(self.rule, self.form.kind().unwrap_or(Kind::Read(self)))]
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        for (sw_if, value) in (self.all)(c) {
            out.set(&c.interface_name(sw_if), self.key, self.form.yaml(&value));
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for interface in doc.interfaces() {
            let Some(found) = interface.get(self.key) else { continue };
            let Ok(value) = self.form.read(&found.node.value) else { continue };
            let name = &*interface.name;
            let key = format!("{} of {name}", self.key);
            let set = self.line(name, &self.form.words(&value));
            let item = Item::new(self.rank, key, found.path, set);
            out.add(item.unset(self.line(name, self.none)).needs(interface_key(name)));
        }
    }
}
