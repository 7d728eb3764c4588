//! `show ip neighbors`: the neighbour table.

use crate::Version;
use crate::args;
use crate::neighbors::{Neighbor, Neighbors};
use crate::table::State;
use crate::walk::NeighborWalk;
use serde_json::{Value, json};
use std::task::Poll;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table, pieces};
use thalweg_graph::Control;

/// `show ip neighbors [<interface>]`, of all families or of one.
pub struct ShowIpNeighbors(pub Option<Version>);

/// The command.
pub static COMMAND: ShowIpNeighbors = ShowIpNeighbors(None);

/// Rows formatted as one block of columns.
const ROWS: usize = 64;

/// Flags: S static, D dynamic, N no host route, I incomplete, F failed, P being probed.
fn flags(n: &Neighbor) -> String {
    let mut f = String::from(if n.is_static { "S" } else { "D" });
    match n.state {
        State::Incomplete => f.push('I'),
        State::Failed => f.push('F'),
        State::Probe => f.push('P'),
        State::Reachable | State::Stale => {}
    }
    if n.no_fib_entry {
        f.push('N');
    }
    f
}

fn table() -> Table {
    Table::new()
        .gap(0)
        .column("Age", Align::Center, 12)
        .column("IP", Align::Center, 40)
        .column("Flags", Align::Center, 6)
        .column("Ethernet", Align::Center, 20)
        .column("Interface", Align::Left, 24)
}

fn row(c: &Control, n: &Neighbor) -> [String; 5] {
    let mac = n.mac.map_or_else(|| "-".to_owned(), |m| m.to_string());
    let age = format!("{:.4}", n.age.as_secs_f64());
    [age, n.ip.to_string(), flags(n), mac, c.interface_name(n.sw_if)]
}

fn json(c: &Control, n: &Neighbor) -> Value {
    json!({
        "interface": c.interface_name(n.sw_if),
        "ip": n.ip.to_string(),
        "mac": n.mac.map(|m| m.to_string()),
        "state": n.state.word(),
        "static": n.is_static,
        "no_fib_entry": n.no_fib_entry,
        "learned_from": n.origin.word(),
        "age": n.age.as_secs_f64(),
    })
}

impl Command<Control> for ShowIpNeighbors {
    fn path(&self) -> &'static str {
        match self.0 {
            Some(Version::V6) => "show ip6 neighbors",
            _ => "show ip neighbors",
        }
    }

    fn aliases(&self) -> &'static [&'static str] {
        match self.0 {
            Some(Version::V6) => &["show ip6 neighbor", "show ip6 neighbor-sorted"],
            _ => &[
                "show ip neighbor",
                "show ip4 neighbors",
                "show ip4 neighbor",
                "show ip4 neighbor-sorted",
            ],
        }
    }

    fn usage(&self) -> &'static str {
        "[<interface>]"
    }

    fn help(&self) -> &'static str {
        "Show the neighbours of an interface, or of all\n\
         Age is in seconds since the neighbour was last heard. Flags: S static, D dynamic,\n\
         N no host route, I incomplete, P being probed, F failed (no answer)."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let only = if args.is_empty() { None } else { Some(args::interface(c, args)?) };
        args.end()?;
        let (mut walk, mut rows) = (NeighborWalk::new(only, self.0), table());
        Ok(pieces(c, out, move |c, out| {
            let all = c.state::<Neighbors>();
            let next = walk.next(&all.borrow());
            if let Poll::Ready(Some(n)) = &next {
                match out.wants_json() {
                    true => out.element(json(c, n)),
                    false => rows.row(row(c, n)),
                }
            }
            let end = matches!(next, Poll::Ready(None));
            // An empty table is shown with its heading.
            if end || rows.len() == ROWS {
                out.text(&rows.to_string());
                rows = table().without_heading();
            }
            if end {
                out.end_elements();
            }
            !end
        }))
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() { args::interfaces(c) } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    #[test]
    fn the_columns_are_stable() {
        let mut b = Bench::new();
        b.cli("set ip neighbor test0 10.0.0.2 02:00:00:00:00:02 static");
        b.cli("set ip neighbor test0 10.0.0.3 02:00:00:00:00:03 no-fib-entry");
        crate::resolve(&mut b.lab.c, b.sw_if, [10, 0, 0, 4].into());
        let text = b.cli("show ip neighbor");
        let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["Age", "IP", "Flags", "Ethernet", "Interface"]);
        assert_eq!(rows[1][1..], ["10.0.0.2", "S", "02:00:00:00:00:02", "test0"]);
        assert_eq!(rows[2][1..], ["10.0.0.3", "DN", "02:00:00:00:00:03", "test0"]);
        assert_eq!(rows[3][1..], ["10.0.0.4", "DI", "-", "test0"]);
        assert_eq!(b.cli("sh ip neighbors test0").lines().count(), 4);
        assert!(b.cli("show ip neighbors local0").lines().count() <= 1);
        let json = b.cli("show ip neighbors | json");
        assert!(
            json.contains("\"state\":\"incomplete\"") && json.contains("\"mac\":null"),
            "{json}"
        );
        b.finish();
    }
}
