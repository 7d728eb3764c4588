//! `set nat timeout`.

use crate::cli_support::failed;
use crate::{Nat44, Timeouts, state};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set nat timeout`
pub struct SetNatTimeout;

/// The command.
pub static COMMAND: SetNatTimeout = SetNatTimeout;

impl Command<Control> for SetNatTimeout {
    fn path(&self) -> &'static str {
        "set nat timeout"
    }

    fn usage(&self) -> &'static str {
        "[udp <seconds>] [tcp-established <seconds>] [tcp-transitory <seconds>] [icmp <seconds>] | reset"
    }

    fn help(&self) -> &'static str {
        "Set session timeouts in seconds; they apply from the next packet of a session on\n\
         Defaults: udp 300, tcp-established 7440, tcp-transitory 240, icmp 60."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut all = c.state::<Nat44>().borrow().timeouts();
        if args.is_empty() {
            return Err(args.bad("timeout", "a kind of session and seconds, or `reset'"));
        }
        while !args.is_empty() {
            let which = match () {
                () if args.keyword("udp") => &mut all.udp,
                () if args.keyword("tcp-established") => &mut all.tcp_established,
                () if args.keyword("tcp-transitory") => &mut all.tcp_transitory,
                () if args.keyword("icmp") => &mut all.icmp,
                () if args.keyword("reset") => {
                    all = Timeouts::default();
                    continue;
                }
                () => {
                    let words = "`udp', `tcp-established', `tcp-transitory', `icmp' or `reset'";
                    return Err(args.bad("timeout", words));
                }
            };
            *which = args.number("seconds", 1, u64::from(Timeouts::MAX))? as u32;
        }
        state::set_timeouts(c, all).map_err(failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        ["udp", "tcp-established", "tcp-transitory", "icmp", "reset"].map(str::to_owned).into()
    }
}
