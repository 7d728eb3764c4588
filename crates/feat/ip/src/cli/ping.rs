//! `ping`: sends echo requests to another host, or to the router itself.

use crate::cli_args::{address_arg, route_failed};
use crate::family::Version;
use crate::ping::{self, Request};
use std::net::IpAddr;
use std::time::Duration;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// `ping <address> …`
pub struct PingCommand;

/// The command.
pub static COMMAND: PingCommand = PingCommand;

/// Minimum and maximum interval in seconds.
const INTERVAL: (f64, f64) = (ping::SHORTEST, 86_400.0);
const MAX_BURST: u64 = 32;

const WORDS: [&str; 7] = ["repeat", "interval", "size", "source", "table-id", "burst", "ipv4"];

impl Command<Control> for PingCommand {
    fn path(&self) -> &'static str {
        "ping"
    }

    fn usage(&self) -> &'static str {
        "<address> [repeat <n>] [interval <seconds>] [size <bytes>] [source <interface>] \
         [table-id <id>] [burst <n>] [ipv4]"
    }

    fn help(&self) -> &'static str {
        "Send ICMP echo requests and show the replies\n\
         `burst' requests are sent at once, `repeat' times.\n\
         Defaults: 5 times one, every second, 100 bytes of data after an 8-byte timestamp. A\n\
         reply is late after one second (or after the interval, if that is longer).\n\
         Ctrl-C ends it and shows the statistics. Fragmented replies are not reassembled."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let to: IpAddr = match args.exact("ipv4") {
            true => args.ipv4("destination")?.into(),
            false => address_arg(c, args, "destination")?,
        };
        let mut r = Request {
            to,
            repeat: 5,
            interval: Duration::from_secs(1),
            size: 100,
            source: None,
            table: None,
            burst: 1,
            patience: ping::PATIENCE,
        };
        let most = ping::max_size(c, Version::of_ip(r.to)).map_err(route_failed)?;
        while !args.is_empty() {
            match args.one_of(&WORDS)? {
                Some("repeat") => r.repeat = args.number("repeat", 1, u64::from(u32::MAX))? as u32,
                Some("interval") => r.interval = interval(args)?,
                Some("size") => r.size = args.number("size", 0, u64::from(most))? as u16,
                Some("source") => r.source = Some(interface_arg(c, args)?),
                Some("table-id") => r.table = Some(TableId(args.u32("table")?)),
                Some("burst") => r.burst = args.number("burst", 1, MAX_BURST)? as u32,
                Some(_) if to.is_ipv6() => {
                    return Err(CliError::failed(format_args!("{to} is not an IPv4 address")));
                }
                Some(_) => {}
                None => args.end()?,
            }
        }
        r.patience = r.patience.max(r.interval);
        Ok(Outcome::pending(ping::start(c, r)?))
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => vec!["ipv4".to_owned()],
            [.., "source"] => interface_names(c),
            [.., "repeat" | "interval" | "size" | "table-id" | "burst"] | ["ipv4"] => Vec::new(),
            _ => WORDS.map(str::to_owned).to_vec(),
        }
    }
}

fn interval(args: &mut Args<'_>) -> Result<Duration, CliError> {
    let (low, high) = INTERVAL;
    let expected = "seconds from 0.00001 to 86400, such as 1 or 0.0005";
    args.with("interval", expected, |w| {
        let seconds = w.parse::<f64>().ok().filter(|s| (low..=high).contains(s))?;
        Some(Duration::from_secs_f64(seconds))
    })
}
