//! `create bridge-domain`.

use crate::cli_support::{bridge_arg, failed};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: CreateBridgeDomain = CreateBridgeDomain;

/// The command's type.
pub struct CreateBridgeDomain;

/// A setting given on the command line.
type Change = Box<dyn FnOnce(&mut crate::Settings)>;

const OPTIONS: &[&str] = &[
    "learn",
    "forward",
    "uu-flood",
    "flood",
    "arp-term",
    "arp-ufwd",
    "mac-age",
    "learn-limit",
    "bd-tag",
    "del",
];

impl Command<Control> for CreateBridgeDomain {
    fn path(&self) -> &'static str {
        "create bridge-domain"
    }
    fn usage(&self) -> &'static str {
        "<id> [learn 0|1] [forward 0|1] [uu-flood 0|1] [flood 0|1] [arp-term 0|1] [arp-ufwd 0|1] \
         [mac-age <minutes>] [learn-limit <n>] [bd-tag <tag>] [del]"
    }
    fn help(&self) -> &'static str {
        "Create a bridge domain, or delete one that has no ports\n\
         Learning, forwarding of known unicast and flooding of broadcast, multicast and unknown\n\
         unicast are on unless switched off. ARP termination (arp-term) and\n\
         forwarding of ARP to the port for unknown unicast (arp-ufwd) are off. A mac-age of 0\n\
         disables aging.\n\
         `set interface l2 bridge' adds ports."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let id = bridge_arg(args)?;
        let mut changes: Vec<Change> = Vec::new();
        let mut tag = None;
        let mut del = false;
        while let Some(option) = args.one_of(OPTIONS)? {
            match option {
                "del" => del = true,
                "bd-tag" => {
                    let word = args.word("tag")?;
                    crate::check_tag(word).map_err(failed)?;
                    tag = Some(word.to_owned());
                }
                "mac-age" => {
                    let minutes = args.u8("minutes")?;
                    changes.push(Box::new(move |s| s.mac_age = minutes));
                }
                "learn-limit" => {
                    let limit = args.u32("learn limit")?;
                    changes.push(Box::new(move |s| s.learn_limit = limit));
                }
                switch => {
                    let on = args.number(switch, 0, 1)? == 1;
                    changes.push(match switch {
                        "learn" => Box::new(move |s| s.learn = on),
                        "forward" => Box::new(move |s| s.forward = on),
                        "uu-flood" => Box::new(move |s| s.flood_unknown = on),
                        "flood" => Box::new(move |s| s.flood = on),
                        "arp-term" => Box::new(move |s| s.arp_term = on),
                        _ => Box::new(move |s| s.arp_ufwd = on),
                    });
                }
            }
        }
        args.end()?;
        if del {
            crate::delete_bridge(c, id).map_err(failed)?;
            return Ok(Outcome::Done);
        }
        crate::create_bridge(c, id).map_err(failed)?;
        let all = |s: &mut crate::Settings| changes.into_iter().for_each(|change| change(s));
        crate::set_bridge(c, id, all).map_err(failed)?;
        if let Some(tag) = tag {
            crate::set_bridge_tag(c, id, &tag).map_err(failed)?;
        }
        out.json(serde_json::json!({ "bridge_domain": id }));
        out.line(format_args!("bridge-domain {id}"));
        Ok(Outcome::Done)
    }
    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => Vec::new(),
            _ => OPTIONS.iter().filter(|o| !before.contains(o)).map(ToString::to_string).collect(),
        }
    }
}
