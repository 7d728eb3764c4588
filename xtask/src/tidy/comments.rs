//! Lines of comments are at most 100 columns wide, as rustfmt leaves them alone, and their
//! sentences begin with a noun or a verb.

use super::Source;

const WIDTH: usize = 100;
/// Words that leave the reader waiting for the subject.
const OPENINGS: [&str; 6] = ["What", "It", "Of", "Those", "Whether", "Who"];

pub fn check(source: &Source) -> Vec<String> {
    let mut findings = wide(source);
    findings.extend(openings(source));
    findings
}

fn openings(source: &Source) -> Vec<String> {
    // Pages have headings that look like comments of scripts.
    if source.is("md") || source.path.starts_with("xtask/src/tidy/") {
        return Vec::new();
    }
    let found = source.lines().filter_map(|(number, line)| {
        let word = opening(line)?;
        Some(
            source.finding(number, format_args!("sentence begins with `{word}`; name the subject")),
        )
    });
    found.collect()
}

/// Returns the opening of a comment's sentence that leaves the reader waiting.
fn opening(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let marks = ["///", "//!", "//", "#"];
    let text = marks.iter().find_map(|mark| line.strip_prefix(mark))?.strip_prefix(' ')?;
    let mut sentences = text.split_inclusive([' ']).scan(true, |begins, word| {
        let first = std::mem::replace(begins, word.trim_end().ends_with(['.', '!', '?']));
        Some(first.then(|| word.trim_end().trim_end_matches([',', ':', ';', '.'])))
    });
    sentences.find_map(|first| first.filter(|word| OPENINGS.contains(word)))
}

fn wide(source: &Source) -> Vec<String> {
    let marks: &[&str] = match source.path.rsplit('.').next() {
        Some("rs" | "go") => &["//", "/*", "*"],
        Some("md") => return Vec::new(),
        _ => &["#"],
    };
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        let comment = marks.iter().any(|mark| line.trim_start().starts_with(mark));
        let width = line.chars().count();
        // A link cannot be broken.
        let link = line.contains("://") && line.split_whitespace().count() <= 3;
        // A row of a table cannot be broken either.
        let row = line.trim_start().trim_start_matches(['/', '!']).trim_start().starts_with('|');
        if comment && width > WIDTH && !link && !row {
            findings.push(
                source.finding(number, format_args!("comment of {width} columns; {WIDTH} at most")),
            );
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn wide_comments_are_found() {
        let wide = "x".repeat(WIDTH);
        let text = format!("/// {wide}\nlet a = \"{wide}\";\n/// short\n");
        let findings = check(&source("a.rs", &text));
        assert_eq!(findings, ["a.rs:1: comment of 104 columns; 100 at most"]);
        assert_eq!(check(&source("a.sh", &format!("# {wide}"))).len(), 1);
        assert!(check(&source("a.rs", &format!("//! | {wide} |"))).is_empty());
        assert!(check(&source("a.md", &format!("# {wide}"))).is_empty());
    }

    #[test]
    fn sentences_without_a_subject_in_front_are_found() {
        let text = "/// What it is.\n// Frames. It is full.\nlet it = \"a. It\";\n/// Item 2.\n";
        let findings = check(&source("a.rs", text));
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert_eq!(findings[0], "a.rs:1: sentence begins with `What`; name the subject");
        assert_eq!(check(&source("a.py", "# Who asks\n")).len(), 1);
        assert!(check(&source("a.md", "# What it does\n")).is_empty());
    }
}
