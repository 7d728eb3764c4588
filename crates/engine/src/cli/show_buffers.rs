//! `show buffers`: packet buffers by state.

use crate::ask_workers;
use crate::report::{centre, line};
use serde_json::json;
use thalweg_buffer::PoolAudit;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show buffers`
pub struct ShowBuffers;

/// The command.
pub static COMMAND: ShowBuffers = ShowBuffers;

struct Row {
    size: usize,
    data_size: usize,
    audit: PoolAudit,
    pages: String,
    /// Packets freed outside the packet path.
    strays: u64,
    /// Failed allocations, per worker that replied.
    misses: Vec<Option<u64>>,
}

impl Command<Control> for ShowBuffers {
    fn path(&self) -> &'static str {
        "show buffers"
    }

    fn help(&self) -> &'static str {
        "Show packet buffers: free, cached by workers, in use"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        // Caches publish their counts between loops.
        ask_workers(c, out, |core| core.publish_cache(), show)
    }
}

fn show(c: &mut Control, misses: Vec<Option<u64>>, out: &mut Output) -> Result<(), CliError> {
    let pool = c.pool();
    let row = Row {
        size: pool.stride(),
        data_size: pool.data_size(),
        audit: pool.audit(),
        pages: pool.pages().to_string(),
        strays: pool.strays(),
        misses,
    };
    out.json(json!([{
        "pool": "default-numa-0", "index": 0, "numa": 0, "size": row.size,
        "data_size": row.data_size, "total": row.audit.total, "avail": row.audit.depot,
        "cached": row.audit.cached, "used": row.audit.in_use, "pages": row.pages,
        "strays": row.strays, "alloc_failures": row.misses,
    }]));
    out.text(&format(&row));
    Ok(())
}

fn format(r: &Row) -> String {
    let widths = [20, 6, 6, 6, 11, 8, 8, 8, 8];
    let row = |cells: [String; 9]| {
        let name = format!("{:<20}", cells[0]);
        let rest = cells[1..].iter().zip(&widths[1..]).map(|(c, w)| centre(c, *w));
        line(std::iter::once(name).chain(rest))
    };
    let heading =
        ["Pool Name", "Index", "NUMA", "Size", "Data Size", "Total", "Avail", "Cached", "Used"];
    let numbers =
        [0, 0, r.size, r.data_size, r.audit.total, r.audit.depot, r.audit.cached, r.audit.in_use];
    let mut cells = numbers.iter().map(usize::to_string);
    let values = std::array::from_fn(|i| match i {
        0 => "default-numa-0".to_owned(),
        _ => cells.next().unwrap_or_default(),
    });
    let failed: u64 = r.misses.iter().flatten().sum();
    format!(
        "{}\n{}\nheld by {}; {} freed outside of the packet path; {failed} allocations failed\n",
        row(heading.map(String::from)),
        row(values),
        r.pages,
        r.strays
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_as_vpp_prints_it() {
        let row = Row {
            size: 2496,
            data_size: 2048,
            audit: PoolAudit { total: 16_800, depot: 16_163, cached: 60, in_use: 577 },
            pages: "2M huge pages".into(),
            strays: 3,
            misses: vec![Some(4), None, Some(1)],
        };
        thalweg_testkit::golden!("tests/golden/buffers.txt", format(&row));
    }
}
