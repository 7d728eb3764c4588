//! `PAUSE=1`: a failed test waits with its namespaces in place.

use std::any::Any;
use std::env;
use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use crate::failure::{Test, current, failure_dir, report_now};
use crate::lab_test::in_own_user_namespace;
use crate::packets::lock;
use thalweg_netns::Netns;

/// Interval in which the named file is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// True if failed tests are paused: `PAUSE` is in the environment, neither empty nor `0`.
pub(crate) fn wanted() -> bool {
    env::var_os("PAUSE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Keeps a namespace until the end of the current test, if failed tests are paused.
pub(crate) fn keep_namespace(ns: &Netns) {
    if let Some(test) = current().filter(|_| wanted()) {
        lock(&test.kept).namespaces.push(ns.clone());
    }
}

/// Lets a namespace end although failed tests are paused.
pub(crate) fn release_namespace(ns: &Netns) {
    if let Some(test) = current() {
        lock(&test.kept).namespaces.retain(|kept| kept != ns);
    }
}

/// Keeps a thing alive, such as a running program that a failed test drops, until a pause after the
/// current test ends. `command` is printed during the pause: how to use the thing.
///
/// # Errors
/// Gives the thing back if failed tests are not paused (`PAUSE=1`).
pub fn keep_while_paused<T: Any + Send>(command: impl Into<String>, thing: T) -> Result<(), T> {
    match current().filter(|_| wanted()) {
        Some(test) => {
            lock(&test.kept).things.push((command.into(), Box::new(thing)));
            Ok(())
        }
        None => Err(thing),
    }
}

/// Prints how to enter the failed test's namespaces, and waits.
pub(crate) fn pause(test: &Test, failure: &str) {
    let dir = failure_dir();
    let file = dir.join(format!("paused-{}", process::id()));
    report_now(&format!("\n{} failed: {failure}\n\nPaused. Its namespaces:", test.name));
    for command in commands(test) {
        report_now(&format!("  {command}"));
    }
    report_now(&format!("Its files, packets included: {}", dir.display()));
    let made = fs::create_dir_all(&dir).and_then(|()| fs::write(&file, "remove me to go on\n"));
    match &made {
        Ok(()) => report_now(&format!("To go on: Enter, or rm {}", file.display())),
        Err(error) => report_now(&format!("To go on: Enter ({}: {error})", file.display())),
    }
    wait(made.is_ok().then_some(&*file));
    if made.is_ok() {
        // The user removed the file to end the pause.
        let _ = fs::remove_file(&file);
    }
}

fn commands(test: &Test) -> Vec<String> {
    let kept = lock(&test.kept);
    let user = match in_own_user_namespace() {
        true => format!(" --user --preserve-credentials -t {}", process::id()),
        false => String::new(),
    };
    let enter = |ns: &Netns| {
        format!("nsenter{user} --net={}    # {}", ns.descriptor_path().display(), ns.label())
    };
    let namespaces = kept.namespaces.iter().map(enter);
    namespaces.chain(kept.things.iter().map(|(command, _)| command.clone())).collect()
}

/// Waits for a newline on standard input or the terminal, or until there is no file any more.
fn wait(file: Option<&Path>) {
    let stdin = io::stdin();
    // Reading from a terminal stops a process in the background.
    let ours = |fd: BorrowedFd<'_>| tcgetpgrp(fd).is_ok_and(|group| group == getpgrp());
    let tty = (!stdin.is_terminal()).then(|| File::open("/dev/tty").ok()).flatten();
    let mut inputs: Vec<BorrowedFd<'_>> = Vec::new();
    if !stdin.is_terminal() || ours(stdin.as_fd()) {
        inputs.push(stdin.as_fd());
    }
    inputs.extend(tty.as_ref().map(AsFd::as_fd).filter(|fd| ours(*fd)));
    if inputs.is_empty() && file.is_none() {
        return report_now("Nothing could end the pause: going on.");
    }
    let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    while file.is_none_or(Path::exists) && (file.is_some() || !inputs.is_empty()) {
        let mut fds: Vec<_> =
            inputs.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        if poll(&mut fds, Some(&timeout)).is_err() {
            continue;
        }
        let ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut newline = false;
        let mut ready = ready.into_iter();
        inputs.retain(|fd| {
            let mut bytes = [0; 256];
            if !ready.next().unwrap_or(false) {
                return true;
            }
            let read = rustix::io::read(fd, &mut bytes).unwrap_or(0);
            newline |= bytes[..read].contains(&b'\n');
            // An ended input reports nothing more; the file does.
            read > 0
        });
        if newline {
            return;
        }
    }
}
