//! `nat44 del session`.

use crate::view::{self, Listing, SessionFilter};
use std::net::SocketAddrV4;
use std::time::Instant;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, Task, TaskPoll};
use thalweg_engine::ask_workers;
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_wire::ip::protocol;
use thalweg_wire::nat::tuple::{MAX_TABLE, Tuple};

/// `nat44 del session`
pub struct Nat44DelSession;

/// The command.
pub static COMMAND: Nat44DelSession = Nat44DelSession;

impl Command<Control> for Nat44DelSession {
    fn path(&self) -> &'static str {
        "nat44 del session"
    }

    fn usage(&self) -> &'static str {
        "in|out <address>:<port> tcp|udp|icmp [vrf <table>] [external-host <address>:<port>]"
    }

    fn help(&self) -> &'static str {
        "End a session, or all sessions of an address and port without external-host\n\
         in: the inside address and port, in table vrf; out: the external address and port. For ICMP the\n\
         port is the identifier of the query."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let side = args.choice("side", &["in", "out"])?;
        let near = crate::cli_support::endpoint(args, "address and port")?;
        let ip = match args.choice("protocol", &["tcp", "udp", "icmp"])? {
            "tcp" => protocol::TCP,
            "udp" => protocol::UDP,
            _ => protocol::ICMP,
        };
        let (mut far, mut table) = (None, 0);
        while !args.is_empty() {
            if args.keyword("external-host") {
                let what = "address and port of the external host";
                far = Some(crate::cli_support::endpoint(args, what)?);
            } else if args.keyword("vrf") {
                table = args.number("table", 0, u64::from(MAX_TABLE))? as u32;
            } else {
                args.end()?;
            }
        }
        let from_inside = side == "in";
        let Some(far) = far else {
            let filter =
                SessionFilter::of_end(from_inside, (*near.ip(), near.port()), ip, TableId(table));
            return Ok(Outcome::pending(Ending { near, listing: Listing::new(filter), ended: 0 }));
        };
        let inside = Tuple {
            src: *near.ip(),
            sport: near.port(),
            dst: *far.ip(),
            dport: far.port(),
            protocol: ip,
            table,
        };
        let tuple = if from_inside { inside } else { inside.reversed() };
        let removal = view::removal(c, tuple, from_inside);
        ask_workers(c, out, removal, move |_, done, _| match done.contains(&Some(true)) {
            true => Ok(()),
            false => Err(CliError::failed(format!("no session of {near} with {far}"))),
        })
    }
}

/// A task that ends the sessions of an endpoint in slices.
struct Ending {
    near: SocketAddrV4,
    listing: Listing,
    ended: usize,
}

impl Task<Control> for Ending {
    fn poll(&mut self, c: &mut Control, now: Instant, _: &mut Output) -> TaskPoll {
        match view::delete_some(c, &mut self.listing) {
            Some(ended) => {
                self.ended += ended;
                TaskPoll::At(now)
            }
            None if self.ended == 0 => {
                let text = format!("no session of {}", self.near);
                TaskPoll::Failed(CliError::failed(text))
            }
            None => TaskPoll::Done,
        }
    }
}
