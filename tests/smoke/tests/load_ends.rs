//! Ends of the load tester's commands, which leave the machine as it was.

use std::time::Duration;

use anyhow::ensure;
use serde_json::Value;
use tempfile::TempDir;
use thalweg_smoke::thalweg;
use thalweg_testkit::{
    Cmd, LinkOptions, Netns, Signal, lab_test, user_namespace_command, veth, wait_until,
};

lab_test! {
    /// A run in a lab writes its report and leaves no file, whichever signal ends it. A run that
    /// was killed leaves at least no file.
    fn signals_end_a_run_in_order() {
        let dir = TempDir::new()?;
        let (file, files) = (dir.path().join("run.json"), dir.path().join("files"));
        std::fs::create_dir(&files)?;
        for (signal, status) in [
            (Signal::HUP, Some(129)),
            (Signal::QUIT, Some(131)),
            (Signal::TERM, Some(143)),
            (Signal::USR1, Some(138)),
            (Signal::KILL, None),
        ] {
            let mut running = user_namespace_command(thalweg()?)
                .args("load run imix -m 500pps -d 600 --late 10000 --no-floor".split(' '))
                .args(["--lab", "thalweg", "--device", "cross-connect", "--report"])
                .arg(&file)
                .env("TMPDIR", &files)
                .spawn()?;
            running.wait_for_output(Duration::from_secs(120), "a line of rates", |out, _| {
                out.contains("; received ").then_some(())
            })?;
            ensure!(files.read_dir()?.count() == 1, "the router has its files there");
            running.signal(signal)?;
            let output = running.finish(Duration::from_secs(60))?;
            ensure!(output.status.code() == status, "{signal:?}: {}{}", output.stdout, output.stderr);
            let empty = || files.read_dir().is_ok_and(|mut all| all.next().is_none()).then_some(());
            wait_until(Duration::from_secs(20), "the end of its files", empty)?;
            if status.is_some() {
                let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
                ensure!(found["notes"].to_string().contains("Ended by the user"), "{found:#}");
                std::fs::remove_file(&file)?;
            }
        }
        Ok(())
    }

    /// nohup(1) keeps a run from the end of its terminal.
    fn a_hangup_that_is_ignored_ends_nothing() {
        let line = "trap '' HUP; exec \"$0\" load run imix -m 500pps -d 600 --late 10000 --no-floor \
                    --device cross-connect";
        let mut running = Cmd::new("sh").args(["-c", line]).arg(thalweg()?).spawn()?;
        let lines = |most: usize| {
            move |out: &str, _: &str| (out.matches("; received ").count() > most).then_some(())
        };
        running.wait_for_output(Duration::from_secs(60), "a line of rates", lines(0))?;
        running.signal(Signal::HUP)?;
        let said = running.stdout().matches("; received ").count();
        running.wait_for_output(Duration::from_secs(60), "more of them", lines(said + 1))?;
        let output = running.interrupt(Signal::INT, Duration::from_secs(60))?;
        ensure!(output.status.code() == Some(130), "{}{}", output.stdout, output.stderr);
        Ok(())
    }

    /// Each command that measures ends by a signal with its status, and with what it has.
    fn searches_end_by_a_signal_with_its_status() {
        let dir = TempDir::new()?;
        let file = dir.path().join("report.json");
        let search = "cps-ndr -m 100 -M 2k -i 30 --late 10000 --device cross-connect";
        for (words, seen, signal, status) in [
            (search, "iteration #2", Signal::INT, 130),
            (search, "iteration #1", Signal::TERM, 143),
            ("ndr imix -m 100 -M 2k --late 10000 --device cross-connect", "bears", Signal::INT, 130),
            ("ndr --device cross-connect -m 100 -M 800 --late 10000", "bears", Signal::HUP, 129),
            ("sampling --paths l2xc --rates off,100 --rounds 500", "| --- |", Signal::INT, 130),
            ("sweep --lab kernel --rows 1x1 --short -T 2 --late 10000", "| --- |", Signal::INT, 130),
        ] {
            let mut running = user_namespace_command(thalweg()?)
                .arg("load")
                .args(words.split(' '))
                .arg("--report")
                .arg(&file)
                .spawn()?;
            running.wait_for_output(Duration::from_secs(120), "its first lines", |out, _| {
                out.contains(seen).then_some(())
            })?;
            running.signal(signal)?;
            let output = running.finish(Duration::from_secs(60))?;
            let said = format!("{words}: {}\n{}{}", output.status, output.stdout, output.stderr);
            ensure!(output.status.code() == Some(status), "{said}");
            let found: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
            ensure!(found["notes"].to_string().contains("Ended by the user"), "{found:#}");
            std::fs::remove_file(&file)?;
        }
        Ok(())
    }

    /// A report that does not fit on the disk leaves what was there, and the status says so.
    fn what_does_not_fit_is_not_written_by_half() {
        let dir = TempDir::new()?;
        // One page is the old file's, and the other one is too small for a report.
        let script = "mount -t tmpfs -o size=8k tmpfs \"$1\" && cd \"$1\" && echo old > old.json
            \"$0\" load run imix -m 500pps -d 1 --late 10000 --no-floor --device cross-connect \
                --report old.json --report new.json
            echo status $?; cat old.json; ls -A";
        let output = user_namespace_command("sh")
            .args(["-c", script])
            .arg(thalweg()?)
            .arg(dir.path())
            .deadline(Duration::from_secs(120))
            .run()?;
        let said = format!("{}{}", output.stdout, output.stderr);
        ensure!(output.stdout.ends_with("status 1\nold\nold.json\n"), "{said}");
        ensure!(output.stderr.matches("cannot write").count() == 2, "{said}");
        ensure!(output.stderr.contains("No space left"), "{said}");
        Ok(())
    }

    /// Half a table or a report on standard output is a failure; a reader that has enough is not.
    fn output_that_is_lost_is_said() {
        let dir = TempDir::new()?;
        let file = dir.path().join("run.json");
        let run = "load run bench -m 1kpps -d 1 --late 10000 --no-floor --device cross-connect";
        Cmd::new(thalweg()?).args(run.split(' ')).arg("--report").arg(&file).output()?;
        let report = format!("load report {}", file.display());
        for words in [run, &report, "load show imix", "load check imix"] {
            let shell = |to: &str| {
                let script = format!("\"$0\" {words} {to}");
                Cmd::new("bash").args(["-o", "pipefail", "-c", &script]).arg(thalweg()?).run()
            };
            let full = shell("> /dev/full")?;
            ensure!(full.status.code() == Some(1), "{words}: {}", full.stderr);
            ensure!(full.stderr.contains("cannot write to standard output"), "{}", full.stderr);
            let head = shell("| head -c 1")?;
            ensure!(head.status.success(), "{words}: {}", head.stderr);
        }
        Ok(())
    }

    /// Interfaces that a run had to set up are set down again, however it ends.
    fn ports_that_were_down_are_down_again() {
        let ns = Netns::new("ports")?;
        let end = LinkOptions::default();
        veth((&ns, "p0", &end), (&ns, "p1", &LinkOptions { up: false, ..end.clone() }))?;
        let is_down = || ns.link("p1").is_ok_and(|link| !link.up).then_some(());
        for signal in [None, Some(Signal::HUP), Some(Signal::KILL)] {
            let seconds = if signal.is_some() { "600" } else { "1" };
            let mut running = ns
                .command(thalweg()?)
                .args("load run imix -m 500pps --late 10000 --ports p0,p1 -d".split(' '))
                .arg(seconds)
                .spawn()?;
            running.wait_for_output(Duration::from_secs(60), "a line of rates", |out, _| {
                out.contains("; received ").then_some(())
            })?;
            if let Some(signal) = signal {
                ensure!(is_down().is_none(), "it is up");
                running.signal(signal)?;
            }
            let output = running.finish(Duration::from_secs(60))?;
            ensure!(output.stderr.contains("then down again: p1"), "{}", output.stderr);
            wait_until(Duration::from_secs(20), "its end", is_down)?;
            ensure!(ns.link("p0")?.up, "it was up before");
        }
        Ok(())
    }

    /// Options and commands of a device must not name what the machine is reached by.
    fn the_machines_own_way_is_refused() {
        let (dir, ns, other) = (TempDir::new()?, Netns::new("machine")?, Netns::new("other")?);
        let end = LinkOptions::default();
        veth((&ns, "p0", &end), (&other, "d0", &end))?;
        veth((&ns, "p1", &end), (&other, "d1", &end))?;
        let setup = [
            "link add br9 up type bridge",
            "link set p0 master br9",
            "address add 10.9.0.1/24 dev br9",
            "route add default via 10.9.0.2",
        ];
        ns.ip_batch(&setup.map(str::to_owned))?;
        let commands = dir.path().join("device.txt");
        std::fs::write(&commands, "create host-interface name p0\n")?;
        let file = commands.display().to_string();
        let run = |words: &str| {
            ns.command(thalweg()?)
                .args("load run imix -m 100pps -d 1 --late 10000 --no-floor".split(' '))
                .args(words.split(' '))
                .run()
        };
        for (option, words) in [
            ("--ports", "--ports p1,p0"),
            ("--ports", "--ports br9,p1"),
            ("--commands", &format!("--device nothing --commands {file}")),
        ] {
            let output = run(words)?;
            ensure!(output.status.code() == Some(1), "{words}: {}", output.stdout);
            let text = format!("{option}: ");
            ensure!(output.stderr.contains(&text), "{words}: {}", output.stderr);
            ensure!(output.stderr.contains("this machine's default route"), "{}", output.stderr);
            let output = run(&format!("{words} --even-default-route"))?;
            ensure!(!output.stderr.contains("default route"), "{}", output.stderr);
        }
        Ok(())
    }
}
