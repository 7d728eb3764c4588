//! The main thread's side: handles requests, each client's in order.

use crate::Retval;
use crate::client::{Client, ClientId, Next};
use crate::clients::Clients;
use crate::memclnt::{
    ApiVersionsReply, ControlPingReply, GetApiJsonReply, GetFirstMsgId, GetFirstMsgIdReply,
    MemclntKeepaliveReply, ModuleVersion, SockclntCreate, SockclntCreateReply, SockclntDeleteReply,
};
use crate::registry::Registry;
use crate::service::{Caller, Head, Message, Rest, Walk, encode};
use crate::trace::{Record, Trace};
use crate::wire::{Reader, Truncated, Wire};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time that one client may keep the main thread before other work gets its turn.
const SLICE: Duration = Duration::from_millis(2);

/// Requests of one client are pending; for [`Hub::serve`].
#[derive(Debug)]
pub struct Job(pub(crate) Arc<Client>);

/// Handles requests.
pub struct Hub<C: 'static> {
    registry: Registry<C>,
    clients: Clients,
    /// Running dumps.
    walks: HashMap<ClientId, Walk<C>>,
    json: Option<String>,
    trace: Trace,
    /// The client of replayed requests.
    detached: Option<Arc<Client>>,
}

/// Result of replaying a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// The request was handled, successfully or not.
    Done,
    /// The request does not exist.
    Unknown,
    /// The request is truncated.
    Truncated,
}

/// Bytes before a request's own fields: id, client, context.
const REQUEST_HEAD: usize = 10;

impl<C: 'static> Hub<C> {
    /// Creates a hub that serves the messages of `registry` to `clients`.
    pub fn new(registry: Registry<C>, clients: Clients) -> Self {
        clients.set_ids(registry.ids().clone());
        let (trace, detached) = (Trace::default(), None);
        Self { registry, clients, walks: HashMap::new(), json: None, trace, detached }
    }

    /// Returns the messages.
    pub fn registry(&self) -> &Registry<C> {
        &self.registry
    }

    /// Records requests in this trace, while it is on.
    #[must_use]
    pub fn with_trace(self, trace: Trace) -> Self {
        Self { trace, ..self }
    }

    /// Replays a request of a trace. The reply is discarded, and a dump sends nothing.
    pub fn replay(&mut self, cx: &mut C, record: &Record) -> Replayed {
        let Some(entry) = self.registry.request(&record.name) else { return Replayed::Unknown };
        let client = match &self.detached {
            Some(detached) => detached.clone(),
            None => match Client::detached() {
                Ok(client) => self.detached.insert(Arc::new(client)).clone(),
                // Without descriptors nothing works at all.
                Err(_) => return Replayed::Unknown,
            },
        };
        let caller = Caller { client, context: 0, ids: entry.ids };
        match entry.service.begin(cx, caller, &record.body) {
            Ok(_) => Replayed::Done,
            Err(Truncated) => Replayed::Truncated,
        }
    }

    /// Handles requests of a client: until none is left, or it has to wait, or other work should
    /// have its turn; then another job follows automatically.
    pub fn serve(&mut self, cx: &mut C, job: Job) {
        let client = job.0;
        let end = Instant::now() + SLICE;
        loop {
            if client.is_gone() {
                self.walks.remove(&client.id());
            }
            if let Some(walk) = self.walks.get_mut(&client.id()) {
                if client.block() {
                    break;
                }
                if !walk(cx) {
                    self.walks.remove(&client.id());
                }
            } else {
                match client.next() {
                    Next::Request(message) => self.request(cx, &client, &message),
                    Next::Nothing => break,
                }
            }
            if Instant::now() >= end {
                client.flush();
                client.reschedule();
                return;
            }
        }
        client.rest();
    }

    fn request(&mut self, cx: &mut C, client: &Arc<Client>, message: &[u8]) {
        let Ok(id) = u16::decode(&mut Reader::new(message)) else {
            return client.complain("an empty message");
        };
        let done = match (id, client.is_registered()) {
            (15, _) => self.create(client, message),
            (_, false) => {
                client.complain(format_args!("message {id} before `sockclnt_create'"));
                Ok(())
            }
            (10..=28, true) => self.own(client, id, message),
            _ => self.feature(cx, client, id, message),
        };
        if let Err(Truncated) = done {
            let length = message.len();
            client.complain(format_args!("message {id} is truncated ({length} bytes)"));
        }
    }

    fn create(&self, client: &Arc<Client>, message: &[u8]) -> Result<(), Truncated> {
        let mut input = Reader::new(message.get(2..).unwrap_or_default());
        let context = u32::decode(&mut input)?;
        let name = SockclntCreate::decode_body(&mut input)?.name;
        client.register(name.as_str());
        tracing::debug!("{} connects", client.label());
        let reply = SockclntCreateReply {
            client_index: 0,
            context,
            response: 0,
            index: client.id().0,
            message_table: self.registry.table().to_vec(),
        };
        client.answer(|out| encode(Head { id: 16, context, retval: 0 }, &reply, out));
        Ok(())
    }

    /// Handles requests about the connection itself.
    fn own(&mut self, client: &Arc<Client>, id: u16, message: &[u8]) -> Result<(), Truncated> {
        let (context, body) = split(message)?;
        let head = Head { id: id + 1, context, retval: 0 };
        match id {
            10 => {
                let name = GetFirstMsgId::decode_body(&mut Reader::new(body))?.name;
                let plain = name.as_str().rsplit_once('_').map_or(name.as_str(), |(name, _)| name);
                let mut modules = self.registry.modules();
                let found = modules.find(|(m, _)| m.name == name.as_str() || m.name == plain);
                let retval = if found.is_some() { 0 } else { Retval::INVALID_VALUE.0 };
                let first_msg_id = found.map_or(u16::MAX, |(_, first)| first);
                let (head, reply) = (Head { retval, ..head }, GetFirstMsgIdReply { first_msg_id });
                client.answer(|out| encode(head, &reply, out));
            }
            12 => {
                let api_versions = self.registry.modules().map(|(module, _)| version(module));
                let reply = ApiVersionsReply { api_versions: api_versions.collect() };
                client.answer(|out| encode(head, &reply, out));
            }
            17 => {
                let reply = SockclntDeleteReply { response: 1 };
                client.answer(|out| encode(head, &reply, out));
                client.close(String::new());
            }
            21 => client.answer(|out| encode(head, &MemclntKeepaliveReply, out)),
            23 => {
                let (client_index, vpe_pid) = (client.id().0, std::process::id());
                let reply = ControlPingReply { client_index, vpe_pid };
                client.answer(|out| encode(head, &reply, out));
            }
            27 => {
                let json = self.json.get_or_insert_with(|| {
                    let all = self.registry.describe().into_iter().map(|(_, document)| document);
                    serde_json::Value::from_iter(all).to_string()
                });
                let reply = GetApiJsonReply { json: json.clone() };
                client.answer(|out| encode(head, &reply, out));
            }
            _ => unknown(client, id),
        }
        Ok(())
    }

    fn feature(
        &mut self,
        cx: &mut C,
        client: &Arc<Client>,
        id: u16,
        message: &[u8],
    ) -> Result<(), Truncated> {
        let Some(entry) = self.registry.entry(id) else {
            unknown(client, id);
            return Ok(());
        };
        let (context, body) = split(message)?;
        self.trace.note(client.id(), || entry.service.described().request.name_crc(), body);
        let caller = Caller { client: client.clone(), context, ids: entry.ids };
        // Set before, since the reply may be there before the handler returns.
        client.set_later(true);
        let rest = entry.service.begin(cx, caller, body);
        if !matches!(rest, Ok(Rest::Later)) {
            client.set_later(false);
        }
        if let Rest::Walk(walk) = rest? {
            self.walks.insert(client.id(), walk);
        }
        Ok(())
    }

    /// Returns the clients.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }
}

fn unknown(client: &Client, id: u16) {
    client.complain(format_args!("message {id} is not a request"));
}

fn split(message: &[u8]) -> Result<(u32, &[u8]), Truncated> {
    let (head, body) = message.split_at_checked(REQUEST_HEAD).ok_or(Truncated)?;
    let context = u32::decode(&mut Reader::new(&head[6..]))?;
    Ok((context, body))
}

fn version(module: &crate::schema::Module) -> ModuleVersion {
    let mut numbers = module.version.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    ModuleVersion {
        major: next(),
        minor: next(),
        patch: next(),
        name: format!("{}.api", module.name).as_str().into(),
    }
}
