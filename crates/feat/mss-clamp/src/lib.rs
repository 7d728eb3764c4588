//! MSS clamping: lowers the maximum segment size that TCP connections through an interface agree
//! on (RFC 9293 section 3.7.1), for paths whose MTU the hosts do not learn.
#![forbid(unsafe_code)]

pub mod api;
pub mod api_types;
mod cli;
pub mod form;
mod lower;
pub mod message_types;
pub mod nodes;
pub mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use thalweg_device::{InterfaceEvent, SwIfIndex, interface};
use thalweg_engine::Feature;
use thalweg_engine::setting::Refused;
use thalweg_graph::Control;
use thalweg_tables::CowTable;
use thalweg_tables::snapshot::{self, Snapshot};

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "mss-clamp",
    about: "MSS clamping of TCP connections",
    needs: &[&thalweg_device::FEATURE],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    declared: settings::SETTINGS,
    init,
    ..Feature::DEFAULT
};

/// Smallest limit in bytes.
pub const MIN_MSS: u16 = 64;

/// Directions of packets as the interface sees them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Received.
    Rx,
    /// Sent.
    Tx,
    /// Both.
    Both,
}

impl Direction {
    /// The word for it; `both` is `enable`.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Rx => "rx",
            Direction::Tx => "tx",
            Direction::Both => "enable",
        }
    }

    /// Includes received packets.
    pub fn has_rx(self) -> bool {
        self != Direction::Tx
    }

    /// Includes sent packets.
    pub fn has_tx(self) -> bool {
        self != Direction::Rx
    }
}

/// A limit of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clamp {
    /// Most that a SYN may offer, in bytes.
    pub mss: u16,
    /// The packets that it is for.
    pub direction: Direction,
}

/// The limits of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// Clamp for connections over IPv4.
    pub ip4: Option<Clamp>,
    /// Clamp for connections over IPv6.
    pub ip6: Option<Clamp>,
}

/// The limits by interface, as workers read them.
pub(crate) type All = CowTable<Limits>;

struct Clamps {
    /// Limits of the interfaces that have some.
    all: BTreeMap<SwIfIndex, Limits>,
    writer: snapshot::Writer<All>,
}

fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(All::new());
    let snapshot: Arc<Snapshot<All>> = snapshot;
    c.share(snapshot);
    c.insert(Clamps { all: BTreeMap::new(), writer });
    c.subscribe(|c, event: &InterfaceEvent| {
        // Its features go with it.
        if let InterfaceEvent::Deleted(i) = *event {
            store(c, i, Limits::default());
        }
    });
}

/// Returns the limits, in order of interfaces; only of those with one.
pub fn all(c: &Control) -> Vec<(SwIfIndex, Limits)> {
    c.state::<Clamps>().borrow().all.iter().map(|(i, limits)| (*i, *limits)).collect()
}

/// Returns one of the limits, of the interfaces that have it.
fn all_of(c: &Control, of: fn(Limits) -> Option<Clamp>) -> Vec<(SwIfIndex, Option<Clamp>)> {
    let all = all(c).into_iter().map(|(sw_if, limits)| (sw_if, of(limits)));
    all.filter(|(_, clamp)| clamp.is_some()).collect()
}

/// Changes the limits of an interface.
fn change(
    c: &mut Control,
    sw_if: SwIfIndex,
    change: impl FnOnce(&mut Limits),
) -> Result<(), Refused> {
    let mut limits = get(c, sw_if);
    change(&mut limits);
    set(c, sw_if, limits)
}

/// Returns the limits of an interface.
pub fn get(c: &Control, sw_if: SwIfIndex) -> Limits {
    c.state::<Clamps>().borrow().all.get(&sw_if).copied().unwrap_or_default()
}

fn store(c: &mut Control, sw_if: SwIfIndex, limits: Limits) {
    if get(c, sw_if) == limits {
        return;
    }
    let state = c.state::<Clamps>();
    let mut state = state.borrow_mut();
    match limits == Limits::default() {
        false => _ = state.all.insert(sw_if, limits),
        true => _ = state.all.remove(&sw_if),
    }
    state.writer.update(c.domain(), |old| {
        let mut new = old.clone();
        new.set(sw_if, limits);
        new
    });
}

/// The arc and node of each version and direction.
const NODES: [(&str, &str); 4] = [
    ("ip4-unicast", "tcp-mss-clamping-ip4-in"),
    ("ip4-output", "tcp-mss-clamping-ip4-out"),
    ("ip6-unicast", "tcp-mss-clamping-ip6-in"),
    ("ip6-output", "tcp-mss-clamping-ip6-out"),
];

/// Sets the limits of an interface, or removes them.
///
/// # Errors
/// If the interface does not exist, or a limit is too small; nothing has changed then.
pub fn set(c: &mut Control, sw_if: SwIfIndex, limits: Limits) -> Result<(), Refused> {
    interface::view(c, sw_if)?;
    for Clamp { mss, .. } in limits.ip4.into_iter().chain(limits.ip6) {
        if mss < MIN_MSS {
            let text = format_args!("the MSS must be between {MIN_MSS} and 65535, not {mss}");
            return Err(Refused::new(-7, text));
        }
    }
    let used = |limits: Limits| {
        let is = |clamp: Option<Clamp>, has: fn(Direction) -> bool| {
            clamp.is_some_and(|clamp| has(clamp.direction))
        };
        let (ip4, ip6) = (limits.ip4, limits.ip6);
        let (rx, tx) = (Direction::has_rx, Direction::has_tx);
        [is(ip4, rx), is(ip4, tx), is(ip6, rx), is(ip6, tx)]
    };
    let (before, after) = (used(get(c, sw_if)), used(limits));
    store(c, sw_if, limits);
    for (i, (arc, node)) in NODES.into_iter().enumerate() {
        if before[i] != after[i]
            && let Err(e) = c.enable_feature(arc, node, sw_if, after[i])
        {
            tracing::error!("{}: {e}", c.interface_name(sw_if));
        }
    }
    Ok(())
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
