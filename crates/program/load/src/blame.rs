//! Place at which a packet was lost, with its certainty.

use std::fmt;

use thalweg_device_load::What;
use thalweg_load::talk::{Flow, Plan};
use thalweg_load_report::{FirstLost, Grade};

use super::spot::{Drops, Spot, Way};

/// Packet that was dropped in the window of a trial, as noted by its dropper.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) what: What,
    /// Time, by the machine's clock.
    pub(super) at: u64,
    /// Number of a stream's pair of ports, among those with streams.
    pub(super) pair: usize,
    /// The node and its reason.
    pub(super) spot: Spot,
    /// The interface that received it.
    pub(super) interface: String,
}

/// Place at which a packet was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The packet itself was noted where it was dropped; with the interface that received it.
    Seen(Spot, String),
    /// The only place that dropped anything, and it dropped all.
    Counted(Spot),
    /// Others dropped something as well, but not this packet.
    Inferred(Spot),
    /// Nothing says where.
    Unknown,
}

/// Finds where a packet was lost that nobody noted, if no place has `unexplained` packets. `way`:
/// the one that it went, if that is known.
pub(super) fn place(drops: &Drops, unexplained: u64, way: Option<Way>) -> Place {
    let all: Vec<(&Spot, u64)> = drops.iter().collect();
    if let ([(spot, _)], 0) = (&all[..], unexplained) {
        return Place::Counted((*spot).clone());
    }
    let goes_there = |spot: &Spot| match (spot.way, way) {
        (Some(of), Some(way)) => of == way,
        _ => true,
    };
    // A place that notes packets would have noted this one.
    for watched in [false, true] {
        let mut could =
            all.iter().filter(|(spot, _)| (watched || !spot.watched) && goes_there(spot));
        if let (Some((spot, packets)), None) = (could.next(), could.next())
            && *packets > unexplained
        {
            return Place::Inferred((*spot).clone());
        }
    }
    Place::Unknown
}

impl Place {
    fn grade(&self) -> Grade {
        match self {
            Place::Seen(..) => Grade::Seen,
            Place::Counted(_) => Grade::Counted,
            Place::Inferred(_) => Grade::Inferred,
            Place::Unknown => Grade::Unexplained,
        }
    }

    /// Fills in the place of the first packet lost.
    pub(super) fn fill(&self, first: FirstLost) -> FirstLost {
        let (node, reason) = match self {
            Place::Seen(spot, interface) => {
                (spot.node.clone(), format!("{}, received by {interface}", spot.reason))
            }
            Place::Counted(spot) | Place::Inferred(spot) => {
                (spot.node.clone(), spot.reason.clone())
            }
            Place::Unknown => (String::new(), String::new()),
        };
        FirstLost { grade: self.grade(), node, reason, ..first }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Seen(Spot { node, reason, .. }, interface) => {
                write!(f, "seen at {node}: {reason}, received by {interface}")
            }
            Place::Counted(spot) => write!(f, "counted at {spot}, where all were dropped"),
            Place::Inferred(spot) => {
                write!(f, "inferred at {spot}: it was not at any other place that dropped packets")
            }
            Place::Unknown => write!(f, "where it was lost is not known"),
        }
    }
}

/// The first packet of connections that was lost in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FirstTalk {
    /// Flow of the packet, if it was noted.
    pub(super) flow: Option<Flow>,
    pub(super) place: Place,
}

impl FirstTalk {
    /// Finds it among those that were noted, or else the place where it must have been lost; `None`
    /// if no packet was `lost`, there or back.
    pub(super) fn of(
        seen: &[Seen],
        plans: &[&Plan],
        drops: &Drops,
        lost: [u64; 2],
    ) -> Option<FirstTalk> {
        let ours = seen.iter().filter_map(|seen| match seen.what {
            What::Talk(flow) => plans.iter().any(|plan| plan.has(&flow)).then_some((seen, flow)),
            What::Stream(_) => None,
        });
        if let Some((seen, flow)) = ours.min_by_key(|(seen, _)| seen.at) {
            let place = Place::Seen(seen.spot.clone(), seen.interface.clone());
            return Some(FirstTalk { flow: Some(flow), place });
        }
        let unexplained = drops.missing(lost, [0; 2]).unexplained;
        let none = || FirstTalk { flow: None, place: place(drops, unexplained, None) };
        (lost != [0; 2]).then(none)
    }

    /// Converts it to a report's form.
    pub(super) fn record(&self) -> FirstLost {
        self.place.fill(FirstLost {
            stream: self.to_string(),
            sequence: self.flow.map(|flow| flow.seq.into()),
            ..FirstLost::default()
        })
    }
}

impl fmt::Display for FirstTalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.flow {
            Some(flow) => write!(f, "{flow}"),
            None => write!(f, "connections"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spot::Side;

    fn spot(node: &str) -> Spot {
        Spot::new(Side::Device, node, "reason")
    }

    fn drops(all: &[(Spot, u64)]) -> Drops {
        let mut drops = Drops::default();
        all.iter().for_each(|(spot, packets)| drops.add(spot.clone(), *packets));
        drops
    }

    #[test]
    fn the_only_place_that_dropped_all_is_counted() {
        let one = drops(&[(spot("ct"), 7)]);
        assert_eq!(place(&one, 0, None), Place::Counted(spot("ct")));
        // Three more are lost than it has: perhaps this one.
        assert_eq!(place(&one, 3, None), Place::Inferred(spot("ct")));
        assert_eq!(place(&one, 13, None), Place::Unknown);
        assert_eq!(place(&Drops::default(), 3, None), Place::Unknown);
    }

    #[test]
    fn a_place_is_inferred_if_no_other_can_be_it() {
        let there = spot("ring0").going(Way::There);
        let back = spot("ring1").going(Way::Back);
        let two = drops(&[(there.clone(), 4), (back.clone(), 5)]);
        assert_eq!(place(&two, 0, Some(Way::There)), Place::Inferred(there.clone()));
        assert_eq!(place(&two, 0, Some(Way::Back)), Place::Inferred(back));
        assert_eq!(place(&two, 0, None), Place::Unknown);
        // A node that notes what it drops would have noted it.
        let noting = spot("ip4-lookup").watched();
        let both = drops(&[(there.clone(), 4), (noting.clone(), 900)]);
        assert_eq!(place(&both, 0, Some(Way::There)), Place::Inferred(there));
        // Only the first ones are noted.
        assert_eq!(place(&both, 0, Some(Way::Back)), Place::Inferred(noting));
    }

    #[test]
    fn connections_of_others_are_not_ours() {
        use thalweg_load::talk::{Exchange, Protocol, Talk};
        let plan = Plan::of(Talk::exchange("t", Protocol::Tcp, 80, &Exchange::default()));
        let flow = |port: u16, seq: u32| Flow {
            protocol: Protocol::Tcp,
            source: ([16, 0, 0, 9].into(), 1024),
            destination: ([48, 0, 0, 1].into(), port),
            flags: 2,
            seq,
        };
        let seen = |flow: Flow, at: u64| Seen {
            what: What::Talk(flow),
            at,
            pair: 0,
            spot: spot("flow-rules"),
            interface: "host-load0".into(),
        };
        let all = [seen(flow(81, 1), 1), seen(flow(80, 3), 9), seen(flow(80, 2), 5)];
        let plans = [&plan];
        let first = FirstTalk::of(&all, &plans, &Drops::default(), [0; 2]).unwrap();
        assert_eq!(first.to_string(), "TCP 16.0.0.9:1024 > 48.0.0.1:80 SYN");
        let record = first.record();
        assert_eq!((record.grade, record.sequence), (Grade::Seen, Some(2)));
        assert_eq!(record.reason, "reason, received by host-load0");
        assert_eq!(FirstTalk::of(&all[..1], &plans, &Drops::default(), [0; 2]), None);
        let lost = FirstTalk::of(&all[..1], &plans, &drops(&[(spot("a"), 2)]), [2, 0]).unwrap();
        assert_eq!(lost.record().grade, Grade::Counted);
    }
}
