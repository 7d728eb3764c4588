//! `ip6 nd address autoconfig`.

use crate::autoconfig::{self, Takes};
use thalweg_cli::{Args, CliError};
use thalweg_config::declare::{Kind, Value, rank};
use thalweg_device::setting::PerInterface;
use thalweg_engine::setting::{Form, Rare};

/// Parts of advertisements that an interface takes, if any: commands name more than addresses.
pub struct Autoconfig;

const IN_DOCUMENTS: &[&str] = &["addresses", "default-route"];

impl Form for Autoconfig {
    type Value = Option<Takes>;

    fn usage(&self) -> &'static str {
        "[default-route] [disable]"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<Option<Takes>, CliError> {
        let (mut default_route, mut disable) = (false, false);
        while !args.is_empty() {
            match args.choice("setting", &["default-route", "disable"])? {
                "disable" => disable = true,
                _ => default_route = true,
            }
        }
        Ok((!disable).then_some(Takes { default_route }))
    }

    fn words(&self, takes: &Option<Takes>) -> String {
        takes.map_or("disable", |t| if t.default_route { "default-route" } else { "" }).into()
    }

    fn yaml(&self, takes: &Option<Takes>) -> Value {
        let default_route = takes.is_some_and(|takes| takes.default_route);
        IN_DOCUMENTS[usize::from(default_route)].into()
    }

    fn read(&self, value: &Value) -> Result<Option<Takes>, String> {
        let at = IN_DOCUMENTS.iter().position(|word| *value == Value::from(*word));
        let at = at.ok_or_else(|| IN_DOCUMENTS.join(" or "))?;
        Ok(Some(Takes { default_route: at == 1 }))
    }

    fn kind(&self) -> Option<Kind> {
        Some(Kind::Word(IN_DOCUMENTS))
    }

    fn complete(&self, _: &[&str]) -> Vec<String> {
        ["default-route", "disable"].map(str::to_owned).into()
    }
}

/// Addresses and default routes by other routers' advertisements.
pub static SETTING: PerInterface<Autoconfig> = PerInterface {
    command: "ip6 nd address autoconfig",
    usage: "<interface> [default-route] [disable]",
    help: "Take addresses from other routers' advertisements on an interface\n\
           With `default-route', also routes to those that offer themselves as default routers.",
    form: Autoconfig,
    key: "ip6-autoconfig",
    rule: "thalweg.interfaces.*.ip6-autoconfig",
    default: || None,
    all: |c| autoconfig::all(c).into_iter().map(|(sw_if, takes)| (sw_if, Some(takes))).collect(),
    set: |c, sw_if, takes| Ok(autoconfig::set(c, sw_if, takes).map_err(CliError::from)?),
    rare: Rare { rank: rank::SERVICE_PORT, ..Rare::NONE },
};
