//! Files that users name are opened by `crates/files`, which waits for no pipe, follows no link and
//! reads no endless device. Its module `client` reads those that clients name, and knows that the
//! router may read more than they.

use super::{Source, tests_begin};

/// Crates of programs and features, where paths come from users.
const ROOTS: [&str; 1] = ["crates/"];

/// Crates that may open files themselves, and why.
const EXCEPTIONS: [(&str, &str); 17] = [
    ("crates/files/", "the place for it"),
    ("crates/testkit/", "for tests"),
    ("crates/netns/", "files of the kernel, in tests and labs"),
    ("crates/peers/", "files of other programs in labs"),
    ("crates/api/src/registry.rs", "VPP's JSON files, written when the router is built"),
    ("crates/engine/src/report.rs", "files of the kernel"),
    ("crates/feat/flow/src/rule/oracle.rs", "a test"),
    ("crates/sflow-agent/src/host/", "files of the kernel"),
    ("crates/program/load/src/far/mod.rs", "a file of the kernel"),
    ("crates/program/load/src/work.rs", "a file of the kernel"),
    ("crates/program/load/src/report.rs", "files of the kernel"),
    ("crates/sflow/src/pcapfile.rs", "a capture that may be a pipe, read piece by piece"),
    ("crates/sflow-agent/src/agent/background.rs", "namespaces, which are no regular files"),
    ("crates/program/load/src/output.rs", "results, which may go to a pipe"),
    ("crates/program/demo/", "files in a directory that it has made"),
    ("crates/program/router/src/run/logging.rs", "the log, which may be a terminal"),
    ("crates/program/router/src/run/latency.rs", "a device of the kernel"),
];

/// Calls that open a file by its path.
const CALLS: [&str; 8] = [
    "File::open(",
    "File::create(",
    "File::create_new(",
    "File::options(",
    "OpenOptions::new(",
    "fs::write(",
    "fs::read(",
    "fs::read_to_string(",
];

/// Crates that execute what clients of the router ask for.
const FOR_CLIENTS: [&str; 5] = [
    "crates/feat/",
    "crates/device/",
    "crates/cli/",
    "crates/config/",
    "crates/program/router/src/api/",
];

/// Calls that read a file as the router's user may.
const AS_ROUTER: [&str; 3] =
    ["thalweg_files::read(", "thalweg_files::read_text(", "thalweg_files::open("];

/// Files with such a call, and why clients do not see more by it than they may.
const READERS: [(&str, &str); 4] = [
    ("crates/cli/src/script.rs", "commands; errors do not quote a private file"),
    ("crates/config/src/startup/mod.rs", "the file that the router starts with"),
    ("crates/feat/config/src/store.rs", "the router's own file and its revisions"),
    ("crates/feat/nat44/src/store.rs", "sessions, in a format of the router's own"),
];

/// Words behind such a call that show a file of the kernel or the system.
const SYSTEM: [&str; 4] = ["\"/proc", "\"/sys", "\"/etc", "\"/dev"];

pub fn check(source: &Source) -> Vec<String> {
    let is_product = source.is("rs")
        && ROOTS.iter().any(|root| source.path.starts_with(root))
        && source.path.contains("/src/")
        && !EXCEPTIONS.iter().any(|(path, _)| source.path.starts_with(path));
    if !is_product {
        return Vec::new();
    }
    let begin = tests_begin(source);
    let opens = |line: &str| CALLS.iter().any(|call| line.contains(call));
    let of_system = |line: &str| SYSTEM.iter().any(|word| line.contains(word));
    let for_clients = FOR_CLIENTS.iter().any(|root| source.path.starts_with(root))
        && !READERS.iter().any(|(path, _)| source.path == *path);
    let as_router = |line: &str| for_clients && AS_ROUTER.iter().any(|call| line.contains(call));
    let before_tests = || source.lines().take_while(move |(number, _)| *number < begin);
    let text = "a client's file is read; `thalweg_files::client` does that";
    let read = before_tests().filter(|(_, line)| as_router(line));
    let read = read.map(|(number, _)| source.finding(number, text));
    let opened = before_tests()
        .filter(|(_, line)| opens(line) && !of_system(line))
        .map(|(number, _)| source.finding(number, "a file is opened; `thalweg_files` does that"));
    opened.chain(read).collect()
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn files_of_clients_that_are_read_as_the_router_are_found() {
        let text = "let a = thalweg_files::read(path, 9);\nlet b = client::read(path, 9);\n";
        let findings = check(&source("crates/feat/a/src/a.rs", text));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("crates/feat/a/src/a.rs:1: a client's"), "{findings:?}");
        for path in ["crates/cli/src/script.rs", "crates/sflow-agent/src/a.rs"] {
            assert!(check(&source(path, text)).is_empty(), "{path}");
        }
    }

    #[test]
    fn files_opened_elsewhere_are_found() {
        let text = format!(
            "let a = fs::{r}(path);\nlet b = fs::{r}(\"/proc/x\");\n#[cfg(test)]\nfs::{r}(path);\n",
            r = "read"
        );
        let findings = check(&source("crates/a/src/a.rs", &text));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("crates/a/src/a.rs:1: a file is opened"), "{findings:?}");
        assert!(check(&source("crates/files/src/a.rs", &text)).is_empty());
        assert!(check(&source("tests/a.rs", &text)).is_empty());
    }
}
