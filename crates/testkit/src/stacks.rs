//! Stacks that show where a program hangs: those of its threads, and of the programs that it has
//! started.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use thalweg_netns::Cmd;

/// Time that the debugger may take for one process.
const LIMIT: Duration = Duration::from_secs(30);
/// Processes that are looked at; a shell loop may have started many.
const PROCESSES: usize = 8;

/// The processes that a process has started and those that these have started, as far as they
/// still run; not itself.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = vec![pid];
    while let Some(parent) = next.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { continue };
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
            for child in children.filter(|child| !found.contains(child)).collect::<Vec<_>>() {
                found.push(child);
                next.push(child);
            }
        }
    }
    found
}

/// The stacks of a process and of its descendants: gdb's if it is installed and may attach, else
/// what the kernel says each thread waits in.
pub fn stacks(pid: u32) -> String {
    let mut text = String::new();
    for pid in std::iter::once(pid).chain(descendants(pid)).take(PROCESSES) {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let _ = writeln!(text, "process {pid}: {}", command.replace('\0', " ").trim_end());
        match debugger(pid) {
            Some(stacks) => text.push_str(&stacks),
            None => text.push_str(&kernel_view(&format!("/proc/{pid}/task"))),
        }
    }
    text
}

fn debugger(pid: u32) -> Option<String> {
    let pid = pid.to_string();
    let words = ["-nx", "-batch", "-p", &pid, "-ex", "thread apply all backtrace 24"];
    let printed = Cmd::new("gdb").args(words).deadline(LIMIT).output().ok()?;
    let kept = |line: &&str| line.starts_with("Thread ") || line.starts_with('#');
    let lines: Vec<_> = printed.lines().filter(kept).collect();
    (!lines.is_empty()).then(|| lines.join("\n") + "\n")
}

/// Each thread's name and the function of the kernel that it sleeps in.
fn kernel_view(threads: &str) -> String {
    let mut text = String::new();
    for thread in fs::read_dir(threads).into_iter().flatten().flatten() {
        let read = |file: &str| {
            let text = fs::read_to_string(Path::new(&thread.path()).join(file));
            text.map_or_else(|_| "?".into(), |text| text.trim().to_owned())
        };
        let _ =
            writeln!(text, "thread {}: in {}, {}", read("comm"), read("wchan"), read("syscall"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_until;

    #[test]
    fn what_hangs_is_named_with_what_it_started() {
        let shell = Cmd::new("sh").args(["-c", "sleep 1000; true"]).spawn().unwrap();
        let child = wait_until(Duration::from_secs(20), "the shell's child", || {
            descendants(shell.pid()).first().copied()
        });
        let child = child.unwrap();
        let text = stacks(shell.pid());
        assert!(text.contains(&format!("process {child}: sleep 1000")), "{text}");
        assert!(text.lines().any(|line| line.starts_with(['#', 't'])), "{text}");
    }

    #[test]
    fn threads_are_listed_without_a_debugger() {
        let text = kernel_view("/proc/self/task");
        assert!(text.lines().count() >= 1 && text.starts_with("thread "), "{text}");
        assert!(kernel_view("/nowhere").is_empty());
    }

    #[test]
    fn a_process_that_is_not_there_has_no_stacks() {
        assert!(descendants(u32::MAX).is_empty());
    }
}
