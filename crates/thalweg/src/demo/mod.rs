//! `thalweg demo`: a router between two hosts at work.

use std::process::ExitCode;

/// Shows a router between two hosts at work.
#[derive(clap::Args)]
pub struct Args {}

/// The program.
pub fn main(_: &Args) -> ExitCode {
    ExitCode::SUCCESS
}
