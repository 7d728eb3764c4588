//! All clients, for sending events.

use crate::client::{Client, ClientId};
use crate::service::{Caller, Head, Message, encode};
use crate::{Retval, schema::MessageDef};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The client has disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the API client is gone")]
pub struct Gone;

/// A client, as `show api clients` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientInfo {
    /// Its id.
    pub id: ClientId,
    /// The name that it gave itself.
    pub name: String,
    /// Number of its requests.
    pub requests: u64,
    /// Number of events sent to it.
    pub events: u64,
    /// Bytes that it has not read yet.
    pub waiting: usize,
}

#[derive(Debug, Default)]
struct Inner {
    clients: Mutex<BTreeMap<ClientId, Arc<Client>>>,
    ids: OnceLock<HashMap<&'static str, u16>>,
}

/// The connected clients. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Clients(Arc<Inner>);

impl Clients {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClientId, Arc<Client>>> {
        self.0.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_ids(&self, ids: HashMap<&'static str, u16>) {
        // Set once; a second registry over the same clients would be the same one.
        let _ = self.0.ids.set(ids);
    }

    pub(crate) fn id_of(&self, def: &MessageDef) -> Option<u16> {
        self.0.ids.get()?.get(def.name).copied()
    }

    /// Returns every message with its id, in order of ids.
    pub fn messages(&self) -> Vec<(u16, &'static str)> {
        let ids = self.0.ids.get().into_iter().flatten();
        let mut all: Vec<_> = ids.map(|(name, id)| (*id, *name)).collect();
        all.sort_unstable();
        all
    }

    pub(crate) fn add(&self, client: Arc<Client>) {
        self.lock().insert(client.id(), client);
    }

    pub(crate) fn remove(&self, id: ClientId) {
        self.lock().remove(&id);
    }

    /// Returns true if the client is connected.
    pub fn contains(&self, id: ClientId) -> bool {
        self.lock().contains_key(&id)
    }

    /// Returns all clients.
    pub fn list(&self) -> Vec<ClientInfo> {
        let all: Vec<Arc<Client>> = self.lock().values().cloned().collect();
        let info = |client: Arc<Client>| {
            let (name, requests, events, waiting) = client.info();
            ClientInfo { id: client.id(), name, requests, events, waiting }
        };
        all.into_iter().map(info).collect()
    }

    /// Sends an event to a client. Never waits: a client that does not read its events is
    /// disconnected.
    ///
    /// # Errors
    /// [`Gone`].
    pub fn send<E: Message>(&self, id: ClientId, event: &E) -> Result<(), Gone> {
        let number = self.id_of(E::DEF).ok_or(Gone)?;
        let client = self.lock().get(&id).cloned().ok_or(Gone)?;
        let head = Head { id: number, ..Head::default() };
        match client.event(|out| encode(head, event, out)) {
            true => Ok(()),
            false => Err(Gone),
        }
    }
}

/// Subscribers of an event, each with a filter `F`.
#[derive(Debug)]
pub struct Subscribers<F = ()>(Vec<(ClientId, u32, F)>);

impl<F> Default for Subscribers<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<F: PartialEq> Subscribers<F> {
    /// Handles a `want_…_events` request: adds the client, with the process id that it wants in
    /// events, or removes it. A client may have several filters.
    ///
    /// # Errors
    /// [`Retval::INVALID_REGISTRATION`] if it is registered already, or is not.
    pub fn want(
        &mut self,
        clients: &Clients,
        caller: &Caller,
        on: bool,
        pid: u32,
        filter: F,
    ) -> Result<(), Retval> {
        self.0.retain(|(id, ..)| clients.contains(*id));
        let known = self.0.iter().position(|(id, _, f)| *id == caller.id() && *f == filter);
        match (known, on) {
            (None, true) => self.0.push((caller.id(), pid, filter)),
            (Some(at), false) => drop(self.0.remove(at)),
            _ => return Err(Retval::INVALID_REGISTRATION),
        }
        Ok(())
    }

    /// Removes a client with all its filters.
    pub fn remove(&mut self, client: ClientId) {
        self.0.retain(|(id, ..)| *id != client);
    }

    /// Removes disconnected clients.
    pub fn retain(&mut self, clients: &Clients) {
        self.0.retain(|(id, ..)| clients.contains(*id));
    }

    /// Returns true if there are no subscribers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all process ids, each with a filter.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &F)> {
        self.0.iter().map(|(_, pid, filter)| (*pid, filter))
    }

    /// Notifies all subscribers; `event` makes the event for a process id and filter, or none.
    pub fn notify<E: Message>(&mut self, clients: &Clients, event: impl Fn(u32, &F) -> Option<E>) {
        self.0.retain(|(id, pid, filter)| match event(*pid, filter) {
            Some(event) => clients.send(*id, &event).is_ok(),
            None => true,
        });
    }
}
