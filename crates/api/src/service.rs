//! Requests and who handles them.

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
/// `#[api(…)]` of the struct holds the kind, which says the leading fields ([`Kind`]), and
/// `autoreply` (declares the reply that has a return value only), `name = "…"` (else the struct's
/// in snake case), `deprecated`, `in_progress`, `status`, `replaced_by`, `vat_help`. A field may
/// have `default = …`, `discriminator = "…"`, `name = "…"`, and, if it is a `Vec`,
/// `count = "n_paths: u8"`: the field that says how many elements follow, which stands before the
/// `Vec` or before the field that `at = "…"` names.
pub trait Message: Sized + 'static {
    /// Name, fields and options.
    const DEF: &'static MessageDef;
    /// Appends the fields behind those of the kind.
    fn encode_body(&self, out: &mut Vec<u8>);
    /// Reads the fields behind those of the kind.
    ///
    /// # Errors
    /// [`Truncated`] if they are not there as a whole.
    fn decode_body(input: &mut Reader<'_>) -> Result<Self, Truncated>;
}

/// What stands between the length and the fields of a message's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The message's number.
    pub id: u16,
    /// Says which request this is or answers.
    pub context: u32,
    /// How the request ended.
    pub retval: i32,
}

/// Appends a message with the 16 bytes of framing before it.
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

/// Numbers of the messages that answer a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ids {
    /// Of the reply.
    pub reply: u16,
    /// Of the details.
    pub details: u16,
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    pub(crate) client: Arc<Client>,
    pub(crate) context: u32,
    pub(crate) ids: Ids,
}

impl Caller {
    /// The client.
    pub fn id(&self) -> ClientId {
        self.client.id()
    }

    fn send<M: Message>(&self, id: u16, retval: i32, message: &M) {
        let head = Head { id, context: self.context, retval };
        self.client.answer(|out| encode(head, message, out));
    }
}

/// Takes the details of a dump.
pub struct Details<D> {
    caller: Caller,
    kind: PhantomData<fn(D)>,
}

impl<D: Message> Details<D> {
    /// Sends one.
    pub fn send(&mut self, details: &D) {
        self.caller.send(self.caller.ids.details, 0, details);
    }

    /// Whether so much waits to be read by the client that the rest should come later.
    pub fn is_full(&self) -> bool {
        self.caller.client.is_full()
    }
}

/// The way back for an answer that comes later. The client's next request waits for it.
pub struct Later<R: Message + Default> {
    caller: Option<Caller>,
    kind: PhantomData<fn(R)>,
}

impl<R: Message + Default> Later<R> {
    fn new(caller: Caller) -> Self {
        Self { caller: Some(caller), kind: PhantomData }
    }

    /// Answers.
    pub fn answer(mut self, retval: i32, reply: &R) {
        self.finish(retval, reply);
    }

    /// Answers from a thread of its own, as making a long answer and putting it into bytes takes time.
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
            tracing::warn!("{}: no thread for a long answer: {error}", caller.client.label());
            self.caller = Some(caller);
            self.finish(Retval::UNSPECIFIED.0, &R::default());
        }
    }

    /// Whether the client is gone, so that no answer is needed.
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

/// What is left to do of a request.
pub enum Rest<C> {
    /// Nothing.
    Nothing,
    /// The answer comes by [`Later`].
    Later,
    /// More details: to be called while the client has room for them, until it returns false.
    Walk(Walk<C>),
}

/// Goes on with a dump; false at its end.
pub type Walk<C> = Box<dyn FnMut(&mut C) -> bool>;

/// Details that are made before it is looked whether there is room for more.
const AT_ONCE: usize = 32;

/// A dump that sends what `send` makes of each key.
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
    /// The module that describes it.
    fn module(&self) -> &'static Module;
    /// Its messages.
    fn described(&self) -> Described;
    /// Carries a request out, whose own fields are `body`.
    ///
    /// # Errors
    /// [`Truncated`]: nothing was done or answered.
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

/// A request that one reply answers.
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
    /// A request that is answered at once. If it fails, the reply's fields are its defaults.
    pub const fn new(
        module: &'static Module,
        handler: fn(&mut C, Rq) -> Result<Rp, Retval>,
    ) -> Self {
        Self { module, handler: CallHandler::Plain(handler), events: &[] }
    }

    /// The same, for a handler that must know who asks.
    pub const fn known(
        module: &'static Module,
        handler: fn(&mut C, &Caller, Rq) -> Result<Rp, Retval>,
    ) -> Self {
        Self { module, handler: CallHandler::Known(handler), events: &[] }
    }

    /// A request whose answer takes time.
    pub const fn later(module: &'static Module, handler: fn(&mut C, Rq, Later<Rp>)) -> Self {
        Self { module, handler: CallHandler::Later(handler), events: &[] }
    }

    /// After this request, the client may be told of these.
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

/// A request that any number of details answer; the client asks for a `control_ping_reply` behind
/// them.
pub struct Dump<C, Rq, D> {
    module: &'static Module,
    handler: DumpHandler<C, Rq, D>,
}

enum DumpHandler<C, Rq, D> {
    Whole(fn(&mut C, Rq, &mut Details<D>)),
    Slices(fn(&mut C, Rq, Details<D>) -> Walk<C>),
}

impl<C, Rq, D> Dump<C, Rq, D> {
    /// A dump that is made in one go.
    pub const fn new(module: &'static Module, handler: fn(&mut C, Rq, &mut Details<D>)) -> Self {
        Self { module, handler: DumpHandler::Whole(handler) }
    }

    /// A long dump, which is made in slices as fast as the client reads.
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

/// A request that details answer and then one reply, which says where to go on.
pub struct Stream<C, Rq, D, Rp> {
    module: &'static Module,
    handler: StreamHandler<C, Rq, D, Rp>,
}

/// Sends details and answers with the reply and its return value, which is that of
/// [`Retval::EAGAIN`] if there is more.
pub type StreamHandler<C, Rq, D, Rp> = fn(&mut C, Rq, &mut Details<D>) -> (i32, Rp);

impl<C, Rq, D, Rp> Stream<C, Rq, D, Rp> {
    /// A stream. The handler stops where [`Details::is_full`] says so.
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
