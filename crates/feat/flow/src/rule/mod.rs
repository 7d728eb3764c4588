//! Rules in Open vSwitch's words: what they match, what they do.

pub mod action;
pub mod classifier;
pub mod key;
pub mod matching;
#[cfg(test)]
mod tests;
pub mod text;

pub use action::{Action, Ct};
pub use matching::Match;
pub use text::{Names, Rule, RuleError};
