//! Comparing text with a committed file.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Compares `actual` with the file at `path`, relative to the crate's root.
///
/// With `UPDATE_GOLDEN=1` in the environment the file is written instead.
///
/// ```no_run
/// thalweg_testkit::golden!("tests/golden/show_interface.txt", "text");
/// ```
///
/// # Panics
/// If they differ, with the lines that do.
#[macro_export]
macro_rules! golden {
    ($path:literal, $actual:expr $(,)?) => {
        $crate::check_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path), $actual.as_ref())
    };
}

/// Like [`golden!`], with a whole path.
///
/// # Panics
/// If the file and `actual` differ, or the file is missing.
#[track_caller]
#[expect(clippy::panic, reason = "this is how a test fails")]
pub fn check_golden(path: impl AsRef<Path>, actual: &str) {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1");
    if let Err(error) = compare(path.as_ref(), actual, update) {
        panic!("{error:#}");
    }
}

fn compare(path: &Path, actual: &str, update: bool) -> Result<()> {
    if update {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
        }
        return fs::write(path, actual).with_context(|| format!("write {}", path.display()));
    }
    let hint = "UPDATE_GOLDEN=1 writes what the test got";
    let expected = fs::read_to_string(path)
        .with_context(|| format!("cannot read {}; {hint}", path.display()))?;
    if expected == actual {
        return Ok(());
    }
    bail!("{} differs (- file, + test); {hint}\n{}", path.display(), difference(&expected, actual))
}

/// The lines between the common beginning and the common end, with up to two lines of each.
fn difference(expected: &str, actual: &str) -> String {
    const CONTEXT: usize = 2;
    const LIMIT: usize = 60;
    let old: Vec<_> = expected.split_inclusive('\n').collect();
    let new: Vec<_> = actual.split_inclusive('\n').collect();
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();

    let mut text = format!("from line {}:\n", head + 1);
    let mut show = |mark: char, lines: &[&str]| {
        for line in lines.iter().take(LIMIT) {
            // Blanks and missing ends of line are what one overlooks.
            let shown = line.strip_suffix('\n').map_or_else(
                || format!("{line} (no end of line)"),
                |line| match line.strip_suffix([' ', '\t', '\r']) {
                    Some(_) => line.escape_debug().to_string() + "$",
                    None => line.to_owned(),
                },
            );
            let _ = writeln!(text, "{mark} {shown}");
        }
        if lines.len() > LIMIT {
            let _ = writeln!(text, "{mark} ({} more lines)", lines.len() - LIMIT);
        }
    };
    show(' ', &old[head.saturating_sub(CONTEXT)..head]);
    show('-', &old[head..old.len() - tail]);
    show('+', &new[head..new.len() - tail]);
    show(' ', &old[old.len() - tail..old.len() - tail + tail.min(CONTEXT)]);
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_difference_shows_its_lines() {
        let text = difference("a\nb\nc\nd\ne\n", "a\nb\nX \nd\ne\n");
        assert_eq!(text, "from line 3:\n  a\n  b\n- c\n+ X $\n  d\n  e\n");
        assert!(difference("a\n", "a").contains("no end of line"));
    }

    #[test]
    fn files_are_compared_and_rewritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/show.txt");
        assert!(compare(&path, "x\n", false).unwrap_err().to_string().contains("UPDATE_GOLDEN"));
        compare(&path, "x\n", true).unwrap();
        compare(&path, "x\n", false).unwrap();
        assert!(compare(&path, "y\n", false).unwrap_err().to_string().contains("- x\n+ y\n"));
    }

    proptest! {
        #[test]
        fn any_two_texts_can_be_told_apart(a in "[ab\n]{0,12}", b in "[ab\n]{0,12}") {
            difference(&a, &b);
        }
    }
}
