//! Events that workers report to the main thread: a session was refused.

use crate::Nat44;
use crate::log::Notice;
use crate::time;
use crate::worker::Refusal;
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_cli::counted;
use thalweg_device::SwIfIndex;
use thalweg_fib::TableId;
use thalweg_graph::{BuildCx, Control, Event, NodeCx, Topic};

/// Event topics.
pub(crate) struct Topics {
    pub(crate) refused: Topic,
}

/// Reports refusals, at most one per second and kind.
pub(crate) struct Alarm {
    topics: Arc<Topics>,
    /// Number of refusals since the last report, and its time, by kind.
    since: [(u32, Option<u64>); 4],
}

impl Alarm {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Alarm {
        Alarm { topics: cx.shared(), since: [(0, None); 4] }
    }

    /// Counts a refused session of an inside host and table.
    pub(crate) fn raise(
        &mut self,
        cx: &mut NodeCx<'_>,
        refusal: Refusal,
        (host, table): (Ipv4Addr, u32),
    ) {
        let own = refusal == Refusal::HostLimit;
        let kind = match refusal {
            Refusal::NoPort => 0u8,
            Refusal::Full => 1,
            Refusal::Taken => 2,
            Refusal::HostLimit | Refusal::TableLimit => 3,
        };
        let (count, at) = &mut self.since[usize::from(kind)];
        *count += 1;
        let now = cx.now();
        if at.is_some_and(|at| now.wrapping_sub(at) < time::ticks(1000)) {
            return;
        }
        let mut bytes = [0; BYTES];
        bytes[0] = kind;
        bytes[1..5].copy_from_slice(&count.to_le_bytes());
        bytes[5] = u8::from(own);
        bytes[6..10].copy_from_slice(&host.octets());
        bytes[10..].copy_from_slice(&table.to_le_bytes());
        (*count, *at) = (0, Some(now));
        cx.event(Event::new(self.topics.refused, SwIfIndex(0), now, &bytes));
    }
}

/// Length of an event: kind, count, whether by the limit per host, host, table.
const BYTES: usize = 14;

/// Logs a refusal, and reports it to the IPFIX collector.
pub(crate) fn refused(c: &mut Control, event: &Event) {
    let Some(&bytes) = event.bytes().first_chunk::<BYTES>() else { return };
    let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    let (kind, count, worker) = (bytes[0], u32::from_le_bytes(word(1)), event.worker);
    let (host, table) = (Ipv4Addr::from(word(6)), TableId(u32::from_le_bytes(word(10))));
    let nat = c.state::<Nat44>();
    let nat = nat.borrow();
    let notice = match kind {
        0 => Some(Notice::NoAddress),
        1 => nat.sessions().map(Notice::Sessions),
        3 if bytes[5] != 0 => Some(Notice::PerHost { most: nat.per_host(), host, table }),
        3 => nat.limits().get(&table).copied().map(Notice::Sessions),
        _ => None,
    };
    if let (Some(log), Some(notice)) = (nat.log(), notice) {
        log.notify(notice);
    }
    match kind {
        0 => tracing::warn!(
            "nat44: worker {worker} is out of ports ({count} sessions refused); add addresses with `nat44 add address`"
        ),
        1 => tracing::warn!(
            "nat44: worker {worker} has reached its maximum number of sessions ({count} refused); see `nat44 plugin enable sessions`"
        ),
        3 => tracing::warn!(
            "nat44: worker {worker} refused {} by a session limit; see `show nat44 session limits`",
            counted(count.into(), "session")
        ),
        _ => tracing::warn!(
            "nat44: worker {worker} refused {} whose tuple is in use",
            counted(count.into(), "session")
        ),
    }
}
