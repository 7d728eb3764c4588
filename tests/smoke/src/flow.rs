//! A ping that goes on while other things happen.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_testkit::{Netns, Running, Signal, WAIT_LIMIT};

/// A running ping.
#[derive(Debug)]
pub struct Flow {
    ping: Running,
}

/// Results of a ping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowResult {
    /// Requests answered.
    pub answered: BTreeSet<u32>,
    /// Answers beyond the first to the same request.
    pub duplicates: u32,
    /// Errors that came back.
    pub errors: Vec<String>,
}

impl Flow {
    /// Starts to ping `addr` from `ns`.
    ///
    /// # Errors
    /// If ping cannot be started.
    pub fn start(ns: &Netns, addr: impl Into<IpAddr>, interval: Duration) -> Result<Flow> {
        let interval = format!("{:.6}", interval.as_secs_f64());
        let addr = addr.into().to_string();
        let ping =
            ns.command("ping").args(["-n", "-i", &interval, &addr]).env("LC_ALL", "C").spawn()?;
        Ok(Flow { ping })
    }

    /// Waits until `count` more requests have been answered than now.
    ///
    /// # Errors
    /// If they are not in time, or ping ends.
    pub fn await_answers(&mut self, count: usize) -> Result<()> {
        let wanted = parse(&self.ping.stdout()).answered.len() + count;
        self.ping.wait_for_output(WAIT_LIMIT, "more answers", |out, _| {
            (parse(out).answered.len() >= wanted).then_some(())
        })
    }

    /// Ends it, and tells what it found.
    ///
    /// # Errors
    /// If ping cannot be ended.
    pub fn stop(mut self) -> Result<FlowResult> {
        self.ping.signal(Signal::INT)?;
        self.ping.wait(WAIT_LIMIT)?;
        let output = self.ping.finish(WAIT_LIMIT)?;
        Ok(parse(&output.stdout))
    }
}

impl FlowResult {
    /// Requests without an answer, before the last that has one.
    pub fn missing(&self) -> Vec<u32> {
        let last = self.answered.last().copied().unwrap_or(0);
        (1..last).filter(|seq| !self.answered.contains(seq)).collect()
    }

    /// Passes if no request was lost or answered twice.
    ///
    /// # Errors
    /// Otherwise, naming the requests.
    pub fn without_loss(&self) -> Result<()> {
        let last = *self.answered.last().context("no ping was answered")?;
        let missing = self.missing();
        ensure!(
            missing.is_empty() && self.duplicates == 0,
            "of {last} pings, {missing:?} were lost and {} answered again; {:?}",
            self.duplicates,
            self.errors
        );
        Ok(())
    }
}

fn parse(text: &str) -> FlowResult {
    let mut result = FlowResult::default();
    for line in text.lines() {
        let seq = line.split_once("icmp_seq=").and_then(|(_, rest)| {
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            rest[..end].parse::<u32>().ok()
        });
        // The number has 16 bits on the wire; a flow ends long before they are used up.
        if let Some(seq) = seq.filter(|_| line.contains(" bytes from ")) {
            let first = result.answered.insert(seq);
            result.duplicates += u32::from(!first);
        } else if line.starts_with("From ") {
            result.errors.push(line.to_owned());
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_answers_are_named() {
        let text = "PING 10.0.0.1\n64 bytes from 10.0.0.1: icmp_seq=1 ttl=63 time=0.1 ms\n\
            64 bytes from 10.0.0.1: icmp_seq=4 ttl=63 time=0.1 ms\n\
            64 bytes from 10.0.0.1: icmp_seq=4 ttl=63 time=0.1 ms (DUP!)\n\
            From 10.0.0.9 icmp_seq=2 Destination Host Unreachable\n64 bytes from 10.0.0.1: icmp_se";
        let result = parse(text);
        assert_eq!(result.missing(), [2, 3]);
        assert_eq!((result.duplicates, result.errors.len()), (1, 1));
        let error = result.without_loss().unwrap_err().to_string();
        assert!(error.contains("[2, 3] were lost"), "{error}");
        assert!(parse("").without_loss().is_err());
    }
}
