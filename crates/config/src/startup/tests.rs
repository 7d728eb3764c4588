use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

fn file(text: &str) -> (StartupConfig, Vec<Warning>) {
    StartupConfig::parse_file("startup.conf", text).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    StartupConfig::parse_file("startup.conf", text).unwrap_err().to_string()
}

const EXAMPLE: &str = r#"
# an edge router
unix {
  nodaemon   # stay
  log /var/log/thalweg.log
  full-coredump
  coredump-size 2G
  cli-listen /run/thalweg/cli.sock
  cli-prompt "edge-1# "
  exec /etc/thalweg/setup.cli
  gid vpp
  nocolor nobanner
  poll-sleep-usec 100
}
api-trace { on }
api-segment { gid vpp }
socksvr { default }
memory { main-heap-size 1536M main-heap-page-size default-hugepage }
cpu { main-core 1 corelist-workers 2-3,5 latency 20 }
buffers { buffers-per-numa 32768 default data-size 2048 page-size 2m }
statseg { size 128M page-size default per-node-counters off }
plugins {
  path /usr/lib/vpp
  plugin default { disable }
  plugin nat_plugin.so { enable }
}
logging { default-log-level debug class linux-cp { rate-limit 10000 level debug } size 100 }
nat { max users per thread 100 }
plugin_path /opt/vpp
"#;

#[test]
fn a_whole_file_is_read() {
    let (config, warnings) = file(EXAMPLE);
    assert_eq!(warnings, []);
    let unix = &config.unix;
    assert!(unix.nodaemon && unix.full_coredump && unix.nocolor && unix.nobanner);
    assert!(!unix.nosyslog && !unix.interactive);
    assert_eq!(unix.coredump_size, Some(CoreDumpSize::Bytes(2 << 30)));
    assert_eq!(unix.cli_prompt.as_deref(), Some("edge-1# "));
    assert_eq!(unix.cli_listen, Some(CliListen::Path("/run/thalweg/cli.sock".into())));
    assert_eq!(unix.exec, Some(PathBuf::from("/etc/thalweg/setup.cli")));
    assert_eq!(unix.gid.as_deref(), Some("vpp"));
    assert_eq!(unix.poll_sleep_usec, Some(100));
    assert_eq!((config.cpu.main_core, config.cpu.latency), (Some(1), Some(20)));
    assert_eq!(config.cpu.worker_count(), 3);
    assert_eq!(config.buffers.buffers_per_numa, Some(32768));
    assert_eq!(config.buffers.default_data_size, Some(2048));
    assert_eq!(config.buffers.page_size, PageSize::Bytes(2 << 20));
    assert_eq!(config.memory.main_heap_size, Some(1536 << 20));
    assert_eq!(config.memory.main_heap_page_size, PageSize::DefaultHugepage);
    assert!(config.socksvr.given && config.socksvr.socket_name.is_none());
    assert!(config.api_trace.on);
    assert_eq!(config.statseg.per_node_counters, Some(false));
    assert!(config.plugins.enabled("nat_plugin.so"));
    assert!(!config.plugins.enabled("dpdk_plugin.so"));
    assert_eq!(config.plugins.paths.len(), 2);
    assert_eq!(config.logging.size, Some(100));
    let nat: Vec<_> = config.stanza("nat").unwrap().words().collect();
    assert_eq!(nat, ["max", "users", "per", "thread", "100"]);
}

/// The arguments with which VPP's Python tests start their binary: see their order and spelling in
/// its test/framework.py. One argument is empty, and two words are joined.
#[test]
fn the_command_line_of_vpps_tests_is_read() {
    let line = "unix { nodaemon nosyslog full-coredump coredump-size unlimited runtime-dir /tmp/t \
        cli-listen /tmp/t/cli.sock } api-trace { on } api-segment { prefix t } \
        cpu { main-core 1 corelist-workers 2,3 } physmem { max-size 32m } \
        statseg { socket-name /tmp/t/stats.sock per-node-counters onupdate-interval 0.05 } \
        socksvr { socket-name /tmp/t/api.sock } node { default { variant icl 100 } } \
        api-fuzz { off } plugins { plugin dpdk_plugin.so { disable } \
        plugin rdma_plugin.so { disable } plugin lisp_unittest_plugin.so { enable } \
        add-path /x } punt { socket /tmp/t/socket_punt }";
    let mut args: Vec<&str> = line.split_whitespace().collect();
    args.insert(3, "");
    args.push("linux-cp { default netns x lcp-sync }");
    let (config, warnings) = StartupConfig::from_args(&args).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(config.unix.coredump_size, Some(CoreDumpSize::Unlimited));
    assert_eq!(config.unix.runtime_dir, Some(PathBuf::from("/tmp/t")));
    assert_eq!(config.statseg.per_node_counters, Some(true));
    assert_eq!(config.statseg.update_interval, Some(0.05));
    assert_eq!(config.socksvr.socket_name, Some(PathBuf::from("/tmp/t/api.sock")));
    assert_eq!(config.api_segment.prefix.as_deref(), Some("t"));
    assert_eq!(config.physmem.max_size, Some(32 << 20));
    assert_eq!(config.plugins.rules.len(), 3);
    assert_eq!(config.cpu.corelist_workers.as_ref().map(ToString::to_string), Some("2-3".into()));
    assert!(config.stanza("linux-cp").unwrap().words().any(|word| word == "lcp-sync"));
    let warned: Vec<_> = warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        warned,
        [
            "stanza `node` is not supported and has no effect",
            "stanza `api-fuzz` is not supported and has no effect",
            "stanza `punt` is not supported and has no effect",
        ]
    );
    let place = args.iter().position(|arg| *arg == "punt").unwrap() + 1;
    assert_eq!(warnings[2].place, format!("argument {place}"));
}

#[test]
fn a_file_and_arguments_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("startup.conf");
    fs::write(&path, "unix { nodaemon log /a }\ncpu { workers 2 }").unwrap();
    let path = path.to_str().unwrap();
    let (config, _) =
        StartupConfig::from_args(&["-c", path, "unix", "{ log /b }", "cpu { main-core 0 }"])
            .unwrap();
    assert!(config.unix.nodaemon);
    assert_eq!(config.unix.log, Some(PathBuf::from("/b")));
    assert_eq!((config.cpu.workers, config.cpu.main_core), (Some(2), Some(0)));
    assert_eq!(StartupConfig::from_args::<&str>(&[]).unwrap().0, StartupConfig::default());
    assert!(matches!(StartupConfig::from_args(&["-c"]), Err(StartupError::NoFile)));
    let missing = StartupConfig::from_args(&["-c", "/nonexistent/x.conf"]).unwrap_err();
    assert!(missing.to_string().contains("/nonexistent/x.conf: No such file"), "{missing}");
}

#[test]
fn a_mistake_is_shown_in_its_line() {
    assert_eq!(
        error("# x\nunix {\n  nodaemon\n  cli-lisen /run/cli.sock log /x\n}\n"),
        "startup.conf:4:3: unix: unknown word `cli-lisen`; did you mean `cli-listen`?\n    \
         4 |   cli-lisen /run/cli.sock log /x\n      |   ^^^^^^^^^"
    );
    let args = StartupConfig::parse_args(&["unix {", "nodaemon", "", "logg", "/x }"]);
    assert_eq!(
        args.unwrap_err().to_string(),
        "argument 4: unix: unknown word `logg`; did you mean `log`?\n      \
         | unix { nodaemon  logg /x }\n      |                  ^^^^"
    );
}

#[test]
fn options_after_stanzas_are_errors() {
    let late = StartupConfig::from_args(&["unix", "{ log /b }", "--config", "lo.yaml"]);
    let text = late.unwrap_err().to_string();
    let words = "argument 3: `--config` is no stanza: options go before the stanzas\n";
    assert!(text.starts_with(words), "{text}");
    assert!(StartupConfig::from_args(&["unix { log /b }", "-c", "/dev/null"]).is_err());
    assert!(StartupConfig::from_args(&["unix { log /b }", "--strict"]).is_err());
}

#[test]
fn words_that_resemble_none_of_ours_are_warnings() {
    let text = "unix { frobnicate 7 nodaemon }";
    let (config, warnings) = StartupConfig::parse_file("x.conf", text).unwrap();
    assert!(config.unix.nodaemon, "what follows still counts");
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].to_string().contains("frobnicate"), "{}", warnings[0]);
}

#[test]
fn a_long_line_is_shown_in_part() {
    let text = format!("{} unix {{ nodeamon }} {}", "x {} ".repeat(50), "y {} ".repeat(50));
    let text = error(&text);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[1].starts_with("    1 | … ") && lines[1].ends_with(" …"), "{text}");
    let at = lines[2].find('^').unwrap();
    let shown: String = lines[1].chars().skip(at).take(8).collect();
    assert_eq!(shown, "nodeamon");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = error("unix { poll-sleep-usec x }\nbuffers { page-size 3m }\ncpu { main-core -1 }");
    for part in [
        ":1:24: unix: `poll-sleep-usec` takes a number from 0 to 1000000, not x",
        ":2:21: buffers: `page-size` is default, default-hugepage, or a power of two",
        ":3:17: cpu: `main-core` takes a number from 0 to 8191, not -1",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn mistakes_are_explained() {
    for (text, part) in [
        ("unix { log }", "`log` needs a file"),
        ("unix { { } }", "no `{` is expected here"),
        ("unix { coredump-size big }", "`coredump-size` is unlimited or a size such as 2g"),
        ("unix { cli-listen localhost:0 }", "neither a path nor host:port"),
        ("unix { nodaemon", "unclosed `{`"),
        ("}", "unmatched `}`"),
        ("{ x }", "a stanza needs a name"),
        ("unix { log \"/x }", "no closing quote"),
        ("cpu { corelist-workers 3-1 }", "runs backwards"),
        ("cpu { latency 2000000 }", "`latency` takes a number from 0 to 1000000"),
        ("cpu { corelist-workers 0-300 }", "301 workers are more than 255"),
        ("cpu { coremask-workers 0 }", "the list has no cores"),
        ("cpu { workers 256 }", "from 0 to 255"),
        ("cpu { workers 2 corelist-workers 1-3 }", "both place the workers"),
        ("cpu { main-core 2 corelist-workers 1-3 }", "core 2 is the main thread's"),
        ("cpu { scheduler-policy best }", "fifo or rr, not best"),
        ("cpu { scheduler-priority 50 }", "only with `scheduler-policy` fifo or rr"),
        ("cpu { scheduler-policy fifo scheduler-priority 100 }", "from 1 to 99"),
        ("cpu { worker 1 }", "did you mean `workers`?"),
        ("buffers { default 2048 }", "`default` must be followed by `data-size`"),
        ("buffers { default data-size 16 }", "from 256 to 16384"),
        ("buffers { buffers-per-numa 1 }", "from 64 to 67108864"),
        ("statseg { update-interval 0 }", "takes seconds above 0"),
        ("statseg { update-interval 1e30 }", "up to 86400, not 1e30"),
        ("statseg { update-interval inf }", "up to 86400, not inf"),
        ("statseg { per-node-counters maybe }", "is on or off"),
        ("metrics { listen /run/m.sock }", "is host:port such as 127.0.0.1:9482"),
        ("metrics { listen 9482 }", "not 9482"),
        ("statseg { size 1 }", "takes 64k to 1t bytes"),
        ("memory { main-heap-size lots }", "takes a size such as"),
        ("logging { default-log-level loud }", "is one of emerg"),
        ("heapsize", "`heapsize` needs a size"),
    ] {
        let text = error(text);
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let deep = error(&"x {".repeat(100));
    assert!(deep.contains("deeper than 16"), "{deep}");
    assert_eq!(deep.matches("startup.conf").count(), 1);
}

#[test]
fn foreign_words_are_accepted_with_a_warning() {
    let (config, warnings) = file(
        "dpdk { dev 0000:03:00.0 { num-rx-queues 2 } no-multi-seg }\nsession { enable }\n\
         statseg { colour red size 1m }\nsocksvr { socket_name /x }\ntuntap disable\n",
    );
    assert_eq!(config.statseg.size, Some(1 << 20));
    let shown: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert!(shown[0].starts_with("startup.conf:1:1: dpdk: there is no DPDK driver"));
    assert_eq!(
        shown[1..],
        [
            "startup.conf:2:1: stanza `session` is not supported and has no effect",
            "startup.conf:3:11: statseg: `colour` is not supported and has no effect",
            "startup.conf:4:11: socksvr: `socket_name` is not supported and has no effect; \
             did you mean `socket-name`?",
            "startup.conf:5:1: stanza `tuntap` is not supported and has no effect",
        ]
    );
}

#[test]
fn a_stanza_of_one_word_needs_no_braces() {
    let (config, _) = file("unix interactive cpu { workers 1 }");
    assert!(config.unix.interactive && config.unix.nodaemon);
    assert_eq!(config.cpu.workers, Some(1));
    let (config, warnings) = file("strange cpu { workers 3 }");
    assert_eq!((config.cpu.workers, warnings.len()), (Some(3), 1));
}

#[test]
fn braces_need_no_blanks_and_hashes_stay_in_words() {
    let (config, _) = file("unix{nodaemon cli-prompt vpp#}cpu{workers 1}#unix{x}");
    assert_eq!(config.unix.cli_prompt.as_deref(), Some("vpp#"));
    assert_eq!(config.cpu.workers, Some(1));
    // In arguments, # has no meaning.
    let (config, _) = StartupConfig::parse_args(&["unix { cli-prompt #", "}"]).unwrap();
    assert_eq!(config.unix.cli_prompt.as_deref(), Some("#"));
}

#[test]
fn addresses_and_paths_are_distinguished() {
    let listen =
        |text: &str| file(&format!("unix {{ cli-listen {text} }}")).0.unix.cli_listen.unwrap();
    let tcp = |host: &str, port| CliListen::Tcp { host: host.into(), port };
    assert_eq!(listen("localhost:5002"), tcp("localhost", 5002));
    assert_eq!(listen("[::1]:5002"), tcp("::1", 5002));
    assert_eq!(listen("127.0.0.1:1").socket_addrs().unwrap().len(), 1);
    assert_eq!(listen("/a:1/b:2"), CliListen::Path("/a:1/b:2".into()));
    let run = Path::new("/run/x");
    assert_eq!(listen("cli.sock").socket_path(run), Some(PathBuf::from("/run/x/cli.sock")));
    assert_eq!(listen("./cli.sock").socket_path(run), Some(PathBuf::from("./cli.sock")));
    assert_eq!(listen("/y/cli.sock").socket_path(run), Some(PathBuf::from("/y/cli.sock")));
    assert_eq!(listen("localhost:5002").socket_path(run), None);
}

/// The lists that suggestions come from hold exactly the words that are read.
#[test]
fn every_listed_word_is_known() {
    let strict = [
        ("unix", sections::UNIX_WORDS),
        ("cpu", sections::CPU_WORDS),
        ("buffers", sections::BUFFERS_WORDS),
    ];
    for (stanza, words) in strict.iter().chain(lenient::ALL_WORDS) {
        for word in *words {
            let text = format!("{stanza} {{ {word} }}");
            match StartupConfig::parse_file("x", &text) {
                Ok((_, warnings)) => assert_eq!(warnings, [], "{text}"),
                Err(error) => assert!(!error.to_string().contains("unknown word"), "{error}"),
            }
        }
    }
}

fn soup() -> impl Strategy<Value = String> {
    let words = sections::UNIX_WORDS
        .iter()
        .chain(sections::CPU_WORDS)
        .chain(lenient::ALL_WORDS.iter().flat_map(|(_, words)| *words))
        .chain(&["unix", "cpu", "buffers", "statseg", "memory", "plugins", "logging", "heapsize"])
        .chain(&["{", "}", "{", "}", "\n", "#", "\"", "on", "offsize", "1-3,5", "2m", "0x", "é"]);
    let words: Vec<&str> = words.copied().collect();
    let word = prop_oneof![
        4 => prop::sample::select(words).prop_map(str::to_owned),
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(word, 0..60).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_startup(&bytes);
    }

    #[test]
    fn any_words_are_read_without_panic(text in soup()) {
        fuzz_startup(text.as_bytes());
    }

    /// A mark points at characters of the line that is shown.
    #[test]
    fn marks_stand_below_the_line(text in soup()) {
        if let Err(StartupError::Invalid(problems)) = StartupConfig::parse_file("x", &text) {
            for problem in problems {
                let lines: Vec<_> = problem.excerpt.lines().collect();
                prop_assert_eq!(lines.len(), 2, "{}", problem);
                prop_assert!(lines[1].contains('^'));
            }
        }
    }
}

#[test]
fn the_api_socket_has_permissions() {
    let (config, _) = file("socksvr { socket-name /x mode 0600 group vpp }");
    assert_eq!((config.socksvr.mode, config.socksvr.group.as_deref()), (Some(0o600), Some("vpp")));
    let wrong = error("socksvr { mode rw }");
    assert!(wrong.contains("octal permissions such as 0660, not rw"), "{wrong}");
}
