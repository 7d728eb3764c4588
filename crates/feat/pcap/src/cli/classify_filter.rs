//! `classify filter`: chooses the packets that are traced or captured.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_engine::classify::{Classifier, User, words};
use thalweg_graph::Control;

/// `classify filter trace|pcap|<interface> mask ... match ... [del]`
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
        "trace|pcap|<interface> mask <fields> match <values> [del] | \
         trace|pcap|<interface> del [mask <fields>]"
    }

    fn help(&self) -> &'static str {
        "Choose the packets that `trace add ... filter' and `pcap trace ... filter' take\n\
         Example: classify filter trace mask l3 ip4 src match l3 ip4 src 192.0.2.1\n\
         Each command adds a pattern; a packet has to match one of them. Fields: `l2 src dst proto\n\
         tag1 tag2', `l3 ip4 src dst proto tos length fragment_id ttl checksum', `l3 ip6 src dst\n\
         proto hop_limit', `l4 src_port dst_port', or `hex' and bytes from the Ethernet header on.\n\
         The filter of an interface is for `pcap trace ... intfc' of that one, instead of `pcap'.\n\
         What is traced or captured already follows the filter as it was when that began. `del'\n\
         first removes the patterns of a mask, or all. Patterns are sessions of classifier tables:\n\
         `show classify tables' has them."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (word, user) = match args.one_of_exact(&["trace", "pcap"]) {
            Some("trace") => ("trace".to_owned(), User::Trace),
            Some(_) => ("pcap".to_owned(), User::Pcap),
            None => {
                let sw_if = interface_arg(c, args)?;
                (c.interface_name(sw_if), User::PcapOf(sw_if))
            }
        };
        let state = c.state::<Classifier>();
        let mut state = state.borrow_mut();
        if args.exact("del") {
            let only = if args.is_empty() { None } else { Some(words::mask(args)?) };
            args.end()?;
            state.clear(user, only.as_ref())?;
        } else {
            let (mask, value) = words::pattern(args)?;
            let del = args.exact("del");
            // Room that VPP's tables are made with.
            while let Some(_room) = args.one_of_exact(&["buckets", "memory-size"]) {
                args.word("size")?;
            }
            args.end()?;
            match del {
                true => state.remove_pattern(user, &mask, &value)?,
                false => state.add_pattern(user, &mask, &value)?,
            }
        }
        let tables = state.of(user);
        let sessions = |index: &u32| state.table(*index).map_or(0, |t| t.sessions.len());
        let patterns: usize = tables.iter().map(sessions).sum();
        out.json(serde_json::json!({ "use": word, "patterns": patterns }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        let words: &[&str] = match before {
            [] => &["trace", "pcap"],
            [_] => &["mask", "del"],
            _ => &["l2", "l3", "l4", "ip4", "ip6", "src", "dst", "proto", "match", "hex"],
        };
        let interfaces = if before.is_empty() { interface_names(c) } else { Vec::new() };
        words.iter().map(|w| (*w).to_owned()).chain(interfaces).collect()
    }
}
