//! Habits that neither the compiler nor clippy knows. Each check reads the files that git has, and
//! reports what breaks its rule with file and line.

mod comments;
mod features;
mod files;
mod pages;
mod phrases;
mod sleeps;
mod subjects;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Options of `xtask tidy`.
#[derive(clap::Args)]
pub struct Options {
    /// Leave out the subjects of commits.
    #[arg(long)]
    no_subjects: bool,
}

/// A text file.
struct Source {
    /// Path from the repository's root.
    path: String,
    text: String,
}

impl Source {
    fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|own| own == extension)
    }

    /// Its lines, numbered from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(i, line)| (i + 1, line))
    }

    fn finding(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// Prints what it finds; whether that is nothing.
pub fn run(options: &Options) -> Result<bool> {
    let root = crate::root()?;
    let sources = sources(&root)?;
    let mut findings = Vec::new();
    for source in &sources {
        findings.extend(comments::check(source));
        findings.extend(phrases::check(source));
        findings.extend(sleeps::check(source));
        findings.extend(files::check(source));
        findings.extend(pages::check(source));
    }
    findings.extend(features::check(&sources));
    if !options.no_subjects {
        findings.extend(subjects::check(&root)?);
    }
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => println!("tidy: {} files", sources.len()),
        n => println!("tidy: {n} findings; CONTRIBUTING.md has the rules"),
    }
    Ok(findings.is_empty())
}

/// The text files that people write: known to git or new, but not ignored.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let list = git(root, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let mut sources = Vec::new();
    for path in list.split('\0').filter(|path| written_by_people(path)) {
        // One that was removed and not yet committed is still listed.
        let Ok(bytes) = fs::read(root.join(path)) else { continue };
        let text = String::from_utf8(bytes).with_context(|| format!("{path} is not UTF-8"))?;
        sources.push(Source { path: path.to_owned(), text });
    }
    ensure!(!sources.is_empty(), "git lists no files below {}", root.display());
    Ok(sources)
}

fn written_by_people(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    // Data of others, or of machines.
    let data =
        ["/data/", "fuzz/seeds/", "fuzz/corpus-crashes/"].iter().any(|dir| path.contains(dir));
    let text =
        ["rs", "md", "sh", "py", "go", "toml", "yaml", "yml", "service"].contains(&extension);
    !data && (text || name == "Makefile")
}

fn git(root: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new("git").current_dir(root).args(args).output().context("start git")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {}: {}", args.join(" "), error.trim());
    String::from_utf8(output.stdout).context("git printed what is not UTF-8")
}

/// Returns the line at which the tests of a file of Rust begin: all of it below `tests/`, else at
/// the module of tests.
fn tests_begin(source: &Source) -> usize {
    if source.path.starts_with("tests/")
        || source.path.contains("/tests/")
        || source.path.ends_with("/tests.rs")
    {
        return 1;
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let begin = lines.windows(2).position(|pair| {
        // A module in a file of its own ends with a semicolon.
        let apart = pair[1].trim_start().starts_with("mod ") && pair[1].ends_with(';');
        pair[0].trim_start() == "#[cfg(test)]" && !apart
    });
    begin.map_or(usize::MAX, |line| line + 1)
}

#[cfg(test)]
fn source(path: &str, text: &str) -> Source {
    Source { path: path.into(), text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_not_text_of_ours() {
        assert!(written_by_people("crates/wire/src/lib.rs") && written_by_people("Makefile"));
        assert!(!written_by_people("crates/sflow/tests/data/a.md"));
        assert!(!written_by_people("Cargo.lock") && !written_by_people("LICENSE"));
    }

    #[test]
    fn tests_are_told_from_code() {
        assert_eq!(tests_begin(&source("tests/smoke/tests/a.rs", "")), 1);
        assert_eq!(tests_begin(&source("crates/a/src/tests.rs", "")), 1);
        assert_eq!(tests_begin(&source("crates/a/src/a.rs", "x\n#[cfg(test)]\nmod tests {}")), 2);
        let apart = source("crates/a/src/a.rs", "#[cfg(test)]\nmod tests;\nx");
        assert_eq!(tests_begin(&apart), usize::MAX);
    }

    #[test]
    fn the_repository_is_read() {
        let sources = sources(&crate::root().unwrap()).unwrap();
        assert!(sources.iter().any(|source| source.path == "xtask/src/tidy/mod.rs"));
    }
}
