//! `arping`: asks a link for an address.

use std::time::Duration;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_feat_neighbor::arping::{self, LONGEST, Request};
use thalweg_graph::Control;

/// `arping [gratuitous] <address> <interface> …`
pub struct ArpingCommand;

/// The command.
pub static COMMAND: ArpingCommand = ArpingCommand;

impl Command<Control> for ArpingCommand {
    fn path(&self) -> &'static str {
        "arping"
    }

    fn usage(&self) -> &'static str {
        "[gratuitous] <address> <interface> [repeat <n>] [interval <seconds>]"
    }

    fn help(&self) -> &'static str {
        "Send ARP requests or neighbor solicitations for an address, and count the replies\n\
         With `gratuitous', announce the address instead. Defaults: once, every second."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let gratuitous = args.exact("gratuitous");
        let (ip, sw_if) = (args.ip("address")?, interface_arg(c, args)?);
        let interval = Duration::from_secs(1);
        let mut request = Request { ip, sw_if, gratuitous, repeat: 1, interval };
        while !args.is_empty() {
            if args.exact("repeat") {
                request.repeat = args.number("repeat", 1, u64::from(u32::MAX))? as u32;
            } else if args.exact("interval") {
                request.interval = args.with("interval", "seconds from 0 to 86400", interval_of)?;
            } else {
                args.end()?;
            }
        }
        Ok(Outcome::pending(arping::start(c, request)?))
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => vec!["gratuitous".to_owned()],
            ["gratuitous"] | [.., "repeat" | "interval"] => Vec::new(),
            [_] | ["gratuitous", _] => interface_names(c),
            _ => ["repeat", "interval"].map(str::to_owned).to_vec(),
        }
    }
}

fn interval_of(word: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(word.parse().ok()?).ok().filter(|i| *i <= LONGEST)
}
