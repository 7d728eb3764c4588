//! Output filters, after a bar: `show errors | grep drop | head 5`.
//!
//! Filters work line by line as output arrives, so that they also serve a command that continues
//! over time.

use crate::error::CliError;
use crate::lexer::{Token, TokenKind};
use crate::output::Format;
use crate::pattern::Pattern;

/// Name, arguments and help of each filter.
pub(crate) const FILTERS: [(&str, &str, &str); 7] = [
    ("count", "", "Count the lines"),
    ("exclude", "<pattern>", "Leave out the lines that match"),
    ("grep", "[-i] [-v] <pattern>", "Keep the lines that match (-v: that do not; -i: any case)"),
    ("head", "[<lines>]", "Keep the first lines (10)"),
    ("include", "<pattern>", "Keep the lines that match"),
    ("json", "", "Print JSON, one document per line"),
    ("json-pretty", "", "Print JSON with indentation"),
];

/// The filters of one command.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    pub format: Format,
    stages: Vec<Stage>,
    /// Beginning of an incomplete line.
    partial: String,
}

#[derive(Debug)]
enum Stage {
    Grep { pattern: Pattern, keep: bool },
    Head { left: usize },
    Count { lines: usize },
}

impl Pipeline {
    /// Parses the filters after the first bar of `line`.
    pub(crate) fn parse(line: &str, tokens: &[Token<'_>]) -> Result<Self, CliError> {
        let mut pipeline = Self::default();
        if tokens.is_empty() {
            return Ok(pipeline);
        }
        for stage in tokens.split(|t| t.kind == TokenKind::Pipe).skip(1) {
            pipeline.stage(line, stage)?;
        }
        Ok(pipeline)
    }

    fn stage(&mut self, line: &str, tokens: &[Token<'_>]) -> Result<(), CliError> {
        let word = tokens.first().map_or("", |t| t.text);
        let name = filter_name(word)?;
        let rest = tokens.get(1..).unwrap_or_default();
        let fail = |message: String| Err(CliError::failed(format!("| {name}: {message}")));
        if matches!(name, "json" | "json-pretty") {
            if !self.stages.is_empty() {
                return fail("must come before the other filters".to_owned());
            }
            self.format = if name == "json" { Format::Json } else { Format::JsonPretty };
        }
        match name {
            "json" | "json-pretty" | "count" => {
                if let Some(extra) = rest.first() {
                    return fail(format!("takes no argument, found `{}'", extra.text));
                }
                if name == "count" {
                    self.stages.push(Stage::Count { lines: 0 });
                }
            }
            "head" => {
                let left = match rest {
                    [] => Some(10),
                    [n] => n.text.trim_start_matches('-').parse().ok(),
                    _ => None,
                };
                let Some(left) = left else {
                    return fail("expected a number of lines".to_owned());
                };
                self.stages.push(Stage::Head { left });
            }
            _ => self.stages.push(grep(line, name, rest)?),
        }
        Ok(())
    }

    /// Filters a piece of output and returns the result. Without filters, nothing is copied.
    pub(crate) fn pass_on(&mut self, text: String) -> String {
        if self.stages.is_empty() {
            return text;
        }
        let mut passed = String::new();
        self.push(&text, &mut passed);
        passed
    }

    /// Filters a piece of output and appends the result to `sink`.
    pub(crate) fn push(&mut self, text: &str, sink: &mut String) {
        if self.stages.is_empty() {
            sink.push_str(text);
            return;
        }
        for piece in text.split_inclusive('\n') {
            let Some(end) = piece.strip_suffix('\n') else {
                self.partial.push_str(piece);
                continue;
            };
            if self.partial.is_empty() {
                pass(&mut self.stages, end, sink);
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.push_str(end);
                pass(&mut self.stages, &line, sink);
            }
        }
    }

    /// Flushes the filters once the output is complete.
    pub(crate) fn finish(&mut self, sink: &mut String) {
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            pass(&mut self.stages, &line, sink);
        }
        for i in 0..self.stages.len() {
            if let Stage::Count { lines } = self.stages[i] {
                pass(&mut self.stages[i + 1..], &format!("Count: {lines} lines"), sink);
            }
        }
    }
}

/// Sends a line through the stages.
fn pass(stages: &mut [Stage], line: &str, sink: &mut String) {
    for stage in stages {
        match stage {
            Stage::Grep { pattern, keep } => {
                if pattern.matches(line) != *keep {
                    return;
                }
            }
            Stage::Head { left: 0 } => return,
            Stage::Head { left } => *left -= 1,
            Stage::Count { lines } => {
                *lines += 1;
                return;
            }
        }
    }
    sink.push_str(line);
    sink.push('\n');
}

fn filter_name(word: &str) -> Result<&'static str, CliError> {
    let names = FILTERS.iter().map(|(name, ..)| *name);
    let found: Vec<_> = names.clone().filter(|n| !word.is_empty() && n.starts_with(word)).collect();
    match found[..] {
        [one] => Ok(one),
        // `json` is a keyword and also a prefix of `json-pretty`.
        [first, ..] if first == word || first == "json" => Ok(first),
        [_, _, ..] => Err(CliError::Ambiguous {
            path: "|".to_owned(),
            input: word.to_owned(),
            candidates: found.iter().map(|n| (*n).to_owned()).collect(),
        }),
        [] => Err(CliError::unknown("|", word, names.map(str::to_owned).collect())),
    }
}

fn grep(line: &str, name: &str, mut rest: &[Token<'_>]) -> Result<Stage, CliError> {
    let (mut any_case, mut keep) = (false, name != "exclude");
    while let [flag, more @ ..] = rest {
        match flag.text {
            "-i" if name == "grep" => any_case = true,
            "-v" if name == "grep" => keep = false,
            _ => break,
        }
        rest = more;
    }
    let text = match rest {
        [] => {
            let message = format!("| {name}: expected a pattern");
            return Err(CliError::failed(message));
        }
        [one] => one.text,
        [first, .., last] => &line[first.start..last.end],
    };
    let pattern =
        Pattern::new(text, any_case).map_err(|e| CliError::failed(format!("| {name}: {e}")))?;
    Ok(Stage::Grep { pattern, keep })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokenize;

    fn run(filters: &str, pieces: &[&str]) -> Result<String, String> {
        let tokens = tokenize(filters).map_err(|e| e.to_string())?;
        let mut pipeline = Pipeline::parse(filters, &tokens).map_err(|e| e.to_string())?;
        let mut sink = String::new();
        for piece in pieces {
            pipeline.push(piece, &mut sink);
        }
        pipeline.finish(&mut sink);
        Ok(sink)
    }

    #[test]
    fn lines_are_whole_whatever_the_pieces() {
        let pieces = ["rx 1\nt", "x 2\nrx ", "3", "\nrx 4"];
        assert_eq!(run("| grep rx", &pieces).unwrap(), "rx 1\nrx 3\nrx 4\n");
        assert_eq!(run("|grep -v rx", &pieces).unwrap(), "tx 2\n");
        assert_eq!(run("| grep -i RX | head 1", &pieces).unwrap(), "rx 1\n");
        assert_eq!(run("| include rx 3", &pieces).unwrap(), "rx 3\n");
        assert_eq!(run("| exclude 'rx 3' | count", &pieces).unwrap(), "Count: 3 lines\n");
        assert_eq!(run("| count | grep Count", &pieces).unwrap(), "Count: 4 lines\n");
        assert_eq!(run("| he 2", &pieces).unwrap(), "rx 1\ntx 2\n");
        assert_eq!(run("| head -1", &pieces).unwrap(), "rx 1\n");
        assert_eq!(run("", &pieces).unwrap(), "rx 1\ntx 2\nrx 3\nrx 4");
    }

    #[test]
    fn errors_name_the_filter() {
        for (filters, error) in [
            ("| sort", "|: unknown input `sort'"),
            ("|", "|: unknown input `'"),
            ("| grep", "| grep: expected a pattern"),
            ("| head x", "| head: expected a number"),
            ("| count 3", "| count: takes no argument"),
            ("| head 3 | json", "| json: must come before"),
        ] {
            let got = run(filters, &[]).unwrap_err();
            assert!(got.starts_with(error), "{filters}: {got}");
        }
    }

    #[test]
    fn json_sets_the_form() {
        for (filters, format) in
            [("| json", Format::Json), ("| j", Format::Json), ("| json-p", Format::JsonPretty)]
        {
            let tokens = tokenize(filters).unwrap();
            assert_eq!(Pipeline::parse(filters, &tokens).unwrap().format, format);
        }
    }
}
