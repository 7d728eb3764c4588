//! `show metrics`: the HTTP endpoint of metrics and its request counters.

use crate::metrics::Metrics;
use serde_json::json;
use std::sync::atomic::Ordering::Relaxed;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command's type.
pub struct ShowMetrics;

/// The command.
pub static COMMAND: ShowMetrics = ShowMetrics;

impl Command<Control> for ShowMetrics {
    fn path(&self) -> &'static str {
        "show metrics"
    }

    fn help(&self) -> &'static str {
        "Show the HTTP endpoint of metrics and its request counters"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let state = c.state::<Metrics>();
        let state = state.borrow();
        let Some(server) = &state.server else {
            out.json(json!({ "listen": null }));
            out.line("metrics are disabled; `metrics listen 127.0.0.1:9482' enables them");
            return Ok(Outcome::Done);
        };
        let counts = server.counts();
        let [requests, bytes, dropped] =
            [&counts.requests, &counts.bytes, &counts.dropped].map(|count| count.load(Relaxed));
        let (listen, address) = (state.listen(), server.address().to_string());
        out.json(json!({
            "listen": listen, "address": address, "requests": requests, "bytes": bytes,
            "dropped": dropped,
        }));
        out.line(format_args!("http://{address}/metrics"));
        out.line(format_args!(
            "  requests answered: {requests}, bytes: {bytes}, clients dropped: {dropped}"
        ));
        Ok(Outcome::Done)
    }
}
