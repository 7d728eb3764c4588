//! Spellings of values.

use thalweg_cli::{Args, CliError};
use thalweg_config::declare::{Kind, Value};
use thalweg_engine::setting::Form;

/// `on` or `off`; a boolean in documents.
#[derive(Clone, Copy, Debug)]
pub struct OnOff(
    /// Name of the argument in errors.
    pub &'static str,
);

impl Form for OnOff {
    type Value = bool;

    fn usage(&self) -> &'static str {
        "on|off|enable|disable"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<bool, CliError> {
        let word = args.choice(self.0, &["on", "off", "enable", "disable"])?;
        Ok(matches!(word, "on" | "enable"))
    }

    fn words(&self, value: &bool) -> String {
        if *value { "on" } else { "off" }.into()
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
