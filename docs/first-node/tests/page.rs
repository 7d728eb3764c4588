//! The pages show this crate's code.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

/// The text of all files below a folder.
fn texts(dir: &Path, out: &mut Vec<String>) {
    for entry in fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry").path()) {
        match entry.is_dir() {
            true => texts(&entry, out),
            false => out.push(fs::read_to_string(&entry).expect("text")),
        }
    }
}

/// Lines without their common indentation; empty lines stay empty.
fn without_indent(text: &str) -> String {
    let indent = |l: &str| l.len() - l.trim_start().len();
    let least = text.lines().filter(|l| !l.trim().is_empty()).map(indent).min().unwrap_or(0);
    text.lines().map(|l| l.get(least..).unwrap_or("").to_owned() + "\n").collect()
}

/// True if the lines of `part` stand somewhere in `text`, however far indented.
fn contains(text: &str, part: &str) -> bool {
    let (lines, n) = (text.lines().collect::<Vec<_>>(), part.lines().count());
    lines.windows(n).any(|w| without_indent(&w.join("\n")) == without_indent(part))
}

/// Each block of Rust or TOML is part of a file here, which `cargo test` has compiled.
#[test]
fn every_block_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![fs::read_to_string(root.join("Cargo.toml")).expect("a manifest")];
    texts(&root.join("src"), &mut files);
    texts(&root.join("tests"), &mut files);
    for (page, least) in [("first-node.md", 7), ("first-setting.md", 4)] {
        let text = fs::read_to_string(root.join("..").join(page)).expect("the page");
        let found = check(&text, &files);
        assert!(found >= least, "{page}: {found} blocks");
    }
}

/// Returns the number of blocks of Rust or TOML.
fn check(page: &str, files: &[String]) -> usize {
    let mut found = 0;
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (block, after) = after.split_once("\n```").expect("the end of a block");
        let (language, code) = block.split_once('\n').expect("a block");
        rest = after;
        if matches!(language, "rust" | "toml") {
            assert!(files.iter().any(|f| contains(f, code)), "not in the crate:\n{code}");
            found += 1;
        }
    }
    found
}
