//! `sflow uuid`.

use crate::exporting::set_uuid;
use crate::state::values;
use thalweg_cli::{Args, CliError};
use thalweg_config::declare::Value;
use thalweg_engine::setting::{Form, Global, Optional, Rare, read_words};
use thalweg_sflow::value::Uuid;
use thalweg_sflow_agent::host::parse_uuid;

/// A UUID (RFC 9562).
pub struct UuidForm;

impl Form for UuidForm {
    type Value = Uuid;

    fn usage(&self) -> &'static str {
        "<uuid>"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<Uuid, CliError> {
        let expected = "a UUID such as 5fd8a3f0-7d0c-4a3e-9a52-1c1e3b1f0a77, or machine";
        args.with("uuid", expected, parse_uuid)
    }

    fn words(&self, uuid: &Uuid) -> String {
        let hex = format!("{:032x}", u128::from_be_bytes(uuid.0));
        let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        format!("{a}-{b}-{c}-{d}-{e}")
    }

    fn read(&self, value: &Value) -> Result<Uuid, String> {
        read_words(value, |args| self.take(args))
            .map_err(|_| "a UUID such as 5fd8a3f0-7d0c-4a3e-9a52-1c1e3b1f0a77".into())
    }
}

/// The UUID of this host.
pub static SETTING: Global<Optional<UuidForm>> = Global {
    command: "sflow uuid",
    help: "Set the UUID that identifies this host to collectors\n\
           The default is the machine's UUID, which cloned virtual machines may share.",
    form: Optional { usage: "<uuid> | machine", none: "machine", form: UuidForm },
    key: "thalweg.sflow.uuid",
    default: || None,
    get: |c| values(c, |all| all.export.uuid),
    set: |c, uuid| {
        set_uuid(c, uuid);
        Ok(())
    },
    rare: Rare::NONE,
};
