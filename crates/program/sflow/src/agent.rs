//! `thalweg agent`: the standalone sFlow agent, configured like hsflowd.
//!
//! The agent receives netlink messages of Thalweg, VPP or the kernel and sends them, with the
//! host's counters, to collectors. SIGHUP reloads its configuration, SIGTERM and SIGINT end it.

use anyhow::Context;
use rustix::fs::Mode;
use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_files::PidFile;
use thalweg_sflow::value::Uuid;
use thalweg_sflow_agent::agent::Collectors;
use thalweg_sflow_agent::conf::{HsflowdConf, Reader};
use thalweg_sflow_agent::host::parse_uuid;
use thalweg_sflow_agent::netlink::{Channel, Event, Notice, Receiver, ReceiverConfig};
use thalweg_sflow_agent::relay::{Relay, listen_to};
use thalweg_terminal::log::Log;
use tracing::level_filters::LevelFilter;

/// A signal that precedes the wait for messages is seen this late.
const SIGNAL_LATENCY: Duration = Duration::from_millis(500);
/// Time that the last lines of the log may take at the end.
const LAST_LINES: Duration = Duration::from_millis(200);
/// User and group ID of the unprivileged user.
const UNPRIVILEGED: u32 = 65_534;

/// Run the standalone sFlow agent.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Configuration file in the syntax of hsflowd.conf
    #[arg(short = 'f', long, value_name = "FILE", default_value = "/etc/hsflowd.conf")]
    file: PathBuf,
    /// Log more; twice, everything
    #[arg(short = 'd', long, action = clap::ArgAction::Count)]
    debug: u8,
    /// Write the process ID to a file
    #[arg(short = 'p', long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
    /// UUID of this host, unless the configuration sets it
    #[arg(short = 'u', long, value_name = "UUID", value_parser = uuid)]
    uuid: Option<Uuid>,
    /// Stay root with all capabilities
    #[arg(short = 'P', long)]
    keep_root: bool,
    /// Check the configuration and exit
    #[arg(short = 't', long)]
    test: bool,
}

const EXAMPLES: &str = "\
Examples:
  thalweg agent -f hsflowd.conf      with an existing hsflowd.conf
  thalweg agent -t -f hsflowd.conf   only check the configuration
  kill -HUP PID                      reload the configuration

The agent runs in the foreground and logs to standard error. It must run in the network namespace of
the router that it listens to. Started as root, it switches to an unprivileged user and keeps only the
capabilities to listen and to enter the collectors' namespaces.";

fn uuid(text: &str) -> Result<Uuid, String> {
    parse_uuid(text).ok_or_else(|| "expected 32 hexadecimal digits, not all 0".into())
}

/// The program.
pub fn main(args: &Args) -> ExitCode {
    let level = match args.debug {
        0 => LevelFilter::INFO,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let log = tracing_subscriber::fmt().with_max_level(level).with_target(false);
    let lines = Log::new();
    let queue = lines.clone();
    // Only a second start in one process, in a test, meets another log.
    let _ = log.with_ansi(colour).with_writer(move || queue.line()).try_init();
    let ended = serve(args, &lines);
    // If it has ended before it could begin.
    if lines.begin(std::io::stderr()).is_ok() {
        lines.flush(LAST_LINES);
    }
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, error)) => crate::fail(status, &format!("{error:#}")),
    }
}

fn serve(args: &Args, lines: &Log) -> Result<(), (u8, anyhow::Error)> {
    let conf = read(args).map_err(|error| (crate::USAGE, error))?;
    if args.test {
        crate::say!("{}: valid, {} collectors", args.file.display(), conf.collectors.len());
        return Ok(());
    }
    run(args, conf, lines).map_err(|error| (crate::FAILED, error))
}

/// Maximum size of the configuration in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Reads the file, and logs what in it has no effect.
fn read(args: &Args) -> anyhow::Result<HsflowdConf> {
    let name = args.file.display().to_string();
    let bytes = thalweg_files::read(&args.file, MAX_FILE).context("configuration")?;
    let (mut conf, warnings) = HsflowdConf::parse_bytes(Reader::Agent, &name, &bytes)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    conf.uuid = conf.uuid.or(args.uuid);
    Ok(conf)
}

/// Flags that signals set.
struct Flags {
    stop: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

impl Flags {
    fn catch() -> std::io::Result<Flags> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let flags = Flags { stop: Arc::default(), reload: Arc::default() };
        for signal in [SIGINT, SIGTERM] {
            // The second one ends it at once.
            signal_hook::flag::register_conditional_shutdown(signal, 1, flags.stop.clone())?;
            signal_hook::flag::register(signal, flags.stop.clone())?;
        }
        signal_hook::flag::register(SIGHUP, flags.reload.clone())?;
        Ok(flags)
    }
}

fn run(args: &Args, mut conf: HsflowdConf, lines: &Log) -> anyhow::Result<()> {
    let flags = Flags::catch()?;
    let pid_file = args.pid_file.as_deref().map(PidFile::write).transpose()?;
    if conf.uuid.is_none() {
        // Without privileges the machine's identity cannot be read any more.
        conf.uuid = thalweg_sflow_agent::host::machine_uuid();
    }
    let identity = conf.uuid;
    if rustix::process::geteuid().is_root() && !args.keep_root {
        drop_rights(&conf);
    }
    lines.begin(std::io::stderr()).context("cannot log")?;
    let start = Instant::now();
    let mut collectors = Collectors::new();
    collectors.configure(&conf.collectors, start);
    let mut wanted = listen_to(&conf);
    let mut receiver = Receiver::new(wanted.clone());
    let mut relay = Relay::new(conf, collectors, start)?;
    tracing::info!("sflow: agent started");
    while !flags.stop.load(Ordering::Acquire) {
        let now = Instant::now();
        let wait = relay.deadline(now).saturating_duration_since(now).min(SIGNAL_LATENCY);
        let heard = receiver.poll(wait, |event| {
            match event {
                Event::Message(message) => relay.handle(&message, Instant::now()),
                Event::Notice(notice @ (Notice::Joined(_) | Notice::DropsStarted)) => {
                    tracing::info!("{notice}");
                }
                Event::Notice(notice) => {
                    tracing::warn!("{notice}");
                    if let Notice::Overrun(channel, datagrams) = notice {
                        relay.overrun(channel, datagrams);
                    }
                }
            }
            ControlFlow::Continue(())
        });
        let _ = heard.context("cannot poll for messages")?;
        relay.tick(Instant::now());
        if relay.drops_too_many() && wanted.channels.contains(&Channel::Dropmon) {
            // Dropping the receiver stops a monitor that it has started.
            drop(receiver);
            wanted.channels.retain(|channel| *channel != Channel::Dropmon);
            wanted.start_drops = None;
            receiver = Receiver::new(wanted.clone());
        }
        if !flags.reload.swap(false, Ordering::AcqRel) {
            continue;
        }
        match reload(args, &mut relay, identity) {
            Ok(new) if new != wanted => {
                // The old one stops a monitor that it has started, before the new one starts it.
                drop(receiver);
                receiver = Receiver::new(new.clone());
                wanted = new;
            }
            Ok(_) => {}
            Err(error) => {
                tracing::error!("reload failed, keeping the old configuration: {error:#}")
            }
        }
    }
    relay.flush(Instant::now());
    let stats = relay.stats();
    tracing::info!(
        "sflow: agent stopped: sent {} packet samples, {} counter samples, {} discards, {} host \
         samples; {} lost upstream",
        stats.samples,
        stats.counters,
        stats.discards,
        stats.host_samples,
        stats.lost
    );
    drop(pid_file);
    Ok(())
}

/// Reloads the file. Returns the configuration of the receiver.
fn reload(
    args: &Args,
    relay: &mut Relay,
    identity: Option<Uuid>,
) -> anyhow::Result<ReceiverConfig> {
    let now = Instant::now();
    let mut conf = read(args)?;
    conf.uuid = conf.uuid.or(identity);
    let receiver = listen_to(&conf);
    let collectors = conf.collectors.clone();
    relay.flush(now);
    relay.configure(conf, now)?;
    if let Some(transport) = relay.transport_mut() {
        transport.configure(&collectors, now);
    }
    tracing::info!("sflow: configuration reloaded");
    Ok(receiver)
}

/// Rights that are needed later: to join groups, and to enter namespaces (which newer kernels also
/// require of listeners to drops).
fn rights(conf: &HsflowdConf) -> CapabilitySet {
    let mut rights = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    if conf.dropmon.is_some() || conf.collectors.iter().any(|c| c.namespace.is_some()) {
        rights |= CapabilitySet::SYS_ADMIN;
    }
    rights
}

/// Drops privileges. No other thread runs yet; later ones inherit from this one.
fn drop_rights(conf: &HsflowdConf) {
    let drop_user = || -> rustix::io::Result<()> {
        let (user, group) = (Uid::from_raw(UNPRIVILEGED), Gid::from_raw(UNPRIVILEGED));
        rustix::thread::set_keep_capabilities(true)?;
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(group, group, group)?;
        rustix::thread::set_thread_res_uid(user, user, user)
    };
    if let Err(error) = drop_user() {
        tracing::warn!(
            "cannot switch to an unprivileged user; staying root with reduced capabilities: {error}"
        );
    }
    let drop_others = || -> rustix::io::Result<()> {
        let held = rustix::thread::capabilities(None)?.permitted;
        let kept = rights(conf) & held;
        let sets = CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        };
        rustix::thread::set_capabilities(None, sets)?;
        rustix::thread::set_no_new_privs(true)
    };
    match drop_others() {
        Ok(()) => drop(rustix::process::umask(Mode::from_bits_truncate(0o077))),
        Err(error) => tracing::warn!("cannot drop capabilities: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conf(text: &str) -> HsflowdConf {
        HsflowdConf::parse(Reader::Agent, "test", text).unwrap().0
    }

    #[test]
    fn few_rights_are_kept() {
        let plain = conf("sflow { collector { ip = 192.0.2.1 } psample { } }");
        assert_eq!(rights(&plain), CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW);
        for text in ["collector { ip=192.0.2.1 namespace=x }", "collector{ip=192.0.2.1} dropmon {}"]
        {
            let conf = conf(&format!("sflow {{ {text} }}"));
            assert!(rights(&conf).contains(CapabilitySet::SYS_ADMIN), "{text}");
        }
    }
}
