//! `show packet accounting`: where every packet went.

use crate::control::Control;
use serde_json::{Value, json};
use thalweg_buffer::PoolAudit;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};

/// `show packet accounting`
pub struct ShowPacketAccounting;

/// The command.
pub static COMMAND: ShowPacketAccounting = ShowPacketAccounting;

/// Packets in (received, originated) and out (sent, delivered, dropped, consumed).
type Counts = [u64; 6];

const NAMES: [&str; 6] = ["rx", "originated", "tx", "delivered", "dropped", "consumed"];

/// What came in and has not gone out.
fn in_flight(c: &Counts) -> i128 {
    let [rx, originated, out @ ..] = c.map(i128::from);
    rx + originated - out.iter().sum::<i128>()
}

impl Command<Control> for ShowPacketAccounting {
    fn path(&self) -> &'static str {
        "show packet accounting"
    }

    fn help(&self) -> &'static str {
        "Show where every packet went\n\
         received + originated = sent + delivered + dropped + consumed + in flight, and no packet\n\
         in flight is without a buffer."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        // Asked between two loops, a worker's counters fit together.
        let answers = c.ask(|core| core.accounting());
        let mut rows = Vec::new();
        for (w, answer) in answers.into_iter().enumerate() {
            match answer {
                Some(counts) => rows.push((format!("worker {w}"), counts)),
                None => return Err(CliError::failed(format!("worker {w} does not answer"))),
            }
        }
        let sum =
            rows.iter().fold([0; 6], |s: Counts, (_, r)| std::array::from_fn(|i| s[i] + r[i]));
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
        Ok(Outcome::Done)
    }
}

fn to_json((name, counts): &(String, Counts)) -> Value {
    let mut value = json!({ "name": name, "in_flight": in_flight(counts) as i64 });
    for (name, n) in NAMES.iter().zip(counts) {
        value[*name] = json!(n);
    }
    value
}

fn format(rows: &[(String, Counts)], audit: PoolAudit) -> String {
    let mut table = Table::new().column("", Align::Left, 10);
    for name in NAMES.iter().chain(&["in flight"]) {
        table = table.column(name, Align::Right, 12);
    }
    for (name, counts) in rows {
        let numbers = counts.iter().map(u64::to_string);
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
            let one = [1000, 10, sent, 20, 480, 5];
            vec![("worker 0".to_owned(), one), ("sum".to_owned(), one)]
        };
        let audit = PoolAudit { total: 16_384, depot: 16_000, cached: 374, in_use: 10 };
        thalweg_testkit::golden!("tests/golden/accounting.txt", format(&rows(500), audit));
        assert!(format(&rows(510), audit).ends_with("\n5 packets left more than once\n"));
        assert!(format(&rows(490), audit).ends_with("\n5 packets were lost without a count\n"));
        assert_eq!(to_json(&rows(500)[0])["in_flight"], 5);
    }
}
