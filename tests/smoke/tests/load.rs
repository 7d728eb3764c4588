//! The load tester with a device between virtual Ethernet pairs: this router, the kernel, Open
//! vSwitch, a command.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use thalweg_smoke::thalweg;
use thalweg_testkit::{
    Cmd, LinkOptions, Netns, Output, Signal, lab_test, user_namespace_command, veth,
};

/// Rates that any machine bears, and trials that are soon over.
const SEARCH: &str = "-m 100 -M 800 -i 2 -r 3 --late 10000";

/// Streams, connections with a rate, and connections that are held.
const MIXED: &str = r#"
version: 1
pools:
  clients: {v4: 16.0.0.0-16.0.0.255}
  servers: {v4: 48.0.0.0-48.0.0.15}
  a: {v4: 16.1.0.1-16.1.0.50}
  b: {v4: 48.1.0.1-48.1.0.50}
streams:
  - {name: back, between: [a, b], udp: [1000-1100, 7], size: 128, rate: 300 pps}
flows:
  - {name: web, share: 3, tcp: {client: clients, server: servers, port: 80}, ramp: 1s linear}
  - {name: dns, udp: {client: clients, server: servers, port: 53}}
  - {name: held, tcp: {client: clients, server: servers, port: 443}, hold: 50, close: never}
"#;

/// The tester with one worker, and with two if the machine has a processor for each.
fn cores() -> &'static [&'static str] {
    match std::thread::available_parallelism() {
        Ok(all) if all.get() > 1 => &["--cores 1", "--cores 2"],
        _ => &["--cores 1"],
    }
}

fn cps_ndr(words: &str) -> Result<Output> {
    // The command makes its own labs: it needs no root of its own, but the rights to make them.
    user_namespace_command(thalweg()?)
        .args(["load", "cps-ndr"])
        .args(SEARCH.split_whitespace())
        .args(words.split_whitespace())
        .deadline(Duration::from_secs(180))
        .run()
}

fn finds_a_rate(words: &str) -> Result<()> {
    let output = cps_ndr(words)?;
    let said = format!("{}{}", output.stdout, output.stderr);
    ensure!(output.status.success(), "{words}: {}\n{said}", output.status);
    ensure!(output.stdout.contains("... iteration #2: lower="), "{words}\n{said}");
    ensure!(output.stdout.contains("▲▲▲ Flows: active "), "{words}\n{said}");
    ensure!(output.stderr.contains("result: "), "{words}\n{said}");
    // Nothing but what the search says, on either stream.
    ensure!(!output.stdout.contains("host-"), "{words}\n{said}");
    Ok(())
}

/// The node, the stream and each packet are named.
fn finds_lost_packets(output: &Output, file: &Path) -> Result<()> {
    let said = format!("{}{}", output.stdout, output.stderr);
    ensure!(output.status.code() == Some(1), "{}\n{said}", output.status);
    ensure!(output.stdout.contains("device: load-impair, lost on purpose"), "{said}");
    ensure!(output.stdout.contains("  0 unexplained"), "{said}");
    ensure!(output.stdout.contains("first of large, a-b: packet "), "{said}");
    let found: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    // The very packet: it is noted where the graph dropped it.
    let first = &found["results"][0]["first_lost"];
    ensure!(first["grade"] == "seen" && first["node"] == "load-impair", "{first:#}");
    ensure!(first["stream"] == "large a-b", "{first:#}");
    ensure!(first["reason"] == "lost on purpose, received by load0", "{first:#}");
    let trial = &found["trials"][0];
    let books = &trial["directions"]["both"];
    let of = |key: &str| books[key].as_u64().unwrap_or_default();
    ensure!(of("intended") == of("received") + of("device") && of("device") > 0, "{books:#}");
    let streams = trial["streams"].as_array().context("no streams")?;
    for stream in streams {
        let number = |key: &str| stream[key].as_u64().unwrap_or_default();
        let is_large = stream["name"] == "large" && stream["direction"] == "a-b";
        ensure!((number("lost") > 0) == is_large, "{stream:#}");
        ensure!(number("sent") == number("received") + number("lost"), "{stream:#}");
        let named = stream["missing"].as_array().map_or(0, Vec::len);
        ensure!((named > 0) == is_large, "{stream:#}");
    }
    ensure!(output.stdout.contains("seen at load-impair: lost on purpose"), "{said}");
    Ok(())
}

lab_test! {
    fn connections_pass_each_device_of_a_lab() {
        for words in [
            "--lab wire",
            "--lab kernel --device cross-connect",
            "--lab kernel --device route -u 10",
            "--lab thalweg --device route",
            "--lab thalweg --device tracker",
            "--lab ovs --device tracker",
        ] {
            finds_a_rate(words).with_context(|| words.to_owned())?;
        }
        Ok(())
    }

    fn a_command_is_a_device() {
        let dir = TempDir::new()?;
        let script = dir.path().join("bridge.sh");
        std::fs::write(
            &script,
            "ip link add br0 type bridge\n\
             ip link set $CLIENTS_IF master br0\n\
             ip link set $SERVERS_IF master br0\n\
             ip link set br0 up\n",
        )?;
        let output = user_namespace_command(thalweg()?)
            .args(["load", "cps-ndr"])
            .args(SEARCH.split_whitespace())
            .arg("--lab-command")
            .arg(format!("sh -e {}", script.display()))
            .deadline(Duration::from_secs(180))
            .run()?;
        ensure!(output.status.success(), "{}{}", output.stdout, output.stderr);
        Ok(())
    }

    /// A row that the machine has, and one that it cannot have, which says why.
    fn a_sweep_prints_rows_and_says_which_it_could_not_run() {
        let dir = TempDir::new()?;
        let (table, file) = (dir.path().join("table.md"), dir.path().join("sweep.json"));
        let output = user_namespace_command(thalweg()?)
            .args("load sweep --lab thalweg,ovs --rows 1x1,64x1 --short -T 1 -i 1".split(' '))
            .args("-m 100,100 -M 300,300 --late 10000 --markdown".split(' '))
            .arg(&table)
            .arg("--report")
            .arg(&file)
            .deadline(Duration::from_secs(180))
            .run()?;
        let said = format!("{}{}", output.stdout, output.stderr);
        ensure!(output.status.success(), "{}\n{said}", output.status);
        ensure!(output.stdout.contains("| short-lived connections | per second |"), "{said}");
        let rows: Vec<&str> = output.stdout.lines().filter(|line| line.contains(" CPU, ")).collect();
        ensure!(rows.len() == 4, "{said}");
        ensure!(rows[0].starts_with("| Thalweg ") && rows[0].contains("1 CPU, 1 q | ≥ 200 |"), "{said}");
        ensure!(rows[1].starts_with("| Open vSwitch ") && rows[1].ends_with("+0.00 % |"), "{said}");
        for row in &rows[2..] {
            ensure!(row.contains("64 CPU, 1 q | not run: --cpus 64: this machine has "), "{said}");
        }
        ensure!(std::fs::read_to_string(&table)? == output.stdout, "{said}");
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        ensure!(report["kind"] == "sweep" && report["results"][0]["lower"] == 200.0, "{report:#}");
        ensure!(report["notes"].as_array().map(Vec::len) == Some(2), "{report:#}");
        Ok(())
    }

    fn a_search_names_what_limits_the_device() {
        let dir = TempDir::new()?;
        let (commands, file) = (dir.path().join("device.txt"), dir.path().join("ndr.json"));
        // Connections stay in TIME_WAIT for half a second: 100 are too few for 400 a second.
        std::fs::write(&commands, "set conntrack limit 100\n")?;
        let output = user_namespace_command(thalweg()?)
            .args("load ndr --lab thalweg --goal ndr --sum 1 --width 40 -m 10 -M 400".split(' '))
            .args(["--late", "10000", "--commands"])
            .arg(&commands)
            .arg("--report")
            .arg(&file)
            .deadline(Duration::from_secs(300))
            .run()?;
        let said = format!("{}{}", output.stdout, output.stderr);
        ensure!(output.status.success(), "{}\n{said}", output.status);
        ensure!(output.stdout.contains("Limited by device, "), "{said}");
        let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let device = found["device"]["name"].as_str().unwrap_or_default();
        ensure!(device.starts_with("Thalweg "), "{found:#}");
        ensure!(found["results"][0]["limited_by"]["row"] == "device", "{found:#}");
        let trials = found["trials"].as_array().context("no trials")?;
        let drops = trials.iter().filter_map(|trial| trial["drops"].as_array()).flatten();
        let full = drops.filter(|drop| drop["side"] == "device" && drop["node"] == "flow-rules");
        ensure!(full.count() > 0, "{found:#}");
        Ok(())
    }

    fn streams_pass_each_device_of_a_lab() {
        for words in [
            "imix -m 500pps --lab kernel --device route",
            "imix -m 500pps --lab thalweg --device cross-connect",
            "bench -t size=64 -m 1kpps --lab ovs --device cross-connect",
            "l2xc -t size=1514 -m 1kpps --device cross-connect",
            "mpls -m 1kpps --device cross-connect",
            "cps-short -m 200 --lab ovs",
        ] {
            let output = user_namespace_command(thalweg()?)
                .args(["load", "run", "-d", "1", "--late", "10000"])
                .args(words.split_whitespace())
                .deadline(Duration::from_secs(120))
                .run()?;
            let said = format!("{}{}", output.stdout, output.stderr);
            ensure!(output.status.success(), "{words}: {}\n{said}", output.status);
            ensure!(said.contains("lost 0"), "{words}\n{said}");
        }
        Ok(())
    }

    /// One packet in 200 of those with 600 bytes and more: the node, the stream and each packet.
    fn packets_lost_on_purpose_are_found_and_named() {
        let dir = TempDir::new()?;
        let (commands, file) = (dir.path().join("device.txt"), dir.path().join("run.json"));
        std::fs::write(&commands, "load impair load0 lose 20 min-bytes 600 seed 3\n")?;
        for cores in cores() {
            let output = user_namespace_command(thalweg()?)
                .args("load run imix -m 2kpps -d 2 --late 10000 --device cross-connect".split(' '))
                .args(cores.split(' '))
                .arg("--commands")
                .arg(&commands)
                .arg("--report")
                .arg(&file)
                .run()?;
            finds_lost_packets(&output, &file)?;
        }
        Ok(())
    }

    /// A router in a lab, as a process of its own, names the very packets that it
    /// lost, of streams and of connections.
    fn packets_lost_in_a_lab_are_seen() {
        let dir = TempDir::new()?;
        let (commands, file) = (dir.path().join("device.txt"), dir.path().join("run.json"));
        std::fs::write(&commands, "load impair host-load0 lose 20 min-bytes 600 seed 3\n")?;
        let run = |words: &str| {
            user_namespace_command(thalweg()?)
                .args(["load", "run", "--late", "10000", "--lab", "thalweg", "--commands"])
                .arg(&commands)
                .arg("--report")
                .arg(&file)
                .args(words.split(' '))
                .deadline(Duration::from_secs(120))
                .run()
        };
        let output = run("imix -m 2kpps -d 2 --device cross-connect")?;
        let said = format!("{}{}", output.stdout, output.stderr);
        ensure!(output.status.code() == Some(1), "{}\n{said}", output.status);
        ensure!(output.stdout.contains("seen at load-impair: lost on purpose"), "{said}");
        ensure!(output.stdout.contains("- back to back"), "{said}");
        let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let first = &found["results"][0]["first_lost"];
        ensure!(first["grade"] == "seen" && first["node"] == "load-impair", "{first:#}");
        ensure!(first["stream"] == "large a-b", "{first:#}");
        ensure!(first["reason"] == "lost on purpose, received by host-load0", "{first:#}");
        ensure!(found["results"][0]["l1_bps"].as_f64() > Some(1e6), "{found:#}");
        ensure!(found["latency"][0]["floor"]["count"].as_u64() > Some(100), "{found:#}");

        std::fs::write(&commands, "load impair host-load1 lose 30 seed 4\n")?;
        let output = run("cps-short -m 300 -d 1 --device tracker")?;
        let said = format!("{}{}", output.stdout, output.stderr);
        ensure!(output.status.code() == Some(1), "{}\n{said}", output.status);
        ensure!(output.stdout.contains("open on average, by Little's law: "), "{said}");
        let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let first = &found["results"][0]["first_lost"];
        ensure!(first["grade"] == "seen" && first["node"] == "load-impair", "{first:#}");
        let packet = first["stream"].as_str().unwrap_or_default();
        // Answers of the servers.
        ensure!(packet.starts_with("TCP 48.0.0.") || packet.starts_with("UDP 48.0.0."), "{packet}");
        ensure!(first["reason"] == "lost on purpose, received by host-load1", "{first:#}");
        ensure!(found["trials"][0]["connections"]["life_mean_s"].is_number(), "{found:#}");
        Ok(())
    }

    /// A kernel that loses counts what it lost, and does not say which packets.
    fn packets_lost_by_a_kernel_are_counted() {
        let dir = TempDir::new()?;
        let (commands, file) = (dir.path().join("device.sh"), dir.path().join("run.json"));
        // Without the route to servers, what goes there has none.
        std::fs::write(&commands, "ip route del 48.0.0.0/8\n")?;
        let output = user_namespace_command(thalweg()?)
            .args("load run bench -m 500pps -d 1 --late 10000 --no-floor".split(' '))
            .args(["--lab", "kernel", "--device", "route", "--commands"])
            .arg(&commands)
            .arg("--report")
            .arg(&file)
            .deadline(Duration::from_secs(120))
            .run()?;
        let said = format!("{}{}", output.stdout, output.stderr);
        ensure!(output.status.code() == Some(1), "{}\n{said}", output.status);
        let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let first = &found["results"][0]["first_lost"];
        ensure!(first["grade"] == "counted" && first["node"] == "kernel", "{first:#}\n{said}");
        ensure!(first["reason"] == "no route", "{first:#}");
        ensure!(first["stream"] == "bench a-b", "{first:#}");
        Ok(())
    }

    /// Streams, two groups of connections with a rate, and one that is held, through one device.
    fn streams_and_groups_of_connections_run_at_once() {
        let dir = TempDir::new()?;
        let (profile, file) = (dir.path().join("mixed.yaml"), dir.path().join("run.json"));
        std::fs::write(&profile, MIXED)?;
        let labs = ["--device tracker", "--lab thalweg --device route"];
        for (lab, cores) in labs.iter().flat_map(|lab| cores().iter().map(move |of| (lab, of))) {
            let output = user_namespace_command(thalweg()?)
                .args(["load", "run", "-d", "2", "--late", "10000", "--connections", "200"])
                .arg(&profile)
                .args(lab.split(' ').chain(cores.split(' ')))
                .arg("--report")
                .arg(&file)
                .deadline(Duration::from_secs(120))
                .run()?;
            let said = format!("{}{}", output.stdout, output.stderr);
            ensure!(output.status.success(), "{lab} {cores}: {}\n{said}", output.status);
            ensure!(output.stdout.contains("  held: 50 of 50 held; lost meanwhile 0"), "{said}");
            let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
            let units: Vec<_> =
                found["results"].as_array().into_iter().flatten().map(|r| &r["unit"]).collect();
            ensure!(units == ["packets/s", "conn/s"], "{found:#}");
            let trial = &found["trials"][0];
            let connections = &trial["connections"];
            ensure!(connections["begun"].as_u64() > Some(100), "{connections:#}");
            ensure!(connections["begun"] == connections["clean"], "{connections:#}");
            ensure!(trial["streams"][0]["lost"] == 0, "{trial:#}");
            ensure!(trial["streams"][0]["received"].as_u64() > Some(100), "{trial:#}");
        }
        Ok(())
    }

    /// Streams between two interfaces and connections between two others, over cables.
    fn pairs_of_interfaces_have_each_their_work() {
        let (dir, ns) = (TempDir::new()?, Netns::new("ports")?);
        let end = LinkOptions::default();
        for (a, b) in [("p0", "p1"), ("p2", "p3")] {
            veth((&ns, a, &end), (&ns, b, &end))?;
        }
        let (profile, file) = (dir.path().join("pairs.yaml"), dir.path().join("run.json"));
        let pair = |text: &str, stream, flow| {
            let text = text.replace("{name: back,", &format!("{{name: back, pair: {stream},"));
            text.replace("{name: web,", &format!("{{name: web, pair: {flow},"))
        };
        let text = pair(MIXED, 0, 1).replace("{name: dns,", "{name: dns, pair: 1,");
        std::fs::write(&profile, text)?;
        for cores in cores() {
            let output = ns
                .command(thalweg()?)
                .args(["load", "run", "-d", "2", "--late", "10000", "--connections", "200"])
                .arg(&profile)
                .args(["--ports", "p0,p1,p2,p3", "--report"])
                .arg(&file)
                .args(cores.split(' '))
                .deadline(Duration::from_secs(120))
                .run()?;
            let said = format!("{}{}", output.stdout, output.stderr);
            ensure!(output.status.success(), "{cores}: {}\n{said}", output.status);
            let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
            let trial = &found["trials"][0];
            ensure!(trial["connections"]["begun"].as_u64() > Some(100), "{trial:#}");
            ensure!(trial["connections"]["begun"] == trial["connections"]["clean"], "{trial:#}");
            ensure!(trial["streams"][0]["lost"] == 0, "{trial:#}");
            ensure!(trial["streams"][0]["received"].as_u64() > Some(100), "{trial:#}");
            for name in ["p0", "p1", "p2", "p3"] {
                ensure!(ns.link(name)?.tx_packets >= 50, "{name} has sent too little");
            }
        }
        // One pair is not enough for this profile.
        let output = ns
            .command(thalweg()?)
            .args(["load", "run", "-d", "1", "--ports", "p0,p1"])
            .arg(&profile)
            .run()?;
        ensure!(!output.status.success(), "{}", output.stdout);
        ensure!(output.stderr.contains("the profile has 2 pairs of ports"), "{}", output.stderr);
        Ok(())
    }

    /// A path with and without sFlow, in packets that arrive.
    fn sampling_prints_what_it_costs() {
        let dir = TempDir::new()?;
        let (table, file) = (dir.path().join("table.md"), dir.path().join("sampling.json"));
        let words = "load sampling --paths l2xc,mpls --rates off,100 --rounds 1";
        let output = Cmd::new(thalweg()?)
            .args(words.split(' '))
            .arg("--markdown")
            .arg(&table)
            .arg("--report")
            .arg(&file)
            .deadline(Duration::from_secs(120))
            .run()?;
        ensure!(output.status.success(), "{}{}", output.stdout, output.stderr);
        let text = std::fs::read_to_string(&table)?;
        ensure!(text == output.stdout && text.lines().count() == 6, "{text}{}", output.stdout);
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let result = &report["results"][3];
        ensure!(result["goal"] == "MPLS, sFlow 1:100", "{report:#}");
        ensure!(result["lower"].as_f64() > Some(1000.0), "{report:#}");
        Ok(())
    }

    /// Reports of the same run compare; those of another profile do not, and say why.
    fn reports_are_shown_and_compared() {
        let dir = TempDir::new()?;
        let path = |name: &str| dir.path().join(name);
        for (size, file) in [("64", "a.json"), ("64", "b.json"), ("512", "c.json")] {
            let output = Cmd::new(thalweg()?)
                .args("load run bench -m 1kpps -d 1 --late 10000 --device cross-connect".split(' '))
                .args(["-t", &format!("size={size}"), "--report"])
                .arg(path(file))
                .arg("--report")
                .arg(path("page.html"))
                .run()?;
            ensure!(output.status.success(), "{}{}", output.stdout, output.stderr);
        }
        let page = std::fs::read_to_string(path("page.html"))?;
        ensure!(page.contains("<svg") && !page.contains("<script"), "{page}");
        let report = |names: &[&str]| {
            let files = names.iter().map(|name| path(name));
            Cmd::new(thalweg()?).args(["load", "report"]).args(files).run()
        };
        let one = report(&["a.json"])?;
        for part in ["# Load test of Thalweg", "**received: ", "## Books", "| unexplained | 0 |"] {
            ensure!(one.stdout.contains(part), "{part}\n{}{}", one.stdout, one.stderr);
        }
        let same = report(&["a.json", "b.json"])?;
        ensure!(same.status.success(), "{}", same.stderr);
        ensure!(same.stdout.contains("| received packets/s | "), "{}", same.stdout);
        let other = report(&["a.json", "c.json"])?;
        ensure!(other.status.code() == Some(1), "{}", other.stdout);
        ensure!(other.stderr.contains("profile: bench ("), "{}", other.stderr);
        Ok(())
    }

    /// Ctrl-C ends a run early, and its report is written.
    fn an_interrupted_run_is_reported() {
        let dir = TempDir::new()?;
        let file = dir.path().join("run.json");
        for cores in cores() {
        let mut running = Cmd::new(thalweg()?)
            .args("load run imix -m 500pps -d 600 --late 10000 --device cross-connect".split(' '))
            .args(cores.split(' '))
            .arg("--report")
            .arg(&file)
            .spawn()?;
        running.wait_for_output(Duration::from_secs(60), "a line of rates", |out, _| {
            out.contains("; received ").then_some(())
        })?;
        let output = running.interrupt(Signal::INT, Duration::from_secs(60))?;
        ensure!(output.status.code() == Some(130), "{}{}", output.stdout, output.stderr);
        let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let notes = found["notes"].to_string();
        ensure!(notes.contains("Ended by the user before its time."), "{found:#}");
        ensure!(found["results"][0]["lower"].as_f64() > Some(100.0), "{found:#}");
        }
        Ok(())
    }

    /// Ctrl-C on a terminal reaches the command and all that it started: the run ends in order.
    fn an_interrupted_run_in_a_lab_is_reported() {
        let dir = TempDir::new()?;
        let file = dir.path().join("run.json");
        let mut running = user_namespace_command(thalweg()?)
            .args("load run imix -m 500pps -d 600 --late 10000 --no-floor --lab thalweg".split(' '))
            .args(["--device", "cross-connect", "--report"])
            .arg(&file)
            .spawn()?;
        running.wait_for_output(Duration::from_secs(120), "a line of rates", |out, _| {
            out.contains("; received ").then_some(())
        })?;
        Cmd::new("kill").args(["-INT", "--", &format!("-{}", running.pid())]).output()?;
        let output = running.finish(Duration::from_secs(60))?;
        ensure!(output.status.code() == Some(130), "{}{}", output.stdout, output.stderr);
        let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        ensure!(found["notes"].to_string().contains("Ended by the user"), "{found:#}");
        ensure!(found["results"][0]["lower"].as_f64() > Some(100.0), "{found:#}");
        Ok(())
    }

    /// A device that ends in a run is named, with its status, and the report says so.
    fn a_device_that_ends_is_reported() {
        let dir = TempDir::new()?;
        let (script, file) = (dir.path().join("device.sh"), dir.path().join("run.json"));
        std::fs::write(
            &script,
            "ip link add br0 type bridge\n\
             ip link set $CLIENTS_IF master br0\n\
             ip link set $SERVERS_IF master br0\n\
             ip link set br0 up\n\
             sleep 3\n\
             exit 7\n",
        )?;
        let output = user_namespace_command(thalweg()?)
            .args("load run bench -m 500pps -d 4 --late 10000 --no-floor".split(' '))
            .arg("--lab-command")
            .arg(format!("sh -e {}", script.display()))
            .arg("--report")
            .arg(&file)
            .deadline(Duration::from_secs(120))
            .run()?;
        ensure!(output.status.code() == Some(1), "{}{}", output.stdout, output.stderr);
        ensure!(output.stderr.contains("ended with exit status: 7"), "{}", output.stderr);
        let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        ensure!(found["notes"].to_string().contains("ended with exit status: 7"), "{found:#}");
        Ok(())
    }

    fn profiles_are_checked_and_shown() {
        let dir = TempDir::new()?;
        let file = dir.path().join("mine.yaml");
        std::fs::write(&file, "version: 1\nstreams:\n  - {name: a, size: 12, rate: 5 pps}\n")?;
        let load = |words: &[&str]| Cmd::new(thalweg()?).arg("load").args(words).arg(&file).run();
        let output = load(&["check"])?;
        ensure!(!output.status.success(), "{}", output.stdout);
        ensure!(output.stderr.contains("mine.yaml:3:"), "{}", output.stderr);
        let shown = Cmd::new(thalweg()?).args(["load", "show", "imix"]).output()?;
        std::fs::write(&file, shown)?;
        let output = load(&["check"])?;
        ensure!(output.stdout.contains("good, with 3 streams"), "{}", output.stderr);
        Ok(())
    }

    fn what_cannot_be_is_refused() {
        for (words, why) in [
            ("--lab ovs --device route", "Open vSwitch does not route"),
            ("--ports lo", "pairs of interfaces are expected"),
            ("--ports lo,nope0,nope1,lo", "lo twice"),
            ("--ports nope0,nope1", "no interface nope0"),
            ("--lab-command false", "ended with"),
            ("--lab kernel --ports a,b", "cannot be used with"),
            ("--lab thalweg --commands /nope", "/nope"),
            ("--cores 0", "value out of bounds [1, 64]: '0'"),
            ("--cores 64", "--cores 64: this machine has "),
        ] {
            let output = cps_ndr(words)?;
            ensure!(!output.status.success(), "{words}");
            ensure!(output.stderr.contains(why), "{words}: {}", output.stderr);
        }
        Ok(())
    }

    fn nothing_is_left_behind() {
        let before = Cmd::new("ip").args(["-o", "link"]).output()?;
        cps_ndr("--lab kernel --device cross-connect -i 1")?;
        let after = Cmd::new("ip").args(["-o", "link"]).output()?;
        ensure!(before.lines().count() == after.lines().count(), "{before}\n{after}");
        Ok(())
    }
}
