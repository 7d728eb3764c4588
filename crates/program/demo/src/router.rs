//! The router of the demonstration: its files, its process, its end.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use thalweg_cli::client::Client;
use thalweg_netns::{Lab, Running, wait_for_unix_socket, wait_until};

/// One packet in this many is sampled.
pub const SAMPLING_RATE: u32 = 100;
/// Seconds between samples of the interfaces' counters.
pub const POLLING_INTERVAL: u32 = 2;
/// Port of the collector, on the router's loopback.
pub const COLLECTOR_PORT: u16 = thalweg_sflow::SFLOW_PORT;

/// The router starts in some milliseconds; a machine under load takes longer.
const START_LIMIT: Duration = Duration::from_secs(20);
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Files of a demonstration.
#[derive(Clone, Debug)]
pub struct Files {
    pub dir: PathBuf,
}

impl Files {
    pub fn socket(&self) -> PathBuf {
        thalweg_cli::paths::cli_socket(&self.dir)
    }
    fn config(&self) -> PathBuf {
        self.dir.join("startup.conf")
    }
    fn script(&self) -> PathBuf {
        self.dir.join("router.cli")
    }
    fn pid(&self) -> PathBuf {
        self.dir.join("router.pid")
    }
    pub fn log(&self) -> PathBuf {
        self.dir.join("router.log")
    }

    /// Writes what the router reads at its start.
    fn write(&self, lab: &Lab) -> Result<()> {
        let mut script = String::new();
        for side in [&lab.left, &lab.right] {
            let dev = side.router_dev;
            script += &format!(
                "create host-interface name {dev}\n\
                 set interface ip address host-{dev} {}/24\n\
                 set interface state host-{dev} up\n",
                side.gateway
            );
        }
        script += &format!(
            "sflow sampling-rate {SAMPLING_RATE}\n\
             sflow polling-interval {POLLING_INTERVAL}\n\
             sflow agent-address {}\n\
             sflow collector add 127.0.0.1 port {COLLECTOR_PORT}\n",
            lab.left.gateway
        );
        for side in [&lab.left, &lab.right] {
            script += &format!("sflow enable-disable host-{}\n", side.router_dev);
        }
        let config = format!(
            "unix {{\n  nodaemon\n  runtime-dir {}\n  cli-listen cli.sock\n  exec {}\n  \
             pidfile {}\n}}\n",
            self.dir.display(),
            self.script().display(),
            self.pid().display()
        );
        for (path, text) in [(self.script(), script), (self.config(), config)] {
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }
}

/// The router's process.
pub enum Router {
    /// Ends with this process.
    Ours(Running),
    /// Outlives this process, and writes its log to a file.
    Kept(Child, Files),
}

/// End of the router.
pub struct Ending {
    pub status: ExitStatus,
    pub log: String,
}

impl Router {
    /// Starts the router in the lab's middle and waits for its command line.
    pub fn start(lab: &Lab, files: &Files, keep: bool) -> Result<Router> {
        files.write(lab)?;
        let program = std::env::current_exe().context("find this program's file")?;
        let mut router = match keep {
            true => Router::Kept(spawn_kept(lab, files, &program)?, files.clone()),
            false => {
                let cmd = lab.router.command(&program).args(["run", "-c"]).arg(files.config());
                Router::Ours(cmd.spawn()?)
            }
        };
        let socket = files.socket();
        let answers = || match router.ended() {
            Ok(None) if socket.exists() => Some(Ok(())),
            Ok(None) => None,
            Ok(Some(status)) => Some(Err(format!("it ended with {status}"))),
            Err(error) => Some(Err(error.to_string())),
        };
        match wait_until(START_LIMIT, "the router's command line", answers) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => bail!("the router did not start: {why}\n{}", router.log()),
            Err(error) => bail!("{error}\n{}", router.log()),
        }
        wait_for_unix_socket(&socket, START_LIMIT)
            .with_context(|| format!("the router said\n{}", router.log()))?;
        // A command's answer comes when the startup script is done.
        let sflow = Client::connect(&socket).and_then(|mut client| client.run("show sflow"));
        let sflow = sflow.with_context(|| format!("the router said\n{}", router.log()))?;
        // The script's last line.
        if !sflow.contains(&format!("sflow enable host-{}", lab.right.router_dev)) {
            bail!("the router could not be set up:\n{}", router.log());
        }
        Ok(router)
    }

    /// The exit status if the router has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        match self {
            Router::Ours(running) => running.try_status(),
            Router::Kept(child, _) => Ok(child.try_wait()?),
        }
    }

    /// Returns the router's log.
    pub fn log(&self) -> String {
        match self {
            Router::Ours(running) => running.stderr(),
            Router::Kept(_, files) => fs::read_to_string(files.log()).unwrap_or_default(),
        }
    }

    pub fn pid(&self) -> u32 {
        match self {
            Router::Ours(running) => running.pid(),
            Router::Kept(child, _) => child.id(),
        }
    }

    /// Asks the router to end and waits for it.
    pub fn stop(self) -> Result<Ending> {
        match self {
            Router::Ours(running) => {
                let output = running.stop(STOP_LIMIT)?;
                Ok(Ending { status: output.status, log: output.stderr })
            }
            Router::Kept(mut child, files) => {
                terminate(child.id())?;
                let ended = || child.try_wait().ok().flatten();
                let status = wait_until(STOP_LIMIT, "the router to end", ended)?;
                Ok(Ending { status, log: fs::read_to_string(files.log()).unwrap_or_default() })
            }
        }
    }
}

/// Starts a router that outlives this process, in a process group of its own, so that Ctrl-C on the
/// terminal does not reach it.
fn spawn_kept(lab: &Lab, files: &Files, program: &Path) -> Result<Child> {
    let log = File::create(files.log()).with_context(|| files.log().display().to_string())?;
    let spawn = || {
        Command::new(program)
            .args(["run", "-c"])
            .arg(files.config())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .spawn()
    };
    lab.router.run(spawn)?.with_context(|| format!("start {}", program.display()))
}

fn terminate(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no process number")?;
    kill_process(pid, Signal::TERM).with_context(|| format!("end process {pid:?}"))
}

/// Ends a kept router, if there is one.
pub fn end_kept(files: &Files) -> Result<bool> {
    let Ok(text) = fs::read_to_string(files.pid()) else { return Ok(false) };
    let Ok(pid) = text.trim().parse::<u32>() else { return Ok(false) };
    let config = files.config();
    // The number may be another's by now.
    let is_ours = || {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|b| *b == 0).any(|word| word == config.as_os_str().as_encoded_bytes())
    };
    if !is_ours() {
        return Ok(false);
    }
    terminate(pid)?;
    let gone = || (!is_ours()).then_some(());
    wait_until(STOP_LIMIT, "the router to end", gone)?;
    Ok(true)
}
