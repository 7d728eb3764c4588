//! Labels as text.

use crate::rib::{Labels, Mark, Mode};
use std::fmt;
use thalweg_wire::mpls::{Label, MAX_LABEL, label};

/// Labels with a meaning of their own, as VPP writes them (RFC 3032 section 2.1, RFC 6790, RFC
/// 5586).
const NAMES: [(&str, Label); 6] = [
    ("ip4-explicit-null", label::IPV4_EXPLICIT_NULL),
    ("router-alert", label::ROUTER_ALERT),
    ("ipv6-explicit-null", label::IPV6_EXPLICIT_NULL),
    ("implicit-null", label::IMPLICIT_NULL),
    ("entropy-label-indicator", label::ENTROPY_INDICATOR),
    ("gal", label::GAL),
];
/// Short words for some of them.
const SHORT_NAMES: [(&str, Label); 5] = [
    ("e-nul", label::IPV4_EXPLICIT_NULL),
    ("r-alt", label::ROUTER_ALERT),
    ("v6enl", label::IPV6_EXPLICIT_NULL),
    ("i-nul", label::IMPLICIT_NULL),
    ("pop", label::IMPLICIT_NULL),
];

/// Words that are labels, for errors.
pub const LABEL_WORDS: &str = "a number up to 1048575, or a name such as `implicit-null'";

/// Returns the label of a word: a number up to 1048575, or a name such as `implicit-null`.
#[must_use]
pub fn label_of(word: &str) -> Option<Label> {
    let named = NAMES.iter().chain(&SHORT_NAMES).find(|(name, _)| *name == word);
    let number = || word.parse().ok().map(Label).filter(|l| *l <= MAX_LABEL);
    named.map(|(_, label)| *label).or_else(number)
}

/// Labels below have a meaning of their own (RFC 7274), and no paths to be followed.
pub(crate) const FIRST_FREE: Label = Label(16);

/// Returns the label that a path follows, by its number.
#[must_use]
pub fn via_label_of(number: u32) -> Option<Label> {
    Some(Label(number)).filter(|label| (FIRST_FREE..=MAX_LABEL).contains(label))
}

/// Returns the name of a label, or its number.
#[must_use]
pub fn label_text(label: Label) -> String {
    let named = NAMES.iter().find(|(_, l)| *l == label);
    named.map_or_else(|| label.to_string(), |(name, _)| (*name).to_owned())
}

/// Writes the labels of a path behind its other words: ` out-labels 16 17 ttl 9 exp 5`, perhaps
/// with the mode, or nothing.
pub(crate) fn write_labels(labels: &Labels, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if labels.as_slice().is_empty() {
        return Ok(());
    }
    f.write_str(" out-labels")?;
    for (label, mark) in labels.iter() {
        write!(f, " {}", label_text(label))?;
        if mark.ttl != Mark::USUAL.ttl {
            write!(f, " ttl {}", mark.ttl)?;
        }
        if mark.class != Mark::USUAL.class {
            write!(f, " exp {}", mark.class)?;
        }
    }
    match labels.mode() {
        Mode::Pipe => Ok(()),
        mode => write!(f, " {}", mode.word()),
    }
}

impl Labels {
    /// Returns the stack as `show ip fib` and `show mpls fib` print it: `labels:[[16 pipe ttl:0
    /// exp:0]]`.
    #[must_use]
    pub fn listed(&self) -> String {
        let mode = self.mode().word();
        let one = |(l, mark): (Label, Mark)| {
            format!("[{} {mode} ttl:{} exp:{}]", label_text(l), mark.ttl, mark.class)
        };
        let all: Vec<String> = self.iter().map(one).collect();
        format!("labels:[{}]", all.join(" "))
    }
}
