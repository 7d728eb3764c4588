//! A setting with one value for the router.

use super::Declared;
use super::form::Form;
use super::rare::Rare;
use super::refused::Refused;
use super::shown::Shown;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::{Doc, Draft, Dump, Kind, OURS, Reads, Rule, Section, Value};
use thalweg_graph::Control;

/// One value for the router, which a command sets and a document has under a key.
///
/// ```text
/// pub static COMMAND: Global<Number> = Global {
///     command: "sflow polling-interval",
///     help: "Send each interface's counters every S seconds",
///     form: Number { usage: "<S>", name: "polling interval", range: (1, u32::MAX) },
///     key: "thalweg.sflow.polling-interval",
///     default: || 20,
///     get: |c| Some(c.state::<SFlow>().borrow().settings().polling_interval),
///     set: set_polling_interval,
///     rare: Rare::NONE,
/// };
/// ```
pub struct Global<F: Form> {
    /// Path of the command that sets it.
    pub command: &'static str,
    /// Help of the command.
    pub help: &'static str,
    /// The spelling of the value.
    pub form: F,
    /// Key in documents, its steps separated by dots. A key of vppcfg's schema takes what that
    /// says.
    pub key: &'static str,
    /// The value without a document that says another one.
    pub default: fn() -> F::Value,
    /// Returns the value in force; `None` if there is none now.
    pub get: fn(&Control) -> Option<F::Value>,
    /// Sets the value.
    pub set: fn(&mut Control, F::Value) -> Result<(), Refused>,
    /// Properties that few settings have.
    pub rare: Rare<F::Value>,
}

impl<F: Form> Command<Control> for Global<F> {
    fn path(&self) -> &'static str {
        self.command
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.rare.aliases
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
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let value = self.rare.take(&self.form, args)?;
        (self.set)(c, value.clone())?;
        (self.rare.note)(c, &value, out);
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _: &str) -> Vec<String> {
        self.form.complete(before)
    }
}

impl<F: Form> Declared for Global<F> {
    fn command(&'static self) -> Option<&'static dyn Command<Control>> {
        (!self.rare.by_hand).then_some(self)
    }

    fn shown(&self, c: &Control, interface: Option<&str>) -> Vec<Shown> {
        if interface.is_some() {
            return Vec::new();
        }
        let (value, default) = ((self.get)(c), (self.default)());
        let (command, key) = (self.command.to_owned(), self.key.to_owned());
        vec![Shown::of(&self.form, command, key, value.as_ref(), &default)]
    }
}

impl<F: Form> Reads for Global<F> {
    fn check(&self, value: &Value) -> Result<(), String> {
        self.form.read(value).map(drop)
    }
}

impl<F: Form> Section<Control> for Global<F> {
    fn supports(&self) -> Vec<&'static str> {
        [Some(self.key), self.rare.vppcfg]
            .into_iter()
            .flatten()
            .filter(|key| !is_ours(key))
            .collect()
    }

    fn rules(&'static self) -> Vec<Rule> {
        let Some(key) = Some(self.key).filter(|key| is_ours(key)) else { return Vec::new() };
        // The tables that it is in, but the one of all.
        let above =
            key.match_indices('.').skip(1).map(|(end, _)| Rule::new(&key[..end], Kind::Keys));
        let own = Rule::new(key, self.form.kind().unwrap_or(Kind::Read(self)));
        above.chain([own]).collect()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let Some(value) = (self.get)(c).filter(|value| *value != (self.default)()) else { return };
        let yaml = self.form.yaml(&value);
        let path = |key: &'static str| key.split('.').collect::<Vec<_>>();
        let theirs = self.rare.vppcfg.map(path).filter(|theirs| out.takes(theirs, yaml.clone()));
        out.put(&theirs.unwrap_or_else(|| path(self.key)), yaml);
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        let keys = [Some(self.key), self.rare.vppcfg].into_iter().flatten();
        let at = |key: &str| doc.at(&key.split('.').collect::<Vec<_>>());
        let Some(found) = keys.filter_map(at).next() else { return };
        let key = self.command.to_owned();
        let item = self.rare.item(&self.form, key, self.command, &found, (self.default)());
        item.into_iter().for_each(|item| out.add(item));
    }
}

/// Returns whether a key is ours, not one of vppcfg's schema, which has rules for its own.
fn is_ours(key: &str) -> bool {
    key.split('.').next() == Some(OURS)
}
