//! `thalweg load`: the load tester.

#![forbid(unsafe_code)]

mod alone;
mod blame;
mod cps_ndr;
mod device;
mod far;
mod lines;
mod ndr;
mod number;
mod output;
mod record;
mod report;
mod run;
mod runner;
mod sample;
mod sampling;
mod screen;
mod set;
mod spot;
mod stolen;
mod stop;
mod streams;
mod subject;
mod sweep;
mod traffic;
mod trial;
mod under;
mod work;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use thalweg_terminal::{FAILED, fail, put, report, say};

use stop::{Interrupted, Stop};

/// The commands with which a router takes part in tests, for [`thalweg_program_router::run`].
pub use thalweg_device_load::PROBE;

/// Tests a device with load: how much it bears, and where it loses what it does not.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Search for the highest rate of connections without an error, as TRex's cps_ndr.py does
    CpsNdr(cps_ndr::Args),
    /// Search by MLRsearch, with goals, repetitions and a file
    Ndr(ndr::Args),
    /// Send a profile's streams or connections for a time, and say what became of them
    Run(run::Args),
    /// Search with more and more processors of the device, and print a table
    Sweep(sweep::Args),
    /// Measure what sFlow costs at each sampling rate, and print a table
    Sampling(sampling::Args),
    /// Print a report, or compare two
    Report(report::Args),
    /// Check a profile
    Check(run::Profile),
    /// Print a profile's canonical form
    Show(run::Profile),
}

/// The program.
pub fn main(args: &Args) -> ExitCode {
    let done = match &args.command {
        Command::CpsNdr(args) => in_order(|stop| cps_ndr::main(args, stop)),
        Command::Ndr(args) => in_order(|stop| ndr::main(args, stop)),
        Command::Run(args) => in_order(|stop| run::main(args, stop)),
        Command::Sweep(args) => in_order(|stop| sweep::main(args, stop)),
        Command::Sampling(args) => in_order(|stop| sampling::main(args, stop)),
        Command::Report(args) => report::main(args),
        Command::Check(args) => run::check(args),
        Command::Show(args) => run::show(args),
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) => fail(FAILED, &format!("{error:#}")),
    }
}

/// Runs a command that measures: signals end it in order, and then its status is theirs, unless it
/// has failed.
fn in_order(command: impl FnOnce(&Stop) -> Result<u8>) -> Result<u8> {
    let stop = Stop::on_signals()?;
    let done = command(&stop);
    match (done, stop.status()) {
        (Ok(_), Some(status)) => Ok(status),
        (Err(error), Some(status)) if error.is::<Interrupted>() => {
            report!("{error}");
            Ok(status)
        }
        (done, _) => done,
    }
}
