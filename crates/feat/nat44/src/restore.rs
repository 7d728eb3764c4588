//! Converts sessions to and from their saved form.

use crate::config::Config;
use crate::pool;
use crate::saved::Saved;
use crate::session::{self, Class, FAST_IN, FAST_OUT, SLOW, Session, tcp};
use crate::worker::{Nat, Refusal, is_mapped};
use thalweg_fib::TableId;
use thalweg_tables::flow::{FlowId, Millis};
use thalweg_wire::nat::tuple::Tuple;

/// Results of restoring sessions.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Restored {
    /// Restored.
    pub done: u64,
    /// Expired meanwhile.
    pub expired: u64,
    /// The address, port or mapping is missing, or belongs to another worker; these wait.
    pub no_mapping: u64,
    /// The session exists already.
    pub taken: u64,
    /// The session table is full, or a limit is reached.
    pub full: u64,
    /// Invalid.
    pub bad: u64,
}

impl Restored {
    /// Sessions that could still be in use, were not restored, and are not kept.
    pub fn lost(&self) -> u64 {
        self.full + self.bad
    }

    /// The sum of two results.
    #[must_use]
    pub fn and(self, o: Restored) -> Restored {
        Restored {
            done: self.done + o.done,
            expired: self.expired + o.expired,
            no_mapping: self.no_mapping + o.no_mapping,
            taken: self.taken + o.taken,
            full: self.full + o.full,
            bad: self.bad + o.bad,
        }
    }
}

impl Nat {
    /// The saved form of a session.
    pub fn saved(&self, flow: FlowId, now: Millis) -> Saved {
        let (inside, outside) = self.keys(flow);
        let s = self.session(flow);
        Saved {
            inside,
            outside,
            packets: s.packets(),
            bytes: s.bytes(),
            left: (self.table.expiry(flow).wrapping_sub(now) as i32).max(0) as u32,
            age: now.wrapping_sub(s.created()),
            state: s.state(),
            class: s.class(),
            marks: s.marks(),
            has_port: s.pool().is_some(),
            has_twice_port: s.twice_pool().is_some(),
            grown: !self.table.is_young(flow),
        }
    }

    /// The saved form of the next sessions from `*from` on, which is advanced.
    pub fn save_some(&self, from: &mut u32, steps: u32, now: Millis) -> Vec<Saved> {
        let live = self.table.list(from, steps).filter(|f| !self.table.is_expired(*f, now));
        live.map(|f| self.saved(f, now)).collect()
    }

    /// Restores sessions, `elapsed` milliseconds after they were saved. Returns those whose
    /// address, port or mapping is not there as well.
    pub fn restore(
        &mut self,
        config: &Config,
        all: &[Saved],
        elapsed: u64,
        now: Millis,
    ) -> (Restored, Vec<Saved>) {
        let (mut sum, mut unplaced) = (Restored::default(), Vec::new());
        for s in all {
            let left = u64::from(s.left).saturating_sub(elapsed);
            // A timeout that has been shortened applies.
            let left = left.min(u64::from(config.timeouts[s.class as usize])) as u32;
            match left {
                0 => sum.expired += 1,
                _ => match self.restore_one(config, s, left, now) {
                    Ok(()) => sum.done += 1,
                    Err(Refusal::Full | Refusal::HostLimit | Refusal::TableLimit) => sum.full += 1,
                    Err(Refusal::Taken) => sum.taken += 1,
                    Err(Refusal::NoPort) => {
                        sum.no_mapping += 1;
                        unplaced.push(*s);
                    }
                },
            }
        }
        (sum, unplaced)
    }

    fn restore_one(
        &mut self,
        config: &Config,
        s: &Saved,
        left: u32,
        now: Millis,
    ) -> Result<(), Refusal> {
        let (inside, outside) = (Tuple::of(&s.inside), Tuple::of(&s.outside));
        let (is_static, is_direct) =
            (s.marks & session::STATIC != 0, s.marks & session::DIRECT != 0);
        // The external address must still be in use.
        let allowed = match (is_static, is_direct) {
            (false, false) => s.has_port,
            (true, false) => !s.has_port && is_mapped(config, &(s.inside, s.outside)),
            (false, true) => {
                let same = Tuple { table: outside.table, ..inside.reversed() } == outside;
                !s.has_port && !s.has_twice_port && same && config.forwarding
            }
            (true, true) => false,
        };
        if !allowed {
            return Err(Refusal::NoPort);
        }
        if self.find(&s.inside, now).is_some() {
            return Err(Refusal::Taken);
        }
        let at = pool::position(inside.protocol);
        let mut places = [None; 2];
        let wanted = [
            (s.has_port, outside.dst, outside.dport, false),
            (s.has_twice_port, inside.dst, inside.dport, true),
        ];
        let mut refusal = None;
        for (place, (_, address, port, twice)) in
            places.iter_mut().zip(wanted).filter(|(_, wanted)| wanted.0)
        {
            let found = self.pools.find(address.to_bits(), twice);
            let taken = found.filter(|p| at.is_none_or(|at| self.pools.take_this(*p, at, port)));
            match taken {
                Some(found) => *place = Some(found),
                None => refusal = Some(Refusal::NoPort),
            }
        }
        let done = match refusal {
            Some(refusal) => Err(refusal),
            None => match self.limits.allow(inside.src, TableId(inside.table)) {
                Ok(()) => self.enter_again(s, places, left, now),
                Err(limit) => Err(limit),
            },
        };
        if done.is_err()
            && let Some(at) = at
        {
            for (place, (_, _, port, _)) in places.into_iter().zip(wanted) {
                if let Some(place) = place {
                    self.pools.give_back(place, at, port);
                }
            }
        }
        done
    }

    fn enter_again(
        &mut self,
        s: &Saved,
        places: [Option<u16>; 2],
        left: u32,
        now: Millis,
    ) -> Result<(), Refusal> {
        let mut session = Session::new(&s.inside, &s.outside, now.wrapping_sub(s.age));
        (session.words[1], session.words[2]) = (s.packets, s.bytes);
        if let Some(place) = places[0] {
            session.set_pool(place);
        }
        if let Some(place) = places[1] {
            session.set_twice_pool(place);
        }
        session.mark(s.marks);
        let is_tcp = matches!(s.class, Class::TcpEstablished | Class::TcpTransitory);
        let fast = match () {
            () if s.marks & SLOW != 0 => 0,
            () if is_tcp && tcp::is_steady(s.state) => FAST_IN | FAST_OUT,
            () if is_tcp => 0,
            () if s.grown => FAST_IN | FAST_OUT,
            () if s.marks & session::FROM_OUTSIDE != 0 => FAST_OUT,
            () => FAST_IN,
        };
        session.set_standing(s.state, s.class, fast);
        let flow =
            self.add(&s.inside, &s.outside, now.wrapping_add(left), session, (false, now))?;
        if s.grown {
            self.table.promote(flow);
        }
        Ok(())
    }
}
