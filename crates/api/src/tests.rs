//! The server over real sockets, with a main thread of its own and services for the tests.

use crate::memclnt::{SockclntCreateReply, SockclntDeleteReply};
use crate::schema::{MessageDef, Module};
use crate::server::{Limits, Server, ServerConfig};
use crate::types::InterfaceIndex;
use crate::wire::{Reader, Wire};
use crate::{
    Call, Caller, Clients, Details, Dump, Hub, Job, Later, Message, Registry, Retval, Service,
    Stream, Subscribers, Walk,
};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

static MODULE: Module = Module { name: "test", folder: "plugins", version: "1.2.3" };

#[derive(Debug, Message)]
#[api(request)]
struct Double {
    n: u32,
}
#[derive(Debug, Default, Message)]
#[api(reply)]
struct DoubleReply {
    twice: u32,
    sw_if_index: InterfaceIndex,
}
#[derive(Debug, Message)]
#[api(request)]
struct NumberDump {
    up_to: u32,
}
#[derive(Debug, Message)]
#[api(details)]
struct NumberDetails {
    n: u32,
    filler: [u8; 100],
}
#[derive(Debug, Message)]
#[api(request)]
struct NumberGet {
    cursor: u32,
}
#[derive(Debug, Message)]
#[api(reply)]
struct NumberGetReply {
    cursor: u32,
}
#[derive(Debug, Message)]
#[api(request, autoreply)]
struct Sleep {
    milliseconds: u32,
}
#[derive(Debug, Message)]
#[api(request, autoreply)]
struct WantNumberEvents {
    enable: bool,
    pid: u32,
}
#[derive(Debug, Message)]
#[api(event)]
struct NumberEvent {
    pid: u32,
    filler: [u8; 1000],
}
#[derive(Debug, Message)]
#[api(request, autoreply)]
struct Notify {
    times: u32,
}

/// The main thread's state.
struct Main {
    clients: Clients,
    subscribers: Subscribers,
}

static DOUBLE: Call<Main, Double, DoubleReply> = Call::new(&MODULE, |_, rq| {
    let twice = rq.n.checked_mul(2).ok_or(Retval::INVALID_VALUE)?;
    Ok(DoubleReply { twice, sw_if_index: InterfaceIndex(1) })
});
static DUMP: Dump<Main, NumberDump, NumberDetails> = Dump::slices(&MODULE, numbers);
static GET: Stream<Main, NumberGet, NumberDetails, NumberGetReply> =
    Stream::new(&MODULE, |_, rq, out| {
        let next = rq.cursor + 3;
        (rq.cursor..next).for_each(|n| out.send(&NumberDetails { n, filler: [0; 100] }));
        match next < 9 {
            true => (Retval::EAGAIN.0, NumberGetReply { cursor: next }),
            false => (0, NumberGetReply { cursor: u32::MAX }),
        }
    });
static SLEEP: Call<Main, Sleep, SleepReply> = Call::later(&MODULE, |_, rq, later| {
    std::thread::spawn(move || {
        // Paced: the request says for how long.
        std::thread::sleep(Duration::from_millis(rq.milliseconds.into()));
        match rq.milliseconds {
            // Dropped, as by a task that was cancelled.
            0 => drop::<Later<SleepReply>>(later),
            _ => later.answer(0, &SleepReply),
        }
    });
});
static WANT: Call<Main, WantNumberEvents, WantNumberEventsReply> =
    Call::known(&MODULE, want).with_events(&[NumberEvent::DEF]);
static NOTIFY: Call<Main, Notify, NotifyReply> = Call::new(&MODULE, |main, rq| {
    for _ in 0..rq.times {
        let event = |pid, (): &()| Some(NumberEvent { pid, filler: [0; 1000] });
        main.subscribers.notify(&main.clients, event);
    }
    if main.subscribers.is_empty() { Err(Retval::NO_SUCH_ENTRY) } else { Ok(NotifyReply) }
});

fn want(
    main: &mut Main,
    caller: &Caller,
    rq: WantNumberEvents,
) -> Result<WantNumberEventsReply, Retval> {
    main.subscribers.want(&main.clients, caller, rq.enable, rq.pid, ())?;
    Ok(WantNumberEventsReply)
}

fn numbers(_: &mut Main, rq: NumberDump, mut out: Details<NumberDetails>) -> Walk<Main> {
    let mut next = 0;
    Box::new(move |_| {
        while next < rq.up_to && !out.is_full() {
            out.send(&NumberDetails { n: next, filler: [0; 100] });
            next += 1;
        }
        next < rq.up_to
    })
}

fn registry() -> Registry<Main> {
    let services: [&'static dyn Service<Main>; 6] = [&DOUBLE, &DUMP, &GET, &SLEEP, &WANT, &NOTIFY];
    Registry::new(services).unwrap()
}

/// A server with its main thread.
struct World {
    server: Option<Server>,
    clients: Clients,
    main: Option<JoinHandle<()>>,
    dir: tempfile::TempDir,
}

impl World {
    fn new(limits: Limits) -> World {
        let dir = tempfile::tempdir().unwrap();
        let (jobs, inbox) = mpsc::channel::<Job>();
        let clients = Clients::default();
        let copy = clients.clone();
        let main = std::thread::spawn(move || {
            let mut hub = Hub::new(registry(), copy.clone());
            let mut main = Main { clients: copy, subscribers: Subscribers::default() };
            while let Ok(job) = inbox.recv() {
                hub.serve(&mut main, job);
            }
        });
        let config = ServerConfig { limits, ..ServerConfig::at(dir.path().join("api.sock")) };
        let dispatch = move |job| jobs.send(job).is_ok();
        let server = Server::start(config, clients.clone(), dispatch).unwrap();
        World { server: Some(server), clients, main: Some(main), dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("api.sock")
    }

    fn raw(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    fn client(&self) -> Client {
        // A busy machine may keep it silent for longer than the server's patience.
        let mut attempts = (0..100).map(|_| Client::introduce(self.raw()));
        attempts.find_map(|client| client).expect("a client in time")
    }

    fn wait_for_clients(&self, n: usize) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.clients.list().len() != n {
            assert!(Instant::now() < end, "{:?}", self.clients.list());
            std::thread::yield_now();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.server.take());
        // The last client's links keep the main thread's queue open.
        if let Some(main) = self.main.take() {
            main.join().unwrap();
        }
        assert!(!self.path().exists());
    }
}

/// A client that has received the table of messages.
struct Client {
    stream: UnixStream,
    table: Vec<(u16, String)>,
}

fn frame(body: &[u8]) -> Vec<u8> {
    let mut framed = vec![0; 16];
    framed[8..12].copy_from_slice(&(body.len() as u32).to_be_bytes());
    framed.extend_from_slice(body);
    framed
}

fn receive(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut head = [0; 16];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes(head[8..12].try_into().unwrap());
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

impl Client {
    /// Introduces itself; `None` if the server has ended the connection.
    fn introduce(mut stream: UnixStream) -> Option<Client> {
        let mut body = vec![0, 15, 0, 0, 0, 124];
        body.extend_from_slice(b"tester");
        body.resize(70, 0);
        stream.write_all(&frame(&body)).ok()?;
        let reply = receive(&mut stream)?;
        assert_eq!(reply[..2], [0, 16]);
        let reply = SockclntCreateReply::decode_body(&mut Reader::new(&reply[2..])).unwrap();
        assert_eq!((reply.context, reply.response), (124, 0));
        assert!(reply.index > 1 << 31);
        let table = reply.message_table.iter();
        let table = table.map(|e| (e.index, e.name.as_str().to_owned())).collect();
        Some(Client { stream, table })
    }

    fn id(&self, def: &MessageDef) -> u16 {
        let name = def.name_crc();
        self.table.iter().find(|(_, n)| *n == name).unwrap_or_else(|| panic!("no {name}")).0
    }

    fn request<M: Message>(&self, context: u32, message: &M) -> Vec<u8> {
        let mut bytes = Vec::new();
        let head = crate::Head { id: self.id(M::DEF), context, retval: 0 };
        crate::encode(head, message, &mut bytes);
        bytes
    }

    fn send<M: Message>(&mut self, context: u32, message: &M) {
        let bytes = self.request(context, message);
        self.stream.write_all(&bytes).unwrap();
    }

    /// Returns id, context and the rest of the next message.
    fn next(&mut self) -> Option<(u16, u32, Vec<u8>)> {
        let body = receive(&mut self.stream)?;
        let mut input = Reader::new(&body);
        let id = u16::decode(&mut input).unwrap();
        let context = u32::decode(&mut input).unwrap();
        Some((id, context, body[6..].to_vec()))
    }

    fn ping(&mut self, context: u32) {
        self.send(context, &crate::memclnt::ControlPing);
        let (id, got, rest) = self.next().unwrap();
        assert_eq!((id, got), (24, context));
        assert_eq!(rest[..4], [0; 4]);
    }

    fn double(&mut self, n: u32) -> (i32, u32, u32) {
        self.send(7, &Double { n });
        let (id, context, rest) = self.next().unwrap();
        assert_eq!((id, context), (self.id(DoubleReply::DEF), 7));
        let mut input = Reader::new(&rest);
        let retval = i32::decode(&mut input).unwrap();
        let reply = DoubleReply::decode_body(&mut input).unwrap();
        (retval, reply.twice, reply.sw_if_index.0)
    }
}

fn short() -> Limits {
    Limits { patience: Duration::from_millis(50), ..Limits::default() }
}

#[test]
fn requests_are_answered_in_order() {
    let world = World::new(Limits::default());
    let mode = std::fs::metadata(world.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let mut client = world.client();
    client.ping(1);
    assert_eq!(client.double(21), (0, 42, 1));
    assert_eq!(client.double(u32::MAX), (Retval::INVALID_VALUE.0, 0, u32::MAX));
    // A late reply does not let the next request overtake.
    let mut all = client.request(1, &Sleep { milliseconds: 20 });
    all.extend(client.request(2, &Sleep { milliseconds: 0 }));
    all.extend(client.request(3, &Double { n: 1 }));
    client.stream.write_all(&all).unwrap();
    let answers: Vec<_> = (0..3).map(|_| client.next().unwrap()).collect();
    assert_eq!(answers.iter().map(|a| a.1).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(answers[1].2, Retval::UNSPECIFIED.0.to_be_bytes());
    assert_eq!(world.clients.list()[0].name, "tester");
}

#[test]
fn a_dump_longer_than_all_buffers_ends_with_the_ping() {
    let world = World::new(Limits { answers: 10_000, ..Limits::default() });
    let mut client = world.client();
    client.send(5, &NumberDump { up_to: 20_000 });
    client.send(5, &crate::memclnt::ControlPing);
    let details = client.id(NumberDetails::DEF);
    for n in 0..20_000_u32 {
        let (id, context, rest) = client.next().unwrap();
        assert_eq!((id, context, &rest[..4]), (details, 5, &n.to_be_bytes()[..]));
    }
    assert_eq!(client.next().unwrap().0, 24);
}

#[test]
fn a_slow_reader_does_not_disturb_others() {
    let world = World::new(Limits { answers: 10_000, events: 50_000, ..Limits::default() });
    let mut lazy = world.client();
    lazy.send(1, &NumberDump { up_to: u32::MAX });
    let mut subscriber = world.client();
    subscriber.send(1, &WantNumberEvents { enable: true, pid: 9 });
    subscriber.next().unwrap();
    subscriber.send(1, &WantNumberEvents { enable: true, pid: 9 });
    let again = subscriber.next().unwrap();
    assert_eq!(again.2, Retval::INVALID_REGISTRATION.0.to_be_bytes());
    let mut other = world.client();
    other.send(1, &Notify { times: 10_000 });
    assert_eq!(other.next().unwrap().2, Retval::NO_SUCH_ENTRY.0.to_be_bytes());
    // The subscriber was disconnected, with or without what it had not read before.
    while let Some((id, ..)) = subscriber.next() {
        assert_eq!(id, subscriber.id(NumberEvent::DEF));
    }
    world.wait_for_clients(2);
    other.ping(2);
    drop(lazy);
    world.wait_for_clients(1);
}

#[test]
fn events_arrive_and_end() {
    let world = World::new(Limits::default());
    let mut client = world.client();
    client.send(1, &WantNumberEvents { enable: true, pid: 77 });
    client.next().unwrap();
    client.send(2, &Notify { times: 1 });
    let (id, _, rest) = client.next().unwrap();
    assert_eq!((id, &rest[..4]), (client.id(NumberEvent::DEF), &77_u32.to_be_bytes()[..]));
    assert_eq!(client.next().unwrap().1, 2);
    client.send(3, &WantNumberEvents { enable: false, pid: 77 });
    assert_eq!(client.next().unwrap().2, [0; 4]);
    client.send(4, &Notify { times: 1 });
    assert_eq!(client.next().unwrap().2, Retval::NO_SUCH_ENTRY.0.to_be_bytes());
}

#[test]
fn a_stream_goes_on_at_its_cursor() {
    let world = World::new(Limits::default());
    let mut client = world.client();
    let (mut cursor, mut seen) = (0, 0);
    while cursor != u32::MAX {
        client.send(1, &NumberGet { cursor });
        let reply = loop {
            let (id, _, rest) = client.next().unwrap();
            if id == client.id(NumberGetReply::DEF) {
                break rest;
            }
            seen += 1;
        };
        let eagain = reply[..4] == Retval::EAGAIN.0.to_be_bytes();
        cursor = u32::from_be_bytes(reply[4..8].try_into().unwrap());
        assert_eq!(eagain, cursor != u32::MAX);
    }
    assert_eq!(seen, 9);
}

#[test]
fn nonsense_is_ignored_or_ends_the_connection() {
    let world = World::new(Limits::default());
    let mut client = world.client();
    // Unknown, a reply's, too short: no reply, and the connection survives.
    for body in [&[0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0][..], &[0, 24, 0, 0], &[0], &[], &[0, 23]] {
        client.stream.write_all(&frame(body)).unwrap();
    }
    let mut truncated = client.request(1, &Double { n: 1 });
    truncated.truncate(truncated.len() - 1);
    truncated[11] -= 1;
    client.stream.write_all(&truncated).unwrap();
    client.ping(3);
    // A message received byte by byte is like any other.
    for byte in client.request(4, &Double { n: 4 }) {
        client.stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(client.next().unwrap().1, 4);
    // A length of 4 GiB.
    client.stream.write_all(&[0xff; 16]).unwrap();
    assert!(client.next().is_none());
    world.wait_for_clients(0);
    // Requests before `sockclnt_create` are ignored.
    let mut nameless = world.raw();
    nameless.write_all(&frame(&[0, 23, 0, 0, 0, 0, 0, 0, 0, 1])).unwrap();
    nameless.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(receive(&mut nameless).is_none());
}

#[test]
fn silence_ends_a_connection_that_owes_something() {
    let world = World::new(short());
    let mut client = world.client();
    let (mut half, mut nameless) = (world.client(), world.raw());
    half.stream.write_all(&[0; 10]).unwrap();
    assert!(half.next().is_none() && receive(&mut nameless).is_none());
    // A client without pending work may be silent.
    world.wait_for_clients(1);
    client.ping(1);
}

#[test]
fn a_client_takes_leave() {
    let world = World::new(Limits::default());
    let mut client = world.client();
    let mut bytes = vec![0, 17, 0, 0, 0, 0, 0, 0, 0, 8];
    bytes.extend_from_slice(&[0; 4]);
    client.stream.write_all(&frame(&bytes)).unwrap();
    let (id, context, rest) = client.next().unwrap();
    let reply = SockclntDeleteReply::decode_body(&mut Reader::new(&rest)).unwrap();
    assert_eq!((id, context, reply.response), (18, 8, 1));
    assert!(client.next().is_none());
    world.wait_for_clients(0);
}

#[test]
fn requests_before_the_end_are_answered() {
    let world = World::new(Limits::default());
    let mut client = world.client();
    client.send(1, &Sleep { milliseconds: 20 });
    client.send(2, &Double { n: 2 });
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!((client.next().unwrap().1, client.next().unwrap().1), (1, 2));
    assert!(client.next().is_none());
}

#[test]
fn many_clients_at_once_and_some_die() {
    let world = World::new(Limits { clients: 64, root_clients: 0, ..Limits::default() });
    let mut clients: Vec<Client> = (0..64).map(|_| world.client()).collect();
    let mut refused = world.raw();
    assert!(receive(&mut refused).is_none());
    for (n, client) in clients.iter_mut().enumerate() {
        client.send(n as u32, &NumberDump { up_to: 1000 });
    }
    // Every other one disconnects in the middle of its dump.
    let mut kept = Vec::new();
    for (n, client) in clients.into_iter().enumerate() {
        if n % 2 == 0 {
            kept.push((n as u32, client));
        }
    }
    for (n, client) in &mut kept {
        for _ in 0..1000 {
            assert_eq!(client.next().unwrap().1, *n);
        }
        client.ping(1);
    }
    world.wait_for_clients(32);
}

#[test]
fn root_finds_room_among_idle_clients() {
    let world = World::new(Limits { clients: 1, root_clients: 1, ..Limits::default() });
    let mut idle = world.client();
    if !rustix::process::getuid().is_root() {
        assert!(receive(&mut world.raw()).is_none());
        return idle.ping(1);
    }
    // A client with the table was counted: only then does the wait see it leave.
    drop(world.client());
    world.wait_for_clients(1);
    world.client().ping(2);
    world.wait_for_clients(1);
    idle.ping(3);
}

#[test]
fn descriptions_and_ids_are_available() {
    let world = World::new(Limits::default());
    let mut client = world.client();
    client.send(1, &crate::memclnt::GetApiJson);
    let (id, _, rest) = client.next().unwrap();
    assert_eq!(id, 28);
    let json = String::decode(&mut Reader::new(&rest[4..])).unwrap();
    let all: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&all[0]["module"], &all[1]["module"]), (&"memclnt".into(), &"test".into()));
    assert_eq!(all[1]["services"]["want_number_events"]["events"][0], "number_event");
    assert_eq!(all[1]["services"]["number_dump"]["stream"], true);
    assert_eq!(all[1]["services"]["number_get"]["stream_msg"], "number_details");
    client.send(1, &crate::memclnt::GetFirstMsgId { name: "test_01234567".into() });
    let (_, _, rest) = client.next().unwrap();
    assert_eq!(rest, [0, 0, 0, 0, 0, 29]);
    client.send(1, &crate::memclnt::ApiVersions);
    let (_, _, rest) = client.next().unwrap();
    assert_eq!(rest[4..8], [0, 0, 0, 2]);
    let dir = tempfile::tempdir().unwrap();
    let written = crate::write_json(&registry(), dir.path()).unwrap();
    assert!(written[0].ends_with("core/memclnt.api.json"), "{written:?}");
    assert!(written[1].ends_with("plugins/test.api.json"), "{written:?}");
}

#[test]
fn one_socket_has_one_server() {
    let world = World::new(Limits::default());
    let start = |path: PathBuf| {
        Server::start(ServerConfig::at(path), Clients::default(), |_| true).map(drop)
    };
    assert!(start(world.path()).unwrap_err().to_string().contains("in use"));
    let file = world.dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(start(file).unwrap_err().to_string().contains("is not a socket"));
    let services: [&'static dyn Service<Main>; 2] = [&DOUBLE, &DOUBLE];
    assert!(Registry::new(services).is_err());
}
