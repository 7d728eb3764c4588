//! `show version`: the program's version and build.

use serde_json::{Map, Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show version [verbose] [cmdline]`
pub struct ShowVersion;

/// The command.
pub static COMMAND: ShowVersion = ShowVersion;

/// Date and commit of the build, set by packagers.
pub(crate) const DATE: Option<&str> = option_env!("THALWEG_BUILD_DATE");
const COMMIT: Option<&str> = option_env!("THALWEG_BUILD_COMMIT");

impl Command<Control> for ShowVersion {
    fn path(&self) -> &'static str {
        "show version"
    }

    fn usage(&self) -> &'static str {
        "[verbose] [cmdline]"
    }

    fn help(&self) -> &'static str {
        "Show the program's version\n\
         `verbose' adds build details and the process id, `cmdline' the command line."
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut verbose, mut cmdline) = (false, false);
        while let Some(word) = args.one_of(&["verbose", "cmdline"])? {
            verbose |= word == "verbose";
            cmdline |= word == "cmdline";
        }
        args.end()?;
        let facts = facts();
        let words: Vec<String> =
            std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
        let mut object: Map<String, Value> =
            facts.iter().map(|(k, v)| (k.to_lowercase().replace(' ', "_"), json!(v))).collect();
        object.insert("cmdline".into(), json!(words));
        out.json(Value::Object(object));
        if !verbose && !cmdline {
            out.line(short());
        }
        if verbose {
            for (name, value) in facts {
                out.line(format_args!("{:<25} {value}", format!("{name}:")));
            }
        }
        if cmdline {
            out.line("Command line arguments:");
            for word in words {
                out.line(format_args!("  {word}"));
            }
        }
        Ok(Outcome::Done)
    }
}

pub(crate) fn version() -> String {
    format!("v{}", env!("CARGO_PKG_VERSION"))
}

fn profile() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

fn target() -> String {
    format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)
}

fn short() -> String {
    let date = DATE.map_or(String::new(), |d| format!(" at {d}"));
    let commit = COMMIT.map_or(String::new(), |c| format!(" from {c}"));
    format!("thalweg {} built as {} for {}{date}{commit}", version(), profile(), target())
}

fn facts() -> Vec<(&'static str, String)> {
    vec![
        ("Version", version()),
        ("Compile date", DATE.unwrap_or("not recorded").into()),
        ("Compile commit", COMMIT.unwrap_or("not recorded").into()),
        ("Compile profile", profile().into()),
        ("Compile target", target()),
        ("Current PID", std::process::id().to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_crates() {
        let text = short();
        let begin = format!("thalweg v{} built ", env!("CARGO_PKG_VERSION"));
        assert!(text.starts_with(&begin), "{text}");
        assert!(facts().iter().any(|(k, v)| *k == "Current PID" && v.parse::<u32>().is_ok()));
    }
}
