//! Tests wait for events, never for time.

use super::{Source, tests_begin};

/// Mark in the comment above a sleep that sets a pace, rather than hopes that something has
/// happened meanwhile.
const PACED: &str = "Paced:";

pub fn check(source: &Source) -> Vec<String> {
    let (sleep, mark) = match source.path.rsplit('.').next() {
        Some("rs") => ("thread::sleep(", "//"),
        Some("py") => ("time.sleep(", "#"),
        _ => return Vec::new(),
    };
    let begin = tests_begin(source);
    let mut findings = Vec::new();
    let mut paced = false;
    for (number, line) in source.lines() {
        if number >= begin && line.contains(sleep) && !paced {
            let what = format_args!("a test sleeps; wait for what it waits for instead");
            findings.push(source.finding(number, what));
        }
        let comment = line.trim_start().starts_with(mark);
        paced = comment && (paced || line.contains(PACED));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn sleeping_tests_are_found() {
        let sleep = format!("    std::thread::{}(x);", "sleep");
        let text = format!("{sleep}\n#[cfg(test)]\n{sleep}\n");
        let findings = check(&source("crates/a/src/a.rs", &text));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("crates/a/src/a.rs:3: a test sleeps"), "{findings:?}");
        let paced = format!("    // {PACED} a rate\n    // of 10/s.\n{sleep}\n");
        assert!(check(&source("tests/a.rs", &paced)).is_empty());
        assert_eq!(check(&source("tests/a.rs", &format!("{paced}{sleep}\n"))).len(), 1);
    }
}
