//! Settings of interfaces that are described once; see [`thalweg_engine::setting`].

use crate::command_line::{interface_arg, interface_names};
use crate::interface::{self, Interfaces};
use thalweg_buffer::SwIfIndex;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::{
    Doc, Draft, Dump, Kind, Reads, Rule, Section, Slices, Value, interface_key,
};
use thalweg_engine::setting::{Declared, Form, Rare, Refused, Shown};
use thalweg_graph::Control;

/// Returns the interfaces whose value is not the default.
pub type All<V> = fn(&Control) -> Vec<(SwIfIndex, V)>;

/// Interfaces that are written at a time.
const AT_ONCE: usize = 128;

/// Gives an interface a value.
pub type Set<V> = fn(&mut Control, SwIfIndex, V) -> Result<(), Refused>;

/// A value of each interface, which a command sets and a document has under a key of the interface.
pub struct PerInterface<F: Form> {
    /// Path of the command; the interface and the words of the value follow.
    pub command: &'static str,
    /// Grammar of these: `<interface> enable|disable`.
    pub usage: &'static str,
    /// Help of the command.
    pub help: &'static str,
    /// The spelling of the value.
    pub form: F,
    /// Key below `thalweg.interfaces.<name>` in documents.
    pub key: &'static str,
    /// The same as the path of its rule: `thalweg.interfaces.*.<key>`.
    pub rule: &'static str,
    /// Value of an interface without a setting.
    pub default: fn() -> F::Value,
    /// Returns the interfaces whose value is not the default.
    pub all: All<F::Value>,
    /// Gives an interface a value.
    pub set: Set<F::Value>,
    /// Properties that few settings have; `vppcfg` is without effect.
    pub rare: Rare<F::Value>,
}

impl<F: Form> Command<Control> for PerInterface<F> {
    fn path(&self) -> &'static str {
        self.command
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.rare.aliases
    }

    fn usage(&self) -> &'static str {
        self.usage
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
        let sw_if = interface_arg(c, args)?;
        let value = self.rare.take(&self.form, args)?;
        (self.set)(c, sw_if, value.clone())?;
        (self.rare.note)(c, &value, out);
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
        (!self.rare.by_hand).then_some(self)
    }

    fn shown(&self, c: &Control, interface: Option<&str>) -> Vec<Shown> {
        let (set, default) = ((self.all)(c), (self.default)());
        let row = |(sw_if, value): (SwIfIndex, F::Value)| {
            let name = c.interface_name(sw_if);
            let (command, key) =
                (format!("{} {name}", self.command), self.rule.replace('*', &name));
            let row = Shown::of(&self.form, command, key, Some(&value), &default);
            Shown { interface: Some(name), ..row }
        };
        let Some(name) = interface else { return set.into_iter().map(row).collect() };
        let Ok(sw_if) = interface::find(c, name) else { return Vec::new() };
        let value = set.into_iter().find(|(of, _)| *of == sw_if).map(|(_, value)| value);
        vec![row((sw_if, value.unwrap_or_else(|| default.clone())))]
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

    fn slices(&'static self, c: &Control) -> Option<Slices<Control>> {
        let all = (self.all)(c);
        if all.len() <= AT_ONCE {
            return None;
        }
        let mut rest = all.into_iter();
        Some(Box::new(move |c, out| {
            let interfaces = c.state::<Interfaces>();
            let interfaces = interfaces.borrow();
            for (sw_if, value) in rest.by_ref().take(AT_ONCE) {
                // One that went meanwhile has no value any more.
                if let Some(view) = interfaces.get(sw_if) {
                    out.set(&view.name, self.key, self.form.yaml(&value));
                }
            }
            rest.as_slice().is_empty()
        }))
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for interface in doc.interfaces() {
            let Some(found) = interface.get(self.key) else { continue };
            let name = &*interface.name;
            let (key, command) =
                (format!("{} of {name}", self.key), format!("{} {name}", self.command));
            let item = self.rare.item(&self.form, key, &command, &found, (self.default)());
            let item = item.map(|item| item.needs(interface_key(name)));
            item.into_iter().for_each(|item| out.add(item));
        }
    }
}
