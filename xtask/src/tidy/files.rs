//! Files that users name are opened by `crates/files`, which waits for no pipe, follows no link and
//! reads no endless device.

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
    let lines = source.lines().take_while(|(number, _)| *number < begin);
    lines
        .filter(|(_, line)| opens(line) && !of_system(line))
        .map(|(number, _)| source.finding(number, "a file is opened; `thalweg_files` does that"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

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
