//! Conversion of YAML text to trees and back. The only module that uses the YAML library.

use super::node::{Node, Place, Value};
use super::report::Problem;
use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Location, Spanned};
use std::fmt;

/// Maximum length of a text, in bytes.
pub const MAX_TEXT: usize = 256 << 20;
/// Maximum number of values in a text.
const MAX_NODES: usize = 16_000_000;
/// Maximum nesting depth; the model needs eight levels.
const MAX_DEPTH: usize = 32;

fn place(at: Location) -> Option<Place> {
    (at.line() > 0).then(|| Place { line: at.line(), column: at.column() })
}

/// Parses a text.
///
/// # Errors
/// If it is not YAML, longer than [`MAX_TEXT`], or nested too deep.
pub fn parse(text: &str) -> Result<Node, Problem> {
    parse_within(text, MAX_TEXT, MAX_NODES)
}

/// Parses a text with limits of its own: bytes of the text, and values that it has, those of
/// aliases counted each time.
///
/// # Errors
/// If it is not YAML, exceeds a limit, or is nested too deep.
pub fn parse_within(text: &str, bytes: usize, nodes: usize) -> Result<Node, Problem> {
    if text.len() > bytes {
        return Err(Problem::new("", format!("longer than {} MiB", bytes >> 20)));
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 4 * nodes,
            max_nodes: nodes,
            max_depth: MAX_DEPTH,
            max_documents: 1,
            max_total_scalar_bytes: bytes,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        with_snippet: false,
    };
    // Only spaces and comments: no settings.
    let blank = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "---" || line == "..."
    };
    if text.lines().all(blank) {
        return Ok(Node::default());
    }
    serde_saphyr::from_str_with_options::<Node>(text, options).map_err(|error| {
        let at = error.location().and_then(place);
        Problem { place: at, ..Problem::new("", plain(&error)) }
    })
}

/// Returns the library's message without the place, which precedes it.
fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let end = text.rfind(" at line ").or_else(|| text.rfind("; line "));
    let first = text.get(..end.unwrap_or(text.len())).unwrap_or(&text);
    let first = first.lines().next().unwrap_or("invalid YAML").trim();
    // The library names its limits by their fields.
    if let Some(limit) = first.strip_prefix("budget breached: ") {
        return match limit.split([' ', '{', '(']).next().unwrap_or_default() {
            "Documents" => {
                "a second document begins here; a file has one: remove the `---' between \
                            them, or use two files"
                    .into()
            }
            "Depth" | "ExceededDepth" => format!("nested deeper than {MAX_DEPTH} levels"),
            _ => "more settings than a document may have".into(),
        };
    }
    let twice = first.strip_prefix("duplicate mapping key: ").and_then(|k| k.split_once(", set "));
    match twice {
        Some((key, _)) => format!("`{key}' is a duplicate key: merge both entries into one"),
        None if first.starts_with("tabs disallowed") => {
            "tab in indentation: YAML allows spaces only".into()
        }
        None => first.to_owned(),
    }
}

/// Writes a tree.
///
/// # Errors
/// If it contains a value that YAML cannot represent.
pub fn write(node: &Node) -> Result<String, Problem> {
    if node.value.is_empty() {
        return Ok("{}\n".into());
    }
    serde_saphyr::to_string(node).map_err(|e| Problem::new("", e.to_string()))
}

struct Bare(Value);

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Node, D::Error> {
        let Spanned { value: Bare(value), referenced, .. } = Spanned::<Bare>::deserialize(from)?;
        Ok(Node { value, place: place(referenced) })
    }
}

impl<'de> Deserialize<'de> for Bare {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Bare, D::Error> {
        from.deserialize_any(Any).map(Bare)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(Any)
    }
    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }
    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Int(n.into()))
    }
    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(Value::Int(n.into()))
    }
    fn visit_i128<E>(self, n: i128) -> Result<Value, E> {
        Ok(Value::Int(n))
    }
    fn visit_u128<E: serde::de::Error>(self, n: u128) -> Result<Value, E> {
        n.try_into().map(Value::Int).map_err(|_| E::custom("the number is too large"))
    }
    fn visit_f64<E>(self, n: f64) -> Result<Value, E> {
        Ok(Value::Float(n))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = from.next_element()? {
            list.push(node);
        }
        Ok(Value::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut map = IndexMap::new();
        while let Some(Spanned { value: key, referenced, .. }) =
            from.next_key::<Spanned<String>>()?
        {
            let mut node: Node = from.next_value()?;
            // What begins on a later line is found by its key.
            let at = place(referenced);
            if node.place.zip(at).is_some_and(|(value, key)| value.line > key.line) {
                node.place = at;
            }
            if let Some(old) = map.insert(key, node) {
                // The library refuses equal keys; this is for different spellings of one key.
                let at = old.place.map_or(String::new(), |p| format!(" (first at {p})"));
                return Err(A::Error::custom(format!("duplicate key{at}")));
            }
        }
        Ok(Value::Map(map))
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Null => to.serialize_unit(),
            Value::Bool(b) => to.serialize_bool(*b),
            Value::Int(n) => match (i64::try_from(*n), u64::try_from(*n)) {
                (Ok(n), _) => to.serialize_i64(n),
                (_, Ok(n)) => to.serialize_u64(n),
                _ => to.serialize_i128(*n),
            },
            Value::Float(n) => to.serialize_f64(*n),
            Value::Text(text) => to.serialize_str(text),
            Value::List(list) => {
                let mut seq = to.serialize_seq(Some(list.len()))?;
                list.iter().try_for_each(|node| seq.serialize_element(node))?;
                seq.end()
            }
            Value::Map(map) => {
                let mut out = to.serialize_map(Some(map.len()))?;
                map.iter().try_for_each(|(key, node)| out.serialize_entry(key, node))?;
                out.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_document_with_places() {
        let text = "interfaces:\n  host-eth0:\n    mtu: 1500\n    state: up\n    list: [a, yes]\n";
        let root = parse(text).unwrap();
        let mtu = root.at(&["interfaces", "host-eth0", "mtu"]).unwrap();
        assert_eq!((mtu.u32(), mtu.place), (Some(1500), Some(Place { line: 3, column: 10 })));
        assert_eq!(
            root.at(&["interfaces", "host-eth0", "list"]).unwrap().list()[1].bool(),
            Some(true)
        );
    }

    #[test]
    fn numbers_as_keys_and_macs_as_texts() {
        let root = parse("a:\n  1234: {mac: 00:01:02:03:04:05, b: 10:20:30:40:50:59}\n").unwrap();
        let inner = root.at(&["a", "1234"]).unwrap();
        assert_eq!(inner.get("mac").unwrap().text(), Some("00:01:02:03:04:05"));
        assert_eq!(inner.get("b").unwrap().text(), Some("10:20:30:40:50:59"));
    }

    #[test]
    fn nothing_is_no_settings() {
        for text in ["", "---\n", "# only a word\n", "{}"] {
            assert!(parse(text).unwrap().value.is_empty(), "{text:?}");
        }
    }

    #[test]
    fn a_block_is_where_its_key_is() {
        let root = parse("a:\n  b: {c: 1}\n  d:\n    - e\n").unwrap();
        let place = |path: &[&str]| root.at(path).unwrap().place.unwrap().to_string();
        assert_eq!([place(&["a"]), place(&["a", "b"]), place(&["a", "d"])], ["1:1", "2:6", "3:3"]);
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, line) in [("a: 1\na: 2\n", 2), ("a: [1, 2\nb: 3\n", 2), ("a: 1\n\tb: 2\n", 2)] {
            let e = parse(text).unwrap_err();
            assert!(e.place.is_some_and(|p| p.line >= line - 1), "{text:?}: {e:?}");
            assert!(!e.message.is_empty() && !e.message.contains('\n'), "{e:?}");
        }
        let says = |text: &str| parse(text).unwrap_err().message;
        assert!(
            says("a: 1\na: 2\n").starts_with("`a' is a duplicate key"),
            "{}",
            says("a: 1\na: 2\n")
        );
        assert!(says("a:\n\tb: 2\n").starts_with("tab in indentation"), "{}", says("a:\n\tb: 2\n"));
        let two = says("a: 1\n---\nb: 2\n");
        assert!(two.starts_with("a second document begins here"), "{two}");
        let deep = says(&format!("{}1{}", "[".repeat(60), "]".repeat(60)));
        assert!(deep.starts_with("nested deeper than 32"), "{deep}");
        assert!(parse(&format!("{}1{}", "[".repeat(60), "]".repeat(60))).is_err());
    }

    fn value() -> impl Strategy<Value = Node> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|n| Value::Int(n.into())),
            "[ -~é]{0,12}".prop_map(Value::Text),
            prop_oneof![
                Just("yes"),
                Just("~"),
                Just("1e3"),
                Just("0x10"),
                Just("10:20:30"),
                Just("- a"),
                Just("a: b"),
                Just("#x"),
                Just("010"),
                Just("1_000"),
                Just("%a"),
                Just("@a")
            ]
            .prop_map(|t| Value::Text(t.into())),
        ]
        .prop_map(Node::from);
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Node::from),
                proptest::collection::vec(("[ -~]{1,8}", inner), 0..5)
                    .prop_map(|entries| { Value::Map(entries.into_iter().collect()).into() }),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_documents_read_back(node in value()) {
            let text = write(&node).unwrap();
            let back = parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
            if !(node.value.is_empty() && back.value.is_empty()) {
                prop_assert_eq!(back, node, "{}", text);
            }
        }

        #[test]
        fn no_text_is_too_much(text in "[-a-c0-9:#&*!|>'\"\\[\\]{}%@`, \t\n?~]{0,60}") {
            let _ = parse(&text);
        }
    }
}
