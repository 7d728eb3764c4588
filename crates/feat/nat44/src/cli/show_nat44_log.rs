//! `show nat44 log`.

use crate::{Nat44, view};
use serde_json::json;
use std::sync::atomic::Ordering;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, counted};
use thalweg_graph::Control;

/// `show nat44 log`
pub struct ShowNat44Log;

/// The command.
pub static COMMAND: ShowNat44Log = ShowNat44Log;

impl Command<Control> for ShowNat44Log {
    fn path(&self) -> &'static str {
        "show nat44 log"
    }

    fn help(&self) -> &'static str {
        "Show the destination of the session log, and its counters"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        view::with_workers(c, out, |c, workers, out| {
            let lost: u64 = workers.iter().map(|w| w.unlogged).sum();
            let nat = c.state::<Nat44>();
            let nat = nat.borrow();
            let Some(log) = nat.log() else {
                out.line("session logging is disabled");
                out.json(json!({ "log": null }));
                return;
            };
            let t = &log.totals;
            let [written, limited, failed] =
                [&t.written, &t.limited, &t.failed].map(|n| n.load(Ordering::Relaxed));
            out.line(format_args!(
                "{}, up to {} per second",
                log.target,
                counted(log.rate.into(), "record")
            ));
            out.line(format_args!("written: {written}"));
            out.line(format_args!("dropped by the rate limit: {limited}"));
            out.line(format_args!("failed to write or send: {failed}"));
            out.line(format_args!("lost because a ring was full: {lost}"));
            out.json(json!({
                "log": log.target.to_string(), "rate": log.rate, "written": written,
                "limited": limited, "failed": failed, "lost": lost,
            }));
        })
    }
}
