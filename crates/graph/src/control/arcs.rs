//! Features and taps on arcs, per interface.

use super::Control;
use crate::arc::{ArcConfig, ArcError, ArcTable};
use crate::decl::{ArcDecl, ArcId, ArcKey, NodeId};

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
    /// Returns the features enabled on an interface, by arc.
    pub fn enabled_features(&self, sw_if: u32) -> Vec<(&'static str, Vec<&'static str>)> {
        self.arcs.iter().map(|a| (a.decl.name, a.enabled(sw_if))).collect()
    }

    fn arc_mut(&mut self, arc: &str) -> Result<&mut ArcConfig, ArcError> {
        let known = self.arcs.iter_mut().find(|a| a.decl.name == arc);
        known.ok_or_else(|| ArcError::UnknownArc(arc.into()))
    }

    /// Enables or disables a feature or tap on an interface, from the workers' next loop on. No
    /// packet is lost.
    ///
    /// # Errors
    /// If the arc does not exist, or has no such feature.
    pub fn enable_feature(
        &mut self,
        arc: &str,
        feature: &str,
        sw_if: u32,
        on: bool,
    ) -> Result<(), ArcError> {
        if self.arc_mut(arc)?.set(feature, sw_if, on)? {
            self.publish_arcs();
        }
        Ok(())
    }

    /// Gives an interface its own end of an arc (e.g. its device after `interface-output`).
    ///
    /// # Errors
    /// If the arc does not exist.
    pub fn set_arc_end(
        &mut self,
        arc: &str,
        sw_if: u32,
        end: Option<NodeId>,
    ) -> Result<(), ArcError> {
        self.arc_mut(arc)?.set_end(sw_if, end);
        self.publish_arcs();
        Ok(())
    }

    /// Removes an interface from all arcs.
    pub fn remove_interface(&mut self, sw_if: u32) {
        for a in &mut self.arcs {
            a.remove_interface(sw_if);
        }
        self.baseline.interfaces.insert(sw_if, self.interface_totals_raw(sw_if));
        self.publish_arcs();
    }

    pub(super) fn publish_arcs(&mut self) {
        self.arc_generation += 1;
        let table = ArcTable {
            arcs: self.arcs.iter().map(ArcConfig::compile).collect(),
            generation: self.arc_generation,
        };
        self.arc_writer.publish(&self.domain, table);
    }
}

/// The engine's arcs.
pub(crate) static ARCS: &[&ArcDecl] = &[
    &ArcDecl { name: "device-input", key: ArcKey::Rx, end: "ethernet-input" },
    &ArcDecl { name: "interface-output", key: ArcKey::Tx, end: "error-drop" },
    &ArcDecl { name: "error-drop", key: ArcKey::Rx, end: "drop" },
];
