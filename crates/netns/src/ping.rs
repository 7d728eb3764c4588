//! Running iputils' `ping` and reading what it prints.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::netns::Netns;
use crate::wait::{WAIT_LIMIT, wait_until};

/// Options of a ping.
#[derive(Clone, Debug)]
pub struct PingOptions {
    /// Requests to send.
    pub count: u32,
    /// Time between requests; less than 2 ms takes root.
    pub interval: Duration,
    /// Bytes of payload, without the ICMP header of 8 bytes; below 16 there are no round trip
    /// times.
    pub size: u32,
    /// Time to wait for the last answer.
    pub patience: Duration,
    /// Time to live of the requests.
    pub ttl: Option<u8>,
    /// Forbids fragmentation (`-M do`).
    pub dont_fragment: bool,
    /// Lets routers fragment, too (`-M dont`).
    pub may_fragment: bool,
}

impl Default for PingOptions {
    fn default() -> Self {
        PingOptions {
            count: 5,
            interval: Duration::from_millis(10),
            size: 56,
            patience: Duration::from_secs(5),
            ttl: None,
            dont_fragment: false,
            may_fragment: false,
        }
    }
}

impl PingOptions {
    /// Requests that no answer is expected to, and so not waited for long.
    pub fn unanswered(count: u32) -> PingOptions {
        PingOptions { count, patience: Duration::from_millis(500), ..PingOptions::default() }
    }
}

/// Result of a ping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PingResult {
    /// Requests sent.
    pub sent: u32,
    /// Answers received, without duplicates.
    pub received: u32,
    /// Answers that came when ping had stopped listening: if there was an answer, it waits for the
    /// last ones no longer than two round trips or an interval took, which a busy machine may
    /// exceed.
    pub late: u32,
    /// Further answers to the same request.
    pub duplicates: u32,
    /// Round trip times in microseconds, in the order of arrival.
    pub rtts_us: Vec<f64>,
    /// Time to live of the answers, in the order of arrival.
    pub ttls: Vec<u8>,
    /// Errors that came back, such as
    /// `From 10.0.0.1 icmp_seq=1 Time to live exceeded`.
    pub errors: Vec<String>,
    /// All that ping printed.
    pub text: String,
}

impl PingResult {
    /// Share of requests without an answer, in percent.
    pub fn loss_percent(&self) -> f64 {
        if self.sent == 0 {
            return 0.0;
        }
        100.0 * f64::from(self.missing()) / f64::from(self.sent)
    }

    /// Requests without an answer.
    pub fn missing(&self) -> u32 {
        self.sent.saturating_sub(self.received + self.late)
    }

    /// The round trip time in microseconds that `percent` of the answers did not exceed.
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        let mut sorted = self.rtts_us.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }

    /// The middle of the round trip times, in microseconds.
    pub fn median_us(&self) -> Option<f64> {
        self.percentile_us(50.0)
    }

    /// Passes if every request was answered exactly once.
    ///
    /// # Errors
    /// Otherwise, with ping's own text.
    pub fn all_answered(&self) -> Result<()> {
        if self.missing() == 0 && self.duplicates == 0 && self.sent > 0 {
            return Ok(());
        }
        bail!(
            "{} of {} pings answered, {} duplicates:\n{}",
            self.received + self.late,
            self.sent,
            self.duplicates,
            self.text.trim_end()
        )
    }
}

/// Pings `addr` from `ns`. Missing answers are a result, not an error.
///
/// # Errors
/// If ping cannot run, or ends with a status other than "answered" and "not answered".
pub fn ping(ns: &Netns, addr: impl Into<IpAddr>, options: &PingOptions) -> Result<PingResult> {
    let seconds = |time: Duration| format!("{:.6}", time.as_secs_f64());
    let mut cmd = ns
        .command("ping")
        .args(["-n", "-c", &options.count.to_string(), "-i", &seconds(options.interval)])
        .args(["-s", &options.size.to_string(), "-W", &seconds(options.patience)])
        .env("LC_ALL", "C");
    if let Some(ttl) = options.ttl {
        cmd = cmd.args(["-t", &ttl.to_string()]);
    }
    if options.dont_fragment {
        cmd = cmd.args(["-M", "do"]);
    }
    if options.may_fragment {
        cmd = cmd.args(["-M", "dont"]);
    }
    let turn = PINGS.begin();
    let heard = answers(ns)?;
    let budget = options.interval * options.count + options.patience * 2 + WAIT_LIMIT;
    let output = cmd.arg(addr.into().to_string()).deadline(budget).run()?;
    let output = if output.status.code() == Some(1) { output } else { output.success()? };
    let mut result = parse(&output.stdout);
    // A message too long for the interface is refused here, not by the network.
    result.errors.extend(output.stderr.lines().map(str::to_owned));
    if result.missing() > 0 && result.received > 0 && turn.is_alone() {
        let wanted = u64::from(result.sent + result.duplicates);
        let all = || answers(ns).ok().filter(|now| now - heard >= wanted);
        // Missing answers are a result, too.
        let _ = wait_until(options.patience, "late answers", all);
        let came = answers(ns)?.saturating_sub(heard);
        let late = came.saturating_sub((result.received + result.duplicates).into());
        result.late = u32::try_from(late).unwrap_or(u32::MAX).min(result.missing());
    }
    Ok(result)
}

/// Echo replies of both families that the kernel has received in a namespace, whoever asked.
fn answers(ns: &Netns) -> Result<u64> {
    ns.snmp_sum(&["Icmp.InEchoReps", "Icmp6InEchoReplies"])
}

/// Numbers of pings that have begun and ended in all.
struct Turns {
    begun: AtomicU64,
    ended: AtomicU64,
}

static PINGS: Turns = Turns::new();

impl Turns {
    const fn new() -> Turns {
        Turns { begun: AtomicU64::new(0), ended: AtomicU64::new(0) }
    }

    fn begin(&self) -> Turn<'_> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        Turn { number, alone: self.ended.load(Ordering::SeqCst) + 1 == number, turns: self }
    }
}

/// One of them.
struct Turn<'t> {
    number: u64,
    /// All before it had ended.
    alone: bool,
    turns: &'t Turns,
}

impl Turn<'_> {
    /// True if no other ran since it began: else the kernel's count is of several.
    fn is_alone(&self) -> bool {
        self.alone && self.turns.begun.load(Ordering::SeqCst) == self.number
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.ended.fetch_add(1, Ordering::SeqCst);
    }
}

fn parse(text: &str) -> PingResult {
    let mut result = PingResult { text: text.to_owned(), ..PingResult::default() };
    for line in text.lines() {
        if line.contains(" bytes from ") {
            if line.ends_with("(DUP!)") {
                continue;
            }
            result.rtts_us.extend(value_after::<f64>(line, "time=").map(|ms| ms * 1000.0));
            result.ttls.extend(value_after::<u8>(line, "ttl="));
        } else if line.contains(" packets transmitted") {
            summary(line, &mut result);
        } else if line.starts_with("From ") || line.contains("] From ") {
            result.errors.push(line.to_owned());
        }
    }
    result
}

/// `5 packets transmitted, 4 received, +1 duplicates, 20% packet loss, time 8ms`
fn summary(line: &str, result: &mut PingResult) {
    for part in line.split(", ") {
        let mut words = part.split_whitespace();
        let number = words.next().and_then(|word| word.trim_start_matches('+').parse().ok());
        match (number, words.last()) {
            (Some(n), Some("transmitted")) => result.sent = n,
            (Some(n), Some("received")) => result.received = n,
            (Some(n), Some("duplicates")) => result.duplicates = n,
            _ => {}
        }
    }
}

fn value_after<T: std::str::FromStr>(line: &str, key: &str) -> Option<T> {
    let (_, rest) = line.split_once(key)?;
    let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thalweg_testkit::lab_test;

    use super::*;
    use crate::{LinkOptions, veth};

    const TEXT: &str = "PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.
64 bytes from 10.0.0.1: icmp_seq=1 ttl=63 time=0.045 ms
64 bytes from 10.0.0.1: icmp_seq=1 ttl=63 time=0.050 ms (DUP!)
[1700000000.123456] 64 bytes from 10.0.0.1: icmp_seq=2 ttl=63 time=1.2 ms
From 10.0.0.9 icmp_seq=3 Time to live exceeded

--- 10.0.0.1 ping statistics ---
4 packets transmitted, 2 received, +1 duplicates, +1 errors, 50% packet loss, time 8ms
rtt min/avg/max/mdev = 0.045/0.622/1.200/0.577 ms
";

    #[test]
    fn text_is_read() {
        let result = parse(TEXT);
        assert_eq!((result.sent, result.received, result.duplicates), (4, 2, 1));
        assert_eq!(result.rtts_us, [45.0, 1200.0]);
        assert_eq!(result.ttls, [63, 63]);
        assert_eq!(result.errors, ["From 10.0.0.9 icmp_seq=3 Time to live exceeded"]);
        assert_eq!(result.loss_percent(), 50.0);
        assert_eq!(result.median_us(), Some(45.0));
        assert_eq!(result.percentile_us(99.0), Some(1200.0));
        let late = PingResult { late: 2, duplicates: 0, ..result.clone() };
        assert_eq!((late.missing(), late.loss_percent()), (0, 0.0));
        late.all_answered().unwrap();
        let error = result.all_answered().unwrap_err().to_string();
        assert!(error.starts_with("2 of 4 pings answered, 1 duplicates"), "{error}");
    }

    #[test]
    fn one_at_a_time_is_alone() {
        let turns = Turns::new();
        let first = turns.begin();
        assert!(first.is_alone());
        let second = turns.begin();
        assert!(!first.is_alone() && !second.is_alone());
        drop(second);
        // The third ran at the same time as the first, which may have got its answers.
        assert!(!first.is_alone() && !turns.begin().is_alone());
        drop(first);
        assert!(turns.begin().is_alone());
    }

    #[test]
    fn nothing_is_read_from_nothing() {
        let result = parse("");
        assert_eq!((result.loss_percent(), result.median_us()), (0.0, None));
        assert!(result.all_answered().is_err());
    }

    lab_test! {
        /// ping waits for twice the round trip time at the end, which a busy machine exceeds.
        fn late_answers_are_answers() {
            let (near, far) = (Netns::new("near")?, Netns::new("far")?);
            for ns in [&near, &far] {
                ns.set_sysctl("net/ipv6/conf/default/disable_ipv6", "0")?;
            }
            let end = |n: u8| LinkOptions {
                addresses: vec![format!("10.0.0.{n}/24"), format!("2001:db8::{n}/64")],
                ..LinkOptions::default()
            };
            veth((&near, "eth0", &end(1)), (&far, "eth0", &end(2)))?;
            for (addr, bytes) in [("10.0.0.2", 80), ("2001:db8::2", 100)] {
                let addr: IpAddr = addr.parse()?;
                wait_until(WAIT_LIMIT, "neighbour", || {
                    let one = PingOptions { count: 1, ..PingOptions::default() };
                    (ping(&near, addr, &one).ok()?.received == 1).then_some(())
                })?;
                // The second answer leaves some 300 ms after the first, unless other packets of
                // the host came between or ping itself had to wait.
                wait_until(WAIT_LIMIT, "a late answer", || {
                    let limit = format!("tbf rate 2kbit burst {bytes} limit 3000");
                    let add = format!("qdisc add dev eth0 root {limit}");
                    far.command("tc").args(add.split(' ')).output().ok()?;
                    let two = PingOptions { count: 2, size: 16, ..PingOptions::default() };
                    let result = ping(&near, addr, &two);
                    far.command("tc").args("qdisc del dev eth0 root".split(' ')).output().ok()?;
                    let result = result.ok()?;
                    (result.late > 0 && result.all_answered().is_ok()).then_some(())
                })?;
            }
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(
            text in "(64 bytes from |time=|ttl=|, | packets transmitted|[0-9.+ \n]|\\PC){0,60}",
        ) {
            parse(&text);
        }
    }
}
