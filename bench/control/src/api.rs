//! The router as a process, and a client of its binary API, which shares no code with the server.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use thalweg_tables::Ipv4Prefix;

/// Time that the router may take to be there, and to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Requests under way at most.
const WINDOW: usize = 4096;
/// Bytes of `ip_route_add_del_reply` with its framing.
const ROUTE_REPLY: usize = 16 + 2 + 4 + 4 + 4;

/// A running router in a directory of its own.
#[derive(Debug)]
pub struct Router {
    child: Child,
    program: PathBuf,
    dir: tempfile::TempDir,
}

impl Router {
    /// Starts the program that lies where this one does, with a worker on the last core and all
    /// else on the first.
    ///
    /// # Errors
    /// If it is not there or does not start.
    pub fn start() -> Result<Router> {
        let here = std::env::current_exe()?;
        let target = here.ancestors().nth(2).context("a benchmark lies in target/release/deps")?;
        let program = target.join("thalweg");
        ensure!(program.exists(), "{}: cargo build --release --bins", program.display());
        let dir = tempfile::tempdir()?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let main = if cores > 1 { "main-core 0" } else { "" };
        let stanzas = format!(
            "unix {{ runtime-dir {0} log {0}/log }} cpu {{ {main} corelist-workers {1} }}",
            dir.path().display(),
            cores - 1
        );
        let child = Command::new(&program)
            .arg("run")
            .args(stanzas.split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut router = Router { child, program, dir };
        let end = Instant::now() + PATIENCE;
        while UnixStream::connect(router.socket()).is_err() {
            if let Some(status) = router.child.try_wait()? {
                bail!("the router ended: {status}");
            }
            ensure!(Instant::now() < end, "the router does not come up");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(router)
    }

    /// Directory of its sockets.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The socket of its API.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("api.sock")
    }

    /// Writes the descriptions of its messages.
    ///
    /// # Errors
    /// If it cannot.
    pub fn write_descriptions(&self, to: &Path) -> Result<()> {
        let out = Command::new(&self.program).args(["api", "json", "--dir"]).arg(to).output()?;
        ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Ok(())
    }

    /// Connects a client.
    ///
    /// # Errors
    /// If it is not let in.
    pub fn client(&self, name: &str) -> Result<Client> {
        Client::connect(&self.socket(), name)
    }

    /// An interface's index.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn index(&self, client: &mut Client, name: &str) -> Result<u32> {
        let all = client.json("show interface")?;
        let found = all.as_array().and_then(|all| all.iter().find(|i| i["name"] == name));
        let index = found.and_then(|i| i["index"].as_u64()).context("no such interface")?;
        Ok(u32::try_from(index)?)
    }

    /// Ends it, and looks whether it ended well.
    ///
    /// # Errors
    /// If it did not.
    pub fn stop(mut self) -> Result<()> {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the router ended with {status}");
        Ok(())
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the API.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    ids: HashMap<String, u16>,
}

fn frame(body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 8];
    out.extend((body.len() as u32).to_be_bytes());
    out.extend([0; 4]);
    out.extend(body);
    out
}

impl Client {
    /// Connects to a router's socket.
    ///
    /// # Errors
    /// If it is not let in.
    pub fn connect(socket: &Path, name: &str) -> Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        let mut hello = [0; 70];
        hello[1] = 15;
        hello[6..6 + name.len()].copy_from_slice(name.as_bytes());
        stream.write_all(&frame(&hello))?;
        let mut client = Client { stream, ids: HashMap::new() };
        let reply = client.receive()?;
        // Number, client, context, response, index, count, then number and name of each message.
        let table = reply.get(20..).context("a short table of messages")?;
        for entry in table.chunks_exact(66) {
            let name = entry[2..].split(|byte| *byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            client.ids.insert(name, u16::from_be_bytes([entry[0], entry[1]]));
        }
        Ok(client)
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn id(&self, name_crc: &str) -> Result<u16> {
        self.ids.get(name_crc).copied().with_context(|| format!("no message {name_crc}"))
    }

    /// Runs commands; gives what they print.
    ///
    /// # Errors
    /// If one fails.
    pub fn cli(&mut self, lines: &str) -> Result<String> {
        let mut request = self.id("cli_inband_f8377302")?.to_be_bytes().to_vec();
        request.extend([0; 8]);
        request.extend((lines.len() as u32).to_be_bytes());
        request.extend(lines.as_bytes());
        self.stream.write_all(&frame(&request))?;
        let reply = self.receive()?;
        let text = String::from_utf8_lossy(reply.get(14..).unwrap_or_default()).into_owned();
        ensure!(reply.get(6..10) == Some(&[0; 4][..]), "{lines}: {text}");
        Ok(text)
    }

    /// Returns the JSON of a `show` command.
    ///
    /// # Errors
    /// If it fails.
    pub fn json(&mut self, show: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.cli(&format!("{show} | json"))?)?)
    }

    /// Makes a request that one reply answers; its return value.
    ///
    /// # Errors
    /// If the connection breaks.
    pub fn call(&mut self, name_crc: &str, fields: &[u8]) -> Result<i32> {
        let request = [&self.id(name_crc)?.to_be_bytes(), &[0; 8][..], fields].concat();
        self.stream.write_all(&frame(&request))?;
        let reply = self.receive()?;
        let retval = reply.get(6..10).context("a short reply")?;
        Ok(i32::from_be_bytes([retval[0], retval[1], retval[2], retval[3]]))
    }

    /// Asks for a dump with these fields; how many details came.
    ///
    /// # Errors
    /// If the connection breaks.
    pub fn dump(&mut self, name_crc: &str, fields: &[u8]) -> Result<usize> {
        // The end is the answer to a ping, which has the request's context.
        let mut both = frame(&[&self.id(name_crc)?.to_be_bytes(), &[0; 8][..], fields].concat());
        let ping = self.id("control_ping_51077d14")?.to_be_bytes();
        both.extend(frame(&[&ping[..], &[0; 8]].concat()));
        self.stream.write_all(&both)?;
        let end = self.id("control_ping_reply_f6b0b8ca")?.to_be_bytes();
        let mut reader = BufReader::with_capacity(1 << 18, &self.stream);
        let (mut head, mut body, mut n) = ([0; 16], Vec::new(), 0);
        loop {
            reader.read_exact(&mut head)?;
            body.resize(u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize, 0);
            reader.read_exact(&mut body)?;
            if body.get(..2) == Some(&end[..]) {
                return Ok(n);
            }
            n += 1;
        }
    }

    /// A request for a route with one path.
    fn route(&self, add: bool, n: usize, prefix: Ipv4Prefix, ports: [u32; 2]) -> Result<Vec<u8>> {
        let side = n % 2;
        let mut body = self.id("ip_route_add_del_b8ecfe0d")?.to_be_bytes().to_vec();
        body.extend([0; 4]);
        body.extend((n as u32).to_be_bytes());
        // The route has no other paths: table 0, no counters, IPv4.
        body.extend([u8::from(add), 0]);
        body.extend([0; 9]);
        body.extend(prefix.addr().to_be_bytes());
        body.extend([0; 12]);
        body.extend([prefix.len(), 1]);
        body.extend(ports[side].to_be_bytes());
        // Weight 1.
        body.extend([0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        body.extend([0; 12]);
        body.extend([10, 1 + side as u8, 0, 1]);
        body.extend([0; 12 + 12 + 1 + 16 * 7]);
        Ok(frame(&body))
    }

    /// Adds or deletes routes, many requests being under way.
    ///
    /// # Errors
    /// If one fails.
    pub fn routes(&mut self, add: bool, prefixes: &[Ipv4Prefix], ports: [u32; 2]) -> Result<()> {
        let (mut sent, mut answered) = (0, 0);
        let mut replies = vec![0; 1 << 16];
        let mut rest = 0;
        while answered < prefixes.len() {
            let upto = prefixes.len().min(answered + WINDOW);
            if sent < upto
                && (sent == answered || upto - sent >= WINDOW / 4 || upto == prefixes.len())
            {
                let mut batch = Vec::new();
                for (n, prefix) in prefixes[..upto].iter().enumerate().skip(sent) {
                    batch.extend(self.route(add, n, *prefix, ports)?);
                }
                self.stream.write_all(&batch)?;
                sent = upto;
            }
            let n = self.stream.read(&mut replies[rest..])?;
            ensure!(n > 0, "the router has closed the connection");
            let have = rest + n;
            for reply in replies[..have].chunks_exact(ROUTE_REPLY) {
                ensure!(reply[22..26] == [0; 4], "route {answered} failed: {:?}", &reply[22..26]);
                answered += 1;
            }
            rest = have % ROUTE_REPLY;
            replies.copy_within(have - rest..have, 0);
        }
        Ok(())
    }

    /// Adds routes, each when the one before is there.
    ///
    /// # Errors
    /// If one fails.
    pub fn routes_in_turn(&mut self, prefixes: &[Ipv4Prefix], ports: [u32; 2]) -> Result<()> {
        for (n, prefix) in prefixes.iter().enumerate() {
            let request = self.route(true, n, *prefix, ports)?;
            self.stream.write_all(&request)?;
            let reply = self.receive()?;
            ensure!(reply.get(6..10) == Some(&[0; 4][..]), "route {n} failed");
        }
        Ok(())
    }
}
