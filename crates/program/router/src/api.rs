//! `thalweg api json`, and the API messages that no feature can handle alone.

pub mod cli;
mod message_types;
pub mod messages;
pub mod punt;
pub mod typed;

use std::path::PathBuf;
use std::process::ExitCode;
use thalweg_api::{Registry, Service};
use thalweg_engine::Feature;
use thalweg_graph::Control;

/// The messages about the command line, as a feature.
pub static FEATURE: Feature = Feature {
    name: "api",
    about: "the binary API",
    api: messages::SERVICES,
    commands: cli::COMMANDS,
    init: |c| c.insert(thalweg_api::trace::Trace::default()),
    ..Feature::DEFAULT
};

/// Every message of these features.
pub fn services(features: &[&'static Feature]) -> Vec<&'static dyn Service<Control>> {
    features.iter().flat_map(|feature| feature.api.iter().copied()).collect()
}

/// Describes the binary API, for programs that speak it.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write the .api.json files that VPP's clients read
    #[command(after_help = "Clients look in /usr/share/vpp/api by default.")]
    Json {
        /// Directory to write to
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
    },
}

/// The program.
pub fn main(args: &Args) -> ExitCode {
    let Command::Json { dir } = &args.command;
    let features: Vec<&'static Feature> = [&thalweg_engine::ENGINE]
        .into_iter()
        .chain(crate::features::FEATURES.iter().copied())
        .collect();
    let registry = match Registry::new(services(&features)) {
        Ok(registry) => registry,
        Err(error) => return crate::fail(crate::FAULT, &error),
    };
    match thalweg_api::write_json(&registry, dir) {
        Ok(written) => {
            crate::say!("wrote {} files to {}", written.len(), dir.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let text = format!("cannot write below {}: {error}", dir.display());
            crate::fail(crate::FAILED, &text)
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_list_is_current() {
        thalweg_testkit::GeneratedList {
            dir: concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/cli"),
            what: "command",
            list: "COMMANDS",
            element: "&dyn thalweg_cli::Command<thalweg_graph::Control>",
            item: "COMMAND",
        }
        .check();
    }

    #[test]
    fn message_list_is_current() {
        thalweg_testkit::GeneratedList {
            dir: concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/messages"),
            what: "API message",
            list: "SERVICES",
            element: "&dyn thalweg_api::Service<thalweg_graph::Control>",
            item: "SERVICE",
        }
        .check();
    }
}
