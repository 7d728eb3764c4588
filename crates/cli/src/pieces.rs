//! Long output, written in pieces.

use std::time::{Duration, Instant};

use crate::command::{Outcome, Task, TaskPoll};
use crate::output::Output;

/// Maximum time that an output keeps the main thread at once.
const SLICE: Duration = Duration::from_millis(1);

/// Writes output in pieces: each call of `piece` writes one, such as a line of a list, and returns
/// whether there is more. Short output is written at once; long output in slices, with other work
/// in between.
pub fn pieces<C: 'static>(
    cx: &mut C,
    out: &mut Output,
    piece: impl FnMut(&mut C, &mut Output) -> bool + Send + 'static,
) -> Outcome<C> {
    pieces_by(Instant::now, cx, out, piece)
}

/// The same by another clock.
fn pieces_by<C: 'static>(
    clock: impl Fn() -> Instant + Send + 'static,
    cx: &mut C,
    out: &mut Output,
    piece: impl FnMut(&mut C, &mut Output) -> bool + Send + 'static,
) -> Outcome<C> {
    let mut pieces = Pieces { piece, clock };
    if pieces.go(cx, out) { Outcome::pending(pieces) } else { Outcome::Done }
}

struct Pieces<F, N> {
    piece: F,
    clock: N,
}

impl<F, N: Fn() -> Instant> Pieces<F, N> {
    /// Some of them; whether there are more.
    fn go<C>(&mut self, cx: &mut C, out: &mut Output) -> bool
    where
        F: FnMut(&mut C, &mut Output) -> bool,
    {
        let began = (self.clock)();
        while (self.piece)(cx, out) {
            if (self.clock)().duration_since(began) >= SLICE {
                return true;
            }
        }
        false
    }
}

impl<C, F, N> Task<C> for Pieces<F, N>
where
    F: FnMut(&mut C, &mut Output) -> bool + Send,
    N: Fn() -> Instant + Send,
{
    fn poll(&mut self, cx: &mut C, now: Instant, out: &mut Output) -> TaskPoll {
        if self.go(cx, out) { TaskPoll::At(now) } else { TaskPoll::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use std::sync::{Arc, Mutex};

    /// Lists numbers, each of which takes some time.
    fn list(format: Format, to: u32, each: Duration) -> (Vec<String>, String) {
        let (mut cx, mut out, mut at) = ((), Output::with_format(format), 0);
        let (start, time) = (Instant::now(), Arc::new(Mutex::new(Duration::ZERO)));
        let passed = time.clone();
        let clock = move || start + *passed.lock().unwrap();
        let piece = move |(): &mut (), out: &mut Output| {
            if at == to {
                out.end_elements();
                return false;
            }
            *time.lock().unwrap() += each;
            out.line(at);
            out.element(at.into());
            at += 1;
            true
        };
        let (mut stretches, mut whole) = (Vec::new(), String::new());
        let mut outcome = pieces_by(clock, &mut cx, &mut out, piece);
        loop {
            stretches.push(out.take());
            whole.push_str(stretches.last().unwrap());
            let Outcome::Pending(task) = &mut outcome else { return (stretches, whole) };
            if task.poll(&mut cx, Instant::now(), &mut out) == TaskPoll::Done {
                outcome = Outcome::Done;
            }
        }
    }

    #[test]
    fn short_lists_are_there_at_once_and_long_ones_by_and_by() {
        assert_eq!(list(Format::Text, 0, Duration::ZERO).0, [""]);
        assert_eq!(list(Format::Text, 2, Duration::ZERO).0.concat(), "0\n1\n");
        let (stretches, whole) = list(Format::Text, 4, SLICE);
        assert!(stretches.len() >= 4, "{stretches:?}");
        assert_eq!(whole, "0\n1\n2\n3\n");
    }

    #[test]
    fn a_json_list_is_one_document() {
        for to in [0, 1, 3] {
            let expected = serde_json::Value::from_iter(0..to);
            let compact = list(Format::Json, to, SLICE).1;
            assert_eq!(compact, format!("{expected}\n"));
            assert_eq!(list(Format::JsonPretty, to, SLICE).1, format!("{expected:#}\n"));
        }
    }
}
