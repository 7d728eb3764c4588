//! Commands that ask all workers, and do other work while one is late with its answer.

use std::time::{Duration, Instant};
use thalweg_cli::{CliError, Outcome, Output, Task, TaskPoll};
use thalweg_graph::control::{Asked, Control};
use thalweg_graph::worker::Core;

/// Maximum time that the main thread waits at once. Workers usually answer within microseconds.
const SLICE: Duration = Duration::from_millis(5);
/// Time between looks at answers that are late.
const REST: Duration = Duration::from_millis(2);

/// The call that follows the answers.
type Then<R> =
    Box<dyn FnOnce(&mut Control, Vec<Option<R>>, &mut Output) -> Result<(), CliError> + Send>;

struct Asking<R> {
    asked: Asked<R>,
    then: Option<Then<R>>,
}

impl<R: Send> Task<Control> for Asking<R> {
    fn poll(&mut self, c: &mut Control, _now: Instant, out: &mut Output) -> TaskPoll {
        let Some(answers) = self.asked.wait(c, Duration::ZERO) else {
            return TaskPoll::At(Instant::now() + REST);
        };
        match self.then.take().map(|then| then(c, answers, out)) {
            None | Some(Ok(())) => TaskPoll::Done,
            Some(Err(e)) => TaskPoll::Failed(e),
        }
    }
}

/// Makes every worker run `f` between two loops, before later questions. Usually it has when this
/// returns; one that is late is not waited for.
pub fn tell_workers(c: &mut Control, f: impl Fn(&mut Core) + Clone + Send + 'static) {
    let _ = c.begin_asking(f).wait(c, SLICE);
}

/// Makes every worker run `f` between two loops, then continues with the results: at once if they
/// come at once. `None` is that of a worker that did not respond in time.
///
/// # Errors
/// That of `then`.
pub fn ask_workers<R: Send + 'static>(
    c: &mut Control,
    out: &mut Output,
    f: impl Fn(&mut Core) -> R + Clone + Send + 'static,
    then: impl FnOnce(&mut Control, Vec<Option<R>>, &mut Output) -> Result<(), CliError>
    + Send
    + 'static,
) -> Result<Outcome<Control>, CliError> {
    let mut asked = c.begin_asking(f);
    match asked.wait(c, SLICE) {
        Some(answers) => then(c, answers, out).map(|()| Outcome::Done),
        None => Ok(Outcome::pending(Asking { asked, then: Some(Box::new(then)) })),
    }
}
