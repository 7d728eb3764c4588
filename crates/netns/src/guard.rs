//! Undoes what must not outlive this process, however it ends.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::netns::Netns;
use crate::process::{Cmd, Running};

/// Waits for the end of its input, which comes however its parent ends, and then runs the command
/// in its arguments, if there is one.
const WAIT: &str = r#"
trap '' HUP INT QUIT TERM USR1 USR2 ALRM
echo ready
while read -r line; do :; done
"#;

/// Sends SIGTERM to all other processes of the network namespace, and SIGKILL after two seconds to
/// those that are left.
///
/// Looks itself, since daemons leave their process group, and starts nothing while it looks.
const CLEAR: &str = r#"
each() {
    found=
    for path in /proc/[0-9]*; do
        process=${path#/proc/}
        if [ "$process" != $$ ] && [ "$path/ns/net" -ef "/proc/$$/ns/net" ]; then
            found=yes
            kill -s "$1" "$process" 2>/dev/null
        fi
    done
    [ -n "$found" ]
}
clear() {
    each TERM || return
    turns=0
    while [ $turns -lt 40 ]; do
        each 0 || return
        sleep 0.05
        turns=$((turns + 1))
    done
    each KILL
}
clear
"#;

/// Runs what undoes.
const UNDO: &str = r#"
"$@"
"#;

/// Time for its start, and for its end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Undoes something when it is dropped, and also when this process is killed.
#[derive(Debug)]
pub struct Guard(Running);

impl Guard {
    /// Guards a namespace that is ours alone: all that runs in it ends then, whoever started it.
    /// Processes that a command has left in the background, or that have become daemons, end as
    /// well.
    ///
    /// # Errors
    /// If its program cannot start.
    pub fn new(ns: &Netns) -> Result<Guard> {
        Guard::start(ns.command("sh").args(["-c", &[WAIT, CLEAR].concat()]))
    }

    /// The same, and then removes a directory with what these processes have in it.
    ///
    /// # Errors
    /// If its program cannot start.
    pub fn with_directory(ns: &Netns, dir: &Path) -> Result<Guard> {
        let script = [WAIT, CLEAR, UNDO].concat();
        Guard::start(ns.command("sh").args(["-c", &script, "sh", "rm", "-rf", "--"]).arg(dir))
    }

    /// Runs a command in the network namespace that this process started in.
    ///
    /// # Errors
    /// If its program cannot start.
    pub fn of_command<A: AsRef<OsStr>>(words: impl IntoIterator<Item = A>) -> Result<Guard> {
        let script = [WAIT, UNDO].concat();
        Guard::start(Cmd::new("sh").args(["-c", &script, "sh"]).args(words))
    }

    fn start(command: Cmd) -> Result<Guard> {
        let mut running = command.stdin_piped().outlive().spawn()?;
        let ready = |out: &str, _: &str| out.contains("ready").then_some(());
        running.wait_for_output(PATIENCE, "its start", ready)?;
        Ok(Guard(running))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.close_stdin();
        // One that takes longer is killed.
        let _ = self.0.wait(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WAIT_LIMIT;
    use crate::process::Signal;
    use thalweg_testkit::lab_test;

    /// True if a process runs still.
    fn runs(process: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
    }

    /// Starts a process that has left its parent and its group, and gives its number.
    fn daemon(ns: &Netns, program: &str) -> Result<u32> {
        let script = format!("setsid sh -c 'echo $$; exec >&- 2>&-; {program}' &");
        let said = ns.command("sh").args(["-c", &script]).output()?;
        Ok(said.trim().parse()?)
    }

    lab_test! {
        fn all_processes_of_a_namespace_end_with_its_guard() {
            let (ns, other) = (Netns::new("guarded")?, Netns::new("other")?);
            let guard = Guard::new(&ns)?;
            let meek = daemon(&ns, "exec sleep 1000")?;
            let stubborn = daemon(&ns, "trap \"\" TERM; while :; do sleep 1; done")?;
            let apart = daemon(&other, "exec sleep 1000")?;
            assert!(runs(meek) && runs(stubborn) && runs(apart));
            drop(guard);
            for process in [meek, stubborn] {
                crate::wait_until(WAIT_LIMIT, "its end", || (!runs(process)).then_some(()))?;
            }
            assert!(runs(apart));
            drop(Guard::new(&other)?);
            crate::wait_until(WAIT_LIMIT, "its end", || (!runs(apart)).then_some(()))
        }

        /// A shell stands for us: it holds the input of the guard's script and is killed.
        fn they_end_when_we_are_killed() {
            let (ns, dir) = (Netns::new("killed")?, tempfile::tempdir()?);
            std::fs::write(dir.path().join("log"), "text")?;
            let orphan = daemon(&ns, "exec sleep 1000")?;
            let mut holder = ns
                .command("sh")
                .args(["-c", "(sleep 1000; echo) | setsid sh -c \"$0\" sh rm -rf \"$1\" & wait"])
                .arg([WAIT, CLEAR, UNDO].concat())
                .arg(dir.path())
                .spawn()?;
            let ready = |out: &str, _: &str| out.contains("ready").then_some(());
            holder.wait_for_output(WAIT_LIMIT, "its start", ready)?;
            assert!(runs(orphan));
            // Its group has the writer of the pipe, but not the reader.
            drop(holder);
            crate::wait_until(WAIT_LIMIT, "its end", || (!runs(orphan)).then_some(()))?;
            let gone = || (!dir.path().exists()).then_some(());
            crate::wait_until(WAIT_LIMIT, "the end of its directory", gone)
        }

        fn a_command_runs_at_the_end_and_leaves_others_alone() {
            let ns = Netns::new("others")?;
            let other = daemon(&ns, "exec sleep 1000")?;
            let file = tempfile::tempdir()?.keep().join("file");
            let guard = Guard::of_command([OsStr::new("touch"), file.as_os_str()])?;
            guard.0.signal(Signal::HUP)?;
            assert!(!file.exists());
            drop(guard);
            assert!(file.exists() && runs(other));
            std::fs::remove_dir_all(file.parent().unwrap())?;
            drop(Guard::new(&ns)?);
            crate::wait_until(WAIT_LIMIT, "its end", || (!runs(other)).then_some(()))
        }

        fn signals_from_a_terminal_do_not_end_a_guard() {
            let ns = Netns::new("steady")?;
            let guard = Guard::new(&ns)?;
            guard.0.signal(Signal::TERM)?;
            let process = daemon(&ns, "exec sleep 1000")?;
            drop(guard);
            crate::wait_until(WAIT_LIMIT, "its end", || (!runs(process)).then_some(()))
        }
    }
}
