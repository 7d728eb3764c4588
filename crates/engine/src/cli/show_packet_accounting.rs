//! `show packet accounting`: checks that every packet is accounted for.

use crate::ask_workers;
use serde_json::{Value, json};
use thalweg_buffer::PoolAudit;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_graph::control::Control;

/// `show packet accounting`
pub struct ShowPacketAccounting;

/// The command.
pub static COMMAND: ShowPacketAccounting = ShowPacketAccounting;

/// Packets in and out, in the order of [`NAMES`].
type Counts = [u64; 8];

const NAMES: [&str; 8] =
    ["rx", "originated", "handed in", "tx", "delivered", "dropped", "consumed", "handed out"];
/// Columns that apply only if workers hand packets to each other.
const HANDED: [usize; 2] = [2, 7];

/// Packets that came in and have not gone out. Packets between two workers are in neither's counts.
fn in_flight(c: &Counts) -> i128 {
    let [rx, originated, handed_in, out @ ..] = c.map(i128::from);
    rx + originated + handed_in - out.iter().sum::<i128>()
}

impl Command<Control> for ShowPacketAccounting {
    fn path(&self) -> &'static str {
        "show packet accounting"
    }

    fn help(&self) -> &'static str {
        "Check that every packet is accounted for\n\
         received + originated = sent + delivered + dropped + consumed + in flight, and every packet\n\
         in flight holds a buffer. For a single worker, packets from and to other workers are added\n\
         on either side."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        // Between two loops, a worker's counters are consistent.
        ask_workers(c, out, |core| core.accounting(), show)
    }
}

fn show(c: &mut Control, answers: Vec<Option<Counts>>, out: &mut Output) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for (w, answer) in answers.into_iter().enumerate() {
        match answer {
            Some(counts) => rows.push((format!("worker {w}"), counts)),
            None => return Err(CliError::failed(format!("worker {w} does not respond"))),
        }
    }
    let sum = rows.iter().fold([0; 8], |s: Counts, (_, r)| std::array::from_fn(|i| s[i] + r[i]));
    rows.push(("sum".into(), sum));
    let audit = c.pool().audit();
    out.json(json!({
        "threads": rows.iter().map(to_json).collect::<Vec<_>>(),
        "buffers": {
            "total": audit.total, "avail": audit.depot, "cached": audit.cached,
            "used": audit.in_use,
        },
    }));
    out.text(&format(&rows, audit));
    Ok(())
}

fn to_json((name, counts): &(String, Counts)) -> Value {
    let mut value = json!({ "name": name, "in_flight": in_flight(counts) as i64 });
    for (name, n) in NAMES.iter().zip(counts) {
        value[name.replace(' ', "_")] = json!(n);
    }
    value
}

fn format(rows: &[(String, Counts)], audit: PoolAudit) -> String {
    let used = |i: &usize| !HANDED.contains(i) || rows.iter().any(|(_, c)| c[*i] > 0);
    let columns: Vec<usize> = (0..NAMES.len()).filter(used).collect();
    let mut table = Table::new().column("", Align::Left, 10);
    for name in columns.iter().map(|i| NAMES[*i]).chain(["in flight"]) {
        table = table.column(name, Align::Right, 12);
    }
    for (name, counts) in rows {
        let numbers = columns.iter().map(|i| counts[*i].to_string());
        let cells = std::iter::once(name.clone()).chain(numbers);
        table.row(cells.chain([in_flight(counts).to_string()]));
    }
    let held = rows.last().map_or(0, |(_, sum)| in_flight(sum));
    let PoolAudit { total, depot, cached, in_use } = audit;
    let judgement = if held < 0 {
        format!("{} packets left more than once", -held)
    } else if held > in_use as i128 {
        format!("{} packets were lost without a count", held - in_use as i128)
    } else {
        "every packet is accounted for".into()
    };
    format!(
        "{table}\nbuffers: {total} = {depot} free + {cached} cached by workers + {in_use} in use\n\
         {judgement}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_judgement() {
        let rows = |sent| {
            let one = [1000, 10, 0, sent, 20, 480, 5, 0];
            vec![("worker 0".to_owned(), one), ("sum".to_owned(), one)]
        };
        let audit = PoolAudit { total: 16_384, depot: 16_000, cached: 374, in_use: 10 };
        thalweg_testkit::golden!("tests/golden/accounting.txt", format(&rows(500), audit));
        assert!(format(&rows(510), audit).ends_with("\n5 packets left more than once\n"));
        assert!(format(&rows(490), audit).ends_with("\n5 packets were lost without a count\n"));
        assert_eq!(to_json(&rows(500)[0])["in_flight"], 5);
        // Two workers hand packets to each other.
        let two = [
            ("worker 0".to_owned(), [100, 0, 30, 60, 0, 0, 0, 70]),
            ("worker 1".to_owned(), [0, 0, 70, 35, 0, 5, 0, 30]),
            ("sum".to_owned(), [100, 0, 100, 95, 0, 5, 0, 100]),
        ];
        thalweg_testkit::golden!("tests/golden/accounting_handed.txt", format(&two, audit));
        assert_eq!(to_json(&two[1])["handed_in"], 70);
    }
}
