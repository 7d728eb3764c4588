//! `sflow agent-address`.

use crate::exporting::set_agent;
use crate::state::values;
use thalweg_cli::{Args, CliError};
use thalweg_config::declare::Value;
use thalweg_engine::setting::{Form, Global, Rare, read_words};
use thalweg_sflow_agent::agent::AgentChoice;

/// The way in which the agent's address is found.
pub struct AgentForm;

impl Form for AgentForm {
    type Value = AgentChoice;

    fn usage(&self) -> &'static str {
        "<ip>|auto [dev <device>] [prefer <prefix>] [exclude <prefix>]"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<AgentChoice, CliError> {
        let mut choice = AgentChoice::default();
        if !args.keyword("auto") {
            let expected = "an IP address such as 192.0.2.1, or `auto'";
            choice.address = Some(args.parsed("agent address", expected)?);
            return Ok(choice);
        }
        let prefix = "a prefix such as 10.0.0.0/8";
        while !args.is_empty() {
            match args.choice("option", &["dev", "prefer", "exclude"])? {
                "dev" => choice.device = Some(args.word("device")?.to_owned()),
                "prefer" => choice.preferred.push(args.parsed("prefer", prefix)?),
                _ => choice.excluded.push(args.parsed("exclude", prefix)?),
            }
        }
        Ok(choice)
    }

    fn words(&self, choice: &AgentChoice) -> String {
        if let Some(address) = choice.address {
            return address.to_string();
        }
        let mut text = String::from("auto");
        if let Some(device) = &choice.device {
            text += &format!(" dev {device}");
        }
        choice.preferred.iter().for_each(|p| text += &format!(" prefer {p}"));
        choice.excluded.iter().for_each(|p| text += &format!(" exclude {p}"));
        text
    }

    fn read(&self, value: &Value) -> Result<AgentChoice, String> {
        read_words(value, |args| self.take(args)).map_err(|_| {
            "an IP address, or `auto [dev <device>] [prefer <prefix>] [exclude <prefix>]',".into()
        })
    }
}

/// The agent's address.
pub static SETTING: Global<AgentForm> = Global {
    command: "sflow agent-address",
    help: "Set the agent address that identifies this router to collectors\n\
           `auto', the default, picks one of the host's addresses: of the given device, if any;\n\
           preferably in a preferred prefix; never in an excluded one. `prefer' and `exclude' may\n\
           be repeated. When the address changes, sequence numbers restart: collectors see a different\n\
           agent.",
    form: AgentForm,
    key: "thalweg.sflow.agent-address",
    default: AgentChoice::default,
    get: |c| values(c, |all| all.export.agent.clone()),
    set: |c, choice| Ok(set_agent(c, choice)?),
    rare: Rare::NONE,
};
