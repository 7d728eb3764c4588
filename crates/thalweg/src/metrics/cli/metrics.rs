//! `metrics`: the HTTP endpoint of metrics.

use crate::metrics::{self, Metrics};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command's type.
pub struct SetMetrics;

/// The command.
pub static COMMAND: SetMetrics = SetMetrics;

impl Command<Control> for SetMetrics {
    fn path(&self) -> &'static str {
        "metrics"
    }

    fn usage(&self) -> &'static str {
        "listen <host:port> | disable | default"
    }

    fn help(&self) -> &'static str {
        "Serve metrics over HTTP, for Prometheus\n\
         `GET /metrics' returns the Prometheus text format or OpenMetrics, without\n\
         authentication. `default' restores the address of the startup configuration: `metrics {\n\
         listen … }'."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let address = match args.choice("action", &["listen", "disable", "default"])? {
            "listen" => {
                let expected = "host:port such as 127.0.0.1:9482";
                let address =
                    |word: &str| metrics::settings::is_address(word).then(|| word.to_owned());
                Some(args.with("address", expected, address)?)
            }
            "disable" => None,
            _ => c.state::<Metrics>().borrow().at_start().map(str::to_owned),
        };
        args.end()?;
        metrics::listen(c, address.clone()).map_err(|e| CliError::failed(e.to_string()))?;
        out.json(serde_json::json!({ "listen": address }));
        Ok(Outcome::Done)
    }
}
