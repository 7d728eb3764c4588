//! `nat44 log`.

use crate::log::{Collector, RATE, Target};
use crate::section::{file_claim, tuned, tuning};
use crate::state::set_log;
use std::path::PathBuf;
use thalweg_cli::{Args, CliError};
use thalweg_config::declare::{Value, file_path};
use thalweg_engine::setting::{Form, Global, Optional, Rare, read_words};

/// The destination of records, and the most in a second.
pub struct LogForm;

impl Form for LogForm {
    type Value = (Target, u32);

    fn usage(&self) -> &'static str {
        "file <file> [rate <n>] | syslog <address>:<port> [rate <n>] | \
         ipfix <address>:<port> [domain <n>] [src-port <port>] [rate <n>]"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<(Target, u32), CliError> {
        let target = match args.choice("target", &["file", "syslog", "ipfix", "off"])? {
            "file" => {
                let path = args.word("file")?;
                if let Err(expected) = file_path(path) {
                    return Err(args.bad_last("file", expected));
                }
                Target::File(PathBuf::from(path))
            }
            "syslog" => {
                let expected = "an address and a port, such as 192.0.2.1:514";
                Target::Syslog(args.parsed("collector", expected)?)
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
                Target::Ipfix(to)
            }
            _ => return Err(args.bad_last("target", "file, syslog or ipfix")),
        };
        let mut rate = RATE;
        if args.keyword("rate") {
            rate = args.number("records a second", 1, 10_000_000)? as u32;
        }
        Ok((target, rate))
    }

    fn words(&self, (target, rate): &(Target, u32)) -> String {
        format!("{target} rate {rate}")
    }

    fn read(&self, value: &Value) -> Result<(Target, u32), String> {
        read_words(value, |args| self.take(args)).map_err(|_| {
            "`file <path>', `syslog <address>:<port>' or `ipfix <address>:<port>', and `rate <n>'"
                .into()
        })
    }

    fn complete(&self, before: &[&str]) -> Vec<String> {
        match before {
            [] => ["file", "syslog", "ipfix"].map(str::to_owned).into(),
            ["file" | "syslog", _] => vec!["rate".into()],
            ["ipfix", _] => ["domain", "src-port", "rate"].map(str::to_owned).into(),
            _ => Vec::new(),
        }
    }
}

/// The log of created and deleted sessions.
pub static SETTING: Global<Optional<LogForm>> = Global {
    command: "nat44 log",
    help: "Log each session that is created or deleted, as a line of JSON in a file or a syslog message,\n\
           or in IPFIX messages (RFC 7011, RFC 8158) over UDP\n\
           The rate is limited, to 100000 records per second by default; `show nat44 log` counts the rest.\n\
           A file that has been moved away is created again.",
    form: Optional {
        usage: "file <file> [rate <n>] | syslog <address>:<port> [rate <n>] | \
                ipfix <address>:<port> [domain <n>] [src-port <port>] [rate <n>] | off",
        none: "off",
        form: LogForm,
    },
    key: "thalweg.nat44.log",
    default: || None,
    get: |c| tuned(c, |nat| nat.log().map(|log| (log.target.clone(), log.rate))),
    set: |c, to| Ok(set_log(c, to)?),
    rare: Rare {
        claims: |to| match to {
            Some((Target::File(path), _)) => Some(file_claim(path)),
            _ => None,
        },
        ..tuning()
    },
};
