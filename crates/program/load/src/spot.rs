//! Places at which packets were dropped, and on which side.

use std::collections::BTreeMap;
use std::fmt;

/// Sides that drop packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// The device under test.
    Device,
    /// The kernel's queues, which join it to the tester.
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
    /// Way from clients to servers, from the first port to the second.
    There,
    /// The other way round.
    Back,
}

impl Way {
    /// Way of a packet that the tester sends by this interface, of two.
    pub(super) fn sent_by(interface: usize) -> Way {
        if interface == 0 { Way::There } else { Way::Back }
    }

    /// Way of a packet that the tester receives by this interface, of two.
    pub(super) fn received_by(interface: usize) -> Way {
        if interface == 0 { Way::Back } else { Way::There }
    }
}

/// A hop of a lab's packets: from the tester's interface to the device's, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hop {
    /// Way to the device; of a wire, all of it.
    In,
    /// Way from the device.
    Out,
}

/// Counter of a hop: a packet that an earlier one has is in all later ones as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counter {
    /// Counter of the end that receives.
    Receipt,
    /// Counter of the end that sends, which includes the other one's drops.
    Sending,
    /// Counter of the program that sends, which includes its interface's drops.
    Program,
    /// Counter of a processor: its drops are in both ends' counters, with those of its other users.
    Backlog,
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
    /// True if the first packets that are dropped there are noted.
    pub(super) watched: bool,
    /// The hop on the way, if several places count what is dropped there; pairs of ports have
    /// numbers.
    hop: Option<(usize, Hop)>,
    counter: Option<Counter>,
}

impl Spot {
    pub(super) fn new(side: Side, node: &str, reason: &str) -> Spot {
        let (node, reason) = (node.to_owned(), reason.to_owned());
        Spot { side, node, reason, way: None, watched: false, hop: None, counter: None }
    }

    /// The same, if all packets there go one way.
    pub(super) fn going(self, way: impl Into<Option<Way>>) -> Spot {
        Spot { way: way.into(), ..self }
    }

    /// The same, if other places count these packets as well.
    pub(super) fn shared(self, hop: Option<(usize, Hop)>, counter: Counter) -> Spot {
        Spot { hop, counter: Some(counter), ..self }
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

    /// Returns what was dropped since an earlier reading, each packet once.
    pub(super) fn since(&self, before: &Drops) -> Drops {
        let was = |spot: &Spot| before.0.get(spot).copied().unwrap_or_default();
        let new =
            self.0.iter().map(|(spot, count)| (spot.clone(), count.saturating_sub(was(spot))));
        let mut new = Drops(new.filter(|(_, count)| *count > 0).collect());
        new.count_once();
        new
    }

    /// Leaves each packet to one of the places that count it.
    fn count_once(&mut self) {
        let mut hops: BTreeMap<_, Vec<(Counter, Spot)>> = BTreeMap::new();
        let mut backlog = 0;
        for (spot, packets) in &self.0 {
            match (spot.counter, spot.hop) {
                (Some(Counter::Backlog), _) => backlog += packets,
                (Some(counter), Some(hop)) => {
                    hops.entry((hop, spot.way)).or_default().push((counter, spot.clone()));
                }
                _ => {}
            }
        }
        for mut places in hops.into_values() {
            places.sort();
            let mut known = 0;
            for (counter, spot) in places {
                let all = self.0.remove(&spot).unwrap_or_default();
                // A program gives up what waits behind packets that its link drops: the link's
                // doing, too.
                let given_up = counter == Counter::Program && known > 0;
                let side =
                    if given_up && spot.side == Side::Tester { Side::Link } else { spot.side };
                self.add(Spot { side, ..spot }, all.saturating_sub(known));
                known = known.max(all);
            }
        }
        // Packets of others are left on a processor's counter.
        let is_backlog = |spot: &Spot| spot.counter == Some(Counter::Backlog);
        let full = self.0.keys().find(|spot| is_backlog(spot)).cloned();
        self.0.retain(|spot, _| !is_backlog(spot));
        let links = self.iter().filter(|(spot, _)| spot.side == Side::Link);
        let links: Vec<Spot> = links.map(|(spot, _)| spot.clone()).collect();
        for link in links {
            let way = link.way;
            let count = self.0.entry(link).or_default();
            let packets = backlog.min(*count);
            *count -= packets;
            backlog -= packets;
            if let Some(full) = &full {
                self.add(Spot { way, ..full.clone() }, packets);
            }
        }
        self.0.retain(|_, count| *count > 0);
    }

    /// Accounts for the packets missing on each way, there and back, of which some have arrived
    /// damaged: a surplus of one way's places says nothing about the other.
    pub(super) fn missing(&self, lost: [u64; 2], damaged: [u64; 2]) -> Missing {
        let known = |way: Option<Way>| -> u64 {
            self.0.iter().filter(|(spot, _)| spot.way == way).map(|(_, packets)| packets).sum()
        };
        let rest = |at: usize, way: Way| {
            lost[at].saturating_sub(damaged[at]).saturating_sub(known(Some(way)))
        };
        let unexplained = rest(0, Way::There) + rest(1, Way::Back);
        Missing {
            lost: lost.iter().sum(),
            damaged: damaged.iter().sum(),
            unexplained: unexplained.saturating_sub(known(None)),
        }
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

/// Packets that have not arrived as they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) lost: u64,
    /// Lost packets that have arrived with other bytes.
    pub(super) damaged: u64,
    /// Lost packets that no counter of the device, its links or the tester has.
    pub(super) unexplained: u64,
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

    /// Drops, as lines.
    fn in_lines(drops: &[(Spot, u64)]) -> Vec<String> {
        let mut all = Drops::default();
        drops.iter().for_each(|(spot, packets)| all.add(spot.clone(), *packets));
        let new = all.since(&Drops::default());
        new.iter().map(|(spot, packets)| format!("{packets} {spot} {:?}", spot.way)).collect()
    }

    fn counter(node: &str, way: Way, counter: Counter) -> Spot {
        let side = if counter == Counter::Program { Side::Tester } else { Side::Link };
        Spot::new(side, node, "full").going(way).shared(Some((0, Hop::In)), counter)
    }

    #[test]
    fn a_packet_that_both_ends_and_the_sender_count_is_counted_once() {
        let receipt = counter("load1", Way::Back, Counter::Receipt);
        let sending = counter("tester1", Way::Back, Counter::Sending);
        let program = counter("host-tester1-tx", Way::Back, Counter::Program);
        let all = [(sending.clone(), 2651), (receipt.clone(), 2651), (program.clone(), 2651)];
        assert_eq!(in_lines(&all), ["2651 link: load1, full Some(Back)"]);
        // Each place has what those before it do not.
        let all = [(sending, 60), (receipt, 50), (program.clone(), 65)];
        let split = [
            "50 link: load1, full Some(Back)",
            "10 link: tester1, full Some(Back)",
            "5 link: host-tester1-tx, full Some(Back)",
        ];
        assert_eq!(in_lines(&all), split);
        // Drops that no other counter has are the sender's own.
        assert_eq!(in_lines(&[(program, 65)]), ["65 tester: host-tester1-tx, full Some(Back)"]);
        // The other way, and another hop, have packets of their own.
        let there = counter("tester0", Way::There, Counter::Sending);
        let out = Spot::new(Side::Link, "tester1", "full").going(Way::There);
        let out = out.shared(Some((0, Hop::Out)), Counter::Receipt);
        assert_eq!(in_lines(&[(there, 7), (out, 7)]).len(), 2);
    }

    #[test]
    fn a_backlog_names_what_links_have_counted_and_nothing_else() {
        let backlog = Spot::new(Side::Link, "kernel", "backlog").shared(None, Counter::Backlog);
        let sending = counter("tester0", Way::There, Counter::Sending);
        assert_eq!(
            in_lines(&[(backlog.clone(), 30), (sending.clone(), 40)]),
            ["30 link: kernel, backlog Some(There)", "10 link: tester0, full Some(There)"]
        );
        // Others use the processors, too.
        assert_eq!(
            in_lines(&[(backlog.clone(), 90), (sending, 40)]),
            ["40 link: kernel, backlog Some(There)"]
        );
        assert!(in_lines(&[(backlog, 90)]).is_empty());
    }

    #[test]
    fn what_one_way_counts_explains_nothing_of_the_other() {
        let mut drops = Drops::default();
        drops.add(Spot::new(Side::Link, "load1", "full").going(Way::Back), 5000);
        assert_eq!(drops.missing([2640, 2651], [0; 2]).unexplained, 2640);
        drops.add(Spot::new(Side::Device, "ip4-lookup", "no route"), 40);
        assert_eq!(drops.missing([2640, 2651], [0; 2]).unexplained, 2600);
        assert_eq!(drops.missing([0, 5010], [0; 2]).unexplained, 0);
    }
}
