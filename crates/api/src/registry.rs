//! Every message that the router knows, with its number.

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

/// Every message.
pub struct Registry<C: 'static> {
    /// By number; `None` for what is no request.
    entries: Vec<Option<Entry<C>>>,
    ids: HashMap<&'static str, u16>,
    table: Vec<MessageTableEntry>,
    modules: Vec<ModuleEntry>,
}

/// Why messages do not fit together.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Two services for one request.
    #[error("two services handle the API message `{0}`")]
    Twice(&'static str),
    /// Numbers have 16 bits.
    #[error("there are more API messages than numbers")]
    TooMany,
}

impl<C: 'static> Registry<C> {
    /// Numbers the messages of all services, module by module.
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
        registry.modules.push(ModuleEntry { module: &memclnt::MODULE, services: own, first: 1 });
        for (id, def) in memclnt::NUMBERS {
            registry.name(id, def);
        }
        registry.entries.resize_with(usize::from(memclnt::LAST) + 1, || None);

        let mut services: Vec<_> = services.into_iter().collect();
        // A module's messages stand together, whichever features they come from.
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

    /// A request's service, by its name with its CRC.
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

    /// The modules with the number of their first message.
    pub fn modules(&self) -> impl Iterator<Item = (&'static Module, u16)> {
        self.modules.iter().map(|entry| (entry.module, entry.first))
    }

    /// Every message, in no order that means something.
    pub fn messages(&self) -> Vec<&'static MessageDef> {
        let services = self.modules.iter().flat_map(|module| &module.services);
        services.flat_map(Described::messages).collect()
    }

    /// The JSON documents of all modules.
    pub fn describe(&self) -> Vec<(&'static Module, serde_json::Value)> {
        let describe = |m: &ModuleEntry| (m.module, json::describe(m.module, &m.services));
        self.modules.iter().map(describe).collect()
    }
}

/// Writes a `.api.json` file for each module below `dir`, in the folders that VPP's clients expect,
/// and says which.
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
