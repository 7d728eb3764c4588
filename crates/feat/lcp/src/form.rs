//! Spellings of values.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use thalweg_cli::{Args, CliError};
use thalweg_config::declare::{Kind, Value};
use thalweg_engine::setting::{Form, read_words};
use thalweg_netlink::fpm::PORT;

/// `on` or `off`; a boolean in documents.
#[derive(Clone, Copy, Debug)]
pub struct OnOff(
    /// Name of the argument in errors.
    pub &'static str,
);

impl Form for OnOff {
    type Value = bool;

    fn usage(&self) -> &'static str {
        "on|off|enable|disable"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<bool, CliError> {
        let word = args.choice(self.0, &["on", "off", "enable", "disable"])?;
        Ok(matches!(word, "on" | "enable"))
    }

    fn words(&self, value: &bool) -> String {
        if *value { "on" } else { "off" }.into()
    }

    fn yaml(&self, value: &bool) -> Value {
        Value::Bool(*value)
    }

    fn read(&self, value: &Value) -> Result<bool, String> {
        match value {
            Value::Bool(on) => Ok(*on),
            _ => Err("true or false".into()),
        }
    }

    fn kind(&self) -> Option<Kind> {
        Some(Kind::Bool)
    }
}

/// Address at which the router listens to `zebra`, or none; in documents, `true` is the usual one.
#[derive(Clone, Copy, Debug)]
pub struct FpmAddress;

impl FpmAddress {
    /// The address to which `zebra` connects by default.
    pub const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);

    /// Right values.
    pub(crate) const EXPECTED: &'static str =
        "an address of one interface, such as 127.0.0.1 or [::1]:2620, `enable' or `disable'";

    /// Reads an address with a port or without.
    pub(crate) fn parse(word: &str) -> Option<SocketAddr> {
        let bare = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).unwrap_or(word);
        let address = match bare.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, PORT),
            Err(_) => word.parse().ok()?,
        };
        let ip = address.ip().to_canonical();
        let is_broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
        let is_one = !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast;
        Some(address).filter(|address| is_one && address.port() != 0)
    }
}

impl Form for FpmAddress {
    type Value = Option<SocketAddr>;

    fn usage(&self) -> &'static str {
        "<ip>[:<port>] | enable | disable"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<Self::Value, CliError> {
        if let Some(word) = args.one_of_exact(&["enable", "on", "disable", "off"]) {
            return Ok(matches!(word, "enable" | "on").then_some(FpmAddress::USUAL));
        }
        let word = args.word("address")?;
        FpmAddress::parse(word).map(Some).ok_or_else(|| args.bad_last("address", Self::EXPECTED))
    }

    fn words(&self, value: &Self::Value) -> String {
        value.map_or_else(|| "disable".into(), |address| address.to_string())
    }

    fn yaml(&self, value: &Self::Value) -> Value {
        value.map_or(Value::Bool(false), |address| Value::Text(address.to_string()))
    }

    fn read(&self, value: &Value) -> Result<Self::Value, String> {
        match value {
            Value::Bool(on) => Ok(on.then_some(FpmAddress::USUAL)),
            value => read_words(value, |args| self.take(args)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_one_interface() {
        let of = |word: &str| FpmAddress::parse(word).map(|address| address.to_string());
        for (word, wanted) in [
            ("127.0.0.1", "127.0.0.1:2620"),
            ("10.0.0.1:9", "10.0.0.1:9"),
            ("::1", "[::1]:2620"),
            ("[::1]", "[::1]:2620"),
            ("[fd00::1]:99", "[fd00::1]:99"),
        ] {
            assert_eq!(of(word).as_deref(), Some(wanted));
        }
        for word in [
            "0.0.0.0",
            "[::]:2620",
            "::ffff:0.0.0.0",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "127.0.0.1:0",
            "127.0.0.1:65536",
            "localhost",
            "2620",
            "",
        ] {
            assert_eq!(of(word), None, "{word}");
        }
    }

    #[test]
    fn words_say_on_and_off() {
        let form = FpmAddress;
        let take = |text: &str| form.take(&mut Args::parse(text).unwrap());
        for value in [None, Some(FpmAddress::USUAL), FpmAddress::parse("[::1]:9")] {
            assert_eq!(take(&form.words(&value)), Ok(value));
            assert_eq!(form.read(&form.yaml(&value)), Ok(value));
        }
        assert_eq!(take("on"), Ok(Some(FpmAddress::USUAL)));
        assert_eq!(form.read(&Value::Bool(true)), Ok(Some(FpmAddress::USUAL)));
        assert!(take("0.0.0.0").unwrap_err().to_string().contains("[::1]:2620"));
    }
}
