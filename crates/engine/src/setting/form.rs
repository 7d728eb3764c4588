//! Spellings of values.

use std::marker::PhantomData;
use thalweg_cli::{Args, CliError, usage_words};
use thalweg_config::declare::{Kind, Value};

/// The spellings of a setting's value: one parser of all, and one printer.
///
/// `take(words(v))` is `v`, which [`Form::words`] prints as it was.
pub trait Form: Send + Sync + 'static {
    /// The value.
    type Value: Clone + PartialEq + Send + Sync;

    /// Returns the grammar of its words, such as `[rx|tx] <bytes>`.
    fn usage(&self) -> &'static str;

    /// Takes a value from words, of a command or of a document.
    ///
    /// # Errors
    /// If the words are not a value; the error says what would be.
    fn take(&self, args: &mut Args<'_>) -> Result<Self::Value, CliError>;

    /// Returns the one spelling of a value.
    fn words(&self, value: &Self::Value) -> String;

    /// Returns the value in the form of documents: its words, or a number or boolean.
    fn yaml(&self, value: &Self::Value) -> Value {
        Value::Text(self.words(value))
    }

    /// Reads the value of a document.
    ///
    /// # Errors
    /// A description of right values.
    fn read(&self, value: &Value) -> Result<Self::Value, String> {
        read_words(value, |args| self.take(args))
    }

    /// Returns the kind of value in documents that is the same as [`Form::read`], if any.
    fn kind(&self) -> Option<Kind> {
        None
    }

    /// Returns completions after the words `before`.
    fn complete(&self, before: &[&str]) -> Vec<String> {
        if before.is_empty() { usage_words(self.usage()) } else { Vec::new() }
    }
}

/// Reads a scalar of a document as words of a command.
///
/// # Errors
/// A description of right values.
pub fn read_words<T>(
    value: &Value,
    take: impl FnOnce(&mut Args<'_>) -> Result<T, CliError>,
) -> Result<T, String> {
    let text = match value {
        Value::Text(_) | Value::Int(_) | Value::Bool(_) => value.to_string(),
        other => return Err(format!("words, not {}", other.kind())),
    };
    let right = |e: CliError| match e {
        CliError::BadArgument { expected, .. } => expected,
        other => other.to_string(),
    };
    let mut args = Args::parse(&text).map_err(right)?;
    let taken = take(&mut args).map_err(right)?;
    args.end().map_err(right)?;
    Ok(taken)
}

/// A whole number.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Placeholder in the grammar, such as `<seconds>`.
    pub usage: &'static str,
    /// Name of the argument in errors.
    pub name: &'static str,
    /// Least and greatest number.
    pub range: (u32, u32),
}

impl Form for Number {
    type Value = u32;

    fn usage(&self) -> &'static str {
        self.usage
    }

    fn take(&self, args: &mut Args<'_>) -> Result<u32, CliError> {
        let (least, most) = self.range;
        args.number(self.name, least.into(), most.into()).map(|n| n as u32)
    }

    fn words(&self, value: &u32) -> String {
        value.to_string()
    }

    fn yaml(&self, value: &u32) -> Value {
        Value::from(*value)
    }

    fn kind(&self) -> Option<Kind> {
        Some(Kind::Int(self.range.0.into(), self.range.1.into()))
    }
}

/// `enable` or `disable`; a boolean in documents.
#[derive(Clone, Copy, Debug)]
pub struct Switch(
    /// Name of the argument in errors.
    pub &'static str,
);

impl Form for Switch {
    type Value = bool;

    fn usage(&self) -> &'static str {
        "enable|disable"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<bool, CliError> {
        args.enable_disable(self.0)
    }

    fn words(&self, value: &bool) -> String {
        if *value { "enable" } else { "disable" }.into()
    }

    fn yaml(&self, value: &bool) -> Value {
        Value::Bool(*value)
    }

    fn read(&self, value: &Value) -> Result<bool, String> {
        match value {
            Value::Bool(on) => Ok(*on),
            _ => Err("true or false".into()),
        }
    }

    fn kind(&self) -> Option<Kind> {
        Some(Kind::Bool)
    }
}

/// A value, or a word in its place for none.
#[derive(Clone, Copy, Debug)]
pub struct Optional<F> {
    /// Grammar of both: `<bytes> | disable`.
    pub usage: &'static str,
    /// The word for none.
    pub none: &'static str,
    /// The spelling of a value.
    pub form: F,
}

impl<F: Form> Form for Optional<F> {
    type Value = Option<F::Value>;

    fn usage(&self) -> &'static str {
        self.usage
    }

    fn take(&self, args: &mut Args<'_>) -> Result<Self::Value, CliError> {
        if args.keyword(self.none) { Ok(None) } else { self.form.take(args).map(Some) }
    }

    fn words(&self, value: &Self::Value) -> String {
        value.as_ref().map_or_else(|| self.none.into(), |value| self.form.words(value))
    }

    fn yaml(&self, value: &Self::Value) -> Value {
        value.as_ref().map_or_else(|| Value::from(self.none), |value| self.form.yaml(value))
    }

    fn read(&self, value: &Value) -> Result<Self::Value, String> {
        self.form.read(value).map(Some)
    }

    fn kind(&self) -> Option<Kind> {
        self.form.kind()
    }

    fn complete(&self, before: &[&str]) -> Vec<String> {
        let mut all = self.form.complete(before);
        all.extend(before.is_empty().then(|| self.none.to_owned()));
        all
    }
}

/// A type whose values are words.
pub trait Worded: Copy + PartialEq + Send + Sync + 'static {
    /// Grammar of the words: `rx|tx|both`.
    const USAGE: &'static str;
    /// The words.
    const WORDS: &'static [&'static str];
    /// The values, in the order of their words.
    const VALUES: &'static [Self];

    /// Takes one of the words; `name` is the argument's in errors.
    ///
    /// # Errors
    /// If the next argument is none of them.
    fn take(name: &str, args: &mut Args<'_>) -> Result<Self, CliError> {
        let word = args.choice(name, Self::WORDS)?;
        let at = Self::WORDS.iter().position(|other| *other == word);
        at.and_then(|at| Self::VALUES.get(at)).copied().ok_or_else(|| args.bad(name, Self::USAGE))
    }

    /// Returns its word.
    fn word(self) -> &'static str {
        let at = Self::VALUES.iter().position(|value| *value == self);
        at.and_then(|at| Self::WORDS.get(at)).copied().unwrap_or_default()
    }
}

/// One of some words.
#[derive(Clone, Copy, Debug)]
pub struct Word<T> {
    name: &'static str,
    of: PhantomData<fn() -> T>,
}

impl<T: Worded> Word<T> {
    /// The words of a type. `name` is the argument's in errors.
    pub const fn new(name: &'static str) -> Word<T> {
        Word { name, of: PhantomData }
    }
}

impl<T: Worded> Form for Word<T> {
    type Value = T;

    fn usage(&self) -> &'static str {
        T::USAGE
    }

    fn take(&self, args: &mut Args<'_>) -> Result<T, CliError> {
        T::take(self.name, args)
    }

    fn words(&self, value: &T) -> String {
        value.word().into()
    }

    fn kind(&self) -> Option<Kind> {
        Some(Kind::Word(T::WORDS))
    }
}
