//! `load-impair`: loses and damages packets that a port receives, as its settings say.
//!
//! A device that is known to lose shows that a tester finds it: which packets, how many, and where.
//!
//! Reads: length, bytes. Next: the next feature of the `device-input` arc.

use std::any::Any;
use std::collections::HashMap;
use std::time::Duration;

use thalweg_buffer::PktMut;
use thalweg_device::SwIfIndex;
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict, clock};
use thalweg_tables::random::Random;

thalweg_graph::errors! {
    LOST: Error, UNKNOWN, "lost on purpose";
    DAMAGED: Info, UNKNOWN, "damaged on purpose";
}

/// The node's declaration.
pub(crate) static NODE: NodeDecl = NodeDecl {
    name: "load-impair",
    errors: ERRORS,
    feature: Some(FeatureDecl::on("device-input")),
    build: |_| Built::node(Impair { ports: HashMap::new() }),
    ..NodeDecl::DEFAULT
};

/// Impairments of packets between hosts and their port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    /// One in this many is lost, at random; 0 = none.
    pub lose: u32,
    /// One in this many has a byte of its payload changed; 0 = none.
    pub damage: u32,
    /// One in this many comes twice; 0 = none.
    pub repeat: u32,
    /// Time that each takes, in microseconds.
    pub delay: u32,
    /// Time that each may take longer, at random, in microseconds: packets overtake each other.
    pub jitter: u32,
    /// Decides chance: the same number repeats a run.
    pub seed: u64,
    /// Minimum length in bytes of packets that are lost or damaged.
    pub min_bytes: u32,
    /// Maximum length in bytes of such packets; 0 = any.
    pub max_bytes: u32,
    /// Time from now on in which packets are affected, in milliseconds; 0 = always.
    pub first: u32,
}

/// An impairment at work.
struct Active {
    is: Impairment,
    random: Random,
    /// Time when it ends, by the clock.
    end: Option<u64>,
}

struct Impair {
    ports: HashMap<SwIfIndex, Active>,
}

/// A port's new impairment.
pub(crate) struct Set(pub(crate) SwIfIndex, pub(crate) Impairment);

/// Bytes of headers that damage leaves alone, so that the packet arrives.
const HEADERS: usize = 34;

/// Returns whether one in `n` is meant, by chance.
pub(crate) fn hits(random: &mut Random, n: u32) -> bool {
    n > 0 && random.below(n.into()) == 0
}

/// Returns where a frame's packet ends: nothing checks the padding behind it.
fn end_of_packet(frame: &[u8]) -> usize {
    match frame {
        [_, _, _, _, _, _, _, _, _, _, _, _, 8, 0, 0x45, _, a, b, ..] => {
            frame.len().min(14 + usize::from(u16::from_be_bytes([*a, *b])))
        }
        _ => frame.len(),
    }
}

impl Node for Impair {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(Active { is, random, end }) = self.ports.get_mut(&p.rx_if()) else {
            return Verdict::CONTINUE;
        };
        let bytes = p.total_len() as u32;
        let meant = bytes >= is.min_bytes
            && (is.max_bytes == 0 || bytes <= is.max_bytes)
            && end.is_none_or(|end| cx.now() < end);
        if !meant {
            return Verdict::CONTINUE;
        }
        if hits(random, is.lose) {
            return Verdict::drop(LOST);
        }
        if hits(random, is.damage)
            && let Some(behind) = end_of_packet(p.data()).checked_sub(HEADERS).filter(|n| *n > 0)
        {
            let at = HEADERS + random.below(behind as u64) as usize;
            p.data_mut()[at] ^= 1 << random.below(8);
            cx.count(DAMAGED, 1);
        }
        Verdict::CONTINUE
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        let Ok(set) = message.downcast::<Set>() else { return };
        let Set(sw_if, is) = *set;
        let first = Duration::from_millis(is.first.into());
        let end = (is.first > 0).then(|| cx.now() + clock::ticks_in(first));
        self.ports.insert(sw_if, Active { is, random: Random::with_seed(is.seed), end });
    }
}
