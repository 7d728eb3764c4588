//! The stanza `linux-cp` of the startup configuration: what holds without a document or a command
//! that says otherwise.

use crate::cli::lcp_param;
use crate::form::FpmAddress;
use crate::options::{self, LONGEST_NAMESPACE, Options};
use std::sync::OnceLock;
use thalweg_graph::Control;

/// Words of the stanza, for errors.
const WORDS: &str = "default netns <namespace>, lcp-auto-subint, lcp-sync, fpm <ip>[:<port>], \
                     num-rx-queues <n>, num-tx-queues <n>";

/// Options from the stanza.
static DEFAULTS: OnceLock<Options> = OnceLock::new();

/// Returns the settings that hold by default.
pub(crate) fn defaults() -> Options {
    DEFAULTS.get().cloned().unwrap_or_default()
}

/// A stanza that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{stanza} {{ … }}: {text}")]
pub struct BadStanza {
    stanza: &'static str,
    text: String,
}

impl BadStanza {
    fn of_nl(text: String) -> BadStanza {
        BadStanza { stanza: "linux-nl", text }
    }
}

/// Reads the words of the stanza.
///
/// # Errors
/// The first word that is not understood.
pub fn read<'w>(words: impl Iterator<Item = &'w str>) -> Result<Options, BadStanza> {
    let mut words = words;
    let mut options = Options::default();
    let bad = |text: String| Err(BadStanza { stanza: "linux-cp", text });
    while let Some(word) = words.next() {
        match word {
            "default" => match (words.next(), words.next()) {
                (Some("netns"), Some(name)) if name.len() <= LONGEST_NAMESPACE => {
                    options.namespace = Some(name.to_owned());
                }
                _ => return bad("`default netns' and a name of up to 31 bytes expected".into()),
            },
            "fpm" => {
                let Some(address) = words.next().and_then(FpmAddress::parse) else {
                    return bad(format!("fpm: an address expected, such as {}", FpmAddress::USUAL));
                };
                options.fpm = Some(address);
            }
            "lcp-auto-subint" => options.auto_subint = true,
            "lcp-sync" => options.sync = true,
            "num-rx-queues" | "num-tx-queues" => {
                let number = words.next().and_then(|n| n.parse().ok());
                let Some(number) = number.filter(|n| (1..=64).contains(n)) else {
                    return bad(format!("{word}: a number from 1 to 64 expected"));
                };
                match word {
                    "num-rx-queues" => options.rx_queues = Some(number),
                    _ => options.tx_queues = Some(number),
                }
            }
            word if lcp_param::WORDS.contains(&word) => options.unsupported.push(word.to_owned()),
            other => return bad(format!("unknown word `{other}': {WORDS} expected")),
        }
    }
    Ok(options)
}

/// Words of the stanza `linux-nl`, for errors.
const NL_WORDS: &str = "nl-rx-buffer-size <bytes>, nl-batch-size <n>, nl-batch-delay-ms <n>";

/// Reads the words of the stanza `linux-nl`; returns the bytes of notices that the kernel keeps.
/// Batches have sizes and delays of their own here.
///
/// # Errors
/// The first word that is not understood.
pub fn read_nl<'w>(words: impl Iterator<Item = &'w str>) -> Result<Option<usize>, BadStanza> {
    let (mut words, mut bytes) = (words, None);
    while let Some(word) = words.next() {
        if !["nl-rx-buffer-size", "nl-batch-size", "nl-batch-delay-ms"].contains(&word) {
            return Err(BadStanza::of_nl(format!("unknown word `{word}': {NL_WORDS} expected")));
        }
        let number = words.next().and_then(|n| n.parse::<u32>().ok());
        let Some(number) = number.filter(|n| *n > 0) else {
            return Err(BadStanza::of_nl(format!(
                "{word}: a number from 1 to {} expected",
                u32::MAX
            )));
        };
        if word == "nl-rx-buffer-size" {
            bytes = Some(number as usize);
        }
    }
    Ok(bytes)
}

/// Applies the stanza at the start, once per process.
pub fn apply(c: &Control, stanza: Options) {
    for word in &stanza.unsupported {
        tracing::warn!(
            "linux-cp {{ {word} }} has no effect: routes by a link without carrier stay as long as \
             the kernel has them"
        );
    }
    options::change(c, |options| *options = stanza.clone());
    let _ = DEFAULTS.set(stanza);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Options, BadStanza> {
        read(text.split_whitespace())
    }

    #[test]
    fn words_of_vpp_are_read() {
        let o = of("default netns dataplane lcp-sync lcp-auto-subint num-rx-queues 2").unwrap();
        assert_eq!(
            (o.namespace.as_deref(), o.sync, o.auto_subint),
            (Some("dataplane"), true, true)
        );
        assert_eq!((o.rx_queues, o.tx_queues), (Some(2), None));
        assert_eq!(of("num-tx-queues 3").unwrap().tx_queues, Some(3));
        assert_eq!(of("fpm ::1").unwrap().fpm, FpmAddress::parse("[::1]:2620"));
    }

    #[test]
    fn mistakes_are_explained() {
        let said = |text: &str| of(text).unwrap_err().to_string();
        assert!(said("bogus").contains("lcp-sync"));
        assert!(said("default").contains("netns"));
        assert!(said("num-rx-queues 65").contains("1 to 64"));
        assert!(said("num-rx-queues").contains("1 to 64"));
        assert!(said("fpm").contains("127.0.0.1:2620"));
        assert!(said("fpm 0.0.0.0").contains("127.0.0.1:2620"));
        let word = "del-static-on-link-down";
        assert_eq!(of(word).unwrap().unsupported, [word], "said when the log is open");
        let nl = |text: &str| read_nl(text.split_whitespace()).map_err(|e| e.to_string());
        assert_eq!(nl("nl-rx-buffer-size 268435456 nl-batch-size 2048"), Ok(Some(268_435_456)));
        assert_eq!(nl("nl-batch-delay-ms 1"), Ok(None));
        assert!(nl("nl-rx-buffer-size 0").unwrap_err().contains("from 1"));
        assert!(nl("bogus").unwrap_err().contains("nl-rx-buffer-size"));
    }
}
