//! Ends whatever runs in a namespace.

use std::time::Duration;

use anyhow::Result;

use crate::netns::Netns;
use crate::process::{Cmd, Running};

/// Waits for the end of its input, which comes however its parent ends. Then it sends SIGTERM to
/// all processes of its network namespace, and SIGKILL after two seconds to those that are left.
///
/// It looks itself, since daemons leave their process group, and starts nothing while it looks.
const SCRIPT: &str = r#"
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
trap '' HUP INT TERM
echo ready
while read -r line; do :; done
each TERM || exit 0
turns=0
while [ $turns -lt 40 ]; do
    each 0 || exit 0
    sleep 0.05
    turns=$((turns + 1))
done
each KILL
"#;

/// Time for its start, and for its end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ends all processes of a namespace when it is dropped, and also when this process is killed:
/// those that a command has left in the background, too, and those that have become daemons.
#[derive(Debug)]
pub struct Guard(Running);

impl Guard {
    /// Guards a namespace that is ours alone: whatever is in it then ends, whoever started it.
    ///
    /// # Errors
    /// If its program cannot start.
    pub fn new(ns: &Netns) -> Result<Guard> {
        let command: Cmd = ns.command("sh").args(["-c", SCRIPT]).stdin_piped().outlive();
        let mut running = command.spawn()?;
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

    /// Whether a process runs still.
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
            let ns = Netns::new("killed")?;
            let orphan = daemon(&ns, "exec sleep 1000")?;
            let mut holder = ns
                .command("sh")
                .args(["-c", "(sleep 1000; echo) | setsid sh -c \"$0\" & wait"])
                .arg(SCRIPT)
                .spawn()?;
            let ready = |out: &str, _: &str| out.contains("ready").then_some(());
            holder.wait_for_output(WAIT_LIMIT, "its start", ready)?;
            assert!(runs(orphan));
            // Its group has the writer of the pipe, but not the reader.
            drop(holder);
            crate::wait_until(WAIT_LIMIT, "its end", || (!runs(orphan)).then_some(()))
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
