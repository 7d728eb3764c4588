//! `create sub-interfaces`: interfaces for VLANs of a port.

use crate::command_line::{ENCAPSULATION, interface_arg, interface_names, refused, tag_match};
use crate::interface::{self, DeviceError, SwIfIndex, TagMatch, VlanTag};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use thalweg_cli::{Args, CliError, Command, Outcome, Output, Task, TaskPoll};
use thalweg_graph::Control;
use thalweg_wire::vlan::MAX_ID;

/// Time that one slice of a range takes.
const SLICE: Duration = Duration::from_millis(2);

/// `create sub-interfaces`
pub struct CreateSubInterfaces;

/// The command.
pub static COMMAND: CreateSubInterfaces = CreateSubInterfaces;

impl Command<Control> for CreateSubInterfaces {
    fn path(&self) -> &'static str {
        "create sub-interfaces"
    }

    fn usage(&self) -> &'static str {
        "<interface> {<id> [default|untagged|{dot1q|dot1ad} {<vlan>|any} \
         [inner-dot1q {<vlan>|any}] [exact-match]] | <first>-<last>}"
    }

    fn help(&self) -> &'static str {
        "Create sub-interfaces <interface>.<id> for VLANs of a port\n\
         Without encapsulation, and of a range, each receives the frames with one 802.1Q tag of\n\
         its own number. Only those with `exact-match', or `untagged', are routed: the tags of\n\
         what they send are known. One that exists like this already is left alone."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let parent = interface_arg(c, args)?;
        let expected =
            format!("a number from 1 to {}, or a range of VLAN ids such as 100-199", u32::MAX);
        let ids = args.with("sub-interface number", &expected, ids)?;
        let of = tag_match(args)?;
        if *ids.end() > u32::from(MAX_ID.0) && of.is_none() {
            let right = format!("{ENCAPSULATION}: only numbers up to {MAX_ID} are VLAN ids");
            return Err(args.bad_last("encapsulation", right));
        }
        if ids.start() != ids.end() && of.is_some() {
            return Err(args.bad_last("range", "no encapsulation: numbers of a range are VLAN ids"));
        }
        let mut task = Creation { parent, of, left: ids, made: Vec::new() };
        match task.poll(c, Instant::now(), out) {
            TaskPoll::Done => Ok(Outcome::Done),
            TaskPoll::At(_) => Ok(Outcome::pending(task)),
            TaskPoll::Failed(e) => Err(e),
        }
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
        match before {
            [] => interface_names(c),
            [_] => Vec::new(),
            [_, _] => words(&["default", "untagged", "dot1q", "dot1ad"]),
            [.., "dot1q" | "dot1ad" | "inner-dot1q"] => words(&["any"]),
            [.., "default" | "untagged" | "exact-match"] => Vec::new(),
            _ => words(&["inner-dot1q", "exact-match"]),
        }
    }
}

/// Reads `100` or `100-199`.
fn ids(word: &str) -> Option<RangeInclusive<u32>> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n > 0);
    let Some((first, last)) = word.split_once('-') else { return number(word).map(|n| n..=n) };
    let (first, last) = (number(first)?, number(last)?);
    (first <= last && last <= u32::from(MAX_ID.0)).then_some(first..=last)
}

/// Sub-interfaces that are being created.
struct Creation {
    parent: SwIfIndex,
    /// Frames of the only one, if the command names them.
    of: Option<TagMatch>,
    left: RangeInclusive<u32>,
    made: Vec<(String, SwIfIndex)>,
}

impl Creation {
    fn one(&mut self, c: &mut Control, id: u32, out: &mut Output) -> Result<(), DeviceError> {
        let vlan = || TagMatch::Outer { tag: VlanTag::dot1q(id as u16), exact: true };
        let of = self.of.unwrap_or_else(vlan);
        let sw_if = match interface::create_sub(c, self.parent, id, of) {
            Err(DeviceError::Exists(name)) if same(c, &name, of) => return Ok(()),
            other => other?,
        };
        let name = interface::view(c, sw_if)?.name;
        out.line(&name);
        self.made.push((name, sw_if));
        Ok(())
    }
}

/// Returns whether there is a sub-interface of this name that receives these frames.
fn same(c: &Control, name: &str, of: TagMatch) -> bool {
    let view = interface::find(c, name).and_then(|sw_if| interface::view(c, sw_if));
    view.is_ok_and(|view| view.sub.is_some_and(|(_, there)| there == of))
}

impl Task<Control> for Creation {
    fn poll(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        while let Some(id) = self.left.next() {
            if let Err(e) = self.one(c, id, out) {
                return TaskPoll::Failed(refused(e));
            }
            if now.elapsed() >= SLICE && !self.left.is_empty() {
                return TaskPoll::At(now);
            }
        }
        let made = self
            .made
            .iter()
            .map(|(name, sw_if)| serde_json::json!({ "name": name, "index": sw_if.get() }));
        out.json(serde_json::Value::Array(made.collect()));
        TaskPoll::Done
    }
}
