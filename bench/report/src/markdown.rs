//! The head of the report as Markdown; benchmarks print the rest themselves.

use std::fmt::Write;

use crate::results::{Bench, Ran};
use crate::targets::Reached;

/// Targets and runs.
pub fn head(ran: &[Ran], benches: &[Bench], reached: &[Reached]) -> String {
    let machine = benches.first().map(machine).unwrap_or_default();
    format!(
        "# Performance report\n\n{machine}\n\n## Targets\n\n{}\n## Runs\n\n{}",
        targets(reached),
        runs(ran, benches)
    )
}

/// The machine that a benchmark ran on.
pub fn machine(bench: &Bench) -> String {
    let m = &bench.machine;
    let field = |name: &str| m[name].as_str().unwrap_or("unknown").to_owned();
    format!(
        "{}, {} cores{}, time-stamp counter {} MHz, Linux {}, transparent huge pages: {}.",
        field("cpu"),
        m["cores"],
        if m["hypervisor"] == true { " of a virtual machine" } else { "" },
        m["tsc_mhz"],
        field("kernel"),
        field("huge_pages")
    )
}

/// The command that runs a benchmark alone.
pub fn command(bench: &Bench) -> String {
    format!("make bench ONLY={}", bench.bench)
}

/// Each target, and whether it is met.
pub fn targets(reached: &[Reached]) -> String {
    let mut text = String::from(
        "| what | target | measured | | VPP 26.06, elsewhere |\n| --- | ---: | ---: | --- | ---: |\n",
    );
    for t in reached {
        let mark = match t.holds {
            None => "",
            Some(true) => "✔ ok",
            Some(false) => "✘ missed",
        };
        let noisy = if t.noisy { ", noisy" } else { "" };
        let slow = if t.slow { ", slow hour" } else { "" };
        let vpp = if t.vpp.is_empty() { "–" } else { t.vpp };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {mark}{noisy}{slow} | {vpp} |",
            t.what, t.target, t.value
        );
    }
    let met = reached.iter().filter(|t| t.holds == Some(true)).count();
    let measured = reached.iter().filter(|t| t.holds.is_some()).count();
    let _ = writeln!(
        text,
        "\n{met} of {measured} targets are met. Measured is the median, with the least and greatest \
         of the rounds (of sFlow's rows, with the interval in which it lies with 95 % certainty). The \
         others' figures were measured elsewhere on this kind of machine, VPP's without its \
         generator: they are no ratios of one run."
    );
    text
}

/// Each benchmark, when it ran and for how long.
pub fn runs(ran: &[Ran], benches: &[Bench]) -> String {
    let mut text = String::from(
        "| benchmark | from | to | took | stolen | one processor, M steps/s | two processors | a line, ns | noisy |\n\
         | --- | --- | --- | ---: | ---: | --- | --- | --- | --- |\n",
    );
    for one in ran {
        let bench = benches.iter().find(|b| b.bench == one.name);
        let _ = match (bench, &one.failed) {
            (Some(b), _) => {
                let (noisy, of) = b.noise();
                let [alone, two, line] =
                    [b.one(), b.two(), b.line()].map(Option::unwrap_or_default);
                writeln!(
                    text,
                    "| {} | {} | {} | {:.0} s | {:.1} % | {alone} | {two} | {line} | {noisy} of {of} |",
                    one.name, b.started, b.ended, one.seconds, b.steal_percent
                )
            }
            (None, why) => {
                let why =
                    why.as_deref().unwrap_or("no results").replace('\n', " ").replace('|', "/");
                writeln!(
                    text,
                    "| {} | failed: {why} | | {:.0} s | | | | | |",
                    one.name, one.seconds
                )
            }
        };
    }
    text + "\nStolen is the share of the processors' time that the hypervisor gave to others. One \
            processor: what it did of arithmetic that fills a core, before the benchmark and behind it; \
            where that is less than elsewhere on one machine, it was a slow hour. Two processors: how \
            much more two did; two threads of one core do about 1.2 times as much as one. A line: \
            what a store takes until the other processor sees it, which says how near they are. A value \
            is noisy when its rounds spread by more than 10 %.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_row() {
        let ran = [Ran { name: "x".into(), seconds: 2.0, failed: Some("exit 1\nwhy | so".into()) }];
        let text = head(&ran, &[], &crate::targets::reached(&[]));
        assert!(text.contains("| x | failed: exit 1 why / so | | 2 s | | | | | |"), "{text}");
        assert!(text.contains("| not measured |  | 24–25 |"), "{text}");
    }
}
