//! Assignment of sessions to workers.
//!
//! The owner of a session follows from the packet alone, is the same in both directions, and does
//! not depend on existing sessions or on changes of back ends. After a static mapping was added or
//! removed, a session may live on the worker that owned it before: that one is asked once, too.

use crate::config::Config;
use crate::pool;
use crate::session;
use std::net::Ipv4Addr;
use thalweg_fib::TableId;
use thalweg_tables::hash::mix64;
use thalweg_wire::nat::tuple::Tuple;
use thalweg_wire::owner::share;

/// Rule that assigns sessions of an inside endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// Worker by inside host.
    Host,
    /// Worker by port, the same on both sides: the host has a static mapping of a pool address,
    /// whose other ports identify workers.
    Port,
    /// Worker by endpoint of the external host: several back ends share the external endpoint.
    Peer,
}

/// Workers that may have a packet's session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Places {
    /// The worker that has or opens it.
    pub(crate) owner: usize,
    /// The worker that has it if it predates the current configuration.
    pub(crate) before: Option<usize>,
}

/// An address and port.
type End = (Ipv4Addr, u16);

fn has_ports(ip: u8) -> bool {
    pool::position(ip).is_some()
}

impl Config {
    fn owner_of_peer(&self, (host, port): End, workers: usize) -> usize {
        // A hash other than that of load balancing, so that each worker serves all back ends.
        let hash = mix64(mix64(u64::from(host.to_bits()) << 16 | u64::from(port)) ^ 0x7065_6572);
        let of = |n| share((hash >> 32) as u32, n);
        match self.owners.len() {
            0 => of(workers),
            n => usize::from(self.owners[of(n)]),
        }
    }

    /// The owner of an inside endpoint's session with `peer`, and the rule that determined it.
    fn owner_inside(&self, inside: &Tuple, peer: End, workers: usize) -> (usize, Rule) {
        let Tuple { src, sport, protocol, table, .. } = *inside;
        let rule = self.mappings.rule(src.to_bits(), sport, protocol, TableId(table));
        let port = |port| self.owner_of_port(port, workers);
        let owner = match rule {
            Rule::Host => None,
            Rule::Port => port(sport),
            // A translated source has a port of the worker that owns the session.
            Rule::Peer => self
                .twice
                .contains(&peer.0.to_bits())
                .then(|| port(peer.1))
                .flatten()
                .or_else(|| Some(self.owner_of_peer(peer, workers))),
        };
        (owner.unwrap_or_else(|| self.owner(src, workers)), rule)
    }

    /// Returns whether the inside host was assigned by [`Rule::Port`] before.
    fn was_by_port(&self, inside: &Tuple) -> bool {
        let host = (inside.src.to_bits(), inside.table);
        !self.formerly_by_port.is_empty() && self.formerly_by_port.contains(&host)
    }

    /// The workers that may have the session of a packet from inside or outside; `here` if any may.
    pub(crate) fn places(&self, t: &Tuple, outside: bool, here: usize, workers: usize) -> Places {
        let of = |host| self.owner(host, workers);
        if !has_ports(t.protocol) {
            // An answer from outside to a session that was opened there is found by its other end.
            let ends = if outside { (t.src, Some(t.dst)) } else { (t.dst, None) };
            return Places { owner: of(ends.0), before: ends.1.map(of) };
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
        let peer = (t.src, t.sport);
        let Some(m) = self.mappings.by_external(t.dst.to_bits(), t.dport, t.protocol) else {
            let (answers, rule) = self.owner_inside(t, (t.dst, t.dport), workers);
            if !self.addresses.contains(&t.dst.to_bits()) {
                // An answer to a session that was opened from outside, or, with forwarding, a
                // packet straight to a host, which answers on its own worker.
                if !self.forwarding {
                    return Places { owner: answers, before: None };
                }
                let (owner, _) = self.owner_inside(&t.reversed(), peer, workers);
                return Places { owner, before: Some(answers) };
            }
            let before = (rule != Rule::Host).then_some(answers);
            return Places { owner: given().unwrap_or(here), before };
        };
        let given = || self.pooled.contains(&t.dst.to_bits()).then(given).flatten();
        if !m.backends.is_empty() {
            return Places { owner: self.owner_of_peer(peer, workers), before: given() };
        }
        let sport = if m.is_address_only() { t.dport } else { m.local_port };
        let inside = Tuple { src: m.local, sport, table: m.table.get(), ..t.reversed() };
        let (owner, rule) = self.owner_inside(&inside, peer, workers);
        let before = if rule == Rule::Port { Some(of(m.local)) } else { given() };
        Places { owner, before }
    }

    /// The owner of a session restored from a file.
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
        let is_older = marks & (session::STATIC | session::DIRECT) == 0
            && self.owner_of_port(outside.dport, workers) == Some(host);
        if is_older { host } else { owner }
    }
}
