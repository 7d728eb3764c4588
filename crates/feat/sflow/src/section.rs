//! Configuration of sFlow.

use crate::exporting::MAX_COLLECTORS;
use crate::state::{DEFAULT_DROP_LIMIT, OwnRate, SFlow, Settings as Values};
use std::net::SocketAddr;
use thalweg_config::declare::{
    Doc, Draft, Dump, Found, Item, Kind, Name, Problem, Rule, Section, Value, interface_key, rank,
};
use thalweg_graph::Control;
use thalweg_sflow::SFLOW_PORT;
use thalweg_sflow_agent::agent::CollectorConfig;
use thalweg_sflow_agent::conf::LinkSpeed;

/// Sampling and export.
pub(crate) struct Sampling;

pub(crate) static SECTION: Sampling = Sampling;

const ANY: Kind = Kind::Int(0, u32::MAX as i128);

const RULES: &[Rule] = &[
    Rule::new("thalweg.sflow.speed-rates", Kind::Named(Name::Any)),
    Rule::new("thalweg.sflow.speed-rates.*", ANY),
    Rule::new("thalweg.sflow.drop-monitoring", Kind::Bool),
    Rule::new("thalweg.sflow.drop-limit", ANY),
    Rule::new("thalweg.sflow.collectors", Kind::List(0, MAX_COLLECTORS)),
    Rule::new("thalweg.sflow.collectors.[]", Kind::Other(collector)),
    Rule::new("thalweg.interfaces.*.sflow", Kind::Bool),
    Rule::new("thalweg.interfaces.*.sampling-rate", Kind::Other(own_rate)),
];

/// The rate of an interface.
fn own_rate(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) if text == "auto" => Ok(()),
        Value::Int(n) if u32::try_from(*n).is_ok() => Ok(()),
        _ => Err(format!("a number from 0 to {}, or `auto',", u32::MAX)),
    }
}

/// A collector as it is shown: `192.0.2.1:6343`, `name:6343 namespace x dev y`; the port may be
/// left out.
fn parse(text: &str) -> Result<CollectorConfig, String> {
    let mut words = text.split_whitespace();
    let to = words.next().unwrap_or_default();
    let mut collector = match (to.parse::<SocketAddr>(), to.rsplit_once(':')) {
        (Ok(address), _) => CollectorConfig::from(address),
        (_, Some((name, port))) if !name.contains(':') || name.ends_with(']') => {
            let port = port.parse().map_err(|_| format!("`{port}' is not a port number"))?;
            let name = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
            CollectorConfig::new(CollectorConfig::parse_host(name)?, port)
        }
        _ => CollectorConfig::new(CollectorConfig::parse_host(to)?, SFLOW_PORT),
    };
    while let Some(word) = words.next() {
        let value = words.next().map(str::to_owned);
        match (word, value) {
            ("namespace", Some(name)) => collector.namespace = Some(name),
            ("dev", Some(name)) => collector.device = Some(name),
            _ => return Err(format!("`{word}' is neither `namespace <name>' nor `dev <device>'")),
        }
    }
    collector.check().map(|()| collector)
}

fn collector(value: &Value) -> Result<(), String> {
    let right = "an address and port such as \"192.0.2.1:6343\"";
    match value {
        Value::Text(text) => parse(text).map(drop).map_err(|e| format!("{e}: {right}")),
        _ => Err(right.into()),
    }
}

impl Section<Control> for Sampling {
    fn supports(&self) -> Vec<&'static str> {
        vec!["interfaces.*.sflow"]
    }

    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let state = c.state::<SFlow>();
        let state = state.borrow();
        let (values, default) = (state.settings(), Values::default());
        for (speed, rate) in &values.speed_rates {
            out.put(&["thalweg", "sflow", "speed-rates", &speed.to_string()], *rate);
        }
        if values.drop_monitoring {
            out.put(&["thalweg", "sflow", "drop-monitoring"], true);
        }
        if values.drop_limit != default.drop_limit {
            out.put(&["thalweg", "sflow", "drop-limit"], values.drop_limit);
        }
        for collector in &values.export.collectors {
            out.push(&["thalweg", "sflow", "collectors"], collector.to_string());
        }
        for (sw_if, rate) in state.ports() {
            let name = c.interface_name(sw_if);
            out.set(&name, "sflow", true);
            if let Some(rate) = rate {
                match rate {
                    OwnRate::Fixed(rate) => out.set(&name, "sampling-rate", rate),
                    OwnRate::Auto => out.set(&name, "sampling-rate", "auto"),
                }
            }
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        speed_rates(doc, out);
        words(doc, out);
        collectors(doc, out);
        for i in doc.interfaces() {
            let rate = i.get("sampling-rate");
            match i.get("sflow").filter(|f| f.node.bool() == Some(true)) {
                Some(found) => port(&i.name, &found, rate, out),
                None => {
                    if let Some(rate) = rate {
                        let text = "a rate requires `sflow: true'";
                        out.problem(Problem::at(rate.node, rate.path, text));
                    }
                }
            }
        }
    }
}

fn speed_rates(doc: &Doc<'_>, out: &mut Draft) {
    for (name, found) in doc.entries(&["thalweg", "sflow", "speed-rates"]) {
        let speed = match name.parse::<LinkSpeed>() {
            Ok(speed) => speed,
            Err(why) => {
                out.problem(Problem::at(found.node, &found.path, why));
                continue;
            }
        };
        let Some(rate) = found.node.u32() else { continue };
        let key = "sflow sampling-rate";
        let set = format!("{key} {rate} speed {speed}");
        let item = Item::new(rank::SERVICE, format!("{key} speed {speed}"), &found.path, set);
        out.add(item.unset(format!("{key} default speed {speed}")));
    }
}

fn words(doc: &Doc<'_>, out: &mut Draft) {
    let at = |key: &str| doc.at(&["thalweg", "sflow", key]);
    let on = at("drop-monitoring").filter(|f| f.node.bool() == Some(true));
    let limit = at("drop-limit").and_then(|f| Some((f.node.u32()?, f.path)));
    let limit = limit.filter(|(n, _)| *n != DEFAULT_DROP_LIMIT);
    if on.is_some() || limit.is_some() {
        let key = "sflow drop-monitoring";
        let word = if on.is_some() { "enable" } else { "disable" };
        let n = limit.as_ref().map_or(DEFAULT_DROP_LIMIT, |l| l.0);
        let path = on.map(|f| f.path).or(limit.map(|l| l.1)).unwrap_or_default();
        let item = Item::new(rank::SERVICE, key, path, format!("{key} {word} limit {n}"));
        out.add(item.unset(format!("{key} disable")));
    }
}

fn collectors(doc: &Doc<'_>, out: &mut Draft) {
    let Some(all) = doc.at(&["thalweg", "sflow", "collectors"]) else { return };
    for (i, node) in all.node.list().iter().enumerate() {
        let Some(to) = node.text().and_then(|t| parse(t).ok()) else { continue };
        let path = format!("{}[{i}]", all.path);
        let mut rest = format!("{} port {}", to.host, to.port);
        for (word, value) in [("namespace", &to.namespace), ("dev", &to.device)] {
            if let Some(value) = value {
                rest += &format!(" {word} {value}");
            }
        }
        let set = format!("sflow collector add {rest}");
        let item = Item::new(rank::SERVICE, format!("sflow collector {to}"), path, set);
        out.add(item.unset(format!("sflow collector del {rest}")));
    }
}

fn port(name: &str, found: &Found<'_>, rate: Option<Found<'_>>, out: &mut Draft) {
    if name == "local0" {
        let text = "sFlow cannot be enabled on local0, only on physical ports";
        return out.problem(Problem::at(found.node, &found.path, text));
    }
    let command = format!("sflow enable-disable {name}");
    let set = match rate {
        Some(rate) => format!("{command} rate {}", rate.node.value),
        None => format!("{command} rate default"),
    };
    let item = Item::new(rank::SERVICE_PORT, format!("sflow {name}"), &found.path, set)
        .unset(format!("{command} disable"));
    out.add(item.needs(interface_key(name)));
}
