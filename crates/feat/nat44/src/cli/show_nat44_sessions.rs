//! `show nat44 sessions`.

use crate::cli_support::protocol;
use crate::session::{BALANCED, HAIRPIN, TWICE};
use crate::state::protocol_name;
use crate::view::{Listing, Next, REST, SessionFilter, SessionView};
use serde_json::{Value, json};
use std::time::Instant;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, Task, TaskPoll};
use thalweg_graph::Control;
use thalweg_wire::nat::tuple::Tuple;

/// `show nat44 sessions`
pub struct ShowNat44Sessions;

/// The command.
pub static COMMAND: ShowNat44Sessions = ShowNat44Sessions;

impl Command<Control> for ShowNat44Sessions {
    fn path(&self) -> &'static str {
        "show nat44 sessions"
    }

    fn usage(&self) -> &'static str {
        "[filter i2o|o2i saddr|daddr <address> | sport|dport <number> | proto <protocol>]... [max <number>]"
    }

    fn help(&self) -> &'static str {
        "Show sessions by worker, up to 65536 by default; with filters, those that match all of them\n\
         i2o flow: packets from inside, before and after translation; o2i flow: packets from outside."
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut left, mut filter) = (65_536, SessionFilter::default());
        while !args.is_empty() {
            if args.keyword("filter") {
                parse_filter(args, &mut filter)?;
            } else if args.keyword("max") {
                left = args.number("sessions", 1, 1 << 32)?;
            } else {
                args.end()?;
            }
        }
        out.line("NAT44 ED sessions:");
        Ok(Outcome::pending(Show { listing: Listing::new(filter), titled: 0, left }))
    }
}

/// Takes the arguments after `filter`.
fn parse_filter(args: &mut Args<'_>, filter: &mut SessionFilter) -> Result<(), CliError> {
    let pattern = match args.choice("direction", &["i2o", "o2i"])? {
        "i2o" => &mut filter.i2o,
        _ => &mut filter.o2i,
    };
    let port = |args: &mut Args<'_>| Ok::<_, CliError>(Some(args.u16("port")?));
    match args.choice("field", &["saddr", "sport", "daddr", "dport", "proto"])? {
        "saddr" => pattern.saddr = Some(args.ipv4("address")?),
        "sport" => pattern.sport = port(args)?,
        "daddr" => pattern.daddr = Some(args.ipv4("address")?),
        "dport" => pattern.dport = port(args)?,
        _ => {
            pattern.protocol = Some(match protocol(args) {
                Some(ip) => ip,
                None => args.number("protocol", 0, 255)? as u8,
            });
        }
    }
    Ok(())
}

/// A listing in progress.
struct Show {
    listing: Listing,
    /// Number of workers whose heading has been printed.
    titled: usize,
    left: u64,
}

impl Task<Control> for Show {
    fn poll(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        let next = if self.left > 0 { self.listing.next(c) } else { Next::End };
        let slice = match next {
            Next::Some(slice) => slice,
            Next::Late => return TaskPoll::At(now + REST),
            Next::End => {
                out.end_elements();
                return TaskPoll::Done;
            }
        };
        let (worker, n, some) = (slice.worker, slice.of, slice.sessions);
        if self.titled <= worker {
            let name = c.threads().get(worker + 1).map_or(String::new(), |t| t.name.clone());
            out.line(format_args!("-------- thread {} {name}: {n} sessions --------", worker + 1));
            self.titled = worker + 1;
        }
        for s in some.iter().take(self.left as usize) {
            if out.wants_json() {
                out.element(row(s));
            } else {
                print(s, out);
            }
        }
        self.left = self.left.saturating_sub(some.len() as u64);
        TaskPoll::At(now)
    }
}

fn print(s: &SessionView, out: &mut Output) {
    let name = protocol_name(s.inside.protocol);
    let (mapped, port) = s.mapped();
    let Tuple { src, sport, table, .. } = s.inside;
    out.line(format_args!("    i2o {src} proto {name} port {sport} fib {table}"));
    out.line(format_args!("    o2i {mapped} proto {name} port {port} fib {}", s.outside.table));
    let (external, external_port) = s.external();
    let seen = (s.inside.dst, s.inside.dport);
    if s.marks & TWICE != 0 {
        out.line(format_args!(
            "       external host o2i {external}:{external_port} i2o {}:{}",
            seen.0, seen.1
        ));
    } else {
        out.line(format_args!("       external host {external}:{external_port}"));
    }
    out.line(format_args!("       i2o flow: {}", flow(&s.inside, &s.outside)));
    out.line(format_args!("       o2i flow: {}", flow(&s.outside, &s.inside)));
    out.line(format_args!("       index {}", s.index));
    out.line(format_args!("       age {:.2}", f64::from(s.age) / 1e3));
    out.line(format_args!("       timeout in {:.2}", f64::from(s.left) / 1e3));
    out.line(format_args!("       total packets {}, total bytes {}", s.packets, s.bytes));
    let kind = match () {
        () if s.is_direct() => "forwarded from outside, not translated",
        () if s.is_static() => "static translation",
        () => "dynamic translation",
    };
    let mut words = vec![kind.to_owned()];
    words.extend((s.marks & BALANCED != 0).then(|| "load-balancing".into()));
    words.extend((s.marks & TWICE != 0).then(|| "twice-nat".into()));
    words.extend((s.marks & HAIRPIN != 0).then(|| "hairpinning".into()));
    words.extend((s.inside.protocol == 6).then(|| tcp_word(s).into()));
    out.line(format_args!("       {}", words.join(", ")));
}

fn tcp_word(s: &SessionView) -> &'static str {
    match s.class {
        crate::session::Class::TcpEstablished => "established",
        _ if s.is_closing() => "closing",
        _ => "transitory",
    }
}

/// The packets of a key before and after translation.
fn flow(from: &Tuple, back: &Tuple) -> String {
    let to = back.reversed();
    format!(
        "match: saddr {} sport {} daddr {} dport {} proto {} fib_idx {} rewrite: saddr {} sport {} \
         daddr {} dport {} txfib {}",
        from.src,
        from.sport,
        from.dst,
        from.dport,
        protocol_name(from.protocol),
        from.table,
        to.src,
        to.sport,
        to.dst,
        to.dport,
        to.table,
    )
}

fn row(s: &SessionView) -> Value {
    let end = |(address, port): (std::net::Ipv4Addr, u16)| json!({ "address": address.to_string(), "port": port });
    json!({
        "worker": s.worker, "index": s.index, "protocol": s.inside.protocol,
        "inside": end((s.inside.src, s.inside.sport)), "inside-vrf": s.inside.table,
        "outside": end(s.mapped()), "outside-vrf": s.outside.table,
        "external": end(s.external()), "external-seen-inside": end((s.inside.dst, s.inside.dport)),
        "packets": s.packets, "bytes": s.bytes,
        "age": f64::from(s.age) / 1e3, "timeout": f64::from(s.left) / 1e3,
        "static": s.is_static(), "twice-nat": s.marks & TWICE != 0,
        "load-balancing": s.marks & BALANCED != 0, "hairpinning": s.marks & HAIRPIN != 0,
        "forwarded": s.is_direct(),
        "tcp-state": if s.inside.protocol == 6 { Value::from(tcp_word(s)) } else { Value::Null },
    })
}
