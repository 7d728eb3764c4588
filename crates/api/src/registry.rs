//! The registry of messages and their ids.

use crate::json::{self, Described};
use crate::memclnt::{self, MessageTableEntry};
use crate::schema::{MessageDef, Module};
use crate::service::{Ids, Service};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A module's services.
struct ModuleEntry {
    module: &'static Module,
    services: Vec<Described>,
    first: u16,
}

/// A request's service.
pub(crate) struct Entry<C: 'static> {
    pub(crate) service: &'static dyn Service<C>,
    pub(crate) ids: Ids,
}

/// The registry.
pub struct Registry<C: 'static> {
    /// Requests by message id; `None` for other messages.
    entries: Vec<Option<Entry<C>>>,
    ids: HashMap<&'static str, u16>,
    table: Vec<MessageTableEntry>,
    modules: Vec<ModuleEntry>,
}

/// Error of building a registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Two services for one request.
    #[error("two services handle the API message `{0}`")]
    Twice(&'static str),
    /// Message ids have 16 bits.
    #[error("too many API messages for 16-bit ids")]
    TooMany,
}

impl<C: 'static> Registry<C> {
    /// Assigns ids to the messages of all services, module by module.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn new(
        services: impl IntoIterator<Item = &'static dyn Service<C>>,
    ) -> Result<Self, RegistryError> {
        let mut registry = Self {
            entries: Vec::new(),
            ids: HashMap::new(),
            table: Vec::new(),
            modules: Vec::new(),
        };
        let own = memclnt::described();
        registry.modules.push(ModuleEntry { module: &memclnt::MEMCLNT, services: own, first: 1 });
        for (id, def) in memclnt::NUMBERS {
            registry.name(id, def);
        }
        registry.entries.resize_with(usize::from(memclnt::LAST) + 1, || None);

        let mut services: Vec<_> = services.into_iter().collect();
        // A module's messages are contiguous, whichever features they come from.
        let mut order: Vec<&'static str> = Vec::new();
        for service in &services {
            if !order.contains(&service.module().name) {
                order.push(service.module().name);
            }
        }
        services.sort_by_key(|s| order.iter().position(|name| *name == s.module().name));
        for service in services {
            registry.add(service)?;
        }
        registry.table.sort_by_key(|entry| entry.index);
        Ok(registry)
    }

    fn name(&mut self, id: u16, def: &'static MessageDef) {
        self.ids.insert(def.name, id);
        let name = def.name_crc();
        self.table.push(MessageTableEntry { index: id, name: name.as_str().into() });
    }

    fn number(&mut self, def: &'static MessageDef) -> Result<u16, RegistryError> {
        if let Some(id) = self.ids.get(def.name) {
            return Ok(*id);
        }
        let id = u16::try_from(self.entries.len()).map_err(|_| RegistryError::TooMany)?;
        self.entries.push(None);
        self.name(id, def);
        Ok(id)
    }

    fn add(&mut self, service: &'static dyn Service<C>) -> Result<(), RegistryError> {
        let (module, described) = (service.module(), service.described());
        let request = self.number(described.request)?;
        if self.entries[usize::from(request)].is_some() || request <= memclnt::LAST {
            return Err(RegistryError::Twice(described.request.name));
        }
        let mut ids = Ids::default();
        if let Some(reply) = described.reply {
            ids.reply = self.number(reply)?;
        }
        if let Some(details) = described.details {
            ids.details = self.number(details)?;
        }
        for event in described.events {
            self.number(event)?;
        }
        self.entries[usize::from(request)] = Some(Entry { service, ids });
        match self.modules.iter_mut().find(|entry| entry.module.name == module.name) {
            Some(entry) => entry.services.push(described),
            None => {
                let services = vec![described];
                self.modules.push(ModuleEntry { module, services, first: request });
            }
        }
        Ok(())
    }

    pub(crate) fn ids(&self) -> &HashMap<&'static str, u16> {
        &self.ids
    }

    /// Returns a request's service, by its name with its CRC.
    pub(crate) fn request(&self, name_crc: &str) -> Option<&Entry<C>> {
        let (name, _) = name_crc.rsplit_once('_')?;
        let entry = self.entry(*self.ids.get(name)?)?;
        (entry.service.described().request.name_crc() == name_crc).then_some(entry)
    }

    pub(crate) fn entry(&self, id: u16) -> Option<&Entry<C>> {
        self.entries.get(usize::from(id))?.as_ref()
    }

    pub(crate) fn table(&self) -> &[MessageTableEntry] {
        &self.table
    }

    /// Returns the modules with the id of their first message.
    pub fn modules(&self) -> impl Iterator<Item = (&'static Module, u16)> {
        self.modules.iter().map(|entry| (entry.module, entry.first))
    }

    /// Returns every message, in no particular order: requests can have details in common.
    pub fn messages(&self) -> Vec<&'static MessageDef> {
        let services = self.modules.iter().flat_map(|module| &module.services);
        let mut all: Vec<_> = services.flat_map(Described::messages).collect();
        all.sort_unstable_by_key(|def| def.name);
        all.dedup_by_key(|def| def.name);
        all
    }

    /// Returns the JSON documents of all modules.
    pub fn describe(&self) -> Vec<(&'static Module, serde_json::Value)> {
        let describe = |m: &ModuleEntry| (m.module, json::describe(m.module, &m.services));
        self.modules.iter().map(describe).collect()
    }
}

/// Writes a `.api.json` file for each module below `dir`, in the directories that VPP's clients
/// expect, and returns their paths.
///
/// # Errors
/// If a directory or file cannot be written.
pub fn write_json<C: 'static>(registry: &Registry<C>, dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (module, document) in registry.describe() {
        let folder = dir.join(module.folder);
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.api.json", module.name));
        fs::write(&path, format!("{document:#}\n"))?;
        written.push(path);
    }
    Ok(written)
}
