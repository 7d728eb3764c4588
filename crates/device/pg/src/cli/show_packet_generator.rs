//! `show packet-generator`: streams with their progress, and captures.

use crate::port::port_name;
use crate::stream::{Data, Pg, Stream};
use crate::template::Vary;
use serde_json::json;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_graph::Control;

/// `show packet-generator`
pub struct ShowPacketGenerator;

/// The command.
pub static COMMAND: ShowPacketGenerator = ShowPacketGenerator;

/// Parameters as VPP prints them.
fn parameters(s: &Stream) -> String {
    let mark = if s.sizes.vary == Vary::Random { '+' } else { '-' };
    format!(
        "limit {}, rate {:.2e} pps, size {}{mark}{}, worker {}",
        s.limit, s.spec.rate, s.sizes.min, s.sizes.max, s.spec.worker
    )
}

fn value(c: &Control, s: &Stream) -> serde_json::Value {
    json!({
        "name": s.spec.name,
        "enabled": s.enabled(),
        "count": s.sent(),
        "limit": s.limit,
        "rate_pps": s.spec.rate,
        "size": {
            "min": s.sizes.min, "max": s.sizes.max, "random": s.sizes.vary == Vary::Random,
        },
        "worker": s.spec.worker,
        "max_frame": s.spec.max_frame,
        "interface": c.interface_name(s.rx_if()),
        "node": s.spec.node,
        "data": match &s.spec.data {
            Data::Description(text) => text.trim().to_owned(),
            Data::Pcap(path) => format!("pcap {}", path.display()),
        },
    })
}

impl Command<Control> for ShowPacketGenerator {
    fn path(&self) -> &'static str {
        "show packet-generator"
    }

    fn usage(&self) -> &'static str {
        "[verbose]"
    }

    fn help(&self) -> &'static str {
        "Show the streams of the packet generator and its captures\n\
         A stream is enabled until its last packet has left the router and all captures are in\n\
         their files."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.keyword("verbose");
        args.end()?;
        let pg = c.state::<Pg>();
        let pg = pg.borrow();
        let captures = || pg.port_ids().filter_map(|id| Some((id, pg.capture_text(id)?)));
        out.json(json!({
            "streams": pg.streams().iter().map(|s| value(c, s)).collect::<Vec<_>>(),
            "captures": pg
                .port_ids()
                .filter_map(|id| Some((port_name(id), pg.capture_json(id)?)))
                .collect::<serde_json::Map<_, _>>(),
        }));
        if pg.streams().is_empty() {
            out.line("no streams are defined");
        } else {
            let mut table = Table::new()
                .gap(0)
                .column("Name", Align::Left, 16)
                .column("Enabled", Align::Center, 12)
                .column("Count", Align::Center, 16)
                .column("Parameters", Align::Left, 0);
            for s in pg.streams() {
                let enabled = if s.enabled() { "Yes" } else { "No" };
                let count = s.sent().to_string();
                table.row([s.spec.name.as_str(), enabled, &count, &parameters(s)]);
            }
            write!(out, "{table}");
        }
        for (id, text) in captures() {
            out.line(format_args!("{}: {text}", port_name(id)));
        }
        Ok(Outcome::Done)
    }
}
