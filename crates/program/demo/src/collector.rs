//! Receives the router's sFlow datagrams and estimates the top talkers.

use anyhow::{Context, Result};
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use thalweg_netns::Netns;
use thalweg_sflow::estimate::TopTalkers;
use thalweg_sflow::listen::{ListenOn, Listener, Received};
use thalweg_sflow::{Datagram, Sample};

/// Counts of received datagrams and samples.
pub struct Collected {
    pub datagrams: u64,
    pub flow_samples: u64,
    pub counter_samples: u64,
    /// Datagrams, samples or records that could not be decoded.
    pub malformed: u64,
    pub talkers: TopTalkers,
}

impl Collected {
    fn take(&mut self, received: Received<'_>) {
        self.datagrams += 1;
        let Ok(datagram) = Datagram::parse(received.payload) else {
            self.malformed += 1;
            return;
        };
        for sample in datagram.samples() {
            match sample {
                Ok(Sample::Flow(_)) => self.flow_samples += 1,
                Ok(Sample::Counters(_)) => self.counter_samples += 1,
                Ok(_) => {}
                Err(_) => self.malformed += 1,
            }
        }
        self.talkers.feed(&datagram);
    }
}

/// A thread that listens on the router's loopback.
pub struct Collector {
    collected: Arc<Mutex<Collected>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    /// Listens inside `ns`.
    pub fn start(ns: &Netns, port: u16) -> Result<Collector> {
        let address = ListenOn::Address(Ipv4Addr::LOCALHOST.into());
        let listener = ns.run(|| Listener::bind(address, port))??;
        let collected = Arc::new(Mutex::new(Collected {
            datagrams: 0,
            flow_samples: 0,
            counter_samples: 0,
            malformed: 0,
            talkers: TopTalkers::new(1024),
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let (into, until) = (collected.clone(), stop.clone());
        let run = move || {
            let take = |received: Received<'_>| {
                into.lock().unwrap_or_else(PoisonError::into_inner).take(received);
                ControlFlow::Continue(())
            };
            if let Err(error) = listener.run(&until, take) {
                crate::report!("collector: {error}");
            }
        };
        let thread = std::thread::Builder::new().name("collector".into()).spawn(run);
        let thread = Some(thread.context("start the collector")?);
        Ok(Collector { collected, stop, thread })
    }

    /// Returns the counts so far.
    pub fn collected(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
