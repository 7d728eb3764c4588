//! What workers tell the main thread: that something ran out.

use crate::time;
use crate::worker::Refusal;
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

    /// Notes a refusal.
    pub(crate) fn raise(&mut self, cx: &mut NodeCx<'_>, refusal: Refusal) {
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
        let [a, b, c, d] = count.to_le_bytes();
        (*count, *at) = (0, Some(now));
        cx.event(Event::new(self.topics.refused, 0, now, &[kind, a, b, c, d]));
    }
}

/// Writes a refusal to the log.
pub(crate) fn refused(_: &mut Control, event: &Event) {
    let Some([kind, a, b, c, d]) = event.bytes().first_chunk::<5>() else { return };
    let (count, worker) = (u32::from_le_bytes([*a, *b, *c, *d]), event.worker);
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
