//! Decoders of sFlow as processes: how to start them, and what processor time they take.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::Read;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use thalweg_sflow::SFLOW_PORT;
use thalweg_sflow::pcapfile::PcapReader;
use thalweg_smoke::Peer;

/// Processor time of processes that have ended and been waited for.
///
/// # Errors
/// When the system does not tell.
pub fn ended_processor_time() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("ask for the time of processes")?;
    let of = |time: nix::sys::time::TimeVal| {
        let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    Ok(of(usage.user_time()) + of(usage.system_time()))
}

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Processor time, of all its processes and threads.
    pub processor: Duration,
    /// Time on the wall.
    pub wall: Duration,
}

/// Runs a program to its end, its output going nowhere.
///
/// # Errors
/// If it cannot be run, or fails.
pub fn run(command: &mut Command) -> Result<Took> {
    let (before, start) = (ended_processor_time()?, Instant::now());
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.with_context(|| format!("run {:?}", command.get_program()))?;
    ensure!(status.success(), "{:?} ended with {status}", command.get_program());
    let wall = start.elapsed();
    Ok(Took { processor: ended_processor_time()?.saturating_sub(before), wall })
}

/// A capture with the packets of another one so many times.
///
/// # Errors
/// If it cannot be read or written.
pub fn repeat(capture: &Path, times: usize, to: &Path) -> Result<()> {
    const FILE_HEADER: usize = 24;
    let bytes = fs::read(capture).with_context(|| format!("read {}", capture.display()))?;
    let (header, packets) = bytes.split_at(FILE_HEADER);
    fs::write(to, [header, &packets.repeat(times)].concat())
        .with_context(|| format!("write {}", to.display()))
}

/// A program of a package that is installed or was fetched by `scripts/setup.sh bench`.
pub struct Program {
    peer: Peer,
    path: &'static str,
}

impl Program {
    /// Looks for `path`, such as `usr/sbin/sfacctd`, of a package.
    ///
    /// # Errors
    /// If it is nowhere.
    pub fn find(package: &str, path: &'static str) -> Result<Program> {
        Ok(Program { peer: Peer::find(package, &[path])?, path })
    }

    /// A command for it.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.peer.path(self.path));
        command.env("LD_LIBRARY_PATH", self.peer.library_dir());
        command
    }
}

/// goflow2 has no capture files: it listens, and is sent the datagrams again.
pub struct Goflow2 {
    child: Child,
    /// The port it listens on.
    pub port: u16,
    out: PathBuf,
    /// Its output, read so far, and the lines in that.
    read: Option<File>,
    lines: usize,
}

impl Goflow2 {
    /// Starts it, with JSON to a file in `dir`.
    ///
    /// # Errors
    /// If it cannot be started or does not listen.
    pub fn start(program: &Program, dir: &Path) -> Result<Goflow2> {
        let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
        let out = dir.join("goflow2.json");
        let log = File::create(dir.join("goflow2.log"))?;
        let child = program
            .command()
            .arg("-listen")
            .arg(format!("sflow://127.0.0.1:{port}?queue_size=1000000"))
            .args(["-transport", "file", "-format", "json", "-addr", "", "-transport.file"])
            .arg(&out)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start goflow2")?;
        let goflow2 = Goflow2 { child, port, out, read: None, lines: 0 };
        let deadline = Instant::now() + Duration::from_secs(10);
        // The port is taken as soon as it listens.
        while UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            ensure!(Instant::now() < deadline, "goflow2 does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(goflow2)
    }

    /// Lines written so far, each a flow sample.
    ///
    /// # Errors
    /// If its file cannot be read.
    fn lines(&mut self) -> Result<usize> {
        if self.read.is_none() {
            self.read = File::open(&self.out).ok();
        }
        let Some(file) = &mut self.read else { return Ok(0) };
        let mut more = Vec::new();
        file.read_to_end(&mut more).context("read what goflow2 writes")?;
        self.lines += more.iter().filter(|byte| **byte == b'\n').count();
        Ok(self.lines)
    }

    /// Sends it datagrams with so many flow samples, again and again, and waits each time until it has
    /// written them all.
    ///
    /// # Errors
    /// If it does not write them.
    pub fn feed(&mut self, datagrams: &[Vec<u8>], samples: usize, times: usize) -> Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(("127.0.0.1", self.port))?;
        for time in 1..=times {
            for datagram in datagrams {
                socket.send(datagram).context("send to goflow2")?;
            }
            let deadline = Instant::now() + Duration::from_secs(10);
            loop {
                let lines = self.lines()?;
                if lines >= time * samples {
                    break;
                }
                let late = Instant::now() >= deadline;
                ensure!(!late, "goflow2 has written {lines} of {} samples", time * samples);
                thread::sleep(Duration::from_micros(500));
            }
        }
        Ok(())
    }

    /// Ends it, and tells the processor time that it took.
    ///
    /// # Errors
    /// If it cannot be ended.
    pub fn finish(mut self) -> Result<Duration> {
        let before = ended_processor_time()?;
        self.child.kill().context("end goflow2")?;
        self.child.wait().context("wait for goflow2")?;
        Ok(ended_processor_time()?.saturating_sub(before))
    }
}

/// The datagrams of a capture.
///
/// # Errors
/// If it cannot be read.
pub fn datagrams(capture: &Path) -> Result<Vec<Vec<u8>>> {
    let mut reader = PcapReader::open(capture, SFLOW_PORT)?;
    let mut all = Vec::new();
    while let Some(captured) = reader.next_datagram()? {
        all.push(captured.payload.to_vec());
    }
    Ok(all)
}
