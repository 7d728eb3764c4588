//! `thalweg sflow …`: sFlow datagrams (`decode`), and what precedes them on netlink (`monitor`).
//! `thalweg agent` is [`agent`].

#![forbid(unsafe_code)]

pub mod agent;
mod decode;
mod monitor;

use std::process::ExitCode;
use thalweg_terminal::{FAILED, USAGE, fail, report, say};

/// Work with sFlow datagrams.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print datagrams from the network or a capture file, in the formats of sflowtool
    Decode(decode::Args),
    /// Print netlink messages of a router or the kernel (PSAMPLE, USERSOCK, NET_DM)
    Monitor(monitor::Args),
}

/// The program.
pub fn main(args: &Args) -> ExitCode {
    match &args.command {
        Command::Decode(args) => decode::main(args),
        Command::Monitor(args) => monitor::main(args),
    }
}
