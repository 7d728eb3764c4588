//! Conversion of YAML text to trees and back. The only module that uses the YAML library.

use super::node::{Node, Place, Value};
use super::report::Problem;
use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Location, Spanned};
use std::fmt;
use std::marker::PhantomData;

/// Maximum length of a text, in bytes.
pub const MAX_TEXT: usize = 256 << 20;
/// Maximum number of values in a text.
const MAX_NODES: usize = 16_000_000;
/// Values that a text may have by aliases in any case, and as a multiple of its bytes: without
/// aliases each has a byte of its own at least.
const FREE_NODES: usize = 4096;
const NODES_PER_BYTE: usize = 2;
/// The same for the bytes of values.
const FREE_BYTES: usize = 64 << 10;
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
    read::<WithPlaces>(text, bytes, nodes)
}

/// The same, with single values as texts, just as they are written: `no`, `012` or `1.50` is a
/// word, and its reader says what it means. Only nothing is still [`Value::Null`].
///
/// # Errors
/// As [`parse_within`].
pub fn parse_words(text: &str, bytes: usize, nodes: usize) -> Result<Node, Problem> {
    read::<Words>(text, bytes, nodes).map(|root| root.words(text))
}

/// Parses a text without places, which is faster: most texts have no mistakes to be found there.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_bare(text: &str) -> Result<Node, Problem> {
    read::<Bare>(text, MAX_TEXT, MAX_NODES)
}

fn read<S: Style>(text: &str, bytes: usize, nodes: usize) -> Result<S::Node, Problem> {
    if text.len() > bytes {
        return Err(Problem::new("", format!("longer than {} MiB", bytes >> 20)));
    }
    // Limit the text before anything is built: aliases of aliases make a short text large.
    let nodes = nodes.min(FREE_NODES + NODES_PER_BYTE * text.len());
    let bytes = bytes.min(FREE_BYTES + 2 * text.len());
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
        return Ok(S::Node::default());
    }
    match serde_saphyr::from_str_with_options::<Read<S>>(text, options) {
        Ok(Read(root)) => Ok(root),
        Err(error) => {
            let at = error.location().and_then(place);
            Err(Problem { place: at, ..Problem::new("", plain(&error)) })
        }
    }
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
            _ => "more settings than a document of this length may have".into(),
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

/// Way to read parts of a document, and choice of the parts.
trait Style: Sized {
    /// A part of a document.
    type Node: Default;
    /// A part without its place.
    fn node(value: Tree<Self>) -> Self::Node;
    fn place(node: &Self::Node) -> Option<Place>;
    /// Reads a part.
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self::Node, D::Error>;
    /// Reads a key and its value.
    fn entry<'de, A: MapAccess<'de>>(from: &mut A) -> Result<Entry<Self>, A::Error>;
}

/// A key and its value; `None` at the end.
type Entry<S> = Option<(String, <S as Style>::Node)>;

/// Contents of a part of a document.
enum Tree<S: Style> {
    Scalar(Value),
    List(Vec<S::Node>),
    Map(IndexMap<String, S::Node>),
}

impl<S: Style<Node = Node>> Tree<S> {
    fn value(self) -> Value {
        match self {
            Tree::Scalar(value) => value,
            Tree::List(list) => Value::List(list),
            Tree::Map(map) => Value::Map(map),
        }
    }
}

/// Nodes without places, read faster than those with places.
struct Bare;

impl Style for Bare {
    type Node = Node;
    fn node(value: Tree<Bare>) -> Node {
        value.value().into()
    }
    fn place(_: &Node) -> Option<Place> {
        None
    }
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Node, D::Error> {
        Tree::deserialize(from).map(Bare::node)
    }
    fn entry<'de, A: MapAccess<'de>>(from: &mut A) -> Result<Entry<Bare>, A::Error> {
        let Some(key) = from.next_key()? else { return Ok(None) };
        Ok(Some((key, from.next_value::<Read<Bare>>()?.0)))
    }
}

/// A part whose place is read as well.
trait Placed: Style {
    /// `used`: where it stands, and `defined`: where its text stands, which is elsewhere for an
    /// alias.
    fn at(value: Tree<Self>, used: Location, defined: Location) -> Self::Node;
    fn move_to(node: &mut Self::Node, used: Location);
}

fn read_placed<'de, S: Placed, D: Deserializer<'de>>(from: D) -> Result<S::Node, D::Error> {
    let Spanned { value, referenced, defined } = Spanned::<Tree<S>>::deserialize(from)?;
    Ok(S::at(value, referenced, defined))
}

fn placed_entry<'de, S: Placed, A: MapAccess<'de>>(from: &mut A) -> Result<Entry<S>, A::Error> {
    let Some(Spanned { value: key, referenced, .. }) = from.next_key::<Spanned<String>>()? else {
        return Ok(None);
    };
    let Read(mut node): Read<S> = from.next_value()?;
    // A value that begins on a later line than its key gets the key's place.
    let places = S::place(&node).zip(place(referenced));
    if places.is_some_and(|(value, key)| value.line > key.line) {
        S::move_to(&mut node, referenced);
    }
    Ok(Some((key, node)))
}

/// Nodes with their places.
struct WithPlaces;

impl Style for WithPlaces {
    type Node = Node;
    fn node(value: Tree<WithPlaces>) -> Node {
        value.value().into()
    }
    fn place(node: &Node) -> Option<Place> {
        node.place
    }
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Node, D::Error> {
        read_placed::<WithPlaces, D>(from)
    }
    fn entry<'de, A: MapAccess<'de>>(from: &mut A) -> Result<Entry<WithPlaces>, A::Error> {
        placed_entry::<WithPlaces, A>(from)
    }
}

impl Placed for WithPlaces {
    fn at(value: Tree<WithPlaces>, used: Location, _: Location) -> Node {
        Node { value: value.value(), place: place(used) }
    }
    fn move_to(node: &mut Node, used: Location) {
        node.place = place(used);
    }
}

/// A part that knows where its text is.
struct Marked {
    value: Tree<Words>,
    used: Location,
    defined: Location,
}

impl Default for Marked {
    fn default() -> Marked {
        Words::node(Tree::Scalar(Value::Null))
    }
}

/// Parts that know where their text is.
struct Words;

impl Style for Words {
    type Node = Marked;
    fn node(value: Tree<Words>) -> Marked {
        Marked { value, used: Location::UNKNOWN, defined: Location::UNKNOWN }
    }
    fn place(node: &Marked) -> Option<Place> {
        place(node.used)
    }
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Marked, D::Error> {
        read_placed::<Words, D>(from)
    }
    fn entry<'de, A: MapAccess<'de>>(from: &mut A) -> Result<Entry<Words>, A::Error> {
        placed_entry::<Words, A>(from)
    }
}

impl Placed for Words {
    fn at(value: Tree<Words>, used: Location, defined: Location) -> Marked {
        Marked { value, used, defined }
    }
    fn move_to(node: &mut Marked, used: Location) {
        node.used = used;
    }
}

impl Marked {
    /// Its nodes, with what `text` has for each single value.
    fn words(self, text: &str) -> Node {
        let place = place(self.used);
        let value = match self.value {
            Tree::Scalar(value @ (Value::Null | Value::Text(_))) => value,
            Tree::Scalar(value) => Value::Text(match source(text, self.defined) {
                Some(word) => word.to_owned(),
                None => value.to_string(),
            }),
            Tree::List(list) => Value::List(list.into_iter().map(|one| one.words(text)).collect()),
            Tree::Map(map) => {
                Value::Map(map.into_iter().map(|(key, one)| (key, one.words(text))).collect())
            }
        };
        Node { value, place }
    }
}

/// Returns the plain text at a place; `None` if it is not plain, such as a number in quotes with a
/// tag.
fn source(text: &str, at: Location) -> Option<&str> {
    let start = usize::try_from(at.span().byte_offset()?).ok()?;
    let length = usize::try_from(at.span().byte_len()?).ok()?;
    let word = text.get(start..start.checked_add(length)?)?.trim();
    (!word.is_empty() && !word.starts_with(['"', '\'', '|', '>'])).then_some(word)
}

/// A part as it is read.
struct Read<S: Style>(S::Node);

impl<'de, S: Style> Deserialize<'de> for Read<S> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Read<S>, D::Error> {
        S::read(from).map(Read)
    }
}

impl<'de, S: Style> Deserialize<'de> for Tree<S> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Tree<S>, D::Error> {
        from.deserialize_any(Any(PhantomData))
    }
}

struct Any<S>(PhantomData<S>);

impl<'de, S: Style> Visitor<'de> for Any<S> {
    type Value = Tree<S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Tree<S>, E> {
        Ok(Tree::Scalar(Value::Null))
    }
    fn visit_none<E>(self) -> Result<Tree<S>, E> {
        Ok(Tree::Scalar(Value::Null))
    }
    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Tree<S>, D::Error> {
        from.deserialize_any(self)
    }
    fn visit_bool<E>(self, b: bool) -> Result<Tree<S>, E> {
        Ok(Tree::Scalar(Value::Bool(b)))
    }
    fn visit_i64<E>(self, n: i64) -> Result<Tree<S>, E> {
        Ok(Tree::Scalar(Value::Int(n.into())))
    }
    fn visit_u64<E>(self, n: u64) -> Result<Tree<S>, E> {
        Ok(Tree::Scalar(Value::Int(n.into())))
    }
    fn visit_i128<E>(self, n: i128) -> Result<Tree<S>, E> {
        Ok(Tree::Scalar(Value::Int(n)))
    }
    fn visit_u128<E: serde::de::Error>(self, n: u128) -> Result<Tree<S>, E> {
        let n = n.try_into().map_err(|_| E::custom("the number is too large"))?;
        Ok(Tree::Scalar(Value::Int(n)))
    }
    fn visit_f64<E>(self, n: f64) -> Result<Tree<S>, E> {
        Ok(Tree::Scalar(Value::Float(n)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Tree<S>, E> {
        Ok(Tree::Scalar(Value::Text(text.to_owned())))
    }
    fn visit_string<E>(self, text: String) -> Result<Tree<S>, E> {
        Ok(Tree::Scalar(Value::Text(text)))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Tree<S>, A::Error> {
        let mut list = Vec::new();
        while let Some(Read(node)) = from.next_element::<Read<S>>()? {
            list.push(node);
        }
        Ok(Tree::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Tree<S>, A::Error> {
        let mut map = IndexMap::new();
        while let Some((key, node)) = S::entry(&mut from)? {
            if let Some(old) = map.insert(key, node) {
                // The library refuses equal keys; this is for different spellings of one key.
                let at = S::place(&old).map_or(String::new(), |p| format!(" (first at {p})"));
                return Err(A::Error::custom(format!("duplicate key{at}")));
            }
        }
        Ok(Tree::Map(map))
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
    fn words_are_as_they_are_written() {
        let text = "é: [y, off, 1.50, 012, 1_000, 0x1F, 1e3, True, .5]\nk: &k 1.0\nl: *k\n\
                    m: \"y\\t\"\nn: !!int \"7\"\no: ~\np: a b # no\nq: >\n  1.0\nr: {s: no}\n";
        let root = parse_words(text, MAX_TEXT, MAX_NODES).unwrap();
        let of = |node: &Node| node.value.to_string();
        let list: Vec<String> = root.get("é").unwrap().list().iter().map(of).collect();
        assert_eq!(list, ["y", "off", "1.50", "012", "1_000", "0x1F", "1e3", "True", ".5"]);
        assert!(root.get("é").unwrap().list().iter().all(|node| node.text().is_some()));
        for (key, word) in
            [("k", "1.0"), ("l", "1.0"), ("m", "y\t"), ("n", "7"), ("p", "a b"), ("q", "1.0\n")]
        {
            assert_eq!(root.get(key).unwrap().text(), Some(word), "{key}");
        }
        assert_eq!(root.get("o").unwrap().value, Value::Null);
        assert_eq!(root.at(&["r", "s"]).unwrap().text(), Some("no"));
        assert_eq!(root.at(&["l"]).unwrap().place, Some(Place { line: 3, column: 4 }));
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
        // Aliases of aliases: half a million values in a line of each letter.
        let mut text = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (to, from) in ('b'..='f').zip('a'..) {
            text += &format!("{to}: &{to} [{}]\n", vec![format!("*{from}"); 9].join(", "));
        }
        let large = says(&text);
        assert!(large.starts_with("more settings than a document of this length"), "{large}");
        assert!(deep.starts_with("nested deeper than 32"), "{deep}");
        assert!(parse(&format!("{}1{}", "[".repeat(60), "]".repeat(60))).is_err());
    }

    #[test]
    fn aliases_that_repeat_a_part_are_read() {
        let part = "&a {mtu: 1500, list: [1, 2, 3]}";
        let more: String = (0..90).map(|i| format!("e{i}: *a\n")).collect();
        let root = parse(&format!("first: {part}\n{more}")).unwrap();
        assert_eq!(root.at(&["e89", "mtu"]).unwrap().u32(), Some(1500));
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
            let typed = parse(&text);
            let words = parse_words(&text, MAX_TEXT, MAX_NODES);
            prop_assert_eq!(typed.is_ok(), words.is_ok(), "{:?} {:?}", typed, words);
        }
    }
}
