//! Lists of next hops, which many routes share.

use super::types::Hops;
use std::collections::HashMap;

/// Lists of next hops, each once.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) all: Vec<Option<(Hops, u32)>>,
    pub(super) free: Vec<u32>,
    pub(super) by_hops: HashMap<Hops, u32>,
}

impl Lists {
    /// Returns the number of a list, with a reference.
    pub(super) fn hold(&mut self, hops: Hops) -> u32 {
        if let Some(&id) = self.by_hops.get(&hops) {
            self.retain(id);
            return id;
        }
        let id = self.free.pop().unwrap_or(self.all.len() as u32);
        if id as usize == self.all.len() {
            self.all.push(None);
        }
        self.all[id as usize] = Some((hops.clone(), 1));
        self.by_hops.insert(hops, id);
        id
    }

    pub(super) fn retain(&mut self, id: u32) {
        if let Some((_, uses)) = &mut self.all[id as usize] {
            *uses += 1;
        }
    }

    pub(super) fn release(&mut self, id: u32) {
        let Some((hops, uses)) = &mut self.all[id as usize] else { return };
        *uses -= 1;
        if *uses == 0 {
            self.by_hops.remove(hops);
            self.all[id as usize] = None;
            self.free.push(id);
        }
    }

    pub(super) fn get(&self, id: u32) -> Option<&Hops> {
        self.all.get(id as usize)?.as_ref().map(|(hops, _)| hops)
    }
}
