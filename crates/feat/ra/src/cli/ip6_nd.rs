//! `ip6 nd`: what the router advertises.

use crate::config::{self, Config, Lifetimes, MAX_OTHERS, Preference, Prefix, RaError, Route};
use crate::packet::{MAX_DOMAINS, is_domain};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::SwIfIndex;
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::{Control, clock};

/// `ip6 nd <interface> …`
pub struct Ip6Nd;

/// The command.
pub static COMMAND: Ip6Nd = Ip6Nd;

/// Words that change settings of their own.
const WORDS: &[&str] = &[
    "ra-managed-config-flag",
    "ra-other-config-flag",
    "ra-suppress",
    "ra-suppress-link-layer",
    "ra-surpress",
    "ra-surpress-link-layer",
    "ra-send-unicast",
    "ra-cease",
    "ra-lifetime",
    "ra-initial",
    "ra-interval",
    "ra-hop-limit",
    "ra-reachable-time",
    "ra-retransmit-time",
    "ra-preference",
    "ra-default",
    "rdnss",
    "dnssl",
    "route",
    "prefix",
];

/// Takes a lifetime in seconds.
fn lifetime(args: &mut Args<'_>) -> Result<u32, CliError> {
    if args.exact("infinite") { Ok(u32::MAX) } else { args.u32("lifetime") }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Takes the settings of a prefix.
fn prefix(args: &mut Args<'_>) -> Result<Prefix, CliError> {
    let (ip, len) = args.ipv6_prefix("prefix")?;
    let mut prefix = Prefix::new(ip, len);
    while let Some(word) = args.peek() {
        match word {
            "default" => _ = args.exact("default"),
            "infinite" => {
                let valid = lifetime(args)?;
                let next = args.peek().filter(|word| is_number(word));
                let preferred =
                    if next.is_some() { args.u32("preferred lifetime")? } else { valid };
                prefix.lifetimes = Lifetimes { valid, preferred };
            }
            _ if is_number(word) => {
                let valid = args.u32("valid lifetime")?;
                prefix.lifetimes = Lifetimes { valid, preferred: args.u32("preferred lifetime")? };
            }
            "no-advertise" => prefix.advertised = !args.exact("no-advertise"),
            "off-link" => prefix.on_link = !args.exact("off-link"),
            "no-onlink" => prefix.on_link = !args.exact("no-onlink"),
            "no-autoconfig" => prefix.autonomous = !args.exact("no-autoconfig"),
            "decrement" => {
                args.exact("decrement");
                prefix.since = Some(clock::now());
            }
            _ => break,
        }
    }
    Ok(prefix)
}

/// Adds to a list, or takes away.
fn list<T: PartialEq>(
    list: &mut Vec<T>,
    same: impl Fn(&T) -> bool,
    new: Option<T>,
    (what, limit): (&'static str, usize),
) -> Result<(), RaError> {
    let before = list.iter().position(same);
    match (before, new) {
        (Some(at), Some(new)) => list[at] = new,
        (Some(at), None) => _ = list.remove(at),
        (None, Some(_)) if list.len() >= limit => return Err(RaError::Full(what, limit)),
        (None, Some(new)) => list.push(new),
        (None, None) => {
            return Err(RaError::Unusable(
                what.to_owned(),
                "it is not advertised on the interface",
            ));
        }
    }
    Ok(())
}

/// Takes one setting, and changes it; with `no`, back to its default.
fn option(
    args: &mut Args<'_>,
    word: &'static str,
    no: bool,
    config: &mut Config,
) -> Result<(), CliError> {
    let default = Config::default();
    match word {
        "ra-managed-config-flag" => config.managed = !no,
        "ra-other-config-flag" => config.other = !no,
        "ra-suppress" | "ra-surpress" => config.send = no,
        "ra-suppress-link-layer" | "ra-surpress-link-layer" => config.link_layer = no,
        "ra-send-unicast" => config.unicast = !no,
        "ra-cease" => config.cease = !no,
        // Keeps what has commands of its own.
        "ra-default" => {
            let prefixes = std::mem::take(&mut config.prefixes);
            *config = Config { prefixes, ..default };
        }
        "ra-lifetime" if no => config.lifetime = default.lifetime,
        "ra-lifetime" => config.lifetime = args.u16("lifetime")?,
        "ra-initial" if no => config.initial = default.initial,
        "ra-initial" => config.initial = (args.u8("count")?, args.u8("interval")?),
        "ra-interval" if no => config.interval = default.interval,
        "ra-interval" => {
            let longest = args.u16("longest interval")?;
            let shortest = args.maybe(|args| args.u16("shortest interval"));
            let usual = (u32::from(longest) * 3 / 4) as u16;
            config.interval = (longest, shortest.unwrap_or(usual));
        }
        "ra-hop-limit" if no => config.hop_limit = default.hop_limit,
        "ra-hop-limit" => config.hop_limit = args.u8("hop limit")?,
        "ra-reachable-time" if no => config.reachable_ms = default.reachable_ms,
        "ra-reachable-time" => config.reachable_ms = args.u32("milliseconds")?,
        "ra-retransmit-time" if no => config.retransmit_ms = default.retransmit_ms,
        "ra-retransmit-time" => config.retransmit_ms = args.u32("milliseconds")?,
        "ra-preference" if no => config.preference = default.preference,
        "ra-preference" => {
            let word = args.choice("preference", Preference::WORDS)?;
            config.preference = Preference::from_word(word).unwrap_or_default();
        }
        "rdnss" => {
            let ip = args.ipv6("DNS server")?;
            if ip.is_multicast() || ip.is_unspecified() {
                return Err(args.bad_last("DNS server", "the address of a host"));
            }
            list(&mut config.servers, |s| *s == ip, (!no).then_some(ip), ("server", MAX_OTHERS))?;
        }
        "dnssl" => {
            let name = args.word("search domain")?;
            if !is_domain(name) {
                let expected = "up to 63 letters, digits, - and _ in labels with dots between";
                return Err(args.bad_last("search domain", expected));
            }
            let new = (!no).then(|| name.to_owned());
            list(&mut config.domains, |d| d == name, new, ("search domain", MAX_DOMAINS))?;
        }
        "route" => {
            let (ip, len) = args.ipv6_prefix("route")?;
            let mut route = Route { ip, len, lifetime: 1800, preference: Preference::Medium };
            while let Some(word) = args.one_of_exact(&["lifetime", "preference"]) {
                if word == "lifetime" {
                    route.lifetime = lifetime(args)?;
                } else {
                    let word = args.choice("preference", Preference::WORDS)?;
                    route.preference = Preference::from_word(word).unwrap_or_default();
                }
            }
            let same = |r: &Route| (r.ip, r.len) == (ip, len);
            list(&mut config.routes, same, (!no).then_some(route), ("route", MAX_OTHERS))?;
        }
        _ => {}
    }
    Ok(())
}

/// A prefix has an interface to itself in a line.
fn change_prefix(
    c: &mut Control,
    sw_if: SwIfIndex,
    args: &mut Args<'_>,
    no: bool,
) -> Result<(), CliError> {
    if no {
        let (ip, len) = args.ipv6_prefix("prefix")?;
        args.end()?;
        return Ok(config::remove_prefix(c, sw_if, ip, len)?);
    }
    let prefix = prefix(args)?;
    args.end()?;
    Ok(config::add_prefix(c, sw_if, prefix)?)
}

impl Command<Control> for Ip6Nd {
    fn path(&self) -> &'static str {
        "ip6 nd"
    }

    fn usage(&self) -> &'static str {
        "<interface> [no] {ra-managed-config-flag | ra-other-config-flag | ra-suppress |\n\
         ra-suppress-link-layer | ra-send-unicast | ra-cease | ra-lifetime <seconds> |\n\
         ra-initial <count> <seconds> | ra-interval <max> [<min>] | ra-hop-limit <n> |\n\
         ra-reachable-time <ms> | ra-retransmit-time <ms> | ra-preference {low|medium|high} |\n\
         rdnss <address> | dnssl <domain> | ra-default |\n\
         route <prefix> [lifetime <seconds>|infinite] [preference {low|medium|high}] |\n\
         prefix <prefix> [<valid> <preferred> | infinite | default] [decrement]\n\
         [no-advertise] [off-link] [no-autoconfig] [no-onlink]}"
    }

    fn help(&self) -> &'static str {
        "Advertise the router and its prefixes to the hosts of an interface\n\
         Any setting but a prefix has the router advertise itself; `ra-suppress' stops that, `no\n\
         ra-suppress' starts it. `no' takes a setting back to its default, `ra-default' all but the\n\
         prefixes. `decrement': the lifetimes end in real time."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        config::usable(c, sw_if)?;
        let mut no = args.exact("no");
        if args.exact("prefix") {
            change_prefix(c, sw_if, args, no)?;
            return Ok(Outcome::Done);
        }
        let mut new = config::get(c, sw_if);
        let mut first = true;
        while first || !args.is_empty() {
            no = args.exact("no") || (no && first);
            let word = args.choice("setting", &WORDS[..WORDS.len() - 1])?;
            // A setting begins what it is for, like in VPP.
            new.send = word != "ra-default";
            option(args, word, no, &mut new)?;
            first = false;
        }
        config::change(c, sw_if, |config| {
            *config = new;
            Ok(())
        })?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match before {
            [] => interface_names(c),
            [.., "ra-preference" | "preference"] => words(Preference::WORDS),
            [_, .., "prefix", _] => {
                words(&["infinite", "default", "no-advertise", "off-link", "no-autoconfig"])
            }
            [_] => words(&[WORDS, &["no"]].concat()),
            _ => words(WORDS),
        }
    }
}
