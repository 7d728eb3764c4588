//! Builds test programs, and finds them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name, for example `graph/control`.
    pub name: String,
    pub path: PathBuf,
    /// The directory of its package, in which cargo would run it.
    pub dir: PathBuf,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    executable: Option<PathBuf>,
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    target: Target,
    #[serde(default)]
    profile: Profile,
}

#[derive(Deserialize, Default)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize, Default)]
struct Profile {
    test: bool,
}

/// Runs a step of the build, which prints as it goes.
pub fn step(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("start {}", shown(command)))?;
    ensure!(status.success(), "{} ended with {status}", shown(command));
    Ok(())
}

/// Runs a step that prints one line, such as the path of what it has built.
pub fn step_output(command: &mut Command) -> Result<OsString> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("start {}", shown(command)))?;
    ensure!(output.status.success(), "{} ended with {}", shown(command), output.status);
    let text = String::from_utf8(output.stdout).context("read what it printed")?;
    Ok(text.trim().into())
}

/// Makes cargo build tests or benchmarks, which `args` select, without running them.
pub fn programs(root: &Path, args: &[&str], env: &[(&str, OsString)]) -> Result<Vec<Program>> {
    let mut command = cargo(root);
    command.args(args).args(["--no-run", "--message-format=json-render-diagnostics"]);
    command.envs(env.iter().map(|(key, value)| (key, value)));
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("start {}", shown(&command)))?;
    if !output.status.success() {
        bail!("{} ended with {}", shown(&command), output.status);
    }
    parse(root, &String::from_utf8_lossy(&output.stdout))
}

/// The cargo that runs this program, in the repository's root.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn parse(root: &Path, messages: &str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message =
            serde_json::from_str(line).with_context(|| format!("read cargo's message {line}"))?;
        let Some(path) = message.executable.filter(|_| message.profile.test) else { continue };
        let dir =
            message.manifest_path.parent().context("a manifest is in a directory")?.to_owned();
        // Folders of crates and of features may have the same last name.
        let folder = dir.strip_prefix(root).unwrap_or(&dir).display().to_string();
        let package = folder.strip_prefix("crates/").unwrap_or(&folder);
        let kind = match message.target.kind.first().map(String::as_str) {
            Some("test") => format!("{package}/{}", message.target.name),
            Some("bin") => format!("{package}/bin-{}", message.target.name),
            Some("bench") => format!("{package}/{}", message.target.name),
            _ => package.to_owned(),
        };
        programs.push(Program { name: kind, path, dir });
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/graph/Cargo.toml","target":{"kind":["test"],"name":"control"},"profile":{"test":true},"executable":"/t/control-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/graph/Cargo.toml","target":{"kind":["lib"],"name":"thalweg_graph"},"profile":{"test":false},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/thalweg/Cargo.toml","target":{"kind":["bin"],"name":"thalweg"},"profile":{"test":false},"executable":"/t/thalweg"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let found = parse(Path::new("/w"), messages).unwrap();
        assert_eq!(
            found,
            [Program {
                name: "graph/control".into(),
                path: "/t/control-1".into(),
                dir: "/w/crates/graph".into(),
            }]
        );
    }
}
