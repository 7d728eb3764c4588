//! The two programs as their users meet them: what they print, and their exit status.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;
use thalweg_testkit::{Cmd, Running, Signal, join, wait_for_unix_socket};

const THALWEG: &str = env!("CARGO_BIN_EXE_thalweg");
const THALCTL: &str = env!("CARGO_BIN_EXE_thalctl");
const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;

/// Runs a program that ends by itself, within a limit.
fn ends(mut command: Command) -> Output {
    let what = format!("{command:?}");
    join(thread::spawn(move || command.output()), LIMIT, &what).unwrap().unwrap()
}

fn thalweg(args: &str) -> Output {
    let mut command = Command::new(THALWEG);
    command.args(args.split_whitespace());
    ends(command)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A router in a directory of its own.
struct Router {
    dir: tempfile::TempDir,
    running: Running,
}

impl Router {
    fn start(more: &str) -> Router {
        Router::start_in(tempfile::tempdir().unwrap(), more)
    }

    fn start_in(dir: tempfile::TempDir, more: &str) -> Router {
        let stanzas = format!(
            "unix {{ nodaemon runtime-dir {0} pidfile {0}/pid }} buffers {{ buffers-per-numa 1024 }} \
             {more}",
            dir.path().display()
        );
        let running =
            Cmd::new(THALWEG).arg("run").args(stanzas.split_whitespace()).spawn().unwrap();
        let router = Router { dir, running };
        wait_for_unix_socket(&router.socket(), LIMIT).unwrap();
        router
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("cli.sock")
    }

    fn ctl(&self, args: &[&str]) -> Output {
        let mut command = Command::new(THALCTL);
        command.arg("-s").arg(self.socket()).args(args);
        ends(command)
    }

    /// Runs a script on standard input.
    fn reads(&self, script: &str) -> Output {
        let mut piped = Command::new(THALCTL)
            .arg("-s")
            .arg(self.socket())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        piped.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        join(thread::spawn(|| piped.wait_with_output()), LIMIT, "thalctl").unwrap().unwrap()
    }

    fn says(&self, args: &[&str]) -> String {
        let output = self.ctl(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Ends it in good order; gives its log.
    fn stop(self) -> (String, tempfile::TempDir) {
        let output = self.running.stop(LIMIT).unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
        (output.stderr, self.dir)
    }
}

#[test]
fn a_router_runs_and_ends_in_good_order() {
    let router = Router::start("");
    assert!(router.says(&["show", "version"]).starts_with("thalweg v"));
    let features = router.says(&["show", "plugins"]);
    for feature in ["engine", "ethernet", "arp", "ip4", "l2", "af_packet", "sflow"] {
        let there = features.replace('-', "_").contains(feature);
        assert!(there, "{feature} is not among\n{features}");
    }
    let pid = fs::read_to_string(router.dir.path().join("pid")).unwrap();
    assert_eq!(pid.trim(), router.running.pid().to_string());
    // The router has nothing to read again, and no reason to end.
    router.running.signal(Signal::HUP).unwrap();
    router.says(&["show", "interface"]);
    let (log, dir) = router.stop();
    assert!(log.contains("all 1024 packet buffers returned"), "{log}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "files are left behind");
}

#[test]
fn the_status_of_thalctl_tells_failure() {
    let router = Router::start("");
    let failed = router.ctl(&["show", "nonsense"]);
    assert_eq!(failed.status.code(), Some(1));
    let text = String::from_utf8_lossy(&failed.stdout);
    assert!(text.starts_with("show: unknown input `nonsense'"), "{text}");
    let mut unreachable = Command::new(THALCTL);
    unreachable.args(["-s", "/nonexistent/cli.sock", "show", "version"]);
    let unreachable = ends(unreachable);
    assert_eq!(unreachable.status.code(), Some(1));
    assert!(stderr(&unreachable).contains("is the router running?"));
    router.stop();
}

#[test]
fn output_that_is_lost_shows_in_the_status() {
    let dir = tempfile::tempdir().unwrap();
    let document = dir.path().join("lab.yaml");
    fs::write(&document, "loopbacks:\n  loop0: {}\n").unwrap();
    let document = document.to_str().unwrap();
    for args in [&["version"][..], &["config", "check", document]] {
        let mut command = Command::new(THALWEG);
        assert!(
            ends({
                command.args(args);
                command
            })
            .status
            .success()
        );
        let mut command = Command::new(THALWEG);
        command.args(args).stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        let lost = ends(command);
        assert_eq!(lost.status.code(), Some(1), "{args:?}");
        assert!(stderr(&lost).contains("cannot write to standard output"), "{}", stderr(&lost));
    }
}

/// Commands with which a client has the router write a file.
const SAVES: [&str; 5] = [
    "config save",
    "nat44 save",
    "nat44 log file",
    "set conntrack events",
    "packet-generator capture pg0 pcap",
];

#[test]
fn clients_have_files_written_where_the_start_allows_it() {
    let given = tempfile::tempdir().unwrap();
    let router = Router::start(&format!("unix {{ files {} }}", given.path().display()));
    router.says(&["create packet-generator interface pg0"]);
    router.says(&["nat44 plugin enable"]);
    let elsewhere = tempfile::tempdir().unwrap();
    for save in SAVES {
        for dir in [elsewhere.path(), Path::new("/etc"), &router.dir.path().join("../etc")] {
            let path = dir.join("thalweg-test-passwd");
            let refused = router.ctl(&[save, path.to_str().unwrap()]);
            let text = String::from_utf8_lossy(&refused.stdout).into_owned();
            assert!(!refused.status.success(), "{save} {}", path.display());
            let fits = text.contains("clients of the router write ") || text.contains("`..`");
            assert!(fits, "{save}: {text}");
            assert!(!path.exists());
        }
    }
    let dirs = [given.path(), router.dir.path()];
    for (save, dir) in SAVES[..4].iter().flat_map(|save| dirs.map(|dir| (save, dir))) {
        let path = dir.join(save.replace(' ', "-"));
        router.says(&[save, path.to_str().unwrap()]);
        assert!(path.exists(), "{}", path.display());
    }
    router.stop();
}

#[test]
fn a_save_replaces_files_of_its_kind_only() {
    let router = Router::start("");
    router.says(&["nat44 plugin enable"]);
    let path = router.dir.path().join("sessions");
    let save = format!("nat44 save {}", path.display());
    router.says(&[&save]);
    router.says(&[&save]);
    fs::write(&path, "root:x:0:0::/root:/bin/sh\n").unwrap();
    let refused = router.ctl(&[&save]);
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(text.contains("is not a file of nat44 sessions: remove it first"), "{text}");
    assert!(fs::read_to_string(&path).unwrap().starts_with("root:"));
    for save in &SAVES[..2] {
        let refused = router.ctl(&[save, "/dev/zero"]);
        assert!(!refused.status.success(), "{save}");
    }
    assert_eq!(fs::metadata("/dev/zero").unwrap().len(), 0);
    router.stop();
}

/// Errors about a file that not everyone may read say where, and not what.
#[test]
fn private_files_are_not_quoted() {
    use std::os::unix::fs::PermissionsExt;
    const SECRET: &str = "s3cr3t-Zx9";
    let router = Router::start("");
    router.says(&["create packet-generator interface pg0"]);
    router.says(&["nat44 plugin enable"]);
    let file = router.dir.path().join("private");
    let name = file.to_str().unwrap();
    for text in [
        format!("root:{SECRET}:19000:0:99999:7:::\n"),
        format!("password: {SECRET}\n"),
        format!("interfaces: {SECRET}\n"),
        format!("loopbacks:\n  loop0:\n    mtu: {SECRET}\n"),
        format!("thalweg:\n  flow: {{rules: {{'5': ['{SECRET}=1,actions=drop']}}}}\n"),
        format!("sflow {{ {SECRET} }}\n"),
        format!("\"{SECRET}\"\n"),
    ] {
        fs::write(&file, text).unwrap();
        for command in [
            "exec FILE",
            "flow add 1 file FILE",
            "config plan FILE",
            "config apply FILE",
            "config apply FILE best-effort",
            "config check FILE",
            "config diff FILE",
            "sflow agent-config FILE",
            "api trace dump FILE",
            "api trace replay FILE",
            "api trace replay-json FILE",
            "nat44 restore FILE",
            "packet-generator new { name x pcap FILE interface pg0 }",
        ] {
            for (mode, is_private) in [(0o600, true), (0o640, true), (0o644, false)] {
                fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
                let output = router.ctl(&[&command.replace("FILE", name)]);
                assert!(!is_private || !output.status.success(), "{command}");
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(!is_private || !said.contains(SECRET), "{command}: {said}");
            }
        }
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let said = router.ctl(&[&format!("config check {name}")]).stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains(":1:") && said.contains("the error is not shown"), "{said}");
    router.stop();
}

/// The part of the guide on test traffic, in a fresh router.
#[test]
fn the_test_traffic_of_the_guide_arrives() {
    let guide = include_str!("../../../docs/user-guide.md");
    let (_, part) = guide.split_once("### Test traffic\n").unwrap();
    let (_, part) = part.split_once("generator.cli` with\n\n").unwrap();
    let (script, part) = part.split_once("\n\n```\n").unwrap();
    let (output, _) = part.split_once("```").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let router = Router::start(&format!("unix {{ files {} }}", dir.path().display()));
    let file = dir.path().join("out.pcap");
    let here = |text: &str| text.replace("/tmp/out.pcap", &file.to_string_lossy());
    let script: String = script.lines().map(|l| here(l.trim_start()) + "\n").collect();
    let ran = router.reads(&script);
    assert!(ran.status.success(), "{ran:?}");
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(text.ends_with(&here(output)), "{text}");
    fs::remove_file(file).unwrap();
    router.stop();
}

#[test]
fn scripts_are_piped_in_or_named() {
    let router = Router::start("");
    let script = "# a comment\ncreate loopback interface\n\nshow interface address\n";
    let output = router.reads(script);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("loop0\n"), "{output:?}");

    // The router runs elsewhere, so that a relative path is no use to it.
    fs::write(router.dir.path().join("a b.cli"), "echo one\nshow nonsense\necho two\n").unwrap();
    fs::write(router.dir.path().join("c.cli"), "echo three\n").unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(THALCTL);
        command.current_dir(router.dir.path()).arg("-s").arg(router.socket());
        command.args(args);
        ends(command)
    };
    assert_eq!(run(&["exec", "c.cli"]).stdout, b"three\n");
    let path = format!("\"{}\"", router.dir.path().join("a b.cli").display());
    let failed = run(&["exec", &path]);
    assert_eq!(failed.status.code(), Some(1));
    let text = String::from_utf8_lossy(&failed.stdout);
    assert!(text.starts_with("one\nexec: CLI line error:") && text.contains("a b.cli:2"), "{text}");
    assert!(!text.contains("two"));
    router.stop();
}

#[test]
fn the_startup_script_is_done_before_the_first_answer() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("start.cli");
    let lines = "wait 0.2\n".to_owned() + &"create loopback interface\n".repeat(20);
    fs::write(&script, lines + "show nonsense\n").unwrap();
    let router = Router::start_in(dir, &format!("unix {{ exec {} }}", script.display()));
    assert!(router.says(&["show", "interface"]).contains("loop19"));
    let (log, _) = router.stop();
    assert!(log.contains("start.cli:22"), "the failing line is named: {log}");
}

#[test]
fn a_second_router_touches_nothing() {
    let router = Router::start("");
    let second = thalweg(&format!("run unix {{ runtime-dir {} }}", router.dir.path().display()));
    assert_eq!(second.status.code(), Some(1));
    assert!(stderr(&second).contains("is in use by a running process"), "{}", stderr(&second));
    router.says(&["show", "version"]);
    router.stop();
}

#[test]
fn a_killed_router_leaves_nothing_in_the_way() {
    let router = Router::start("");
    router.running.signal(Signal::KILL).unwrap();
    let Router { dir, mut running } = router;
    running.wait(LIMIT).unwrap();
    assert!(dir.path().join("cli.sock").exists());
    let router = Router::start_in(dir, "");
    router.says(&["show", "version"]);
    router.stop();
}

#[test]
fn wrong_configurations_are_refused_in_one_go() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("startup.conf");
    fs::write(&file, "unix { nodaemon }\ncpu { wrokers 2 }\n").unwrap();
    let file = file.display();
    let latin = dir.path().join("latin.yaml");
    fs::write(&latin, b"interfaces: {} # \xe9\n").unwrap();
    for (args, status, words) in [
        (format!("run -c {file}"), 2, "startup.conf:2:7"),
        (format!("-c {file}"), 2, "did you mean `workers`?"),
        ("run unix { cli-lisen x }".into(), 2, "argument 3"),
        ("cpu { main-core 8000 }".into(), 2, "core 8000 is not online"),
        ("run -c /nonexistent.conf".into(), 2, "cannot read startup configuration"),
        (
            format!("run unix {{ runtime-dir {}/x gid nosuchgroup }}", dir.path().display()),
            2,
            "gid",
        ),
        ("run unix { nodaemon } --config x.yaml".into(), 2, "options go before the stanzas"),
        ("run --config /nonexistent/x.yaml".into(), 2, "/nonexistent: no such directory"),
        (format!("run --config {}", latin.display()), 2, "line 1 is not UTF-8 text"),
        (format!("run --config {}", dir.path().display()), 2, "is a directory: `--config' takes"),
        ("run unix { runtime-dir /proc/none }".into(), 1, "/proc/none"),
        ("run unix { log /nonexistent/log }".into(), 1, "/nonexistent/log"),
        ("run buffers { buffers-per-numa 60000000 }".into(), 1, "buffers-per-numa"),
        ("walk".into(), 2, "unrecognized subcommand"),
    ] {
        let output = thalweg(&args);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{args}: {text}");
        assert!(text.contains(words), "{args}: {text}");
    }
}

#[test]
fn unknown_stanzas_are_warned_of() {
    let router = Router::start("heapsize 4g nonsense { x }");
    let (log, _) = router.stop();
    assert!(log.contains("WARN") && log.contains("nonsense"), "{log}");
}

#[test]
fn the_console_reads_commands_and_ends_the_router() {
    let dir = tempfile::tempdir().unwrap();
    let stanzas = format!("run unix {{ interactive runtime-dir {} }}", dir.path().display());
    let output = Cmd::new(THALWEG)
        .args(stanzas.split_whitespace())
        .stdin("echo one\nshow nonsense\necho two\nquit\necho three\n")
        .deadline(LIMIT)
        .output()
        .unwrap();
    assert!(
        output.starts_with("one\nshow: unknown input") && output.ends_with("two\n"),
        "{output}"
    );
}

#[test]
fn samples_of_a_capture_are_printed() {
    let none = thalweg("sflow decode -r /nonexistent.pcap");
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("cannot open /nonexistent.pcap"), "{}", stderr(&none));
    let pcaps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sflow/tests");
    let found = captures(&pcaps);
    assert!(!found.is_empty(), "no capture below {}", pcaps.display());
    for path in found {
        for (flag, start) in [("-j", "{"), ("-l", ""), ("-J", "{\n")] {
            let output = thalweg(&format!("sflow decode {flag} -r {}", path.display()));
            assert!(output.status.success(), "{}: {}", path.display(), stderr(&output));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.starts_with(start) && !text.is_empty(), "{}: {text}", path.display());
        }
    }
}

#[test]
fn what_was_sampled_becomes_a_capture_and_datagrams_are_passed_on() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sflow/tests/data");
    let capture = data.join("hsflowd_veth_flows.pcap").display().to_string();
    let written = thalweg(&format!("sflow decode -t -r {capture}"));
    let expected = fs::read(data.join("hsflowd_veth_flows.samples-t.pcap")).unwrap();
    assert!(written.stdout == expected, "{}", stderr(&written));

    let collector = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    collector.set_read_timeout(Some(LIMIT)).unwrap();
    let port = collector.local_addr().unwrap().port();
    let silent = thalweg(&format!("sflow decode -r {capture} -f 127.0.0.1/{port}"));
    assert!(silent.status.success() && silent.stdout.is_empty(), "{}", stderr(&silent));
    let mut datagram = [0; 2048];
    let length = collector.recv(&mut datagram).unwrap();
    assert!(length > 100 && datagram[..4] == [0, 0, 0, 5], "{length}");

    let wrong = thalweg("sflow decode -f 192.0.2.1");
    assert!(stderr(&wrong).contains("expected HOST/PORT"), "{}", stderr(&wrong));
    let wrong = thalweg("sflow decode -i no-such-if");
    assert!(stderr(&wrong).contains("no interface no-such-if"), "{}", stderr(&wrong));
}

fn captures(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.extension() {
            _ if path.is_dir() => found.extend(captures(&path)),
            // Captures of datagrams have the expected output next to them.
            Some(extension) if extension == "pcap" && path.with_extension("txt").exists() => {
                found.push(path);
            }
            _ => {}
        }
    }
    found
}

thalweg_testkit::lab_test! {
    /// A user who ends the demonstration finds neither processes nor files of it.
    fn an_interrupted_demo_leaves_nothing() {
        thalweg_testkit::require_tools(&["iperf3", "ping"])?;
        let dir = tempfile::tempdir()?;
        let mut demo =
            Cmd::new(THALWEG).args(["demo", "--plain"]).env("TMPDIR", dir.path()).spawn()?;
        demo.wait_for_output(LIMIT, "the first figures", |out, _| {
            out.contains("Top talkers").then_some(())
        })?;
        assert_eq!(fs::read_dir(dir.path())?.count(), 1);
        demo.signal(Signal::TERM)?;
        let output = demo.finish(LIMIT)?;
        assert_eq!(output.status.code(), Some(130), "{}", output.stderr);
        assert_eq!(fs::read_dir(dir.path())?.count(), 0);
        let mark = dir.path().as_os_str().as_encoded_bytes();
        for process in fs::read_dir("/proc")?.flatten() {
            let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let ours = words.windows(mark.len()).any(|part| part == mark);
            assert!(!ours, "{}", String::from_utf8_lossy(&words));
        }
        Ok(())
    }
}
