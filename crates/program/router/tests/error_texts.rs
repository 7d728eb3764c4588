//! The texts of all errors, in one list: it is what a reviewer reads, and what must not change once
//! scripts look for it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Start of an error's attribute.
const ATTRIBUTE: &str = "#[error(";

/// Functions that make errors of texts.
const MAKERS: &[&str] = &[
    "Refused::new(",
    "CliError::failed(",
    "CliError::with_code(",
    "DeviceError::Failed(",
    ".because(",
];

/// Adds the texts of a folder's files, each with the crate's folder before it.
fn collect(dir: &Path, place: &str, rows: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, place, rows);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let texts = source.split(ATTRIBUTE).skip(1).filter_map(literal);
            let program = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let texts = texts.chain(made(program));
            rows.extend(texts.map(|text| format!("{place:<16} {text}")));
        }
    }
}

/// The texts that errors are made of, as arguments or by a name that a statement before gives them.
fn made(source: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for maker in MAKERS {
        for (at, _) in source.match_indices(maker) {
            let arguments = balanced(&source[at + maker.len()..]);
            let found = literals(arguments);
            if !found.is_empty() {
                texts.extend(found);
                continue;
            }
            let names = arguments.split(|c: char| !c.is_alphanumeric() && c != '_');
            let given = names.filter(|name| !name.is_empty()).filter_map(|name| {
                let begin = source[..at].rfind(&format!("let {name} = "))?;
                let is_near = source[begin..at].lines().count() < 12;
                is_near.then(|| balanced(&source[begin..at]))
            });
            texts.extend(given.flat_map(literals));
        }
    }
    texts
}

/// The beginning of a source, up to the end of the statement or of the parentheses that it is in.
fn balanced(source: &str) -> &str {
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    for (at, c) in source.char_indices() {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' if depth == 0 => return &source[..at],
            ')' | '}' | ']' => depth -= 1,
            ';' if depth == 0 => return &source[..at],
            _ => {}
        }
    }
    source
}

/// The strings of several words in a source.
fn literals(mut source: &str) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(at) = source.find('"') {
        source = &source[at..];
        let is_text = |text: &String| text.contains(' ') && text.contains(char::is_alphabetic);
        texts.extend(literal(source).filter(is_text));
        source = &source[1 + end_of(&source[1..])..];
    }
    texts
}

/// The place behind the quotation mark that ends a string.
fn end_of(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let is_end = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// The string that `source` begins with, as one line.
fn literal(source: &str) -> Option<String> {
    let mut characters = source.trim_start().strip_prefix('"')?.chars().peekable();
    let mut text = String::new();
    while let Some(c) = characters.next() {
        match c {
            '"' => return Some(text),
            '\\' => match characters.next()? {
                // The string goes on at the next line's first word.
                '\n' => while characters.next_if(|c| c.is_whitespace()).is_some() {},
                'n' => text.push_str("\\n"),
                other => text.push(other),
            },
            c => text.push(c),
        }
    }
    None
}

/// The crates below `crates`, by the names that their folders have there.
fn crates(root: &Path) -> Vec<(String, std::path::PathBuf)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.join("Cargo.toml").is_file() {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.push((name, path.join("src")));
            } else if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

#[test]
fn all_errors_are_listed() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut rows = BTreeSet::new();
    for (name, source) in crates(root) {
        collect(&source, &name, &mut rows);
    }
    let table: String = rows.iter().map(|row| format!("{row}\n")).collect();
    thalweg_testkit::golden!("tests/golden/error_texts.txt", table);
}

#[test]
fn texts_that_errors_are_made_of_are_found() {
    let source = r#"
        return Err(Refused::new(-7, "a direct one (in parentheses)"));
        let text = match n {
            0 => format!("one of {n}"),
            _ => "the \"other\" one".into(),
        };
        let none = "no text of an error";
        return Err(CliError::with_code(text, -6));
        e.map_err(|e| Refused::new(UNSUPPORTED, e))"#;
    let mut found = made(source);
    found.sort();
    assert_eq!(found, ["a direct one (in parentheses)", "one of {n}", "the \"other\" one"]);
}

#[test]
fn strings_over_several_lines_are_one() {
    assert_eq!(
        literal("\"no \\\n    room for `{0}` \\\"x\\\"\")]").unwrap(),
        "no room for `{0}` \"x\""
    );
    assert_eq!(literal("transparent)]"), None);
}
