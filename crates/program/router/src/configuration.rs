//! `thalweg config`: documents are checked here, all else is asked of a running router.

use crate::features::FEATURES;
use clap::Subcommand;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use thalweg_cli::client::{Client, Ended};
use thalweg_cli::server::Listen;
use thalweg_config::declare::{Catalog, Document};
use thalweg_feat_config::ConfigError;
use thalweg_graph::Control;

/// Works with the configuration as one YAML document.
///
/// The keys are those of vppcfg, and Thalweg's own below `thalweg`; docs/configuration.md lists
/// them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Socket of the router's command line: a path, or host:port
    #[arg(short, long, value_name = "SOCKET", global = true)]
    socket: Option<Listen>,
}

const EXAMPLES: &str = "\
Examples:
  thalweg config check lab.yaml            needs no router
  thalweg config dump > lab.yaml
  thalweg config plan lab.yaml             what would be done, as commands
  thalweg config apply lab.yaml --confirm 60
  thalweg config commit";

#[derive(Subcommand)]
enum Verb {
    /// Check a document without a running router
    Check {
        /// The document
        file: PathBuf,
    },
    /// Print the running configuration as a document
    Dump,
    /// Print the commands that apply a document, in order
    Plan {
        /// The document; default: the router's configuration file
        file: Option<PathBuf>,
        /// Print all of more than a hundred commands
        #[arg(short, long)]
        verbose: bool,
    },
    /// Apply a document; if a command fails, all changes are rolled back
    Apply {
        /// The document; default: the router's configuration file
        file: Option<PathBuf>,
        /// Apply what is possible, and keep the rest as unresolved
        #[arg(long)]
        best_effort: bool,
        /// Roll back after SECONDS unless `commit' confirms the change
        #[arg(long, value_name = "SECONDS")]
        confirm: Option<u32>,
        /// Print all of a plan of more than a hundred commands
        #[arg(short, long)]
        verbose: bool,
    },
    /// Show how the running configuration differs from the saved one, or from a document
    Diff {
        /// The document
        file: Option<PathBuf>,
        /// Compare with the configuration saved before the last one (1), the one before (2) and so
        /// on
        #[arg(long, value_name = "N", conflicts_with = "file")]
        rollback: Option<u32>,
        /// Print all of more than a hundred lines
        #[arg(short, long)]
        verbose: bool,
    },
    /// Save the running configuration
    Save {
        /// Target file; default: the router's configuration file
        file: Option<PathBuf>,
    },
    /// Save the running configuration and confirm a pending change
    Commit {
        /// Save nothing yet: without another `commit' within SECONDS, roll back to the saved
        /// configuration
        #[arg(long, value_name = "SECONDS")]
        confirm: Option<u32>,
    },
    /// Apply the configuration saved last (0), the one before (1) and so on
    Rollback {
        /// Number of revisions to go back
        revision: u32,
        /// Roll back after SECONDS unless `commit' confirms the change
        #[arg(long, value_name = "SECONDS")]
        confirm: Option<u32>,
        /// Print all of a plan of more than a hundred commands
        #[arg(short, long)]
        verbose: bool,
    },
}

/// All that may stand in a document.
///
/// # Errors
/// If features do not fit together: a mistake of the program.
pub fn catalog() -> Result<Catalog<Control>, ConfigError> {
    let all = [&thalweg_engine::ENGINE].into_iter().chain(FEATURES.iter().copied());
    let sections = all.flat_map(|f| f.sections()).collect();
    Catalog::new(sections).map_err(|e| ConfigError::Unavailable(e.to_string()))
}

fn check(file: &Path) -> Result<Document, ConfigError> {
    let text = thalweg_feat_config::store::read(file)?;
    Ok(catalog()?.read(&file.display().to_string(), &text)?)
}

/// The program.
pub fn main(args: &Args) -> ExitCode {
    match run(args) {
        Ok(code) => code,
        Err(Failure::Document(e)) => crate::fail(crate::USAGE, &e),
        Err(Failure::Router(e)) => crate::fail(crate::FAILED, &e),
    }
}

enum Failure {
    Document(ConfigError),
    Router(Box<dyn std::fmt::Display>),
}

fn run(args: &Args) -> Result<ExitCode, Failure> {
    let command = match &args.verb {
        Verb::Check { file } => {
            let n = check(file).map_err(Failure::Document)?.items().len();
            crate::say!("{}: valid, {n} settings", file.display());
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Dump => "show configuration".into(),
        Verb::Plan { file, verbose } => {
            with_file("config plan", file.as_deref(), true)? + shown(*verbose)
        }
        Verb::Apply { file, best_effort, confirm, verbose } => {
            // The router then keeps the faulty parts as unresolved.
            let command = with_file("config apply", file.as_deref(), !best_effort)?;
            let option = if *best_effort { " best-effort" } else { "" };
            command + option + &confirmed(*confirm) + shown(*verbose)
        }
        Verb::Diff { rollback: Some(n), verbose, .. } => {
            format!("config diff rollback {n}{}", shown(*verbose))
        }
        Verb::Diff { file, verbose, .. } => {
            with_file("config diff", file.as_deref(), true)? + shown(*verbose)
        }
        Verb::Save { file } => with_file("config save", file.as_deref(), false)?,
        Verb::Commit { confirm } => format!("config commit{}", confirmed(*confirm)),
        Verb::Rollback { revision, confirm, verbose } => {
            format!("config rollback {revision}{}{}", confirmed(*confirm), shown(*verbose))
        }
    };
    let at =
        args.socket.clone().unwrap_or_else(|| Listen::Unix(thalweg_cli::paths::client_socket()));
    let router = |e: &dyn std::fmt::Display| Failure::Router(Box::new(e.to_string()));
    let mut out = std::io::stdout();
    let mut client = Client::connect_to(&at).map_err(|e| router(&e))?;
    let ended = client.stream(&command, &mut out).map_err(|e| router(&e))?;
    out.flush().map_err(|e| router(&e))?;
    Ok(if ended == Ended::Ok { ExitCode::SUCCESS } else { ExitCode::from(crate::FAILED) })
}

fn confirmed(seconds: Option<u32>) -> String {
    seconds.map_or_else(String::new, |s| format!(" confirm {s}"))
}

fn shown(all: bool) -> &'static str {
    if all { " verbose" } else { "" }
}

/// Bytes of a document that takes a second or so to check.
const LONG: u64 = 2 << 20;

/// A command with the absolute path of a file: the router runs in another directory. A document is
/// checked first: its mistakes can be reported here.
fn with_file(command: &str, file: Option<&Path>, is_checked: bool) -> Result<String, Failure> {
    let Some(file) = file else { return Ok(command.to_owned()) };
    if is_checked {
        if std::fs::metadata(file).is_ok_and(|found| found.len() > LONG) {
            eprintln!("... checking {}", file.display());
        }
        check(file).map_err(Failure::Document)?;
    }
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    match path.to_str().filter(|p| !p.contains(['"', '\\', '\n'])) {
        Some(path) => Ok(format!("{command} \"{path}\"")),
        None => Err(Failure::Router(Box::new(format!(
            "{}: path contains a quote, backslash or newline",
            path.display()
        )))),
    }
}
