//! Section of MSS clamping: `mss-clamp: rx 1400` and `ip6-mss-clamp: rx 1380` of an interface.

use crate::{Clamp, Direction, MIN_MSS};
use thalweg_config::declare::{
    Doc, Draft, Dump, Item, Kind, Rule, Section, Value, interface_key, rank,
};
use thalweg_graph::Control;

/// The section.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

/// The key of each version, and its word.
const KEYS: [(&str, &str); 2] = [("mss-clamp", "ip4"), ("ip6-mss-clamp", "ip6")];

const RULES: &[Rule] = &[
    Rule::new("thalweg.interfaces.*.mss-clamp", Kind::Other(check)),
    Rule::new("thalweg.interfaces.*.ip6-mss-clamp", Kind::Other(check)),
];

/// Parses `rx 1400`, `tx 1400` or `1400`.
fn parse(text: &str) -> Option<Clamp> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (direction, mss) = match words[..] {
        ["rx", mss] => (Direction::Rx, mss),
        ["tx", mss] => (Direction::Tx, mss),
        [mss] => (Direction::Both, mss),
        _ => return None,
    };
    Some(Clamp { mss: mss.parse().ok().filter(|mss| *mss >= MIN_MSS)?, direction })
}

fn check(value: &Value) -> Result<(), String> {
    let right = match value {
        Value::Text(text) => parse(text).is_some(),
        Value::Int(_) => parse(&value.to_string()).is_some(),
        _ => false,
    };
    if right { Ok(()) } else { Err(format!("`[rx|tx] <bytes from {MIN_MSS} to 65535>'")) }
}

impl Section<Control> for Settings {
    fn rules(&self) -> &'static [Rule] {
        RULES
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        for (sw_if, limits) in crate::all(c) {
            let name = c.interface_name(sw_if);
            for ((key, _), clamp) in KEYS.into_iter().zip([limits.ip4, limits.ip6]) {
                let Some(Clamp { mss, direction }) = clamp else { continue };
                match direction {
                    Direction::Both => out.set(&name, key, u32::from(mss)),
                    one => out.set(&name, key, format!("{} {mss}", one.word())),
                }
            }
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for i in doc.interfaces() {
            for (key, ip) in KEYS {
                let Some(found) = i.get(key) else { continue };
                let Some(Clamp { mss, direction }) = parse(&found.node.value.to_string()) else {
                    continue;
                };
                let name = &*i.name;
                let words =
                    |words: &str| format!("set interface tcp-mss-clamp {name} {ip} {words}");
                let set = words(&format!("{} {ip}-mss {mss}", direction.word()));
                let key = format!("{key} of {name}");
                let item = Item::new(rank::ADDRESS, key, found.path, set);
                out.add(item.unset(words("disable")).needs(interface_key(name)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written() {
        let read = |text| parse(text).map(|c| (c.mss, c.direction));
        assert_eq!(read("rx 1400"), Some((1400, Direction::Rx)));
        assert_eq!(read("tx 64"), Some((64, Direction::Tx)));
        assert_eq!(read("65535"), Some((65_535, Direction::Both)));
        for bad in ["", "rx", "rx 63", "65536", "both 1400", "rx 1400 1"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
