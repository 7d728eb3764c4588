//! Grammar of paths: reads words of a command or a document.

use crate::label_text::{FIRST_FREE, LABEL_WORDS, label_of};
use crate::path_text::{LookIn, PathText, Place};
use crate::rib::{Labels, MAX_LABELS, Mark, Mode, PathKind, TableId};
use crate::version::Version;
use std::net::IpAddr;
use std::str::SplitWhitespace;
use thalweg_wire::mpls::{Label, MAX_LABEL};

/// Words that a path is read from.
pub trait PathWords {
    /// An interface, as the words have it.
    type Interface;
    /// An error about a word.
    type Error;
    /// Returns the next word without taking it.
    fn peek(&self) -> Option<&str>;
    /// Takes the next word.
    fn skip(&mut self);
    /// Takes an address.
    ///
    /// # Errors
    /// If the next word is none.
    fn next_hop(&mut self) -> Result<IpAddr, Self::Error>;
    /// Takes an interface.
    ///
    /// # Errors
    /// If the next word is none.
    fn interface(&mut self) -> Result<Self::Interface, Self::Error>;
    /// Takes an interface behind a next hop, where one of `words` could stand, too.
    ///
    /// # Errors
    /// If the next word is none.
    fn interface_or(&mut self, words: &[&str]) -> Result<Self::Interface, Self::Error>;
    /// Returns the error that the next word is not a valid `what`.
    fn bad(&self, what: &str, expected: &str) -> Self::Error;
}

/// Words for paths that end here, VPP's own last.
const ENDS: [(&str, PathKind); 6] = [
    ("drop", PathKind::Drop),
    ("local", PathKind::Local),
    ("unreachable", PathKind::Unreachable),
    ("prohibit", PathKind::Prohibit),
    ("null-send-unreach", PathKind::Unreachable),
    ("null-send-prohibit", PathKind::Prohibit),
];

/// Words that go on behind the place of a path, or end it.
pub const KEYWORDS: [&str; 7] =
    ["via", "table", "count", "weight", "preference", "next-hop-table", "out-labels"];

/// Words that may follow a next hop instead of an interface.
const AFTER_HOP: [&str; 5] = ["weight", "preference", "out-labels", "next-hop-table", "via"];

/// Returns the kind of path that a word alone is: `drop`, `local`, `unreachable`, `prohibit`.
#[must_use]
pub fn end_of(word: &str) -> Option<PathKind> {
    ENDS.iter().find(|(w, _)| *w == word).map(|(_, kind)| *kind)
}

/// Takes a path: the words behind `via`. Words that cannot belong to it stay.
///
/// # Errors
/// If it is none.
pub fn read_path<W: PathWords>(words: &mut W) -> Result<PathText<W::Interface>, W::Error> {
    let word = words.peek().unwrap_or_default();
    if let Some(kind) = end_of(word) {
        words.skip();
        return Ok(PathText::to(Place::End(kind)));
    }
    if word.is_empty() || KEYWORDS.contains(&word) {
        return Err(words.bad("path", "a next hop, an interface, or a word such as `drop'"));
    }
    let place = match word {
        "ip4-lookup-in-table" => look_up(words, LookIn::Ip(Version::V4))?,
        "ip6-lookup-in-table" => look_up(words, LookIn::Ip(Version::V6))?,
        "mpls-lookup-in-table" => return look_up(words, LookIn::Mpls).map(PathText::to),
        "lookup" => {
            words.skip();
            fixed(words, "in")?;
            if !words.peek().is_some_and(|w| begins(w, "table")) {
                return Err(words.bad("word", "`table'"));
            }
            look_up(words, LookIn::Own)?
        }
        "rx-ip4" => receive(words, Version::V4)?,
        "rx-ip6" => receive(words, Version::V6)?,
        "l2-input-on" => {
            words.skip();
            let interface = words.interface()?;
            let control_word = taken(words, "pop-pw-cw");
            return Ok(PathText::to(Place::Layer2 { interface, control_word }));
        }
        "via-label" => {
            words.skip();
            let label = number(words, "label", FIRST_FREE.get(), MAX_LABEL.get())?;
            return share(words, PathText::to(Place::Label(Label(label))));
        }
        _ => {
            let place = next_hop_or_interface(words)?;
            return share(words, PathText::to(place));
        }
    };
    let mut path = PathText::to(place);
    if taken(words, "out-labels") {
        path.labels = labels(words)?;
    }
    Ok(path)
}

/// Reads a path of a document: all of a text.
///
/// # Errors
/// If it is none; the text says what would be right, to stand before "expected".
pub fn path_of(text: &str) -> Result<PathText<&str>, String> {
    let mut words = TextWords { rest: text.split_whitespace(), next: None };
    words.skip();
    let path = read_path(&mut words)?;
    match words.peek() {
        Some(word) => Err(format!("no word such as `{word}' behind the path")),
        None => Ok(path),
    }
}

/// Takes a word if it is the next one.
fn taken<W: PathWords>(words: &mut W, word: &str) -> bool {
    let is_next = words.peek() == Some(word);
    if is_next {
        words.skip();
    }
    is_next
}

fn begins(word: &str, keyword: &str) -> bool {
    !word.is_empty() && keyword.starts_with(word)
}

/// Takes a word that has to come, or what it begins with.
fn fixed<W: PathWords>(words: &mut W, keyword: &str) -> Result<(), W::Error> {
    if !words.peek().is_some_and(|w| begins(w, keyword)) {
        return Err(words.bad("word", &format!("`{keyword}'")));
    }
    words.skip();
    Ok(())
}

/// Takes a number, decimal or `0x` hexadecimal.
fn number<W: PathWords>(words: &mut W, what: &str, low: u32, high: u32) -> Result<u32, W::Error> {
    let read = |word: &str| {
        let (digits, radix) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(hex) => (hex, 16),
            None => (word, 10),
        };
        // A sign is no digit.
        let begins = digits.starts_with(|c: char| c.is_ascii_hexdigit());
        u32::from_str_radix(digits, radix).ok().filter(|n| begins && (low..=high).contains(n))
    };
    match words.peek().and_then(read) {
        Some(n) => {
            words.skip();
            Ok(n)
        }
        None => Err(words.bad(what, &format!("a number from {low} to {high}"))),
    }
}

fn small<W: PathWords>(words: &mut W, what: &str, low: u32, high: u8) -> Result<u8, W::Error> {
    number(words, what, low, high.into()).map(|n| n as u8)
}

fn table<W: PathWords>(words: &mut W) -> Result<TableId, W::Error> {
    number(words, "table", 0, u32::MAX).map(TableId)
}

/// Takes a keyword and the table behind it.
fn look_up<W: PathWords>(words: &mut W, of: LookIn) -> Result<Place<W::Interface>, W::Error> {
    words.skip();
    Ok(Place::Lookup(of, table(words)?))
}

/// Takes a keyword and the interface behind it.
fn receive<W: PathWords>(words: &mut W, of: Version) -> Result<Place<W::Interface>, W::Error> {
    words.skip();
    Ok(Place::Receive(of, words.interface()?))
}

/// Returns whether a word is meant as an address, valid or not: no name looks like one.
fn is_like_address(word: &str) -> bool {
    word.contains(':') || word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit())
}

fn next_hop_or_interface<W: PathWords>(words: &mut W) -> Result<Place<W::Interface>, W::Error> {
    let word = words.peek().unwrap_or_default();
    // A bare number would pass as an interface index, but is more likely a typing error.
    if word.parse::<u32>().is_ok() {
        return Err(words.bad("path", "a next hop such as 192.0.2.1, or an interface's name"));
    }
    if !is_like_address(word) {
        return words.interface().map(Place::Interface);
    }
    let address = words.next_hop()?;
    let more = words.peek().is_some_and(|w| !KEYWORDS.contains(&w));
    let interface = more.then(|| words.interface_or(&AFTER_HOP)).transpose()?;
    let has_table = interface.is_none() && taken(words, "next-hop-table");
    let table = has_table.then(|| table(words)).transpose()?;
    Ok(Place::NextHop { address, interface, table })
}

/// Takes the share of a path, and its labels.
fn share<W: PathWords>(
    words: &mut W,
    mut path: PathText<W::Interface>,
) -> Result<PathText<W::Interface>, W::Error> {
    loop {
        if taken(words, "weight") {
            path.weight = small(words, "weight", 1, u8::MAX)?;
        } else if taken(words, "preference") {
            path.preference = small(words, "preference", 0, u8::MAX)?;
        } else if taken(words, "out-labels") {
            path.labels = labels(words)?;
        } else {
            return Ok(path);
        }
    }
}

/// Takes one label or more, the outermost first, each perhaps with its TTL and class, and perhaps
/// the mode.
fn labels<W: PathWords>(words: &mut W) -> Result<Labels, W::Error> {
    let (mut all, mut marks) = (Vec::new(), Vec::new());
    loop {
        let Some(label) = words.peek().and_then(label_of) else {
            return Err(words.bad("label", LABEL_WORDS));
        };
        if all.len() == MAX_LABELS {
            return Err(words.bad("label", &format!("up to {MAX_LABELS} labels of a path")));
        }
        words.skip();
        all.push(label);
        let mut mark = Mark::USUAL;
        if taken(words, "ttl") {
            mark.ttl = small(words, "ttl", 1, u8::MAX)?;
        }
        if taken(words, "exp") {
            mark.class = small(words, "exp", 0, 7)?;
        }
        marks.push(mark);
        if words.peek().and_then(label_of).is_none() {
            break;
        }
    }
    let labels = Labels::new(&all).unwrap_or_default().marked(&marks);
    let is_uniform = taken(words, "uniform");
    if !is_uniform {
        taken(words, "pipe");
    }
    Ok(if is_uniform { labels.in_mode(Mode::Uniform) } else { labels })
}

/// Words of a document.
struct TextWords<'a> {
    next: Option<&'a str>,
    rest: SplitWhitespace<'a>,
}

impl<'a> PathWords for TextWords<'a> {
    type Interface = &'a str;
    type Error = String;

    fn peek(&self) -> Option<&str> {
        self.next
    }
    fn skip(&mut self) {
        self.next = self.rest.next();
    }
    fn next_hop(&mut self) -> Result<IpAddr, String> {
        let address = self.next.and_then(|word| word.parse().ok());
        let address = address.ok_or_else(|| self.bad("next hop", "an address"))?;
        self.skip();
        Ok(address)
    }
    fn interface(&mut self) -> Result<&'a str, String> {
        let name = self.next.ok_or_else(|| self.bad("interface", "a name"))?;
        self.skip();
        Ok(name)
    }
    fn interface_or(&mut self, _words: &[&str]) -> Result<&'a str, String> {
        self.interface()
    }
    fn bad(&self, what: &str, expected: &str) -> String {
        match self.next {
            Some(word) => format!("{expected} as {what} in the place of `{word}'"),
            None => format!("{expected} as {what} at the end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use thalweg_device::SwIfIndex;

    fn a_version() -> impl Strategy<Value = Version> {
        proptest::sample::select(Version::ALL.to_vec())
    }

    fn some_labels() -> impl Strategy<Value = Labels> {
        let one = (0..=MAX_LABEL.get(), any::<u8>(), 0u8..8);
        (vec(one, 0..=MAX_LABELS), any::<bool>()).prop_map(|(all, uniform)| {
            let marks: Vec<Mark> = all
                .iter()
                .map(|(_, ttl, class)| (*ttl, *class))
                .map(|(ttl, class)| Mark { ttl, class })
                .collect();
            let all: Vec<Label> = all.iter().map(|(label, ..)| Label(*label)).collect();
            let labels = Labels::new(&all).unwrap().marked(&marks);
            if uniform && !all.is_empty() { labels.in_mode(Mode::Uniform) } else { labels }
        })
    }

    /// Any path that words can say, of IP routes and of labels.
    fn a_path() -> impl Strategy<Value = PathText<String>> {
        let name = || "if-[a-z0-9]{1,4}([./][0-9]{1,3})?";
        let id = || any::<u32>().prop_map(TableId);
        let address = || any::<IpAddr>();
        let in_tables = prop_oneof![a_version().prop_map(LookIn::Ip), Just(LookIn::Own),];
        let shared = prop_oneof![
            (address(), name()).prop_map(|(address, name)| Place::NextHop {
                address,
                interface: Some(name),
                table: None
            }),
            (address(), option::of(id())).prop_map(|(address, table)| Place::NextHop {
                address,
                interface: None,
                table
            }),
            name().prop_map(Place::Interface),
            (16..=MAX_LABEL.get()).prop_map(|n| Place::Label(Label(n))),
        ];
        let labelled = prop_oneof![
            (in_tables, id()).prop_map(|(of, id)| Place::Lookup(of, id)),
            (a_version(), name()).prop_map(|(of, name)| Place::Receive(of, name)),
        ];
        let alone = prop_oneof![
            id().prop_map(|id| Place::Lookup(LookIn::Mpls, id)),
            (name(), any::<bool>())
                .prop_map(|(interface, control_word)| Place::Layer2 { interface, control_word }),
            proptest::sample::select(ENDS[..4].to_vec()).prop_map(|(_, kind)| Place::End(kind)),
        ];
        prop_oneof![
            (shared, 1u8.., any::<u8>(), some_labels()).prop_map(
                |(place, weight, preference, labels)| PathText {
                    place,
                    weight,
                    preference,
                    labels
                }
            ),
            (labelled, some_labels())
                .prop_map(|(place, labels)| PathText { labels, ..PathText::to(place) }),
            alone.prop_map(PathText::to),
        ]
    }

    proptest! {
        #[test]
        fn paths_are_read_as_they_are_written(path in a_path(), own in a_version()) {
            let text = path.to_string();
            let read = path_of(&text).map(|read| read.map(str::to_owned));
            prop_assert_eq!(read.as_ref(), Ok(&path), "{}", text);
            prop_assert_eq!(read.unwrap().to_string(), text);
            // A route has it as a value, or says that it cannot.
            let by_index = path.map(|_| SwIfIndex(7));
            match by_index.of_route(own) {
                Ok(settled) => {
                    prop_assert_eq!(settled.of_route(own), Ok(settled));
                    let path = by_index.route_path(own).unwrap();
                    prop_assert_eq!(PathText::of(&path, own), settled);
                }
                Err(why) => prop_assert!(why.contains(by_index.place.word()), "{}", why),
            }
            // A label has it as a value, too; its tables may be of the other version.
            let settled = by_index.of_label();
            let of = match settled.place {
                Place::Lookup(LookIn::Ip(of), _) | Place::Receive(of, _) => of,
                _ => own,
            };
            match settled.path() {
                Some(path) => prop_assert_eq!(PathText::of(&path, of), settled),
                None => prop_assert!(settled.place.kind().is_none()),
            }
        }

        #[test]
        fn words_that_are_no_path_are_refused_alone(
            words in vec(prop_oneof!["[a-z0-9.:]{0,5}", proptest::sample::select(vec![
                "weight", "preference", "out-labels", "ttl", "exp", "lookup", "in", "table", "7",
                "via-label", "rx-ip4", "l2-input-on", "pop-pw-cw", "next-hop-table", "10.0.0.1",
            ]).prop_map(str::to_owned)], 0..9),
        ) {
            let text = words.join(" ");
            if let Ok(path) = path_of(&text) {
                let written = path.to_string();
                prop_assert_eq!(path_of(&written), Ok(path), "{}", text);
            }
        }
    }

    #[test]
    fn one_path_may_be_typed_in_several_ways() {
        for (typed, written) in [
            ("lookup in table 7", "lookup in table 7"),
            ("lookup i t 0x7", "lookup in table 7"),
            ("null-send-unreach", "unreachable"),
            (
                "192.0.2.1 out-labels 17 pop weight 2",
                "192.0.2.1 weight 2 out-labels 17 implicit-null",
            ),
            ("pg0 out-labels 17 pipe preference 0 weight 1", "pg0 out-labels 17"),
            ("192.0.2.1 0", "192.0.2.1 0"),
        ] {
            assert_eq!(path_of(typed).map(|path| path.to_string()).as_deref(), Ok(written));
        }
        for (own, written) in
            [(Version::V4, "ip4-lookup-in-table 7"), (Version::V6, "ip6-lookup-in-table 7")]
        {
            for typed in ["lookup in table 7", written] {
                let path = path_of(typed).and_then(|path| path.of_route(own)).unwrap();
                assert_eq!(path.to_string(), written);
            }
        }
        let of_label = path_of("lookup in table 7").map(PathText::of_label).unwrap();
        assert_eq!(of_label.to_string(), "ip4-lookup-in-table 7");
    }

    #[test]
    fn json_has_what_words_say() {
        let path = path_of("192.0.2.1 next-hop-table 7 weight 2 out-labels 17 uniform").unwrap();
        let json = path.map(str::to_owned).json();
        assert_eq!((&json["next_hop"], &json["next_hop_table"]), (&"192.0.2.1".into(), &7.into()));
        assert_eq!((&json["weight"], &json["labels"][0]), (&2.into(), &17.into()));
        assert_eq!((&json["mode"], json["table"].is_null()), (&"uniform".into(), true));
        let path = path_of("ip6-lookup-in-table 7").unwrap().map(str::to_owned);
        assert_eq!(path.json()["table"], 7);
        let path = path_of("rx-ip4 pg0").unwrap().map(str::to_owned);
        assert_eq!(path.json()["interface"], "pg0");
        assert_eq!(path_of("via-label 33").unwrap().map(str::to_owned).json()["via_label"], 33);
    }

    #[test]
    fn errors_name_the_word_and_what_would_be_right() {
        let zeros = format!("pg0 out-labels{}", " 0".repeat(13));
        for (text, why) in [
            ("", "a next hop, an interface, or a word such as `drop' as path at the end"),
            ("weight 2 pg0 x", "as path in the place of `weight'"),
            ("17", "a next hop such as 192.0.2.1, or an interface's name"),
            ("192.0.2", "an address as next hop in the place of `192.0.2'"),
            ("192.0.2.1 pg0 pg1", "no word such as `pg1' behind the path"),
            ("192.0.2.1 pg0 next-hop-table 7", "no word such as `next-hop-table'"),
            ("192.0.2.1 next-hop-table x", "as table in the place of `x'"),
            ("192.0.2.1 weight", "a number from 1 to 255 as weight at the end"),
            ("192.0.2.1 weight 0", "a number from 1 to 255 as weight in the place of `0'"),
            ("192.0.2.1 weight +1", "in the place of `+1'"),
            ("192.0.2.1 pg0 preference 256", "a number from 0 to 255 as preference"),
            ("192.0.2.1 out-labels", "a number up to 1048575"),
            ("192.0.2.1 out-labels 1048576", "in the place of `1048576'"),
            ("192.0.2.1 out-labels 16 ttl 0", "a number from 1 to 255 as ttl"),
            ("192.0.2.1 out-labels 16 exp 8", "a number from 0 to 7 as exp"),
            (&zeros, "up to 12 labels of a path as label in the place of `0'"),
            ("lookup", "`in' as word at the end"),
            ("lookup in x", "`table' as word in the place of `x'"),
            ("lookup in table 7 weight 2", "no word such as `weight'"),
            ("ip6-lookup-in-table x", "as table in the place of `x'"),
            ("mpls-lookup-in-table 7 out-labels 5", "no word such as `out-labels'"),
            ("rx-ip4", "a name as interface at the end"),
            ("rx-ip6 pg0 out-labels", "as label at the end"),
            ("via-label 15", "a number from 16 to 1048575 as label in the place of `15'"),
            ("via-label 33 pg0", "no word such as `pg0'"),
            ("via-label 33 next-hop-table 7", "no word such as `next-hop-table'"),
            ("drop pg0", "no word such as `pg0'"),
        ] {
            let said = path_of(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        for (text, own, why) in [
            (
                "ip6-lookup-in-table 7",
                Version::V4,
                "`ip6-lookup-in-table' is for IPv6 prefixes only",
            ),
            (
                "ip4-lookup-in-table 7",
                Version::V6,
                "`ip4-lookup-in-table' is for IPv4 prefixes only",
            ),
            ("mpls-lookup-in-table 7", Version::V4, "`mpls-lookup-in-table' is for labels only"),
            ("l2-input-on pg0", Version::V6, "`l2-input-on' is for labels only"),
            ("rx-ip4 pg0 out-labels pop", Version::V4, "`rx-ip4' takes no `out-labels'"),
        ] {
            let said = path_of(text).and_then(|path| path.of_route(own)).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
