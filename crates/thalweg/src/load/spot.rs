//! Where packets were dropped, and on which side.

use std::collections::BTreeMap;
use std::fmt;

/// Who dropped packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// The device under test.
    Device,
    /// What joins it to the tester: the kernel's queues.
    Link,
    /// The tester itself.
    Tester,
}

impl Side {
    /// Its name in reports.
    pub(super) fn word(self) -> &'static str {
        match self {
            Side::Device => "device",
            Side::Link => "link",
            Side::Tester => "tester",
        }
    }
}

/// The way that a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// From clients to servers, from the first port to the second.
    There,
    /// The other way round.
    Back,
}

impl Way {
    /// That of a packet which the tester sends by this interface, of two.
    pub(super) fn sent_by(interface: usize) -> Way {
        if interface == 0 { Way::There } else { Way::Back }
    }

    /// That of a packet which the tester receives by this interface, of two.
    pub(super) fn received_by(interface: usize) -> Way {
        if interface == 0 { Way::Back } else { Way::There }
    }
}

/// A place where packets are dropped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) side: Side,
    /// The node or interface.
    pub(super) node: String,
    pub(super) reason: String,
    /// The way of all packets that come by there, if it is one.
    pub(super) way: Option<Way>,
    /// Whether the first packets that are dropped there are noted.
    pub(super) watched: bool,
}

impl Spot {
    pub(super) fn new(side: Side, node: &str, reason: &str) -> Spot {
        let (node, reason) = (node.to_owned(), reason.to_owned());
        Spot { side, node, reason, way: None, watched: false }
    }

    /// The same, if all packets there go one way.
    pub(super) fn going(self, way: Way) -> Spot {
        Spot { way: Some(way), ..self }
    }

    /// The same, if the first packets dropped there are noted.
    pub(super) fn watched(self) -> Spot {
        Spot { watched: true, ..self }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, {}", self.side.word(), self.node, self.reason)
    }
}

/// Packets dropped, by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Drops(BTreeMap<Spot, u64>);

impl Drops {
    /// Adds packets to a place.
    pub(super) fn add(&mut self, spot: Spot, packets: u64) {
        *self.0.entry(spot).or_default() += packets;
    }

    /// Returns what was dropped since an earlier reading.
    pub(super) fn since(&self, before: &Drops) -> Drops {
        let was = |spot: &Spot| before.0.get(spot).copied().unwrap_or_default();
        let new =
            self.0.iter().map(|(spot, count)| (spot.clone(), count.saturating_sub(was(spot))));
        Drops(new.filter(|(_, count)| *count > 0).collect())
    }

    /// Returns the place with most.
    pub(super) fn most(&self) -> Option<(&Spot, u64)> {
        self.0.iter().map(|(spot, count)| (spot, *count)).max_by_key(|(_, count)| *count)
    }

    /// Packets dropped by one side.
    pub(super) fn of(&self, side: Side) -> u64 {
        self.iter().filter(|(spot, _)| spot.side == side).map(|(_, count)| count).sum()
    }

    /// All places, most packets first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Spot, u64)> {
        let mut all: Vec<_> = self.0.iter().map(|(spot, count)| (spot, *count)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_between_two_readings_is_named() {
        let mut before = Drops::default();
        before.add(Spot::new(Side::Device, "a", "x"), 5);
        let mut after = before.clone();
        after.add(Spot::new(Side::Device, "a", "x"), 2);
        after.add(Spot::new(Side::Link, "b", "y"), 3);
        let new = after.since(&before);
        assert_eq!((new.of(Side::Device), new.of(Side::Link), new.of(Side::Tester)), (2, 3, 0));
        let (spot, packets) = new.most().unwrap();
        assert_eq!((spot.to_string(), packets), ("link: b, y".to_owned(), 3));
        // A counter that was cleared meanwhile says nothing.
        assert_eq!(before.since(&after).most(), None);
    }
}
