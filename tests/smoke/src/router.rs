//! A router under test.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;
use thalweg_cli::client::{Client, ClientError};
use thalweg_testkit::{
    Keeper, Netns, Output, Running, Signal, WAIT_LIMIT, join, keep_while_paused,
    wait_for_unix_socket, wait_until_seen,
};
use thalweg_wire::MacAddr;

use crate::binary::thalweg;

/// Limit of the time for a CLI command, which may be a file of thousands.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// The same for the report of a scenario that has failed.
const REPORT_LIMIT: Duration = Duration::from_secs(10);

/// Packet buffers of a router by default: enough for a full ring on each side.
const BUFFERS: u32 = 16_384;

/// Names in the environment how many workers a router has by default.
const WORKERS: &str = "THALWEG_TEST_WORKERS";

/// The startup configuration, in the router's directory.
const STARTUP: &str = "startup.conf";

fn start_program(
    ns: &Netns,
    dir: &Path,
    kernels: Option<&str>,
    document: Option<&Path>,
    keeper: Option<&Keeper>,
) -> Result<Running> {
    let (program, _lent) = match keeper {
        None => (ns.command(thalweg()?), Vec::new()),
        Some(keeper) => {
            let (script, lent) = keeper.hand_over()?;
            let program = ns.command("bash").args(["-c", &script]).arg(thalweg()?);
            (program.env("NOTIFY_SOCKET", keeper.socket().display().to_string()), lent)
        }
    };
    let mut program = program.args(["run", "-c"]).arg(dir.join(STARTUP));
    if let Some(document) = document {
        program = program.arg("--config").arg(document);
    }
    let program = program.env("LC_ALL", "C");
    match kernels {
        Some(level) => program.env("THALWEG_SIMD", level),
        None => program,
    }
    .spawn()
}

/// Start of a router: configuration and commands.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Stanzas of its startup configuration, `unix` excepted.
    pub stanzas: String,
    /// Commands to run, in order, once it listens.
    pub commands: Vec<String>,
    /// Level of its frame kernels; `None`: the best there is, or what the environment says.
    pub kernels: Option<&'static str>,
    /// The document that it keeps its configuration in.
    pub document: Option<PathBuf>,
    /// A service manager that keeps its descriptors.
    pub keeper: Option<Keeper>,
}

impl Config {
    /// No interface.
    pub fn empty() -> Config {
        Config::default()
    }

    /// Adds stanzas.
    #[must_use]
    pub fn stanza(mut self, text: &str) -> Config {
        self.stanzas.push_str(text);
        self.stanzas.push('\n');
        self
    }

    /// Keeps its configuration in a document.
    #[must_use]
    pub fn keeps(mut self, document: &Path) -> Config {
        self.document = Some(document.to_owned());
        self
    }

    /// Makes a service manager keep its descriptors.
    #[must_use]
    pub fn kept_by(mut self, keeper: &Keeper) -> Config {
        self.keeper = Some(keeper.clone());
        self
    }

    /// Makes frame kernels use a level of instructions, as `THALWEG_SIMD` names it.
    #[must_use]
    pub fn kernels(mut self, level: &'static str) -> Config {
        self.kernels = Some(level);
        self
    }

    /// Adds commands, one per line.
    #[must_use]
    pub fn commands(mut self, text: &str) -> Config {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        self.commands.extend(lines.map(str::to_owned));
        self
    }
}

/// Both interfaces of a lab's router, with `.1` of both subnets.
pub fn host_pair() -> Config {
    host_pair_with("")
}

/// Does the work of [`host_pair`], with further words for `create host-interface`.
pub fn host_pair_with(words: &str) -> Config {
    Config::empty().commands(&format!(
        "create host-interface name eth0 {words}
         create host-interface name eth1 {words}
         set interface ip address host-eth0 10.10.1.1/24
         set interface ip address host-eth1 10.10.2.1/24
         set interface state host-eth0 up
         set interface state host-eth1 up"
    ))
}

/// A running `thalweg run`.
///
/// If it is dropped without [`stop`](Router::stop), the scenario has failed, and the router's log,
/// interfaces, errors, runtime and traces go to standard error. With `PAUSE=1` it runs on until the
/// scenario's pause ends.
pub struct Router {
    running: Option<Running>,
    ns: Netns,
    dir: Arc<TempDir>,
    socket: PathBuf,
    kernels: Option<&'static str>,
    document: Option<PathBuf>,
}

impl Router {
    /// Starts one in `ns`, waits for its CLI and runs the configuration's commands.
    ///
    /// # Errors
    /// If it ends, does not listen in time, or refuses a command.
    pub fn start(ns: &Netns, config: &Config) -> Result<Router> {
        let router = Router::launch(ns, config)?;
        for command in &config.commands {
            router.cli(command)?;
        }
        Ok(router)
    }

    fn launch(ns: &Netns, config: &Config) -> Result<Router> {
        let dir = TempDir::with_prefix("thalweg-smoke-").context("make a directory")?;
        Router::launch_in(ns, config, dir)
    }

    fn launch_in(ns: &Netns, config: &Config, dir: TempDir) -> Result<Router> {
        let socket = dir.path().join("cli.sock");
        let startup = dir.path().join(STARTUP);
        let mut text = format!(
            "unix {{ nodaemon runtime-dir {dir} files {files} cli-listen {socket} }}\n{}",
            config.stanzas,
            dir = dir.path().display(),
            files = env::temp_dir().display(),
            socket = socket.display(),
        );
        if let (Ok(workers), false) = (env::var(WORKERS), config.stanzas.contains("cpu")) {
            let _ = writeln!(text, "cpu {{ workers {workers} }}");
        }
        if !config.stanzas.contains("buffers") {
            let _ = writeln!(text, "buffers {{ buffers-per-numa {BUFFERS} }}");
        }
        fs::write(&startup, text).context("write the startup configuration")?;
        let document = config.document.clone();
        let running = start_program(
            ns,
            dir.path(),
            config.kernels,
            document.as_deref(),
            config.keeper.as_ref(),
        )?;
        let (ns, kernels, dir) = (ns.clone(), config.kernels, Arc::new(dir));
        let mut router = Router { running: Some(running), ns, dir, socket, kernels, document };
        router.await_cli()?;
        Ok(router)
    }

    fn await_cli(&mut self) -> Result<()> {
        let running = self.running.as_mut().context("the router has been stopped")?;
        let step = Duration::from_millis(50);
        let mut waited = Duration::ZERO;
        // Wait in steps, to see at once if it ends instead.
        while let Err(error) = wait_for_unix_socket(&self.socket, step) {
            waited += step;
            if let Some(status) = running.try_status()? {
                bail!("the router ended at its start, {status}: {}", running.stderr());
            }
            if waited >= WAIT_LIMIT {
                return Err(error).context("the router does not listen");
            }
        }
        // Commands are held back until its configuration is in place.
        if self.document.is_some() {
            self.cli("show version")?;
        }
        Ok(())
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().map_or(0, Running::pid)
    }

    /// Its namespace.
    pub fn ns(&self) -> &Netns {
        &self.ns
    }

    /// Its CLI socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A directory of its own, removed with it.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        self.running
            .as_ref()
            .map(|running| running.stdout() + &running.stderr())
            .unwrap_or_default()
    }

    /// Runs a command.
    ///
    /// # Errors
    /// If it fails; the error holds what the router said.
    pub fn cli(&self, command: &str) -> Result<String> {
        self.ask(command)?.with_context(|| format!("command `{command}'"))
    }

    /// Runs a command; its failure is a result.
    fn ask(&self, command: &str) -> Result<Result<String, ClientError>> {
        self.ask_within(ANSWER_LIMIT, command)
    }

    fn ask_within(&self, limit: Duration, command: &str) -> Result<Result<String, ClientError>> {
        let (socket, line) = (self.socket.clone(), command.to_owned());
        // Ask in a thread of its own: a router that hangs does not answer, and the client waits for
        // it.
        let asked = thread::spawn(move || Client::connect(&socket)?.run(&line));
        join(asked, limit, &format!("command `{command}'"))
    }

    /// Runs a command that has to fail; gives what the router said.
    ///
    /// # Errors
    /// If the command succeeds, or the router does not answer.
    pub fn refused(&self, command: &str) -> Result<String> {
        match self.ask(command)? {
            Err(ClientError::Failed { output }) => Ok(output),
            Err(error) => Err(error).with_context(|| format!("command `{command}'")),
            Ok(output) => bail!("`{command}' should have been refused; it said:\n{output}"),
        }
    }

    /// Runs a show command in its JSON form.
    ///
    /// # Errors
    /// If the command fails or has no such form.
    pub fn json(&self, command: &str) -> Result<Value> {
        let text = self.cli(&format!("{command} | json"))?;
        serde_json::from_str(&text).with_context(|| format!("`{command} | json' gave {text:?}"))
    }

    /// Returns a counter of `show interface`, such as `rx_packets`.
    ///
    /// # Errors
    /// If there is no such interface or counter.
    pub fn interface_counter(&self, interface: &str, name: &str) -> Result<u64> {
        let shown = self.json(&format!("show interface {interface}"))?;
        counter(&shown, interface, name)
    }

    /// Waits until an interface has received this number of packets in total.
    ///
    /// # Errors
    /// If it does not.
    pub fn await_received(&self, interface: &str, packets: u64) -> Result<()> {
        let what = format!("{packets} packets to be received by {interface}");
        wait_until_seen(WAIT_LIMIT, &what, || {
            match self.interface_counter(interface, "rx_packets") {
                Ok(now) if now >= packets => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
    }

    /// The hardware address of an interface, which need not be that of the device below it.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn mac(&self, interface: &str) -> Result<MacAddr> {
        let text = self.cli(&format!("show hardware-interfaces {interface}"))?;
        let address = text.lines().find_map(|line| line.trim().strip_prefix("Ethernet address "));
        let address = address.with_context(|| format!("no address of {interface} in:\n{text}"))?;
        address.trim().parse().with_context(|| format!("{interface} has address {address:?}"))
    }

    /// Returns how often a node gave this reason; zero if it never did.
    ///
    /// # Errors
    /// If the router does not answer.
    pub fn error_count(&self, node: &str, reason: &str) -> Result<u64> {
        let shown = self.json("show errors")?;
        let rows = shown.as_array().context("show errors gives a list")?;
        let matching = rows.iter().filter(|row| {
            row["node"] == node && row["reason"].as_str().is_some_and(|text| text.contains(reason))
        });
        Ok(matching.filter_map(|row| row["count"].as_u64()).sum())
    }

    /// Waits until every packet that came in has left, and every packet is accounted for.
    ///
    /// # Errors
    /// If packets stay inside, or left uncounted or twice.
    pub fn await_rest(&self) -> Result<()> {
        wait_until_seen(WAIT_LIMIT, "every packet to be accounted for", || {
            let shown = self.json("show packet accounting").map_err(|e| format!("{e:#}"))?;
            let sum = shown["threads"].as_array().and_then(|rows| rows.last().cloned());
            let inside = sum.as_ref().and_then(|sum| sum["in_flight"].as_i64());
            if inside == Some(0) { Ok(()) } else { Err(format!("in flight: {inside:?}; {shown}")) }
        })
    }

    /// Asks it to end, and checks that its accounts balance and it ends well: with status 0, which
    /// it gives only if every buffer has come home.
    ///
    /// # Errors
    /// If it does not.
    pub fn stop(self) -> Result<Output> {
        self.await_rest()?;
        self.stop_busy()
    }

    /// Does the work of [`stop`](Router::stop), though packets still come in.
    ///
    /// # Errors
    /// If it does not end, or not well.
    pub fn stop_busy(mut self) -> Result<Output> {
        let running = self.running.as_ref().context("the router has been stopped")?;
        running.signal(Signal::TERM)?;
        let running = self.running.as_mut().context("the router has been stopped")?;
        let status = running.wait(WAIT_LIMIT)?;
        ensure!(status.success(), "the router ended with {status}");
        ensure!(!self.socket.exists(), "the router left its CLI socket behind");
        let running = self.running.take().context("the router has been stopped")?;
        running.finish(WAIT_LIMIT)
    }

    /// Kills it (SIGKILL), as a fault would, and starts it again in the same directory.
    ///
    /// # Errors
    /// If it had ended before, or does not start.
    pub fn kill_and_start(&mut self, config: &Config) -> Result<()> {
        self.alive()?;
        let mut running = self.running.take().context("the router has been stopped")?;
        running.signal(Signal::KILL)?;
        running.wait(WAIT_LIMIT)?;
        ensure!(self.socket.exists(), "a killed router cannot remove its socket");
        self.start_again(config)
    }

    /// Stops it (SIGTERM), and starts it again in the same directory.
    ///
    /// # Errors
    /// If it does not end well, or does not start.
    pub fn stop_and_start(&mut self, config: &Config) -> Result<()> {
        let mut running = self.running.take().context("the router has been stopped")?;
        running.signal(Signal::TERM)?;
        let status = running.wait(WAIT_LIMIT)?;
        ensure!(status.success(), "the router ended with {status}: {}", running.stderr());
        self.start_again(config)
    }

    fn start_again(&mut self, config: &Config) -> Result<()> {
        let document = self.document.as_deref();
        let keeper = config.keeper.as_ref();
        let started = start_program(&self.ns, self.dir.path(), self.kernels, document, keeper)?;
        self.running = Some(started);
        // The socket of the killed one is still there: what listens has to be the new one.
        wait_until_seen(WAIT_LIMIT, "the CLI to answer", || self.cli("show version").map(drop))?;
        for command in &config.commands {
            self.cli(command)?;
        }
        Ok(())
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// If it has ended, with its log.
    pub fn alive(&mut self) -> Result<()> {
        let running = self.running.as_mut().context("the router has been stopped")?;
        match running.try_status()? {
            None => Ok(()),
            Some(status) => bail!("the router has ended with {status}: {}", running.stderr()),
        }
    }

    /// Waits until its log says `text`.
    ///
    /// # Errors
    /// If it does not in time.
    pub fn await_log(&self, text: &str) -> Result<()> {
        let what = format!("{text:?} in the log");
        wait_until_seen(WAIT_LIMIT, &what, || {
            let log = self.log();
            if log.contains(text) { Ok(()) } else { Err(log) }
        })
    }

    /// The command for a shell of this router's CLI.
    fn thalctl(&self) -> String {
        let program = thalweg().unwrap_or_default().with_file_name("thalctl");
        format!("{} -s {}", program.display(), self.socket.display())
    }

    /// Returns output that helps to find out why a scenario failed.
    fn report(&self) -> String {
        let mut report = format!("--- log of the router ---\n{}", self.log());
        for command in [
            "show interface",
            "show hardware-interfaces",
            "show ip neighbors",
            "show ip fib",
            "show errors",
            "show packet accounting",
            "show runtime",
            "show buffers",
            "show trace max 20",
        ] {
            let Ok(answer) = self.ask_within(REPORT_LIMIT, command) else {
                let _ = writeln!(report, "--- it does not answer ---");
                break;
            };
            let answer = answer.unwrap_or_else(|error| format!("{error:#}"));
            let _ = writeln!(report, "--- {command} ---\n{}", answer.trim_end());
        }
        report
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        if self.running.is_some() {
            eprintln!("{}", self.report());
        }
        if let Some(running) = self.running.take() {
            // If failed scenarios are not paused, it comes back and ends here.
            let _ = keep_while_paused(self.thalctl(), (running, self.dir.clone()));
        }
    }
}

/// Reads a counter from the answer to `show interface | json`.
///
/// # Errors
/// If there is no such interface or counter.
pub fn counter(shown: &Value, interface: &str, name: &str) -> Result<u64> {
    let rows = shown.as_array().context("show interface gives a list")?;
    let row = rows
        .iter()
        .find(|row| row["name"] == interface)
        .with_context(|| format!("show interface lacks {interface}: {shown}"))?;
    row["counters"][name]
        .as_u64()
        .with_context(|| format!("interface {interface} has no counter {name}: {row}"))
}
