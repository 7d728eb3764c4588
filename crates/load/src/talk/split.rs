//! Clients that several workers share out among them.
//!
//! Each worker has a range of the clients' addresses, or of their ports if addresses are few.
//! Addresses and ports of a packet thus name its worker on both sides, without a look-up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::pool::Range;
use super::{Incoming, Opening, Plan, Pool, Protocol};
use crate::part::{self, Part};

/// Minimum number of addresses for each part if these are shared out: with fewer, some parts would
/// have much more than others.
const ADDRESSES: u32 = 8;

/// Shares of a plan's conversations.
#[derive(Clone, Debug)]
pub struct Split {
    parts: u32,
    /// True if each part has some of the addresses; otherwise some of the ports.
    by_address: bool,
    is_v4: bool,
    clients: Range,
    ports: (u16, u16),
    servers: Range,
    kinds: Vec<(Protocol, u16)>,
}

/// A part's share of all that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    begin: u64,
    end: u64,
    all: u64,
}

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share { begin: 0, end: 1, all: 1 };

    /// Its part of a number of things that cannot be divided: the parts of all shares add up.
    pub fn of(self, number: u64) -> u64 {
        let up_to = |end: u64| (u128::from(number) * u128::from(end) / u128::from(self.all)) as u64;
        up_to(self.end) - up_to(self.begin)
    }

    /// Its part of 1.
    pub fn ratio(self) -> f64 {
        (self.end - self.begin) as f64 / self.all as f64
    }

    /// Its share of all openings. If few are held, only some parts hold any, and open them all.
    pub fn of_opening(self, all: Opening) -> Opening {
        let own = match all.hold.map(u64::from) {
            Some(hold @ 1..) => {
                let up_to =
                    |end: u64| (u128::from(hold) * u128::from(end) / u128::from(self.all)) as u64;
                Share { begin: up_to(self.begin), end: up_to(self.end), all: hold }
            }
            _ => self,
        };
        Opening {
            rate: all.rate * own.ratio(),
            hold: all.hold.map(|hold| self.of(hold.into()) as u32),
            total: all.total.map(|total| own.of(total)),
        }
    }
}

impl Plan {
    /// Returns how several workers share out its conversations.
    pub fn split(&self, parts: u32) -> Split {
        let parts = parts.clamp(1, part::MAX_PARTS);
        let (addresses, ports) = (self.clients.count, u32::from(self.ports.1));
        Split {
            parts,
            by_address: addresses >= ADDRESSES * parts || addresses >= ports,
            is_v4: self.clients.first.is_ipv4(),
            clients: self.clients.range(),
            ports: self.ports,
            servers: self.servers.range(),
            kinds: self.talks.iter().map(|talk| (talk.protocol, talk.port)).collect(),
        }
    }
}

impl Split {
    fn elements(&self) -> u32 {
        match self.by_address {
            true => self.clients.count,
            false => self.ports.1.into(),
        }
    }

    /// A part's share.
    pub fn share(&self, part: Part) -> Share {
        let all = u64::from(self.elements().max(1));
        let range = part.range(self.elements().into());
        Share { begin: range.start, end: range.end, all }
    }

    /// A part of the plan; `None` if there are too few addresses and ports for it.
    pub fn plan(&self, plan: &Plan, part: Part) -> Option<Plan> {
        let range = part.range(self.elements().into());
        let count = range.end - range.start;
        if count == 0 {
            return None;
        }
        let mut own = plan.clone();
        if self.by_address {
            let first = self.clients.address(range.start as u32);
            let first = match self.is_v4 {
                true => IpAddr::V4(Ipv4Addr::from_bits(first as u32)),
                false => IpAddr::V6(Ipv6Addr::from_bits(first)),
            };
            own.clients = Pool { first, count: count as u32 };
        } else {
            own.ports = (self.ports.0 + range.start as u16, count as u16);
        }
        let share = self.share(part);
        own.room = ((f64::from(plan.room) * share.ratio()).ceil() as u32).max(1);
        for talk in &mut own.talks {
            talk.limit = talk.limit.map(|limit| share.of(limit.into()) as u32);
        }
        Some(own)
    }

    /// The number of the part that a frame is for, which clients of this plan have received, or
    /// else servers; `None` if it is for neither.
    #[inline]
    pub fn owner(&self, incoming: &Incoming<'_>, to_clients: bool) -> Option<usize> {
        let heard = incoming.heard.as_ref().ok()?;
        let (source, destination) =
            ((heard.source, heard.ports.0), (heard.destination, heard.ports.1));
        let (client, server) =
            if to_clients { (destination, source) } else { (source, destination) };
        if heard.is_v4 != self.is_v4
            || self.servers.number(server.0).is_none()
            || !self.kinds.contains(&(heard.protocol, server.1))
        {
            return None;
        }
        let address = self.clients.number(client.0);
        let port = client.1.checked_sub(self.ports.0).filter(|nth| *nth < self.ports.1);
        let element = match (address, port) {
            (Some(address), Some(_)) if self.by_address => address,
            (Some(_), Some(port)) => port.into(),
            _ if to_clients => return None,
            // A device translates addresses: all packets of a conversation have the same ones.
            _ => {
                let [client, server] = [client, server].map(|(address, port)| {
                    (address >> 64) as u64 ^ (address as u64).rotate_left(16) ^ u64::from(port)
                });
                let mixed = (client ^ server.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let hash = mixed >> 32;
                return Some(((hash * u64::from(self.parts)) >> 32) as usize);
            }
        };
        Some(part::owner(element, self.elements(), self.parts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Clients, Exchange, Servers, Talk, max_mss};
    use super::*;
    use proptest::prelude::*;

    fn plan(clients: (IpAddr, u32), ports: (u16, u16)) -> Plan {
        let talk = Talk::exchange("tcp", Protocol::Tcp, 80, &Exchange::default());
        let servers = match clients.0 {
            IpAddr::V4(_) => "48.0.0.0".parse().unwrap(),
            IpAddr::V6(_) => "2001:db8::30".parse().unwrap(),
        };
        Plan {
            clients: Pool { first: clients.0, count: clients.1 },
            servers: Pool { first: servers, count: 3 },
            ports,
            mss: max_mss(clients.0.is_ipv4()),
            room: 4096,
            ..Plan::of(talk)
        }
    }

    proptest! {
        /// All that a part's clients send, and all that servers answer them, is that part's.
        #[test]
        fn conversations_have_one_owner(
            v4: bool, clients in 1u32..40, first in 1u16..60_000, ports in 1u16..40,
            parts in 1u32..8,
        ) {
            let address = if v4 { "16.0.0.250" } else { "2001:db8::1" }.parse().unwrap();
            let whole = plan((address, clients), (first, ports));
            let split = whole.split(parts);
            let mut opened = 0;
            for part in Part::all(parts) {
                let Some(own) = split.plan(&whole, part) else {
                    prop_assert!(part.number() > 0);
                    prop_assert_eq!(split.share(part).ratio(), 0.0);
                    continue;
                };
                let mut all = Clients::new(&own, 1, 0).unwrap();
                let mut servers = Servers::new(&own, 1, 0).unwrap();
                all.set_opening(Opening { rate: 1e6, hold: None, total: Some(60) }, 0);
                let (mut sent, mut answers) = (Vec::new(), Vec::new());
                all.poll(1000, 100, &mut sent);
                for frame in &sent {
                    let owner = split.owner(&Incoming::read(frame), false);
                    prop_assert_eq!(owner, Some(part.number() as usize));
                    servers.receive(1000, frame, &mut answers);
                }
                prop_assert_eq!(answers.len(), sent.len());
                for frame in &answers {
                    let owner = split.owner(&Incoming::read(frame), true);
                    prop_assert_eq!(owner, Some(part.number() as usize));
                }
                opened += sent.len();
            }
            prop_assert!(opened > 0);
        }

        #[test]
        fn shares_add_up(
            clients in 1u32..200, ports in 1u16..200, parts in 1u32..=64, number: u32, rate in 0.1..1e6,
        ) {
            let whole = plan(("16.0.0.0".parse().unwrap(), clients), (1000, ports));
            let split = whole.split(parts);
            let all = Opening { rate, hold: Some(number), total: Some(u64::MAX) };
            let own: Vec<Opening> =
                Part::all(parts).map(|part| split.share(part).of_opening(all)).collect();
            let sum: f64 = own.iter().map(|own| own.rate).sum();
            prop_assert!((sum / rate - 1.0).abs() < 1e-9);
            prop_assert_eq!(own.iter().filter_map(|own| own.hold).sum::<u32>(), number);
            let total: u128 = own.iter().filter_map(|own| own.total).map(u128::from).sum();
            prop_assert_eq!(total, u128::from(u64::MAX));
            prop_assert_eq!(Share::WHOLE.of_opening(all), all);
        }
    }

    #[test]
    fn limits_are_shared_out_and_translated_clients_have_an_owner() {
        let mut whole = plan(("16.0.0.0".parse().unwrap(), 1), (1024, 100));
        whole.talks[0].limit = Some(5);
        let split = whole.split(2);
        let own: Vec<Plan> = Part::all(2).filter_map(|part| split.plan(&whole, part)).collect();
        assert_eq!(own.iter().map(|own| own.ports).collect::<Vec<_>>(), [(1024, 50), (1074, 50)]);
        let limits: Vec<u32> = own.iter().filter_map(|own| own.talks[0].limit).collect();
        assert_eq!((limits.iter().sum::<u32>(), limits.len()), (5, 2));
        // Clients behind one address that is not theirs.
        let other = plan(("100.64.0.1".parse().unwrap(), 1), (2000, 64));
        let mut clients = Clients::new(&other, 1, 0).unwrap();
        clients.set_opening(Opening { rate: 1e6, hold: None, total: Some(64) }, 0);
        let mut sent = Vec::new();
        clients.poll(1000, 64, &mut sent);
        let owners: Vec<usize> =
            sent.iter().filter_map(|frame| split.owner(&Incoming::read(frame), false)).collect();
        assert_eq!(owners.len(), 64);
        let of_first = owners.iter().filter(|owner| **owner == 0).count();
        assert!((10..=54).contains(&of_first), "{owners:?}");
        assert!(sent.iter().all(|frame| split.owner(&Incoming::read(frame), true).is_none()));
        assert_eq!(split.owner(&Incoming::read(&[0; 60]), false), None);
    }
}
