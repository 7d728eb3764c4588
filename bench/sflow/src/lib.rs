//! Decoders of sFlow as processes: how to start them, and what processor time they take.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![forbid(unsafe_code)]

mod udp;

pub use udp::{Best, Receiver};

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
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

/// Duration of a run.
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

/// A capture with the packets of another one N times.
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
