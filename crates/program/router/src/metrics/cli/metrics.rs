//! `metrics`: the HTTP endpoint of metrics.

use crate::metrics::{self, Metrics};
use std::net::SocketAddr;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, in_background};
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
        let action = args.choice("action", &["listen", "disable", "default"])?;
        let address = match action {
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
        let is_chosen = action != "default";
        let done = move |c: &mut Control, to: Option<_>, out: &mut Output| {
            let address = to.as_ref().map(|(address, _): &(String, _)| address.clone());
            metrics::listen(c, to).map_err(CliError::failed)?;
            c.state::<Metrics>().borrow_mut().is_chosen = is_chosen;
            out.json(serde_json::json!({ "listen": address }));
            Ok(())
        };
        match address.map(|text| (text.parse::<SocketAddr>(), text)) {
            None => done(c, None, out)?,
            Some((Ok(at), text)) => done(c, Some((text, vec![at])), out)?,
            // A name is looked up elsewhere: that may take long.
            Some((Err(_), text)) => {
                let look_up = move || metrics::resolve(&text).map(|all| (text, all));
                return in_background(look_up, move |c, found, out| {
                    let found = found.map_err(CliError::failed)?;
                    done(c, Some(found), out).map(|()| None)
                });
            }
        }
        Ok(Outcome::Done)
    }
}
