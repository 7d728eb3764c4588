//! Programs that run inside a namespace, with a limit to their time and no way to outlive us.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sched::{CloneFlags, setns};
pub use rustix::process::Signal;
use rustix::process::{
    Pid, PidfdFlags, kill_process_group, pidfd_open, pidfd_send_signal, test_kill_process_group,
};

use crate::privilege::{find_program, missing_program};
use crate::wait::{WAIT_LIMIT, readable, wait_until};
use crate::waiting::Note;

/// Time that [`Cmd::run`] lets a program run by default.
const DEFAULT_DEADLINE: Duration = WAIT_LIMIT;
/// Time that a program's pipes may stay open after it has ended (its own children may hold them).
const PIPE_GRACE: Duration = Duration::from_secs(5);
/// Time that children of a program may run on after a signal that has ended the program.
const GROUP_GRACE: Duration = Duration::from_secs(2);

/// A program to run, in the manner of [`std::process::Command`].
#[derive(Clone)]
#[must_use = "a Cmd does nothing until run() or spawn()"]
pub struct Cmd {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, Option<OsString>)>,
    dir: Option<PathBuf>,
    stdin: Stdin,
    deadline: Duration,
    namespace: Option<Arc<OwnedFd>>,
    outlives: bool,
    place: String,
}

#[derive(Clone)]
enum Stdin {
    Null,
    Bytes(Vec<u8>),
    Piped,
}

impl Cmd {
    /// A program in the network namespace that this process started in.
    pub fn new(program: impl AsRef<OsStr>) -> Cmd {
        Cmd {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            dir: None,
            stdin: Stdin::Null,
            deadline: DEFAULT_DEADLINE,
            namespace: None,
            outlives: false,
            place: String::new(),
        }
    }

    pub(crate) fn inside(mut self, namespace: Arc<OwnedFd>, label: &str) -> Cmd {
        self.namespace = Some(namespace);
        self.place = format!(" in namespace {label}");
        self
    }

    /// Lets the program go on when this process dies: for one that ends by its input.
    pub(crate) fn outlive(mut self) -> Cmd {
        self.outlives = true;
        self
    }

    /// Appends one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Cmd {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Appends arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Cmd {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Cmd {
        self.env.push((key.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Keeps an environment variable from the program.
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Cmd {
        self.env.push((key.as_ref().to_owned(), None));
        self
    }

    /// Sets the directory to run in.
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Cmd {
        self.dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Gives the program these bytes as its standard input (empty by default).
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Cmd {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// Leaves standard input open for [`Running::write_stdin`].
    pub fn stdin_piped(mut self) -> Cmd {
        self.stdin = Stdin::Piped;
        self
    }

    /// Limits the time of [`Cmd::run`] and [`Cmd::output`] ([`WAIT_LIMIT`] by default).
    pub fn deadline(mut self, deadline: Duration) -> Cmd {
        self.deadline = deadline;
        self
    }

    /// Runs to the end, whatever the exit status.
    ///
    /// # Errors
    /// If the program cannot start, or still runs after its deadline (it is killed then).
    pub fn run(self) -> Result<Output> {
        let deadline = self.deadline;
        self.spawn()?.finish(deadline)
    }

    /// Runs to the end and returns what was printed.
    ///
    /// # Errors
    /// The errors of [`Cmd::run`], and if the exit status is not 0: the error quotes all that was
    /// printed.
    pub fn output(self) -> Result<String> {
        Ok(self.run()?.success()?.stdout)
    }

    /// Starts the program in the background. Dropping the value kills it, with all that it has
    /// started; if this process dies, only the program itself is killed (see
    /// [`Guard`](crate::Guard)).
    pub fn spawn(self) -> Result<Running> {
        let what = self.to_string();
        let mut command = self.command()?;
        let piped = !matches!(self.stdin, Stdin::Null);
        command
            .stdin(if piped { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C on our terminal is for us: we end it in our own time.
            .process_group(0);
        let mut child = spawn_in(command, self.namespace.clone())
            .with_context(|| format!("cannot start {what}"))?;
        let pid = Pid::from_child(&child);
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error).with_context(|| format!("cannot watch {what}"));
            }
        };
        let printed = Arc::new(Printed::default());
        remember(&what, &printed);
        let out = child.stdout.take().context("stdout was asked for as a pipe")?;
        let err = child.stderr.take().context("stderr was asked for as a pipe")?;
        collect(out, printed.clone(), |streams| &mut streams.stdout);
        collect(err, printed.clone(), |streams| &mut streams.stderr);
        let mut stdin = child.stdin.take();
        if let Stdin::Bytes(bytes) = self.stdin
            && let Some(mut pipe) = stdin.take()
        {
            // A program that does not read its input closes the pipe: its own affair.
            thread::spawn(move || pipe.write_all(&bytes));
        }
        Ok(Running { child, pidfd, printed, stdin, what, status: None })
    }

    /// Runs to the end with our standard input, output and error, without a deadline.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run_attended(self) -> Result<ExitStatus> {
        let mut child = spawn_in(self.command()?, self.namespace.clone())
            .with_context(|| format!("cannot start {self}"))?;
        child.wait().with_context(|| format!("wait for {self}"))
    }

    fn command(&self) -> Result<Command> {
        let program = find_program(&self.program).ok_or_else(|| missing_program(&self.program))?;
        // setpriv(1) arranges for the kernel to kill the program when the thread that started it
        // ends, and then becomes the program: the process number stays.
        let mut command = Command::new("setpriv");
        let death = if self.outlives { "clear" } else { "KILL" };
        command.args(["--pdeathsig", death, "--"]).arg(program).args(&self.args);
        for (key, value) in &self.env {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        Ok(command)
    }
}

impl fmt::Display for Cmd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}", self.program.to_string_lossy())?;
        for arg in &self.args {
            write!(f, " {}", arg.to_string_lossy())?;
        }
        write!(f, "`{}", self.place)
    }
}

struct Request {
    command: Command,
    namespace: Option<Arc<OwnedFd>>,
    reply: Sender<io::Result<Child>>,
}

/// Starts a child from the one thread that starts all of them.
///
/// A child inherits the network namespace of the thread that forks it, and "kill me when my
/// parent dies" means that thread too. One thread therefore does all the forking, entering
/// namespaces as it goes, and lives as long as the process.
fn spawn_in(command: Command, namespace: Option<Arc<OwnedFd>>) -> Result<Child> {
    static SPAWNER: OnceLock<Sender<Request>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, requests) = channel::<Request>();
        thread::spawn(move || {
            let home = File::open("/proc/thread-self/ns/net");
            for request in requests {
                let answer = spawn_here(request.command, request.namespace.as_deref(), &home);
                // The asker waits for the answer unless its thread was killed by a panic.
                let _ = request.reply.send(answer);
            }
        });
        sender
    });
    let (reply, answer) = channel();
    spawner
        .send(Request { command, namespace, reply })
        .map_err(|_| anyhow!("the thread that starts children has ended"))?;
    Ok(answer.recv().context("the thread that starts children has ended")??)
}

fn spawn_here(
    mut command: Command,
    namespace: Option<&OwnedFd>,
    home: &io::Result<File>,
) -> io::Result<Child> {
    let Some(namespace) = namespace else { return command.spawn() };
    let home = home.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    setns(namespace, CloneFlags::CLONE_NEWNET)?;
    let child = command.spawn();
    // Going home lets the namespace end with its owner.
    setns(home, CloneFlags::CLONE_NEWNET)?;
    child
}

/// Output of a program so far.
#[derive(Default)]
struct Printed {
    streams: Mutex<Streams>,
    changed: Condvar,
}

#[derive(Default)]
struct Streams {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    closed: u8,
}

impl Printed {
    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn collect(
    mut pipe: impl Read + Send + 'static,
    printed: Arc<Printed>,
    stream: fn(&mut Streams) -> &mut Vec<u8>,
) {
    thread::spawn(move || {
        let mut chunk = [0; 16 * 1024];
        loop {
            let read = pipe.read(&mut chunk);
            let mut streams = printed.lock();
            match read {
                Ok(n) if n > 0 => stream(&mut streams).extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                _ => {
                    streams.closed += 1;
                    printed.changed.notify_all();
                    return;
                }
            }
            printed.changed.notify_all();
        }
    });
}

/// Programs that were started, for [`running_programs`].
static STARTED: Mutex<Vec<(String, Weak<Printed>)>> = Mutex::new(Vec::new());

fn remember(what: &str, printed: &Arc<Printed>) {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    started.retain(|(_, printed)| printed.strong_count() > 0);
    started.push((what.to_owned(), Arc::downgrade(printed)));
}

/// Programs that still run, each with the end of what it has printed.
pub fn running_programs() -> String {
    const LINES: usize = 40;
    let mut text = String::new();
    for (what, printed) in &*STARTED.lock().unwrap_or_else(PoisonError::into_inner) {
        let Some(printed) = printed.upgrade() else { continue };
        let streams = printed.lock();
        if streams.closed == 2 {
            continue;
        }
        text.push_str(&format!("running: {what}\n"));
        for stream in [&streams.stdout, &streams.stderr] {
            let all = String::from_utf8_lossy(stream);
            let lines: Vec<_> = all.lines().collect();
            for line in &lines[lines.len().saturating_sub(LINES)..] {
                text.push_str(&format!("    {line}\n"));
            }
        }
    }
    text
}

/// A program that ran to its end.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    what: String,
}

impl Output {
    /// Passes `self` on if the exit status is 0.
    ///
    /// # Errors
    /// Otherwise, with the command, its status and all that it printed.
    pub fn success(self) -> Result<Output> {
        if self.status.success() {
            return Ok(self);
        }
        bail!(
            "{} ended with {}{}",
            self.what,
            Status(self.status),
            quote(&self.stdout, &self.stderr)
        )
    }
}

struct Status(ExitStatus);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.code(), self.0.signal()) {
            (Some(code), _) => write!(f, "exit status {code}"),
            (_, Some(signal)) => write!(f, "signal {signal}"),
            _ => write!(f, "{}", self.0),
        }
    }
}

fn quote(stdout: &str, stderr: &str) -> String {
    let mut text = String::new();
    for (name, stream) in [("stdout", stdout), ("stderr", stderr)] {
        if !stream.trim().is_empty() {
            text.push_str(&format!("\n--- {name} ---\n{}", stream.trim_end()));
        }
    }
    if text.is_empty() { "; it printed nothing".into() } else { text }
}

/// A program in the background.
pub struct Running {
    child: Child,
    pidfd: OwnedFd,
    printed: Arc<Printed>,
    stdin: Option<ChildStdin>,
    what: String,
    status: Option<ExitStatus>,
}

impl Running {
    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().stdout).into_owned()
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().stderr).into_owned()
    }

    /// Writes to its standard input; needs [`Cmd::stdin_piped`].
    pub fn write_stdin(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let pipe = self
            .stdin
            .as_mut()
            .with_context(|| format!("{} was started without stdin_piped()", self.what))?;
        pipe.write_all(bytes.as_ref())
            .and_then(|()| pipe.flush())
            .with_context(|| format!("write to {}", self.what))
    }

    /// Closes its standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits until `probe`, given standard output and standard error so far, gives a value.
    ///
    /// # Errors
    /// After `budget`, or at once if the program closes both streams first (as it does when it
    /// ends); the error quotes what it printed.
    pub fn wait_for_output<T>(
        &mut self,
        budget: Duration,
        what: &str,
        mut probe: impl FnMut(&str, &str) -> Option<T>,
    ) -> Result<T> {
        let _note = Note::new(&format!("{what} of {}", self.what));
        let deadline = Instant::now() + budget;
        let mut streams = self.printed.lock();
        loop {
            let out = String::from_utf8_lossy(&streams.stdout);
            let err = String::from_utf8_lossy(&streams.stderr);
            if let Some(value) = probe(&out, &err) {
                return Ok(value);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if streams.closed == 2 {
                bail!("{} ended before {what}{}", self.what, quote(&out, &err));
            }
            if left.is_zero() {
                bail!("waited {budget:?} for {what} of {}{}", self.what, quote(&out, &err));
            }
            streams = self
                .printed
                .changed
                .wait_timeout(streams, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Its exit status if it has ended.
    pub fn try_status(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status =
                self.child.try_wait().with_context(|| format!("wait for {}", self.what))?;
        }
        Ok(self.status)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// If it still runs after `budget`; it is left running then.
    pub fn wait(&mut self, budget: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let _note = Note::new(&format!("the end of {}", self.what));
        if !readable(self.pidfd.as_fd(), Instant::now() + budget)? {
            bail!(
                "{} still runs after {budget:?}{}",
                self.what,
                quote(&self.stdout(), &self.stderr())
            );
        }
        let status = self.child.wait().with_context(|| format!("wait for {}", self.what))?;
        self.status = Some(status);
        Ok(status)
    }

    /// Waits for its end and returns what it printed. If it still runs after `budget`, it is
    /// killed.
    pub fn finish(mut self, budget: Duration) -> Result<Output> {
        self.close_stdin();
        let status = self.wait(budget)?;
        self.await_pipes();
        Ok(Output { status, stdout: self.stdout(), stderr: self.stderr(), what: self.what.clone() })
    }

    /// Lets the readers get to the end of the pipes of a program that has ended.
    fn await_pipes(&self) {
        let streams = self.printed.lock();
        let _ = self.printed.changed.wait_timeout_while(streams, PIPE_GRACE, |s| s.closed < 2);
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if self.status.is_some() {
            bail!("{} has ended already", self.what);
        }
        pidfd_send_signal(&self.pidfd, signal)
            .with_context(|| format!("send a signal to {}", self.what))
    }

    /// Asks it and what it has started to end (SIGTERM), and waits for it.
    ///
    /// # Errors
    /// If it has not ended after `budget`; it is killed then.
    pub fn stop(self, budget: Duration) -> Result<Output> {
        self.interrupt(Signal::TERM, budget)
    }

    /// Sends its process group a signal that ends it, as a terminal does, and waits for it.
    /// Processes that it has started and left are killed.
    ///
    /// # Errors
    /// If it has not ended after `budget`; it is killed then.
    pub fn interrupt(mut self, signal: Signal, budget: Duration) -> Result<Output> {
        if self.try_status()?.is_some() {
            return self.finish(budget);
        }
        let group = self.group();
        // The process has not been reaped yet, so its process id cannot be that of another one.
        kill_process_group(group, signal)
            .with_context(|| format!("send a signal to {}", self.what))?;
        self.wait(budget)?;
        // The number of a group is not given to another while it has members.
        let left = || test_kill_process_group(group).is_err().then_some(());
        if wait_until(GROUP_GRACE, "the end of its children", left).is_err() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.finish(budget)
    }

    /// The group that it was started in, which is its own.
    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.status.is_none() {
            // Both fail only if the program has ended and been waited for already.
            let _ = kill_process_group(self.group(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.what, self.pid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = WAIT_LIMIT;

    fn shell(script: &str) -> Cmd {
        Cmd::new("sh").args(["-c", script])
    }

    #[test]
    fn output_is_captured() {
        let output = shell("echo out; echo err >&2; exit 3").run().unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(output.status.code(), Some(3));
        let error = output.success().unwrap_err().to_string();
        assert!(
            error.contains("exit status 3\n--- stdout ---\nout\n--- stderr ---\nerr"),
            "{error}"
        );
    }

    #[test]
    fn input_reaches_the_program() {
        assert_eq!(Cmd::new("cat").stdin("hello").output().unwrap(), "hello");
        let mut cat = Cmd::new("cat").stdin_piped().spawn().unwrap();
        cat.write_stdin("one\n").unwrap();
        cat.wait_for_output(LIMIT, "the echo", |out, _| out.contains("one").then_some(())).unwrap();
        assert!(cat.finish(LIMIT).unwrap().status.success());
    }

    #[test]
    fn a_program_past_its_deadline_is_killed() {
        let mut slow = Cmd::new("sleep").arg("1000").spawn().unwrap();
        let pid = slow.pid();
        let error = slow.wait(Duration::from_millis(5)).unwrap_err().to_string();
        assert!(error.contains("`sleep 1000` still runs after 5ms"), "{error}");
        drop(slow);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn an_early_end_is_told_from_silence() {
        let mut quick = shell("echo no; exit 1").spawn().unwrap();
        let error = quick
            .wait_for_output(LIMIT, "readiness", |out, _| out.contains("yes").then_some(()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("ended before readiness"), "{error}");
    }

    #[test]
    fn stop_ends_a_program_in_order() {
        let mut server =
            shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done")
                .spawn()
                .unwrap();
        server
            .wait_for_output(LIMIT, "ready", |out, _| out.contains("ready").then_some(()))
            .unwrap();
        let output = server.stop(LIMIT).unwrap().success().unwrap();
        assert_eq!(output.stdout, "ready\nbye\n");
    }

    /// Ctrl-C on a terminal goes to a whole group of processes.
    #[test]
    fn programs_are_in_a_group_of_their_own() {
        let fields = "read -r pid comm state parent group rest < /proc/$$/stat";
        let said = shell(&format!("{fields}; echo $group $$")).output().unwrap();
        let (group, own) = said.trim().split_once(' ').unwrap();
        assert_eq!(group, own);
    }

    /// Starts a shell with a child, and gives the child's number.
    fn shell_with_child(child: &str) -> (Running, u32) {
        let mut parent = shell(&format!("{child} & echo $!; wait")).spawn().unwrap();
        let number = parent
            .wait_for_output(LIMIT, "the child's number", |out, _| {
                out.lines().find_map(|line| line.parse().ok()).filter(|_| out.ends_with('\n'))
            })
            .unwrap();
        (parent, number)
    }

    /// The process that inherits a dead child may take its time to reap it.
    fn await_death(child: u32) {
        crate::wait_until(LIMIT, "the child to die", || {
            std::fs::read_to_string(format!("/proc/{child}/stat"))
                .map_or(true, |stat| stat.contains(") Z "))
                .then_some(())
        })
        .unwrap();
    }

    #[test]
    fn children_end_with_a_program_that_is_stopped_or_dropped() {
        let (parent, child) = shell_with_child("sleep 1000");
        parent.stop(LIMIT).unwrap();
        await_death(child);
        let (parent, child) = shell_with_child("sleep 1000");
        drop(parent);
        await_death(child);
        // One that does not hear it is killed.
        let deaf = "sh -c 'trap \"\" TERM; echo deaf; while :; do sleep 1; done'";
        let (mut parent, child) = shell_with_child(deaf);
        let heard = |out: &str, _: &str| out.contains("deaf").then_some(());
        parent.wait_for_output(LIMIT, "deafness", heard).unwrap();
        parent.stop(LIMIT).unwrap();
        await_death(child);
    }

    /// Commands that set something up are an example.
    #[test]
    fn what_a_program_leaves_behind_goes_on() {
        let said = shell("sleep 1000 >/dev/null 2>&1 & echo $!").output().unwrap();
        let child: u32 = said.trim().parse().unwrap();
        assert!(std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok());
        shell(&format!("kill {child}")).output().unwrap();
        await_death(child);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Cmd::new("no-such-program").run().unwrap_err().to_string();
        assert!(error.contains("no-such-program"), "{error}");
    }

    #[test]
    fn children_die_with_the_process() {
        // A shell stands for us: it starts a child by the same means and is killed.
        let mut parent =
            shell("setpriv --pdeathsig KILL -- sleep 1000 & echo $!; wait").spawn().unwrap();
        let child = parent
            .wait_for_output(LIMIT, "the child's number", |out, _| {
                out.trim().parse::<u32>().ok().filter(|_| out.ends_with('\n'))
            })
            .unwrap();
        let comm = format!("/proc/{child}/comm");
        crate::wait_until(LIMIT, "sleep to start", || {
            std::fs::read_to_string(&comm).is_ok_and(|c| c == "sleep\n").then_some(())
        })
        .unwrap();
        parent.signal(Signal::KILL).unwrap();
        await_death(child);
    }
}
