//! `set bridge-domain`.

use crate::cli_support::{bridge_arg, bridge_ids, failed};
use std::num::NonZeroU16;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SetBridgeDomain = SetBridgeDomain;

/// The command's type.
pub struct SetBridgeDomain;

const SETTINGS: &[&str] = &[
    "learn",
    "forward",
    "flood",
    "uu-flood",
    "arp",
    "arp-ufwd",
    "mac-age",
    "learn-limit",
    "default-learn-limit",
    "scan-delay",
    "tag",
];

const SWITCHES: &[&str] = &["learn", "forward", "flood", "uu-flood", "arp-ufwd"];

/// `arp term` and `arp entry`.
fn arp(c: &mut Control, args: &mut Args<'_>) -> Result<Outcome<Control>, CliError> {
    let what = args.choice("setting", &["term", "entry"])?;
    let id = bridge_arg(args)?;
    if what == "term" {
        let on = args.is_empty() || args.enable_disable("ARP termination")?;
        args.end()?;
        crate::set_bridge(c, id, |s| s.arp_term = on).map_err(failed)?;
        return Ok(Outcome::Done);
    }
    if args.exact("del-all") {
        args.end()?;
        crate::flush_arp_entries(c, id).map_err(failed)?;
        return Ok(Outcome::Done);
    }
    let (ip, mac) = (args.ip("address")?, args.mac("MAC address")?);
    let del = args.exact("del");
    args.end()?;
    let done = match del {
        true => crate::remove_arp_entry(c, id, ip, mac),
        false => crate::set_arp_entry(c, id, ip, mac),
    };
    done.map_err(failed)?;
    Ok(Outcome::Done)
}

impl Command<Control> for SetBridgeDomain {
    fn path(&self) -> &'static str {
        "set bridge-domain"
    }
    fn usage(&self) -> &'static str {
        "learn|forward|flood|uu-flood|arp-ufwd <id> [enable|disable] | arp term <id> [enable|disable] | \
         arp entry <id> <ip> <mac> [del] | arp entry <id> del-all | mac-age <id> <minutes> | \
         learn-limit <id> <n> | default-learn-limit <n> | scan-delay <n> | tag <id> [<tag>]"
    }
    fn help(&self) -> &'static str {
        "Change the settings of a bridge domain\n\
         learn: learn source MAC addresses. forward: forward known unicast. flood: flood broadcast\n\
         and multicast. uu-flood: flood unknown unicast. mac-age: aging time of learned addresses\n\
         in minutes, 0 disables aging. learn-limit: maximum number of learned addresses.\n\
         arp term: answer ARP and neighbour discovery for the hosts of `arp entry'. arp-ufwd: pass\n\
         other ARP requests to the port for unknown unicast only.\n\
         default-learn-limit: learn limit of bridge domains created later. scan-delay: interval of\n\
         MAC address events to API clients, in hundredths of a second."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let what = args.choice("setting", SETTINGS)?;
        if what == "arp" {
            return arp(c, args);
        }
        if what == "default-learn-limit" {
            let limit = args.u32("learn limit")?;
            args.end()?;
            crate::set_default_learn_limit(c, limit);
            return Ok(Outcome::Done);
        }
        if what == "scan-delay" {
            let delay = args.number("hundredths of a second", 1, u16::MAX.into())?;
            args.end()?;
            let delay = NonZeroU16::new(delay as u16);
            delay.into_iter().for_each(|delay| crate::set_scan_delay(c, delay));
            return Ok(Outcome::Done);
        }
        let id = bridge_arg(args)?;
        match what {
            "tag" => {
                let tag = if args.is_empty() { "" } else { args.word("tag")? };
                args.end()?;
                crate::set_bridge_tag(c, id, tag).map_err(failed)?;
            }
            "mac-age" => {
                let minutes = args.u8("minutes")?;
                args.end()?;
                crate::set_bridge(c, id, |s| s.mac_age = minutes).map_err(failed)?;
            }
            "learn-limit" => {
                let limit = args.u32("learn limit")?;
                args.end()?;
                crate::set_bridge(c, id, |s| s.learn_limit = limit).map_err(failed)?;
            }
            _ => {
                let on = args.is_empty() || args.enable_disable(what)?;
                args.end()?;
                let change = |s: &mut crate::Settings| match what {
                    "learn" => s.learn = on,
                    "forward" => s.forward = on,
                    "flood" => s.flood = on,
                    "arp-ufwd" => s.arp_ufwd = on,
                    _ => s.flood_unknown = on,
                };
                crate::set_bridge(c, id, change).map_err(failed)?;
            }
        }
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => SETTINGS.iter().map(ToString::to_string).collect(),
            ["arp"] => vec!["term".into(), "entry".into()],
            [_] | ["arp", _] => bridge_ids(c),
            [what, _] if SWITCHES.contains(what) => {
                vec!["enable".into(), "disable".into()]
            }
            _ => Vec::new(),
        }
    }
}
