//! Streams.

use thalweg_load::stream::{
    Caching, Direction, Field, Layer, Mode, Rate, Size, Start, Steps, Stream, Sum, Values,
};

use crate::fields::pair;
use crate::layers::{Defaults, SUMS, layers, payload};
use crate::pools::{Addresses, Pools};
use crate::tree::{At, Out};
use crate::words::{self, Kind};

pub(crate) const KEYS: [&str; 20] = [
    "name",
    "pair",
    "between",
    "direction",
    "vary",
    "udp",
    "tcp",
    "icmp",
    "layers",
    "payload",
    "size",
    "frame",
    "checksum",
    "rate",
    "mode",
    "after",
    "times",
    "measure",
    "cache",
    "fixed_rate",
];

/// Bytes of the FCS.
const FCS: u16 = 4;

/// Way in which both addresses of a stream vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vary {
    Off,
    Source,
    Together,
    Nested,
    Random,
    /// TRex's `tuple`: the source's addresses run first, then its ports.
    Tuple,
    /// TRex's `size`: sizes from 64 bytes up are drawn.
    Size,
}

/// `vary`'s words, and those of TRex's `bench.py`.
const VARY: [(&str, Vary); 12] = [
    ("off", Vary::Off),
    ("source", Vary::Source),
    ("together", Vary::Together),
    ("nested", Vary::Nested),
    ("random", Vary::Random),
    ("tuple", Vary::Tuple),
    ("size", Vary::Size),
    ("none", Vary::Off),
    ("var1", Vary::Source),
    ("var2", Vary::Together),
    ("cached", Vary::Together),
    ("false", Vary::Off),
];

/// A stream whose predecessor is known by name.
pub(crate) struct Read {
    pub(crate) stream: Stream,
    pub(crate) pair: u32,
    /// The stream that it starts behind.
    pub(crate) behind: Option<(String, u64)>,
}

/// Reads a stream. `number` names it if it has no name.
pub(crate) fn stream(at: &At<'_>, number: usize, pools: &Pools) -> Out<Read> {
    at.keys(&KEYS)?;
    let name = at.get("name").map_or(Ok(format!("stream{number}")), |at| at.word())?;
    let pair_number = at.get("pair").map_or(Ok(0), |at| at.whole(0, 255))? as u32;
    let vary = at.get("vary").map_or(Ok(Vary::Together), |at| at.one_of(&VARY))?;
    let between = match at.get("between") {
        None => None,
        Some(between) => match &between.list()?[..] {
            [a, b] => {
                let (a_pool, b_pool) = (pools.find(a)?, pools.find(b)?);
                if a_pool.v6 != b_pool.v6 {
                    return between.wrong("one pool is IPv4 and the other IPv6");
                }
                Some((vary.apply(&a_pool, false), vary.apply(&b_pool, true), a_pool.v6))
            }
            _ => return between.wrong("two pools are needed: [a, b]"),
        },
    };
    let sum = at.get("checksum").map_or(Ok(Sum::Right), |at| at.one_of(&SUMS))?;
    let defaults = Defaults { between, sum };
    let mut all = match at.get("layers") {
        Some(list) => layers(&list, &defaults)?,
        None => Vec::new(),
    };
    if !all
        .iter()
        .any(|layer| matches!(layer, Layer::Ipv4 { .. } | Layer::Ipv6 { .. } | Layer::Arp { .. }))
    {
        match &defaults.between {
            Some((a, b, false)) => all.push(Layer::ipv4(a.clone(), b.clone())),
            Some((a, b, true)) => all.push(Layer::ipv6(a.clone(), b.clone())),
            None if all.is_empty() => {
                return at.wrong("it needs `between: [a, b]', or `layers'");
            }
            None => {}
        }
    }
    let transports = ["udp", "tcp", "icmp"];
    let given: Vec<&str> =
        transports.into_iter().filter(|key| at.node.get(key).is_some()).collect();
    match given[..] {
        [] => {}
        ["udp"] => {
            let (mut source, destination) =
                pair(&at.need("udp", "[source, destination]")?, Kind::Number)?;
            if vary == Vary::Tuple {
                // bench.py's ports.
                source = Field::count(1234u16, 65_500u16);
                source.steps = Steps::After("ipv4.source".into());
            }
            all.push(Layer::Udp { source, destination, sum });
        }
        ["tcp"] => {
            let (source, destination) =
                pair(&at.need("tcp", "[source, destination]")?, Kind::Number)?;
            let mut tcp = Layer::tcp(source, destination);
            if let Layer::Tcp { sum: own, .. } = &mut tcp {
                *own = sum;
            }
            all.push(tcp);
        }
        ["icmp"] => {
            let mut icmp = Layer::icmp();
            if let Layer::Icmp { sum: own, .. } = &mut icmp {
                *own = sum;
            }
            all.push(icmp);
        }
        _ => return at.wrong("only one of udp, tcp and icmp is possible"),
    }
    if let Some(at) = at.get("payload") {
        all.push(payload(&at)?);
    }
    let mut size = match (at.get("size"), at.get("frame")) {
        (Some(size), None) => read_size(&size, 0)?,
        (None, Some(frame)) => read_size(&frame, FCS)?,
        (None, None) => Size::One(64),
        (Some(_), Some(frame)) => {
            return frame.wrong("`frame' (without FCS) does not go with `size' (with FCS)");
        }
    };
    if let (Vary::Size, Size::One(most)) = (vary, &size) {
        size = Size::Range { least: 64, most: *most, random: true };
    }
    let rate = match at.get("rate") {
        None => Rate::Packets(1.0),
        Some(at) => match words::rate(&at.word()?) {
            Some(rate) => rate,
            None => return at.expected("a rate, as 28 pps, 5 kpps, 2 Mbps, 2 Mbps-l1 or 10 %"),
        },
    };
    let (start, behind) = match at.get("after") {
        None => (Start::After(0), None),
        Some(after) if after.is_map() => {
            after.keys(&["stream", "pause"])?;
            let stream = after.need("stream", "the name of a stream")?.word()?;
            let pause = after.get("pause").map_or(Ok(0), |at| time(&at))?;
            (Start::After(0), Some((stream, pause)))
        }
        Some(after) => (Start::After(time(&after)?), None),
    };
    let tags = [
        ("none", false),
        ("count", true),
        ("latency", true),
        ("no-fs", false),
        ("fs", true),
        ("fsl", true),
    ];
    let stream = Stream {
        name,
        layers: all,
        size,
        rate,
        fixed_rate: at.get("fixed_rate").map_or(Ok(false), |at| at.bool())?,
        mode: at.get("mode").map_or(Ok(Mode::Continuous), |at| mode(&at))?,
        start,
        times: at.get("times").map_or(Ok(1), |at| at.whole(1, u32::MAX.into()))? as u32,
        direction: at.get("direction").map_or(Ok(Direction::AToB), |at| {
            at.one_of(&[
                ("a-b", Direction::AToB),
                ("b-a", Direction::BToA),
                ("both", Direction::Both),
            ])
        })?,
        tagged: at.get("measure").map_or(Ok(true), |at| at.one_of(&tags))?,
        caching: at.get("cache").map_or(Ok(Caching::Auto), |at| caching(&at))?,
    };
    Ok(Read { stream, pair: pair_number, behind })
}

impl Vary {
    /// A pool's addresses as a field.
    fn apply(self, pool: &Addresses, destination: bool) -> Field {
        let varies = match self {
            Vary::Off | Vary::Size => false,
            Vary::Source | Vary::Tuple => !destination,
            Vary::Together | Vary::Nested | Vary::Random => true,
        };
        let first = pool.values.first().copied().unwrap_or((0, 0));
        if !varies {
            return Field::one(first.0);
        }
        let random = self == Vary::Random || pool.random;
        let values = match &pool.values[..] {
            [(low, high)] if random => Values::Random {
                least: *low,
                most: *high,
                // Both addresses are drawn apart.
                seed: u64::from(destination),
                distinct: None,
            },
            [(low, high)] if low == high => Values::One(*low),
            [(low, high)] => Values::Count { first: *low, last: *high, step: 1, start: *low },
            many => Values::List(many.iter().flat_map(|(low, high)| *low..=*high).collect()),
        };
        let after = self == Vary::Nested && destination && first.0 != first.1;
        let path = if pool.v6 { "ipv6.source" } else { "ipv4.source" };
        let steps = if after { Steps::After(path.into()) } else { Steps::Packet };
        Field { values, steps }
    }
}

/// A time in nanoseconds.
pub(crate) fn time(at: &At<'_>) -> Out<u64> {
    match words::nanos(&at.word()?) {
        Some(time) => Ok(time),
        None => at.expected("a time with its unit, as 10us, 1.5ms or 3s"),
    }
}

fn caching(at: &At<'_>) -> Out<Caching> {
    match at.word()?.as_str() {
        "auto" => Ok(Caching::Auto),
        "off" | "false" => Ok(Caching::Off),
        _ => match at.whole(1, 1 << 20) {
            Ok(packets) => Ok(Caching::Packets(packets as u32)),
            Err(_) => at.expected("auto, off, or a number of packets"),
        },
    }
}

fn mode(at: &At<'_>) -> Out<Mode> {
    if !at.is_map() {
        return at.one_of(&[("continuous", Mode::Continuous)]);
    }
    at.keys(&["burst", "bursts"])?;
    match (at.get("burst"), at.get("bursts")) {
        (Some(burst), None) => {
            burst.keys(&["packets"])?;
            let packets = burst.need("packets", "their number")?.whole(1, u64::MAX)?;
            Ok(Mode::Burst { packets })
        }
        (None, Some(bursts)) => {
            bursts.keys(&["packets", "every", "count"])?;
            Ok(Mode::Bursts {
                packets: bursts.need("packets", "those of a burst")?.whole(1, u64::MAX)?,
                every: time(&bursts.need("every", "the time from burst to burst")?)?,
                count: bursts.get("count").map_or(Ok(0), |at| at.whole(0, u64::MAX))?,
            })
        }
        _ => at.wrong("one of `burst' and `bursts' is needed"),
    }
}

/// RFC 6985's letters.
const LETTERS: [(char, u16); 7] =
    [('a', 64), ('b', 128), ('c', 256), ('d', 512), ('e', 1024), ('f', 1280), ('g', 1518)];

/// Reads sizes, to which `more` bytes are added.
fn read_size(at: &At<'_>, more: u16) -> Out<Size> {
    let bytes = |at: &At<'_>| match at.whole(1, 9216) {
        Ok(bytes) => Ok(bytes as u16 + more),
        Err(_) => at.expected("a size in bytes"),
    };
    let range = |at: &At<'_>, random| match Kind::Number.range(&at.word()?) {
        Some((least, most)) if least <= most && most <= 9216 => {
            Ok(Size::Range { least: least as u16 + more, most: most as u16 + more, random })
        }
        Some((least, most)) if least > most => {
            at.wrong(format!("{least}-{most} runs backwards; use {most}-{least}"))
        }
        _ => at.expected("a range of sizes, as 64-1518"),
    };
    if at.is_list() {
        let part = |at: &At<'_>| {
            if !at.is_map() {
                return Ok((bytes(at)?, 1));
            }
            at.keys(&["size", "share"])?;
            let share = at.get("share").map_or(Ok(1), |at| at.whole(1, 4096))? as u32;
            Ok((bytes(&at.need("size", "bytes")?)?, share))
        };
        return Ok(Size::Shares(at.list()?.iter().map(part).collect::<Out<_>>()?));
    }
    if at.is_map() {
        at.keys(&["inc", "random"])?;
        return match (at.get("inc"), at.get("random")) {
            (Some(at), None) => range(&at, false),
            (None, Some(at)) => range(&at, true),
            _ => at.wrong("one of `inc' and `random' is needed"),
        };
    }
    let word = at.word()?;
    if word == "imix" {
        return Ok(Size::imix());
    }
    let letter = |c: char| LETTERS.iter().find(|(letter, _)| *letter == c).map(|(_, size)| *size);
    let letters: Option<Vec<u16>> = word.chars().map(letter).collect();
    match letters {
        Some(sizes) if !sizes.is_empty() && sizes.len() <= 256 => {
            Ok(Size::Shares(sizes.into_iter().map(|size| (size, 1)).collect()))
        }
        _ if word.contains('-') => range(at, false),
        _ => match bytes(at) {
            Ok(bytes) => Ok(Size::One(bytes)),
            Err(_) => at.expected(
                "a size in bytes, a range, a list of sizes, imix, or letters of RFC 6985",
            ),
        },
    }
}
