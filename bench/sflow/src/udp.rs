//! Decoders that listen: how many samples a second they take before datagrams are lost.

use std::fs::{self, File};
use std::io::Read;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// Time for which datagrams are sent at one rate.
const TRIAL: Duration = Duration::from_millis(500);
/// Time for datagrams that still wait in queues when the last one is sent.
const LATE: Duration = Duration::from_millis(100);
/// Time to wait for a program's start, or its rest.
const LIMIT: Duration = Duration::from_secs(10);
/// Slower than this nobody is, in samples a second; and how often the rate is doubled at most.
const SLOWEST: f64 = 10_000.0;
const DOUBLINGS: u32 = 8;
/// Number of times that the interval between a rate that was taken and one that was not is halved.
const HALVINGS: u32 = 4;

/// A program that receives datagrams.
pub struct Receiver {
    child: Child,
    port: u16,
    /// File to which it writes a line per sample, and the lines that it has written so far.
    lines: Option<(PathBuf, Option<File>, usize)>,
}

/// The greatest rate at which nothing was lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// Samples a second.
    pub rate: f64,
    /// Samples per second of its processor time at that rate.
    pub per_processor: f64,
    /// No greater rate could be sent.
    pub senders: bool,
}

/// Datagrams to send.
struct Load<'d> {
    datagrams: &'d [Vec<u8>],
    /// Flow samples in all of them.
    samples: usize,
}

struct Trial {
    rate: f64,
    processor: Duration,
    samples: usize,
    lost: bool,
    /// The sender did not keep up.
    behind: bool,
}

/// A UDP port that is free.
///
/// # Errors
/// If there is none.
pub(crate) fn free_port() -> Result<u16> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Receiver {
    /// Starts a program that listens on a UDP port, which `command` makes it do. If it writes a
    /// line per flow sample to a file, these are counted.
    ///
    /// # Errors
    /// If it cannot be started or does not listen.
    pub fn start(
        command: impl FnOnce(u16) -> Result<Command>,
        lines: Option<PathBuf>,
    ) -> Result<Receiver> {
        let port = free_port()?;
        let mut command = command(port)?;
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| format!("start {:?}", command.get_program()))?;
        let lines = lines.map(|path| (path, None, 0));
        let receiver = Receiver { child, port, lines };
        let deadline = Instant::now() + LIMIT;
        while receiver.socket()?.is_none() {
            ensure!(Instant::now() < deadline, "{:?} does not listen", command.get_program());
            thread::sleep(Duration::from_millis(20));
        }
        Ok(receiver)
    }

    /// Bytes that wait in its socket, and datagrams that did not fit.
    fn socket(&self) -> Result<Option<(u64, u64)>> {
        let port = format!(":{:04X}", self.port);
        for table in ["/proc/net/udp", "/proc/net/udp6"] {
            let text = fs::read_to_string(table).with_context(|| format!("read {table}"))?;
            for line in text.lines().skip(1) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let ours = words.get(1).is_some_and(|address| address.ends_with(&port));
                let (Some(queues), Some(drops)) = (words.get(4), words.last()) else { continue };
                if ours && let Some((_, waiting)) = queues.split_once(':') {
                    return Ok(Some((u64::from_str_radix(waiting, 16)?, drops.parse()?)));
                }
            }
        }
        Ok(None)
    }

    /// Processor time of its threads, and of its children's.
    fn busy(&self) -> Duration {
        let mut nanos = 0;
        let mut processes = vec![self.child.id().to_string()];
        while let Some(pid) = processes.pop() {
            for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten()
            {
                let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
                let schedstat = read("schedstat");
                let busy = schedstat.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
                nanos += busy.unwrap_or(0);
                processes.extend(read("children").split_whitespace().map(str::to_owned));
            }
        }
        Duration::from_nanos(nanos)
    }

    /// Waits until it has nothing left to do; says when that was.
    fn rest(&self) -> Result<Instant> {
        const LOOK: Duration = Duration::from_millis(10);
        let (mut busy, mut since) = (self.busy(), Instant::now());
        let deadline = since + LIMIT;
        loop {
            thread::sleep(LOOK);
            let (waiting, _) = self.socket()?.context("its socket is gone")?;
            let now = self.busy();
            if waiting > 0 || now.saturating_sub(busy) > LOOK / 10 {
                (busy, since) = (now, Instant::now());
            } else if since.elapsed() > 4 * LOOK {
                return Ok(since);
            }
            ensure!(Instant::now() < deadline, "it is still busy after {LIMIT:?}");
        }
    }

    /// Lines written since the last time.
    fn written(&mut self) -> Result<Option<usize>> {
        let Some((path, file, before)) = &mut self.lines else { return Ok(None) };
        if file.is_none() {
            *file = File::open(path).ok();
        }
        let Some(file) = file else { return Ok(Some(0)) };
        let mut chunk = vec![0; 1 << 20];
        loop {
            let n = file.read(&mut chunk).context("read what it writes")?;
            if n == 0 {
                return Ok(Some(std::mem::take(before)));
            }
            *before += chunk[..n].iter().filter(|byte| **byte == b'\n').count();
        }
    }

    fn trial(&mut self, load: &Load<'_>, rate: f64) -> Result<Trial> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(("127.0.0.1", self.port))?;
        let per_datagram = load.samples as f64 / load.datagrams.len() as f64;
        let gap = Duration::from_secs_f64(per_datagram / rate);
        let rounds = (TRIAL.as_secs_f64() * rate / load.samples as f64).ceil() as usize;
        let (_, drops) = self.socket()?.context("its socket is gone")?;
        let (before, start) = (self.busy(), Instant::now());
        let mut next = start;
        for datagram in (0..rounds).flat_map(|_| load.datagrams) {
            while Instant::now() < next {
                std::hint::spin_loop();
            }
            next += gap;
            socket.send(datagram).context("send datagrams")?;
        }
        let end = Instant::now();
        let idle = self.rest()?;
        let processor = self.busy().saturating_sub(before);
        let samples = rounds * load.samples;
        let (_, after) = self.socket()?.context("its socket is gone")?;
        let lost = after > drops || idle.saturating_duration_since(end) > LATE;
        let written = self.written()?.filter(|_| after == drops);
        ensure!(
            written.is_none_or(|lines| lines == samples),
            "{written:?} lines of {samples} samples"
        );
        let took = (end - start).as_secs_f64();
        let behind = took > 1.05 * (next - start).as_secs_f64();
        Ok(Trial { rate: samples as f64 / took, processor, samples, lost, behind })
    }

    /// Looks for the greatest rate that it takes of datagrams that hold this number of samples.
    ///
    /// # Errors
    /// If it does not work, or loses datagrams at every rate.
    pub fn search(&mut self, datagrams: &[Vec<u8>], samples: usize) -> Result<Best> {
        let load = Load { datagrams, samples };
        // Wait until the program has really started.
        self.trial(&load, SLOWEST / 2.0)?;
        let mut best: Option<Best> = None;
        let (mut low, mut high) = (0.0, f64::MAX);
        let mut steps = 0;
        while steps < DOUBLINGS + HALVINGS {
            let found = high < f64::MAX;
            let rate = match (found, low > 0.0) {
                (false, false) => SLOWEST,
                (false, true) => 2.0 * low,
                (true, _) => (low + high) / 2.0,
            };
            steps = if found { steps.max(DOUBLINGS) + 1 } else { steps + 1 };
            let trial = self.trial(&load, rate)?;
            if trial.lost {
                high = rate;
                continue;
            }
            let per_processor = trial.samples as f64 / trial.processor.as_secs_f64();
            best = Some(Best { rate: trial.rate, per_processor, senders: trial.behind });
            low = rate;
            if trial.behind {
                break;
            }
        }
        best.context("datagrams are lost at every rate")
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Its children end with it: they notice that nobody is at the other end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
