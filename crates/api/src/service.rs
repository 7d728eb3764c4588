//! Requests and their handlers.

use crate::client::Client;
use crate::json::Described;
use crate::schema::{Kind, MessageDef, Module};
use crate::wire::{Reader, Truncated, Wire};
use crate::{ClientId, Retval};
use std::marker::PhantomData;
use std::sync::Arc;

/// A message, declared by `#[derive(Message)]`:
///
/// ```
/// use thalweg_api::{Message, types::InterfaceIndex};
///
/// /// Sets an interface's MTUs.
/// #[derive(Debug, Message)]
/// #[api(request, autoreply)]
/// pub struct SwInterfaceSetMtu {
///     /// The interface.
///     pub sw_if_index: InterfaceIndex,
///     /// MTUs of L3, IPv4, IPv6 and MPLS, in bytes.
///     pub mtu: [u32; 4],
/// }
/// assert_eq!(SwInterfaceSetMtu::DEF.name_crc(), "sw_interface_set_mtu_5cbe85e5");
/// assert_eq!(SwInterfaceSetMtuReply::DEF.name_crc(), "sw_interface_set_mtu_reply_e8d4e804");
/// ```
///
/// `cargo xtask api` writes these for the handlers of features, from VPP's descriptions.
///
/// `#[api(…)]` of the struct holds the kind, which says the leading fields ([`Kind`]), and
/// `autoreply` (declares the reply that has a return value only), `deprecated`, `in_progress`,
/// `status`, `replaced_by`, `vat_help`. A field may have `default = …`, `discriminator = "…"`,
/// `name = "…"` (else its own), and, if it is a `Vec`,
/// `count = "n_paths: u8"`: the field that says how many elements follow, which stands before the
/// `Vec` or before the field that `at = "…"` names.
pub trait Message: Sized + 'static {
    /// Name, fields and options.
    const DEF: &'static MessageDef;
    /// Appends the fields after those of the kind.
    fn encode_body(&self, out: &mut Vec<u8>);
    /// Reads the fields after those of the kind.
    ///
    /// # Errors
    /// [`Truncated`] if they are incomplete.
    fn decode_body(input: &mut Reader<'_>) -> Result<Self, Truncated>;
}

/// Header values of a message, before its own fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Message id.
    pub id: u16,
    /// Correlates a reply with its request.
    pub context: u32,
    /// Return value of the request.
    pub retval: i32,
}

/// Appends a message, preceded by 16 bytes of framing.
pub fn encode<M: Message>(head: Head, message: &M, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 16]);
    head.id.encode(out);
    match M::DEF.kind {
        Kind::Request => {
            0_u32.encode(out);
            head.context.encode(out);
        }
        Kind::Reply => {
            head.context.encode(out);
            head.retval.encode(out);
        }
        Kind::Details => head.context.encode(out),
        Kind::Event => 0_u32.encode(out),
        Kind::Bare => {}
    }
    message.encode_body(out);
    let length = (out.len() - start - 16) as u32;
    out[start + 8..start + 12].copy_from_slice(&length.to_be_bytes());
}

/// Ids of the messages that reply to a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ids {
    /// Id of the reply.
    pub reply: u16,
    /// Id of the details message.
    pub details: u16,
}

/// The client that sent a request.
#[derive(Clone, Debug)]
pub struct Caller {
    pub(crate) client: Arc<Client>,
    pub(crate) context: u32,
    pub(crate) ids: Ids,
}

impl Caller {
    /// Returns the client's id.
    pub fn id(&self) -> ClientId {
        self.client.id()
    }

    fn send<M: Message>(&self, id: u16, retval: i32, message: &M) {
        let head = Head { id, context: self.context, retval };
        self.client.answer(|out| encode(head, message, out));
    }
}

/// Sends the details of a dump.
pub struct Details<D> {
    caller: Caller,
    kind: PhantomData<fn(D)>,
}

impl<D: Message> Details<D> {
    /// Sends one details message.
    pub fn send(&mut self, details: &D) {
        self.caller.send(self.caller.ids.details, 0, details);
    }

    /// Returns true if so much output is pending that the rest should come later.
    pub fn is_full(&self) -> bool {
        self.caller.client.is_full()
    }
}

/// Sends a reply later. The client's next request waits for it.
pub struct Later<R: Message + Default> {
    caller: Option<Caller>,
    kind: PhantomData<fn(R)>,
}

impl<R: Message + Default> Later<R> {
    fn new(caller: Caller) -> Self {
        Self { caller: Some(caller), kind: PhantomData }
    }

    /// Sends the reply.
    pub fn answer(mut self, retval: i32, reply: &R) {
        self.finish(retval, reply);
    }

    /// Sends the reply from a thread of its own, as making and encoding a long one takes time.
    pub fn answer_aside(mut self, retval: i32, reply: impl FnOnce() -> R + Send + 'static) {
        let Some(caller) = self.caller.take() else { return };
        let Caller { client, context, ids } = caller.clone();
        let answer = move || {
            let mut bytes = Vec::new();
            encode(Head { id: ids.reply, context, retval }, &reply(), &mut bytes);
            client.answer_encoded(bytes);
            client.answered();
        };
        let thread = std::thread::Builder::new().name("api answer".into());
        if let Err(error) = thread.spawn(answer) {
            tracing::warn!("{}: no thread for a long reply: {error}", caller.client.label());
            self.caller = Some(caller);
            self.finish(Retval::UNSPECIFIED.0, &R::default());
        }
    }

    /// Returns true if the client is gone, so that no reply is needed.
    pub fn is_gone(&self) -> bool {
        self.caller.as_ref().is_none_or(|caller| caller.client.is_gone())
    }

    fn finish(&mut self, retval: i32, reply: &R) {
        if let Some(caller) = self.caller.take() {
            caller.send(caller.ids.reply, retval, reply);
            caller.client.answered();
        }
    }
}

impl<R: Message + Default> Drop for Later<R> {
    fn drop(&mut self) {
        self.finish(Retval::UNSPECIFIED.0, &R::default());
    }
}

/// Remaining work of a request.
pub enum Rest<C> {
    /// Nothing.
    Nothing,
    /// The reply comes by [`Later`].
    Later,
    /// More details: to be called while the client has room for them, until it returns false.
    Walk(Walk<C>),
}

/// Continues a dump; returns false at its end.
pub type Walk<C> = Box<dyn FnMut(&mut C) -> bool>;

/// Number of details that are made before checking for room.
const AT_ONCE: usize = 32;

/// Returns a dump that calls `send` for each key.
pub fn walk_each<C, K: 'static, D: Message>(
    keys: Vec<K>,
    mut out: Details<D>,
    mut send: impl FnMut(&mut C, K, &mut Details<D>) + 'static,
) -> Walk<C> {
    let mut keys = keys.into_iter();
    Box::new(move |c| {
        keys.by_ref().take(AT_ONCE).for_each(|key| send(c, key, &mut out));
        keys.len() > 0
    })
}

/// A request with its handler, over the main thread's state `C`.
pub trait Service<C>: Sync {
    /// Returns the module that describes it.
    fn module(&self) -> &'static Module;
    /// Returns its messages.
    fn described(&self) -> Described;
    /// Handles a request with the own fields `body`.
    ///
    /// # Errors
    /// [`Truncated`]: nothing was done, and no reply sent.
    fn begin(&self, cx: &mut C, caller: Caller, body: &[u8]) -> Result<Rest<C>, Truncated>;
    /// Reads a request's own fields and writes them again, for tests.
    ///
    /// # Errors
    /// [`Truncated`].
    fn echo(&self, body: &[u8]) -> Result<Vec<u8>, Truncated>;
}

fn echo<Rq: Message>(body: &[u8]) -> Result<Vec<u8>, Truncated> {
    let mut out = Vec::new();
    Rq::decode_body(&mut Reader::new(body))?.encode_body(&mut out);
    Ok(out)
}

/// A request with one reply.
pub struct Call<C, Rq, Rp: Message + Default> {
    module: &'static Module,
    handler: CallHandler<C, Rq, Rp>,
    events: &'static [&'static MessageDef],
}

enum CallHandler<C, Rq, Rp: Message + Default> {
    Plain(fn(&mut C, Rq) -> Result<Rp, Retval>),
    Known(fn(&mut C, &Caller, Rq) -> Result<Rp, Retval>),
    Later(fn(&mut C, Rq, Later<Rp>)),
}

impl<C, Rq, Rp: Message + Default> Call<C, Rq, Rp> {
    /// Creates a request with an immediate reply. If it fails, the reply's fields are their
    /// defaults.
    pub const fn new(
        module: &'static Module,
        handler: fn(&mut C, Rq) -> Result<Rp, Retval>,
    ) -> Self {
        Self { module, handler: CallHandler::Plain(handler), events: &[] }
    }

    /// Creates a request for a handler that needs to know the client.
    pub const fn known(
        module: &'static Module,
        handler: fn(&mut C, &Caller, Rq) -> Result<Rp, Retval>,
    ) -> Self {
        Self { module, handler: CallHandler::Known(handler), events: &[] }
    }

    /// Creates a request whose reply takes time.
    pub const fn later(module: &'static Module, handler: fn(&mut C, Rq, Later<Rp>)) -> Self {
        Self { module, handler: CallHandler::Later(handler), events: &[] }
    }

    /// Declares events that the client may receive after this request.
    pub const fn with_events(self, events: &'static [&'static MessageDef]) -> Self {
        Self { module: self.module, handler: self.handler, events }
    }
}

impl<C, Rq: Message, Rp: Message + Default> Service<C> for Call<C, Rq, Rp> {
    fn module(&self) -> &'static Module {
        self.module
    }

    fn described(&self) -> Described {
        let (request, reply) = (Rq::DEF, Some(Rp::DEF));
        Described { request, reply, details: None, events: self.events }
    }

    fn begin(&self, cx: &mut C, caller: Caller, body: &[u8]) -> Result<Rest<C>, Truncated> {
        let request = Rq::decode_body(&mut Reader::new(body))?;
        let reply = match self.handler {
            CallHandler::Plain(handler) => handler(cx, request),
            CallHandler::Known(handler) => handler(cx, &caller, request),
            CallHandler::Later(handler) => {
                handler(cx, request, Later::new(caller));
                return Ok(Rest::Later);
            }
        };
        match reply {
            Ok(reply) => caller.send(caller.ids.reply, 0, &reply),
            Err(retval) => caller.send(caller.ids.reply, retval.0, &Rp::default()),
        }
        Ok(Rest::Nothing)
    }

    fn echo(&self, body: &[u8]) -> Result<Vec<u8>, Truncated> {
        echo::<Rq>(body)
    }
}

/// A request with any number of details; the client asks for a `control_ping_reply` to end them.
pub struct Dump<C, Rq, D> {
    module: &'static Module,
    handler: DumpHandler<C, Rq, D>,
}

enum DumpHandler<C, Rq, D> {
    Whole(fn(&mut C, Rq, &mut Details<D>)),
    Slices(fn(&mut C, Rq, Details<D>) -> Walk<C>),
}

impl<C, Rq, D> Dump<C, Rq, D> {
    /// Creates a dump that is made at once.
    pub const fn new(module: &'static Module, handler: fn(&mut C, Rq, &mut Details<D>)) -> Self {
        Self { module, handler: DumpHandler::Whole(handler) }
    }

    /// Creates a long dump, which is made in slices as fast as the client reads.
    pub const fn slices(
        module: &'static Module,
        handler: fn(&mut C, Rq, Details<D>) -> Walk<C>,
    ) -> Self {
        Self { module, handler: DumpHandler::Slices(handler) }
    }
}

impl<C, Rq: Message, D: Message> Service<C> for Dump<C, Rq, D> {
    fn module(&self) -> &'static Module {
        self.module
    }

    fn described(&self) -> Described {
        Described { request: Rq::DEF, reply: None, details: Some(D::DEF), events: &[] }
    }

    fn begin(&self, cx: &mut C, caller: Caller, body: &[u8]) -> Result<Rest<C>, Truncated> {
        let request = Rq::decode_body(&mut Reader::new(body))?;
        let mut details = Details { caller, kind: PhantomData };
        match self.handler {
            DumpHandler::Whole(handler) => {
                handler(cx, request, &mut details);
                Ok(Rest::Nothing)
            }
            DumpHandler::Slices(handler) => Ok(Rest::Walk(handler(cx, request, details))),
        }
    }

    fn echo(&self, body: &[u8]) -> Result<Vec<u8>, Truncated> {
        echo::<Rq>(body)
    }
}

/// A request with details and a final reply, which contains a cursor.
pub struct Stream<C, Rq, D, Rp> {
    module: &'static Module,
    handler: StreamHandler<C, Rq, D, Rp>,
}

/// Sends details and returns the reply and its return value, [`Retval::EAGAIN`] if there is more.
pub type StreamHandler<C, Rq, D, Rp> = fn(&mut C, Rq, &mut Details<D>) -> (i32, Rp);

impl<C, Rq, D, Rp> Stream<C, Rq, D, Rp> {
    /// Creates a stream. The handler stops when [`Details::is_full`] returns true.
    pub const fn new(module: &'static Module, handler: StreamHandler<C, Rq, D, Rp>) -> Self {
        Self { module, handler }
    }
}

impl<C, Rq: Message, D: Message, Rp: Message> Service<C> for Stream<C, Rq, D, Rp> {
    fn module(&self) -> &'static Module {
        self.module
    }

    fn described(&self) -> Described {
        let (reply, details) = (Some(Rp::DEF), Some(D::DEF));
        Described { request: Rq::DEF, reply, details, events: &[] }
    }

    fn begin(&self, cx: &mut C, caller: Caller, body: &[u8]) -> Result<Rest<C>, Truncated> {
        let request = Rq::decode_body(&mut Reader::new(body))?;
        let mut details = Details { caller: caller.clone(), kind: PhantomData };
        let (retval, reply) = (self.handler)(cx, request, &mut details);
        caller.send(caller.ids.reply, retval, &reply);
        Ok(Rest::Nothing)
    }

    fn echo(&self, body: &[u8]) -> Result<Vec<u8>, Truncated> {
        echo::<Rq>(body)
    }
}

/// [`Stream`] with details that take time. The client's next request waits for the reply.
pub struct LateStream<C, Rq, D, Rp: Message + Default> {
    module: &'static Module,
    handler: fn(&mut C, Rq, Details<D>, Later<Rp>),
}

impl<C, Rq, D, Rp: Message + Default> LateStream<C, Rq, D, Rp> {
    /// Creates a stream. The handler stops when [`Details::is_full`] returns true.
    pub const fn new(
        module: &'static Module,
        handler: fn(&mut C, Rq, Details<D>, Later<Rp>),
    ) -> Self {
        Self { module, handler }
    }
}

impl<C, Rq: Message, D: Message, Rp: Message + Default> Service<C> for LateStream<C, Rq, D, Rp> {
    fn module(&self) -> &'static Module {
        self.module
    }

    fn described(&self) -> Described {
        let (reply, details) = (Some(Rp::DEF), Some(D::DEF));
        Described { request: Rq::DEF, reply, details, events: &[] }
    }

    fn begin(&self, cx: &mut C, caller: Caller, body: &[u8]) -> Result<Rest<C>, Truncated> {
        let request = Rq::decode_body(&mut Reader::new(body))?;
        let details = Details { caller: caller.clone(), kind: PhantomData };
        (self.handler)(cx, request, details, Later::new(caller));
        Ok(Rest::Later)
    }

    fn echo(&self, body: &[u8]) -> Result<Vec<u8>, Truncated> {
        echo::<Rq>(body)
    }
}
