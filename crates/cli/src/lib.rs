//! The command line of Thalweg: commands, their parser and help, and the socket that VPP's own
//! `vppctl` can speak to.
//!
//! This crate knows no feature. A feature implements [`Command`] over the main thread's state `C`,
//! one unit struct per command; the binary collects them in a [`CommandTree`] and gives that to
//! [`MainCli`]. A [`server::Server`] accepts sessions and hands their lines to the main thread as
//! [`CliJob`]s; [`client`] is the other end, for `thalctl`.
//!
//! ```
//! use thalweg_cli::{Args, CliError, Command, CommandTree, Outcome, Output};
//!
//! struct ShowMtu;
//!
//! impl Command<u16> for ShowMtu {
//!     fn path(&self) -> &'static str { "show mtu" }
//!     fn help(&self) -> &'static str { "Show the MTU in bytes" }
//!     fn run(&self, mtu: &mut u16, args: &mut Args<'_>, out: &mut Output)
//!         -> Result<Outcome<u16>, CliError>
//!     {
//!         args.end()?;
//!         out.json(serde_json::json!({ "mtu": *mtu }));
//!         out.line(format_args!("MTU {mtu}"));
//!         Ok(Outcome::Done)
//!     }
//! }
//!
//! let tree = CommandTree::new(vec![&ShowMtu]).unwrap();
//! assert_eq!(tree.run_line(&mut 1500, "sh mtu").0, "MTU 1500\n");
//! assert_eq!(tree.run_line(&mut 1500, "show mtu | json").0, "{\"mtu\":1500}\n");
//! ```
#![forbid(unsafe_code)]

mod args;
mod background;
mod builtin;
pub mod client;
mod command;
mod complete;
mod counted;
mod date;
mod error;
mod exec;
mod filter;
mod job;
mod lexer;
mod output;
pub mod paths;
mod pattern;
mod pieces;
mod script;
pub mod server;
mod telnet;
#[cfg(test)]
mod testing;
mod tree;

pub use args::Args;
pub use background::in_background;
pub use command::{Command, Outcome, Question, Task, TaskPoll, usage_words};
pub use complete::Completion;
pub use counted::counted;
pub use date::utc;
pub use error::{CliError, DuplicatePath};
pub use exec::{End, Execution, Progress};
pub use job::{Cancel, CliJob, Dispatch, Gone, MainCli, Reply, ReplySink, Request, Status};
pub use lexer::{MAX_COMMAND_BYTES, MAX_SCRIPT_BYTES};
pub use output::{Align, Format, MAX_OUTPUT_BYTES, Output, Table};
pub use pieces::pieces;
pub use script::Script;
pub use tree::{CommandTree, Unfinished};

/// Default socket of the daemon and of `thalctl`.
pub const DEFAULT_SOCKET: &str = "/run/thalweg/cli.sock";

/// A command for [`fuzz_line`] that tries every taker on its arguments.
struct Taker;

impl Command<()> for Taker {
    fn path(&self) -> &'static str {
        "take all"
    }
    fn usage(&self) -> &'static str {
        "[<any>] keyword"
    }
    fn help(&self) -> &'static str {
        "Try every taker"
    }
    fn run(
        &self,
        (): &mut (),
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<()>, CliError> {
        while !args.is_empty() {
            let _ = (args.clone().i64("n"), args.clone().f64("n"), args.clone().mac("n"));
            let _ = (args.clone().ip("n"), args.clone().ip_prefix("n"), args.clone().u8("n"));
            let _ = (args.clone().choice("n", &["a", "ab"]), args.clone().end());
            if args.group("n").is_err() {
                out.line(args.word("n")?);
            }
        }
        Ok(Outcome::Done)
    }
}

/// Entry for fuzzing: parses, completes and runs a text over harmless commands.
///
/// `exec` and `wait` are omitted, as they would read files and take time.
pub fn fuzz_line(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(tree) = CommandTree::new(vec![&Taker as &'static dyn Command<()>]) else { return };
    let _ = tree.complete(&(), &text, text.len() / 2);
    let _ = tree.help_at(&(), &text, text.len());
    let reaches_out = |line: &str| {
        let words = line.split(|c: char| !c.is_ascii_alphabetic());
        words.into_iter().any(|w| w.starts_with('w') || w.starts_with("ex"))
    };
    if !reaches_out(&text) {
        let _ = tree.run_line(&mut (), &text);
    }
}
