//! Requests with chosen values, made from the messages' descriptions: for tests that walk all
//! messages, and for fuzzing.

use crate::features::FEATURES;
use std::cell::RefCell;
use thalweg_api::schema::{Arity, Field, Kind, MessageDef, TypeDef, TypeKind, TypeRef};
use thalweg_api::trace::Record;
use thalweg_api::{Clients, Hub, Registry};
use thalweg_buffer::PoolConfig;
use thalweg_graph::{Control, EngineConfig};

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A number of this many bytes.
    Int(usize),
    /// A number, for example of seconds.
    Float,
    /// True or false.
    Bool,
    /// An IPv4 address.
    Ip4,
    /// An IPv6 address, or one of either version.
    Ip,
    /// A MAC address.
    Mac,
    /// A text of a fixed length.
    Text(usize),
    /// A text with its length.
    Open,
    /// The number of elements that follow.
    Count,
}

/// A value of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its path: `route.paths[0].weight`.
    pub path: String,
    /// Its type.
    pub sort: Sort,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The values of a request in order: one element of each list, numbers zero.
pub fn leaves(request: &MessageDef) -> Vec<Leaf> {
    let mut out = Vec::new();
    fields(request.body, "", &mut out);
    out
}

/// The body of a request.
pub fn body(leaves: &[Leaf]) -> Vec<u8> {
    leaves.iter().flat_map(|leaf| leaf.bytes.iter().copied()).collect()
}

fn fields(all: &[Field], above: &str, out: &mut Vec<Leaf>) {
    let is_count =
        |name: &str| all.iter().any(|f| matches!(f.arity, Arity::Counted(n) if n == name));
    for field in all {
        let path =
            if above.is_empty() { field.name.into() } else { format!("{above}.{}", field.name) };
        let text = matches!(field.ty, TypeRef::Prim("string"));
        match field.arity {
            Arity::Fixed(n) if text => leaf(path, Sort::Text(n), n, out),
            Arity::One | Arity::Open if text => leaf(path, Sort::Open, 4, out),
            Arity::One if is_count(field.name) => {
                let before = out.len();
                value(&field.ty, &path, out);
                for count in &mut out[before..] {
                    count.sort = Sort::Count;
                    if let Some(last) = count.bytes.last_mut() {
                        *last = 1;
                    }
                }
            }
            Arity::One | Arity::Open => value(&field.ty, &path, out),
            Arity::Fixed(n) => (0..n).for_each(|i| value(&field.ty, &format!("{path}[{i}]"), out)),
            Arity::Counted(_) => value(&field.ty, &format!("{path}[0]"), out),
        }
    }
}

fn leaf(path: String, sort: Sort, length: usize, out: &mut Vec<Leaf>) {
    out.push(Leaf { path, sort, bytes: vec![0; length] });
}

fn value(ty: &TypeRef, path: &str, out: &mut Vec<Leaf>) {
    match ty {
        TypeRef::Prim("bool") => leaf(path.into(), Sort::Bool, 1, out),
        TypeRef::Prim("f64") => leaf(path.into(), Sort::Float, 8, out),
        TypeRef::Prim(name) => {
            let bits = name.trim_start_matches(['u', 'i']).parse().unwrap_or(8);
            leaf(path.into(), Sort::Int(bits / 8), bits / 8, out);
        }
        TypeRef::Def(def) => defined(def, path, out),
    }
}

fn defined(def: &TypeDef, path: &str, out: &mut Vec<Leaf>) {
    match (def.name, &def.kind) {
        ("ip4_address", _) => leaf(path.into(), Sort::Ip4, 4, out),
        ("ip6_address" | "address_union", _) => leaf(path.into(), Sort::Ip, 16, out),
        ("mac_address", _) => leaf(path.into(), Sort::Mac, 6, out),
        (_, TypeKind::Struct(inner)) => fields(inner, path, out),
        (_, TypeKind::Union(inner)) => {
            // The members share their bytes: the longest has all of them.
            let each = inner.iter().map(|f| {
                let mut one = Vec::new();
                value(&f.ty, path, &mut one);
                one
            });
            let longest = each.max_by_key(|one| one.iter().map(|l| l.bytes.len()).sum::<usize>());
            out.extend(longest.unwrap_or_default());
        }
        (_, TypeKind::Enum { base, .. }) => value(&TypeRef::Prim(base), path, out),
        (_, TypeKind::Alias { of, length }) => {
            (0..length.unwrap_or(1)).for_each(|_| value(of, path, out));
        }
    }
}

impl Leaf {
    /// Values at and beyond the limits of what such a value may be.
    pub fn boundaries(&self) -> Vec<Vec<u8>> {
        match self.sort {
            Sort::Int(_) | Sort::Count => numbers(self.bytes.len()),
            Sort::Bool => vec![vec![0], vec![1]],
            Sort::Float => {
                [0.0, 1.0, -1.0, f64::MAX, f64::NAN].map(|f| f.to_le_bytes().into()).into()
            }
            Sort::Ip4 => IP4.map(Vec::from).into(),
            Sort::Ip => {
                let four = IP4.map(|ip| [&ip[..], &[0; 12]].concat());
                let six = [[0; 16], [0xff; 16], [0x20; 16]].map(Vec::from);
                four.into_iter().chain(six).collect()
            }
            Sort::Mac => MACS.map(Vec::from).into(),
            Sort::Text(n) => {
                TEXTS.map(|text| fixed(text, n)).into_iter().chain([vec![b'x'; n]]).collect()
            }
            Sort::Open => TEXTS.map(open).into(),
        }
    }
}

/// Addresses: none, a host's, a subnet's last, loopback, multicast, reserved.
const IP4: [[u8; 4]; 7] = [
    [0, 0, 0, 0],
    [10, 0, 0, 9],
    [10, 0, 0, 255],
    [127, 0, 0, 1],
    [224, 0, 0, 1],
    [240, 0, 0, 1],
    [255, 255, 255, 255],
];

const MACS: [[u8; 6]; 4] = [[0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1], [2, 0, 0, 0, 0, 9]];

/// Texts with what means something in command lines and documents.
const TEXTS: [&str; 8] = ["", "x", "a b", "it's", "{\"", "#|\\", "a\u{7}\u{202e}", "7"];

/// A text of a fixed length.
pub fn fixed(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(length, 0);
    bytes
}

/// A text with its length before it.
pub fn open(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn numbers(length: usize) -> Vec<Vec<u8>> {
    let most = u64::MAX >> (64 - 8 * length.min(8));
    let some = [
        0,
        1,
        2,
        3,
        4,
        6,
        7,
        17,
        47,
        63,
        64,
        127,
        128,
        255,
        256,
        1500,
        9000,
        16_383,
        16_384,
        65_535,
        65_536,
        86_400,
        86_401,
        4_194_304,
        448_919_481,
        0x7fff_ffff,
        0xffff_fffe,
        0xffff_ffff,
        most,
    ];
    let mut all: Vec<u64> = some.into_iter().filter(|n| *n <= most).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|n| n.to_be_bytes()[8 - length.min(8)..].to_vec()).collect()
}

/// Requests that act on something outside, such as files, by the beginnings of their names.
pub const OUTSIDE: &[&str] = &["cli", "pcap_trace_on", "pcap_trace_off", "pg_capture"];

/// A router that is asked.
struct Asked {
    c: Control,
    hub: Hub<Control>,
    requests: Vec<&'static MessageDef>,
    inputs: u32,
}

/// Inputs after which a router is replaced.
const INPUTS: u32 = 64;

impl Asked {
    fn new() -> Option<Asked> {
        let pool = PoolConfig { buffers: 512, ..PoolConfig::default() };
        let mut c = Control::new(EngineConfig { pool, ..EngineConfig::default() }).ok()?;
        thalweg_engine::start(&mut c, FEATURES).ok()?;
        let registry = Registry::new(super::services(&thalweg_engine::features(&c))).ok()?;
        let mut requests = registry.messages();
        requests.retain(|def| {
            def.kind == Kind::Request && !OUTSIDE.iter().any(|o| def.name.starts_with(o))
        });
        requests.sort_by_key(|def| def.name);
        Some(Asked { c, hub: Hub::new(registry, Clients::default()), requests, inputs: 0 })
    }

    /// Asks what the bytes say: for each request two bytes for its name, and one for each value:
    /// one of its boundaries, or with 255 the bytes that follow.
    fn ask(&mut self, data: &[u8]) {
        let mut data = data.iter().copied();
        while let (Some(high), Some(low)) = (data.next(), data.next()) {
            let at = usize::from(u16::from_be_bytes([high, low])) % self.requests.len().max(1);
            let Some(def) = self.requests.get(at) else { return };
            let mut all = leaves(def);
            for leaf in &mut all {
                match data.next() {
                    None | Some(0) => {}
                    Some(255) => {
                        let more = leaf.bytes.iter_mut();
                        more.for_each(|byte| *byte = data.next().unwrap_or_default());
                    }
                    Some(n) => {
                        let mut values = leaf.boundaries();
                        leaf.bytes = values.swap_remove(usize::from(n) % values.len());
                    }
                }
            }
            let record = Record { at: 0, client: 0, name: def.name_crc(), body: body(&all) };
            self.hub.replay(&mut self.c, &record);
            self.c.run_once(Some(std::time::Duration::ZERO));
        }
    }
}

/// Entry for fuzzing: a router takes requests, and its configuration can be dumped and read then.
///
/// # Panics
/// If it has taken what no document may say.
pub fn fuzz_requests(data: &[u8]) {
    thread_local! {
        static ROUTER: RefCell<Option<Asked>> = const { RefCell::new(None) };
    }
    ROUTER.with_borrow_mut(|router| {
        if router.as_ref().is_none_or(|asked| asked.inputs >= INPUTS) {
            if let Some(mut old) = router.take() {
                old.c.shut_down();
            }
            *router = Asked::new();
        }
        let Some(asked) = router else { return };
        asked.inputs += 1;
        asked.ask(data);
        let Ok(dump) = thalweg_feat_config::manager::running(&asked.c) else { return };
        assert!(dump.unread().is_empty(), "taken, but not to be read: {:?}", dump.unread());
        assert!(dump.to_yaml().is_ok());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_requests_panic(data in prop::collection::vec(any::<u8>(), 0..400)) {
            fuzz_requests(&data);
        }
    }
}
