//! Tests wait for events, never for time.

use super::{Source, tests_begin};

/// Where a test sets a pace, rather than hopes that something has happened meanwhile.
const PACED: [(&str, &str); 1] =
    [("tests/smoke/src/soak.rs", "the soak's changes and its load have a rate")];

pub fn check(source: &Source) -> Vec<String> {
    let sleep = match source.path.rsplit('.').next() {
        Some("rs") => "thread::sleep(",
        Some("py") => "time.sleep(",
        _ => return Vec::new(),
    };
    if PACED.iter().any(|(path, _)| *path == source.path) {
        return Vec::new();
    }
    let begin = tests_begin(source);
    let sleeping = source.lines().filter(|(number, line)| *number >= begin && line.contains(sleep));
    sleeping
        .map(|(number, _)| {
            source.finding(number, "a test sleeps; wait for what it waits for instead")
        })
        .collect()
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
        assert!(check(&source(PACED[0].0, &text)).is_empty());
    }
}
