//! `classify filter`: chooses the packets that are traced or captured.

use crate::classify::{Filters, MAX_PATTERNS, mask, pattern};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `classify filter trace|pcap mask ... match ... [del]`
pub struct ClassifyFilter;

/// The command.
pub static COMMAND: ClassifyFilter = ClassifyFilter;

impl Command<Control> for ClassifyFilter {
    fn path(&self) -> &'static str {
        "classify filter"
    }

    /// `cl run' goes on to mean `clear runtime'.
    fn listed(&self) -> bool {
        false
    }

    fn usage(&self) -> &'static str {
        "trace|pcap mask <fields> match <values> [del] | trace|pcap del [mask <fields>]"
    }

    fn help(&self) -> &'static str {
        "Choose the packets that `trace add ... filter' and `pcap trace ... filter' take\n\
         Example: classify filter trace mask l3 ip4 src match l3 ip4 src 192.0.2.1\n\
         Each command adds a pattern; a packet has to match one of them. Fields: `l2 src dst proto\n\
         tag1 tag2', `l3 ip4 src dst proto tos length fragment_id ttl checksum', `l3 ip6 src dst\n\
         proto hop_limit', `l4 src_port dst_port', or `hex' and bytes from the Ethernet header on.\n\
         What is traced or captured already follows the filter as it was when that began. `del'\n\
         first removes the patterns of a mask, or all."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let use_ = args.choice("use", &["trace", "pcap"])?;
        let state = c.state::<Filters>();
        let mut state = state.borrow_mut();
        let filter = if use_ == "trace" { &mut state.trace } else { &mut state.pcap };
        if args.exact("del") {
            let only = if args.is_empty() { None } else { Some(mask(args)?) };
            args.end()?;
            filter.0.retain(|p| only.as_deref().is_some_and(|mask| p.mask() != mask));
        } else {
            let pattern = pattern(args)?;
            let del = args.exact("del");
            args.end()?;
            let at = filter.0.iter().position(|p| *p == pattern);
            match (del, at) {
                (true, Some(at)) => drop(filter.0.remove(at)),
                (true, None) => return Err(CliError::with_code("there is no such pattern", -6)),
                (false, Some(_)) => {}
                (false, None) if filter.0.len() >= MAX_PATTERNS => {
                    let text = format!(
                        "the filter has {MAX_PATTERNS} patterns, the most: `classify filter {use_} \
                         del' removes them"
                    );
                    return Err(CliError::failed(text));
                }
                (false, None) => filter.0.push(pattern),
            }
        }
        out.json(serde_json::json!({ "use": use_, "patterns": filter.0.len() }));
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _: &str) -> Vec<String> {
        let words: &[&str] = match before {
            [] => &["trace", "pcap"],
            [_] => &["mask", "del"],
            _ => &["l2", "l3", "l4", "ip4", "ip6", "src", "dst", "proto", "match", "hex"],
        };
        words.iter().map(|w| (*w).to_owned()).collect()
    }
}
