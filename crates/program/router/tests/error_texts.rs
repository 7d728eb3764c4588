//! The texts of all errors, in one list: it is what a reviewer reads, and what must not change once
//! scripts look for it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What an error's attribute begins with.
const ATTRIBUTE: &str = "#[error(";

/// Adds the texts of a folder's files, each with the crate's folder before it.
fn collect(dir: &Path, place: &str, rows: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, place, rows);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let texts = source.split(ATTRIBUTE).skip(1).filter_map(literal);
            rows.extend(texts.map(|text| format!("{place:<16} {text}")));
        }
    }
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
fn strings_over_several_lines_are_one() {
    assert_eq!(
        literal("\"no \\\n    room for `{0}` \\\"x\\\"\")]").unwrap(),
        "no room for `{0}` \"x\""
    );
    assert_eq!(literal("transparent)]"), None);
}
