//! Packets of streams that hosts would take for those of connections.

use crate::stream::{self, Layer, Senders, Side, Stream, Sum, Values};
use crate::talk::{self, Pool, Protocol, Talk};

/// A stream and connections that hosts behind the same port cannot tell apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixed<'a> {
    /// The stream: packets of it have no tag.
    pub stream: &'a Stream,
    /// The kind of connections.
    pub talk: &'a Talk,
    /// The servers of these.
    pub servers: Pool,
    /// Hosts at which such packets arrive: at the clients, or at the servers.
    pub at_clients: bool,
}

/// Finds a stream whose packets have no tag and may have the addresses, protocol and ports of
/// connections between the same ports. Clients are behind the first port.
pub fn mixed<'a>(
    streams: &'a stream::Plan,
    plans: impl IntoIterator<Item = &'a talk::Plan>,
) -> Option<Mixed<'a>> {
    let mut ends = Vec::new();
    for side in [Side::A, Side::B] {
        // Faults of a plan are found elsewhere.
        let Ok(senders) = Senders::new(streams, side, 0, 0) else { continue };
        for (number, stream) in streams.streams.iter().enumerate() {
            if senders.sends(number) && !senders.tagged(number) {
                ends.extend(Ends::of(stream, side));
            }
        }
    }
    plans.into_iter().find_map(|plan| ends.iter().find_map(|ends| ends.meet(plan)))
}

/// Source and destination of a stream's packets, as a host hears them.
struct Ends<'a> {
    stream: &'a Stream,
    side: Side,
    is_v4: bool,
    protocol: Protocol,
    /// Addresses and ports.
    source: (&'a Values, &'a Values),
    destination: (&'a Values, &'a Values),
}

impl<'a> Ends<'a> {
    /// None of packets that no host reads.
    fn of(stream: &'a Stream, side: Side) -> Option<Ends<'a>> {
        let layers = match &stream.layers[..] {
            [Layer::Ethernet { kind: None, .. }, rest @ ..] => rest,
            all => all,
        };
        let [ip, transport, ..] = layers else { return None };
        let (is_v4, addresses, number) = match ip {
            Layer::Ipv4 { sum: Sum::Wrong, .. } => return None,
            Layer::Ipv4 { source, destination, protocol, .. } => {
                (true, [source, destination], protocol)
            }
            Layer::Ipv6 { source, destination, next, .. } => (false, [source, destination], next),
            _ => return None,
        };
        let (protocol, own, ports) = match transport {
            Layer::Udp { sum: Sum::Wrong, .. } | Layer::Tcp { sum: Sum::Wrong, .. } => return None,
            Layer::Udp { source, destination, .. } => (Protocol::Udp, 17, [source, destination]),
            Layer::Tcp { source, destination, .. } => (Protocol::Tcp, 6, [source, destination]),
            _ => return None,
        };
        if number.as_ref().is_some_and(|field| !meets(&field.values, own, own)) {
            return None;
        }
        // Addresses are exchanged on the way back, and ports are not.
        let [source, destination] = match side {
            Side::A => addresses,
            Side::B => [addresses[1], addresses[0]],
        };
        Some(Ends {
            stream,
            side,
            is_v4,
            protocol,
            source: (&source.values, &ports[0].values),
            destination: (&destination.values, &ports[1].values),
        })
    }

    /// The kind of connections that a packet may be taken for.
    fn meet(&self, plan: &'a talk::Plan) -> Option<Mixed<'a>> {
        let at_clients = self.side == Side::B;
        let (server, client) = match at_clients {
            true => (self.source, self.destination),
            false => (self.destination, self.source),
        };
        let (first, count) = (u128::from(plan.ports.0), u128::from(plan.ports.1));
        // Servers answer all clients: a device may translate the clients' addresses.
        let is_client = !at_clients
            || within(client.0, &plan.clients) && meets(client.1, first, first + count - 1);
        let here = self.is_v4 == plan.servers.first.is_ipv4()
            && within(server.0, &plan.servers)
            && is_client;
        let same = |talk: &&Talk| {
            talk.protocol == self.protocol && meets(server.1, talk.port.into(), talk.port.into())
        };
        let talk = plan.talks.iter().find(same).filter(|_| here)?;
        Some(Mixed { stream: self.stream, talk, servers: plan.servers, at_clients })
    }
}

/// True if one of the addresses is in a pool.
fn within(values: &Values, pool: &Pool) -> bool {
    let first = match pool.first {
        std::net::IpAddr::V4(v4) => v4.to_bits().into(),
        std::net::IpAddr::V6(v6) => v6.to_bits(),
    };
    meets(values, first, first.saturating_add(u128::from(pool.count) - 1))
}

/// True if a value lies between two others.
fn meets(values: &Values, low: u128, high: u128) -> bool {
    match values {
        Values::One(one) => (low..=high).contains(one),
        Values::List(list) => list.iter().any(|one| (low..=high).contains(one)),
        Values::Random { least, most, .. } => *least <= high && low <= *most,
        // The value next to the bound that counting comes to first.
        Values::Count { first, last, step, .. } if first <= last => {
            let steps = low.saturating_sub(*first).div_ceil((*step).max(1));
            let next = first.saturating_add(steps.saturating_mul(*step));
            next <= high.min(*last)
        }
        Values::Count { first, last, step, .. } => {
            let steps = first.saturating_sub(high).div_ceil((*step).max(1));
            let next = steps.checked_mul(*step).and_then(|way| first.checked_sub(way));
            next.is_some_and(|next| next >= low.max(*last))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Direction, Field, Size};
    use crate::talk::Exchange;

    /// Connections of 16.0.0.0-16.0.0.9 and ports 1024-65535 to 48.0.0.1, port 53.
    fn talks(protocol: Protocol) -> talk::Plan {
        let mut plan = talk::Plan::of(Talk::exchange("d", protocol, 53, &Exchange::default()));
        plan.clients.count = 10;
        plan.servers = Pool { first: "48.0.0.1".parse().unwrap(), count: 1 };
        plan
    }

    /// A stream without tags between the same hosts.
    fn bare(direction: Direction, ports: (Field, Field)) -> Stream {
        let addresses = (Field::count(0x1000_0000u32, 0x1000_0009u32), Field::one(0x3000_0001u32));
        Stream { direction, tagged: false, ..Stream::udp("s", addresses.0, addresses.1, ports) }
    }

    fn found(stream: &Stream, talks: &talk::Plan) -> Option<bool> {
        let plan = stream::Plan::of(vec![stream.clone()]);
        mixed(&plan, [talks]).map(|mixed| {
            assert_eq!((&mixed.stream.name[..], &mixed.talk.name[..]), ("s", "d"));
            mixed.at_clients
        })
    }

    #[test]
    fn packets_without_tags_meet_connections() {
        let (udp, tcp) = (talks(Protocol::Udp), talks(Protocol::Tcp));
        let ports = (Field::count(1024u16, 65_535u16), Field::one(53u8));
        let request = bare(Direction::AToB, ports);
        assert_eq!(found(&request, &udp), Some(false));
        assert_eq!(found(&request, &tcp), None);
        assert_eq!(found(&Stream { tagged: true, ..request.clone() }, &udp), None);
        // Smallest packets of TCP have no room for a tag.
        let mut small = Stream { tagged: true, ..request.clone() };
        small.layers[1] = Layer::tcp(Field::one(5000u16), Field::one(53u8));
        assert_eq!(found(&small, &tcp), Some(false));
        assert_eq!(found(&Stream { size: Size::One(100), ..small }, &tcp), None);
        let wrong = |sum| {
            let mut stream = request.clone();
            stream.layers[1] =
                Layer::Udp { source: Field::one(1u8), destination: Field::one(53u8), sum };
            stream
        };
        assert_eq!(found(&wrong(Sum::Zero), &udp), Some(false));
        assert_eq!(found(&wrong(Sum::Wrong), &udp), None);
        let mut behind = request.clone();
        behind.layers.insert(
            0,
            Layer::Vlan { id: Field::one(1u8), priority: Field::default(), service: false },
        );
        assert_eq!(found(&behind, &udp), None);
        // Others' servers, and other servers' addresses.
        let other = Pool { first: "48.0.0.2".parse().unwrap(), count: 1 };
        assert_eq!(found(&request, &talk::Plan { servers: other, ..udp }), None);
    }

    #[test]
    fn responses_meet_connections_at_the_clients() {
        let udp = talks(Protocol::Udp);
        // Ports are not exchanged on the way back.
        let back = |source: u16, destination: u16| {
            bare(Direction::BToA, (Field::one(source), Field::one(destination)))
        };
        assert_eq!(found(&back(53, 5000), &udp), Some(true));
        assert_eq!(found(&back(5000, 53), &udp), None);
        assert_eq!(found(&back(53, 1023), &udp), None);
        let few = Pool { first: "17.0.0.0".parse().unwrap(), count: 10 };
        assert_eq!(found(&back(53, 5000), &talk::Plan { clients: few, ..udp.clone() }), None);
        let both = bare(Direction::Both, (Field::one(53u8), Field::one(5000u16)));
        assert_eq!(found(&both, &udp), Some(true));
    }

    #[test]
    fn values_meet_ranges() {
        let count = |first, last, step| Values::Count { first, last, step, start: first };
        for (values, low, high, meet) in [
            (Values::One(5), 5, 5, true),
            (Values::One(5), 6, 9, false),
            (Values::List(vec![1, 9]), 2, 8, false),
            (Values::List(vec![1, 9]), 2, 9, true),
            (count(0, 10, 4), 5, 7, false),
            (count(0, 10, 4), 5, 8, true),
            (count(0, 10, 4), 9, 12, false),
            (count(10, 0, 4), 3, 5, false),
            (count(10, 0, 4), 3, 6, true),
            (count(10, 0, 4), 0, 1, false),
            (count(3, u128::MAX, u128::MAX), 4, 9, false),
        ] {
            assert_eq!(meets(&values, low, high), meet, "{values:?} {low}-{high}");
        }
        let drawn = Values::Random { least: 3, most: 6, seed: 0, distinct: None };
        assert!(meets(&drawn, 6, 7) && meets(&drawn, 0, 3) && !meets(&drawn, 7, 8));
    }
}
