//! The command line of a benchmark.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// Options and words of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// Where to write the report as JSON.
    pub json: Option<PathBuf>,
    /// Longer rounds and more cases.
    pub full: bool,
    /// Words that select cases; all of them if none are given.
    pub only: Vec<String>,
}

impl Args {
    /// Reads the process's arguments. Nothing if it was not started to measure: `cargo test`
    /// starts benchmarks as well, without `--bench`.
    ///
    /// # Errors
    /// If there is an option that no benchmark knows.
    pub fn from_env() -> Result<Option<Args>> {
        Args::parse(std::env::args().skip(1))
    }

    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Args>> {
        let (mut args, mut measure) = (Args::default(), false);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--bench" => measure = true,
                "--json" => args.json = Some(words.next().context("--json needs a file")?.into()),
                "--full" => args.full = true,
                option if option.starts_with('-') => bail!(
                    "unknown option {option}; there are --json FILE, --full and words to select by"
                ),
                _ => args.only.push(word),
            }
        }
        Ok(measure.then_some(args))
    }

    /// Rounds of what is slow: compared with other programs, or over real interfaces.
    pub fn rounds(&self) -> usize {
        if self.full { 9 } else { 5 }
    }

    /// True if the words select a case of this name.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| name.contains(word.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Args>> {
        Args::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_select_and_options_are_known() {
        assert_eq!(parse("").unwrap(), None);
        let args = parse("--bench --json out.json L2").unwrap().unwrap();
        assert_eq!(args.json.as_deref(), Some("out.json".as_ref()));
        assert!(args.wants("an L2 path") && !args.wants("IPv4"));
        let args = parse("--bench --full").unwrap().unwrap();
        assert!(
            args.full
                && args.wants("anything")
                && args.rounds() > parse("--bench").unwrap().unwrap().rounds()
        );
        assert!(parse("--bench --jsn x").unwrap_err().to_string().contains("--jsn"));
        assert!(parse("--json").is_err());
    }
}
