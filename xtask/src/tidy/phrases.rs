//! Phrases that an engineer would not say. ARCHITECTURE.md has the glossary with what to write
//! instead.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::Source;

/// Each with what is meant, as a regular expression of whole words.
const AVOIDED: &[(&str, &str)] = &[
    ("so many", "the number, or N"),
    ("as there may be", "the limit's name"),
    ("whom", "who"),
    ("shall", "must, will or should"),
    ("anew", "again"),
    ("somebody", "the user, a client"),
    ("hence", "so"),
    ("told", "given, reported, notified, set"),
    ("by and by", "gradually, in slices"),
    ("in vain", "without success, failed"),
    ("came to grief", "failed, panicked"),
    ("(?:is|are|was|were) no more", "deleted, gone"),
    ("for (?:people|machines)", "as text, as JSON"),
    ("(?:is|are|was|were) to be", "must be, will be"),
    ("group's", "multicast"),
    ("stations?", "host, MAC address"),
    ("super-packets?", "GSO packet"),
    ("errands?", "background task"),
    ("at any rate", "in any case, always"),
    ("lately|of late", "recently"),
    ("beside", "next to, alongside, compared with"),
    ("what is to go", "what it deletes"),
];

static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let all: Vec<_> = AVOIDED.iter().map(|(phrase, _)| format!("({phrase})")).collect();
    Regex::new(&format!(r"(?i)\b(?:{})\b", all.join("|"))).ok()
});

/// Between lines with these, a page may quote what is avoided.
const OFF: &str = "<!-- tidy: off -->";
const ON: &str = "<!-- tidy: on -->";

pub fn check(source: &Source) -> Vec<String> {
    let Some(pattern) = PATTERN.as_ref() else {
        return vec!["the list of phrases is no pattern".into()];
    };
    if source.path.starts_with("xtask/src/tidy/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut quoted = false;
    for (number, line) in source.lines() {
        quoted = (quoted || line.contains(OFF)) && !line.contains(ON);
        if quoted {
            continue;
        }
        for found in pattern.captures_iter(line) {
            let which = (0..AVOIDED.len()).find(|i| found.get(i + 1).is_some()).unwrap_or(0);
            let phrase = found.get(0).map_or("", |found| found.as_str());
            let instead = AVOIDED[which].1;
            findings.push(source.finding(number, format_args!("`{phrase}`; write: {instead}")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn avoided_phrases_are_found_as_whole_words() {
        let text = "It is told so many times.\nHenceforth, besides, the stationary.\n<!-- tidy: off -->\nwhom\n<!-- tidy: on -->\nWhom\n";
        let findings = check(&source("a.md", text));
        assert_eq!(
            findings,
            [
                "a.md:1: `told`; write: given, reported, notified, set",
                "a.md:1: `so many`; write: the number, or N",
                "a.md:6: `Whom`; write: who",
            ]
        );
    }

    #[test]
    fn each_phrase_is_a_pattern() {
        for (phrase, instead) in AVOIDED {
            assert!(Regex::new(phrase).is_ok() && !instead.is_empty(), "{phrase}");
        }
        assert!(PATTERN.is_some());
    }
}
