//! Running iperf3 between two namespaces.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::netns::Netns;
use crate::wait::{WAIT_LIMIT, wait_for_tcp_listener};

/// Each run has a server, and each server a port, so that runs side by side do not meet.
static NEXT_PORT: AtomicU16 = AtomicU16::new(5201);

/// Time for a run beyond the time that it sends.
const SETUP_ALLOWANCE: Duration = WAIT_LIMIT;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct IperfOptions {
    /// Time to send; whole seconds, at least one.
    pub duration: Duration,
    /// Start of the run that does not count; whole seconds.
    pub omit: Duration,
    /// UDP at this rate in bits per second (0: as fast as it goes); TCP if none.
    pub udp_bits_per_s: Option<u64>,
    /// Bytes per write, for UDP the payload of a datagram.
    pub length: Option<u32>,
    /// Connections side by side.
    pub parallel: u16,
    /// True if the server sends instead of the client.
    pub reverse: bool,
    /// Further arguments to the client.
    pub extra: Vec<String>,
}

impl Default for IperfOptions {
    fn default() -> Self {
        IperfOptions {
            duration: Duration::from_secs(1),
            omit: Duration::ZERO,
            udp_bits_per_s: None,
            length: None,
            parallel: 1,
            reverse: false,
            extra: Vec::new(),
        }
    }
}

impl IperfOptions {
    fn args(&self) -> Vec<String> {
        let mut args = vec!["-t".to_owned(), self.duration.as_secs().max(1).to_string()];
        let mut add = |words: &[&str]| args.extend(words.iter().map(|&word| word.to_owned()));
        if !self.omit.is_zero() {
            add(&["-O", &self.omit.as_secs().max(1).to_string()]);
        }
        if let Some(rate) = self.udp_bits_per_s {
            add(&["-u", "-b", &rate.to_string()]);
        }
        if let Some(length) = self.length {
            add(&["-l", &length.to_string()]);
        }
        if self.parallel > 1 {
            add(&["-P", &self.parallel.to_string()]);
        }
        if self.reverse {
            add(&["-R"]);
        }
        args.extend(self.extra.iter().cloned());
        args
    }
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct IperfResult {
    /// Payload bits per second that arrived.
    pub bits_per_s: f64,
    /// Payload bits per second that were sent.
    pub sent_bits_per_s: f64,
    /// TCP segments sent again.
    pub retransmits: Option<u64>,
    /// UDP datagrams sent.
    pub packets: Option<u64>,
    /// UDP datagrams that the receiving program did not read.
    pub lost_packets: Option<u64>,
    /// Unread datagrams that arrived at the host, but found its socket full (`Udp.RcvbufErrors` of
    /// the namespace, so of all its programs): the receiver was too slow, not the way there.
    pub unread_packets: u64,
    /// Their share in percent.
    pub lost_percent: Option<f64>,
    /// Variation of the time between UDP datagrams, in milliseconds.
    pub jitter_ms: Option<f64>,
    /// Seconds that counted.
    pub seconds: f64,
    /// Busy share of the client's processor in percent.
    pub client_cpu_percent: f64,
    /// iperf3's whole report.
    pub report: Value,
}

impl IperfResult {
    /// UDP datagrams that were lost between the two hosts.
    pub fn lost_on_the_way(&self) -> Option<u64> {
        self.lost_packets.map(|lost| lost.saturating_sub(self.unread_packets))
    }
}

/// Runs an iperf3 server in `server`, a client in `client` against it at `addr`, and reads the
/// client's report.
pub fn iperf3(
    client: &Netns,
    server: &Netns,
    addr: impl Into<IpAddr>,
    options: &IperfOptions,
) -> Result<IperfResult> {
    let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
    let addr = addr.into();
    let family = if addr.is_ipv4() { "-4" } else { "-6" };
    let port_text = port.to_string();
    let mut serving = server.spawn("iperf3", &["-s", "-1", family, "-p", &port_text])?;
    if let Err(error) = wait_for_tcp_listener(server, port, WAIT_LIMIT) {
        let ended = serving.try_status()?;
        bail!("iperf3 server: {error}; status {ended:?}: {}", serving.stderr());
    }
    let receiver = if options.reverse { client } else { server };
    let unread_before = unread(receiver)?;
    let output = client
        .command("iperf3")
        .args(["-c", &addr.to_string(), family, "-p", &port_text, "-J"])
        .args(options.args())
        .deadline(options.duration + options.omit + SETUP_ALLOWANCE)
        .run()
        .with_context(|| format!("iperf3 server printed:\n{}", serving.stdout()))?;
    // A failing client explains itself in the report.
    let mut result = parse(&output.stdout).with_context(|| {
        format!(
            "iperf3 from {} to {addr}, status {}: {}",
            client.label(),
            output.status,
            output.stderr.trim_end()
        )
    })?;
    result.unread_packets = unread(receiver)?.saturating_sub(unread_before);
    Ok(result)
}

/// UDP datagrams that sockets of `ns` had no room for.
fn unread(ns: &Netns) -> Result<u64> {
    ns.snmp_sum(&["Udp.RcvbufErrors", "Udp6RcvbufErrors"])
}

fn parse(json: &str) -> Result<IperfResult> {
    let report: Value = serde_json::from_str(json).context("iperf3 printed no JSON report")?;
    if let Some(error) = report["error"].as_str() {
        bail!("{error}");
    }
    let end = &report["end"];
    let sent = &end["sum_sent"];
    // A UDP report has one sum in older versions; its rate is the sender's, less what was lost.
    let old_udp = end["sum"]["bits_per_second"].is_number();
    let received = if end["sum_received"]["bits_per_second"].is_number() {
        &end["sum_received"]
    } else {
        &end["sum"]
    };
    let udp = if old_udp { &end["sum"] } else { received };
    let lost_percent = udp["lost_percent"].as_f64();
    let rate = |sum: &Value| sum["bits_per_second"].as_f64();
    let mut bits_per_s = rate(received).context("iperf3's report has no end.sum_received")?;
    if bits_per_s == 0.0
        && let (Some(lost), Some(offered)) = (lost_percent, rate(&end["sum"]))
    {
        bits_per_s = offered * (1.0 - lost / 100.0);
    }
    Ok(IperfResult {
        bits_per_s,
        sent_bits_per_s: rate(sent).or_else(|| rate(&end["sum"])).unwrap_or(bits_per_s),
        retransmits: sent["retransmits"].as_u64(),
        packets: udp["packets"].as_u64(),
        lost_packets: udp["lost_packets"].as_u64(),
        unread_packets: 0,
        lost_percent,
        jitter_ms: udp["jitter_ms"].as_f64(),
        seconds: received["seconds"].as_f64().unwrap_or(0.0),
        client_cpu_percent: end["cpu_utilization_percent"]["host_total"].as_f64().unwrap_or(0.0),
        report,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lab;
    use thalweg_testkit::lab_test;

    #[test]
    fn reports_are_read() {
        let tcp = parse(
            r#"{"end": {"sum_sent": {"bits_per_second": 10.5, "retransmits": 3},
                "sum_received": {"bits_per_second": 10.0, "seconds": 1.0},
                "cpu_utilization_percent": {"host_total": 50.0}}}"#,
        )
        .unwrap();
        assert_eq!((tcp.bits_per_s, tcp.sent_bits_per_s), (10.0, 10.5));
        assert_eq!((tcp.retransmits, tcp.lost_percent), (Some(3), None));
        let error = parse(r#"{"error": "unable to connect"}"#).unwrap_err().to_string();
        assert_eq!(error, "unable to connect");
        assert!(parse("no").is_err());
        assert!(parse("{}").is_err());
    }

    lab_test! {
        fn tcp_and_udp_run_through_a_kernel_router() {
            crate::require_tools(&["iperf3"])?;
            let lab = Lab::kernel_router()?;
            let tcp = iperf3(
                &lab.left.ns,
                &lab.right.ns,
                lab.right.addr,
                &IperfOptions { duration: Duration::from_secs(1), ..IperfOptions::default() },
            )?;
            assert!(tcp.bits_per_s > 1e6, "{tcp:?}");
            assert!(tcp.retransmits.is_some());
            let udp = iperf3(
                &lab.left.ns,
                &lab.right.ns,
                lab.right.addr,
                &IperfOptions {
                    udp_bits_per_s: Some(1_000_000),
                    length: Some(200),
                    ..IperfOptions::default()
                },
            )?;
            assert!(udp.packets.is_some_and(|packets| packets > 300), "{udp:?}");
            assert!(udp.bits_per_s > 0.5e6 && udp.bits_per_s < 1.5e6, "{udp:?}");
            assert!(udp.lost_percent.is_some(), "{udp:?}");
            assert!(udp.lost_on_the_way().is_some_and(|lost| lost <= 3), "{udp:?}");
            Ok(())
        }

        fn a_client_without_a_way_says_so() {
            crate::require_tools(&["iperf3"])?;
            let lab = Lab::kernel_router()?;
            let astray = "127.0.0.2".parse::<IpAddr>()?;
            let error = iperf3(&lab.left.ns, &lab.right.ns, astray, &IperfOptions::default())
                .unwrap_err();
            assert!(format!("{error:#}").contains("refused"), "{error:#}");
            Ok(())
        }
    }
}
