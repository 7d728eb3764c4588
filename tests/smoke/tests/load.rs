//! The load tester with a device between virtual Ethernet pairs: this router, the kernel, Open
//! vSwitch, a command.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use thalweg_smoke::thalweg;
use thalweg_testkit::{Cmd, Output, lab_test, user_namespace_command};

/// Rates that any machine bears, and trials that are soon over.
const SEARCH: &str = "-m 100 -M 800 -i 2 -r 3 --late 10000";

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

    fn a_search_names_what_limits_the_device() {
        let dir = TempDir::new()?;
        let (commands, file) = (dir.path().join("device.txt"), dir.path().join("ndr.json"));
        // Connections stay in TIME_WAIT for half a second: 100 are too few for 400 a second.
        std::fs::write(&commands, "set conntrack limit 100\n")?;
        let output = user_namespace_command(thalweg()?)
            .args("load ndr --lab thalweg --goal ndr --sum 1 --width 40 -m 10 -M 400".split(' '))
            .args(["--late", "10000", "--commands"])
            .arg(&commands)
            .arg("--json")
            .arg(&file)
            .deadline(Duration::from_secs(300))
            .run()?;
        let said = format!("{}{}", output.stdout, output.stderr);
        ensure!(output.status.success(), "{}\n{said}", output.status);
        ensure!(output.stdout.contains("Limited by device: "), "{said}");
        let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let search = &found["searches"][0];
        let device = search["device"].as_str().unwrap_or_default();
        ensure!(device.starts_with("Thalweg "), "{found:#}");
        let trials = search["trials"].as_array().context("no trials")?;
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
        let output = user_namespace_command(thalweg()?)
            .args("load run imix -m 2kpps -d 2 --late 10000 --device cross-connect".split(' '))
            .arg("--commands")
            .arg(&commands)
            .arg("--json")
            .arg(&file)
            .run()?;
        let said = format!("{}{}", output.stdout, output.stderr);
        ensure!(output.status.code() == Some(1), "{}\n{said}", output.status);
        ensure!(output.stdout.contains("device: load-impair, lost on purpose"), "{said}");
        ensure!(output.stdout.contains("  0 unexplained"), "{said}");
        ensure!(output.stdout.contains("first of large, a-b: packet "), "{said}");
        let all: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let found = &all["found"];
        let streams = found["directions"][0]["streams"].as_array().context("no streams")?;
        for stream in streams {
            let number = |key: &str| stream[key].as_u64().unwrap_or_default();
            let is_large = stream["name"] == "large";
            ensure!((number("lost") > 0) == is_large, "{stream:#}");
            ensure!(number("sent") == number("received") + number("lost"), "{stream:#}");
            let named = stream["missing"].as_array().map_or(0, Vec::len);
            ensure!((named > 0) == is_large, "{stream:#}");
        }
        let back = found["directions"][1]["lost"].as_u64();
        ensure!(back == Some(0), "{found:#}");
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
            ("--ports lo", "two interfaces are expected"),
            ("--ports nope0,nope1", "no interface nope0"),
            ("--lab-command false", "ended with"),
            ("--lab kernel --ports a,b", "cannot be used with"),
            ("--lab thalweg --commands /nope", "/nope"),
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
