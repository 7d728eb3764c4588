//! Filters that select connections, for listing and flushing.

use std::net::IpAddr;

use crate::Tuple;
use crate::connection::Connection;

/// A partial tuple: fields that are set must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    src: Option<IpAddr>,
    dst: Option<IpAddr>,
    protocol: Option<u8>,
    sport: Option<u16>,
    dport: Option<u16>,
}

impl Part {
    fn is_all(&self) -> bool {
        *self == Part::default()
    }

    fn fits(&self, tuple: &Tuple) -> bool {
        fn same<T: PartialEq>(asked: Option<T>, is: T) -> bool {
            asked.is_none_or(|asked| asked == is)
        }
        same(self.src, tuple.src)
            && same(self.dst, tuple.dst)
            && same(self.protocol, tuple.protocol)
            && same(self.sport, tuple.sport)
            && same(self.dport, tuple.dport)
    }

    /// Reads fields such as `ct_nw_src=10.0.0.1,ct_nw_proto=6,ct_tp_dst=80`.
    ///
    /// # Errors
    /// [`FilterError`] for the first invalid field.
    pub fn parse(text: &str) -> Result<Part, FilterError> {
        let mut part = Part::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').ok_or(FilterError::NoValue(word.into()))?;
            part.field(name, value)?;
        }
        let ports = part.sport.is_some() || part.dport.is_some();
        if ports && part.protocol.is_none() {
            return Err(FilterError::NoProtocol);
        }
        Ok(part)
    }

    fn field(&mut self, name: &str, value: &str) -> Result<(), FilterError> {
        fn read<T: std::str::FromStr>(
            name: &str,
            value: &str,
            what: &'static str,
        ) -> Result<Option<T>, FilterError> {
            let wrong = || FilterError::Value { name: name.into(), value: value.into(), what };
            value.parse().map(Some).map_err(|_| wrong())
        }
        match name {
            "ct_nw_src" | "ct_ipv6_src" => self.src = read(name, value, "an address")?,
            "ct_nw_dst" | "ct_ipv6_dst" => self.dst = read(name, value, "an address")?,
            "ct_nw_proto" => self.protocol = read(name, value, "a number up to 255")?,
            "ct_tp_src" | "icmp_id" => self.sport = read(name, value, "a number up to 65535")?,
            "ct_tp_dst" => self.dport = read(name, value, "a number up to 65535")?,
            "icmp_type" => {
                let kind: Option<u8> = read(name, value, "a number up to 255")?;
                self.dport = kind.map(u16::from);
            }
            "icmp_code" => {
                read::<u8>(name, value, "0: queries have no other code")?;
            }
            _ => return Err(FilterError::Unknown(name.into())),
        }
        Ok(())
    }
}

/// Selects connections; fields that are set must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The zone.
    pub zone: Option<u16>,
    /// Value and mask of the mark.
    pub mark: Option<(u32, u32)>,
    /// Value and mask of the label.
    pub label: Option<(u128, u128)>,
    /// Tuple of the original direction.
    pub original: Part,
    /// Tuple of replies.
    pub reply: Part,
}

/// Reason why a filter is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The word has no `=`.
    #[error("`{0}` is not a filter: NAME=VALUE expected, such as ct_nw_src=10.0.0.1")]
    NoValue(String),
    /// Unknown field.
    #[error(
        "unknown field `{0}`; known are ct_nw_src, ct_nw_dst, ct_ipv6_src, ct_ipv6_dst, \
         ct_nw_proto, ct_tp_src, ct_tp_dst, icmp_id, icmp_type, icmp_code"
    )]
    Unknown(String),
    /// Invalid value.
    #[error("{name}: {what} expected, not `{value}`")]
    Value {
        /// The field.
        name: String,
        /// The value as written.
        value: String,
        /// The expected form.
        what: &'static str,
    },
    /// Ports require a protocol.
    #[error("port is set without protocol: add ct_nw_proto=6, for example")]
    NoProtocol,
    /// The same behind a blank, which begins the tuple of replies.
    #[error(
        "port is set without protocol in the reply tuple `{0}`: a blank begins it; the fields of \
         one tuple are separated by commas, such as ct_nw_proto=17,ct_tp_dst=53"
    )]
    NoReplyProtocol(String),
    /// The text has a third tuple.
    #[error("unexpected tuple `{0}`: an original and a reply tuple expected at most")]
    TooMany(String),
}

/// Parses a number, decimal or hexadecimal.
fn number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Parses VALUE or VALUE/MASK.
fn masked(name: &str, text: &str, max: u128) -> Result<(u128, u128), FilterError> {
    let wrong = || FilterError::Value {
        name: name.into(),
        value: text.into(),
        what: "VALUE or VALUE/MASK",
    };
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (number(value), number(mask)),
        None => (number(text), Some(max)),
    };
    match (value, mask) {
        (Some(value), Some(mask)) if value <= max && mask <= max => Ok((value & mask, mask)),
        _ => Err(wrong()),
    }
}

impl Filter {
    /// Parses a filter in the syntax of Open vSwitch's `flush-conntrack`: `zone=5 mark=1/0xff
    /// labels=0x1 ct_nw_src=10.0.0.1,ct_nw_proto=6`, the tuple of the original direction followed
    /// by that of replies. `''` is a tuple that matches anything.
    ///
    /// # Errors
    /// [`FilterError`] for the first invalid word.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Filter, FilterError> {
        let mut filter = Filter::default();
        let mut tuples = 0;
        for word in words {
            match word.split_once('=') {
                Some(("zone", value)) => {
                    let wrong = || FilterError::Value {
                        name: "zone".into(),
                        value: value.into(),
                        what: "a number up to 65535",
                    };
                    filter.zone = Some(value.parse().map_err(|_| wrong())?);
                }
                Some(("mark", value)) => {
                    let (value, mask) = masked("mark", value, u128::from(u32::MAX))?;
                    filter.mark = Some((value as u32, mask as u32));
                }
                Some(("labels", value)) => {
                    filter.label = Some(masked("labels", value, u128::MAX)?);
                }
                _ => {
                    let part = Part::parse(word.trim_matches('\'')).map_err(|e| match e {
                        FilterError::NoProtocol if tuples > 0 => {
                            FilterError::NoReplyProtocol(word.into())
                        }
                        e => e,
                    })?;
                    match tuples {
                        0 => filter.original = part,
                        1 => filter.reply = part,
                        _ => return Err(FilterError::TooMany(word.into())),
                    }
                    tuples += 1;
                }
            }
        }
        Ok(filter)
    }

    /// Returns whether it selects all connections.
    pub fn is_all(&self) -> bool {
        *self == Filter::default()
    }

    /// Returns whether it selects this connection.
    pub fn selects(&self, c: &Connection) -> bool {
        self.zone.is_none_or(|zone| zone == c.zone)
            && self.mark.is_none_or(|(value, mask)| c.mark & mask == value)
            && self.label.is_none_or(|(value, mask)| c.label & mask == value)
            && (self.original.is_all() || self.original.fits(&c.original))
            && (self.reply.is_all() || self.reply.fits(&c.reply))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Progress;

    #[test]
    fn words_choose() {
        let original = Tuple {
            src: [10, 0, 0, 1].into(),
            dst: [10, 0, 0, 2].into(),
            protocol: 6,
            sport: 1000,
            dport: 80,
        };
        let connection = Connection {
            original,
            reply: original.reversed(),
            zone: 5,
            mark: 0x107,
            label: 9,
            progress: Progress::Answered,
            left: 0,
            age: 0,
            packets: [0; 2],
            bytes: [0; 2],
            id: 0,
        };
        for (words, yes) in [
            ("", true),
            ("zone=5", true),
            ("zone=6", false),
            ("mark=0x7/0xff labels=9", true),
            ("mark=7", false),
            ("ct_nw_src=10.0.0.1,ct_nw_proto=6,ct_tp_dst=80", true),
            ("ct_nw_src=10.0.0.1,ct_nw_proto=17", false),
            ("'' ct_nw_src=10.0.0.2", true),
            ("'' ct_nw_src=10.0.0.1", false),
            ("ct_nw_dst=10.0.0.2 ct_nw_proto=6,ct_tp_src=80", true),
        ] {
            let filter = Filter::parse(words.split_whitespace()).unwrap();
            assert_eq!(filter.selects(&connection), yes, "{words}");
            assert_eq!(filter.is_all(), words.is_empty());
        }
    }

    #[test]
    fn invalid_words_are_reported() {
        for (words, part) in [
            ("ct_tp_dst=80", "port is set without protocol"),
            (
                "ct_nw_proto=17 ct_tp_dst=53",
                "in the reply tuple `ct_tp_dst=53`: a blank begins it; the fields of one tuple are \
                 separated by commas",
            ),
            ("zone=70000", "zone: a number up to 65535 expected, not `70000`"),
            ("mark=x", "mark: VALUE or VALUE/MASK expected"),
            ("ct_nw_src=10", "ct_nw_src: an address expected"),
            ("ct_port=1", "unknown field `ct_port`"),
            ("nonsense", "NAME=VALUE expected"),
            ("ct_nw_proto=1 ct_nw_proto=1 ct_nw_proto=1", "unexpected tuple"),
        ] {
            let e = Filter::parse(words.split_whitespace()).unwrap_err().to_string();
            assert!(e.contains(part), "{e}");
        }
    }
}
