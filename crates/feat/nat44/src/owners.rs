//! SessionFilter worker has a session.
//!
//! It follows from the packet alone, the same both ways, and not from what sessions there are; nor does
//! it change when a load balance gets another host. Where a mapping has come or gone since, a session may
//! live where it belonged before: that worker is asked once, too.

use crate::config::Config;
use crate::session;
use crate::tuple::Tuple;
use std::net::Ipv4Addr;
use thalweg_buffer::{Flags, PktMut};
use thalweg_tables::hash::mix64;
use thalweg_wire::ip::protocol;

/// By what the sessions of an address and port inside are shared out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// By the host inside.
    Host,
    /// By the port outside, which is that inside: the host has the name of a shared address, whose other
    /// ports tell whose they are.
    Port,
    /// By the host and port outside: several hosts inside share a name.
    Peer,
}

/// Where a packet's session may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Places {
    /// The worker that has it, or begins it.
    pub(crate) owner: usize,
    /// The worker that has it if it is older than what is configured now.
    pub(crate) before: Option<usize>,
}

/// An address and port.
type End = (Ipv4Addr, u16);

fn has_ports(ip: u8) -> bool {
    matches!(ip, protocol::TCP | protocol::UDP | protocol::ICMP)
}

impl Config {
    fn owner_of_peer(&self, (host, port): End, workers: usize) -> usize {
        // Another hash than that by which balances choose: each worker sees all of the hosts inside.
        let hash = mix64(mix64(u64::from(host.to_bits()) << 16 | u64::from(port)) ^ 0x7065_6572);
        let of = |n: usize| (((hash >> 32) * n as u64) >> 32) as usize;
        match self.owners.len() {
            0 => of(workers),
            n => usize::from(self.owners[of(n)]),
        }
    }

    /// The worker for an address and port inside with whom it talks to, and by which rule.
    fn owner_inside(&self, inside: &Tuple, peer: End, workers: usize) -> (usize, Rule) {
        let Tuple { src, sport, protocol, table, .. } = *inside;
        let rule = self.mappings.rule(src.to_bits(), sport, protocol, table);
        let port = |port| self.owner_of_port(port, workers);
        let owner = match rule {
            Rule::Host => None,
            Rule::Port => port(sport),
            // Whose source was translated got a port of the worker that has the session.
            Rule::Peer => self
                .twice
                .contains(&peer.0.to_bits())
                .then(|| port(peer.1))
                .flatten()
                .or_else(|| Some(self.owner_of_peer(peer, workers))),
        };
        (owner.unwrap_or_else(|| self.owner(src, workers)), rule)
    }

    /// Whether the host inside went by [`Rule::Port`] once.
    fn was_by_port(&self, inside: &Tuple) -> bool {
        let host = (inside.src.to_bits(), inside.table);
        !self.formerly_by_port.is_empty() && self.formerly_by_port.contains(&host)
    }

    /// Where the session of a packet may be that came from the outside or not; `here` if it could be
    /// anywhere.
    pub(crate) fn places(&self, t: &Tuple, outside: bool, here: usize, workers: usize) -> Places {
        let of = |host| self.owner(host, workers);
        if !has_ports(t.protocol) {
            return Places { owner: of(if outside { t.src } else { t.dst }), before: None };
        }
        if !outside {
            let (owner, rule) = self.owner_inside(t, (t.dst, t.dport), workers);
            let before = match rule {
                Rule::Host if self.was_by_port(t) => self.owner_of_port(t.sport, workers),
                Rule::Host => None,
                Rule::Port | Rule::Peer => Some(of(t.src)),
            };
            return Places { owner, before };
        }
        let given = || self.owner_of_port(t.dport, workers);
        let Some(m) = self.mappings.by_external(t.dst.to_bits(), t.dport, t.protocol) else {
            return Places { owner: given().unwrap_or(here), before: None };
        };
        let peer = (t.src, t.sport);
        let given = || self.pooled.contains(&t.dst.to_bits()).then(given).flatten();
        if !m.backends.is_empty() {
            return Places { owner: self.owner_of_peer(peer, workers), before: given() };
        }
        let sport = if m.is_address_only() { t.dport } else { m.local_port };
        let inside = Tuple { src: m.local, sport, table: m.table, ..t.reversed() };
        let (owner, rule) = self.owner_inside(&inside, peer, workers);
        let before = if rule == Rule::Port { Some(of(m.local)) } else { given() };
        Places { owner, before }
    }

    /// The worker that a session goes to which comes from a file.
    pub(crate) fn owner_of_session(
        &self,
        (inside, outside): (&Tuple, &Tuple),
        marks: u16,
        workers: usize,
    ) -> usize {
        if !has_ports(inside.protocol) {
            return self.owner(inside.dst, workers);
        }
        let (owner, _) = self.owner_inside(inside, (outside.src, outside.sport), workers);
        let host = self.owner(inside.src, workers);
        let is_older = marks & session::STATIC == 0
            && self.owner_of_port(outside.dport, workers) == Some(host);
        if is_older { host } else { owner }
    }
}

/// Who has looked for a packet's session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Search {
    /// Nobody yet, as far as is known.
    New,
    /// Its owner, and this worker is asked whether it is older.
    Before,
    /// All: it is its owner's again, and there is none.
    Done,
}

/// In a packet's spare word. They say where they are from, as nobody keeps others from using it.
const BEFORE: u16 = 0x6e01;
const DONE: u16 = 0x6e02;

impl Search {
    /// What a packet says, which forgets it.
    pub(crate) fn take(p: &mut PktMut<'_>) -> Search {
        if !p.may_have_flags() || !p.flags().contains(Flags::META) {
            return Search::New;
        }
        let search = match p.meta().opaque[0] {
            BEFORE => Search::Before,
            DONE => Search::Done,
            _ => return Search::New,
        };
        p.meta_mut().opaque[0] = 0;
        search
    }

    /// Has a packet say so.
    pub(crate) fn note(self, p: &mut PktMut<'_>) {
        p.meta_mut().opaque[0] = match self {
            Search::New => 0,
            Search::Before => BEFORE,
            Search::Done => DONE,
        };
    }
}
