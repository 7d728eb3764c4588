//! Answers of all workers.

use std::cell::{Cell, RefCell};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// The sum of what all workers answer to a question.
#[derive(Debug)]
pub struct Answers<T> {
    answers: Receiver<T>,
    /// Workers that have not answered yet.
    left: Cell<usize>,
    sum: RefCell<Option<T>>,
    add: fn(&mut T, T),
}

impl<T> Answers<T> {
    /// Creates a question to this number of workers, each of which has the sender.
    pub(crate) fn of(workers: usize, add: fn(&mut T, T)) -> (Sender<T>, Answers<T>) {
        let (answer, answers) = channel();
        let left = Cell::new(workers);
        (answer, Answers { answers, left, sum: RefCell::default(), add })
    }

    fn take(&self, answer: T) {
        self.left.set(self.left.get().saturating_sub(1));
        let mut sum = self.sum.borrow_mut();
        match sum.as_mut() {
            Some(sum) => (self.add)(sum, answer),
            None => *sum = Some(answer),
        }
    }

    /// Returns the sum, if all workers have answered.
    ///
    /// # Errors
    /// If some have not, or have nothing to say.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        while self.left.get() > 0 {
            self.take(self.answers.try_recv()?);
        }
        self.sum.take().ok_or(TryRecvError::Disconnected)
    }

    /// Waits until all workers have answered, and returns the sum.
    ///
    /// # Errors
    /// If the time is over, or some workers have nothing to say.
    pub fn recv_timeout(&self, time: Duration) -> Result<T, RecvTimeoutError> {
        let end = Instant::now() + time;
        while self.left.get() > 0 {
            let left = end.saturating_duration_since(Instant::now());
            self.take(self.answers.recv_timeout(left)?);
        }
        self.sum.take().ok_or(RecvTimeoutError::Disconnected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_there_once_all_have_answered() {
        let (sender, answers) = Answers::of(2, |sum: &mut u32, other| *sum += other);
        sender.send(3).unwrap();
        assert_eq!(answers.try_recv(), Err(TryRecvError::Empty));
        let timeout = answers.recv_timeout(Duration::ZERO);
        assert_eq!(timeout, Err(RecvTimeoutError::Timeout));
        sender.send(4).unwrap();
        assert_eq!(answers.try_recv(), Ok(7));
        assert_eq!(answers.try_recv(), Err(TryRecvError::Disconnected), "it is read once");
        let (sender, answers) = Answers::of(2, |sum: &mut u32, other| *sum += other);
        sender.send(3).unwrap();
        drop(sender);
        assert_eq!(answers.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Disconnected));
    }
}
