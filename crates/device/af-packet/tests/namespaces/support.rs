//! Network namespaces for tests: each test runs in a process and a namespace of
//! its own, and makes further ones by threads.

use std::env;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{self, Command};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use thalweg_testkit::{Cmd, WAIT_LIMIT};

/// Set in the process that runs inside of the namespace.
const INSIDE: &str = "THALWEG_TEST_NAMESPACE";

/// Time for which a test waits for something that happens at once if the processors are not busy.
pub const PATIENCE: Duration = WAIT_LIMIT;

/// Runs `body` as the test `name` in a fresh network namespace.
pub fn in_namespace(name: &str, body: impl FnOnce()) {
    // SAFETY: no arguments, cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    run_inside(name, if root { &["--net"] } else { ROOTLESS }, body);
}

/// Runs `body` without any privilege over the first namespaces.
pub fn in_rootless_namespace(name: &str, body: impl FnOnce()) {
    run_inside(name, ROOTLESS, body);
}

const ROOTLESS: &[&str] = &["--user", "--map-root-user", "--net"];

fn run_inside(name: &str, flags: &[&str], body: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        quiet_ipv6();
        return body();
    }
    let probe = Command::new("unshare").args(flags).arg("true").output();
    if !probe.is_ok_and(|output| output.status.success()) {
        assert!(env::var_os("CI").is_none(), "{name} needs root, or user namespaces");
        eprintln!("{name} was not run: it needs root, or user namespaces");
        return;
    }
    let output = Cmd::new("unshare")
        .args(flags)
        .arg(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .deadline(10 * PATIENCE)
        .run()
        .unwrap();
    print!("{}", output.stdout);
    eprint!("{}", output.stderr);
    assert!(output.status.success(), "{name} failed in its namespace");
}

/// Keeps the kernel from sending frames of its own.
fn quiet_ipv6() {
    for which in ["all", "default"] {
        // A kernel without IPv6 is quiet already.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
}

/// Runs `ip` in the calling thread's namespace.
pub fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "ip {arguments}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Creates a veth pair with this MTU and brings both ends up.
pub fn veth_pair(left: &str, right: &str, mtu: u32) {
    ip(&format!("link add {left} mtu {mtu} type veth peer name {right} mtu {mtu}"));
    ip(&format!("link set {left} up"));
    ip(&format!("link set {right} up"));
}

type Job = Box<dyn FnOnce() + Send>;

/// A kernel stack in a namespace of its own, served by a thread.
pub struct Stack {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Stack {
    /// A namespace with the device `inner`, whose peer `outer` is put into the
    /// namespace of this process, and an address.
    pub fn new(inner: &str, outer: &str, address: &str) -> Self {
        let (jobs, queue) = channel::<Job>();
        let thread = thread::spawn(move || {
            // SAFETY: no pointers; concerns this thread only.
            let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            assert_eq!(result, 0, "unshare: {}", io::Error::last_os_error());
            quiet_ipv6();
            queue.into_iter().for_each(|job| job());
        });
        let stack = Self { jobs: Some(jobs), thread: Some(thread) };
        let (inner, address) = (inner.to_owned(), address.to_owned());
        let peer = format!("peer name {outer} netns {}", process::id());
        stack.run(move || {
            ip("link set lo up");
            ip(&format!("link add {inner} type veth {peer}"));
            ip(&format!("addr add {address} dev {inner}"));
            ip(&format!("link set {inner} up"));
        });
        ip(&format!("link set {outer} up"));
        stack
    }

    /// Starts a job in the namespace.
    pub fn start<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> std::sync::mpsc::Receiver<R> {
        let (answer, result) = channel();
        let job: Job = Box::new(move || drop(answer.send(job())));
        self.jobs.as_ref().unwrap().send(job).unwrap();
        result
    }

    /// Runs a job in the namespace.
    pub fn run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        self.start(job).recv_timeout(PATIENCE * 3).expect("a job in a namespace failed")
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("a job in a namespace failed");
        }
    }
}

/// Waits until one of the descriptors has one of its events.
pub fn wait(sources: &[(&dyn AsFd, i16)], timeout: Duration) -> bool {
    let mut entries: Vec<_> = sources
        .iter()
        .map(|(source, events)| libc::pollfd {
            fd: source.as_fd().as_raw_fd(),
            events: *events,
            revents: 0,
        })
        .collect();
    let millis = timeout.as_millis() as i32;
    // SAFETY: the pointer and the length describe `entries`.
    unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as u64, millis) > 0 }
}

/// Calls `step` until it returns a value, and fails if that takes long.
pub fn until<R>(what: &str, source: &dyn AsFd, mut step: impl FnMut() -> Option<R>) -> R {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = step() {
            return value;
        }
        assert!(Instant::now() < end, "waited too long for {what}");
        wait(&[(source, libc::POLLIN)], Duration::from_millis(100));
    }
}
