//! Packets held on a worker until their neighbour is resolved.
//!
//! The newest few packets per neighbour are kept, since the sender still waits for the latest (RFC
//! 1122 section 2.3.2.2). Neighbours, packets per neighbour and packets in all are limited. Each
//! neighbour waited for was announced to the main thread, which replies to every announcement, so
//! no packet is held for longer than resolution takes: three seconds.

use crate::packet::{ResolveReply, ResolveRequest};
use std::collections::HashMap;
use thalweg_buffer::{IcmpCause, Packet, PktMut};
use thalweg_graph::clock;
use thalweg_graph::{ErrorCode, NodeCx, Verdict};

/// Packets held per neighbour; a newer one replaces the oldest. A traceroute starts with 16 at
/// once, as do a few connections opened together.
pub const PER_NEIGHBOR: usize = 32;
/// Packets held per worker and node.
pub const PER_WORKER: usize = 256;
/// Neighbours per worker and node that are pending or known not to answer.
pub const NEIGHBORS: usize = 1024;

/// Next nodes and drop reasons of a node that holds packets.
#[derive(Clone, Copy)]
pub(crate) struct Exits {
    /// Next node for packets of a resolved neighbour.
    pub(crate) rewrite: Verdict,
    /// Next node for packets answered with an ICMP error.
    pub(crate) icmp: Verdict,
    /// The neighbour did not answer.
    pub(crate) unresolved: ErrorCode,
    /// A newer packet took its place, or too many packets are held.
    pub(crate) overflow: ErrorCode,
    /// Too many neighbours are pending.
    pub(crate) crowded: ErrorCode,
    /// The main thread does not take more requests.
    pub(crate) busy: ErrorCode,
    /// Counter of packets held.
    pub(crate) held: ErrorCode,
}

#[derive(Default)]
struct Pending {
    /// Tick count until which no reply is expected; 0 while one is.
    dead_until: u64,
    held: [Option<Packet>; PER_NEIGHBOR],
    /// Slot of the next packet: after the newest, at the oldest.
    next: usize,
}

/// Packets held by one node.
pub(crate) struct Hold {
    exits: Exits,
    pending: HashMap<u64, Pending>,
    packets: usize,
    /// Tick count of the last purge.
    purged: u64,
}

impl Hold {
    pub(crate) fn new(exits: Exits) -> Hold {
        // Allocated up front: nothing is allocated while packets flow.
        Hold { exits, pending: HashMap::with_capacity(NEIGHBORS * 2), packets: 0, purged: 0 }
    }

    /// Keeps a packet until `request` is answered. `announce` runs if the neighbour is not pending
    /// yet, and returns whether the main thread took the request.
    pub(crate) fn keep(
        &mut self,
        cx: &mut NodeCx<'_>,
        mut p: PktMut<'_>,
        request: ResolveRequest,
        announce: impl FnOnce(&mut NodeCx<'_>) -> bool,
    ) -> Verdict {
        let (key, now) = (request.key(), cx.now());
        match self.pending.get_mut(&key) {
            Some(e) if e.dead_until > now => {
                p.set_aux(cx.error_id(self.exits.unresolved));
                p.meta_mut().icmp = IcmpCause::HOST_UNREACHABLE;
                return self.exits.icmp;
            }
            Some(e) if e.dead_until > 0 => {
                if !announce(cx) {
                    return Verdict::drop(self.exits.busy);
                }
                e.dead_until = 0;
            }
            Some(_) => {}
            None => {
                if self.pending.len() >= NEIGHBORS && !self.purge(now) {
                    return Verdict::drop(self.exits.crowded);
                }
                if !announce(cx) {
                    return Verdict::drop(self.exits.busy);
                }
                self.pending.insert(key, Pending::default());
            }
        }
        let full = self.packets >= PER_WORKER;
        let Some(e) = self.pending.get_mut(&key) else {
            return Verdict::drop(self.exits.crowded);
        };
        let oldest = (0..PER_NEIGHBOR).map(|i| (e.next + i) % PER_NEIGHBOR);
        let mut oldest = oldest.filter(|i| e.held[*i].is_some());
        let displaced = match oldest.next() {
            // If the ring is full, the oldest is at `next`.
            Some(i) if full || i == e.next => e.held[i].take(),
            None if full => return Verdict::drop(self.exits.overflow),
            _ => None,
        };
        let (packet, kept) = cx.take(p);
        e.held[e.next] = Some(packet);
        e.next = (e.next + 1) % PER_NEIGHBOR;
        cx.count(self.exits.held, 1);
        match displaced {
            Some(old) => cx.send(old, Verdict::drop(self.exits.overflow)),
            None => self.packets += 1,
        }
        kept
    }

    /// Handles the main thread's reply: releases or drops the held packets.
    pub(crate) fn reply(&mut self, cx: &mut NodeCx<'_>, reply: ResolveReply) {
        let (ResolveReply::Release { key, .. } | ResolveReply::Fail { key, .. }) = reply;
        let Some(mut e) = self.pending.remove(&key) else { return };
        for i in 0..PER_NEIGHBOR {
            let Some(mut packet) = e.held[(e.next + i) % PER_NEIGHBOR].take() else { continue };
            self.packets -= 1;
            match reply {
                ResolveReply::Release { dpo, .. } => {
                    packet.set_aux(dpo);
                    cx.send(packet, self.exits.rewrite);
                }
                ResolveReply::Fail { until, .. } if until > cx.now() => {
                    packet.set_aux(cx.error_id(self.exits.unresolved));
                    packet.meta_mut().icmp = IcmpCause::HOST_UNREACHABLE;
                    cx.send(packet, self.exits.icmp);
                }
                // No request went unanswered: the interface went down, or an operator flushed the
                // table.
                ResolveReply::Fail { .. } => cx.send(packet, Verdict::drop(self.exits.unresolved)),
            }
        }
        match reply {
            ResolveReply::Fail { until, .. } if until > cx.now() => {
                self.pending.insert(key, Pending { dead_until: until, ..e });
            }
            _ => {}
        }
    }

    /// Removes neighbours whose silence is over; returns whether that made room. Runs at most a
    /// hundred times a second, whatever arrives.
    fn purge(&mut self, now: u64) -> bool {
        if now.wrapping_sub(self.purged) < clock::hz() as u64 / 100 {
            return false;
        }
        self.purged = now;
        self.pending.retain(|_, e| e.dead_until == 0 || e.dead_until > now);
        self.pending.len() < NEIGHBORS
    }
}
