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
    let mut pieces = Pieces(piece);
    if pieces.go(cx, out) { Outcome::pending(pieces) } else { Outcome::Done }
}

struct Pieces<F>(F);

impl<F> Pieces<F> {
    /// Writes some pieces; returns true if there are more.
    fn go<C>(&mut self, cx: &mut C, out: &mut Output) -> bool
    where
        F: FnMut(&mut C, &mut Output) -> bool,
    {
        let began = Instant::now();
        while (self.0)(cx, out) {
            if began.elapsed() >= SLICE {
                return true;
            }
        }
        false
    }
}

impl<C, F: FnMut(&mut C, &mut Output) -> bool + Send> Task<C> for Pieces<F> {
    fn poll(&mut self, cx: &mut C, now: Instant, out: &mut Output) -> TaskPoll {
        if self.go(cx, out) { TaskPoll::At(now) } else { TaskPoll::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;

    /// Lists numbers, each of which takes some time.
    fn list(format: Format, to: u32, each: Duration) -> (Vec<String>, String) {
        let (mut cx, mut out, mut at) = ((), Output::with_format(format), 0);
        let piece = move |(): &mut (), out: &mut Output| {
            if at == to {
                out.end_elements();
                return false;
            }
            std::thread::sleep(each);
            out.line(at);
            out.element(at.into());
            at += 1;
            true
        };
        let (mut stretches, mut whole) = (Vec::new(), String::new());
        let mut outcome = pieces(&mut cx, &mut out, piece);
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
