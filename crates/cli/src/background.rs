//! Commands that read or write files: what may block runs on a thread of its own.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crate::command::{Outcome, Task, TaskPoll};
use crate::error::CliError;
use crate::output::Output;

/// Interval between checks for the result: short at first, since most files are small.
const REST: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(5)];

/// Returns the outcome of a command that runs `job` on another thread and then, on the main thread,
/// `then` with its result. `then` may return a task with which the command continues. A command
/// that is cancelled does not wait for `job`, whose result is dropped.
///
/// # Errors
/// If no thread can be started.
pub fn in_background<C: 'static, T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
    then: impl FnOnce(&mut C, T, &mut Output) -> Result<Option<Box<dyn Task<C>>>, CliError>
    + Send
    + 'static,
) -> Result<Outcome<C>, CliError> {
    let (give, result) = mpsc::sync_channel(1);
    let run = move || drop(give.send(job()));
    std::thread::Builder::new()
        .name("command".into())
        .spawn(run)
        .map_err(|e| CliError::failed(format_args!("cannot start a thread: {e}")))?;
    let then = Some(Box::new(then) as Then<C, T>);
    Ok(Outcome::pending(Background { result, then, begun: None, rest: None }))
}

type Then<C, T> =
    Box<dyn FnOnce(&mut C, T, &mut Output) -> Result<Option<Box<dyn Task<C>>>, CliError> + Send>;

struct Background<C, T> {
    result: Receiver<T>,
    then: Option<Then<C, T>>,
    begun: Option<Instant>,
    /// Continuation of the command.
    rest: Option<Box<dyn Task<C>>>,
}

impl<C: 'static, T: Send + 'static> Task<C> for Background<C, T> {
    fn poll(&mut self, cx: &mut C, now: Instant, out: &mut Output) -> TaskPoll {
        if let Some(rest) = &mut self.rest {
            return rest.poll(cx, now, out);
        }
        let begun = *self.begun.get_or_insert(now);
        let result = match self.result.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => {
                let soon = now.duration_since(begun) < REST[1];
                return TaskPoll::At(now + REST[usize::from(!soon)]);
            }
            Err(TryRecvError::Disconnected) => {
                return TaskPoll::Failed(CliError::failed("the command's thread panicked"));
            }
        };
        let Some(then) = self.then.take() else { return TaskPoll::Done };
        match then(cx, result, out) {
            Ok(None) => TaskPoll::Done,
            Ok(Some(mut rest)) => {
                let poll = rest.poll(cx, now, out);
                self.rest = Some(rest);
                poll
            }
            Err(e) => TaskPoll::Failed(e),
        }
    }

    fn cancel(&mut self, cx: &mut C, out: &mut Output) {
        if let Some(rest) = &mut self.rest {
            rest.cancel(cx, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(outcome: Outcome<u32>, cx: &mut u32) -> TaskPoll {
        let Outcome::Pending(mut task) = outcome else { panic!("not pending") };
        let mut out = Output::default();
        let start = Instant::now();
        loop {
            match task.poll(cx, Instant::now(), &mut out) {
                TaskPoll::At(at) => {
                    assert!(start.elapsed() < Duration::from_secs(60));
                    // Paced: the time that the task asks for.
                    std::thread::sleep(at.saturating_duration_since(Instant::now()));
                }
                end => return end,
            }
        }
    }

    struct Add(u32);

    impl Task<u32> for Add {
        fn poll(&mut self, cx: &mut u32, now: Instant, _: &mut Output) -> TaskPoll {
            *cx += 1;
            self.0 -= 1;
            if self.0 == 0 { TaskPoll::Done } else { TaskPoll::At(now) }
        }
    }

    #[test]
    fn the_result_reaches_the_main_thread_and_the_command_goes_on() {
        let mut cx = 0;
        let outcome = in_background(
            || 7,
            |cx: &mut u32, n, _| {
                *cx = n;
                Ok(Some(Box::new(Add(3)) as Box<dyn Task<u32>>))
            },
        );
        assert_eq!(finish(outcome.unwrap(), &mut cx), TaskPoll::Done);
        assert_eq!(cx, 10);
    }

    #[test]
    fn errors_and_panics_end_the_command() {
        let mut cx = 0;
        let refuse = |_: &mut u32, (), _: &mut Output| Err(CliError::failed("no"));
        let outcome = in_background(|| (), refuse).unwrap();
        assert_eq!(finish(outcome, &mut cx), TaskPoll::Failed(CliError::failed("no")));
        let outcome = in_background(|| panic!("as the test wants"), |_, (), _| Ok(None));
        let TaskPoll::Failed(error) = finish(outcome.unwrap(), &mut cx) else { panic!("done") };
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}
