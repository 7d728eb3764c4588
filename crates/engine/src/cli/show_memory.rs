//! `show memory`: memory of the process.

use serde_json::{Map, Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::heap;

/// `show memory [verbose]`
pub struct ShowMemory;

/// The command.
pub static COMMAND: ShowMemory = ShowMemory;

/// Fields of proc(5)'s `status`, with their labels; true for those that only `verbose` shows.
const FIELDS: &[(&str, &str, bool)] = &[
    ("VmSize", "virtual", false),
    ("VmRSS", "resident", false),
    ("VmHWM", "resident at most", false),
    ("VmPeak", "virtual at most", true),
    ("RssAnon", "resident, anonymous", true),
    ("RssFile", "resident, files", true),
    ("RssShmem", "resident, shared", true),
    ("VmLck", "locked", true),
    ("VmSwap", "swapped out", true),
    ("VmData", "data", true),
    ("VmStk", "main thread's stack", true),
    ("HugetlbPages", "huge pages", true),
];

impl Command<Control> for ShowMemory {
    fn path(&self) -> &'static str {
        "show memory"
    }

    fn usage(&self) -> &'static str {
        "[verbose]"
    }

    fn help(&self) -> &'static str {
        "Show the process's memory"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let verbose = args.keyword("verbose") || args.keyword("main-heap");
        args.end()?;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let rows = parse(&status);
        let (pool, heap) = (c.pool(), heap::in_use());
        let words = |(field, kib): &(&str, u64)| ((*field).to_owned(), json!(kib * 1024));
        out.json(json!({
            "heap": { "in_use": heap },
            "process": rows.iter().map(words).collect::<Map<String, Value>>(),
            "buffer_pool": {
                "mapped": pool.mapped(), "pages": pool.pages().to_string(),
                "buffers": pool.audit().total,
            },
        }));
        out.text(&format(&rows, verbose));
        if let Some(bytes) = heap {
            out.line(format_args!("Heap\n  {:<22}{:>10}", "in use", size(bytes / 1024)));
        }
        let (size, count) = (size(pool.mapped() as u64 / 1024), pool.audit().total);
        out.line(format_args!(
            "Buffer pool\n  {:<22}{size:>10} for {count} buffers on {}",
            "mapped",
            pool.pages()
        ));
        Ok(Outcome::Done)
    }
}

/// Returns the listed fields, in KiB.
fn parse(status: &str) -> Vec<(&'static str, u64)> {
    let value = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    FIELDS.iter().filter_map(|(name, ..)| Some((*name, value(name)?))).collect()
}

/// Formats KiB as text output does.
fn size(kib: u64) -> String {
    match kib {
        0..10_240 => format!("{kib}K"),
        10_240..10_485_760 => format!("{:.1}M", kib as f64 / 1024.0),
        _ => format!("{:.1}G", kib as f64 / 1_048_576.0),
    }
}

fn format(rows: &[(&str, u64)], verbose: bool) -> String {
    let mut text = String::from("Process\n");
    for (name, what, detail) in FIELDS {
        if let Some((_, kib)) = rows.iter().find(|(n, _)| n == name)
            && (verbose || !detail)
        {
            text += &format!("  {what:<22}{:>10}\n", size(*kib));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_and_said() {
        let status = "Name:\tx\nVmPeak:\t   99 kB\nVmSize:\t 20480 kB\nVmRSS:\t 15728640 kB\n\
                      VmSwap: many\nThreads:\t3\n";
        let rows = parse(status);
        assert_eq!(rows, [("VmSize", 20_480), ("VmRSS", 15_728_640), ("VmPeak", 99)]);
        assert_eq!(
            format(&rows, false),
            "Process\n  virtual                    20.0M\n  resident                   15.0G\n"
        );
        assert!(format(&rows, true).ends_with("  virtual at most              99K\n"));
        assert!(!parse(&std::fs::read_to_string("/proc/self/status").unwrap()).is_empty());
    }
}
