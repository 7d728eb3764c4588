//! Capturing packets with tcpdump, and reading captures with tshark.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use thalweg_netns::Netns;
use thalweg_netns::{Cmd, Running, Signal};
use thalweg_netns::{WAIT_LIMIT, wait_until_seen};

/// A running tcpdump. Dropping it ends the capture; what was seen is in the file by then, packet
/// by packet.
#[derive(Debug)]
pub struct Capture {
    tcpdump: Running,
    path: PathBuf,
}

/// Counts that tcpdump prints at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Packets written to the file.
    pub captured: u64,
    /// Packets that the kernel had no room for.
    pub dropped_by_kernel: u64,
}

impl Capture {
    /// Starts capturing on `dev` of `ns` into `path`, only what matches `filter` (all if empty).
    /// When this returns, tcpdump listens.
    ///
    /// # Errors
    /// Also in a user namespace that an ordinary user made: tcpdump insists on changing its groups,
    /// which the kernel forbids there.
    pub fn start(ns: &Netns, dev: &str, path: &Path, filter: &str) -> Result<Capture> {
        Capture::start_cut(ns, dev, path, filter, 0)
    }

    /// Like [`Capture::start`], with no more than `bytes` of each packet; all for 0.
    ///
    /// tcpdump divides its buffer into slots of the longest packet that may come: on loopback these
    /// are 250 of 64 KiB, which a burst of small datagrams on a busy machine overruns.
    ///
    /// # Errors
    /// The errors of [`Capture::start`].
    pub fn start_cut(
        ns: &Netns,
        dev: &str,
        path: &Path,
        filter: &str,
        bytes: u32,
    ) -> Result<Capture> {
        if groups_are_fixed() {
            bail!("tcpdump does not run in a user namespace without the right to change groups");
        }
        let mut tcpdump = ns
            .command("tcpdump")
            // -B: 16 MiB, for bursts. -Z root: do not give up the right to write where the test
            // wants the file.
            .args([
                "-U",
                "-n",
                "-s",
                &bytes.to_string(),
                "-B",
                "16384",
                "--immediate-mode",
                "-Z",
                "root",
            ])
            .args(["-i", dev, "-w"])
            .arg(path)
            .args(filter.split_whitespace())
            .spawn()?;
        tcpdump.wait_for_output(WAIT_LIMIT, "the start of the capture", |_, stderr| {
            stderr.contains("listening on").then_some(())
        })?;
        Ok(Capture { tcpdump, path: path.to_owned() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the capture and tells what it has. All that was on the link before is in the file.
    pub fn stop(mut self) -> Result<CaptureCounts> {
        self.settle()?;
        let output = self.tcpdump.interrupt(Signal::INT, WAIT_LIMIT)?.success()?;
        Ok(parse_counts(&output.stderr))
    }
}

/// Number of equal reports that make tcpdump believed.
const SAME_REPORTS: u32 = 8;

impl Capture {
    /// Lets tcpdump read what the kernel still holds for it, which a signal to end would discard.
    ///
    /// On SIGUSR1 it reports what it has written and what the kernel's filter has let pass.
    /// Usually the two become equal at once; on loopback the second counts everything twice.
    fn settle(&mut self) -> Result<()> {
        let mut reports = 0;
        let mut last = None;
        let mut same = 0;
        wait_until_seen(WAIT_LIMIT, "tcpdump to write all that it has seen", || {
            let report = self.report(&mut reports).map_err(|error| error.to_string())?;
            same = if last == Some(report) { same + 1 } else { 0 };
            last = Some(report);
            let (captured, passed) = report;
            if captured >= passed || same >= SAME_REPORTS {
                Ok(())
            } else {
                Err(format!("{report:?}"))
            }
        })
    }

    /// Packets written, and packets that passed the filter.
    fn report(&mut self, reports: &mut usize) -> Result<(u64, u64)> {
        self.tcpdump.signal(Signal::USR1)?;
        let line = self.tcpdump.wait_for_output(WAIT_LIMIT, "a report", |_, stderr| {
            stderr.split_inclusive('\n').filter_map(report_counts).nth(*reports)
        })?;
        *reports += 1;
        Ok(line)
    }
}

/// `tcpdump: 4 packets captured, 8 packets received by filter, 0 packets dropped by kernel`
fn report_counts(line: &str) -> Option<(u64, u64)> {
    let mut counts = line.strip_prefix("tcpdump: ")?.strip_suffix('\n')?.split(", ");
    let mut count = |what: &str| {
        let (number, rest) = counts.next()?.split_once(' ')?;
        rest.contains(what).then(|| number.parse().ok())?
    };
    Some((count("captured")?, count("received by filter")?))
}

/// True if setgroups(2) is forbidden to this process (user_namespaces(7)).
fn groups_are_fixed() -> bool {
    fs::read_to_string("/proc/self/setgroups").is_ok_and(|text| text.trim() == "deny")
}

/// Lines such as `3 packets captured`.
fn parse_counts(text: &str) -> CaptureCounts {
    let count = |ending: &str| {
        let mut numbers = text.lines().filter_map(|line| line.strip_suffix(ending)?.parse().ok());
        numbers.next().unwrap_or(0)
    };
    CaptureCounts {
        captured: count(" packets captured").max(count(" packet captured")),
        dropped_by_kernel: count(" packets dropped by kernel")
            .max(count(" packet dropped by kernel")),
    }
}

fn tshark(pcap: &Path, display_filter: &str) -> Cmd {
    let cmd = Cmd::new("tshark").args(["-n", "-r"]).arg(pcap);
    if display_filter.is_empty() { cmd } else { cmd.args(["-Y", display_filter]) }
}

/// Makes tshark print these fields of each packet that matches the display filter (all if empty). A
/// field that a packet lacks is an empty string; one that it has repeatedly is joined by `,`.
pub fn tshark_fields(
    pcap: &Path,
    fields: &[&str],
    display_filter: &str,
) -> Result<Vec<Vec<String>>> {
    let mut cmd = tshark(pcap, display_filter).args(["-T", "fields"]);
    for field in fields {
        cmd = cmd.args(["-e", field]);
    }
    let text = cmd.output()?;
    Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// Makes tshark decode each packet that matches the display filter (all if empty). An element holds
/// the protocol layers by name, as in `packet["ip"]["ip.src"]`.
pub fn tshark_json(pcap: &Path, display_filter: &str) -> Result<Vec<Value>> {
    let text = tshark(pcap, display_filter).args(["-T", "json"]).output()?;
    let packets: Vec<Value> =
        serde_json::from_str(&text).context("tshark printed something other than JSON")?;
    Ok(packets.into_iter().map(|mut packet| packet["_source"]["layers"].take()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lab, lab_test, require_tools};

    #[test]
    fn counts_are_read() {
        let counts = parse_counts(
            "tcpdump: listening on eth0\n1 packet captured\n3 packets received by filter\n\
             2 packets dropped by kernel\n",
        );
        assert_eq!(counts, CaptureCounts { captured: 1, dropped_by_kernel: 2 });
        assert_eq!(parse_counts(""), CaptureCounts::default());
        let report =
            "tcpdump: 1 packet captured, 8 packets received by filter, 0 packets dropped\n";
        assert_eq!(report_counts(report), Some((1, 8)));
        assert_eq!(report_counts(report.trim_end()), None);
        assert_eq!(report_counts("tcpdump: listening on eth0, link-type EN10MB\n"), None);
    }

    lab_test! {
        fn pings_are_captured_and_decoded() {
            require_tools(&["tcpdump"])?;
            let lab = Lab::kernel_router()?;
            let dir = tempfile::tempdir()?;
            let path = dir.path().join("left.pcap");
            let started = Capture::start(&lab.router, "eth0", &path, "icmp");
            if groups_are_fixed() {
                assert!(started.unwrap_err().to_string().contains("user namespace"));
                return Ok(());
            }
            let capture = started?;
            lab.ping_all()?;
            let counts = capture.stop()?;
            assert_eq!(counts, CaptureCounts { captured: 12, dropped_by_kernel: 0 });
            if require_tools(&["tshark"]).is_err() {
                return Ok(());
            }
            let rows = tshark_fields(&path, &["ip.src", "icmp.seq", "tcp.port"], "icmp.type == 8")?;
            assert_eq!(rows.len(), 6);
            assert_eq!(rows[0], ["10.10.1.2", "1", ""]);
            let packets = tshark_json(&path, "")?;
            assert_eq!(packets.len(), 12);
            assert_eq!(packets[0]["ip"]["ip.dst"], "10.10.2.2");
            Ok(())
        }
    }
}
