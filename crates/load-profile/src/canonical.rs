//! The canonical form of a profile: JSON that says all, and that is a profile itself.

use serde_json::{Map, Value, json};
use thalweg_load::stream::{
    Caching, Direction, Field, Fill, Layer, Mode, Rate, Size, Start, Steps, Stream, Sum, Values,
};
use thalweg_load::talk::{Gaps, Pool, Program, Protocol, Step, Talk};

use crate::words::Kind;
use crate::{Flows, Profile};

/// Writes a profile.
pub(crate) fn profile(profile: &Profile) -> Value {
    let mut streams = Vec::new();
    let mut flows = Vec::new();
    for pair in &profile.pairs {
        for stream in &pair.streams {
            streams.push(self::stream(stream, &pair.streams, pair.number));
        }
        for group in &pair.flows {
            flows.extend(group.plan.talks.iter().map(|talk| flow(talk, group, pair.number)));
        }
    }
    let mut all = Map::new();
    all.insert("version".into(), json!(1));
    for (key, list) in [("streams", streams), ("flows", flows)] {
        if !list.is_empty() {
            all.insert(key.into(), Value::Array(list));
        }
    }
    Value::Object(all)
}

fn number(n: u128) -> Value {
    u64::try_from(n).map_or_else(|_| json!(n.to_string()), |n| json!(n))
}

fn value(n: u128, kind: Kind) -> Value {
    match kind {
        Kind::Number => number(n),
        _ => json!(kind.write(n)),
    }
}

fn field(field: &Field, kind: Kind) -> Value {
    let range = |low: u128, high: u128| json!(format!("{}-{}", kind.write(low), kind.write(high)));
    let mut map = Map::new();
    match &field.values {
        Values::One(one) => return value(*one, kind),
        Values::Count { first, last, step, start } => {
            let (way, low, high) = match first <= last {
                true => ("inc", first, last),
                false => ("dec", last, first),
            };
            map.insert(way.into(), range(*low, *high));
            if *step != 1 {
                map.insert("step".into(), number(*step));
            }
            if start != first {
                map.insert("start".into(), value(*start, kind));
            }
        }
        Values::List(list) => {
            map.insert("list".into(), list.iter().map(|one| value(*one, kind)).collect());
        }
        Values::Random { least, most, seed, distinct } => {
            map.insert("random".into(), range(*least, *most));
            if *seed != 0 {
                map.insert("seed".into(), json!(seed));
            }
            if let Some(distinct) = distinct {
                map.insert("distinct".into(), json!(distinct));
            }
        }
    }
    match &field.steps {
        Steps::Packet => {}
        Steps::With(other) => {
            map.insert("with".into(), json!(other));
        }
        Steps::After(other) => {
            map.insert("after".into(), json!(other));
        }
    }
    Value::Object(map)
}

fn hex(bytes: &[u8]) -> Value {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    json!(digits.join(" "))
}

fn sum(sum: Sum) -> &'static str {
    match sum {
        Sum::Right => "right",
        Sum::Zero => "zero",
        Sum::Keep => "keep",
        Sum::Wrong => "wrong",
    }
}

fn layer(layer: &Layer) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, one: &Field, kind| map.insert(key.into(), field(one, kind));
    let n = Kind::Number;
    match layer {
        Layer::Ethernet { source, destination, kind } => {
            for (key, one, of) in [
                ("source", source, Kind::Mac),
                ("destination", destination, Kind::Mac),
                ("type", kind, n),
            ] {
                one.iter().for_each(|one| {
                    put(key, one, of);
                });
            }
        }
        Layer::Vlan { id, priority, service } => {
            put("id", id, n);
            put("pcp", priority, n);
            map.insert("service".into(), json!(service));
        }
        Layer::Mpls { label, class, ttl, bottom } => {
            put("label", label, n);
            put("exp", class, n);
            put("ttl", ttl, n);
            bottom.iter().for_each(|bottom| {
                map.insert("bottom".into(), json!(bottom));
            });
        }
        Layer::Arp { operation, sender_mac, sender, target_mac, target } => {
            put("operation", operation, n);
            sender_mac.iter().for_each(|mac| {
                put("sender_mac", mac, Kind::Mac);
            });
            put("sender", sender, Kind::V4);
            put("target_mac", target_mac, Kind::Mac);
            put("target", target, Kind::V4);
        }
        Layer::Ipv4 { source, destination, ttl, dscp, id, df, protocol, options, sum: own } => {
            put("source", source, Kind::V4);
            put("destination", destination, Kind::V4);
            put("ttl", ttl, n);
            put("dscp", dscp, n);
            put("id", id, n);
            protocol.iter().for_each(|protocol| {
                put("protocol", protocol, n);
            });
            map.insert("df".into(), json!(df));
            if !options.is_empty() {
                map.insert("options".into(), hex(options));
            }
            map.insert("checksum".into(), json!(sum(*own)));
        }
        Layer::Ipv6 { source, destination, hops, class, flow, next } => {
            put("source", source, Kind::V6);
            put("destination", destination, Kind::V6);
            put("hop_limit", hops, n);
            put("class", class, n);
            put("flow", flow, n);
            next.iter().for_each(|next| {
                put("next", next, n);
            });
        }
        Layer::Udp { source, destination, sum: own } => {
            put("source", source, n);
            put("destination", destination, n);
            map.insert("checksum".into(), json!(sum(*own)));
        }
        Layer::Tcp { source, destination, sequence, acknowledgement, flags, window, sum: own } => {
            put("source", source, n);
            put("destination", destination, n);
            put("sequence", sequence, n);
            put("ack", acknowledgement, n);
            put("flags", flags, n);
            put("window", window, n);
            map.insert("checksum".into(), json!(sum(*own)));
        }
        Layer::Icmp { kind, code, id, sequence, sum: own } => {
            kind.iter().for_each(|kind| {
                put("type", kind, n);
            });
            put("code", code, n);
            put("id", id, n);
            put("sequence", sequence, n);
            map.insert("checksum".into(), json!(sum(*own)));
        }
        Layer::Raw(bytes) => {
            map.insert("hex".into(), hex(bytes));
        }
        Layer::Payload { bytes, fill } => {
            if !bytes.is_empty() {
                map.insert("hex".into(), hex(bytes));
            }
            match fill {
                Fill::Byte(byte) => map.insert("fill".into(), json!(byte)),
                Fill::Count => map.insert("pattern".into(), json!("inc")),
            };
        }
    }
    json!({ layer.name(): map })
}

fn rate(rate: Rate) -> Value {
    json!(match rate {
        Rate::Packets(n) => format!("{n} pps"),
        Rate::Bits(n) => format!("{n} bps"),
        Rate::WireBits(n) => format!("{n} bps-l1"),
        Rate::Percent(n) => format!("{n} %"),
    })
}

fn stream(stream: &Stream, all: &[Stream], pair: u32) -> Value {
    let size = match &stream.size {
        Size::One(bytes) => json!(bytes),
        Size::Range { least, most, random } => {
            let way = if *random { "random" } else { "inc" };
            json!({ way: format!("{least}-{most}") })
        }
        Size::Shares(list) => {
            list.iter().map(|(size, share)| json!({"size": size, "share": share})).collect()
        }
    };
    let mode = match stream.mode {
        Mode::Continuous => json!("continuous"),
        Mode::Burst { packets } => json!({"burst": {"packets": packets}}),
        Mode::Bursts { packets, every, count } => {
            json!({"bursts": {"packets": packets, "every": format!("{every} ns"), "count": count}})
        }
    };
    let after = match stream.start {
        Start::After(pause) => json!(format!("{pause} ns")),
        Start::Behind { stream, pause } => {
            let name = all.get(stream).map_or("", |stream| stream.name.as_str());
            json!({"stream": name, "pause": format!("{pause} ns")})
        }
    };
    let cache = match stream.caching {
        Caching::Auto => json!("auto"),
        Caching::Off => json!("off"),
        Caching::Packets(packets) => json!(packets),
    };
    let direction = match stream.direction {
        Direction::AToB => "a-b",
        Direction::BToA => "b-a",
        Direction::Both => "both",
    };
    json!({
        "name": stream.name,
        "pair": pair,
        "direction": direction,
        "layers": stream.layers.iter().map(layer).collect::<Vec<_>>(),
        "size": size,
        "rate": rate(stream.rate),
        "fixed_rate": stream.fixed_rate,
        "mode": mode,
        "after": after,
        "times": stream.times,
        "measure": if stream.tagged { "count" } else { "none" },
        "cache": cache,
    })
}

fn pool(pool: &Pool) -> Value {
    let key = if pool.first.is_ipv4() { "v4" } else { "v6" };
    json!({ key: pool.to_string() })
}

fn micros(time: u64) -> String {
    format!("{time} us")
}

fn steps(program: &Program, fill: u8) -> Value {
    let mut all: Vec<Value> = Vec::new();
    for step in program {
        let next = match step {
            Step::Send { bytes } => json!({"send": bytes}),
            Step::Expect { count } => json!({"expect": count}),
            Step::Wait { least, most } => {
                json!({"wait": format!("{}-{}", micros(*least), micros(*most))})
            }
            Step::Pause { mean } => json!({"wait": format!("exp {}", micros(*mean))}),
            Step::AwaitClose => json!("await_close"),
            Step::Close => json!("close"),
            Step::Reset => json!("reset"),
            Step::Repeat { from, times } => {
                // Repetitions do not nest: this one holds the steps since the end of the last one.
                let before = all.iter().map(length).scan(0, |sum, steps| {
                    *sum += steps;
                    Some(*sum)
                });
                let kept = before.take_while(|sum| *sum <= usize::from(*from)).count();
                let of = all.split_off(kept);
                json!({"repeat": {"times": times, "of": of}})
            }
        };
        all.push(next);
    }
    // The first message says the fill of all.
    if let Some(bytes) = all.iter_mut().find_map(first_send) {
        *bytes = json!(format!("{bytes} x {}", fill_word(fill)));
    }
    Value::Array(all)
}

/// Number of steps that a canonical step stands for.
fn length(step: &Value) -> usize {
    match step.pointer("/repeat/of").and_then(Value::as_array) {
        Some(of) => of.iter().map(length).sum::<usize>() + 1,
        None => 1,
    }
}

fn first_send(step: &mut Value) -> Option<&mut Value> {
    if step.get("send").is_some() {
        return step.get_mut("send");
    }
    step.pointer_mut("/repeat/of")?.as_array_mut()?.iter_mut().find_map(first_send)
}

fn fill_word(fill: u8) -> String {
    match fill {
        b'!'..=b'~' if !fill.is_ascii_digit() && !b"'\"".contains(&fill) => (fill as char).into(),
        _ => format!("{fill}"),
    }
}

fn flow(talk: &Talk, group: &Flows, pair: u32) -> Value {
    let plan = &group.plan;
    let mut ends = json!({
        "client": pool(&plan.clients),
        "ports": format!("{}-{}", plan.ports.0, u32::from(plan.ports.0) + u32::from(plan.ports.1) - 1),
        "server": pool(&plan.servers),
        "port": talk.port,
    });
    if talk.protocol == Protocol::Tcp {
        let times = &plan.times;
        ends["mss"] = json!(plan.mss);
        ends["time_wait"] = json!(micros(times.time_wait));
        ends["delayed_ack"] = json!(micros(times.delayed_ack));
        if let Some(keepalive) = times.keepalive {
            ends["keepalive"] = json!(micros(keepalive));
        }
        ends["retry"] = json!({
            "first": micros(times.first),
            "least": micros(times.least),
            "most": micros(times.most),
            "times": times.retries,
        });
    }
    let protocol = if talk.protocol == Protocol::Tcp { "tcp" } else { "udp" };
    let mut all = json!({
        "name": talk.name,
        "pair": pair,
        "share": talk.share,
        protocol: ends,
        "client": steps(&talk.client, talk.fill.0),
        "server": steps(&talk.server, talk.fill.1),
        "patience": micros(plan.patience),
    });
    if plan.gaps == Gaps::Exponential {
        all["gaps"] = json!("exponential");
    }
    if let Some(limit) = talk.limit {
        all["limit"] = json!(limit);
    }
    if let Some(hold) = group.hold {
        all["hold"] = json!(hold);
    }
    if let Some(total) = group.total {
        all["total"] = json!(total);
    }
    if let Some(ramp) = group.ramp {
        let form = if ramp.exponential { "exponential" } else { "linear" };
        all["ramp"] = json!(format!("{}us {form}", ramp.time));
    }
    all
}
