//! Features and taps on arcs, per interface.

use super::Control;
use crate::arc::{ArcConfig, ArcError, ArcRow};
use crate::decl::{ArcDecl, ArcId, ArcKey, NodeId};
use crate::mailbox::ToWorker;
use thalweg_buffer::SwIfIndex;
use thalweg_tables::qsbr::Domain;

impl Control {
    /// Returns an arc by name.
    pub fn arc(&self, name: &str) -> Option<ArcId> {
        self.arc_decls.iter().position(|a| a.name == name).map(|i| ArcId(i as u8))
    }
    /// Returns all arcs.
    pub fn arc_decls(&self) -> &[&'static ArcDecl] {
        &self.arc_decls
    }
    /// Returns the features of an arc in order, taps last.
    pub fn arc_features(&self, arc: ArcId) -> Vec<&'static str> {
        let a = &self.arcs[arc.0 as usize];
        a.features.iter().chain(&a.taps).map(|(n, _)| *n).collect()
    }
    /// Returns the features enabled on an interface, by arc, in the order in which packets visit
    /// them, taps last.
    pub fn enabled_features(&self, sw_if: SwIfIndex) -> Vec<(&'static str, Vec<&'static str>)> {
        let rows = self.arcs.iter().zip(&self.arc_table.arcs);
        rows.map(|(a, row)| (a.decl.name, a.enabled(row, sw_if))).collect()
    }

    /// Changes an arc; returns its index and the result.
    fn change_arc<T>(
        &mut self,
        arc: &str,
        change: impl FnOnce(&mut ArcConfig, (&ArcRow, &Domain)) -> Result<T, ArcError>,
    ) -> Result<(ArcId, T), ArcError> {
        let place = self.arcs.iter().position(|a| a.decl.name == arc);
        let unknown = || ArcError::UnknownArc(arc.into());
        let at = place.ok_or_else(unknown)?;
        let row = self.arc_table.arcs.get(at).ok_or_else(unknown)?;
        let done = change(&mut self.arcs[at], (row, &self.domain))?;
        Ok((ArcId(at as u8), done))
    }

    /// Enables or disables a feature or tap on an interface, from the workers' next loop on. No
    /// packet is lost.
    ///
    /// # Errors
    /// If the arc does not exist, has no such feature, or interfaces have too many combinations of
    /// features; nothing has changed then.
    pub fn enable_feature(
        &mut self,
        arc: &str,
        feature: &str,
        sw_if: SwIfIndex,
        on: bool,
    ) -> Result<(), ArcError> {
        let (arc, taps) = self.change_arc(arc, |a, to| a.set(to, feature, sw_if, on))?;
        if let Some(mask) = taps {
            self.set_gates(arc, sw_if, mask);
        }
        Ok(())
    }

    /// Opens or closes the workers' gates to the taps of an interface.
    fn set_gates(&mut self, arc: ArcId, sw_if: SwIfIndex, mask: u32) {
        for w in 0..self.workers.len() {
            self.send(w, ToWorker::Gate { arc, sw_if, mask });
        }
    }

    /// Gives an interface its own end of an arc (e.g. its device after `interface-output`).
    ///
    /// # Errors
    /// If the arc does not exist, or interfaces have too many combinations of features and ends.
    pub fn set_arc_end(
        &mut self,
        arc: &str,
        sw_if: SwIfIndex,
        end: Option<NodeId>,
    ) -> Result<(), ArcError> {
        self.change_arc(arc, |a, to| a.set_end(to, sw_if, end)).map(|_| ())
    }

    /// Removes an interface from all arcs.
    pub fn remove_interface(&mut self, sw_if: SwIfIndex) {
        let table = self.arc_table.clone();
        for (at, row) in table.arcs.iter().enumerate() {
            if self.arcs[at].remove_interface((row, &self.domain), sw_if) {
                self.set_gates(ArcId(at as u8), sw_if, 0);
            }
        }
        self.baseline.interfaces.insert(sw_if, self.interface_totals_raw(sw_if));
    }

    /// Commits the workers' memory for an interface that has a device, so that no worker has to
    /// wait for it at the first packet.
    pub fn make_interface_ready(&self, sw_if: SwIfIndex) {
        for w in &self.workers {
            w.stats.make_ready(sw_if);
            w.gates.iter().for_each(|gates| gates.make_ready(sw_if));
        }
    }
}

/// The engine's arcs.
pub(crate) static ARCS: &[&ArcDecl] = &[
    &ArcDecl { name: "device-input", key: ArcKey::Rx, end: "ethernet-input" },
    &ArcDecl { name: "interface-output", key: ArcKey::Tx, end: "error-drop" },
    &ArcDecl { name: "error-drop", key: ArcKey::Rx, end: "drop" },
];
