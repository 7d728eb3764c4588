//! `thalctl`: runs commands on a running router, and writes one file for support. The program links
//! no part of the router.

#![forbid(unsafe_code)]

pub mod tech_support;

use clap::Parser;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::process::ExitCode;
use thalweg_cli::client::{Client, ClientError, Ended, interactive_at};
use thalweg_cli::paths;
use thalweg_cli::server::Listen;

/// Runs commands on a running router.
///
/// With words it runs one command; without, it opens a prompt on a terminal, or runs the commands
/// that are piped in, up to the first that fails.
#[derive(Parser)]
#[command(name = "thalctl", version, max_term_width = 100, after_help = EXAMPLES)]
struct Args {
    /// Socket of the router's command line: a path, or host:port
    #[arg(short, long, value_name = "SOCKET")]
    socket: Option<Listen>,
    /// The command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

impl Args {
    /// The router's socket.
    fn at(&self) -> Listen {
        self.socket.clone().unwrap_or_else(|| Listen::Unix(paths::client_socket()))
    }
}

const EXAMPLES: &str = "\
Examples:
  thalctl                                  a prompt, with completion and `?'
  thalctl show interface
  thalctl 'show errors | json'
  thalctl exec ./routes.cli                a relative path is fine
  thalctl < routes.cli
  thalctl -s /tmp/lab/cli.sock show runtime
  thalctl tech-support                     one file for whoever helps; name it if you like

The exit status is 0 if every command succeeded, 1 if one failed, 2 for invalid arguments.";

/// The program.
pub fn main() -> ExitCode {
    let args = Args::parse();
    match &args.command[..] {
        [word] if word == "tech-support" => return crate::tech_support::main(&args.at(), None),
        [word, file] if word == "tech-support" => {
            return crate::tech_support::main(&args.at(), Some(file));
        }
        _ => {}
    }
    match run(&args) {
        Ok(Ended::Ok) => ExitCode::SUCCESS,
        Ok(Ended::Failed | Ended::Cancelled) => ExitCode::FAILURE,
        // The reader of our output has seen enough.
        Err(ClientError::Output(e)) if e.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "thalctl: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<Ended, ClientError> {
    let at = args.at();
    let command = match &args.command[..] {
        [] if std::io::stdin().is_terminal() => return interactive_at(&at).map(|()| Ended::Ok),
        [] => {
            let mut script = String::new();
            std::io::stdin().read_to_string(&mut script)?;
            script.lines().map(|line| absolute(line) + "\n").collect()
        }
        words => absolute(&words.join(" ")),
    };
    if command.trim().is_empty() {
        return Ok(Ended::Ok);
    }
    let mut out = std::io::stdout();
    let ended = Client::connect_to(&at)?.stream(&command, &mut out)?;
    out.flush().map_err(ClientError::Output)?;
    Ok(ended)
}

/// The command with the path after `exec` made absolute: the router runs in another directory.
fn absolute(command: &str) -> String {
    let mut words = command.split_whitespace();
    let (Some(verb), Some(path), rest) = (words.next(), words.next(), words.next()) else {
        return command.to_owned();
    };
    let is_exec = verb.len() >= 2 && "exec".starts_with(verb);
    let relative = !path.starts_with(['/', '"', '\'']);
    match std::path::absolute(path) {
        // A path with blanks must be quoted, and is left to its writer.
        Ok(path) if is_exec && relative && rest.is_none_or(|word| word == "|") => {
            let tail = command.split_once('|').map(|(_, filter)| format!(" |{filter}"));
            format!("exec \"{}\"{}", path.display(), tail.unwrap_or_default())
        }
        _ => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Args::command().debug_assert();
        let args = Args::parse_from(["thalctl", "-s", "/x", "show", "int", "-s"]);
        assert_eq!(args.command, ["show", "int", "-s"]);
    }

    #[test]
    fn only_the_file_of_exec_is_made_absolute() {
        let here = std::env::current_dir().unwrap();
        let made = |name: &str| format!("exec \"{}\"", here.join(name).display());
        assert_eq!(absolute("exec a.cli"), made("a.cli"));
        assert_eq!(absolute("ex dir/a.cli"), made("dir/a.cli"));
        assert_eq!(absolute("exec a.cli | grep x"), made("a.cli") + " | grep x");
        for same in ["exec /a.cli", "exec \"a b\"", "exec", "e a.cli", "show exec", "", "exec a b"]
        {
            assert_eq!(absolute(same), same);
        }
    }
}
