//! A client of the binary API, served by the test's thread.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use thalweg_api::memclnt::SockclntCreateReply;
use thalweg_api::schema::MessageDef;
use thalweg_api::server::{Server, ServerConfig};
use thalweg_api::wire::Reader;
use thalweg_api::{Clients, Head, Hub, Job, Message, Registry, encode};
use thalweg_device::testing::Lab;
use thalweg_graph::Control;

pub struct Client {
    stream: UnixStream,
    jobs: mpsc::Receiver<Job>,
    hub: Hub<Control>,
    table: Vec<(u16, String)>,
    received: Vec<u8>,
    _server: Server,
    _dir: tempfile::TempDir,
}

impl Client {
    pub fn new(lab: &mut Lab) -> Client {
        let dir = tempfile::tempdir().expect("a directory");
        let (tx, jobs) = mpsc::channel();
        let clients = Clients::default();
        lab.c.insert(clients.clone());
        let services = thalweg_feat_ip::api::SERVICES.iter().copied();
        let hub = Hub::new(Registry::new(services).expect("messages"), clients.clone());
        let path = dir.path().join("api.sock");
        let dispatch = move |job| tx.send(job).is_ok();
        let server = Server::start(ServerConfig::at(&path), clients, dispatch).expect("a server");
        let stream = UnixStream::connect(path).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
        let (table, received) = (Vec::new(), Vec::new());
        let mut client = Client { stream, jobs, hub, table, received, _server: server, _dir: dir };
        let mut hello = vec![0, 15, 0, 0, 0, 124];
        hello.extend_from_slice(b"tester");
        hello.resize(70, 0);
        let mut framed = vec![0; 16];
        framed[11] = 70;
        client.stream.write_all(&[framed, hello].concat()).expect("sent");
        let reply = client.next(lab);
        let reply = SockclntCreateReply::decode_body(&mut Reader::new(&reply[2..]));
        let table = reply.expect("a reply").message_table;
        client.table = table.iter().map(|e| (e.index, e.name.as_str().to_owned())).collect();
        client
    }

    /// The next message.
    fn next(&mut self, lab: &mut Lab) -> Vec<u8> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            while let Ok(job) = self.jobs.try_recv() {
                self.hub.serve(&mut lab.c, job);
            }
            lab.c.run_once(Some(Duration::ZERO));
            if let Some(head) = self.received.first_chunk::<16>() {
                let len = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
                if self.received.len() >= 16 + len {
                    let rest = self.received.split_off(16 + len);
                    return std::mem::replace(&mut self.received, rest).split_off(16);
                }
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(n) => self.received.extend_from_slice(&bytes[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) => panic!("{e}"),
            }
            assert!(Instant::now() < end, "no message");
        }
    }

    fn id(&self, def: &MessageDef) -> u16 {
        let name = def.name_crc();
        self.table.iter().find(|(_, n)| *n == name).unwrap_or_else(|| panic!("no {name}")).0
    }

    fn send<M: Message>(&mut self, message: &M) {
        let mut bytes = Vec::new();
        encode(Head { id: self.id(M::DEF), context: 7, retval: 0 }, message, &mut bytes);
        self.stream.write_all(&bytes).expect("sent");
    }

    /// Return value and reply of a request.
    pub fn call<Rq: Message, Rp: Message>(&mut self, lab: &mut Lab, request: &Rq) -> (i32, Rp) {
        self.send(request);
        let reply = self.next(lab);
        let id = self.id(Rp::DEF).to_be_bytes();
        assert_eq!(reply[..2], id, "another reply");
        let retval = i32::from_be_bytes([reply[6], reply[7], reply[8], reply[9]]);
        (retval, Rp::decode_body(&mut Reader::new(&reply[10..])).expect("a whole reply"))
    }

    /// Details of a request, up to the reply of a call that follows.
    pub fn dump<Rq: Message, D: Message, Last: Message>(
        &mut self,
        lab: &mut Lab,
        request: &Rq,
        last: &Last,
    ) -> Vec<D> {
        self.send(request);
        self.send(last);
        let (id, mut all) = (self.id(D::DEF).to_be_bytes(), Vec::new());
        loop {
            let message = self.next(lab);
            if message[..2] != id {
                return all;
            }
            all.push(D::decode_body(&mut Reader::new(&message[6..])).expect("whole details"));
        }
    }
}
