//! Profiles of the load tester: streams and connections as YAML (or JSON, which YAML contains).
//!
//! [`Profile::parse`] reads a document, and [`Profile::builtin`] has those that are built in. A
//! profile has pairs of ports, each with a [`stream::Plan`] and with [`Flows`], which hold a
//! [`talk::Plan`](thalweg_load::talk::Plan). Profiles name no interface.
//!
//! Each profile has one canonical form ([`Profile::canonical`]), a profile itself, which says all
//! that the short forms leave out. Profiles with the same [`Profile::fingerprint`] send the same.

#![forbid(unsafe_code)]

mod builtin;
mod canonical;
mod fields;
mod flows;
mod layers;
mod pools;
mod streams;
#[cfg(test)]
mod tests;
mod tree;
mod words;

use std::collections::BTreeMap;

use thalweg_config::closest;
use thalweg_config::declare::{Node, Place, Problem, Problems, Value, parse_words};
use thalweg_load::stream::{self, Start, Stream};

pub use builtin::{BUILTINS, Builtin};
pub use flows::{Flows, Ramp};

use pools::Pools;
use tree::{At, Out, substitute};

/// Longest document in bytes.
pub const MAX_TEXT: usize = 1 << 20;
/// Most values of a document, those of aliases counted each time.
const MAX_NODES: usize = 100_000;
/// Longest value of a tunable in bytes.
const MAX_TUNABLE: usize = 256;
/// Most bytes that the streams' lists and payloads take, and copies of defaults.
const MAX_MEMORY: usize = 64 << 20;
/// Most kinds of conversations.
const MAX_FLOWS: usize = 256;

/// A profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name: that of the file, or of the built-in profile.
    pub name: String,
    /// Its own description.
    pub about: String,
    /// Its tunables and their values.
    pub tunables: Vec<(String, String)>,
    /// Pairs of ports, by number.
    pub pairs: Vec<Pair>,
}

/// Traffic that a pair of ports sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// Its number.
    pub number: u32,
    /// Streams.
    pub streams: Vec<Stream>,
    /// Connections.
    pub flows: Vec<Flows>,
}

impl Pair {
    /// Plan of the streams, with MAC addresses, cap and lateness that the caller sets; `None`
    /// without streams.
    pub fn plan(&self) -> Option<stream::Plan> {
        (!self.streams.is_empty()).then(|| stream::Plan::of(self.streams.clone()))
    }
}

impl Profile {
    /// Reads a document. `tunables` are set to other values than the document's own.
    ///
    /// # Errors
    /// [`Problems`], each with its place in the text, and what would be right.
    pub fn parse(
        name: &str,
        text: &str,
        tunables: &[(String, String)],
    ) -> Result<Profile, Problems> {
        let fail = |problem| Problems { name: name.to_owned(), list: vec![problem] };
        let mut root = parse_words(text, MAX_TEXT, MAX_NODES).map_err(fail)?;
        let tunables = tune(&root, tunables).map_err(fail)?;
        let mut problems = Vec::new();
        substitute(&mut root, "", &tunables, &mut problems);
        let read = read(&root, &mut problems);
        Problems::check(name, problems)?;
        let (about, pairs) = read.map_err(fail)?;
        let tunables =
            tunables.into_iter().map(|(name, node)| (name, node.value.to_string())).collect();
        Ok(Profile { name: name.to_owned(), about, tunables, pairs })
    }

    /// Reads a built-in profile.
    ///
    /// # Errors
    /// [`Problems`] if no profile has that name, or with unsuitable tunables.
    pub fn builtin(name: &str, tunables: &[(String, String)]) -> Result<Profile, Problems> {
        match BUILTINS.iter().find(|builtin| builtin.name == name) {
            Some(builtin) => Profile::parse(name, builtin.text, tunables),
            None => {
                let names: Vec<&str> = BUILTINS.iter().map(|builtin| builtin.name).collect();
                let meant = match closest(name, &names) {
                    Some(meant) => format!("did you mean `{meant}'?"),
                    None => format!("built in are {}", names.join(", ")),
                };
                let problem =
                    Problem::new("", format!("no built-in profile of that name; {meant}"));
                Err(Problems { name: name.to_owned(), list: vec![problem] })
            }
        }
    }

    /// The canonical form: JSON that says all, and that is a profile itself.
    pub fn canonical(&self) -> serde_json::Value {
        canonical::profile(self)
    }

    /// A number that two profiles have in common only if they send the same, as 16 hexadecimal
    /// digits.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.canonical())
    }
}

/// The same of any canonical form.
pub fn fingerprint(canonical: &serde_json::Value) -> String {
    // FNV-1a, 64 bits: it tells profiles apart, and protects from nobody.
    let hash = canonical.to_string().bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Reads any bytes as a profile: what is one has a canonical form that is one, too, and sends.
///
/// # Panics
/// If that is not so.
pub fn fuzz_profile(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(profile) = Profile::parse("fuzz", text, &[]) else { return };
    let canonical = profile.canonical().to_string();
    // The canonical form is longer, so that it may exceed the limits of a text.
    if let Ok(again) = Profile::parse("fuzz", &canonical, &[]) {
        assert_eq!(again.pairs, profile.pairs, "{canonical}");
    } else {
        assert!(canonical.len() > 10 * MAX_TUNABLE, "{canonical}");
    }
    for plan in profile.pairs.iter().filter_map(Pair::plan) {
        for side in [stream::Side::A, stream::Side::B] {
            let Ok(mut senders) = stream::Senders::new(&plan, side, 1, 0) else { continue };
            senders.set_load(stream::Load::Times(1.0), 0);
            senders.poll(1 << 40, 8, &mut Vec::<Vec<u8>>::new());
        }
    }
}

/// The document's tunables, with the values that were set.
fn tune(root: &Node, set: &[(String, String)]) -> Out<Vec<(String, Node)>> {
    let root = At { node: root, path: String::new() };
    let mut all: Vec<(String, Node)> = Vec::new();
    if let Some(tunables) = root.get("tunables") {
        for (name, at) in tunables.entries()? {
            let word = at.word()?;
            if word.contains("${") {
                return at.wrong("a tunable cannot depend on another one");
            }
            if word.len() > MAX_TUNABLE {
                return at.wrong(format!("longer than {MAX_TUNABLE} bytes"));
            }
            all.push((name.to_owned(), at.node.clone()));
        }
    }
    for (name, value) in set {
        let Some((_, node)) = all.iter_mut().find(|(known, _)| known == name) else {
            let names: Vec<&str> = all.iter().map(|(known, _)| known.as_str()).collect();
            let meant = match closest(name, &names) {
                Some(meant) => format!("did you mean `{meant}'?"),
                None if names.is_empty() => "it has none".into(),
                None => format!("tunables: {}", names.join(", ")),
            };
            return Err(Problem::new("tunables", format!("no tunable `{name}'; {meant}")));
        };
        node.value = Value::Text(value.clone());
    }
    Ok(all)
}

const KEYS: [&str; 7] = ["version", "about", "tunables", "pools", "defaults", "streams", "flows"];

/// Reads a document; problems of streams and flows are added to the list.
fn read(root: &Node, problems: &mut Vec<Problem>) -> Out<(String, Vec<Pair>)> {
    let root = At { node: root, path: String::new() };
    root.keys(&KEYS)?;
    root.need("version", "this program reads `version: 1'")?.whole(1, 1)?;
    let about = root.get("about").map_or(Ok(String::new()), |at| at.word())?;
    let pools = root.get("pools").map_or(Ok(Pools::default()), |at| Pools::read(&at))?;
    let defaults = root.get("defaults");
    let mut pairs: BTreeMap<u32, (Pair, Vec<Origin>)> = BTreeMap::new();
    if let Some(streams) = root.get("streams") {
        read_streams(&streams, defaults.as_ref(), &pools, &mut pairs, problems)?;
    }
    let mut flows = Vec::new();
    if let Some(list) = root.get("flows") {
        let list = list.list()?;
        check_copies(defaults.as_ref(), list.len())?;
        if list.len() > MAX_FLOWS {
            return root.wrong(format!("{} flows; at most {MAX_FLOWS}", list.len()));
        }
        for (number, at) in list.iter().enumerate() {
            let merged = merge(at, defaults.as_ref(), &flows::KEYS);
            let at = At { node: &merged, path: at.path.clone() };
            match flows::flow(&at, number, &pools) {
                Ok(flow) => flows.push((flow, (at.path, merged))),
                Err(problem) => problems.push(problem),
            }
        }
    }
    check_defaults(defaults.as_ref())?;
    for (pair, flows) in flows::group(flows, problems) {
        pairs.entry(pair).or_default().0.flows.push(flows);
    }
    for (number, (pair, origins)) in &mut pairs {
        pair.number = *number;
        if let Some(Err(error)) = pair.plan().map(|plan| plan.check()) {
            let at = root.get("streams").unwrap_or(root.clone());
            problems.push(place(&error, origins, &at));
        }
    }
    if pairs.is_empty() && problems.is_empty() {
        return root.wrong("neither `streams' nor `flows': it would send nothing");
    }
    Ok((about, pairs.into_values().map(|(pair, _)| pair).collect()))
}

/// Place in a file at which a stream or flow was read.
type Origin = (String, Node);

fn read_streams(
    at: &At<'_>,
    defaults: Option<&At<'_>>,
    pools: &Pools,
    pairs: &mut BTreeMap<u32, (Pair, Vec<Origin>)>,
    problems: &mut Vec<Problem>,
) -> Out<()> {
    let list = at.list()?;
    if list.len() > stream::MAX_STREAMS {
        return at.wrong(format!("{} streams; at most {}", list.len(), stream::MAX_STREAMS));
    }
    check_copies(defaults, list.len())?;
    let mut memory = 0;
    let mut waiting = Vec::new();
    for (number, at) in list.iter().enumerate() {
        let merged = merge(at, defaults, &streams::KEYS);
        let at = At { node: &merged, path: at.path.clone() };
        match streams::stream(&at, number, pools) {
            Ok(read) => {
                memory += read.stream.layers.iter().map(bytes).sum::<usize>();
                if memory > MAX_MEMORY {
                    return at.wrong(
                        "the lists and payloads of all streams take too much memory; \
                                     use ranges instead of lists",
                    );
                }
                let (pair, origins) = pairs.entry(read.pair).or_default();
                if pair.streams.iter().any(|other| other.name == read.stream.name) {
                    let name = &read.stream.name;
                    problems.push(Problem::at(
                        at.node,
                        at.path.clone(),
                        format!("a second stream `{name}' of this pair; give it another name"),
                    ));
                    continue;
                }
                if let Some((name, pause)) = read.behind {
                    waiting.push((read.pair, pair.streams.len(), name, pause));
                }
                pair.streams.push(read.stream);
                origins.push((at.path, merged));
            }
            Err(problem) => problems.push(problem),
        }
    }
    for (pair, number, name, pause) in waiting {
        let Some((pair, origins)) = pairs.get_mut(&pair) else { continue };
        let found = pair.streams.iter().position(|stream| stream.name == name);
        match (found, pair.streams.get_mut(number)) {
            (Some(found), Some(stream)) => stream.start = Start::Behind { stream: found, pause },
            _ => {
                let Some((path, node)) = origins.get(number) else { continue };
                problems.push(Problem::at(
                    node,
                    format!("{path}.after"),
                    format!("no stream `{name}' of this pair to start after"),
                ));
            }
        }
    }
    Ok(())
}

/// The problem of a compiled stream, with the place of what it is about.
fn place(error: &stream::PlanError, origins: &[Origin], all: &At<'_>) -> Problem {
    let whole = || Problem::at(all.node, all.path.clone(), error.to_string());
    let stream::PlanError::Stream { number, error, .. } = error else { return whole() };
    let Some((path, node)) = origins.get(*number) else { return whole() };
    let key = match error.path.as_str() {
        "start" => "after",
        path => path,
    };
    let layer = key.split(['.', ':']).next().unwrap_or_default();
    let below = [key, layer, "layers", "between"].into_iter().find_map(|key| node.get(key));
    let place: Option<Place> = below.and_then(|below| below.place).or(node.place);
    Problem { place, ..Problem::new(format!("{path}.{key}"), error.message.clone()) }
}

/// A stream or flow, with the defaults that it may have and does not say itself.
fn merge(at: &At<'_>, defaults: Option<&At<'_>>, keys: &[&str]) -> Node {
    let mut node = at.node.clone();
    let (Value::Map(map), Some(defaults)) = (&mut node.value, defaults) else { return node };
    // The stream's own key wins over keys that exclude it.
    let own = |key: &str| match key {
        "size" | "frame" => map.contains_key("size") || map.contains_key("frame"),
        "udp" | "tcp" | "icmp" | "layers" => {
            ["udp", "tcp", "icmp", "layers"].iter().any(|key| map.contains_key(*key))
        }
        "exchange" | "client" | "server" => {
            ["exchange", "client", "server"].iter().any(|key| map.contains_key(*key))
        }
        key => map.contains_key(key),
    };
    let more: Vec<(String, Node)> = defaults
        .node
        .entries()
        .filter(|(key, _)| keys.contains(key) && !own(key))
        .map(|(key, node)| (key.to_owned(), node.clone()))
        .collect();
    map.extend(more);
    node
}

fn check_defaults(defaults: Option<&At<'_>>) -> Out<()> {
    let all: Vec<&str> = streams::KEYS.into_iter().chain(flows::KEYS).collect();
    defaults.map_or(Ok(()), |defaults| defaults.keys(&all))
}

/// Checks that copies of the defaults take a reasonable amount of memory.
fn check_copies(defaults: Option<&At<'_>>, copies: usize) -> Out<()> {
    match defaults {
        Some(defaults) if size(defaults.node).saturating_mul(copies) > MAX_MEMORY => {
            defaults.wrong(format!("too large to be copied into {copies} streams or flows"))
        }
        _ => Ok(()),
    }
}

/// Bytes that a part of a document takes, about.
fn size(node: &Node) -> usize {
    let own = size_of::<Node>();
    own + match &node.value {
        Value::Text(text) => text.len(),
        Value::List(list) => list.iter().map(size).sum(),
        Value::Map(map) => map.iter().map(|(key, node)| own + key.len() + size(node)).sum(),
        _ => 0,
    }
}

/// Bytes that the lists and payload of a layer take.
fn bytes(layer: &stream::Layer) -> usize {
    let own = match layer {
        stream::Layer::Raw(bytes) | stream::Layer::Payload { bytes, .. } => bytes.len(),
        _ => 0,
    };
    let lists = layer.fields().map(|field| match &field.values {
        stream::Values::List(list) => size_of_val(list.as_slice()),
        _ => 0,
    });
    own + lists.sum::<usize>()
}
