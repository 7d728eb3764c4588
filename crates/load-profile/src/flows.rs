//! Connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thalweg_config::declare::Problem;
use thalweg_load::talk::{
    self, CloseBy, Exchange, Gaps, LONGEST_PAUSE, MAX_PATIENCE, MAX_STEPS, MAX_WAIT, Plan,
    PlanError, Pool, Program, Protocol, Step, Talk, TcpTimes,
};

use crate::Origin;
use crate::layers::one_byte;
use crate::pools::Pools;
use crate::streams::time;
use crate::tree::{At, Out};
use crate::words::{self, Kind};

pub(crate) const KEYS: [&str; 16] = [
    "name", "pair", "share", "hold", "limit", "total", "udp", "tcp", "exchange", "client",
    "server", "close", "life", "ramp", "gaps", "patience",
];

/// Rise of the rate at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Time until the full rate, in microseconds.
    pub time: u64,
    /// True if it rises by factors rather than by equal steps.
    pub exponential: bool,
}

/// The rate of growth by factors: it begins at 1/2^10 of what is wanted.
const DOUBLINGS: f64 = 10.0;

impl Ramp {
    /// Share of the full rate at a time since the start, in microseconds.
    pub fn share(&self, at: u64) -> f64 {
        if at >= self.time {
            return 1.0;
        }
        let part = at as f64 / self.time as f64;
        if self.exponential { (DOUBLINGS * (part - 1.0)).exp2() } else { part }
    }
}

/// A kind of conversation, and what its plan needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) talk: Talk,
    pub(crate) pair: u32,
    pub(crate) clients: Pool,
    pub(crate) servers: Pool,
    pub(crate) ports: (u16, u16),
    pub(crate) times: TcpTimes,
    pub(crate) mss: u16,
    /// If the profile says it.
    pub(crate) patience: Option<u64>,
    pub(crate) gaps: Gaps,
    pub(crate) hold: Option<u32>,
    pub(crate) total: Option<u64>,
    pub(crate) ramp: Option<Ramp>,
}

/// A time in microseconds, which the engine counts in.
fn micros(at: &At<'_>) -> Out<u64> {
    up_to(at, MAX_WAIT)
}

fn up_to(at: &At<'_>, most: u64) -> Out<u64> {
    match time(at)? / 1000 {
        0 => at.wrong("less than a microsecond"),
        time if time <= most => Ok(time),
        _ => at.wrong(format!("longer than {} minutes", most / 60_000_000)),
    }
}

/// Reads a kind of conversations.
pub(crate) fn flow(at: &At<'_>, number: usize, pools: &Pools) -> Out<Read> {
    at.keys(&KEYS)?;
    let name = at.get("name").map_or(Ok(format!("flow{number}")), |at| at.word())?;
    let pair = at.get("pair").map_or(Ok(0), |at| at.whole(0, 255))? as u32;
    let (protocol, ends) = match (at.get("tcp"), at.get("udp")) {
        (Some(tcp), None) => (Protocol::Tcp, tcp),
        (None, Some(udp)) => (Protocol::Udp, udp),
        _ => return at.wrong("one of `tcp' and `udp' is needed, with client, server and port"),
    };
    let tcp_keys = [
        "client",
        "ports",
        "server",
        "port",
        "mss",
        "retry",
        "time_wait",
        "delayed_ack",
        "keepalive",
    ];
    match protocol {
        Protocol::Tcp => ends.keys(&tcp_keys)?,
        Protocol::Udp => ends.keys(&["client", "ports", "server", "port", "idle"])?,
    }
    let clients = addresses(&ends.need("client", "a pool")?, pools)?;
    let servers = addresses(&ends.need("server", "a pool")?, pools)?;
    let port = ends.need("port", "the servers' port")?.whole(1, 65_535)? as u16;
    let ports = match ends.get("ports") {
        None => (1024, 64_512),
        Some(at) => match Kind::Number.range(&at.word()?) {
            Some((low, high)) if (1..=high).contains(&low) && high <= 65_535 => {
                (low as u16, (high - low + 1) as u16)
            }
            _ => return at.expected("a range of ports, as 1024-65535"),
        },
    };
    let mut times = TcpTimes::default();
    if let Some(retry) = ends.get("retry") {
        retry.keys(&["first", "least", "most", "times"])?;
        times.first = retry.get("first").map_or(Ok(times.first), |at| micros(&at))?;
        times.least = retry.get("least").map_or(Ok(times.least), |at| micros(&at))?;
        times.most = retry.get("most").map_or(Ok(times.most), |at| micros(&at))?;
        times.retries =
            retry.get("times").map_or(Ok(times.retries.into()), |at| at.whole(0, 15))? as u8;
    }
    times.time_wait = ends.get("time_wait").map_or(Ok(times.time_wait), |at| micros(&at))?;
    times.delayed_ack = ends.get("delayed_ack").map_or(Ok(times.delayed_ack), |at| micros(&at))?;
    times.keepalive = ends.get("keepalive").map(|at| micros(&at)).transpose()?;
    let most = talk::max_mss(clients.first.is_ipv4());
    let mss = ends.get("mss").map_or(Ok(most.into()), |at| at.whole(1, most.into()))? as u16;
    let patience = match (at.get("patience"), ends.get("idle")) {
        (Some(at), _) | (None, Some(at)) => Some(up_to(&at, MAX_PATIENCE)?),
        (None, None) => None,
    };
    let (client, server, fill) = programs(at, protocol)?;
    let hold = at.get("hold").map(|at| at.whole(1, 1 << 30)).transpose()?.map(|n| n as u32);
    let whole = |key: &str, most: u64| at.get(key).map(|at| at.whole(1, most)).transpose();
    let talk = Talk {
        name,
        protocol,
        port,
        client,
        server,
        fill,
        share: whole("share", 1_000_000)?.unwrap_or(1) as u32,
        limit: whole("limit", 1 << 30)?.map(|n| n as u32),
    };
    if talk.is_endless() && hold.is_none() {
        let of = at.get("close").or_else(|| at.get("client")).unwrap_or_else(|| at.clone());
        return of.wrong(
            "nobody ever closes these connections, so at a rate none would be complete; say how \
             many are kept open (`hold: 1000'), or who closes them",
        );
    }
    let ramp = at.get("ramp").map(|at| ramp(&at)).transpose()?;
    Ok(Read {
        talk,
        pair,
        clients,
        servers,
        ports,
        times,
        mss,
        patience,
        gaps: at.get("gaps").map_or(Ok(Gaps::Even), |at| at.one_of(&GAPS))?,
        hold,
        total: whole("total", u64::MAX)?,
        ramp,
    })
}

fn ramp(at: &At<'_>) -> Out<Ramp> {
    let word = at.word()?;
    let (length, form) = word.trim().split_once(' ').unwrap_or((&word, "linear"));
    let exponential = match form.trim() {
        "linear" => false,
        "exponential" => true,
        _ => return at.expected("a time and linear or exponential, as `3s linear'"),
    };
    match words::nanos(length).map(|time| time / 1000) {
        Some(time @ 1..=MAX_WAIT) => Ok(Ramp { time, exponential }),
        _ => at.expected("a time and linear or exponential, as `3s linear'"),
    }
}

fn addresses(at: &At<'_>, pools: &Pools) -> Out<Pool> {
    let pool = pools.find(at)?;
    let [(low, high)] = pool.values[..] else {
        return at.wrong("connections need a pool that is one range of addresses");
    };
    if pool.random {
        return at.wrong("connections take the addresses in turn: `pick: next'");
    }
    let Some(count) = u32::try_from(high - low).ok().and_then(|n| n.checked_add(1)) else {
        return at.wrong("more than 2^32 addresses; use a longer prefix");
    };
    let first = match pool.v6 {
        false => IpAddr::V4(Ipv4Addr::from_bits(low as u32)),
        true => IpAddr::V6(Ipv6Addr::from_bits(low)),
    };
    Ok(Pool { first, count })
}

const GAPS: [(&str, Gaps); 2] = [("even", Gaps::Even), ("exponential", Gaps::Exponential)];

const CLOSE: [(&str, CloseBy); 5] = [
    ("client", CloseBy::Client),
    ("server", CloseBy::Server),
    ("both", CloseBy::Both),
    ("reset", CloseBy::Reset),
    ("never", CloseBy::Never),
];

/// Reads the programs of client and server, and what fills their messages.
fn programs(at: &At<'_>, protocol: Protocol) -> Out<(Program, Program, (u8, u8))> {
    let close = at.get("close").map(|at| at.one_of(&CLOSE)).transpose()?;
    let life = match at.get("life") {
        None => None,
        Some(at) => Some(wait(&at)?),
    };
    let sides = (at.get("client"), at.get("server"));
    let (client, server) = match (at.get("exchange"), sides) {
        (exchange, (None, None)) => {
            let (messages, wait, fill) = match exchange {
                Some(at) => exchanged(&at, close)?,
                None => {
                    let close = close.unwrap_or_default();
                    (Exchange { close, ..Exchange::default() }, None, (b'x', b'y'))
                }
            };
            let (mut client, mut server) = messages.programs(protocol == Protocol::Udp);
            let place = server.iter_mut().find(|step| matches!(step, Step::Wait { .. }));
            if let (Some(place), Some(wait)) = (place, wait) {
                *place = wait;
            }
            if let Some(life) = life {
                // The wait comes before the client closes, or waits until the server does.
                let end = client.iter().position(|s| matches!(s, Step::AwaitClose | Step::Reset));
                client.insert(end.unwrap_or(client.len()), life);
            }
            return Ok((client, server, fill));
        }
        (None, (Some(client), Some(server))) => (client, server),
        (Some(exchange), _) => {
            return exchange.wrong("`exchange' does not go with `client' and `server'");
        }
        (None, _) => return at.wrong("both `client' and `server' need their steps"),
    };
    if let Some(at) = at.get("close").or_else(|| at.get("life")) {
        return at.wrong("does not go with `client' and `server': their steps say it");
    }
    let mut fill = [None, None];
    let [client_fill, server_fill] = &mut fill;
    let client = steps(&client, client_fill)?;
    let server = steps(&server, server_fill)?;
    Ok((client, server, (fill[0].unwrap_or(b'x'), fill[1].unwrap_or(b'y'))))
}

/// Reads a time to wait: `50ms`, drawn evenly from `10-50ms`, or `exp 50ms`.
fn wait(at: &At<'_>) -> Out<Step> {
    let word = at.word()?;
    if let Some(mean) = word.trim().strip_prefix("exp ") {
        return match words::nanos(mean.trim()).map(|time| time / 1000) {
            Some(mean) if (1..=MAX_WAIT / LONGEST_PAUSE).contains(&mean) => {
                Ok(Step::Pause { mean })
            }
            _ => at.expected("a mean time from 1us to 225s, as `exp 50ms'"),
        };
    }
    match words::nanos_range(&word) {
        Some((least, most)) if least <= most && most / 1000 <= MAX_WAIT => {
            Ok(Step::Wait { least: least / 1000, most: most / 1000 })
        }
        _ => at.expected("a time of at most 30 minutes, as 50ms, 10-50ms or `exp 50ms'"),
    }
}

/// Reads `20 x "a"`, or a number of bytes; returns bytes and what fills them.
fn message(at: &At<'_>) -> Out<(u32, Option<u8>)> {
    const WHAT: &str = "a number of bytes, as 20 or 20 x \"a\"";
    let word = at.word()?;
    let (bytes, fill) = match word.split_once(" x ") {
        Some((bytes, fill)) => (bytes, Some(fill.trim())),
        None => (word.as_str(), None),
    };
    let fill = match fill.map(str::as_bytes) {
        None => None,
        // A character, or a byte as a number.
        Some([b'"', byte, b'"'] | [b'\'', byte, b'\'']) => Some(*byte),
        Some([byte]) if !byte.is_ascii_digit() => Some(*byte),
        Some(number) => {
            let number = std::str::from_utf8(number).ok().and_then(words::whole);
            match number.and_then(|n| u8::try_from(n).ok()) {
                Some(byte) => Some(byte),
                None => return at.expected(WHAT),
            }
        }
    };
    let bytes = words::whole(bytes).filter(|bytes| (1..=1 << 30).contains(bytes));
    match bytes {
        Some(bytes) => Ok((bytes as u32, fill)),
        None => at.expected(WHAT),
    }
}

/// Reads an exchange: with what the server waits before each answer, and what fills messages.
fn exchanged(at: &At<'_>, close: Option<CloseBy>) -> Out<(Exchange, Option<Step>, (u8, u8))> {
    at.keys(&["messages", "request", "answer", "wait", "fill"])?;
    let mut exchange = Exchange { close: close.unwrap_or_default(), ..Exchange::default() };
    let mut fill = (b'x', b'y');
    if let Some(at) = at.get("fill") {
        match &at.list()?[..] {
            [client, server] => fill = (one_byte(client)?, one_byte(server)?),
            _ => return at.wrong("two bytes are needed: [client, server]"),
        }
    }
    if let Some(at) = at.get("messages") {
        exchange.messages = at.whole(0, 65_535)? as u16;
    }
    if let Some(at) = at.get("request") {
        let (bytes, own) = message(&at)?;
        (exchange.request, fill.0) = (bytes, own.unwrap_or(fill.0));
    }
    if let Some(at) = at.get("answer") {
        let (bytes, own) = message(&at)?;
        (exchange.answer, fill.1) = (bytes, own.unwrap_or(fill.1));
    }
    let wait = at.get("wait").map(|at| wait(&at)).transpose()?;
    let wait = wait.filter(|step| *step != Step::Wait { least: 0, most: 0 });
    exchange.wait = u64::from(wait.is_some());
    Ok((exchange, wait, fill))
}

/// Reads the steps of a side.
fn steps(at: &At<'_>, fill: &mut Option<u8>) -> Out<Program> {
    let mut program = Program::new();
    for step in at.list()? {
        read_step(&step, &mut program, fill, false)?;
        if program.len() > MAX_STEPS {
            return at.wrong(format!("more than {MAX_STEPS} steps"));
        }
    }
    Ok(program)
}

const STEPS: &str = "send, expect, wait, repeat, close, reset or await_close";

fn read_step(at: &At<'_>, program: &mut Program, fill: &mut Option<u8>, repeated: bool) -> Out<()> {
    if !at.is_map() {
        let word = at.word()?;
        program.push(match word.as_str() {
            "close" => Step::Close,
            "reset" => Step::Reset,
            "await_close" => Step::AwaitClose,
            _ => return at.expected(&format!("a step: {STEPS}")),
        });
        return Ok(());
    }
    let entries = at.entries()?;
    let [(name, inner)] = &entries[..] else {
        return at.wrong("each step of the list is one key, as in `- send: 20'");
    };
    match *name {
        "send" => {
            let (bytes, own) = message(inner)?;
            match (*fill, own) {
                (Some(before), Some(own)) if before != own => {
                    return inner.wrong("all messages of a side are filled with the same byte");
                }
                (_, own) => *fill = own.or(*fill),
            }
            program.push(Step::Send { bytes });
        }
        "expect" => {
            let word = inner.word()?;
            let number = word.trim_end_matches("datagrams").trim_end_matches("datagram");
            match words::whole(number.trim()).filter(|n| (1..=1 << 30).contains(n)) {
                Some(count) => program.push(Step::Expect { count: count as u32 }),
                None => return inner.expected("a number of bytes, or `1 datagram'"),
            }
        }
        "wait" => program.push(wait(inner)?),
        "repeat" if repeated => return at.wrong("repetitions do not nest"),
        "repeat" => {
            inner.keys(&["times", "of"])?;
            let times = inner.need("times", "their number")?.whole(1, 65_535)? as u16;
            let from = program.len() as u16;
            for step in inner.need("of", "steps")?.list()? {
                read_step(&step, program, fill, true)?;
                if program.len() > MAX_STEPS {
                    return at.wrong(format!("more than {MAX_STEPS} steps"));
                }
            }
            if program.len() == usize::from(from) {
                return inner.wrong("it repeats no steps");
            }
            program.push(Step::Repeat { from, times });
        }
        _ => return at.wrong(format!("no step `{name}'; steps: {STEPS}")),
    }
    Ok(())
}

/// Conversations with a rate of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Flows {
    /// Their plan. MAC addresses, room and lateness are the default ones: the runner of the plan
    /// sets them.
    pub plan: Plan,
    /// Share of the profile's conversations: the sum of those of the plan's kinds.
    pub share: u64,
    /// Number held open, instead of a rate.
    pub hold: Option<u32>,
    /// Number after which no more are opened.
    pub total: Option<u64>,
    /// Rise of the rate.
    pub ramp: Option<Ramp>,
}

impl Read {
    /// The plan of this kind alone.
    fn plan(&self) -> Plan {
        let Read { clients, servers, ports, times, mss, gaps, .. } = *self;
        let plan = Plan::of(self.talk.clone());
        let patience = self.patience.unwrap_or(plan.patience);
        Plan { clients, servers, ports, times, mss, patience, gaps, ..plan }
    }

    /// Checks a plan with this kind, which was read from `at`.
    fn check(&self, plan: &Plan, at: &At<'_>) -> Out<()> {
        let Err(error) = plan.check() else { return Ok(()) };
        let protocol = if self.talk.protocol == Protocol::Tcp { "tcp" } else { "udp" };
        // Parts missing there have their default.
        let keys: &[&str] = match &error {
            PlanError::Program { side, .. } | PlanError::Datagrams { side, .. } => {
                &[side, "exchange"]
            }
            PlanError::Families { .. } | PlanError::Servers(_) => &[protocol, "server"],
            PlanError::Clients { .. } => &[protocol, "client"],
            PlanError::Ports { .. } => &[protocol, "ports"],
            PlanError::Same(..) => &[protocol, "port"],
            PlanError::Time { .. } | PlanError::Mss { .. } => &[protocol],
            PlanError::Talks(_) | PlanError::Share(_) | PlanError::Room { .. } => &[],
        };
        let mut place = at.clone();
        for key in keys {
            place = place.get(key).unwrap_or(place);
        }
        place.wrong(error.to_string())
    }
}

/// A plan that grows, and the first kind that was put into it.
type Group = (Read, Flows);

/// Puts kinds that have the same ends together; each has the part that it was read from.
pub(crate) fn group(all: Vec<(Read, Origin)>, problems: &mut Vec<Problem>) -> Vec<(u32, Flows)> {
    let mut groups: Vec<Group> = Vec::new();
    for (read, (path, node)) in all {
        if let Err(problem) = put(&mut groups, read, &At { node: &node, path }) {
            problems.push(problem);
        }
    }
    groups.into_iter().map(|(read, flows)| (read.pair, flows)).collect()
}

/// Puts a kind into a group where it fits, or into a new one.
fn put(groups: &mut Vec<Group>, read: Read, at: &At<'_>) -> Out<()> {
    let plan = read.plan();
    read.check(&plan, at)?;
    let Read { hold, total, ramp, .. } = read;
    let share = u64::from(read.talk.share);
    let same = |(other, _): &&mut Group| {
        // A number that is held or a total counts its own kind only.
        (hold, total, other.hold, other.total) == (None, None, None, None)
            && Read { talk: other.talk.clone(), ..read.clone() } == *other
    };
    let Some((_, flows)) = groups.iter_mut().find(same) else {
        groups.push((read, Flows { plan, share, hold, total, ramp }));
        return Ok(());
    };
    flows.plan.talks.push(read.talk.clone());
    if let Err(problem) = read.check(&flows.plan, at) {
        flows.plan.talks.pop();
        return Err(problem);
    }
    flows.share += share;
    if read.patience.is_none() {
        flows.plan.patience = flows.plan.patience.max(plan.patience);
    }
    Ok(())
}
