//! `show api message-table`: lists the messages of the binary API.

use serde_json::json;
use thalweg_api::Clients;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_graph::control::Control;

/// `show api message-table`
pub struct ShowApiMessageTable;

/// The command.
pub static COMMAND: ShowApiMessageTable = ShowApiMessageTable;

impl Command<Control> for ShowApiMessageTable {
    fn path(&self) -> &'static str {
        "show api message-table"
    }

    fn help(&self) -> &'static str {
        "Show the messages of the binary API with their numbers"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let messages = c.state::<Clients>().borrow().messages();
        let value = |(id, name): &(u16, &str)| json!({ "id": id, "name": name });
        out.json(messages.iter().map(value).collect());
        let mut table = Table::new().column("ID", Align::Right, 6).column("Name", Align::Left, 40);
        for (id, name) in &messages {
            table.row([id.to_string(), (*name).to_owned()]);
        }
        out.text(&table.to_string());
        Ok(Outcome::Done)
    }
}
