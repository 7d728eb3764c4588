//! `nat ipfix logging`.

use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat ipfix logging`
pub struct NatIpfixLogging;

/// The command.
pub static COMMAND: NatIpfixLogging = NatIpfixLogging;

impl Command<Control> for NatIpfixLogging {
    fn path(&self) -> &'static str {
        "nat ipfix logging"
    }

    fn usage(&self) -> &'static str {
        "[enable] [domain <n>] [src-port <port>] | disable"
    }

    fn help(&self) -> &'static str {
        "Log sessions by IPFIX to the last collector of `nat44 log ipfix`, or stop logging\n\
         The default domain is 1, and the default source port any."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let on = !args.keyword("disable");
        let (mut domain, mut port) = (0, 0);
        if on {
            let _ = args.keyword("enable");
            while !args.is_empty() {
                match () {
                    () if args.keyword("domain") => domain = args.u32("domain")?,
                    () if args.keyword("src-port") => port = args.u16("port")?,
                    () => args.end()?,
                }
            }
        }
        args.end()?;
        state::set_ipfix(c, on.then_some((domain, port))).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
