//! Lines of comments are at most 100 columns wide: rustfmt leaves them as they are.

use super::Source;

const WIDTH: usize = 100;

pub fn check(source: &Source) -> Vec<String> {
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
        // Nor can a row of a table.
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
}
