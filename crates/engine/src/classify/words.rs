//! Patterns in the words of VPP's classifier.
//!
//! `mask` names the fields that count, `match` their values: `l2 src`, `l3 ip4 dst`, `l4 dst_port`,
//! or `hex` bytes from the Ethernet header on. A pattern for fields of IP also asks for the
//! Ethernet type, and one for ports for a header without options, so that it never matches other
//! bytes than it names.

use thalweg_cli::{Args, CliError};
use thalweg_graph::filter::MAX_BYTES;

/// A pattern while it is read.
struct Draft {
    mask: [u8; MAX_BYTES],
    value: [u8; MAX_BYTES],
    /// Bytes before the IP header.
    l3: usize,
}

const ETHERNET: usize = 14;

/// A field: name, first byte from the beginning of its header, bytes, bits of its last byte that
/// count.
type Field = (&'static str, usize, usize, u8);

const L2: [Field; 3] = [("dst", 0, 6, 0xff), ("src", 6, 6, 0xff), ("proto", 12, 2, 0xff)];
const IP4: [Field; 9] = [
    ("src", 12, 4, 0xff),
    ("dst", 16, 4, 0xff),
    ("proto", 9, 1, 0xff),
    ("tos", 1, 1, 0xff),
    ("length", 2, 2, 0xff),
    ("fragment_id", 4, 2, 0xff),
    ("ttl", 8, 1, 0xff),
    ("checksum", 10, 2, 0xff),
    ("version", 0, 1, 0xf0),
];
const IP6: [Field; 5] = [
    ("src", 8, 16, 0xff),
    ("dst", 24, 16, 0xff),
    ("proto", 6, 1, 0xff),
    ("hop_limit", 7, 1, 0xff),
    ("version", 0, 1, 0xf0),
];
const L4: [Field; 2] = [("src_port", 0, 2, 0xff), ("dst_port", 2, 2, 0xff)];

/// Layers of a pattern.
const LAYERS: [&str; 4] = ["hex", "l2", "l3", "l4"];

/// A named field of a layer: its place in the packet, and which bits of its last byte count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    name: &'static str,
    at: usize,
    len: usize,
    last: u8,
}

/// Takes `mask … match …`; returns the bits that count, and their values.
///
/// # Errors
/// If a field is unknown, a value missing, or the two do not name the same fields.
pub fn pattern(args: &mut Args<'_>) -> Result<(Bytes, Bytes), CliError> {
    let masked = read_mask(args)?;
    if !args.exact("match") {
        return Err(args.bad("pattern", "`match' and the values of the fields"));
    }
    let matched = fields(args, true)?;
    if let Some(place) = matched.places.iter().find(|p| !masked.places.contains(p)) {
        let text = format!("no value of `{}', which the mask does not name", place.name);
        return Err(args.bad_last("match", text));
    }
    if masked.hex != matched.hex {
        return Err(args.bad("match", "`hex' in both, or in neither"));
    }
    if let Some(missing) = masked.places.iter().find(|p| !matched.places.contains(p)) {
        let text = format!("a value of `{}', which the mask names", missing.name);
        return Err(args.bad_last("match", text));
    }
    Ok((masked.draft.mask, matched.draft.value))
}

/// Takes `mask …` alone; returns the bits that count.
///
/// # Errors
/// If a field is unknown.
pub fn mask(args: &mut Args<'_>) -> Result<Bytes, CliError> {
    Ok(read_mask(args)?.draft.mask)
}

/// Takes `match …` alone; returns the values, which a table's mask will cut.
///
/// # Errors
/// If a field is unknown or a value missing.
pub fn values(args: &mut Args<'_>) -> Result<Bytes, CliError> {
    if !args.exact("match") {
        return Err(args.bad("session", "`match' and the values of the fields"));
    }
    Ok(fields(args, true)?.draft.value)
}

fn read_mask(args: &mut Args<'_>) -> Result<Read, CliError> {
    if !args.exact("mask") {
        return Err(args.bad("pattern", "`mask' and the fields that count"));
    }
    fields(args, false)
}

/// The first bytes of a packet, or the bits of them that count.
pub type Bytes = [u8; MAX_BYTES];

struct Read {
    draft: Draft,
    places: Vec<Place>,
    hex: bool,
}

/// Takes the fields of a mask, or fields with their values.
fn fields(args: &mut Args<'_>, with_values: bool) -> Result<Read, CliError> {
    let mut read = Read {
        draft: Draft { mask: [0; MAX_BYTES], value: [0; MAX_BYTES], l3: ETHERNET },
        places: Vec::new(),
        hex: false,
    };
    let mut ip6 = false;
    while let Some(layer) = args.one_of_exact(&LAYERS) {
        match layer {
            "hex" => {
                let bytes = args.with("hex", "an even number of hexadecimal digits", hex)?;
                let to = if with_values { &mut read.draft.value } else { &mut read.draft.mask };
                to[..bytes.len()].copy_from_slice(&bytes);
                read.hex = true;
            }
            "l2" => loop {
                let tags = args.one_of_exact(&["tag1", "tag2"]);
                if let Some(tag) = tags {
                    let at = if tag == "tag1" { ETHERNET } else { ETHERNET + 4 };
                    let name = if tag == "tag1" { "tag1" } else { "tag2" };
                    read.draft.l3 = read.draft.l3.max(at + 4);
                    // Two bytes behind the type: the VLAN id is their lower twelve bits.
                    let place = Place { name, at, len: 2, last: 0xff };
                    read.take(args, place, with_values)?;
                    match with_values {
                        false => read.draft.mask[at] &= 0x0f,
                        true if read.draft.value[at] > 0x0f => {
                            return Err(args.bad_last(name, "a VLAN id, 0 to 4095"));
                        }
                        true => {}
                    }
                    continue;
                }
                if !read.one(args, &L2, 0, with_values)? {
                    break;
                }
            },
            "l3" => {
                let choice = args.one_of_exact(&["ip4", "ip6"]);
                let Some(version) = choice else {
                    return Err(args.bad("l3", "`ip4' or `ip6'"));
                };
                ip6 = version == "ip6";
                let (at, fields) = (read.draft.l3, if ip6 { &IP6[..] } else { &IP4[..] });
                read.fixed(at - 2, if ip6 { &[0x86, 0xdd] } else { &[0x08, 0x00] }, 0xff);
                while read.one(args, fields, at, with_values)? {}
            }
            _ => {
                // VPP's words name a protocol here, which is a field of its own.
                let _ = args.one_of_exact(&["tcp", "udp"]);
                let ip = read.draft.l3;
                if !ip6 {
                    read.fixed(ip - 2, &[0x08, 0x00], 0xff);
                    read.fixed(ip, &[0x45], 0xff);
                }
                let at = ip + if ip6 { 40 } else { 20 };
                loop {
                    let named = match args.one_of_exact(&["src", "dst"]) {
                        Some(word) => L4.iter().find(|f| f.0.starts_with(word)),
                        None => None,
                    };
                    let more = match named {
                        Some((name, from, len, last)) => {
                            let place = Place { name, at: at + from, len: *len, last: *last };
                            read.take(args, place, with_values)?;
                            true
                        }
                        None => read.one(args, &L4, at, with_values)?,
                    };
                    if !more {
                        break;
                    }
                }
            }
        }
    }
    match read.places.is_empty() && !read.hex {
        true => Err(args.bad("pattern", "fields: `l2', `l3 ip4|ip6', `l4' or `hex'")),
        false => Ok(read),
    }
}

impl Read {
    /// Takes a field of a layer that begins at `base`, if one is next.
    fn one(
        &mut self,
        args: &mut Args<'_>,
        fields: &[Field],
        base: usize,
        with_value: bool,
    ) -> Result<bool, CliError> {
        let names: Vec<&'static str> = fields.iter().map(|f| f.0).collect();
        let Some(name) = args.one_of_exact(&names) else { return Ok(false) };
        let Some((name, at, len, last)) = fields.iter().find(|f| f.0 == name) else {
            return Ok(false);
        };
        self.take(args, Place { name, at: base + at, len: *len, last: *last }, with_value)?;
        Ok(true)
    }

    fn take(
        &mut self,
        args: &mut Args<'_>,
        place: Place,
        with_value: bool,
    ) -> Result<(), CliError> {
        let Place { name, at, len, last } = place;
        self.draft.mask[at..at + len].fill(0xff);
        self.draft.mask[at + len - 1] = last;
        if with_value {
            let expected = match len {
                4 => "an IPv4 address",
                6 => "a MAC address",
                16 => "an IPv6 address",
                _ => "a number that fits the field",
            };
            let bytes = args.with(name, expected, |word| value(word, len, last))?;
            self.draft.value[at..at + len].copy_from_slice(&bytes);
        }
        self.places.push(place);
        Ok(())
    }

    /// Asks for fixed bytes.
    fn fixed(&mut self, at: usize, bytes: &[u8], mask: u8) {
        self.draft.mask[at..at + bytes.len()].fill(mask);
        self.draft.value[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Reads a field's value of `len` bytes.
fn value(word: &str, len: usize, last: u8) -> Option<Vec<u8>> {
    match len {
        4 => Some(word.parse::<std::net::Ipv4Addr>().ok()?.octets().to_vec()),
        16 => Some(word.parse::<std::net::Ipv6Addr>().ok()?.octets().to_vec()),
        6 => {
            let bytes: Option<Vec<u8>> = word
                .split(':')
                .map(|b| {
                    (b.len() <= 2 && !b.starts_with('+')).then(|| u8::from_str_radix(b, 16).ok())?
                })
                .collect();
            bytes.filter(|b| b.len() == 6)
        }
        _ => {
            let number = match word.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => match word {
                    "icmp" => 1,
                    "tcp" => 6,
                    "udp" => 17,
                    _ => word.parse().ok()?,
                },
            };
            let number = if last == 0xf0 { number.checked_mul(16)? } else { number };
            let fits = number >> (8 * len) == 0;
            fits.then(|| number.to_be_bytes()[8 - len..].to_vec())
        }
    }
}

fn hex(word: &str) -> Option<Vec<u8>> {
    let fits = word.bytes().all(|b| b.is_ascii_hexdigit())
        && word.len().is_multiple_of(2)
        && (2..=2 * MAX_BYTES).contains(&word.len());
    let byte = |i: usize| u8::from_str_radix(word.get(i..i + 2)?, 16).ok();
    fits.then(|| (0..word.len()).step_by(2).map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_graph::filter::BytePattern;

    fn read(text: &str) -> Result<BytePattern, String> {
        let mut args = Args::parse(text).unwrap();
        let (mask, value) = pattern(&mut args).map_err(|e| e.to_string())?;
        args.end().map_err(|e| e.to_string())?;
        Ok(BytePattern::new(&mask, &value))
    }

    /// A UDP packet 10.0.0.1:1000 -> 10.0.0.2:53, with this number of VLAN tags.
    fn udp(tags: usize) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        for _ in 0..tags {
            frame.extend([0x81, 0, 0x20, 7]);
        }
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x03, 0xe8, 0, 53, 0, 8, 0, 0]);
        frame
    }

    #[test]
    fn patterns_in_words() {
        let meets = |text: &str, tags| read(text).unwrap().matches(&udp(tags));
        assert!(meets("mask l3 ip4 src match l3 ip4 src 10.0.0.1", 0));
        assert!(!meets("mask l3 ip4 src match l3 ip4 src 10.0.0.9", 0));
        assert!(!meets("mask l3 ip4 src match l3 ip4 src 10.0.0.1", 1));
        assert!(meets("mask l2 tag1 l3 ip4 dst match l2 tag1 7 l3 ip4 dst 10.0.0.2", 1));
        assert!(!meets("mask l2 tag1 match l2 tag1 8", 1));
        assert!(meets("mask l2 src dst match l2 src 02:00:00:00:00:01 dst 2:0:0:0:0:2", 0));
        assert!(meets("mask l3 ip4 proto l4 dst match l3 ip4 proto 17 l4 dst 53", 0));
        assert!(meets("mask l4 udp src_port dst_port match l4 udp src_port 1000 dst_port 0x35", 0));
        assert!(!meets("mask l4 dst_port match l4 dst_port 54", 0));
        assert!(meets("mask l3 ip4 version match l3 ip4 version 4", 0));
        assert!(!meets("mask l3 ip6 proto match l3 ip6 proto 17", 0));
        assert!(meets("mask hex 0000000000ff match hex 000000000002", 0));
        // Ports of a packet with options are elsewhere.
        let mut options = udp(0);
        options[14] = 0x46;
        assert!(!read("mask l4 dst match l4 dst 53").unwrap().matches(&options));
    }

    #[test]
    fn a_mask_finds_its_patterns() {
        for fields in ["l3 ip4 src", "l3 ip4 src dst", "l4 dst", "l2 tag1 l3 ip4 src"] {
            let text = format!("mask {fields}");
            let alone = mask(&mut Args::parse(&text).unwrap()).unwrap();
            let values = fields
                .replace("src", "src 10.0.0.1")
                .replace("ip4 src 10.0.0.1 dst", "ip4 src 10.0.0.1 dst 10.0.0.2")
                .replace("l4 dst", "l4 dst 53")
                .replace("tag1", "tag1 7");
            let text = format!("mask {fields} match {values}");
            let (mask, value) = pattern(&mut Args::parse(&text).unwrap()).unwrap();
            assert_eq!(alone, mask, "{fields}");
            let text = format!("match {values}");
            let of_session = super::values(&mut Args::parse(&text).unwrap()).unwrap();
            assert_eq!(of_session, value, "{fields}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("l3 ip4 src", "`mask' and the fields"),
            ("mask", "fields: `l2'"),
            ("mask l3 src", "`ip4' or `ip6'"),
            ("mask l3 ip4 src", "`match' and the values"),
            ("mask l3 ip4 src match l3 ip4 dst 10.0.0.1", "`dst', which the mask does not name"),
            ("mask l3 ip4 src dst match l3 ip4 src 10.0.0.1", "`dst', which the mask names"),
            ("mask l3 ip4 src match l3 ip4 src x", "an IPv4 address"),
            ("mask l4 dst match l4 dst 65536", "a number that fits"),
            ("mask hex 0 match hex 0", "hexadecimal digits"),
            ("mask hex +f match hex +f", "hexadecimal digits"),
            ("mask l2 src match l2 src +2:0:0:0:0:1", "a MAC address"),
            ("mask l2 tag1 match l2 tag1 4096", "a VLAN id, 0 to 4095"),
            ("mask hex ff match l2 src 02:00:00:00:00:01", "which the mask does not name"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_words_panic(
            words in "((mask|match|hex|l2|l3|l4|ip4|ip6|src|dst|tag1|tag2|proto|00|9|ff) ){0,14}"
        ) {
            let _ = read(&words);
        }
    }
}
