//! A router that loads what others dump.

use crate::router::Router;
use std::collections::HashSet;
use thalweg_config::declare::{Catalog, Document, diff};
use thalweg_graph::Control;
use thalweg_program_router::configuration::catalog;

pub struct Loader {
    router: Router,
    catalog: Catalog<Control>,
    /// Dumps that have been checked: many values come to the same.
    seen: HashSet<String>,
}

impl Loader {
    pub fn new() -> Loader {
        Loader { router: Router::start(), catalog: catalog().unwrap(), seen: HashSet::new() }
    }

    /// A dump reads back, needs no step, and loads; the error says which of these fails.
    pub fn check(&mut self, dump: &Document) -> Result<(), String> {
        let unread: Vec<String> = dump.unread().iter().map(ToString::to_string).collect();
        if !unread.is_empty() {
            return Err(format!("was accepted, but no document may say so: {unread:?}"));
        }
        let text = dump.to_yaml().unwrap();
        if self.seen.contains(&text) {
            return Ok(());
        }
        let read = self.catalog.read("dump", &text).map_err(|e| e.to_string())?;
        let plan = dump.plan_to(&read);
        if !plan.is_empty() {
            return Err(format!("the plan to what is so already:\n{plan}"));
        }
        let file = self.router.dir.path().join("a.yaml");
        std::fs::write(&file, &text).unwrap();
        let applied = self.router.attempt(&format!("config apply {}", file.display()));
        applied.map_err(|e| format!("does not load: {e}"))?;
        let lost = diff(dump.root(), self.router.dump().root());
        let lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
        if !lost.is_empty() {
            return Err(format!("loaded: {}", lost.join("\n")));
        }
        self.seen.insert(text);
        Ok(())
    }

    pub fn stop(self) {
        self.router.stop();
    }
}
