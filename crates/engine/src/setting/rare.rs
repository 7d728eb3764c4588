//! Properties that few settings need.

use super::form::Form;
use thalweg_cli::{Args, CliError, Output};
use thalweg_config::declare::{Found, Item, rank};
use thalweg_graph::Control;

/// Properties that few settings have.
pub struct Rare<V: 'static> {
    /// Key of vppcfg's schema as well, for values that are valid there.
    pub vppcfg: Option<&'static str>,
    /// Words that set the default again, if not those of the default.
    pub reset: Option<&'static str>,
    /// The value that the command sets if no words of a value follow.
    pub bare: Option<fn() -> V>,
    /// The value that comes to be in force when this one is asked for.
    pub comes_to: fn(V) -> V,
    /// Prints a note after the command has set this value.
    pub note: fn(&Control, &V, &mut Output),
    /// A command elsewhere sets it, with a parser of its own; `command` and the words are its, too.
    pub by_hand: bool,
    /// Order among other settings ([`rank`]).
    pub rank: u16,
    /// Order among those of the same rank, lowest first.
    pub order: u32,
    /// Key of the item that must be there.
    pub needs: Option<&'static str>,
    /// Alternative paths of the command.
    pub aliases: &'static [&'static str],
    /// True if it goes with the object that it is of ([`Item::attribute`]).
    pub attribute: bool,
    /// The thing that a value takes and that exists once, such as a file ([`Item::claims`]).
    pub claims: fn(&V) -> Option<String>,
}

impl<V> Rare<V> {
    /// Nothing rare.
    pub const NONE: Rare<V> = Rare {
        vppcfg: None,
        reset: None,
        bare: None,
        comes_to: |value| value,
        note: |_, _, _| (),
        by_hand: false,
        rank: rank::SERVICE,
        order: 0,
        needs: None,
        aliases: &[],
        attribute: false,
        claims: |_| None,
    };
}

impl<V: Clone + PartialEq> Rare<V> {
    /// Takes the value of a command to the end of its line.
    ///
    /// # Errors
    /// If the words are not a value.
    pub fn take(&self, form: &impl Form<Value = V>, args: &mut Args<'_>) -> Result<V, CliError> {
        if let Some(bare) = self.bare.filter(|_| args.is_empty()) {
            return Ok(bare());
        }
        let value = form.take(args)?;
        args.end().map(|()| value)
    }

    /// Returns the item of what a document says, under a key; `None` if it is the default. The
    /// words of the value follow `command`.
    pub fn item(
        &self,
        form: &impl Form<Value = V>,
        key: String,
        command: &str,
        found: &Found<'_>,
        default: V,
    ) -> Option<Item> {
        let value = (self.comes_to)(form.read(&found.node.value).ok()?);
        if value == default {
            return None;
        }
        let line = |words: &str| format!("{command} {words}").trim_end().to_owned();
        let back = self.reset.map_or_else(|| form.words(&default), str::to_owned);
        let set = line(&form.words(&value));
        let item = Item::new(self.rank, key, &found.path, set).unset(line(&back)).order(self.order);
        let item = self.needs.into_iter().fold(item, |item, key| item.needs(key));
        let item = (self.claims)(&value).into_iter().fold(item, |item, what| item.claims(what));
        Some(if self.attribute { item.attribute() } else { item })
    }
}
