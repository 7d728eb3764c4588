//! The programs `thalweg` and `thalctl`: arguments, what they start, what they print when
//! they cannot.
//!
//! * [`features`]: the features of the router, one line each;
//! * [`api`]: `thalweg api json`, and the API messages about the command line;
//! * [`metrics`]: counters over HTTP;
//! * [`vpp`]: diagnostics by VPP's words;
//! * [`run`]: `thalweg run`, the router;
//! * [`configuration`]: `thalweg config`, which checks documents and asks a running router;
//! * [`sflow`]: `thalweg sflow decode`;
//! * [`agent`]: `thalweg agent`;
//! * [`demo`]: `thalweg demo`.
//!
//! `thalctl` is [`thalweg_ctl`].

#![forbid(unsafe_code)]

pub mod agent;
pub mod api;
pub mod configuration;
pub mod demo;
pub mod features;
pub mod load;
pub mod metrics;
pub mod run;
pub mod sflow;
pub mod vpp;

use std::process::ExitCode;

/// What was asked for makes no sense: arguments or configuration.
pub const USAGE: u8 = 2;
/// It made sense, but could not be done.
pub const FAILED: u8 = 1;
/// A fault of the program itself.
pub const FAULT: u8 = 70;

/// Prints to standard error; ignores a closed one. Nothing that it quotes is obeyed by a terminal.
macro_rules! report {
    ($($what:tt)*) => {{
        let text = format!($($what)*);
        // The output may go on, and be read.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr().lock(),
            format_args!("thalweg: {}\n", thalweg_load_report::harmless(&text)),
        );
    }};
}
pub(crate) use report;

/// Prints to standard output, without a line's end; ignores a closed one: whoever reads the first
/// lines only (`| head`) still gets the report's file.
macro_rules! put {
    ($($what:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stdout().lock(),
            format_args!($($what)*),
        );
    }};
}
pub(crate) use put;

/// Prints a line to standard output, as [`put!`] does. Names in it may be of others, such as those
/// of a profile: nothing of it is obeyed by a terminal. A line with colours is for [`put!`].
macro_rules! say {
    () => { $crate::put!("\n") };
    ($($what:tt)*) => {
        $crate::put!("{}\n", thalweg_load_report::harmless(&format!($($what)*)))
    };
}
pub(crate) use say;

/// Says what went wrong on standard error, one cause after the other, and gives the status.
pub(crate) fn fail(status: u8, error: &dyn std::fmt::Display) -> ExitCode {
    report!("{error}");
    ExitCode::from(status)
}
