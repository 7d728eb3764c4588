//! Common parts of this feature's commands.

use crate::proxy_arp::{self, ProxyError, Range};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::refused;
use thalweg_feat_ip::TableId;
use thalweg_graph::Control;

/// Converts an error to a command's error with its return code.
pub(crate) fn proxy_failed(e: ProxyError) -> CliError {
    let code = match e {
        ProxyError::Device(e) => return refused(e),
        ProxyError::NoTable(_) => -3,
        ProxyError::Unknown(_) => -6,
        ProxyError::Order { .. } => -7,
        ProxyError::Full => -162,
    };
    CliError::with_code(e, code)
}

/// Adds or removes a range of proxy ARP; its words may come in any order.
pub struct ProxyRange {
    /// The command.
    pub(crate) path: &'static str,
    /// Its arguments.
    pub(crate) usage: &'static str,
    /// Its words.
    pub(crate) words: &'static [&'static str],
}

impl Command<Control> for ProxyRange {
    fn path(&self) -> &'static str {
        self.path
    }

    fn usage(&self) -> &'static str {
        self.usage
    }

    fn help(&self) -> &'static str {
        "Answer ARP requests for a range of addresses, on interfaces with `set interface proxy-arp'\n\
         Only requests that come by an interface of the table are answered."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        proxy_range(c, args)
    }

    fn complete(&self, _: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        self.words.iter().map(|word| (*word).to_owned()).collect()
    }
}

fn proxy_range(c: &mut Control, args: &mut Args<'_>) -> Result<Outcome<Control>, CliError> {
    let (mut table, mut del, mut ends) = (TableId(0), false, [None; 2]);
    while !args.is_empty() {
        if args.exact("del") || args.exact("delete") {
            del = true;
        } else if args.exact("table-id") || args.exact("table-ID") {
            table = TableId(args.u32("table")?);
        } else if args.exact("start") {
            ends[0] = Some(args.ipv4("first address")?);
        } else if args.exact("end") || args.exact("-") {
            ends[1] = Some(args.ipv4("last address")?);
        } else if ends[0].is_none() {
            ends[0] = Some(args.ipv4("first address")?);
        } else {
            args.end()?;
        }
    }
    let [first, last] = ends;
    let Some(first) = first else { return Err(args.bad("first address", "an IPv4 address")) };
    let Some(last) = last else { return Err(args.bad("last address", "an IPv4 address")) };
    let range = Range { table, first, last };
    let done = if del { proxy_arp::remove(c, range) } else { proxy_arp::add(c, range) };
    done.map(|()| Outcome::Done).map_err(proxy_failed)
}
