//! Rules in Open vSwitch's syntax: matches and actions.

pub mod action;
pub mod classifier;
pub mod key;
mod matching;
pub mod nat;
#[cfg(test)]
mod oracle;
pub mod set;
#[cfg(test)]
mod tests;
pub mod text;
mod unsupported;

pub use action::{Action, Ct};
pub use matching::Match;
pub(crate) use nat::Nat;
pub(crate) use text::AnyName;
pub use text::{Names, Rule, RuleError};

use thalweg_device::SwIfIndex;
/// Fuzzing entry: parses a rule. A valid rule survives printing and parsing.
pub fn fuzz_rule(data: &[u8]) {
    struct Ports;
    impl Names for Ports {
        fn number(&self, name: &str) -> Option<SwIfIndex> {
            name.strip_prefix("port")?.parse().ok()
        }
    }
    let text = String::from_utf8_lossy(data);
    let _ = Rule::parse_match(&text, &Ports);
    if let Ok(rule) = Rule::parse(&text, &Ports) {
        let written = rule.to_string();
        let again = Rule::parse(&written, &Ports);
        assert!(again.as_ref().is_ok_and(|again| *again == rule), "{text}: {written}: {again:?}");
    }
}
