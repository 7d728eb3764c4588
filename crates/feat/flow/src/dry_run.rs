//! Follows a packet's rules up to the tracker without applying them: where they change addresses or
//! ports, only that shows the tuple under which it is tracked, and so the worker that does.

use std::net::{Ipv4Addr, Ipv6Addr};

use thalweg_conntrack::batch::Kind;
use thalweg_conntrack::{State, Tuple};
use thalweg_wire::ip::protocol;

use crate::nodes::flow_rules::{Engine, MAX_LOOKUPS};
use crate::rewrite::{note_end, some_of_6};
use crate::rule::key::{self, Words};
use crate::tables::{Compilation, Step};

/// Result of a dry run so far.
enum Reached {
    /// The first `ct`.
    Tracker,
    /// The end of the table: what called it continues.
    End,
    /// A step that refuses the packet.
    Refusal,
}

impl Engine {
    /// The worker that tracks packet `i` under the tuple that the rules give it. `None` for packets
    /// that are not tracked.
    #[inline(never)]
    pub(crate) fn owner_of_changed(&mut self, set: &Compilation, i: usize) -> Option<usize> {
        let mut tuple = self.v4.batch.tuple(i).or_else(|| self.v6.batch.tuple(i))?;
        let mut words = self.words[i];
        let Reached::Tracker = self.dry_run(set, 0, (&mut words, None), &mut 0) else {
            return None;
        };
        // The packet that an ICMP error quotes is tracked, and rules leave it unchanged.
        let headers = match tuple.src.is_ipv6() {
            false => self.v4.batch.headers(i),
            true => self.v6.batch.headers(i),
        };
        if headers.is_some_and(|h| h.kind != Kind::Related) {
            overlay(&mut tuple, &words, set.wide);
        }
        self.place.owner_of(&tuple)
    }

    /// Follows the rules of a table; `words` become what they make of the packet's fields.
    fn dry_run(
        &mut self,
        set: &Compilation,
        number: u8,
        (words, port): (&mut Words, Option<u32>),
        lookups: &mut usize,
    ) -> Reached {
        *lookups += 1;
        if *lookups > MAX_LOOKUPS {
            return Reached::End;
        }
        let Some(table) = set.table(number) else { return Reached::End };
        let mut seen = *words;
        if let Some(port) = port {
            key::IN_PORT.set(&mut seen, port.into());
        }
        let rules = set.generation + u64::from(number);
        let rule = self.cache.find(&table.classifier, rules, &seen, *lookups);
        let Some(rule) = rule.and_then(|rule| table.rule(rule)) else { return Reached::End };
        for step in &rule.steps {
            match step {
                Step::Ct(_) => return Reached::Tracker,
                Step::Resubmit(table, port) => {
                    let port = port.map(|port| port.0);
                    match self.dry_run(set, *table, (words, port), lookups) {
                        Reached::End => {}
                        other => return other,
                    }
                }
                Step::DecTtl if key::NW_TTL.get(words) < 2 => return Reached::Refusal,
                step => show(step, words),
            }
        }
        Reached::End
    }
}

/// Applies a step to the fields of a packet.
fn show(step: &Step, words: &mut Words) {
    match step {
        Step::SetSource(mac) => key::DL_SRC.set(words, key::mac_bits(mac)),
        Step::SetDestination(mac) => key::DL_DST.set(words, key::mac_bits(mac)),
        Step::SetTos(tos) => key::NW_DSCP.set(words, u64::from(*tos) >> 2),
        Step::SetEcn(ecn) => key::NW_ECN.set(words, (*ecn).into()),
        Step::SetTtl(ttl) => key::NW_TTL.set(words, (*ttl).into()),
        Step::DecTtl => key::NW_TTL.set(words, key::NW_TTL.get(words).saturating_sub(1)),
        Step::Set(source, end) => note_end(words, *source, *end),
        Step::SetSome6(source, value, mask) => {
            note_end(words, *source, some_of_6(words, *source, *value, *mask));
        }
        Step::SetBits(field, value, mask) => {
            let all = field.of(words) & !mask | value;
            if let Some(step) = crate::compile::step(&field.whole(all), 0, &|_: &str| None) {
                show(&step, words);
            }
        }
        Step::CtClear => key::set_tracked(words, State::NONE, 0, 0, 0),
        _ => {}
    }
}

/// Puts the addresses and ports that rules know into a tuple. IPv6 addresses are known, and can be
/// changed, in `wide` words only.
fn overlay(tuple: &mut Tuple, words: &Words, wide: bool) {
    if tuple.src.is_ipv4() {
        let address = |place: key::Place| Ipv4Addr::from_bits(place.get(words) as u32).into();
        (tuple.src, tuple.dst) = (address(key::NW_SRC), address(key::NW_DST));
    } else if wide {
        let address = |places| Ipv6Addr::from_bits(key::long(words, places)).into();
        (tuple.src, tuple.dst) = (address(key::IPV6_SRC), address(key::IPV6_DST));
    }
    if matches!(tuple.protocol, protocol::TCP | protocol::UDP | protocol::SCTP) {
        let port = |place: key::Place| place.get(words) as u16;
        (tuple.sport, tuple.dport) = (port(key::TP_SRC), port(key::TP_DST));
    }
}
