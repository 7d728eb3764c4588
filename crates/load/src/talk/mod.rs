//! Conversations between many clients and servers: TCP with retransmission, and UDP.
//!
//! [`Clients`] open conversations at a rate, or hold a number of them; [`Servers`] answer. Both
//! follow programs of [`Step`]s. Neither knows what lies between them: they are passed received
//! frames, and write frames to send into a [`Sink`](crate::Sink).
//!
//! The TCP (RFC 9293) has retransmission with a measured timeout (RFC 6298), fast retransmission
//! after three duplicate acknowledgements, delayed acknowledgements, windows in both directions,
//! close from either side, reset, TIME_WAIT, and clients that ask silent servers whether they are
//! there. On loss it goes back to the first segment lost; it receives in order only. Left out are
//! selective acknowledgements, window scale, timestamps, urgent data, ECN and path MTU discovery.
//! Congestion control is slow start alone: the TCP shows what a device does to connections, not
//! what a link can carry.
//!
//! A connection takes 64 bytes on each side, and eight more on a server for its look-up.

mod clients;
mod counts;
mod flow;
mod machine;
mod packet;
mod pool;
mod program;
mod servers;
mod split;
mod tcb;
#[cfg(test)]
mod tests;
mod wheel;

pub use clients::{Clients, Opening};
pub use counts::{Counts, Judged, Lost};
pub use flow::Flow;
pub use packet::Incoming;
pub use pool::Pool;
pub use program::{
    CloseBy, Exchange, LONGEST_PAUSE, MAX_MESSAGE, MAX_STEPS, MAX_WAIT, Program, ProgramError, Step,
};
pub use servers::Servers;
pub use split::{Share, Split};

use crate::{MacAddr, Micros};

/// The protocol of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A kind of conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Talk {
    /// Name in reports.
    pub name: String,
    /// Protocol.
    pub protocol: Protocol,
    /// The servers' port.
    pub port: u16,
    /// The client's steps.
    pub client: Program,
    /// The server's steps.
    pub server: Program,
    /// The bytes that fill the messages of client and server.
    pub fill: (u8, u8),
    /// Its share of all conversations opened, relative to the other kinds.
    pub share: u32,
    /// Maximum number open at a time.
    pub limit: Option<u32>,
}

/// Behaviour of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpTimes {
    /// Time after which a segment is sent again as long as no round trip was measured, in
    /// microseconds.
    pub first: Micros,
    /// Least such time.
    pub least: Micros,
    /// Greatest such time; it doubles with each retry up to this.
    pub most: Micros,
    /// Number of retries after which a connection is lost.
    pub retries: u8,
    /// Time in TIME_WAIT.
    pub time_wait: Micros,
    /// Time within which an acknowledgement follows that nothing else carries.
    pub delayed_ack: Micros,
    /// Time of silence after which a client asks whether the server is still there, by an empty
    /// segment with an old number (RFC 9293 §3.8.4); none: never.
    pub keepalive: Option<Micros>,
}

impl Default for TcpTimes {
    fn default() -> Self {
        TcpTimes {
            first: 500_000,
            least: 200_000,
            most: 5_000_000,
            retries: 5,
            time_wait: 500_000,
            delayed_ack: 100_000,
            keepalive: None,
        }
    }
}

/// Gaps between conversations that are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// Evenly.
    #[default]
    Even,
    /// Gaps of the exponential distribution, as of many independent clients.
    Exponential,
}

/// Conversations between clients and servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The clients' addresses.
    pub clients: Pool,
    /// First port of a client, and number of ports.
    pub ports: (u16, u16),
    /// The servers' addresses.
    pub servers: Pool,
    /// MAC addresses of the clients' side: its own, and the one that it sends to.
    pub client_macs: (MacAddr, MacAddr),
    /// MAC addresses of the servers' side: its own, and the one that it sends to.
    pub server_macs: (MacAddr, MacAddr),
    /// Kinds of conversations.
    pub talks: Vec<Talk>,
    /// Times of TCP.
    pub times: TcpTimes,
    /// Maximum payload of a segment in bytes.
    pub mss: u16,
    /// Room for conversations, TIME_WAIT included.
    pub room: u32,
    /// Time after which a side that hears nothing gives up, in microseconds.
    pub patience: Micros,
    /// Gaps between conversations that are opened.
    pub gaps: Gaps,
    /// Time by which conversations are opened late, in microseconds; those that are due longer are
    /// not opened.
    pub late: Micros,
}

/// A plan that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Addresses of two families.
    #[error("clients {clients} and servers {servers}: both must be IPv4, or both IPv6")]
    Families {
        /// The clients.
        clients: Pool,
        /// The servers.
        servers: Pool,
    },
    /// More server addresses than slots can hold.
    #[error("{0} addresses of servers: the limit is 65536")]
    Servers(u64),
    /// The clients' ports.
    #[error("{count} ports from {first}: they must lie between 1 and 65535, and be at least one")]
    Ports {
        /// First port.
        first: u16,
        /// Number.
        count: u16,
    },
    /// Number of kinds.
    #[error("{0} kinds of conversations: there must be 1 to 256")]
    Talks(usize),
    /// A kind without a share.
    #[error("{0}: its share is 0; leave it out, or give it at least 1")]
    Share(String),
    /// Two kinds that a server cannot tell apart.
    #[error("{0} and {1}: they have the same protocol and port; servers could not tell them apart")]
    Same(String, String),
    /// A program.
    #[error("{talk}, {side}: {error}")]
    Program {
        /// The kind.
        talk: String,
        /// Its side.
        side: &'static str,
        /// The fault.
        error: ProgramError,
    },
    /// A step that UDP does not have.
    #[error("{talk}, {side}, step {step}: UDP has no reset")]
    Datagrams {
        /// The kind.
        talk: String,
        /// Its side.
        side: &'static str,
        /// Number of the step, from 1.
        step: usize,
    },
    /// Room.
    #[error("room for {room} conversations: it must be 1 to {most}")]
    Room {
        /// Room that was asked for.
        room: u32,
        /// Most.
        most: u32,
    },
    /// More slots than can be numbered: each client has one at least.
    #[error("{clients} clients take {slots} slots: {most} are possible; use fewer addresses")]
    Clients {
        /// Number of clients.
        clients: u32,
        /// Slots that they take.
        slots: u64,
        /// Most.
        most: u32,
    },
    /// Segment size.
    #[error("segments of {mss} bytes: they must have 1 to {most}")]
    Mss {
        /// Size that was asked for.
        mss: u16,
        /// Most.
        most: u16,
    },
    /// A time.
    #[error("{what} of {micros} µs: it must be 1 to {most} µs")]
    Time {
        /// The limit.
        what: &'static str,
        /// Its value.
        micros: Micros,
        /// Its greatest value.
        most: Micros,
    },
}

/// Maximum [`Plan::patience`], in microseconds: a minute longer than the longest wait. The clock of
/// connections tells less than 36 minutes from what has passed.
pub const MAX_PATIENCE: Micros = MAX_WAIT + 60_000_000;

/// [`Plan::patience`] with programs that do not wait, in microseconds.
const PATIENCE: Micros = 30_000_000;

/// Returns a [`Plan::patience`] with which no side gives up while the other one waits as its
/// program says.
pub fn patience(client: &[Step], server: &[Step]) -> Micros {
    let silence = program::silence(client).max(program::silence(server));
    silence.saturating_add(PATIENCE).min(MAX_PATIENCE)
}

/// Maximum [`Plan::mss`] over IPv4 or IPv6, for which Ethernet carries packets of 1500 bytes.
pub fn max_mss(is_v4: bool) -> u16 {
    packet::max_data(Protocol::Tcp, is_v4)
}

/// Maximum [`Plan::room`]: slots are numbered in 31 bits, and a link's top bit marks the head of a
/// list.
pub const MAX_ROOM: u32 = 1 << 30;

impl Plan {
    /// Conversations as `cps_ndr.py` has them: 65,536 clients and 256 servers, and one kind.
    pub fn of(talk: Talk) -> Plan {
        let patience = patience(&talk.client, &talk.server);
        let pool =
            |first: [u8; 4], count| Pool { first: std::net::Ipv4Addr::from(first).into(), count };
        let (client, server) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        Plan {
            clients: pool([16, 0, 0, 0], 65_536),
            ports: (1024, 64_512),
            servers: pool([48, 0, 0, 0], 256),
            client_macs: (client, server),
            server_macs: (server, client),
            talks: vec![talk],
            times: TcpTimes::default(),
            mss: max_mss(true),
            room: 1 << 20,
            patience,
            gaps: Gaps::Even,
            late: 10_000,
        }
    }

    /// Number of conversations that the clients have room for: that of the plan, and as many more
    /// as each has as much of.
    pub fn slots(&self) -> u64 {
        u64::from(self.clients.count) * u64::from(clients::slots_of_each(self))
    }

    /// Checks the plan.
    ///
    /// # Errors
    /// [`PlanError`] names what is wrong.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.clients.first.is_ipv4() != self.servers.first.is_ipv4() {
            return Err(PlanError::Families { clients: self.clients, servers: self.servers });
        }
        if self.servers.count > 65_536 {
            return Err(PlanError::Servers(self.servers.count.into()));
        }
        let (first, count) = self.ports;
        if first == 0 || count == 0 || u32::from(first) + u32::from(count) > 65_536 {
            return Err(PlanError::Ports { first, count });
        }
        if self.talks.is_empty() || self.talks.len() > 256 {
            return Err(PlanError::Talks(self.talks.len()));
        }
        if self.room == 0 || self.room > MAX_ROOM {
            return Err(PlanError::Room { room: self.room, most: MAX_ROOM });
        }
        let slots = self.slots();
        if self.clients.count == 0 || slots > MAX_ROOM.into() {
            let clients = self.clients.count;
            return Err(PlanError::Clients { clients, slots, most: MAX_ROOM });
        }
        let is_v4 = self.clients.first.is_ipv4();
        let (mss, most) = (self.mss, max_mss(is_v4));
        if mss == 0 || mss > most {
            return Err(PlanError::Mss { mss, most });
        }
        let TcpTimes { first, least, most, time_wait, delayed_ack, keepalive, .. } = self.times;
        for (what, micros, most) in [
            ("a first timeout", first, MAX_WAIT),
            ("a least timeout", least, MAX_WAIT),
            ("a greatest timeout", most, MAX_WAIT),
            ("TIME_WAIT", time_wait, MAX_WAIT),
            ("a delayed acknowledgement", delayed_ack, MAX_WAIT),
            ("a keepalive", keepalive.unwrap_or(1), MAX_WAIT),
            ("patience", self.patience, MAX_PATIENCE),
            ("lateness", self.late, MAX_WAIT),
        ] {
            if micros == 0 || micros > most {
                return Err(PlanError::Time { what, micros, most });
            }
        }
        for (at, talk) in self.talks.iter().enumerate() {
            talk.check(is_v4)?;
            let same = |other: &&Talk| (other.protocol, other.port) == (talk.protocol, talk.port);
            if let Some(other) = self.talks[..at].iter().find(same) {
                return Err(PlanError::Same(other.name.clone(), talk.name.clone()));
            }
        }
        Ok(())
    }
}

impl Talk {
    /// A kind of conversation that is an exchange of messages.
    pub fn exchange(name: &str, protocol: Protocol, port: u16, exchange: &Exchange) -> Talk {
        let (client, server) = exchange.programs(protocol == Protocol::Udp);
        let fill = (b'x', b'y');
        Talk { name: name.into(), protocol, port, client, server, fill, share: 1, limit: None }
    }

    /// Returns whether neither side ever closes.
    pub fn is_endless(&self) -> bool {
        let waits = |program: &Program| program.last() == Some(&Step::AwaitClose);
        self.protocol == Protocol::Tcp && waits(&self.client) && waits(&self.server)
    }

    fn check(&self, is_v4: bool) -> Result<(), PlanError> {
        if self.share == 0 {
            return Err(PlanError::Share(self.name.clone()));
        }
        let most = match self.protocol {
            Protocol::Tcp => MAX_MESSAGE,
            Protocol::Udp => packet::max_data(Protocol::Udp, is_v4).into(),
        };
        for (side, program) in [("client", &self.client), ("server", &self.server)] {
            let talk = || self.name.clone();
            program::check(program, most).map_err(|error| PlanError::Program {
                talk: talk(),
                side,
                error,
            })?;
            let reset = program.iter().position(|step| *step == Step::Reset);
            if let (Protocol::Udp, Some(at)) = (self.protocol, reset) {
                return Err(PlanError::Datagrams { talk: talk(), side, step: at + 1 });
            }
        }
        Ok(())
    }
}
