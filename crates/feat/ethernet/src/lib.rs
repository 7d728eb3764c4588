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
    /// Node for frames with a length in place of an ethertype (IEEE 802.3).
    llc: Option<NodeId>,
}

impl Ethertypes {
    /// Returns the node registered for an ethertype.
    #[inline]
    pub fn get(&self, ethertype: u16) -> Option<NodeId> {
        self.entries.iter().find(|e| e.0 == ethertype).map(|e| e.1)
    }

    /// Returns the node for frames with a length in place of an ethertype.
    #[inline]
    pub(crate) fn llc(&self) -> Option<NodeId> {
        self.llc
    }
}

struct Registry {
    names: Vec<(u16, &'static str)>,
    llc: Option<&'static str>,
    writer: snapshot::Writer<Ethertypes>,
}

fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Ethertypes::default());
    let snapshot: Arc<Snapshot<Ethertypes>> = snapshot;
    c.share(snapshot);
    c.insert(Registry { names: Vec::new(), llc: None, writer });
}

/// Registers the next node for an ethertype. The packet passed to it starts at its own header. To
/// be called from the `init` of a feature that is listed after this one.
pub fn register(c: &mut Control, ethertype: u16, node: &'static str) {
    c.state::<Registry>().borrow_mut().names.push((ethertype, node));
}

/// An ethertype that another node has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("frames of ethertype {ethertype:#06x} go to `{node}'")]
pub struct Taken {
    /// The ethertype.
    pub ethertype: u16,
    /// The node that has it.
    pub node: &'static str,
}

/// Lets a node take the frames of an ethertype while the router runs, or ends that.
///
/// # Errors
/// [`Taken`], if another node does.
pub fn set(c: &mut Control, ethertype: u16, node: &'static str, on: bool) -> Result<(), Taken> {
    {
        let registry = c.state::<Registry>();
        let names = &mut registry.borrow_mut().names;
        if let Some((_, node)) = names.iter().find(|n| n.0 == ethertype && n.1 != node) {
            return Err(Taken { ethertype, node });
        }
        names.retain(|n| n.0 != ethertype);
        if on {
            names.push((ethertype, node));
        }
    }
    ready(c);
    Ok(())
}

/// Lets a node take the frames with a length in place of an ethertype, or none.
pub fn set_llc(c: &mut Control, node: Option<&'static str>) {
    c.state::<Registry>().borrow_mut().llc = node;
    ready(c);
}

fn ready(c: &mut Control) {
    let registry = c.state::<Registry>();
    let mut r = registry.borrow_mut();
    let entries = r.names.iter().filter_map(|(t, n)| {
        let node = c.named_node(n, format_args!("ethertype {t:#06x}"));
        node.map(|id| (*t, id))
    });
    let entries = entries.collect();
    let llc = r.llc.and_then(|name| c.named_node(name, "frames with a length"));
    r.writer.publish(c.domain(), Ethertypes { entries, llc });
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
