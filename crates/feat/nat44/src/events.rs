//! What workers tell the main thread: that something ran out.

use crate::Nat44;
use crate::log::Notice;
use crate::time;
use crate::worker::Refusal;
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_cli::counted;
use thalweg_graph::{BuildCx, Control, Event, NodeCx, Topic};

/// Kinds of event.
pub(crate) struct Topics {
    pub(crate) refused: Topic,
}

/// Reports refusals, one a second and kind.
pub(crate) struct Alarm {
    topics: Arc<Topics>,
    /// Refusals since the last report, and when that was.
    since: [(u32, Option<u64>); 4],
}

impl Alarm {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Alarm {
        Alarm { topics: cx.shared(), since: [(0, None); 4] }
    }

    /// Notes a refusal of a session of this host inside, in this table, if it is known; `own`: the limit was
    /// that of each host.
    pub(crate) fn raise(
        &mut self,
        cx: &mut NodeCx<'_>,
        refusal: Refusal,
        (host, table): (Ipv4Addr, u32),
        own: bool,
    ) {
        let kind = match refusal {
            Refusal::NoPort => 0u8,
            Refusal::Full => 1,
            Refusal::Taken => 2,
            Refusal::Limit => 3,
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
        cx.event(Event::new(self.topics.refused, 0, now, &bytes));
    }
}

/// Bytes of an event: kind, how many, whether by each host's limit, host and table.
const BYTES: usize = 14;

/// Writes a refusal to the log, and has collectors of IPFIX messages learn of it.
pub(crate) fn refused(c: &mut Control, event: &Event) {
    let Some(&bytes) = event.bytes().first_chunk::<BYTES>() else { return };
    let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    let (kind, count, worker) = (bytes[0], u32::from_le_bytes(word(1)), event.worker);
    let (host, table) = (Ipv4Addr::from(word(6)), u32::from_le_bytes(word(10)));
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
        log.tell(notice);
    }
    match kind {
        0 => tracing::warn!(
            "nat44: worker {worker} has no port left for new sessions ({count} refused); add addresses"
        ),
        1 => tracing::warn!(
            "nat44: worker {worker} has no room for new sessions ({count} refused); see `nat44 plugin enable sessions`"
        ),
        3 => tracing::warn!(
            "nat44: worker {worker} refused {} beyond a limit; see `show nat44 session limits`",
            counted(count.into(), "session")
        ),
        _ => tracing::warn!(
            "nat44: worker {worker} refused {} that exist already",
            counted(count.into(), "session")
        ),
    }
}
