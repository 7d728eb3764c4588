//! Layer 2: cross connects.
//!
//! An interface in layer 2 hands its frames to `l2-input` straight from the device; a uniform frame
//! costs one look-up, whatever its size.
#![forbid(unsafe_code)]

pub mod api;
mod api_module;
pub mod cli;
pub mod nodes;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;
use thalweg_device::{DeviceError, InterfaceEvent, Interfaces, SwIfIndex, interface};
use thalweg_graph::{Control, Feature, NodeId};
use thalweg_tables::snapshot::{self, Snapshot};

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "l2",
    about: "layer 2 cross connect",
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&settings::SETTINGS],
    init,
    ..Feature::DEFAULT
};

/// Where each interface's frames go, as workers read it.
#[derive(Clone, Debug, Default)]
pub struct L2Table {
    outputs: Vec<Option<NodeId>>,
}

impl L2Table {
    /// The output node for frames from an interface.
    #[inline]
    pub fn output(&self, rx_if: u32) -> Option<NodeId> {
        self.outputs.get(rx_if as usize).copied().flatten()
    }
}

/// Cross connects on the main thread.
pub struct L2 {
    xconnects: BTreeMap<SwIfIndex, SwIfIndex>,
    writer: snapshot::Writer<L2Table>,
}

impl L2 {
    /// All cross connects: from, to.
    pub fn xconnects(&self) -> impl Iterator<Item = (SwIfIndex, SwIfIndex)> + '_ {
        self.xconnects.iter().map(|(a, b)| (*a, *b))
    }
}

fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(L2Table::default());
    let snapshot: Arc<Snapshot<L2Table>> = snapshot;
    c.share(snapshot);
    c.insert(L2 { xconnects: BTreeMap::new(), writer });
    let all = c.state::<Interfaces>();
    all.borrow_mut().subscribe(|c, e| {
        if let InterfaceEvent::Deleted(gone) = e {
            let ends: Vec<SwIfIndex> = {
                let l2 = c.state::<L2>();
                let l2 = l2.borrow();
                l2.xconnects().filter(|(a, b)| *a == gone || *b == gone).map(|x| x.0).collect()
            };
            for rx in ends {
                // Both interfaces still exist here, so that this cannot fail.
                let _ = set_l3(c, rx);
            }
        }
    });
}

fn publish(c: &Control) {
    let l2 = c.state::<L2>();
    let mut l2 = l2.borrow_mut();
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let top = l2.xconnects.keys().max().map_or(0, |m| *m as usize + 1);
    let mut outputs = vec![None; top];
    for (rx, tx) in &l2.xconnects {
        outputs[*rx as usize] = all.get(*tx).map(|v| v.output);
    }
    l2.writer.publish(c.domain(), L2Table { outputs });
}

/// Sends all frames of `rx` out by `tx`.
///
/// # Errors
/// If an interface does not exist, is no Ethernet, or both are the same.
pub fn set_xconnect(c: &mut Control, rx: SwIfIndex, tx: SwIfIndex) -> Result<(), DeviceError> {
    let (a, b) = (interface::view(c, rx)?, interface::view(c, tx)?);
    if rx == tx {
        let text = format!("`{}` cannot be connected to itself", a.name);
        return Err(DeviceError::Failed(text));
    }
    for v in [&a, &b] {
        if !v.ethernet {
            let what = "layer 2 (it carries no Ethernet frames)".into();
            let kind = v.dev_type.into();
            return Err(DeviceError::Unsupported { name: v.name.clone(), kind, what });
        }
    }
    let was = c.state::<L2>().borrow_mut().xconnects.insert(rx, tx);
    publish(c);
    if was.is_none() {
        interface::accept_all(c, rx, true)?;
        let node = c.node("l2-input");
        c.set_arc_end("device-input", rx, node).map_err(|e| DeviceError::Failed(e.to_string()))?;
    }
    interface::set_l2(c, rx, Some(format!("xconnect {}", b.name)))
}

/// Takes an interface out of layer 2.
///
/// # Errors
/// If the interface does not exist.
pub fn set_l3(c: &mut Control, rx: SwIfIndex) -> Result<(), DeviceError> {
    interface::view(c, rx)?;
    if c.state::<L2>().borrow_mut().xconnects.remove(&rx).is_none() {
        return Ok(());
    }
    c.set_arc_end("device-input", rx, None).map_err(|e| DeviceError::Failed(e.to_string()))?;
    interface::accept_all(c, rx, false)?;
    publish(c);
    interface::set_l2(c, rx, None)
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
