//! DPDK's testpmd between two devices that make packets of nothing and swallow them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use thalweg_smoke::{Delay, Peer};
use thalweg_testkit::Running;

const PROGRAM: &str = "usr/bin/dpdk-testpmd";
const PATIENCE: Duration = Duration::from_secs(20);
/// Packet buffers: the number of the router that it is compared with.
const BUFFERS: usize = 16_384;

/// A testpmd that forwards on one processor and takes its commands from here.
///
/// Dropping the value kills it.
pub struct Testpmd {
    running: Running,
    // Runtime directory, next to its memory.
    _dir: TempDir,
}

impl Testpmd {
    /// Starts it with its forwarding thread on processor `worker` and everything else on `main`.
    ///
    /// # Errors
    /// If it is not there (`scripts/setup.sh bench`) or does not start.
    pub fn start(main: usize, worker: usize) -> Result<Testpmd> {
        let peer = Peer::find("dpdk", &[PROGRAM])?;
        let dir = TempDir::with_prefix("testpmd-").context("make a directory")?;
        // Named to the linker, as DPDK takes no drivers from below a directory that anybody may
        // write to, as a build directory may well be.
        let drivers = peer.library_dir();
        let drivers = drivers.strip_prefix(peer.path("")).unwrap_or(&drivers).join("dpdk");
        let versions = peer.file_beginning(&drivers.to_string_lossy(), "pmds-");
        let versions = versions.context("DPDK has no directory of drivers")?;
        let driver = |name: &str| -> Result<String> {
            let found = peer.file_beginning(&versions.to_string_lossy(), name);
            Ok(found.with_context(|| format!("DPDK has no driver {name}"))?.display().to_string())
        };
        let preload = [driver("librte_mempool_ring.so")?, driver("librte_net_null.so")?].join(" ");
        // By default, testpmd keeps its answers back until they fill a page.
        let running = peer
            .wrapped(None, &["stdbuf", "-oL"], PROGRAM)
            .env("LD_PRELOAD", preload)
            .env("RUNTIME_DIRECTORY", dir.path())
            .args(["--no-huge", "-m", "512", "--no-pci", "--no-telemetry", "--no-shconf"])
            .args(["-l", &format!("{main},{worker}"), "--main-lcore", &main.to_string()])
            .args(["--vdev", "net_null0", "--vdev", "net_null1", "--", "-i", "--nb-cores=1"])
            .arg(format!("--total-num-mbufs={BUFFERS}"))
            .stdin_piped()
            .spawn()?;
        let mut testpmd = Testpmd { running, _dir: dir };
        testpmd.await_text("its prompt", |text| text.contains("testpmd>").then_some(()))?;
        Ok(testpmd)
    }

    fn await_text<T>(&mut self, what: &str, probe: impl Fn(&str) -> Option<T>) -> Result<T> {
        self.running.wait_for_output(PATIENCE, what, |out, _| probe(out)).context("testpmd")
    }

    fn say(&mut self, command: &str) -> Result<()> {
        self.running.write_stdin(format!("{command}\n"))
    }

    /// True if it has this forwarding mode.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn knows(&mut self, mode: &str) -> Result<bool> {
        let before = self.running.stdout().len();
        self.say(&format!("set fwd {mode}"))?;
        self.await_text("an answer to set fwd", |text| {
            let new = text.get(before..)?;
            let said = |word: &str| new.contains(word);
            if said("Set ") && said("packet forwarding mode") {
                return Some(true);
            }
            (said("Invalid") || said("Bad arguments")).then_some(false)
        })
    }

    /// Packets per second that it forwards in this mode, over `window` after `warm_up`.
    ///
    /// # Errors
    /// If it does not know the mode or does not answer.
    pub fn rate(&mut self, mode: &str, warm_up: Duration, window: Duration) -> Result<f64> {
        if !self.knows(mode)? {
            bail!("this testpmd does not forward by {mode}");
        }
        self.say("start")?;
        Delay::measure_over(warm_up);
        let (from, began) = self.forwarded()?;
        Delay::measure_over(window);
        let (to, ended) = self.forwarded()?;
        let before = self.running.stdout().len();
        self.say("stop")?;
        self.await_text("it to stop", |text| text.get(before..)?.contains("Done.").then_some(()))?;
        Ok((to - from) as f64 / (ended - began).as_secs_f64())
    }

    /// Packets sent since the start, with the time of the report.
    fn forwarded(&mut self) -> Result<(u64, Instant)> {
        let before = self.running.stdout().len();
        self.say("show fwd stats all")?;
        let sent = self.await_text("its counters", |text| total_sent(text.get(before..)?))?;
        Ok((sent, Instant::now()))
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it does not end, or not well.
    pub fn stop(mut self) -> Result<()> {
        self.say("quit")?;
        self.running.finish(PATIENCE)?.success().map(drop)
    }
}

/// The packets sent in the block for all ports, once it is complete.
fn total_sent(text: &str) -> Option<u64> {
    let (_, block) = text.split_once("Accumulated forward statistics")?;
    let (_, rest) = block.split_once("TX-packets:")?;
    let (number, _) = rest.trim_start().split_once(char::is_whitespace)?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_when_complete() {
        let text = "TX-packets: 5 \n +++ Accumulated forward statistics for all ports+++\n  \
            RX-packets: 10  RX-dropped: 0\n  TX-packets: 250177856      TX-dropped: 0";
        assert_eq!(total_sent(text), Some(250_177_856));
        assert_eq!(total_sent(&text[..text.len() - 30]), None);
        assert_eq!(total_sent("TX-packets: 5 "), None);
    }
}
