//! `set ip6 dad`: tests addresses before they are used.

use crate::dad::{self, DELAYS, MAX_TRANSMITS};
use std::time::Duration;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set ip6 dad enable [transmits <1-10>] [delay <0.1-10.0>] | disable`
pub struct SetIp6Dad;

/// The command.
pub static COMMAND: SetIp6Dad = SetIp6Dad;

impl Command<Control> for SetIp6Dad {
    fn path(&self) -> &'static str {
        "set ip6 dad"
    }

    fn usage(&self) -> &'static str {
        "enable [transmits <1-10>] [delay <0.1-10.0>] | disable"
    }

    fn help(&self) -> &'static str {
        "Test IPv6 addresses of interfaces before they are used (RFC 4862)\n\
         An address that another host has is not used. Addresses that are used already stay so."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        if !args.enable_disable("state")? {
            args.end()?;
            dad::set(c, None);
            return Ok(Outcome::Done);
        }
        let mut config = dad::config(c).unwrap_or_default();
        while !args.is_empty() {
            match args.choice("setting", &["transmits", "delay"])? {
                "transmits" => {
                    config.transmits = args.number("transmits", 1, MAX_TRANSMITS.into())? as u8;
                }
                _ => {
                    let delay = Duration::try_from_secs_f64(args.f64("delay")?).unwrap_or_default();
                    if !DELAYS.contains(&delay) {
                        return Err(args.bad_last("delay", "0.1 to 10.0 seconds"));
                    }
                    config.delay = Duration::from_millis(delay.as_millis() as u64);
                }
            }
        }
        dad::set(c, Some(config));
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => ["enable", "disable"].map(str::to_owned).to_vec(),
            ["enable", ..] => ["transmits", "delay"].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        }
    }
}
