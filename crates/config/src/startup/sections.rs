//! The stanzas that are fully known: `unix`, `cpu`, `buffers`.

use super::model::{
    BuffersConfig, CliListen, CoreDumpSize, CpuConfig, SchedulerPolicy, StartupConfig, UnixConfig,
};
use super::reader::Reader;
use super::report::Report;
use super::tree::{Item, Stanza, Word};
use super::values::{CoreList, MAX_CORE, MAX_WORKERS, parse_size};

pub(super) const UNIX_WORDS: &[&str] = &[
    "nodaemon",
    "nosyslog",
    "interactive",
    "nocolor",
    "nobanner",
    "cli-listen",
    "cli-prompt",
    "cli-history-limit",
    "cli-pager-buffer-limit",
    "cli-line-mode",
    "cli-no-banner",
    "cli-no-pager",
    "exec",
    "startup-config",
    "log",
    "runtime-dir",
    "files",
    "pidfile",
    "gid",
    "full-coredump",
    "coredump-size",
    "poll-sleep-usec",
];

pub(super) const CPU_WORDS: &[&str] = &[
    "main-core",
    "workers",
    "corelist-workers",
    "coremask-workers",
    "skip-cores",
    "relative",
    "latency",
    "thread-prefix",
    "scheduler-policy",
    "scheduler-priority",
    "use-pthreads",
    "numa-heap-size",
];

pub(super) const BUFFERS_WORDS: &[&str] = &["buffers-per-numa", "default", "page-size"];

/// Maximum latency: a second.
const MAX_LATENCY: u32 = 1_000_000;
/// Maximum poll-sleep-usec: a second.
const MAX_POLL_SLEEP: u32 = 1_000_000;

/// Reads the stanza if it is one of these.
pub(super) fn read(config: &mut StartupConfig, stanza: &Stanza, report: &mut Report) -> bool {
    let mut reader = Reader::new(stanza, report);
    match stanza.name.text.as_str() {
        "unix" => unix(&mut config.unix, &mut reader),
        "cpu" => cpu(&mut config.cpu, &mut reader),
        "buffers" => buffers(&mut config.buffers, &mut reader),
        _ => return false,
    }
    true
}

fn unix(unix: &mut UnixConfig, reader: &mut Reader) {
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "nodaemon" => unix.nodaemon = true,
            "nosyslog" => unix.nosyslog = true,
            "interactive" => {
                unix.interactive = true;
                unix.nodaemon = true;
            }
            "nocolor" => unix.nocolor = true,
            "nobanner" | "cli-no-banner" => unix.nobanner = true,
            "cli-no-pager" => unix.cli_no_pager = true,
            "cli-line-mode" => unix.cli_line_mode = true,
            "full-coredump" => unix.full_coredump = true,
            "cli-listen" => cli_listen(unix, reader, &key),
            "cli-prompt" => reader.text(&key, "a prompt", &mut unix.cli_prompt),
            "cli-history-limit" => reader.number(&key, 0..=1 << 20, &mut unix.cli_history_limit),
            "cli-pager-buffer-limit" => {
                reader.number(&key, 0..=1 << 24, &mut unix.cli_pager_buffer_limit);
            }
            "exec" | "startup-config" => reader.text(&key, "a file", &mut unix.exec),
            "log" => reader.text(&key, "a file", &mut unix.log),
            "runtime-dir" => reader.text(&key, "a directory", &mut unix.runtime_dir),
            "files" => {
                let mut dir = None;
                reader.text(&key, "a directory", &mut dir);
                unix.files.extend(dir);
            }
            "pidfile" => reader.text(&key, "a file", &mut unix.pidfile),
            "gid" => reader.text(&key, "a group", &mut unix.gid),
            "coredump-size" => coredump_size(unix, reader, &key),
            "poll-sleep-usec" => {
                reader.number(&key, 0..=MAX_POLL_SLEEP, &mut unix.poll_sleep_usec);
            }
            _ => reader.unknown_error(&key, UNIX_WORDS),
        }
    }
}

fn cli_listen(unix: &mut UnixConfig, reader: &mut Reader, key: &Word) {
    let Some(word) = reader.value(key, "a path or host:port") else { return };
    match CliListen::parse(&word.text) {
        Ok(listen) => unix.cli_listen = Some(listen),
        Err(message) => reader.error(word.span, message),
    }
}

fn coredump_size(unix: &mut UnixConfig, reader: &mut Reader, key: &Word) {
    let Some(word) = reader.value(key, "unlimited or a size") else { return };
    match (word.text.as_str(), parse_size(&word.text)) {
        ("unlimited", _) => unix.coredump_size = Some(CoreDumpSize::Unlimited),
        (_, Some(size)) => unix.coredump_size = Some(CoreDumpSize::Bytes(size)),
        _ => {
            let message =
                format!("`coredump-size` is unlimited or a size such as 2g, not {}", word.text);
            reader.error(word.span, message);
        }
    }
}

fn cpu(cpu: &mut CpuConfig, reader: &mut Reader) {
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "main-core" => reader.number(&key, 0..=MAX_CORE, &mut cpu.main_core),
            "workers" => reader.number(&key, 0..=MAX_WORKERS as u16, &mut cpu.workers),
            "corelist-workers" => core_list(cpu, reader, &key, CoreList::parse),
            "coremask-workers" => core_list(cpu, reader, &key, CoreList::parse_mask),
            "skip-cores" => {
                let mut skip = None;
                reader.number(&key, 0..=MAX_CORE, &mut skip);
                cpu.skip_cores = skip.unwrap_or(cpu.skip_cores);
            }
            "relative" => cpu.relative = true,
            "latency" => reader.number(&key, 0..=MAX_LATENCY, &mut cpu.latency),
            "thread-prefix" => reader.text(&key, "a prefix", &mut cpu.thread_prefix),
            "scheduler-policy" => scheduler_policy(cpu, reader, &key),
            "scheduler-priority" => reader.number(&key, 1..=99, &mut cpu.scheduler_priority),
            // Threads are always POSIX threads, and there is no heap per NUMA node.
            "use-pthreads" => {}
            "numa-heap-size" => reader.size(&key, 0..=u64::MAX, &mut None),
            _ => reader.unknown_error(&key, CPU_WORDS),
        }
    }
}

fn core_list(
    cpu: &mut CpuConfig,
    reader: &mut Reader,
    key: &Word,
    parse: fn(&str) -> Result<CoreList, String>,
) {
    let Some(word) = reader.value(key, "a list of cores such as 1-3,5") else { return };
    match parse(&word.text) {
        Ok(list) if list.is_empty() => reader.error(word.span, "the list has no cores"),
        Ok(list) if list.len() > MAX_WORKERS => {
            let message = format!("{} workers are more than {MAX_WORKERS}", list.len());
            reader.error(word.span, message);
        }
        Ok(list) => cpu.corelist_workers = Some(list),
        Err(message) => reader.error(word.span, message),
    }
}

fn scheduler_policy(cpu: &mut CpuConfig, reader: &mut Reader, key: &Word) {
    let Some(word) = reader.value(key, "other, batch, idle, fifo or rr") else { return };
    cpu.scheduler_policy = Some(match word.text.as_str() {
        "other" => SchedulerPolicy::Other,
        "batch" => SchedulerPolicy::Batch,
        "idle" => SchedulerPolicy::Idle,
        "fifo" => SchedulerPolicy::Fifo,
        "rr" => SchedulerPolicy::RoundRobin,
        other => {
            let message =
                format!("`scheduler-policy` is other, batch, idle, fifo or rr, not {other}");
            return reader.error(word.span, message);
        }
    });
}

fn buffers(buffers: &mut BuffersConfig, reader: &mut Reader) {
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "buffers-per-numa" => {
                reader.number(&key, 64..=1 << 26, &mut buffers.buffers_per_numa);
            }
            "default" => match reader.value(&key, "`data-size`") {
                Some(word) if word.text == "data-size" => {
                    reader.number(&word, 256..=16384, &mut buffers.default_data_size);
                }
                Some(word) => {
                    let message =
                        format!("`default` must be followed by `data-size`, not {}", word.text);
                    reader.error(word.span, message);
                }
                None => {}
            },
            "page-size" => reader.page_size(&key, &mut buffers.page_size),
            _ => reader.unknown_error(&key, BUFFERS_WORDS),
        }
    }
}

/// Checks that need the whole configuration: words that exclude each other.
pub(super) fn check(config: &StartupConfig, stanzas: &[Stanza], report: &mut Report) {
    // Point at the later word of a pair: it caused the conflict.
    let find = |names: &[&str]| {
        let cpu = stanzas.iter().filter(|stanza| stanza.name.text == "cpu");
        let words = cpu.flat_map(|stanza| &stanza.body).filter_map(|item| match item {
            Item::Word(word) if names.contains(&word.text.as_str()) => Some(item.span()),
            _ => None,
        });
        words.max_by_key(|span| span.start)
    };
    let cpu = &config.cpu;
    let list_words = ["corelist-workers", "coremask-workers"];
    if let Some(list) = &cpu.corelist_workers {
        if cpu.workers.is_some()
            && let Some(span) = find(&["workers", list_words[0], list_words[1]])
        {
            let message = "cpu: `workers` and `corelist-workers` both place the workers; keep one";
            report.error(span, message);
        }
        if let Some(core) = cpu.main_core.filter(|core| list.contains(*core))
            && let Some(span) = find(&["main-core", list_words[0], list_words[1]])
        {
            let message = format!(
                "cpu: core {core} is the main thread's (`main-core`) and cannot be a worker's too"
            );
            report.error(span, &message);
        }
    }
    let real_time =
        matches!(cpu.scheduler_policy, Some(SchedulerPolicy::Fifo | SchedulerPolicy::RoundRobin));
    if cpu.scheduler_priority.is_some()
        && !real_time
        && let Some(span) = find(&["scheduler-priority"])
    {
        let message =
            "cpu: `scheduler-priority` takes effect only with `scheduler-policy` fifo or rr";
        report.error(span, message);
    }
}
