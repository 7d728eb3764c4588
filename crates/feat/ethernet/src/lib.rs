//! Ethernet: demultiplexes received frames by ethertype.
//!
//! Features register their ethertype with [`register`] in their `init`; this crate knows none of
//! them.
#![forbid(unsafe_code)]

pub mod nodes;
mod tagged;

use std::sync::Arc;
use thalweg_engine::Feature;
use thalweg_graph::{Control, NodeId};
use thalweg_tables::snapshot::{self, Snapshot};

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "ethernet",
    about: "Ethernet input by ethertype",
    needs: &[&thalweg_device::FEATURE],
    nodes: nodes::NODES,
    init,
    ready,
    ..Feature::DEFAULT
};

/// Next node for each ethertype, as workers read it.
#[derive(Clone, Debug, Default)]
pub struct Ethertypes {
    entries: Vec<(u16, NodeId)>,
}

impl Ethertypes {
    /// Returns the node registered for an ethertype.
    #[inline]
    pub fn get(&self, ethertype: u16) -> Option<NodeId> {
        self.entries.iter().find(|e| e.0 == ethertype).map(|e| e.1)
    }
}

struct Registry {
    names: Vec<(u16, &'static str)>,
    writer: snapshot::Writer<Ethertypes>,
}

fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Ethertypes::default());
    let snapshot: Arc<Snapshot<Ethertypes>> = snapshot;
    c.share(snapshot);
    c.insert(Registry { names: Vec::new(), writer });
}

/// Registers the next node for an ethertype. The packet passed to it starts at its own header. To
/// be called from the `init` of a feature that is listed after this one.
pub fn register(c: &mut Control, ethertype: u16, node: &'static str) {
    c.state::<Registry>().borrow_mut().names.push((ethertype, node));
}

fn ready(c: &mut Control) {
    let registry = c.state::<Registry>();
    let mut r = registry.borrow_mut();
    let entries = r.names.iter().filter_map(|(t, n)| {
        let node = c.named_node(n, format_args!("ethertype {t:#06x}"));
        node.map(|id| (*t, id))
    });
    let entries = entries.collect();
    r.writer.publish(c.domain(), Ethertypes { entries });
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
