//! `thalweg`: the router, its sFlow decoder and its demonstration.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// A software router that forwards packets in vectors and measures what passes through it.
#[derive(Parser)]
#[command(name = "thalweg", version, max_term_width = 100, after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  thalweg demo                       run a demonstration in its own namespaces
  thalweg run -c /etc/thalweg/startup.conf
  thalctl show interface             query a running router
  thalweg sflow decode -p 6343       print the sFlow datagrams that arrive";

#[derive(Subcommand)]
enum Command {
    /// Run the router
    Run(thalweg_program_router::run::Args),
    /// Check a configuration, and have a running router show, plan, apply or save one
    Config(thalweg_program_router::configuration::Args),
    /// Work with sFlow datagrams
    Sflow(thalweg_program_sflow::Args),
    /// Run the standalone sFlow agent, configured as hsflowd is
    Agent(thalweg_program_sflow::agent::Args),
    /// Show a router between two hosts at work
    Demo(thalweg_program_demo::Args),
    /// Test a device with load
    Load(Box<thalweg_program_load::Args>),
    /// Describe the binary API
    Api(thalweg_program_router::api::Args),
    /// Print the version
    Version,
}

/// True if these are startup stanzas without `run` before them, as programs that start VPP's binary
/// write them.
fn are_stanzas(args: &[OsString]) -> bool {
    let word = |i: usize| args.get(i).and_then(|a| a.to_str()).unwrap_or_default();
    word(0) == "-c" || word(0).contains('{') || word(1).starts_with('{')
}

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    if are_stanzas(args.get(1..).unwrap_or_default()) {
        args.insert(1, "run".into());
    }
    let status = match Args::parse_from(args).command {
        Command::Run(args) => {
            thalweg_program_router::run::main(&args, &thalweg_program_load::PROBE)
        }
        Command::Config(args) => thalweg_program_router::configuration::main(&args),
        Command::Sflow(args) => thalweg_program_sflow::main(&args),
        // Must stand here, where there is one thread: it may give up rights.
        Command::Agent(args) => thalweg_program_sflow::agent::main(&args),
        // Must stand here, where there is one thread: it may enter a user namespace.
        Command::Demo(args) => thalweg_program_demo::main(&args),
        Command::Load(args) => thalweg_program_load::main(&args),
        Command::Api(args) => thalweg_program_router::api::main(&args),
        Command::Version => {
            thalweg_terminal::say!("thalweg v{}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
    };
    thalweg_terminal::ended(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Args::command().debug_assert();
    }

    /// Command lines of the page about sFlow's agent.
    #[test]
    fn what_the_page_says_can_be_typed() {
        let page = include_str!("../../../docs/sflow-agent.md");
        let lines = page.lines().filter_map(|line| line.strip_prefix("    thalweg "));
        let mut typed = 0;
        for line in lines {
            let words = line.split('#').next().unwrap_or_default().split_whitespace();
            if let Err(error) = Args::try_parse_from(std::iter::once("thalweg").chain(words)) {
                panic!("{line}: {error}");
            }
            typed += 1;
        }
        assert!(typed >= 10, "{typed}");
    }

    #[test]
    fn what_the_demo_proposes_can_be_typed() {
        for (words, _) in thalweg_program_demo::MORE {
            let words = std::iter::once("thalweg").chain(words.split_whitespace());
            if let Err(error) = Args::try_parse_from(words) {
                panic!("{error}");
            }
        }
    }

    #[test]
    fn bare_stanzas_are_told_from_commands() {
        let are = |args: &[&str]| are_stanzas(&args.iter().map(Into::into).collect::<Vec<_>>());
        assert!(are(&["unix", "{", "nodaemon", "}"]) && are(&["unix{nodaemon}"]));
        assert!(are(&["-c", "startup.conf"]) && are(&["unix", "{nodaemon}"]));
        assert!(!are(&["run", "unix", "{", "}"]) && !are(&["version"]) && !are(&[]));
    }
}
