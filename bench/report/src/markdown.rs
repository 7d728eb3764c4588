//! The head of the report as Markdown; benchmarks print the rest themselves.

use std::fmt::Write;

use crate::results::{Bench, Ran};
use crate::targets::Reached;

/// Targets and runs.
pub fn head(ran: &[Ran], benches: &[Bench], targets: &[Reached]) -> String {
    let mut text = String::from("# Performance report\n\n## Targets\n\n");
    text += "| what | target | reached | | VPP 26.06, elsewhere |\n| --- | ---: | ---: | --- | ---: |\n";
    for t in targets {
        let mark = match t.holds {
            None => "",
            Some(true) => "✔",
            Some(false) => "✘",
        };
        let noisy = if t.noisy { ", noisy" } else { "" };
        let vpp = if t.vpp.is_empty() { "–" } else { t.vpp };
        let _ =
            writeln!(text, "| {} | {} | {} | {mark}{noisy} | {vpp} |", t.what, t.target, t.value);
    }
    text += "\nReached is the median, with the least and greatest of the rounds. VPP's figures were \
             measured elsewhere on this kind of machine, without its generator: they are no ratios of \
             one run.\n\n## Runs\n\n";
    text += "| benchmark | from | to | took | stolen | noisy |\n| --- | --- | --- | ---: | ---: | --- |\n";
    for one in ran {
        let bench = benches.iter().find(|b| b.bench == one.name);
        let _ = match (bench, &one.failed) {
            (Some(b), _) => {
                let (noisy, of) = b.noise();
                writeln!(
                    text,
                    "| {} | {} | {} | {:.0} s | {:.1} % | {noisy} of {of} |",
                    one.name, b.started, b.ended, one.seconds, b.steal_percent
                )
            }
            (None, why) => {
                let why =
                    why.as_deref().unwrap_or("no results").replace('\n', " ").replace('|', "/");
                writeln!(text, "| {} | failed: {why} | | {:.0} s | | |", one.name, one.seconds)
            }
        };
    }
    text + "\nStolen is the share of the processors' time that the hypervisor gave to others. A value \
            is noisy when its rounds spread by more than 10 %.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_row() {
        let ran = [Ran { name: "x".into(), seconds: 2.0, failed: Some("exit 1\nwhy | so".into()) }];
        let text = head(&ran, &[], &crate::targets::reached(&[]));
        assert!(text.contains("| x | failed: exit 1 why / so | | 2 s | | |"), "{text}");
        assert!(text.contains("| not measured |  | 24–25 |"), "{text}");
    }
}
