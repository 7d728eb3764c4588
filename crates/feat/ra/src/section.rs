//! Configuration of advertisements.

use crate::config::Route;
use crate::config::{
    self, Config, Lifetimes, MAX_INITIAL, MAX_INTERVAL, MAX_LIFETIME, MAX_OTHERS, Preference,
};
use crate::packet::{MAX_DOMAINS, is_domain};
use std::net::{IpAddr, Ipv6Addr};
use thalweg_config::declare::{
    Doc, Draft, Dump, Found, Interface, Item, Kind, Name, Node, Problem, Rule, Section, Value,
    address, interface_key, rank,
};
use thalweg_graph::Control;

/// Section of advertisements.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const KEY: &str = "router-advertisements";

const MS: Kind = Kind::Int(0, u32::MAX as i128);

const RULES: &[Rule] = &[
    Rule::new("thalweg.interfaces.*.router-advertisements", Kind::Keys),
    Rule::new("thalweg.interfaces.*.router-advertisements.send", Kind::Bool),
    Rule::new("thalweg.interfaces.*.router-advertisements.managed", Kind::Bool),
    Rule::new("thalweg.interfaces.*.router-advertisements.other", Kind::Bool),
    Rule::new("thalweg.interfaces.*.router-advertisements.link-layer", Kind::Bool),
    Rule::new("thalweg.interfaces.*.router-advertisements.unicast", Kind::Bool),
    Rule::new("thalweg.interfaces.*.router-advertisements.cease", Kind::Bool),
    Rule::new(
        "thalweg.interfaces.*.router-advertisements.lifetime",
        Kind::Int(0, MAX_LIFETIME as i128),
    ),
    Rule::new(
        "thalweg.interfaces.*.router-advertisements.max-interval",
        Kind::Int(4, MAX_INTERVAL as i128),
    ),
    Rule::new(
        "thalweg.interfaces.*.router-advertisements.min-interval",
        Kind::Int(3, MAX_INTERVAL as i128),
    ),
    Rule::new(
        "thalweg.interfaces.*.router-advertisements.initial-count",
        Kind::Int(0, MAX_INITIAL.0 as i128),
    ),
    Rule::new(
        "thalweg.interfaces.*.router-advertisements.initial-interval",
        Kind::Int(1, MAX_INITIAL.1 as i128),
    ),
    Rule::new("thalweg.interfaces.*.router-advertisements.hop-limit", Kind::Int(0, 255)),
    Rule::new("thalweg.interfaces.*.router-advertisements.reachable-time", Kind::Int(0, 3_600_000)),
    Rule::new("thalweg.interfaces.*.router-advertisements.retransmit-time", MS),
    Rule::new(
        "thalweg.interfaces.*.router-advertisements.preference",
        Kind::Word(Preference::WORDS),
    ),
    Rule::new("thalweg.interfaces.*.router-advertisements.dns-servers", Kind::List(0, MAX_OTHERS)),
    Rule::new("thalweg.interfaces.*.router-advertisements.dns-servers.[]", Kind::Ip),
    Rule::new("thalweg.interfaces.*.router-advertisements.dns-domains", Kind::List(0, MAX_DOMAINS)),
    Rule::new("thalweg.interfaces.*.router-advertisements.dns-domains.[]", Kind::Other(domain)),
    Rule::new("thalweg.interfaces.*.router-advertisements.routes", Kind::Named(Name::Any)),
    Rule::new("thalweg.interfaces.*.router-advertisements.routes.*", Kind::Other(route)),
    Rule::new("thalweg.interfaces.*.router-advertisements.prefixes", Kind::Named(Name::Any)),
    Rule::new("thalweg.interfaces.*.router-advertisements.prefixes.*", Kind::Other(prefix)),
];

fn domain(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) if is_domain(text) => Ok(()),
        _ => Err("up to 63 letters, digits, - and _ in labels with dots between".into()),
    }
}

fn seconds(word: &str) -> Option<u32> {
    if word == "infinite" { Some(u32::MAX) } else { word.parse().ok() }
}

fn seconds_text(seconds: u32) -> String {
    if seconds == u32::MAX { "infinite".into() } else { seconds.to_string() }
}

/// Reads a route's value: `1800 medium`.
fn parse_route(text: &str) -> Option<(u32, Preference)> {
    let mut words = text.split_whitespace();
    let lifetime = seconds(words.next()?)?;
    let preference = match words.next() {
        Some(word) => Preference::from_word(word)?,
        None => Preference::Medium,
    };
    words.next().is_none().then_some((lifetime, preference))
}

fn route(value: &Value) -> Result<(), String> {
    match parse_route(&value.to_string()) {
        Some(_) => Ok(()),
        None => Err("`<seconds>|infinite [low|medium|high]'".into()),
    }
}

const FLAGS: [&str; 4] = ["off-link", "no-autoconfig", "no-advertise", "decrement"];

/// Reads a prefix's value: lifetimes and flags.
fn parse_prefix(text: &str) -> Option<(Lifetimes, Vec<&'static str>)> {
    let mut words = text.split_whitespace();
    let lifetimes = match words.next()? {
        "default" => Lifetimes::default(),
        word => Lifetimes { valid: seconds(word)?, preferred: seconds(words.next()?)? },
    };
    let flag = |word: &str| FLAGS.into_iter().find(|flag| *flag == word);
    let flags = words.map(flag).collect::<Option<Vec<_>>>()?;
    (lifetimes.preferred <= lifetimes.valid).then_some((lifetimes, flags))
}

fn prefix(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) if parse_prefix(text).is_some() => Ok(()),
        _ => Err("`<valid> <preferred>' in seconds, each may be `infinite', or `default'; then \
                  [off-link] [no-autoconfig] [no-advertise] [decrement]"
            .into()),
    }
}

fn prefix_text(p: &config::Prefix) -> String {
    let Lifetimes { valid, preferred } = p.lifetimes;
    let mut text = match p.lifetimes == Lifetimes::default() {
        true => "default".to_owned(),
        false => format!("{} {}", seconds_text(valid), seconds_text(preferred)),
    };
    let on = [!p.on_link, !p.autonomous, !p.advertised, p.since.is_some()];
    for (flag, _) in FLAGS.into_iter().zip(on).filter(|(_, on)| *on) {
        text = text + " " + flag;
    }
    text
}

impl Section<Control> for Settings {
    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        for (sw_if, config) in config::all(c) {
            dump_port(&c.interface_name(sw_if), &config, out);
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for i in doc.interfaces() {
            if let Some(found) = i.get(KEY) {
                port(i, &found, doc, out);
            }
        }
    }
}

fn dump_port(name: &str, config: &Config, out: &mut Dump<'_>) {
    let usual = Config::default();
    let path = |keys: &[&str]| -> Vec<String> {
        let all = ["thalweg", "interfaces", name, KEY].into_iter().chain(keys.iter().copied());
        all.map(str::to_owned).collect()
    };
    let mut put = |keys: &[&str], value: Value| {
        let path = path(keys);
        out.put(&path.iter().map(String::as_str).collect::<Vec<_>>(), value);
    };
    put(&["send"], config.send.into());
    for (key, now, usual) in [
        ("managed", config.managed, usual.managed),
        ("other", config.other, usual.other),
        ("link-layer", config.link_layer, usual.link_layer),
        ("unicast", config.unicast, usual.unicast),
        ("cease", config.cease, usual.cease),
    ] {
        if now != usual {
            put(&[key], now.into());
        }
    }
    for (key, now, usual) in [
        ("lifetime", u32::from(config.lifetime), u32::from(usual.lifetime)),
        ("max-interval", config.interval.0.into(), usual.interval.0.into()),
        ("min-interval", config.interval.1.into(), usual.interval.1.into()),
        ("initial-count", config.initial.0.into(), usual.initial.0.into()),
        ("initial-interval", config.initial.1.into(), usual.initial.1.into()),
        ("hop-limit", config.hop_limit.into(), usual.hop_limit.into()),
        ("reachable-time", config.reachable_ms, usual.reachable_ms),
        ("retransmit-time", config.retransmit_ms, usual.retransmit_ms),
    ] {
        if now != usual {
            put(&[key], now.into());
        }
    }
    if config.preference != usual.preference {
        put(&["preference"], config.preference.word().into());
    }
    for r in &config.routes {
        let text = format!("{} {}", seconds_text(r.lifetime), r.preference.word());
        put(&["routes", &format!("{}/{}", r.ip, r.len)], text.into());
    }
    for p in &config.prefixes {
        put(&["prefixes", &format!("{}/{}", p.ip, p.len)], prefix_text(p).into());
    }
    let mut push = |key: &str, value: String| {
        let path = path(&[key]);
        out.push(&path.iter().map(String::as_str).collect::<Vec<_>>(), value);
    };
    config.servers.iter().for_each(|server| push("dns-servers", server.to_string()));
    config.domains.iter().for_each(|domain| push("dns-domains", domain.clone()));
}

/// Reads an IPv6 address with a length.
fn ip6_prefix(text: &str) -> Option<(Ipv6Addr, u8)> {
    match address(text)? {
        (IpAddr::V6(ip), len) => Some((ip, len)),
        (IpAddr::V4(_), _) => None,
    }
}

/// Reads all settings but the prefixes; missing ones have their defaults.
fn read(node: &Node) -> Config {
    let usual = Config::default();
    let flag = |key: &str, usual: bool| node.get(key).and_then(Node::bool).unwrap_or(usual);
    let number = |key: &str, usual: u32| node.get(key).and_then(Node::u32).unwrap_or(usual);
    let short = |key: &str, usual: u16| number(key, usual.into()) as u16;
    let byte = |key: &str, usual: u8| number(key, usual.into()) as u8;
    let texts = |key: &str| node.get(key).map_or(&[][..], Node::list).iter().filter_map(Node::text);
    let preference = node.get("preference").and_then(Node::text);
    let route = |(prefix, value): (&str, &Node)| {
        let ((ip, len), (lifetime, preference)) =
            (ip6_prefix(prefix)?, parse_route(&value.value.to_string())?);
        Some(Route { ip, len, lifetime, preference })
    };
    Config {
        send: flag("send", true),
        managed: flag("managed", usual.managed),
        other: flag("other", usual.other),
        link_layer: flag("link-layer", usual.link_layer),
        unicast: flag("unicast", usual.unicast),
        cease: flag("cease", usual.cease),
        lifetime: short("lifetime", usual.lifetime),
        interval: (
            short("max-interval", usual.interval.0),
            short("min-interval", usual.interval.1),
        ),
        initial: (
            byte("initial-count", usual.initial.0),
            byte("initial-interval", usual.initial.1),
        ),
        hop_limit: byte("hop-limit", usual.hop_limit),
        reachable_ms: number("reachable-time", usual.reachable_ms),
        retransmit_ms: number("retransmit-time", usual.retransmit_ms),
        preference: preference.and_then(Preference::from_word).unwrap_or(usual.preference),
        prefixes: Vec::new(),
        routes: node.get("routes").into_iter().flat_map(Node::entries).filter_map(route).collect(),
        servers: texts("dns-servers").filter_map(|text| text.parse().ok()).collect(),
        domains: texts("dns-domains").map(str::to_owned).collect(),
    }
}

/// The words of all settings but the prefixes, and of those alone that are not as by default.
fn words(config: &Config) -> String {
    let (mut words, usual) = (String::from("ra-default"), Config::default());
    for (on, word) in [
        (config.managed, "ra-managed-config-flag"),
        (config.other, "ra-other-config-flag"),
        (!config.link_layer, "ra-suppress-link-layer"),
        (config.unicast, "ra-send-unicast"),
        (config.cease, "ra-cease"),
    ] {
        if on {
            words = words + " " + word;
        }
    }
    let (pair, one) = (|(a, b): (u16, u16)| format!("{a} {b}"), |n: u32| n.to_string());
    let initial = |(a, b): (u8, u8)| format!("{a} {b}");
    for (word, now, usual) in [
        ("ra-lifetime", one(config.lifetime.into()), one(usual.lifetime.into())),
        ("ra-hop-limit", one(config.hop_limit.into()), one(usual.hop_limit.into())),
        ("ra-reachable-time", one(config.reachable_ms), one(usual.reachable_ms)),
        ("ra-retransmit-time", one(config.retransmit_ms), one(usual.retransmit_ms)),
        ("ra-interval", pair(config.interval), pair(usual.interval)),
        ("ra-initial", initial(config.initial), initial(usual.initial)),
        ("ra-preference", config.preference.word().into(), usual.preference.word().into()),
    ] {
        if now != usual {
            words += &format!(" {word} {now}");
        }
    }
    config.servers.iter().for_each(|server| words += &format!(" rdnss {server}"));
    config.domains.iter().for_each(|domain| words += &format!(" dnssl {domain}"));
    // Keys of a document have no order.
    let mut routes = config.routes.clone();
    routes.sort_unstable_by_key(|route| (route.ip, route.len));
    for Route { ip, len, lifetime, preference } in &routes {
        let (lifetime, preference) = (seconds_text(*lifetime), preference.word());
        words += &format!(" route {ip}/{len} lifetime {lifetime} preference {preference}");
    }
    words + if config.send { " no ra-suppress" } else { " ra-suppress" }
}

fn port(i: &Interface<'_>, found: &Found<'_>, doc: &Doc<'_>, out: &mut Draft) {
    let (name, node) = (&*i.name, found.node);
    // An interface speaks IPv6 from its pair on, if nothing else has it do so.
    let rank = if i.get("lcp").is_some() { rank::WITH_PAIR } else { rank::SERVICE_PORT };
    for (key, value) in node.entries() {
        let wrong = |text: &str| format!("an IPv6 prefix expected, not `{text}'");
        let bad: Vec<String> = match key {
            "routes" | "prefixes" => {
                let names = value.entries().map(|(name, _)| name);
                names.filter(|text| ip6_prefix(text).is_none()).map(wrong).collect()
            }
            "dns-servers" => {
                let is_v4 = |text: &&str| text.parse::<Ipv6Addr>().is_err();
                let all = value.list().iter().filter_map(Node::text);
                all.filter(is_v4).map(|t| format!("an IPv6 address expected, not `{t}'")).collect()
            }
            _ => Vec::new(),
        };
        for text in bad {
            out.problem(Problem::at(value, format!("{}.{key}", found.path), text));
        }
    }
    let base = format!("router-advertisements of {name}");
    let command = format!("ip6 nd {name} ");
    let set = command.clone() + &words(&read(node));
    let item = Item::new(rank, base.clone(), &found.path, set);
    out.add(item.unset(command.clone() + "ra-default").needs(interface_key(name)));
    for (prefix, found) in doc.entries(&["thalweg", "interfaces", name, KEY, "prefixes"]) {
        let Some((Lifetimes { valid, preferred }, flags)) =
            found.node.text().and_then(parse_prefix)
        else {
            continue;
        };
        let times = match (valid, preferred) {
            (u32::MAX, u32::MAX) => "infinite".to_owned(),
            (valid, preferred) => format!("{} {preferred}", seconds_text(valid)),
        };
        let Some((ip, len)) = ip6_prefix(prefix) else { continue };
        let prefix = format!("{ip}/{len}");
        let mut set = format!("{command}prefix {prefix} {times}");
        // Flags come in one order, each once.
        for flag in FLAGS.iter().filter(|flag| flags.contains(flag)) {
            set = format!("{set} {flag}");
        }
        let key = format!("router-advertisements prefix {name} {prefix}");
        // The item comes after the others, in the order of the document.
        let item = Item::new(rank, key, &found.path, set);
        let item = item.unset(format!("{command}no prefix {prefix}"));
        out.add(item.needs(interface_key(name)).needs(base.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        for text in
            ["default", "3600 1800", "infinite 7 off-link", "default no-autoconfig decrement"]
        {
            let (lifetimes, flags) = parse_prefix(text).unwrap();
            let p = config::Prefix {
                lifetimes,
                on_link: !flags.contains(&"off-link"),
                autonomous: !flags.contains(&"no-autoconfig"),
                advertised: !flags.contains(&"no-advertise"),
                since: flags.contains(&"decrement").then(thalweg_graph::clock::now),
                ..config::Prefix::new(Ipv6Addr::LOCALHOST, 64)
            };
            assert_eq!(prefix_text(&p), text);
        }
        for bad in ["", "7", "7 8", "default x", "x 7"] {
            assert_eq!(parse_prefix(bad), None, "{bad}");
        }
        assert_eq!(parse_route("infinite high"), Some((u32::MAX, Preference::High)));
        assert_eq!(parse_route("60"), Some((60, Preference::Medium)));
        assert_eq!(parse_route("60 best"), None);
    }
}
