//! Puts a run's tables into the pages of the documentation.
//!
//! A block of a page begins with a line `<!-- bench: TITLE -->` and ends with `<!-- end -->`.
//! `TITLE` is that of a table, or `targets`, or `runs`, or one of [`summary::blocks`]. The lines
//! between the two are replaced by the run's table with its notes and the time of measurement; a
//! block for which the run has nothing stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::markdown;
use crate::results::{Bench, Ran};
use crate::run::Results;
use crate::summary;
use crate::targets::{self, Reached};

const BEGIN: &str = "<!-- bench: ";
const END: &str = "<!-- end -->";
/// Most characters of a line of text.
const WIDTH: usize = 115;

/// The pages that have blocks, from the root of the tree.
pub const PAGES: [&str; 2] = ["docs/performance.md", "docs/performance-tables.md"];

/// Puts the last run's tables into the pages `files`.
pub fn put(out: &Path, files: &[&Path]) -> Result<()> {
    let results = Results::read(out)?;
    let reached = targets::reached(&results.benches);
    let mut blocks = blocks(&results, &reached);
    for file in files {
        let page = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let (page, kept) = fill(&page, &blocks).with_context(|| file.display().to_string())?;
        fs::write(file, &page).with_context(|| format!("write {}", file.display()))?;
        println!("{}: {} blocks unchanged", file.display(), kept.len());
        for title in kept {
            println!("  not in the last run: {title}");
        }
        blocks.retain(|title, _| !page.contains(&format!("{BEGIN}{title} -->")));
    }
    for title in blocks.keys() {
        println!("on no page: {title}");
    }
    Ok(())
}

/// The contents of each block.
fn blocks(results: &Results, reached: &[Reached]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (bench, text) in results.benches.iter().zip(&results.texts) {
        for (title, table) in tables(text) {
            let when = format!(
                "`{}`, {}, {:.1} % of the time stolen{}.\n\n",
                markdown::command(bench),
                span(bench),
                bench.steal_percent,
                bench.one().map_or(String::new(), |one| format!(
                    "; one processor {one} million bare steps/s"
                ))
            );
            all.insert(title.to_owned(), wrapped(&(when + table)));
        }
    }
    if results.is_whole {
        all.insert("targets".into(), wrapped(&markdown::targets(reached)));
        all.insert("runs".into(), wrapped(&runs(&results.ran, &results.benches)));
        for (title, text) in summary::blocks(&results.benches, reached) {
            all.insert(title.into(), wrapped(&text));
        }
    }
    all
}

/// The machine, and the runs on it.
fn runs(ran: &[Ran], benches: &[Bench]) -> String {
    let machine = benches.first().map(markdown::machine).unwrap_or_default();
    format!("{machine}\n\n{}", markdown::runs(ran, benches))
}

/// The time from beginning to end, with the day once.
fn span(bench: &Bench) -> String {
    let (day, from) = bench.started.split_once('T').unwrap_or(("", &bench.started));
    let to = bench.ended.split_once('T').map_or(bench.ended.as_str(), |(_, to)| to);
    let minute = |time: &str| time.get(..5).unwrap_or(time).to_owned();
    format!("{day} {}–{} UTC", minute(from), minute(to))
}

/// The tables of a benchmark's Markdown, by their titles.
fn tables(text: &str) -> Vec<(&str, &str)> {
    let sections = text.split("\n### ").skip(1);
    sections.filter_map(|s| s.split_once('\n')).map(|(title, rest)| (title, rest.trim())).collect()
}

/// Fills the page's blocks; the titles of those that were kept.
fn fill(page: &str, blocks: &BTreeMap<String, String>) -> Result<(String, Vec<String>)> {
    let (mut text, mut kept) = (String::with_capacity(page.len()), Vec::new());
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        text += line;
        text.push('\n');
        let Some(title) = line.strip_prefix(BEGIN).and_then(|t| t.strip_suffix(" -->")) else {
            ensure!(line != END, "line {}: the end of a block that did not begin", at + 1);
            continue;
        };
        let mut old = String::new();
        loop {
            match lines.next() {
                Some((_, END)) => break,
                Some((_, line)) if !line.starts_with(BEGIN) => old += &format!("{line}\n"),
                _ => bail!("line {}: the block `{title}' has no end, which is `{END}'", at + 1),
            }
        }
        match blocks.get(title) {
            Some(new) => text += &format!("\n{}\n\n", new.trim()),
            None => {
                kept.push(title.to_owned());
                text += &old;
            }
        }
        text += END;
        text.push('\n');
    }
    Ok((text, kept))
}

/// The same with long lines of text broken; tables stay as they are.
fn wrapped(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for line in text.lines() {
        if line.starts_with('|') {
            all += line;
        } else {
            let mut length = 0;
            for word in line.split(' ') {
                let n = word.chars().count();
                if length > 0 {
                    let breaks = length + 1 + n > WIDTH;
                    all.push(if breaks { '\n' } else { ' ' });
                    length = if breaks { 0 } else { length + 1 };
                }
                all += word;
                length += n;
            }
        }
        all.push('\n');
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(title: &str, text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(title.to_owned(), text.to_owned())])
    }

    #[test]
    fn blocks_are_replaced_and_the_rest_stays() {
        let page =
            "# A\n<!-- bench: T -->\nold\n<!-- end -->\ntext\n<!-- bench: U -->\nu\n<!-- end -->\n";
        let (text, kept) = fill(page, &with("T", "| new |\n")).unwrap();
        assert_eq!(
            text,
            "# A\n<!-- bench: T -->\n\n| new |\n\n<!-- end -->\ntext\n<!-- bench: U -->\nu\n<!-- end -->\n"
        );
        assert_eq!(kept, ["U"]);
        assert_eq!(fill(&text, &with("T", "| new |\n")).unwrap().0, text, "twice is once");
    }

    #[test]
    fn a_block_without_its_end_is_refused() {
        for page in ["<!-- bench: T -->\n", "<!-- bench: T -->\n<!-- bench: U -->\n<!-- end -->\n"]
        {
            assert!(fill(page, &with("T", "")).unwrap_err().to_string().contains("no end"));
        }
        assert!(fill("<!-- end -->\n", &with("T", "")).is_err());
    }

    #[test]
    fn tables_are_found_by_title() {
        let text = "\n## B\n\nabout\n\n### One\n\n| a |\n\nNote.\n\n### Two\n\n| b |\n";
        assert_eq!(tables(text), [("One", "| a |\n\nNote."), ("Two", "| b |")]);
    }

    #[test]
    fn text_is_wrapped_and_tables_are_not() {
        let long = "word ".repeat(50);
        let table = format!("| {long}|");
        let text = wrapped(&format!("{table}\n\n{long}"));
        assert!(text.starts_with(&table));
        assert!(text.lines().skip(1).all(|l| l.len() <= WIDTH), "{text}");
        assert_eq!(text.split_whitespace().count(), 102);
    }

    /// Blocks of the pages are complete, and each stands on one page, once.
    #[test]
    fn the_manual_has_blocks() {
        let mut all = Vec::new();
        for page in PAGES {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
            let page = fs::read_to_string(file).unwrap();
            let (same, titles) = fill(&page, &BTreeMap::new()).unwrap();
            assert_eq!(same, page);
            all.extend(titles);
        }
        let summary = summary::blocks(&[], &[]).into_iter().map(|(title, _)| title);
        for title in summary.chain(["targets", "runs"]) {
            assert!(all.iter().any(|t| t == title), "no page has a block `{title}'");
        }
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count, "a block is there twice");
    }
}
