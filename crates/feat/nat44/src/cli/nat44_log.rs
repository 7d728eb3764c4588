//! `nat44 log`.

use crate::cli_support::failed;
use crate::log::{Collector, RATE, Target};
use crate::state;
use std::path::PathBuf;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::file_path;
use thalweg_graph::Control;

/// `nat44 log`
pub struct Nat44Log;

/// The command.
pub static COMMAND: Nat44Log = Nat44Log;

impl Command<Control> for Nat44Log {
    fn path(&self) -> &'static str {
        "nat44 log"
    }

    fn usage(&self) -> &'static str {
        "file <file> [rate <n>] | syslog <address>:<port> [rate <n>] | \
         ipfix <address>:<port> [domain <n>] [src-port <port>] [rate <n>] | off"
    }

    fn help(&self) -> &'static str {
        "Log each session that is created or deleted, as a line of JSON in a file or a syslog message,\n\
         or in IPFIX messages (RFC 7011, RFC 8158) over UDP\n\
         The rate is limited, to 100000 records per second by default; `show nat44 log` counts the rest.\n\
         A file that has been moved away is created again."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let target = match args.choice("target", &["file", "syslog", "ipfix", "off"])? {
            "file" => {
                let path = args.word("file")?;
                if let Err(expected) = file_path(path) {
                    return Err(args.bad_last("file", expected));
                }
                Some(Target::File(PathBuf::from(path)))
            }
            "syslog" => {
                let expected = "an address and a port, such as 192.0.2.1:514";
                Some(Target::Syslog(args.parsed("collector", expected)?))
            }
            "ipfix" => {
                let expected = "an address and a port, such as 192.0.2.1:4739";
                let mut to = Collector::new(args.parsed("collector", expected)?);
                if args.keyword("domain") {
                    to.domain = args.u32("domain")?;
                }
                if args.keyword("src-port") {
                    to.port = args.u16("port")?;
                }
                Some(Target::Ipfix(to))
            }
            _ => None,
        };
        let mut rate = RATE;
        if target.is_some() && args.keyword("rate") {
            rate = args.number("records a second", 1, 10_000_000)? as u32;
        }
        args.end()?;
        state::set_log(c, target.map(|t| (t, rate))).map_err(failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => ["file", "syslog", "ipfix", "off"].map(str::to_owned).into(),
            ["file" | "syslog", _] => vec!["rate".into()],
            ["ipfix", _] => ["domain", "src-port", "rate"].map(str::to_owned).into(),
            _ => Vec::new(),
        }
    }
}
