//! Declared settings as `show settings` lists them.

use super::form::Form;
use serde_json::{Value as Json, json};
use thalweg_config::declare::Node;

/// A setting with its value, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The command that sets it, with the interface that it is of, and without the value.
    pub command: String,
    /// Name of the interface; `None` if it is the router's.
    pub interface: Option<String>,
    /// Its key in documents.
    pub key: String,
    /// Grammar of its values, which names their unit: `<seconds>`.
    pub takes: &'static str,
    /// Value in force, in words and in the form of documents; `None` if none is in force.
    pub value: Option<(String, Json)>,
    /// The value without a setting.
    pub default: (String, Json),
}

impl Shown {
    /// Describes a value of a form.
    pub fn of<F: Form>(
        form: &F,
        command: String,
        key: String,
        value: Option<&F::Value>,
        default: &F::Value,
    ) -> Shown {
        let both = |value: &F::Value| (form.words(value), json!(Node::from(form.yaml(value))));
        let (value, default) = (value.map(both), both(default));
        Shown { command, interface: None, key, takes: form.usage(), value, default }
    }

    /// Returns whether the value is another one than it would be without a setting.
    pub fn differs(&self) -> bool {
        self.value.as_ref().is_some_and(|value| *value != self.default)
    }

    /// Returns it as JSON, as a setting of a feature.
    pub fn json(&self, feature: &str) -> Json {
        json!({
            "feature": feature,
            "setting": self.command,
            "interface": self.interface,
            "key": self.key,
            "value": self.value.as_ref().map(|(_, json)| json),
            "default": self.default.1,
            "differs": self.differs(),
            "takes": self.takes,
        })
    }
}
