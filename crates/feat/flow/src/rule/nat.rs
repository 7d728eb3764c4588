//! The `nat` argument of `ct`: the translation of new connections, and of packets of translated
//! ones.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thalweg_conntrack::Tuple;
use thalweg_tables::hash::mix64;
use thalweg_wire::ip::{has_ports, protocol};

use super::text::{RuleError, split};

/// Translation in a `ct`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nat {
    /// Translation of new connections; without, only connections that have one already are
    /// translated.
    pub range: Option<Range>,
}

/// A range of addresses and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// True if it translates the source, false for the destination.
    pub source: bool,
    /// First and last address, of one family; 0.0.0.0 and :: keep the original.
    pub addresses: (IpAddr, IpAddr),
    /// First and last port.
    pub ports: Option<(u16, u16)>,
    /// Start of the search for a free port.
    pub order: Order,
    /// A source address is mapped to the same address each time, across restarts too.
    pub persistent: bool,
}

/// Start of the search for a free port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Default: [`Order::Hash`].
    #[default]
    Unsaid,
    /// Port by the hash of the tuple.
    Hash,
    /// Port at random.
    Random,
}

/// Numbers of ports tried in sequence; each sequence starts at another place.
const ATTEMPTS: [u32; 5] = [128, 64, 32, 16, 8];
/// Maximum number of addresses tried.
const ADDRESSES: u32 = 8;

impl Nat {
    /// Parses the text after `nat`.
    pub(crate) fn read(word: &str, rest: &str) -> Result<Nat, RuleError> {
        if rest.is_empty() {
            return Ok(Nat::default());
        }
        let inner = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')'));
        let form = || RuleError::new(word, "nat, nat(src=RANGE) or nat(dst=RANGE) expected");
        let (mut range, mut flags): (Option<Range>, Vec<&str>) = (None, Vec::new());
        for part in split(inner.ok_or_else(form)?)? {
            match part.split_once('=') {
                Some((side @ ("src" | "dst"), text)) if range.is_none() => {
                    range = Some(Range::read(part, side == "src", text)?);
                }
                None => flags.push(part),
                _ => return Err(form()),
            }
        }
        for flag in flags {
            let Some(range) = &mut range else { return Err(form()) };
            match flag {
                "random" if range.order == Order::Unsaid => range.order = Order::Random,
                "hash" if range.order == Order::Unsaid => range.order = Order::Hash,
                "persistent" => range.persistent = true,
                "random" | "hash" => {
                    return Err(RuleError::new(flag, "either random or hash expected"));
                }
                _ => return Err(RuleError::new(flag, "random, hash or persistent expected")),
            }
        }
        Ok(Nat { range })
    }
}

impl Range {
    fn read(word: &str, source: bool, text: &str) -> Result<Range, RuleError> {
        let wrong = || {
            let form = "ADDRESS, FIRST-LAST, either with :PORT or :FIRST-LAST, expected; with ports, \
                        IPv6 addresses in brackets";
            RuleError::new(word, form)
        };
        let (addresses, ports) = addresses(text).ok_or_else(wrong)?;
        let ports = match ports {
            Some(text) => Some(pair::<u16>(text).filter(|p| p.0 > 0).ok_or_else(wrong)?),
            None => None,
        };
        Ok(Range { source, addresses, ports, order: Order::default(), persistent: false })
    }

    /// Returns whether its addresses are of IPv6.
    pub(crate) fn is_ipv6(&self) -> bool {
        self.addresses.0.is_ipv6()
    }

    /// Chooses a reply tuple for which `is_free` holds; `None` if none of those tried is free.
    /// `random` must differ from call to call.
    pub fn choose(
        &self,
        original: &Tuple,
        salt: u64,
        random: u64,
        mut is_free: impl FnMut(&Tuple) -> bool,
    ) -> Option<Tuple> {
        let mirror = original.reversed();
        let (src, dst) = (bits(original.src), bits(original.dst));
        if original.src.is_ipv6() != self.is_ipv6() {
            return None;
        }
        let (first, last) = (bits(self.addresses.0), bits(self.addresses.1));
        // 2¹²⁸ addresses are one more than fits, but `::` is not chosen from.
        let count = (last - first).saturating_add(1);
        let ends = match self.is_ipv6() {
            false => (src << 32 | dst) as u64,
            true => {
                let halves = [src >> 64, src, dst >> 64, dst].map(|half| half as u64);
                halves.into_iter().fold(0, |sum, half| mix64(sum ^ half))
            }
        };
        let ports = u64::from(original.sport) << 16 | u64::from(original.dport);
        let tuple = mix64(mix64(ends ^ salt) ^ ports);
        let key = match (self.persistent, self.is_ipv6()) {
            (false, _) => tuple,
            (true, false) => mix64(src as u64),
            (true, true) => mix64(mix64((src >> 64) as u64) ^ src as u64),
        };
        (0..count.min(ADDRESSES.into())).find_map(|n| {
            let mut reply = mirror;
            if first != 0 {
                let address = first + u128::from(key.wrapping_add(n as u64)) % count;
                let place = if self.source { &mut reply.dst } else { &mut reply.src };
                *place = match self.is_ipv6() {
                    false => Ipv4Addr::from_bits(address as u32).into(),
                    true => Ipv6Addr::from_bits(address).into(),
                };
            }
            let from = if self.order == Order::Random { random } else { tuple };
            self.choose_port(reply, from, random, &mut is_free)
        })
    }

    fn choose_port(
        &self,
        reply: Tuple,
        from: u64,
        random: u64,
        is_free: &mut impl FnMut(&Tuple) -> bool,
    ) -> Option<Tuple> {
        let icmp = matches!(reply.protocol, protocol::ICMP | protocol::ICMPV6);
        if !has_ports(reply.protocol) && !icmp {
            return is_free(&reply).then_some(reply);
        }
        if self.ports.is_none() && is_free(&reply) {
            return Some(reply);
        }
        let port_of_destination = |port| Tuple { sport: port, ..reply };
        let port_of_source = |port| Tuple { dport: port, ..reply };
        if icmp {
            return search((0, u16::MAX), from, random, port_of_destination, is_free);
        }
        if let Some(ports) = self.ports {
            if self.source {
                return search(ports, from, random, port_of_source, is_free);
            }
            let found = search(ports, from, random, port_of_destination, is_free);
            // If no destination port is free, another source port distinguishes the connections.
            return found.or_else(|| {
                let first = port_of_destination(ports.0);
                let put = |port| Tuple { dport: port, ..first };
                search(class(reply.dport), from, random, put, is_free)
            });
        }
        search(class(reply.dport), from, random, port_of_source, is_free)
    }
}

/// The bits of an address.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Parses FIRST-LAST, or one for both.
fn pair<T: std::str::FromStr + Copy + PartialOrd>(text: &str) -> Option<(T, T)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

/// Parses addresses, and returns the text of the ports behind them. Addresses of IPv6 are in
/// brackets, each or both together, if ports follow.
fn addresses(text: &str) -> Option<((IpAddr, IpAddr), Option<&str>)> {
    let Some(inner) = text.strip_prefix('[') else {
        // IPv6 addresses contain colons themselves.
        if let Some(both) = pair::<Ipv6Addr>(text) {
            return Some(((both.0.into(), both.1.into()), None));
        }
        let (text, ports) = match text.split_once(':') {
            Some((text, ports)) => (text, Some(ports)),
            None => (text, None),
        };
        let both = pair::<Ipv4Addr>(text)?;
        return Some(((both.0.into(), both.1.into()), ports));
    };
    let (text, mut rest) = inner.split_once(']')?;
    let (mut first, mut last) = pair::<Ipv6Addr>(text)?;
    if let Some(second) = rest.strip_prefix("-[") {
        let (text, behind) = second.split_once(']')?;
        (last, rest) = (text.parse().ok()?, behind);
        first = (first <= last).then_some(first)?;
    }
    let ports = match rest {
        "" => None,
        rest => Some(rest.strip_prefix(':')?),
    };
    Some(((first.into(), last.into()), ports))
}

/// Tries the ports of a range from `from` on, until the resulting reply tuple is free.
fn search(
    (low, high): (u16, u16),
    from: u64,
    random: u64,
    put: impl Fn(u16) -> Tuple,
    is_free: &mut impl FnMut(&Tuple) -> bool,
) -> Option<Tuple> {
    let count = u64::from(high - low) + 1;
    let mut start = from;
    for attempts in ATTEMPTS {
        for n in 0..u64::from(attempts).min(count) {
            let reply = put(low + (start.wrapping_add(n) % count) as u16);
            if is_free(&reply) {
                return Some(reply);
            }
        }
        start = mix64(start ^ random);
    }
    None
}

/// The ports that a port may be mapped to: privileged ones stay privileged.
fn class(port: u16) -> (u16, u16) {
    match port {
        0..512 => (1, 511),
        512..1024 => (600, 1023),
        _ => (1024, u16::MAX),
    }
}

impl fmt::Display for Nat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(range) = &self.range else { return f.write_str("nat") };
        fn both<T: fmt::Display + PartialEq>(
            f: &mut fmt::Formatter<'_>,
            (first, last): &(T, T),
        ) -> fmt::Result {
            write!(f, "{first}")?;
            if first == last { Ok(()) } else { write!(f, "-{last}") }
        }
        write!(f, "nat({}=", if range.source { "src" } else { "dst" })?;
        match (range.addresses, range.ports) {
            ((IpAddr::V6(first), IpAddr::V6(last)), Some(_)) => {
                write!(f, "[{first}]")?;
                if first != last {
                    write!(f, "-[{last}]")?;
                }
            }
            (addresses, _) => both(f, &addresses)?,
        }
        if let Some(ports) = &range.ports {
            f.write_str(":")?;
            both(f, ports)?;
        }
        if range.persistent {
            f.write_str(",persistent")?;
        }
        f.write_str(match range.order {
            Order::Unsaid => "",
            Order::Hash => ",hash",
            Order::Random => ",random",
        })?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(text: &str) -> Range {
        Nat::read("nat", &format!("({text})")).unwrap().range.unwrap()
    }

    fn tuple(protocol: u8) -> Tuple {
        let (src, dst) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let dport = if protocol == 1 { 8 } else { 80 };
        Tuple { src, dst, protocol, sport: 5000, dport }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in [
            "(src=10.0.0.1)",
            "(dst=10.0.0.1-10.0.0.9:80)",
            "(src=10.0.0.1-10.0.0.9:1000-2000,persistent,random)",
            "(src=0.0.0.0,hash)",
            "(src=fd00::1)",
            "(dst=fd00::1-fd00::9,persistent)",
            "(dst=[fd00::1]:80)",
            "(src=[fd00::1]-[fd00::9]:1000-2000,random)",
            "(src=::)",
            "",
        ] {
            assert_eq!(Nat::read("nat", text).unwrap().to_string(), format!("nat{text}"));
        }
        for text in [
            "(",
            "()x",
            "(random)",
            "(src=10.0.0.9-10.0.0.1)",
            "(src=[::1]5)",
            "(src=[::1]:0)",
            "(src=[::1]-[::]:5)",
            "(src=[::1]-:5)",
            "(src=[10.0.0.1]:5)",
            "(src=fd00::9-fd00::1)",
            "(src=10.0.0.1-fd00::1)",
            "(src=10.0.0.1:0)",
            "(src=10.0.0.1:9-1)",
            "(src=10.0.0.1,dst=10.0.0.1)",
            "(src=10.0.0.1,hash,random)",
            "(src=10.0.0.1,never)",
        ] {
            assert!(Nat::read("nat", text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_can_stay_stays() {
        let free = |_: &Tuple| true;
        let t = tuple(6);
        let reply = range("src=192.0.2.9").choose(&t, 1, 2, free).unwrap();
        assert_eq!(reply, Tuple { dst: [192, 0, 2, 9].into(), ..t.reversed() });
        let reply = range("src=0.0.0.0").choose(&t, 1, 2, free).unwrap();
        assert_eq!(reply, t.reversed());
        let reply = range("dst=10.9.9.9:8080").choose(&t, 1, 2, free).unwrap();
        assert_eq!((reply.src, reply.sport), ([10, 9, 9, 9].into(), 8080));
        assert_eq!((reply.dst, reply.dport), (t.src, t.sport));
        // Taken: the identifier of a ping, then the source port towards another destination.
        let busy = |reply: &Tuple| reply.sport != 5000;
        let ping = range("src=192.0.2.9").choose(&tuple(1), 1, 2, busy).unwrap();
        assert!(ping.sport != 5000 && ping.dport == 0);
        let busy = |reply: &Tuple| reply.dport != 5000;
        let reply = range("dst=10.9.9.9").choose(&t, 1, 2, busy).unwrap();
        assert!(reply.dport > 1023 && reply.sport == 80);
        let busy = |reply: &Tuple| reply.dport != 5000;
        let reply = range("dst=10.9.9.9:8080").choose(&t, 1, 2, busy).unwrap();
        assert!(reply.dport > 1023 && reply.dport != 5000 && reply.sport == 8080);
        assert_eq!(range("src=192.0.2.9:7").choose(&t, 1, 2, |_| false), None);
        assert_eq!(range("src=192.0.2.9").choose(&tuple(47), 1, 2, |_| false), None);
    }

    fn tuple6(protocol: u8) -> Tuple {
        let (src, dst) = ("2001:db8::1".parse().unwrap(), "2001:db8:9::1".parse().unwrap());
        let dport = if protocol == 58 { 128 } else { 80 };
        Tuple { src, dst, protocol, sport: 5000, dport }
    }

    #[test]
    fn ipv6_is_chosen_in_the_same_way() {
        let free = |_: &Tuple| true;
        let t = tuple6(6);
        let outside: IpAddr = "fd00::9".parse().unwrap();
        let reply = range("src=fd00::9").choose(&t, 1, 2, free).unwrap();
        assert_eq!(reply, Tuple { dst: outside, ..t.reversed() });
        assert_eq!(range("src=::").choose(&t, 1, 2, free), Some(t.reversed()));
        let reply = range("dst=[fd00::9]:8080").choose(&t, 1, 2, free).unwrap();
        assert_eq!((reply.src, reply.sport, reply.dst), (outside, 8080, t.src));
        let busy = |reply: &Tuple| reply.sport != 5000;
        let ping = range("src=fd00::9").choose(&tuple6(58), 1, 2, busy).unwrap();
        assert!(ping.sport != 5000 && ping.dport == 129);
        // All addresses but one, and another if the first has no free port.
        let all = range("src=::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
        let one = all.choose(&t, 1, 2, free).unwrap().dst;
        let other = all.choose(&t, 1, 2, |reply: &Tuple| reply.dst != one).unwrap().dst;
        assert_eq!(bits(other), bits(one) + 1);
        let persistent = range("src=fd00::1-fd00::ff,persistent");
        let far = Tuple { dst: outside, dport: 443, ..t };
        let of = |t: &Tuple, salt| persistent.choose(t, salt, salt, free).unwrap().dst;
        assert_eq!(of(&t, 1), of(&far, 2));
        // Ranges are of one family.
        assert_eq!(range("src=fd00::9").choose(&tuple(6), 1, 2, free), None);
        assert_eq!(range("src=10.0.0.9").choose(&t, 1, 2, free), None);
    }

    proptest! {
        #[test]
        fn choices_are_within_the_range(
            addresses in 1u32..20, ports in 1u16..50, salt: u64, random: u64,
            protocol in prop_oneof![Just(6u8), Just(17)], source: bool, seed: u64,
            order in 0usize..3, persistent: bool,
        ) {
            let last = 0xc000_0200 + addresses - 1;
            let range = Range {
                source,
                addresses: (
                    Ipv4Addr::from_bits(0xc000_0200).into(),
                    Ipv4Addr::from_bits(last).into(),
                ),
                ports: Some((1000, 1000 + ports - 1)),
                order: [Order::Unsaid, Order::Hash, Order::Random][order],
                persistent,
            };
            let mixed = |t: &Tuple| mix64(seed ^ u64::from(t.dport) ^ u64::from(t.sport));
            let is_free = |t: &Tuple| mixed(t) & 1 == 0;
            if let Some(reply) = range.choose(&tuple(protocol), salt, random, is_free) {
                prop_assert!(is_free(&reply));
                let (address, port) =
                    if source { (reply.dst, reply.dport) } else { (reply.src, reply.sport) };
                let IpAddr::V4(address) = address else { panic!() };
                prop_assert!((0xc000_0200..=last).contains(&address.to_bits()));
                prop_assert!((1000..1000 + ports).contains(&port));
            }
        }
    }
}
