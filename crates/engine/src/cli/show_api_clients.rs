//! `show api clients`: lists the clients of the binary API.

use serde_json::json;
use thalweg_api::Clients;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_graph::control::Control;

/// `show api clients`
pub struct ShowApiClients;

/// The command.
pub static COMMAND: ShowApiClients = ShowApiClients;

impl Command<Control> for ShowApiClients {
    fn path(&self) -> &'static str {
        "show api clients"
    }

    fn help(&self) -> &'static str {
        "Show the clients of the binary API\n\
         `Waiting' is the number of bytes of replies and events that a client has not read yet."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let clients = c.state::<Clients>().borrow().list();
        let value = |i: &thalweg_api::ClientInfo| {
            json!({
                "index": i.id.0, "name": i.name, "requests": i.requests, "events": i.events,
                "waiting": i.waiting,
            })
        };
        out.json(clients.iter().map(value).collect());
        let mut table = Table::new()
            .column("Index", Align::Right, 10)
            .column("Name", Align::Left, 24)
            .column("Requests", Align::Right, 12)
            .column("Events", Align::Right, 12)
            .column("Waiting", Align::Right, 10);
        for i in &clients {
            table.row([
                format!("{:#x}", i.id.0),
                i.name.clone(),
                i.requests.to_string(),
                i.events.to_string(),
                i.waiting.to_string(),
            ]);
        }
        out.text(&table.to_string());
        Ok(Outcome::Done)
    }
}
