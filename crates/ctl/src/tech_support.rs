//! `thalctl tech-support`: one file for support, which the client writes even if the router does
//! not answer.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use thalweg_cli::client::{Client, ClientError};
use thalweg_cli::paths::LAST_PANIC;
use thalweg_cli::server::Listen;

/// Most bytes of a section.
const MAX_SECTION: usize = 512 << 10;
/// Most bytes of the file.
const MAX_FILE: usize = 8 << 20;
/// Time that the router may say nothing.
const PATIENCE: Duration = Duration::from_secs(20);

/// Questions to the router. The answers fit: lists of any length have a limit, as has each section.
const COMMANDS: &[&str] = &[
    "show version verbose",
    "show version cmdline",
    "show clock",
    "show plugins",
    "show threads",
    "show cpu",
    "show memory",
    "show buffers",
    "show unix files",
    "show interface | head 10000",
    "show interface address | head 10000",
    "show interface rx-placement",
    "show hardware-interfaces | head 10000",
    "show mode | head 10000",
    "show features | head 10000",
    "show ip table",
    "show ip fib summary",
    "show ip fib | head 2000",
    "show adj summary",
    "show ip neighbors | head 2000",
    "show bridge-domain | head 10000",
    "show nat44 summary",
    "show nat44 interfaces",
    "show nat44 addresses",
    "show nat44 static mappings | head 10000",
    "show nat timeouts",
    "show conntrack summary",
    "show sflow",
    "show bihash",
    "show errors",
    "show packet accounting",
    "show runtime",
    "show runtime max",
    "show runtime loops",
    "show handoff",
    "show punt stats",
    "show api clients",
    "show trace max 20",
    "show configuration | head 20000",
    "show configuration unresolved | head 2000",
    "show configuration revisions",
    "show logging",
];

/// Files of the system.
const FILES: &[&str] = &[
    "/proc/version",
    "/etc/os-release",
    "/proc/cmdline",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/net/dev",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/net/core/rmem_max",
    "/proc/sys/net/core/wmem_max",
];

/// Files of a process.
const OF_PROCESS: &[&str] = &["status", "limits", "cgroup", "stat"];

/// The report while it is written.
#[derive(Default)]
struct Report {
    text: String,
}

impl Report {
    fn section(&mut self, title: &str, body: &str) {
        let room = MAX_FILE.saturating_sub(self.text.len() + title.len() + 1024);
        if room == 0 {
            return;
        }
        let kept = cut(body, MAX_SECTION.min(room));
        // Memory does not refuse.
        let _ = writeln!(self.text, "===== {title}");
        self.text.push_str(kept);
        if !kept.ends_with('\n') && !kept.is_empty() {
            self.text.push('\n');
        }
        if kept.len() < body.len() {
            let _ = writeln!(self.text, "[{} more bytes left out]", body.len() - kept.len());
        }
    }

    fn file(&mut self, path: &Path) {
        let body = match read(path) {
            Ok(text) => without_secrets(&text),
            Err(error) => format!("cannot be read: {error}\n"),
        };
        self.section(&path.display().to_string(), &body);
    }
}

/// The first bytes of a text, whole characters.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Reads a file of the system, whose size is not known before, up to a limit.
fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = thalweg_files::open(path).map_err(|e| e.source)?;
    file.take(MAX_SECTION as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Words that name a secret, in any part of a key.
const SECRETS: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "community",
    "private-key",
    "private_key",
    "psk",
    "credential",
    "api-key",
    "api_key",
    "apikey",
    "auth-key",
    "auth_key",
    "authorization",
];

/// Placeholder of a secret.
const LEFT_OUT: &str = "(left out)";

/// A text without the values of keys that name a secret: `key: value`, `key value`, `key=value`, or
/// a key and lines below it that are indented further; without keys in PEM, and without what
/// precedes the host in a URL.
fn without_secrets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Indentation of the key whose value the next lines are.
    let mut below: Option<usize> = None;
    let mut is_pem = false;
    for line in text.split_inclusive('\n') {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if is_pem || content.contains("-----BEGIN ") {
            if !is_pem {
                out.push_str(LEFT_OUT);
                out.push('\n');
            }
            is_pem = !content.contains("-----END ");
            continue;
        }
        if let Some(of) = below {
            if content.is_empty() || indent > of || indent == of && content.starts_with("- ") {
                continue;
            }
            below = None;
        }
        // A key in a list begins behind the dash.
        let indent = indent + if content.starts_with("- ") { 2 } else { 0 };
        let line = &without_users(line);
        let lower = line.to_ascii_lowercase();
        let found = SECRETS.iter().filter_map(|word| lower.find(word).map(|at| at + word.len()));
        let Some(key) = found.min() else {
            out.push_str(line);
            continue;
        };
        // The rest of the key, then what separates it from the value.
        let separates = |c: char| c.is_whitespace() || ":={\"'".contains(c);
        let end = lower[key..].find(separates).map_or(line.len(), |at| key + at);
        let value = lower[end..].find(|c: char| !separates(c)).map(|at| end + at);
        let has_block = value.is_none_or(|at| lower[at..].starts_with(['|', '>', '&', '!', '[']));
        below = has_block.then_some(indent);
        out.push_str(value.map_or(line.trim_end(), |at| &line[..at]));
        out.push_str(if value.is_none() { " " } else { "" });
        out.push_str(LEFT_OUT);
        out.push('\n');
    }
    out
}

/// A line without user and password of URLs.
fn without_users(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, authority) = rest.split_at(at + 3);
        let end = authority.find(|c: char| c.is_whitespace() || "/?#\"'".contains(c));
        let authority = &authority[..end.unwrap_or(authority.len())];
        out.push_str(before);
        if authority.contains('@') {
            out.push_str(LEFT_OUT);
        }
        let host = authority.rfind('@').unwrap_or(0);
        out.push_str(&authority[host..]);
        rest = &rest[before.len() + authority.len()..];
    }
    out + rest
}

/// Owner and permissions of a file.
fn permissions(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    match std::fs::symlink_metadata(path) {
        Ok(meta) => format!(
            "{}: mode {:o}, owner {}, group {}, {} bytes\n",
            path.display(),
            meta.mode(),
            meta.uid(),
            meta.gid(),
            meta.size()
        ),
        Err(error) => format!("{}: {error}\n", path.display()),
    }
}

/// Collects the report.
fn collect(at: &Listen) -> (String, Result<(), ClientError>) {
    let mut report = Report::default();
    let now = thalweg_cli::utc(SystemTime::now());
    let head = format!(
        "of {now} UTC, by thalctl {}\nrouter at {at}\nValues of keys that name a secret are left \
         out, and what exceeds {} KiB of a section.\n",
        env!("CARGO_PKG_VERSION"),
        MAX_SECTION >> 10
    );
    report.section("Thalweg tech-support", &head);
    FILES.iter().for_each(|path| report.file(Path::new(path)));
    let mut rights = format!("this client:\n{}", own_rights());
    if let Listen::Unix(socket) = at {
        let dir = socket.parent().unwrap_or(Path::new("/"));
        for path in [dir, socket, Path::new("/etc/thalweg")] {
            rights += &permissions(path);
        }
        report.section("permissions", &rights);
        report.file(&dir.join(LAST_PANIC));
    } else {
        report.section("permissions", &rights);
    }
    // The longest comes last.
    let asked = ask(&mut report, at);
    (report.text, asked)
}

fn own_rights() -> String {
    let status = read(Path::new("/proc/self/status")).unwrap_or_default();
    let wanted = |l: &&str| ["Uid", "Gid", "Groups", "Cap"].iter().any(|word| l.starts_with(word));
    status.lines().filter(wanted).map(|line| format!("{line}\n")).collect()
}

/// Asks the router.
fn ask(report: &mut Report, at: &Listen) -> Result<(), ClientError> {
    let mut client = match Client::connect_to(at) {
        Ok(client) => client,
        Err(error) => {
            report.section("router", &format!("does not answer: {error}\n"));
            return Err(error);
        }
    };
    client.set_patience(PATIENCE)?;
    for command in COMMANDS {
        match client.run(command) {
            Ok(text) => {
                report.section(command, &without_secrets(&text));
                let pid = text.lines().find_map(|l| l.strip_prefix("Current PID:"));
                let number = pid.and_then(|n| n.trim().parse::<u32>().ok());
                for name in OF_PROCESS.iter().filter(|_| number.is_some()) {
                    report.file(&PathBuf::from(format!("/proc/{}/{name}", number.unwrap_or(0))));
                }
            }
            Err(ClientError::Failed { output }) => report.section(command, &output),
            Err(error) => {
                report.section(command, &format!("no answer: {error}\n"));
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Writes the file, named or `thalweg-tech-support-<seconds since 1970>.txt`, which must not exist.
pub(crate) fn main(at: &Listen, file: Option<&str>) -> ExitCode {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let name = || format!("thalweg-tech-support-{}.txt", seconds.as_secs());
    let path = file.map_or_else(|| PathBuf::from(name()), PathBuf::from);
    let (text, asked) = collect(at);
    if let Err(error) = thalweg_files::write_new(&path, text.as_bytes()) {
        let _ = writeln!(std::io::stderr(), "thalctl: tech-support: {error}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = asked {
        let _ = writeln!(std::io::stderr(), "thalctl: {error}; the file has the rest");
    }
    let _ = writeln!(std::io::stdout(), "{} ({} bytes)", path.display(), text.len());
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out() {
        let text = "name: r1\n  snmp-community: public\nset x password hunter2 now\nTOKEN=abc\n\
                    secret:\n  - a\n  - b\nkeys:\n  - psk: |\n      a\n\n      b\n  - next\n\
                    tokens:\n- c\nto https://u:p@h.example/x and http://h/@\n\
                    x\n-----BEGIN A KEY-----\nMII\n-----END A KEY-----\nlast";
        assert_eq!(
            without_secrets(text),
            "name: r1\n  snmp-community: (left out)\nset x password (left out)\nTOKEN=(left out)\n\
             secret: (left out)\nkeys:\n  - psk: (left out)\n  - next\n\
             tokens: (left out)\nto https://(left out)@h.example/x and http://h/@\n\
             x\n(left out)\nlast"
        );
        assert_eq!(without_secrets("no secret"), "no secret (left out)\n");
    }

    #[test]
    fn sections_and_the_file_are_bounded() {
        let mut report = Report::default();
        let long = "\u{e9}\n".repeat(MAX_SECTION);
        for n in 0..40 {
            report.section(&format!("section {n}"), &long);
        }
        assert!(report.text.len() <= MAX_FILE, "{}", report.text.len());
        assert!(report.text.contains("more bytes left out]\n===== section 1\n"));
        assert_eq!(cut("a\u{e9}b", 2), "a");
    }

    #[test]
    fn there_is_a_report_without_a_router() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(LAST_PANIC), "node `x'\n").unwrap();
        let (text, asked) = collect(&Listen::Unix(dir.path().join("cli.sock")));
        assert!(asked.is_err());
        for part in ["===== router\ndoes not answer: ", "node `x'", "===== /proc/version\n", "Uid:"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
