//! Compiles the layers of a stream.

use std::collections::BTreeMap;

use super::field::{Field, Steps, Values, below, mix};
use super::layer::{Fill, Layer, Sum};
use super::shape::{
    Cache, Covered, Index, MAX_SUMS, Numbers, Order, Shape, SumAt, Turns, Variable, Variant, Width,
};
use super::{Caching, MAX_FRAME, Side, Size, StreamError};
use crate::MacAddr;

/// Bytes of the FCS, which sizes count and frames in memory lack.
const FCS: usize = 4;
/// Most values of a list or number of different random values.
pub(super) const MAX_LIST: usize = 1 << 16;
/// Most sizes in the order of a list of sizes.
const MAX_ORDER: u64 = 4096;

/// Input of a stream's compilation.
pub(super) struct Source<'a> {
    pub(super) layers: &'a [Layer],
    pub(super) size: &'a Size,
    /// Own MAC address, and that of the next hop.
    pub(super) macs: (MacAddr, MacAddr),
    pub(super) side: Side,
    pub(super) tagged: bool,
    pub(super) caching: Caching,
    /// Bytes that packets rendered beforehand may take.
    pub(super) cached: u64,
    pub(super) seed: u64,
}

/// A field and its place.
struct Slot<'a> {
    paths: Vec<String>,
    bit: usize,
    bits: u32,
    field: &'a Field,
}

#[derive(Default)]
struct Builder<'a> {
    bytes: Vec<u8>,
    slots: Vec<Slot<'a>>,
    sums: Vec<(SumAt, Covered)>,
    lengths: Vec<(usize, usize)>,
    seen: BTreeMap<&'static str, usize>,
    /// Name and number of the layer at hand.
    layer: (&'static str, usize),
    /// The innermost IP header: where it begins, and whether it is IPv6.
    ip: Option<(usize, bool)>,
}

fn wrong<T>(path: impl Into<String>, message: impl Into<String>) -> Result<T, StreamError> {
    Err(StreamError { path: path.into(), message: message.into() })
}

impl<'a> Builder<'a> {
    /// Appends bytes; returns where they begin.
    fn put(&mut self, bytes: &[u8]) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// Places a field at a bit of the packet.
    fn field(&mut self, name: &str, bit: usize, bits: u32, field: &'a Field) {
        let (layer, number) = self.layer;
        let mut paths = vec![format!("{layer}:{number}.{name}")];
        if number == 0 {
            paths.push(format!("{layer}.{name}"));
        }
        self.slots.push(Slot { paths, bit, bits, field });
    }

    /// Sets bits of the packet.
    fn set(&mut self, bit: usize, bits: u32, value: u128) {
        for n in 0..bits as usize {
            if value >> (bits as usize - 1 - n) & 1 == 1 {
                let at = bit + n;
                if let Some(byte) = self.bytes.get_mut(at / 8) {
                    *byte |= 0x80 >> (at % 8);
                }
            }
        }
    }

    fn path(&self) -> String {
        match self.layer {
            (name, 0) => name.into(),
            (name, number) => format!("{name}:{number}"),
        }
    }
}

/// The Ethernet type of a layer.
fn ether_type(layer: Option<&Layer>) -> u16 {
    match layer {
        Some(Layer::Vlan { service: true, .. }) => 0x88a8,
        Some(Layer::Vlan { .. }) => 0x8100,
        Some(Layer::Mpls { .. }) => 0x8847,
        Some(Layer::Arp { .. }) => 0x0806,
        Some(Layer::Ipv4 { .. }) => 0x0800,
        Some(Layer::Ipv6 { .. }) => 0x86dd,
        // Ethertype for local experiments (IEEE 802).
        _ => 0x88b5,
    }
}

/// The IP protocol of a layer.
fn protocol(layer: Option<&Layer>, v6: bool) -> u8 {
    match layer {
        Some(Layer::Icmp { .. }) if v6 => 58,
        Some(Layer::Icmp { .. }) => 1,
        Some(Layer::Ipv4 { .. }) => 4,
        Some(Layer::Tcp { .. }) => 6,
        Some(Layer::Udp { .. }) => 17,
        Some(Layer::Ipv6 { .. }) => 41,
        Some(Layer::Mpls { .. }) => 137,
        // Protocol for experiments (RFC 3692).
        _ => 253,
    }
}

/// Returns what may follow a layer, if the next one may not.
fn may_not_follow(layer: &Layer, next: &Layer) -> Option<&'static str> {
    use Layer::{Arp, Ethernet, Icmp, Ipv4, Ipv6, Mpls, Payload, Raw, Tcp, Udp, Vlan};
    let fits = match (layer, next) {
        (Payload { .. }, _) => return Some("nothing follows a payload"),
        (_, Raw(_) | Payload { .. }) | (Raw(_), _) => true,
        (Ethernet { .. } | Vlan { .. }, next) => {
            matches!(next, Vlan { .. } | Mpls { .. } | Arp { .. } | Ipv4 { .. } | Ipv6 { .. })
        }
        (Mpls { .. }, next) => {
            matches!(next, Mpls { .. } | Ipv4 { .. } | Ipv6 { .. } | Ethernet { .. })
        }
        (Ipv4 { .. } | Ipv6 { .. }, next) => matches!(
            next,
            Ipv4 { .. } | Ipv6 { .. } | Udp { .. } | Tcp { .. } | Icmp { .. } | Mpls { .. }
        ),
        (Arp { .. } | Udp { .. } | Tcp { .. } | Icmp { .. }, _) => false,
    };
    let may = match layer {
        _ if fits => return None,
        Ethernet { .. } | Vlan { .. } => "vlan, mpls, arp, ipv4, ipv6, raw or payload",
        Mpls { .. } => "mpls, ipv4, ipv6, ethernet, raw or payload",
        Ipv4 { .. } | Ipv6 { .. } => "udp, tcp, icmp, ipv4, ipv6, mpls, raw or payload",
        _ => "raw or payload",
    };
    Some(may)
}

/// Compiles the packets that one side of a stream sends.
///
/// # Errors
/// If layers, fields and sizes do not fit each other.
pub(super) fn compile(source: &Source<'_>) -> Result<Shape, StreamError> {
    let Source { layers, size, side, tagged, caching, seed, .. } = source;
    let mut b = Builder::default();
    let own = [Field::one(mac(source.macs.0)), Field::one(mac(source.macs.1))];
    let plain = Layer::ethernet();
    let whole: Vec<&Layer> = match layers.first() {
        Some(Layer::Ethernet { .. }) => layers.iter().collect(),
        _ => std::iter::once(&plain).chain(*layers).collect(),
    };
    // Raw bytes at the end belong to the payload.
    let headers = whole
        .iter()
        .rposition(|layer| !matches!(layer, Layer::Raw(_) | Layer::Payload { .. }))
        .map_or(0, |last| last + 1);
    for (at, layer) in whole.iter().enumerate() {
        let next = whole.get(at + 1).copied();
        b.layer = (layer.name(), 0);
        let seen = b.seen.entry(layer.name()).or_insert(0);
        b.layer.1 = *seen;
        *seen += 1;
        if let Some(may) = next.and_then(|next| may_not_follow(layer, next)) {
            let next = next.map_or("", Layer::name);
            return wrong(b.path(), format!("{next} cannot follow it; {may} can"));
        }
        if at < headers {
            header(&mut b, layer, next, *side, &own, at + 1 == headers)?;
        }
    }
    let payload = b.bytes.len();
    let (explicit, fill) = explicit(&whole[headers..]);
    let sizes = Sizes::of(size, *seed)?;
    let least = payload + explicit.len() + FCS;
    for len in &sizes.lens {
        if *len < least {
            let what = format!("headers and payload take {} bytes, and the FCS {FCS}", least - FCS);
            return wrong("size", format!("{len} bytes are too few: {what}; use at least {least}"));
        }
    }
    for (_, covered) in &mut b.sums {
        if covered.with_payload {
            covered.to = payload;
        }
    }
    let longest = sizes.lens.iter().max().copied().unwrap_or(64) - FCS;
    b.bytes.extend_from_slice(&explicit);
    let filled = b.bytes.len();
    b.bytes.extend((filled..longest).map(|at| match fill {
        Fill::Byte(byte) => byte,
        Fill::Count => (at - filled) as u8,
    }));
    let (sums, covers): (Vec<SumAt>, Vec<Covered>) = b.sums.iter().copied().unzip();
    if sums.len() > MAX_SUMS {
        return wrong("layers", format!("more than {MAX_SUMS} checksums: use fewer headers"));
    }
    let fields = variables(&mut b, &covers, *seed)?;
    let mut shape = Shape {
        template: b.bytes,
        variants: sizes
            .lens
            .iter()
            .map(|len| Variant { len: len - FCS, ..Variant::default() })
            .collect(),
        turns: Turns { order: sizes.order, cached: 0, first: 0 },
        fields,
        sums,
        lengths: b.lengths,
        payload,
        cache: Cache::default(),
    };
    shape.finish(&covers, explicit.len(), *tagged);
    shape.keep();
    match caching {
        Caching::Off => {}
        Caching::Auto => shape.render(None, source.cached),
        Caching::Packets(packets) => {
            let bytes = u64::from(*packets) * shape.template.len() as u64;
            if *packets == 0 || bytes > 64 << 20 {
                return wrong("cache", "it must hold 1 packet to 64 MiB of packets");
            }
            shape.render(Some(*packets), u64::MAX);
        }
    }
    shape.rewind();
    Ok(shape)
}

fn mac(address: MacAddr) -> u64 {
    let [a, b, c, d, e, f] = address.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// Returns the first bytes of the payload, and what fills it.
fn explicit(layers: &[&Layer]) -> (Vec<u8>, Fill) {
    let mut all = Vec::new();
    let mut filled = Fill::Byte(0);
    for layer in layers {
        match layer {
            Layer::Raw(bytes) => all.extend_from_slice(bytes),
            Layer::Payload { bytes, fill } => {
                all.extend_from_slice(bytes);
                filled = *fill;
            }
            _ => {}
        }
    }
    (all, filled)
}

/// Adds a header.
fn header<'a>(
    b: &mut Builder<'a>,
    layer: &'a Layer,
    next: Option<&'a Layer>,
    side: Side,
    own: &'a [Field; 2],
    last: bool,
) -> Result<(), StreamError> {
    // The other side sends the same packets with the addresses exchanged.
    let mirrored = side == Side::B;
    let pair = |source: &'a Field, destination: &'a Field| match mirrored {
        false => [("source", source), ("destination", destination)],
        true => [("destination", destination), ("source", source)],
    };
    match layer {
        Layer::Ethernet { source, destination, kind } => {
            let at = b.put(&[0; 14]) * 8;
            let [mine, other] = own;
            let (from, to) = match mirrored {
                false => (("source", source), ("destination", destination)),
                true => (("destination", destination), ("source", source)),
            };
            b.field(to.0, at, 48, to.1.as_ref().unwrap_or(other));
            b.field(from.0, at + 48, 48, from.1.as_ref().unwrap_or(mine));
            match kind {
                Some(kind) => b.field("type", at + 96, 16, kind),
                None => b.set(at + 96, 16, ether_type(next).into()),
            }
        }
        Layer::Vlan { id, priority, .. } => {
            let at = b.put(&[0; 4]) * 8;
            b.field("priority", at, 3, priority);
            b.field("id", at + 4, 12, id);
            b.set(at + 16, 16, ether_type(next).into());
        }
        Layer::Mpls { label, class, ttl, bottom } => {
            let at = b.put(&[0; 4]) * 8;
            b.field("label", at, 20, label);
            b.field("class", at + 20, 3, class);
            let is_last = !matches!(next, Some(Layer::Mpls { .. }));
            b.set(at + 23, 1, bottom.unwrap_or(is_last).into());
            b.field("ttl", at + 24, 8, ttl);
        }
        Layer::Arp { operation, sender_mac, sender, target_mac, target } => {
            let at = b.put(&[0, 1, 8, 0, 6, 4]) * 8;
            b.put(&[0; 22]);
            b.field("operation", at + 48, 16, operation);
            b.field("sender-mac", at + 64, 48, sender_mac.as_ref().unwrap_or(&own[0]));
            let (from, to) = match mirrored {
                false => (("sender", sender), ("target", target)),
                true => (("target", target), ("sender", sender)),
            };
            b.field(from.0, at + 112, 32, from.1);
            b.field("target-mac", at + 144, 48, target_mac);
            b.field(to.0, at + 192, 32, to.1);
        }
        Layer::Ipv4 { source, destination, ttl, dscp, id, df, protocol: kind, options, sum } => {
            let words = options.len().div_ceil(4);
            if words > 10 {
                let message = format!("{} bytes; there is room for 40", options.len());
                return wrong(format!("{}.options", b.path()), message);
            }
            let start = b.put(&[0; 20]);
            b.put(options);
            b.bytes.resize(start + 20 + words * 4, 0);
            let at = start * 8;
            b.set(at, 8, 0x45 + words as u128);
            b.field("dscp", at + 8, 6, dscp);
            b.lengths.push((start + 2, start));
            b.field("id", at + 32, 16, id);
            b.set(at + 49, 1, (*df).into());
            b.field("ttl", at + 64, 8, ttl);
            match kind {
                Some(kind) => b.field("protocol", at + 72, 8, kind),
                None => b.set(at + 72, 8, protocol(next, false).into()),
            }
            let [from, to] = pair(source, destination);
            b.field(from.0, at + 96, 32, from.1);
            b.field(to.0, at + 128, 32, to.1);
            let covered = Covered {
                from: start,
                to: b.bytes.len(),
                with_payload: false,
                addresses: None,
                protocol: 0,
            };
            let place = SumAt { at: start + 10, is_udp: false, sum: *sum, kept: 0 };
            b.sums.push((place, covered));
            b.ip = Some((start, false));
        }
        Layer::Ipv6 { source, destination, hops, class, flow, next: kind } => {
            let start = b.put(&[0; 40]);
            let at = start * 8;
            b.set(at, 4, 6);
            b.field("class", at + 4, 8, class);
            b.field("flow", at + 12, 20, flow);
            b.lengths.push((start + 4, start + 40));
            match kind {
                Some(kind) => b.field("next", at + 48, 8, kind),
                None => b.set(at + 48, 8, protocol(next, true).into()),
            }
            b.field("hops", at + 56, 8, hops);
            let [from, to] = pair(source, destination);
            b.field(from.0, at + 64, 128, from.1);
            b.field(to.0, at + 192, 128, to.1);
            b.ip = Some((start, true));
        }
        Layer::Udp { source, destination, sum } => {
            let start = b.put(&[0; 8]);
            b.field("source", start * 8, 16, source);
            b.field("destination", start * 8 + 16, 16, destination);
            b.lengths.push((start + 4, start));
            transport(b, start, 6, 17, *sum)?;
        }
        Layer::Tcp { source, destination, sequence, acknowledgement, flags, window, sum } => {
            let start = b.put(&[0; 20]);
            let at = start * 8;
            b.field("source", at, 16, source);
            b.field("destination", at + 16, 16, destination);
            b.field("sequence", at + 32, 32, sequence);
            b.field("acknowledgement", at + 64, 32, acknowledgement);
            b.set(at + 96, 4, 5);
            b.field("flags", at + 104, 8, flags);
            b.field("window", at + 112, 16, window);
            transport(b, start, 16, 6, *sum)?;
        }
        Layer::Icmp { kind, code, id, sequence, sum } => {
            let Some((_, v6)) = b.ip else {
                return wrong(b.path(), "it needs ipv4 or ipv6 before it");
            };
            let start = b.put(&[0; 8]);
            let at = start * 8;
            match kind {
                Some(kind) => b.field("type", at, 8, kind),
                None => b.set(at, 8, if v6 { 128 } else { 8 }),
            }
            b.field("code", at + 8, 8, code);
            b.field("id", at + 32, 16, id);
            b.field("sequence", at + 48, 16, sequence);
            transport(b, start, 2, if v6 { 58 } else { 1 }, *sum)?;
        }
        Layer::Raw(bytes) => {
            if bytes.len() % 2 == 1 && !last {
                return wrong(b.path(), "an odd number of bytes; before a header, add one");
            }
            b.put(bytes);
        }
        Layer::Payload { .. } => {}
    }
    Ok(())
}

/// Notes the checksum of a transport header.
fn transport(
    b: &mut Builder<'_>,
    start: usize,
    at: usize,
    protocol: u8,
    sum: Sum,
) -> Result<(), StreamError> {
    let addresses = match b.ip {
        // ICMP has no pseudo header.
        Some(_) if protocol == 1 => None,
        Some((ip, false)) => Some((ip + 12, ip + 20)),
        Some((ip, true)) => Some((ip + 8, ip + 40)),
        None => return wrong(b.path(), "it needs ipv4 or ipv6 before it"),
    };
    let covered = Covered { from: start, to: start, with_payload: true, addresses, protocol };
    let place = SumAt { at: start + at, is_udp: protocol == 17, sum, kept: 0 };
    b.sums.push((place, covered));
    Ok(())
}

/// The sizes of a stream's packets with FCS, and their order.
struct Sizes {
    lens: Vec<usize>,
    order: Order,
}

impl Sizes {
    fn of(size: &Size, seed: u64) -> Result<Sizes, StreamError> {
        let check = |bytes: u16| match usize::from(bytes) {
            len @ 64..=MAX_FRAME => Ok(len),
            len => wrong("size", format!("{len} bytes with FCS; it must be 64 to {MAX_FRAME}")),
        };
        Ok(match size {
            Size::One(bytes) => Sizes { lens: vec![check(*bytes)?], order: Order::One },
            Size::Range { least, most, random } => {
                let (first, last) = (check(*least)?, check(*most)?);
                if first > last {
                    return wrong(
                        "size",
                        format!("{least}-{most} runs backwards; use {most}-{least}"),
                    );
                }
                let count = (last - first + 1) as u32;
                let order =
                    if *random { Order::Random(mix(seed), count) } else { Order::Count(count) };
                Sizes { lens: (first..=last).collect(), order }
            }
            Size::Shares(list) => {
                let lens: Vec<usize> =
                    list.iter().map(|(bytes, _)| check(*bytes)).collect::<Result<_, _>>()?;
                let total: u64 = list.iter().map(|(_, share)| u64::from(*share)).sum();
                if list.is_empty() || list.iter().any(|(_, share)| *share == 0) {
                    return wrong("size", "each size of a list needs a share of at least 1");
                }
                if total > MAX_ORDER || lens.len() > 256 {
                    let most = format!("at most 256 sizes with {MAX_ORDER} shares in all");
                    return wrong(
                        "size",
                        format!("{} sizes with {total} shares; {most}", lens.len()),
                    );
                }
                // Each size as evenly as its share allows.
                let mut credits = vec![0i64; lens.len()];
                let order = (0..total).map(|_| {
                    for (credit, (_, share)) in credits.iter_mut().zip(list) {
                        *credit += i64::from(*share);
                    }
                    let best = (0..credits.len()).max_by_key(|n| (credits[*n], usize::MAX - n));
                    let best = best.unwrap_or_default();
                    credits[best] -= total as i64;
                    best as u16
                });
                Sizes { order: Order::Cycle(order.collect()), lens }
            }
        })
    }
}

/// A field's values as numbers of up to 64 bits, by index.
struct Drawn {
    high: Option<Numbers>,
    low: Numbers,
    index: Index,
}

/// Turns fields into what is written, and puts constant ones into the template.
fn variables(
    b: &mut Builder<'_>,
    covers: &[Covered],
    seed: u64,
) -> Result<Vec<Variable>, StreamError> {
    let slots = std::mem::take(&mut b.slots);
    let mut all: Vec<Variable> = Vec::new();
    // Paths of fields compiled so far, and where they are.
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut waiting: Vec<&Slot<'_>> = Vec::new();
    for slot in &slots {
        let Slot { paths, bit, bits, field } = slot;
        let path = paths.last().map_or("", String::as_str);
        check_values(path, *bits, &field.values)?;
        match field.values {
            Values::One(value) => b.set(*bit, *bits, value),
            _ => waiting.push(slot),
        }
    }
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut left = Vec::new();
        for slot in waiting {
            let path = slot.paths.last().map_or("", String::as_str);
            let other = match &slot.field.steps {
                Steps::Packet => None,
                Steps::With(other) | Steps::After(other) => match known.get(other.as_str()) {
                    Some(other) => Some(*other),
                    None => {
                        left.push(slot);
                        continue;
                    }
                },
            };
            let drawn = draw(path, slot.field, slot.bits, other, &all, seed)?;
            let at = all.len();
            for path in &slot.paths {
                known.insert(path, at);
            }
            match drawn.high {
                Some(high) => {
                    all.push(place(slot.bit, 64, high, drawn.index, covers));
                    let with = Index::With { field: at, count: u64::MAX };
                    all.push(place(slot.bit + 64, 64, drawn.low, with, covers));
                }
                None => {
                    let (bit, bits) = match slot.bits {
                        128 => (slot.bit + 64, 64),
                        bits => (slot.bit, bits),
                    };
                    all.push(place(bit, bits, drawn.low, drawn.index, covers));
                    if slot.bits == 128 {
                        let high = first_value(&slot.field.values) >> 64;
                        b.set(slot.bit, 64, high);
                    }
                }
            }
        }
        waiting = left;
        if waiting.len() == before {
            let Some(slot) = waiting.first() else { break };
            let (Steps::With(other) | Steps::After(other)) = &slot.field.steps else { break };
            let path = slot.paths.last().cloned().unwrap_or_default();
            let is_slot = slots.iter().any(|slot| slot.paths.contains(other));
            return match is_slot {
                true => wrong(
                    path,
                    format!("it steps with {other}, which is constant, or steps with it"),
                ),
                false => {
                    let varying: Vec<&str> = slots
                        .iter()
                        .filter(|slot| !matches!(slot.field.values, Values::One(_)))
                        .filter_map(|slot| slot.paths.last().map(String::as_str))
                        .collect();
                    let varying = varying.join(", ");
                    wrong(path, format!("no field {other}; fields that vary: {varying}"))
                }
            };
        }
    }
    Ok(all)
}

fn first_value(values: &Values) -> u128 {
    match values {
        Values::One(value) => *value,
        Values::Count { first, .. } => *first,
        Values::List(list) => list.first().copied().unwrap_or_default(),
        Values::Random { least, .. } => *least,
    }
}

/// Checks that values fit their field.
fn check_values(path: &str, bits: u32, values: &Values) -> Result<(), StreamError> {
    let most = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
    let too_big = |value: u128| wrong(path, format!("{value} is too large: at most {most}"));
    let large = |values: &[u128]| values.iter().copied().find(|value| *value > most);
    match values {
        Values::One(value) if *value > most => too_big(*value),
        Values::List(list) => match list.len() {
            0 => wrong(path, "an empty list; it needs at least one value"),
            1..=MAX_LIST => large(list).map_or(Ok(()), too_big),
            len => wrong(path, format!("a list of {len} values; at most {MAX_LIST}")),
        },
        Values::Count { first, last, step, start } => {
            if let Some(value) = large(&[*first, *last]) {
                return too_big(value);
            }
            let (low, high) = (*first.min(last), *first.max(last));
            if *step == 0 {
                return wrong(path, "a step of 0; it must be at least 1");
            }
            if !(low..=high).contains(start) || start.abs_diff(*first) % step != 0 {
                let what =
                    format!("{start} is none of the values from {first} to {last} by {step}");
                return wrong(path, format!("it cannot start there: {what}"));
            }
            same_half(path, low, high)
        }
        Values::Random { least, most, distinct, .. } => {
            if let Some(value) = large(&[*least, *most]) {
                return too_big(value);
            }
            if least > most {
                return wrong(path, format!("{least}-{most} runs backwards; use {most}-{least}"));
            }
            let count = (most - least).saturating_add(1);
            if let Some(distinct) = distinct {
                let wanted = *distinct as usize;
                if wanted == 0 || wanted > MAX_LIST || u128::from(*distinct) > count {
                    let limit = count.min(MAX_LIST as u128);
                    return wrong(
                        path,
                        format!("{wanted} different values; 1 to {limit} are possible"),
                    );
                }
            }
            same_half(path, *least, *most)
        }
        Values::One(_) => Ok(()),
    }
}

/// Ranges count in 63 bits.
fn same_half(path: &str, low: u128, high: u128) -> Result<(), StreamError> {
    match high - low < 1 << 63 && low >> 64 == high >> 64 {
        true => Ok(()),
        false => wrong(
            path,
            "the range is too wide: its ends must have the first 64 bits in common, \
                              and it may have 2^63 values",
        ),
    }
}

/// Returns numbers by index, and where the index comes from.
fn draw(
    path: &str,
    field: &Field,
    bits: u32,
    other: Option<usize>,
    all: &[Variable],
    seed: u64,
) -> Result<Drawn, StreamError> {
    let list = |values: &[u128]| {
        let low = Numbers::List(values.iter().map(|value| *value as u64).collect());
        let high = (bits == 128)
            .then(|| Numbers::List(values.iter().map(|v| (*v >> 64) as u64).collect()));
        (high, low, values.len() as u64)
    };
    let mut random = None;
    let mut start = 0;
    let (high, low, count) = match &field.values {
        Values::One(value) => list(&[*value]),
        Values::List(values) => list(values),
        Values::Count { first, last, step, start: from } => {
            let count = (first.abs_diff(*last) / step) as u64 + 1;
            start = (first.abs_diff(*from) / step) as u64;
            let step = if last < first { (*step as u64).wrapping_neg() } else { *step as u64 };
            (None, Numbers::Line { first: *first as u64, step }, count)
        }
        Values::Random { least, most, seed: own, distinct } => {
            let count = (most - least) as u64 + 1;
            let seed = mix(seed ^ mix(*own));
            match distinct {
                None => {
                    random = Some(Index::Random { seed, count });
                    (None, Numbers::Line { first: *least as u64, step: 1 }, count)
                }
                Some(distinct) => list(&different(*least, count, *distinct, seed)),
            }
        }
    };
    let index = match (&field.steps, other) {
        (Steps::With(_), Some(field)) => Index::With { field, count },
        (Steps::After(name), Some(other)) => {
            if random.is_some() {
                return wrong(
                    path,
                    "values drawn for each packet cannot step after another field; \
                                    give their number (distinct), or leave `after' out",
                );
            }
            let Some(every) = all.get(other).and_then(|field| field.period(all)) else {
                return wrong(path, format!("{name} never begins again, since it is random"));
            };
            Index::Steps { start, count, every }
        }
        _ => random.unwrap_or(Index::Steps { start, count, every: 1 }),
    };
    Ok(Drawn { high, low, index })
}

/// Draws different values.
fn different(least: u128, count: u64, wanted: u32, seed: u64) -> Vec<u128> {
    let mut seen = std::collections::HashSet::new();
    let mut values = Vec::new();
    // If values are few, most are taken: then they are shuffled instead.
    if count <= 2 * u64::from(wanted) {
        let mut all: Vec<u64> = (0..count).collect();
        for at in (1..all.len()).rev() {
            all.swap(at, below(mix(seed ^ at as u64), at as u64 + 1) as usize);
        }
        return all.into_iter().take(wanted as usize).map(|n| least + u128::from(n)).collect();
    }
    for n in 0.. {
        if values.len() == wanted as usize {
            break;
        }
        let value = below(mix(seed ^ n), count);
        if seen.insert(value) {
            values.push(least + u128::from(value));
        }
    }
    values
}

/// Places a field in the even word that holds it.
fn place(bit: usize, bits: u32, values: Numbers, index: Index, covers: &[Covered]) -> Variable {
    let at = bit / 16 * 2;
    let end = (bit + bits as usize).div_ceil(8);
    let (width, bytes) = match end - at {
        0..=2 => (Width::Two, 2),
        3..=4 => (Width::Four, 4),
        _ => (Width::Eight, 8),
    };
    let shift = ((at + bytes) * 8 - (bit + bits as usize)) as u32;
    let mut covered = 0;
    for (n, cover) in covers.iter().enumerate() {
        let within = |from: usize, to: usize| (from..to).contains(&(bit / 8));
        if within(cover.from, cover.to)
            || cover.addresses.is_some_and(|(from, to)| within(from, to))
        {
            covered |= 1 << n;
        }
    }
    let position = match index {
        Index::Steps { start, .. } => start,
        _ => 0,
    };
    Variable { at, width, shift, covered, values, index, position, ticks: 0, last: 0 }
}
