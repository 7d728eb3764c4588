//! `show errors`: event and drop counters.

use crate::report::{self, centre, centre_apart, line};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show errors [verbose]`
pub struct ShowErrors;

/// The command.
pub static COMMAND: ShowErrors = ShowErrors;

struct Row {
    count: u64,
    node: String,
    reason: &'static str,
    name: &'static str,
    severity: &'static str,
    index: usize,
}

impl Command<Control> for ShowErrors {
    fn path(&self) -> &'static str {
        "show errors"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["show node counters"]
    }

    fn usage(&self) -> &'static str {
        "[verbose]"
    }

    fn help(&self) -> &'static str {
        "Show event and drop counters\n\
         Counters are summed over all workers since the last `clear errors'; `verbose' includes\n\
         counters that are zero."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let verbose = args.keyword("verbose");
        args.end()?;
        let mut rows = collect(c);
        rows.retain(|r| verbose || r.count > 0);
        let value = |r: &Row| {
            json!({
                "count": r.count, "node": r.node, "reason": r.reason, "name": r.name,
                "severity": r.severity, "index": r.index,
            })
        };
        if out.wants_json() {
            out.json(rows.iter().map(value).collect());
        } else {
            out.text(&format(&rows, verbose));
        }
        Ok(Outcome::Done)
    }
}

fn collect(c: &Control) -> Vec<Row> {
    let row = |(index, (node, decl)): (
        usize,
        &(thalweg_graph::NodeId, &'static thalweg_graph::ErrorDecl),
    )| Row {
        count: report::error_count(c, index),
        node: c.nodes()[node.0 as usize].name.to_string(),
        reason: decl.text,
        name: decl.name,
        severity: decl.severity.word(),
        index,
    };
    let mut rows: Vec<Row> = c.errors().iter().enumerate().map(row).collect();
    // A stable sort: a node's counters stay in the order of their declaration.
    rows.sort_by(|a, b| a.node.cmp(&b.node));
    rows
}

fn format(rows: &[Row], verbose: bool) -> String {
    let index = |text: String| if verbose { text } else { String::new() };
    let heading = [("Count", 10), ("Node", 35), ("Reason", 35), ("Severity", 10)];
    let cells = heading.iter().map(|(text, width)| centre(text, *width));
    let mut lines = vec![line(cells.chain([index(centre("Index", 8))]))];
    lines.extend(rows.iter().map(|r| {
        line([
            format!("{:>10}", r.count),
            centre_apart(&r.node, 35),
            centre_apart(r.reason, 35),
            centre(r.severity, 10),
            index(centre_apart(&r.index.to_string(), 8)),
        ])
    }));
    lines.into_iter().map(|l| l + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_as_vpp_prints_it() {
        let row = |count, node: &str, reason, severity, index| Row {
            count,
            node: node.into(),
            reason,
            name: "X",
            severity,
            index,
        };
        let rows = [
            row(4, "arp-input", "ARP request for an address that is not ours", "error", 12),
            row(12_345_678_901, "ip4-input", "ip4 ttl <= 1", "error", 3),
            row(1, "sflow", "sflow packets processed", "info", 700),
            row(2, "a-node-with-a-name-of-36-characters.", "x", "warn", 8),
        ];
        thalweg_testkit::golden!("tests/golden/errors.txt", format(&rows, false));
        thalweg_testkit::golden!("tests/golden/errors_verbose.txt", format(&rows, true));
        for l in format(&rows, false).lines().skip(1) {
            let mut words = l.split_whitespace();
            assert!(words.next().is_some_and(|w| w.parse::<u64>().is_ok()), "{l}");
            assert!(rows.iter().any(|r| Some(r.node.as_str()) == words.clone().next()), "{l}");
        }
    }
}
