//! No page is longer than people read, except those that a program writes.

use super::Source;

/// Words, tables and examples included.
const WORDS: usize = 4000;
const GENERATED: [&str; 1] = ["docs/performance-tables.md"];

pub fn check(source: &Source) -> Vec<String> {
    if !source.is("md") || GENERATED.contains(&source.path.as_str()) {
        return Vec::new();
    }
    // Past releases are not read again.
    let read = match source.path.as_str() {
        "CHANGELOG.md" => source.text.split("\n## 0").next().unwrap_or_default(),
        _ => source.text.as_str(),
    };
    match read.split_whitespace().count() {
        words if words > WORDS => {
            vec![source.finding(1, format_args!("{words} words; {WORDS} at most"))]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn long_pages_are_found() {
        let text = "word ".repeat(WORDS + 1);
        assert_eq!(check(&source("docs/a.md", &text)), ["docs/a.md:1: 4001 words; 4000 at most"]);
        assert!(check(&source(GENERATED[0], &text)).is_empty());
        assert!(check(&source("a.rs", &text)).is_empty());
        let log = format!("## Unreleased\n\n## 0.1.0\n{text}");
        assert!(check(&source("CHANGELOG.md", &log)).is_empty());
    }
}
