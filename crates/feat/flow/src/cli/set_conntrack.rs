//! `set conntrack`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::file_path;
use thalweg_conntrack::{Policy, WhenFull};
use thalweg_files::client::{self, Kind};
use thalweg_graph::Control;

use crate::nodes::flow_rules::Engine;
use crate::tracking::{self, Change, MAX_LIMIT};

/// The command.
pub static COMMAND: SetConntrack = SetConntrack;

/// Local sockets.
const SOCKETS: Kind = Kind { name: "a socket", magic: &[], is_foreign: false };

/// The command's type.
pub struct SetConntrack;

impl Command<Control> for SetConntrack {
    fn path(&self) -> &'static str {
        "set conntrack"
    }
    fn usage(&self) -> &'static str {
        "limit <n> | when-full refuse|recycle | tcp-seq-chk enable|disable | checksums enable|disable | \
         events <path>|disable | \
         zone-limit <zone>|default <n>|none | timeouts <zone>|default <policy>|none"
    }
    fn help(&self) -> &'static str {
        "Set connection tracking: the maximum number of connections, also per zone (0: \
         unlimited), the policy when the table is full, whether TCP sequence numbers and \
         checksums are verified, timeouts, and the local socket that events are sent to as \
         lines of JSON:\n\
         set conntrack timeouts 5 udp_first=1 udp_single=2 tcp_established=30"
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let words =
            ["limit", "when-full", "tcp-seq-chk", "checksums", "events", "zone-limit", "timeouts"];
        let change = match args.one_of(&words)? {
            Some("limit") => {
                let limit = args.number("connections", 1, MAX_LIMIT.into())? as u32;
                args.end()?;
                return set_limit(cx, out, limit);
            }
            Some("when-full") => Change::WhenFull(match args.one_of(&["refuse", "recycle"])? {
                Some("recycle") => WhenFull::Recycle,
                Some(_) => WhenFull::Refuse,
                None => return Err(args.bad("policy", "refuse or recycle")),
            }),
            Some("tcp-seq-chk") => Change::CheckWindows(args.enable_disable("checking")?),
            Some("checksums") => Change::Checksums(args.enable_disable("verification")?),
            Some("events") => {
                let path = args.word("path, or disable")?;
                let events = (path != "disable").then(|| path.to_owned());
                if let Some(expected) = events.as_deref().and_then(|p| file_path(p).err()) {
                    return Err(args.bad_last("path", expected));
                }
                args.end()?;
                if let Some(path) = &events {
                    client::check(path.as_ref(), &SOCKETS).map_err(CliError::failed)?;
                }
                crate::events::listen(cx, events.as_deref()).map_err(CliError::failed)?;
                Change::Events(events)
            }
            Some("zone-limit") => {
                let zone = zone(args)?;
                let none = args.exact("none");
                let limit = if none { None } else { Some(args.u32("connections")?) };
                Change::ZoneLimit(zone, limit)
            }
            Some("timeouts") => {
                let zone = zone(args)?;
                if args.exact("none") {
                    Change::Timeouts(zone, None)
                } else {
                    let text = args.rest();
                    let policy = Policy::parse(text).map_err(CliError::failed)?;
                    if policy.to_string().is_empty() {
                        return Err(args.bad("timeouts", "NAME=SECONDS, such as udp_first=1"));
                    }
                    Change::Timeouts(zone, Some(policy))
                }
            }
            _ => return Err(args.bad("setting", words.join(", "))),
        };
        args.end()?;
        tracking::change(cx, change);
        Ok(Outcome::Done)
    }
}

fn zone(args: &mut Args<'_>) -> Result<Option<u16>, CliError> {
    if args.exact("default") { Ok(None) } else { args.u16("zone").map(Some) }
}

/// Sets the limit, unless trackers would have to grow while they have connections.
fn set_limit(cx: &mut Control, out: &mut Output, limit: u32) -> Result<Outcome<Control>, CliError> {
    let share = limit.div_ceil(cx.workers().max(1) as u32);
    let is_full = move |engine: &mut Engine| {
        let tracker = engine.tracker.as_deref();
        tracker.is_some_and(|t| {
            (!t.is_empty() && t.capacity() < share)
                || (!t.has_no_ipv6() && t.capacity_ipv6(false) < share)
        })
    };
    tracking::ask_for(cx, out, is_full, move |cx, full, _| {
        if full.contains(&true) {
            let text = "the trackers are too small for that limit, and grow only while they are \
                        empty: `clear conntrack' first";
            return Err(CliError::failed(text));
        }
        tracking::check_room(cx, limit).map_err(CliError::failed)?;
        tracking::change(cx, Change::Limit(limit));
        Ok(())
    })
}
