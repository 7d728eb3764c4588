//! Headers.

use thalweg_load::stream::{Field, Fill, Layer, Sum};

use crate::fields::field;
use crate::tree::{At, Out};
use crate::words::Kind;

/// Addresses and checksums that layers have if they do not say.
pub(crate) struct Defaults {
    /// Source and destination, and whether they are IPv6.
    pub(crate) between: Option<(Field, Field, bool)>,
    /// The checksum of the transport header.
    pub(crate) sum: Sum,
}

pub(crate) const SUMS: [(&str, Sum); 4] =
    [("right", Sum::Right), ("zero", Sum::Zero), ("keep", Sum::Keep), ("wrong", Sum::Wrong)];

const LAYERS: [&str; 11] =
    ["ethernet", "vlan", "mpls", "arp", "ipv4", "ipv6", "udp", "tcp", "icmp", "payload", "raw"];

/// Most bytes of a payload that a profile spells out.
const MAX_BYTES: usize = 9216;

/// Reads a list of layers.
pub(crate) fn layers(at: &At<'_>, defaults: &Defaults) -> Out<Vec<Layer>> {
    let list = at.list()?;
    if list.len() > 32 {
        return at.wrong(format!("{} layers; at most 32", list.len()));
    }
    list.iter().map(|at| layer(at, defaults)).collect()
}

fn layer(at: &At<'_>, defaults: &Defaults) -> Out<Layer> {
    // `- ethernet`, or `- mpls: {label: 16}`.
    if !at.is_map() {
        let name = at.word()?;
        return named(&name, at, at, defaults);
    }
    match &at.entries()?[..] {
        [(name, inner)] => named(name, at, inner, defaults),
        _ => at.wrong("each layer of the list is one key, as in `- mpls: {label: 16}'"),
    }
}

fn named(name: &str, outer: &At<'_>, at: &At<'_>, defaults: &Defaults) -> Out<Layer> {
    let is_map = at.is_map();
    let keys = |allowed: &[&str]| if is_map { at.keys(allowed) } else { Ok(()) };
    let get = |key: &str| if is_map { at.get(key) } else { None };
    let some = |key: &str, kind| get(key).map(|at| field(&at, kind)).transpose();
    let or = |key: &str, kind, value: u128| {
        some(key, kind).map(|field| field.unwrap_or(Field::one(value)))
    };
    let need = |key: &str, kind: Kind| match some(key, kind)? {
        Some(field) => Ok(field),
        None => outer.wrong(format!("{name} needs `{key}', {}", kind.name())),
    };
    let sum = |default| get("checksum").map_or(Ok(default), |at| at.one_of(&SUMS));
    let address = |key: &str, kind: Kind, v6: bool| match (some(key, kind)?, &defaults.between) {
        (Some(field), _) => Ok(field),
        (None, Some((source, destination, is_v6))) if *is_v6 == v6 => {
            Ok(if key == "source" { source.clone() } else { destination.clone() })
        }
        _ => outer.wrong(format!("{name} needs `{key}', or the stream `between' with such pools")),
    };
    let port = |key: &str| need(key, Kind::Number);
    Ok(match name {
        "ethernet" => {
            keys(&["source", "destination", "type"])?;
            Layer::Ethernet {
                source: some("source", Kind::Mac)?,
                destination: some("destination", Kind::Mac)?,
                kind: some("type", Kind::Number)?,
            }
        }
        "vlan" => {
            keys(&["id", "pcp", "service"])?;
            Layer::Vlan {
                id: need("id", Kind::Number)?,
                priority: or("pcp", Kind::Number, 0)?,
                service: get("service").map_or(Ok(false), |at| at.bool())?,
            }
        }
        "mpls" => {
            keys(&["label", "exp", "ttl", "bottom"])?;
            Layer::Mpls {
                label: need("label", Kind::Number)?,
                class: or("exp", Kind::Number, 0)?,
                ttl: or("ttl", Kind::Number, 64)?,
                bottom: get("bottom").map(|at| at.bool()).transpose()?,
            }
        }
        "arp" => {
            keys(&["operation", "sender_mac", "sender", "target_mac", "target"])?;
            Layer::Arp {
                operation: or("operation", Kind::Number, 1)?,
                sender_mac: some("sender_mac", Kind::Mac)?,
                sender: need("sender", Kind::V4)?,
                target_mac: or("target_mac", Kind::Mac, 0)?,
                target: need("target", Kind::V4)?,
            }
        }
        "ipv4" => {
            keys(&[
                "source",
                "destination",
                "ttl",
                "dscp",
                "id",
                "df",
                "protocol",
                "options",
                "checksum",
            ])?;
            Layer::Ipv4 {
                source: address("source", Kind::V4, false)?,
                destination: address("destination", Kind::V4, false)?,
                ttl: or("ttl", Kind::Number, 64)?,
                dscp: or("dscp", Kind::Number, 0)?,
                id: or("id", Kind::Number, 0)?,
                df: get("df").map_or(Ok(false), |at| at.bool())?,
                protocol: some("protocol", Kind::Number)?,
                options: get("options").map_or(Ok(Vec::new()), |at| hex(&at))?,
                sum: sum(Sum::Right)?,
            }
        }
        "ipv6" => {
            keys(&["source", "destination", "hop_limit", "class", "flow", "next"])?;
            Layer::Ipv6 {
                source: address("source", Kind::V6, true)?,
                destination: address("destination", Kind::V6, true)?,
                hops: or("hop_limit", Kind::Number, 64)?,
                class: or("class", Kind::Number, 0)?,
                flow: or("flow", Kind::Number, 0)?,
                next: some("next", Kind::Number)?,
            }
        }
        "udp" => {
            keys(&["source", "destination", "checksum"])?;
            Layer::Udp {
                source: port("source")?,
                destination: port("destination")?,
                sum: sum(defaults.sum)?,
            }
        }
        "tcp" => {
            keys(&["source", "destination", "sequence", "ack", "flags", "window", "checksum"])?;
            Layer::Tcp {
                source: port("source")?,
                destination: port("destination")?,
                sequence: or("sequence", Kind::Number, 0)?,
                acknowledgement: or("ack", Kind::Number, 0)?,
                flags: get("flags").map_or(Ok(Field::one(0x10u8)), |at| flags(&at))?,
                window: or("window", Kind::Number, 65_535)?,
                sum: sum(defaults.sum)?,
            }
        }
        "icmp" | "icmpv6" => {
            keys(&["type", "code", "id", "sequence", "checksum"])?;
            Layer::Icmp {
                kind: some("type", Kind::Number)?,
                code: or("code", Kind::Number, 0)?,
                id: or("id", Kind::Number, 0)?,
                sequence: or("sequence", Kind::Number, 0)?,
                sum: sum(defaults.sum)?,
            }
        }
        "payload" => payload(at)?,
        "raw" => {
            if !is_map {
                return outer.wrong("raw needs bytes, as in `- raw: {hex: \"00 01\"}'");
            }
            keys(&["hex"])?;
            Layer::Raw(hex(&at.need("hex", "bytes in hexadecimal")?)?)
        }
        _ => return outer.wrong(format!("no layer `{name}'; layers: {}", LAYERS.join(", "))),
    })
}

/// Reads what fills packets.
pub(crate) fn payload(at: &At<'_>) -> Out<Layer> {
    let mut bytes = Vec::new();
    let mut fill = Fill::Byte(0);
    if at.is_map() {
        at.keys(&["text", "hex", "fill", "pattern"])?;
        match (at.get("text"), at.get("hex")) {
            (Some(text), None) => bytes = text.word()?.into_bytes(),
            (None, Some(digits)) => bytes = hex(&digits)?,
            (Some(_), Some(hex)) => return hex.wrong("`hex' does not go with `text'"),
            (None, None) => {}
        }
        match (at.get("fill"), at.get("pattern")) {
            (Some(byte), None) => fill = Fill::Byte(one_byte(&byte)?),
            (None, Some(pattern)) => fill = pattern.one_of(&[("inc", Fill::Count)])?,
            (Some(_), Some(pattern)) => {
                return pattern.wrong("`pattern' does not go with `fill'");
            }
            (None, None) => {}
        }
    }
    if bytes.len() > MAX_BYTES {
        return at.wrong(format!("{} bytes; at most {MAX_BYTES}", bytes.len()));
    }
    Ok(Layer::Payload { bytes, fill })
}

/// A byte: a number, or a character.
pub(crate) fn one_byte(at: &At<'_>) -> Out<u8> {
    let word = at.word()?;
    let number = crate::words::whole(&word).and_then(|n| u8::try_from(n).ok());
    let letter = match word.as_bytes() {
        [letter] if !letter.is_ascii_digit() => Some(*letter),
        _ => None,
    };
    letter.or(number).map_or_else(|| at.expected("a number from 0 to 255, or one character"), Ok)
}

fn hex(at: &At<'_>) -> Out<Vec<u8>> {
    let word = at.word()?;
    let kept = word.bytes().filter(|c| !c.is_ascii_whitespace() && *c != b':');
    let digits: Vec<u8> = kept.collect();
    let value = |digit: u8| (digit as char).to_digit(16).map(|n| n as u8);
    let (pairs, []) = digits.as_chunks::<2>() else {
        return at.wrong("an odd number of hexadecimal digits");
    };
    if pairs.len() > MAX_BYTES {
        return at.wrong(format!("{} bytes; at most {MAX_BYTES}", pairs.len()));
    }
    let byte = |[high, low]: &[u8; 2]| Some(value(*high)? << 4 | value(*low)?);
    match pairs.iter().map(byte).collect() {
        Some(bytes) => Ok(bytes),
        None => at.expected("bytes in hexadecimal, as in \"00 1f\""),
    }
}

const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// TCP flags: names joined by `|`, or a field.
fn flags(at: &At<'_>) -> Out<Field> {
    if at.is_map() {
        return field(at, Kind::Number);
    }
    let word = at.word()?;
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return field(at, Kind::Number);
    }
    let bit = |name: &str| FLAGS.iter().position(|flag| *flag == name.trim());
    let bits = word.split('|').map(|name| bit(name).map(|bit| 1u8 << bit));
    match bits.collect::<Option<Vec<u8>>>() {
        Some(bits) => Ok(Field::one(bits.iter().fold(0, |all, bit| all | bit))),
        None => at.expected(&format!("flags joined by `|': {}", FLAGS.join(", "))),
    }
}
