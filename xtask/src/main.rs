//! Development tasks: `cargo run -p xtask -- test` runs every test, `-- tidy` checks the habits
//! that neither the compiler nor clippy knows. `make test` and `make lint` call them. `-- api`
//! writes message types of the binary API.

#![forbid(unsafe_code)]

mod api;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Development tasks of Thalweg.
#[derive(Parser)]
#[command(name = "xtask")]
enum Task {
    /// Builds and runs the tests, side by side.
    Test(test::Options),
    /// Checks comments, phrases, sleeping tests, pages and commit subjects.
    Tidy(tidy::Options),
    /// Writes message types of the binary API from VPP's descriptions.
    Api,
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Test(options) => test::run(&options),
        Task::Tidy(options) => tidy::run(&options),
        Task::Api => api::run(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The repository's root, in which tasks run.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().unwrap_or(here).to_owned())
}
