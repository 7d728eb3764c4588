//! The engine's commands over a running engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../graph/tests/lab/mod.rs"]
mod lab;

use lab::{Lab, Release, TO_DELIVER, TO_DROP, TO_KEEP, TO_SINK};
use serde_json::Value;
use thalweg_buffer::SwIfIndex;
use thalweg_cli::CommandTree;
use thalweg_engine::Feature;
use thalweg_engine::classify::{Classifier, User};
use thalweg_graph::Control;

static TEST: Feature = Feature {
    name: "test",
    about: "the engine's test graph",
    nodes: lab::TEST.nodes,
    arcs: lab::TEST.arcs,
    init: lab::TEST.init,
    ..Feature::DEFAULT
};

struct Shell {
    lab: Lab,
    tree: CommandTree<Control>,
}

impl Shell {
    fn new(workers: usize) -> Shell {
        let lab = Lab::started_by(workers, 4096 * workers, |c| thalweg_engine::start(c, &[&TEST]));
        let tree = thalweg_engine::command_tree(&lab.c).unwrap();
        Shell { lab, tree }
    }

    fn ok(&mut self, line: &str) -> String {
        let (text, end) = self.tree.run_line(&mut self.lab.c, line);
        assert!(end.is_ok(), "{line}: {}", end.err().unwrap());
        text
    }

    fn json(&mut self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{line} | json"))).unwrap()
    }

    fn error(&mut self, line: &str) -> String {
        match self.tree.run_line(&mut self.lab.c, line) {
            (text, Ok(_)) => panic!("{line} was taken: {text}"),
            (_, Err(error)) => error.to_string(),
        }
    }
}

fn traffic(shell: &mut Shell) {
    let frame = vec![TO_SINK, TO_DROP, TO_DELIVER, TO_KEEP, TO_SINK];
    for w in 0..shell.lab.c.workers() {
        shell.lab.make(w, SwIfIndex(1), vec![frame.clone(); 10]);
    }
    let (n, held) = (50 * shell.lab.c.workers() as u64, 10 * shell.lab.c.workers() as i64);
    shell.lab.settle(n, held);
}

#[test]
fn runtime_counts_since_the_last_clear() {
    let mut s = Shell::new(2);
    traffic(&mut s);
    let text = s.ok("show run");
    for heading in ["Thread 0 main (lcore ", "Thread 1 thalweg_wk_0 (lcore ", "Thread 2 "] {
        assert!(text.contains(heading), "{text}");
    }
    assert!(text.contains("/sec ") && text.contains("  vector rates in "), "{text}");
    let threads = s.json("show runtime");
    let node = |threads: &Value, name: &str| {
        let nodes = threads[1]["nodes"].as_array().unwrap();
        nodes.iter().find(|n| n["name"] == name).cloned()
    };
    let split = node(&threads, "test-split").unwrap();
    assert_eq!((split["vectors"].as_u64(), split["state"].as_str()), (Some(50), Some("active")));
    assert!(split["clocks_per_packet"].as_f64().unwrap() > 0.0);
    assert!(threads[1]["rates"]["in"].as_f64().unwrap() > 0.0);
    // The node never ran: only `verbose` shows it. only `verbose` shows it.
    assert!(!text.contains("test-tap ") && s.ok("sh run verb").contains("test-tap "));
    assert!(s.ok("show runtime max").contains("Max Node Clocks"));
    assert_eq!(s.ok("show runtime summary").lines().count(), 3 * 3 + 2);
    let only = s.ok("show runtime test-split");
    assert_eq!(only.matches("\ntest-split ").count(), 2, "{only}");
    assert!(s.error("show runtime no-node").contains("bad node `no-node'"));

    s.ok("clear runtime");
    let threads = s.json("show runtime verbose");
    let split = node(&threads, "test-split").unwrap();
    assert_eq!((split["vectors"].as_u64(), split["max_clocks"].as_u64()), (Some(0), Some(0)));
    assert_eq!(threads[1]["rates"]["in"].as_f64(), Some(0.0));
    // Counters that exporters read are not reset.
    let id = s.lab.node("test-split");
    assert_eq!(s.lab.c.worker_stats(0).node(id).vectors.get(), 50);
}

#[test]
fn loops_are_timed_since_the_last_clear() {
    let mut s = Shell::new(1);
    traffic(&mut s);
    let rows = s.json("show runtime loops");
    let us = |row: &Value, key: &str| row[key].as_f64().unwrap();
    assert!(rows[1]["loops"].as_u64() > Some(0), "{rows}");
    assert!(us(&rows[1], "p50_us") > 0.0, "{rows}");
    assert!(us(&rows[1], "p50_us") <= us(&rows[1], "max_us"), "{rows}");
    s.ok("clear runtime");
    assert_eq!(s.json("show runtime loops")[1]["loops"], 0);
    assert_eq!(s.json("show runtime loops")[1]["max_us"], 0.0);
}

#[test]
fn errors_count_since_the_last_clear() {
    let mut s = Shell::new(2);
    assert_eq!(s.ok("show errors").lines().count(), 1);
    traffic(&mut s);
    let text = s.ok("sh err");
    let rows: Vec<Vec<&str>> =
        text.lines().skip(1).map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert_eq!(rows[0][..2], ["20", "test-split"]);
    assert_eq!(rows[0].last(), Some(&"error"));
    assert_eq!((rows[1][0], *rows[1].last().unwrap()), ("100", "info"));
    assert_eq!(s.json("show node counters"), s.json("show errors"));
    assert!(s.ok("show errors verbose").contains("interface is deleted"));
    s.ok("clear errors");
    assert_eq!(s.ok("show errors").lines().count(), 1);
    assert_eq!(s.json("show errors"), serde_json::json!([]));
    s.lab.release(Release::Drop);
    s.lab.settle(100, 0);
    assert!(s.ok("show error").contains("20             test-keep"));
}

#[test]
fn traces_are_asked_for_shown_and_cleared() {
    let mut s = Shell::new(2);
    assert_eq!(s.ok("show trace").matches("No packets in trace buffer").count(), 2);
    let wrong = s.error("trace add error-drop 10");
    assert!(wrong.contains("expected an input node (test-input), or one where"), "{wrong}");
    assert!(s.error("trace add test-input 0").contains("a number from 1 to 16384"));
    assert!(s.error("trace add test-input 10 more").contains("bad option `more'"));
    assert!(
        s.error("trace add test-input 10 filter").contains("no filter: `classify filter trace")
    );
    s.ok("trace add test-input 3");
    traffic(&mut s);
    let text = s.ok("show trace max 2");
    assert_eq!(text.matches("\nPacket 2 at 20").count(), 2, "{text}");
    assert_eq!(text.matches("Limiting display to 2 packets of 3.").count(), 2);
    assert!(text.contains(": test-split\n  kind 2\n"), "{text}");
    assert!(text.contains(": error-drop\n  rx:if1\n"), "{text}");
    assert!(text.contains(": drop\n  test-split: the packet asked for it\n"), "{text}");
    let threads = s.json("show trace");
    assert_eq!(threads[0]["packets"].as_array().unwrap().len(), 3);
    assert_eq!(threads[1]["packets"][1]["steps"][2]["node"], "test-split");
    s.ok("clear trace");
    assert_eq!(s.json("show trace")[0]["packets_traced"], 0);
}

#[test]
fn ways_of_traced_packets() {
    let mut s = Shell::new(2);
    assert_eq!(s.ok("show trace paths"), "No packets in trace buffer\n");
    s.ok("trace add test-input 5 verbose");
    traffic(&mut s);
    let text = s.ok("show trace paths");
    assert!(
        text.starts_with("Found 4 unique paths across all threads (showing top 4):\n"),
        "{text}"
    );
    assert!(text.contains("\n [0] Count: 4  ID: 0x"), "{text}");
    let paths = s.json("show trace paths");
    let ends = |i: usize| paths[i]["nodes"].as_array().unwrap().last().cloned().unwrap();
    assert_eq!((&paths[0]["count"], &paths[0]["threads"]), (&4.into(), &serde_json::json!([1, 2])));
    let dropped = (1..4).find(|i| ends(*i) == "drop").expect("a way that ends in a drop");
    let one = s.ok(&format!("show trace path {dropped}"));
    assert!(
        one.contains("Path: test-input -> ") && one.contains("-> error-drop -> drop\n"),
        "{one}"
    );
    assert_eq!(one.matches("\nPacket 1\n").count(), 2, "{one}");
    assert_eq!(s.json("show trace path 0 1").as_array().unwrap().len(), 2);
    assert!(s.error("show trace path 4").contains("no path 4: `show trace paths' lists 4"));
    assert!(s.error("show trace path").contains("missing path"));

    s.ok("trace filter include error-drop 9");
    assert_eq!(s.json("show trace paths").as_array().unwrap().len(), 1);
    assert_eq!(s.json("show trace")[0]["packets_traced"], 1);
    s.ok("trace filter exclude error-drop 3");
    assert_eq!(s.json("show trace")[0]["packets_traced"], 3);
    assert_eq!(s.json("show trace max 2")[0]["packets"].as_array().unwrap().len(), 2);
    s.ok("trace filter none");
    assert_eq!(s.json("show trace")[0]["packets_traced"], 5);
    assert!(s.error("trace filter include nothing 1").contains("a node of the graph"));
}

#[test]
fn traces_print_the_time_as_asked() {
    let mut s = Shell::new(1);
    s.ok("trace add test-input 1");
    traffic(&mut s);
    let time = |s: &mut Shell| {
        s.json("show trace")[0]["packets"][0]["steps"][0]["time"].as_str().unwrap().to_owned()
    };
    assert_eq!(s.ok("show trace timestamp-format"), "trace timestamp format: relative\n");
    assert!(time(&mut s).starts_with("00:"));
    s.ok("set trace timestamp-format unix");
    assert!(time(&mut s).parse::<f64>().unwrap() > 1.7e9);
    s.ok("set trace timestamp-format datetime");
    let text = time(&mut s);
    assert!(text.starts_with("20") && text.contains('T') && text.ends_with('Z'), "{text}");
    assert!(s.ok("show trace timestamp-format").contains("datetime"));
    s.ok("set trace timestamp-format relative");
    assert!(s.error("set trace timestamp-format x").contains("relative"));
}

#[test]
fn only_packets_that_match_are_traced() {
    let mut s = Shell::new(1);
    let row = |name: &str, first: &str| format!("{name:<30} first table {first}\n");
    assert!(s.ok("show classify filter").contains(&row("pcap rx/tx/drop:", "none")));
    assert_eq!(s.ok("show classify tables"), "No classifier tables configured\n");
    // Packets of the lab say by their first byte where they go.
    assert_eq!(s.ok("classify table mask hex ff"), "0\n");
    s.ok(&format!("classify session table-index 0 match hex {TO_DROP:02x}"));
    let set = |s: &Shell, table| {
        let classifier = s.lab.c.state::<Classifier>();
        classifier.borrow_mut().set(User::Trace, table, false).unwrap()
    };
    assert_eq!(set(&s, Some(0)), Some(0));
    s.ok("trace add test-input 16000 filter");
    traffic(&mut s);
    let all = s.json("show trace");
    assert_eq!(all[0]["packets_traced"], 10);
    let text = s.ok("show trace");
    assert_eq!(text.matches(": drop\n").count(), 10, "{text}");
    let shown = s.ok("show classify filter");
    assert!(shown.contains(&row("packet tracer:", "0")), "{shown}");
    assert!(
        shown.contains("  0: skips 0 mask ff0000")
            && shown.contains(&format!("match {TO_DROP:02x}00"))
    );
    set(&s, None);
    assert!(s.error("trace add test-input 1 filter").contains("no filter"));
}

#[test]
fn only_traces_that_match_are_shown() {
    let mut s = Shell::new(1);
    s.ok("classify table mask hex ff");
    s.ok(&format!("classify session table-index 0 match hex {TO_DROP:02x}"));
    s.ok("trace add test-input 16000");
    traffic(&mut s);
    let traced = |s: &mut Shell| s.json("show trace")[0]["packets_traced"].as_u64().unwrap();
    let every = traced(&mut s);
    s.ok("trace filter include table 0 16000");
    assert_eq!(traced(&mut s), 10);
    s.ok("trace filter exclude table 0 16000");
    assert_eq!(traced(&mut s), every - 10);
    s.ok("trace filter include table 0 4");
    assert_eq!(traced(&mut s), 4);
    assert!(s.error("trace filter include table 7 4").contains("no classifier table 7"));
    s.ok(&format!("classify session table-index 0 match hex {TO_DROP:02x} del"));
    let again = s.error(&format!("classify session table-index 0 match hex {TO_DROP:02x} del"));
    assert!(again.contains("no such pattern"), "{again}");
    assert!(s.error("classify table table 0").contains("`next-table' and a number, or `del'"));
    s.ok("classify table table 0 next-table 4294967295");
    s.ok("classify table table 0 del");
    // The filter goes with its table; a new table with the number does not filter.
    assert_eq!(traced(&mut s), every);
    assert_eq!(s.ok("classify table mask hex ff"), "0\n");
    assert_eq!(traced(&mut s), every);
    s.ok("classify table table 0 del");
    assert!(s.error("classify table table 0 del").contains("no classifier table 0"));
    assert!(s.error("classify table mask l3 ip4 src skip 2").contains("leave out `skip'"));
    assert!(s.error("classify table").contains("`mask' for a new table"));
    assert!(s.error("classify session match hex ff").contains("`table-index'"));
}

#[test]
fn packets_that_the_router_makes_are_traced() {
    let mut s = Shell::new(1);
    let node = s.lab.node("test-sink");
    s.ok("trace add test-sink 2");
    for _ in 0..3 {
        let bytes = vec![TO_SINK; 60];
        s.lab.c.inject(0, thalweg_graph::Inject { node, bytes, ..Default::default() });
    }
    s.lab.c.sync();
    s.lab.c.sync();
    let text = s.ok("show trace");
    assert_eq!(text.matches(": test-sink\n  made by the router\n").count(), 2, "{text}");
    // Received packets begin elsewhere.
    traffic(&mut s);
    assert_eq!(s.json("show trace")[0]["packets_traced"], 2);
}

#[test]
fn nodes_are_described() {
    let mut s = Shell::new(1);
    traffic(&mut s);
    let text = s.ok("show node test-split");
    assert!(text.starts_with("node test-split, type internal, state active, index "), "{text}");
    assert!(text.contains("vectors 50, ") && text.contains("  next nodes: "), "{text}");
    assert!(text.contains("        10 the packet asked for it (error)\n"), "{text}");
    let node = s.json("show node test-split");
    let by_index = format!("show graph node {} want_arcs", node["index"]);
    let rows = s.json(&by_index);
    assert_eq!((&rows[0]["name"], &rows[0]["next"]), (&node["name"], &node["next"]));
    assert!(s.ok(&by_index).contains(" -> "));
    let inputs = s.json("show graph input");
    assert_eq!((inputs.as_array().unwrap().len(), &inputs[0]["name"]), (1, &"test-input".into()));
    assert!(s.json("show graph").as_array().unwrap().len() > 5);
    assert!(s.error("show node nothing").contains("`show graph' lists them"));
    assert!(s.error("show graph loud").contains("bad property"));
}

#[test]
fn lines_are_logged_and_forgotten() {
    let mut s = Shell::new(1);
    for level in ["emerg", "err", "warn", "notice", "debug"] {
        let said = s.json(&format!("test log {level} ip fib a text of words"));
        assert_eq!(said["text"], "a text of words");
    }
    assert!(s.error("test log loud ip fib x").contains("expected emerg, alert"));
    assert!(s.error("test log err ip fib").contains("the text of the line"));
    s.ok("clear logging");
}

#[test]
fn packets_are_accounted_for() {
    let mut s = Shell::new(2);
    traffic(&mut s);
    let text = s.ok("show packet accounting");
    assert!(text.ends_with("\nevery packet is accounted for\n"), "{text}");
    let v = s.json("show packet accounting");
    let sum = &v["threads"][2];
    let got = ["rx", "tx", "delivered", "dropped", "in_flight"].map(|k| sum[k].as_u64().unwrap());
    assert_eq!(got, [100, 40, 20, 20, 20]);
    assert_eq!(v["buffers"]["used"], 20);
    let buffers = s.json("show buffers");
    assert_eq!(buffers[0]["used"], 20);
    assert_eq!(buffers[0]["total"], 8192);
    assert!(s.ok("show buffers").contains("default-numa-0"));
}

#[test]
fn the_other_commands_print_their_output() {
    let mut s = Shell::new(1);
    s.lab.c.describe_files(|_| {
        let description = "standard input, for the test".into();
        vec![thalweg_graph::FileInfo { fd: 0, thread: 1, description, counts: None }]
    });
    let pid = std::process::id();
    for (line, wants) in [
        ("show threads", vec!["thalweg_wk_0        workers     ", "other (0)"]),
        ("show unix files", vec!["wakes the worker", "standard input, for the test"]),
        ("show memory verbose", vec!["resident", "Buffer pool\n  mapped"]),
        ("show version", vec!["thalweg v0.1.0 built "]),
        ("show version verbose", vec!["Version:                  v0.1.0"]),
        ("show version cmdline", vec!["Command line arguments:\n  "]),
        ("show plugins", vec!["  1. engine ", "  2. test ", "the engine's test graph"]),
        ("show features", vec!["device-input:\n  test-feature\n  test-tap\n  ethernet-input\n"]),
        ("show features test-arc", vec!["\ntest-arc:\n  test-arc-feature\n  test-split\n"]),
        ("show vlib graph test-split", vec!["test-split                test-sink [0]"]),
        ("show vlib graph dot", vec!["\"test-split\" -> \"test-keep\";", "\"test-tap\" [style"]),
        ("show runtime loops", vec!["Thread ", " p99.9 us", "\n0 main ", "\n1 thalweg_wk_0 "]),
        ("show clock", vec!["Time now "]),
        ("show cpu", vec!["Model name:", "Frame kernels:"]),
    ] {
        let text = s.ok(line);
        for want in wants {
            assert!(text.contains(want), "{line}: no `{want}' in\n{text}");
        }
    }
    assert!(s.ok("show version verbose").contains(&format!("{pid}\n")));
    let clock = s.ok("show clock");
    let seconds = clock.strip_prefix("Time now ").and_then(|t| t.split_once(',')).unwrap().0;
    assert!(seconds.parse::<f64>().unwrap() > 0.0);
    assert!(s.error("show features no-arc").contains("a feature arc: device-input, "));
    assert!(s.error("show vlib graph x").contains("a node of the graph"));
}

#[test]
fn every_show_command_has_json_and_refuses_unknown_words() {
    let mut s = Shell::new(1);
    for command in thalweg_engine::cli::COMMANDS {
        let path = command.path();
        assert!(!command.help().is_empty());
        let bare = path.starts_with("show ") || path.starts_with("clear ");
        if bare && !["show trace path", "show node"].contains(&path) {
            let v = s.json(path);
            assert!(v.is_object() || v.is_array(), "{path}: {v}");
            assert!(s.error(&format!("{path} no such words")).contains("no"), "{path}");
        }
        // Every completion that is offered can be typed.
        let _ = command.complete(&s.lab.c, &[], "");
        let _ = command.complete(&s.lab.c, &["x"], "");
    }
}

#[test]
fn hand_offs_are_shown() {
    let mut s = Shell::new(2);
    s.lab.make(1, SwIfIndex(1), vec![vec![lab::to_worker(0); 7]]);
    s.lab.settle(7, 0);
    let text = s.ok("show handoff");
    let line = text.lines().find(|l| l.contains("1>0")).expect("the pair");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["test-queue", "test-sink", "1>0", "1", "7", "0", "0/32"]);
    let text = s.ok("show packet accounting");
    assert!(text.contains("handed out") && text.ends_with("every packet is accounted for\n"));
    let books: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(books[2][8..], ["0", "7", "0"], "{text}");
    assert!(s.ok("show runtime").contains("test-queue-wk0"));
    s.lab.close();
}

/// A node's number may be another one's once it has ended: the filter does not follow the number.
#[test]
fn a_trace_filter_ends_with_its_node() {
    let mut s = Shell::new(1);
    let add = |s: &mut Shell, name: &str| {
        let build = lab::runtime(&s.lab.c);
        s.lab.c.add_node(name, &lab::RUNTIME, build).unwrap()
    };
    let first = add(&mut s, "if1-output");
    s.ok("trace add test-input 3");
    s.lab.make(0, SwIfIndex(1), vec![vec![TO_SINK; 3]]);
    s.lab.settle(3, 0);
    s.ok("trace filter include if1-output 9");
    assert_eq!(s.json("show trace")[0]["packets_traced"], 0);
    s.lab.c.remove_node(first);
    assert_eq!(s.json("show trace")[0]["packets_traced"], 0);
    // Others come and go until one has the number.
    for n in 2.. {
        let id = add(&mut s, &format!("if{n}-output"));
        if id == first {
            break;
        }
        s.lab.c.remove_node(id);
        s.lab.c.sync();
    }
    assert_eq!(s.json("show trace")[0]["packets_traced"], 3);
}
