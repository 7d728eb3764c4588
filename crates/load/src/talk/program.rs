//! Programs of both sides of a connection, step by step.

use crate::Micros;

/// A step of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends a message: over UDP, a datagram.
    Send {
        /// Length in bytes.
        bytes: u32,
    },
    /// Waits for the other side's bytes, or datagrams.
    Expect {
        /// Number of bytes, or of datagrams.
        count: u32,
    },
    /// Waits for a time, drawn evenly from the range.
    Wait {
        /// Least time, in microseconds.
        least: Micros,
        /// Greatest time, in microseconds.
        most: Micros,
    },
    /// Waits for a time drawn from the exponential distribution, at most [`LONGEST_PAUSE`] times
    /// its mean.
    Pause {
        /// Mean time, in microseconds.
        mean: Micros,
    },
    /// Goes back to a step, so that the steps from there on run `times` in all. Repetitions do not
    /// nest.
    Repeat {
        /// Number of the step.
        from: u16,
        /// Number of times that they run.
        times: u16,
    },
    /// Waits until the other side has closed its direction.
    AwaitClose,
    /// Closes this direction (FIN).
    Close,
    /// Ends the connection with RST.
    Reset,
}

/// The steps of one side; when they end, it closes.
pub type Program = Vec<Step>;

/// Side that closes a connection, and the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CloseBy {
    /// The client closes first.
    #[default]
    Client,
    /// The server closes first.
    Server,
    /// Both close when they are done.
    Both,
    /// The client resets the connection.
    Reset,
    /// Nobody: the connection stays open.
    Never,
}

/// The usual exchange: requests that are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Number of requests, each answered.
    pub messages: u16,
    /// Bytes of a request.
    pub request: u32,
    /// Bytes of an answer.
    pub answer: u32,
    /// Time that the server takes before each answer, in microseconds.
    pub wait: Micros,
    /// Side that closes.
    pub close: CloseBy,
}

impl Default for Exchange {
    fn default() -> Self {
        Exchange { messages: 1, request: 20, answer: 20, wait: 0, close: CloseBy::Client }
    }
}

impl Exchange {
    /// Returns the programs of client and server. `datagrams`: over UDP, where each message is one.
    pub fn programs(&self, datagrams: bool) -> (Program, Program) {
        let expect = |bytes| Step::Expect { count: if datagrams { 1 } else { bytes } };
        let mut client = Program::new();
        let mut server = Program::new();
        if self.messages > 0 {
            client.push(Step::Send { bytes: self.request });
            client.push(expect(self.answer));
            server.push(expect(self.request));
            if self.wait > 0 {
                server.push(Step::Wait { least: self.wait, most: self.wait });
            }
            server.push(Step::Send { bytes: self.answer });
        }
        if self.messages > 1 {
            for program in [&mut client, &mut server] {
                program.push(Step::Repeat { from: 0, times: self.messages });
            }
        }
        match (datagrams, self.close) {
            (true, _) | (_, CloseBy::Both) => {}
            (_, CloseBy::Client) => server.push(Step::AwaitClose),
            (_, CloseBy::Server) => client.push(Step::AwaitClose),
            (_, CloseBy::Reset) => {
                client.push(Step::Reset);
                server.push(Step::AwaitClose);
            }
            (_, CloseBy::Never) => {
                client.push(Step::AwaitClose);
                server.push(Step::AwaitClose);
            }
        }
        (client, server)
    }
}

/// A program that cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The program has too many steps.
    #[error("{0} steps: the limit is {max}", max = MAX_STEPS)]
    Long(usize),
    /// A message without bytes, or longer than the protocol takes.
    #[error("step {step}: a message of {bytes} bytes; it must have 1 to {most}")]
    Message {
        /// Number of the step, from 1.
        step: usize,
        /// Its bytes.
        bytes: u32,
        /// Most bytes.
        most: u32,
    },
    /// Nothing expected.
    #[error("step {0}: it expects nothing; it must expect at least 1")]
    Nothing(usize),
    /// A range of times.
    #[error("step {step}: a wait of {least} to {most} µs; it must be at most {limit} µs", limit = MAX_WAIT)]
    Wait {
        /// Number of the step, from 1.
        step: usize,
        /// Least time.
        least: Micros,
        /// Greatest time.
        most: Micros,
    },
    /// A mean time.
    #[error("step {step}: a mean wait of {mean} µs; it must be 1 to {most} µs", most = MAX_WAIT / LONGEST_PAUSE)]
    Pause {
        /// Number of the step, from 1.
        step: usize,
        /// Its mean.
        mean: Micros,
    },
    /// A repetition that does not go back, runs never, or holds another one.
    #[error("step {0}: it must repeat steps before it, at least once, without another repetition")]
    Repeat(usize),
}

/// Maximum number of steps of a side.
pub const MAX_STEPS: usize = 1024;
/// Maximum bytes of a message over TCP.
pub const MAX_MESSAGE: u32 = 1 << 30;
/// Maximum time of a wait, in microseconds: 30 minutes.
pub const MAX_WAIT: Micros = 30 * 60 * 1_000_000;

/// The longest [`Step::Pause`], as a multiple of its mean: one in 3,000 would be longer.
pub const LONGEST_PAUSE: u64 = 8;

/// Returns the longest time for which a side sends nothing because its program waits, in
/// microseconds.
pub(super) fn silence(program: &[Step]) -> Micros {
    let (mut longest, mut run): (Micros, Micros) = (0, 0);
    // Silence before each step, and the step after the last word.
    let (mut before, mut spoken) = (Vec::new(), 0);
    for (at, step) in program.iter().enumerate() {
        before.push(run);
        match *step {
            Step::Wait { most, .. } => run = run.saturating_add(most),
            Step::Pause { mean } => run = run.saturating_add(mean.saturating_mul(LONGEST_PAUSE)),
            // Rounds without a word add up.
            Step::Repeat { from, times } if usize::from(from) >= spoken => {
                let start = before.get(usize::from(from)).copied().unwrap_or(run);
                let again = (run - start).saturating_mul(u64::from(times.max(1)) - 1);
                run = run.saturating_add(again);
            }
            // The next round begins with what the last one ended with.
            Step::Repeat { from, .. } => {
                let first = program.iter().skip(from.into()).take(at - usize::from(from));
                let waits = first.take_while(|step| !matches!(step, Step::Send { .. }));
                let more: Micros = waits.map(|step| silence(&[*step])).sum();
                longest = longest.max(run.saturating_add(more));
            }
            Step::Send { .. } | Step::Close | Step::Reset => (run, spoken) = (0, at + 1),
            Step::Expect { .. } | Step::AwaitClose => {}
        }
        longest = longest.max(run);
    }
    longest
}

/// Checks a program. `most` is the longest message.
pub(super) fn check(program: &[Step], most: u32) -> Result<(), ProgramError> {
    if program.len() > MAX_STEPS {
        return Err(ProgramError::Long(program.len()));
    }
    let mut repeated = 0;
    for (at, step) in program.iter().enumerate() {
        let number = at + 1;
        match *step {
            Step::Send { bytes } if bytes == 0 || bytes > most => {
                return Err(ProgramError::Message { step: number, bytes, most });
            }
            Step::Expect { count: 0 } => return Err(ProgramError::Nothing(number)),
            Step::Wait { least, most } if least > most || most > MAX_WAIT => {
                return Err(ProgramError::Wait { step: number, least, most });
            }
            Step::Pause { mean } if mean == 0 || mean > MAX_WAIT / LONGEST_PAUSE => {
                return Err(ProgramError::Pause { step: number, mean });
            }
            Step::Repeat { from, times } => {
                if usize::from(from) >= at || usize::from(from) < repeated || times == 0 {
                    return Err(ProgramError::Repeat(number));
                }
                repeated = number;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchange_of_the_article_repeats() {
        let exchange = Exchange { messages: 500, wait: 50_000, ..Exchange::default() };
        let (client, server) = exchange.programs(false);
        assert_eq!(client[2], Step::Repeat { from: 0, times: 500 });
        assert_eq!(server.len(), 5);
        assert_eq!(server[4], Step::AwaitClose);
        for program in [&client, &server] {
            check(program, MAX_MESSAGE).unwrap();
        }
    }

    #[test]
    fn silences_are_as_long_as_waits_between_words() {
        let (send, expect) = (Step::Send { bytes: 1 }, Step::Expect { count: 1 });
        let wait = |most| Step::Wait { least: 1, most };
        let repeat = |from, times| Step::Repeat { from, times };
        for (program, longest) in [
            (vec![], 0),
            (vec![send, expect], 0),
            (vec![send, wait(5), expect, wait(7), Step::AwaitClose], 12),
            (vec![send, wait(5), send, wait(7)], 7),
            (vec![Step::Pause { mean: 3 }, send], 24),
            (vec![send, wait(5), repeat(1, 4)], 20),
            (vec![wait(2), send, wait(5), repeat(0, 4)], 7),
            (vec![wait(2), send, wait(5), repeat(0, 4), wait(3)], 8),
            (vec![expect, wait(MAX_WAIT), wait(MAX_WAIT)], 2 * MAX_WAIT),
        ] {
            assert_eq!(silence(&program), longest, "{program:?}");
        }
    }

    #[test]
    fn wrong_steps_are_named() {
        let send = |bytes| Step::Send { bytes };
        let text = |program: &[Step]| check(program, 1000).unwrap_err().to_string();
        assert_eq!(
            text(&[send(1), send(0)]),
            "step 2: a message of 0 bytes; it must have 1 to 1000"
        );
        assert_eq!(text(&[send(1001)]), "step 1: a message of 1001 bytes; it must have 1 to 1000");
        let repeat = |from, times| Step::Repeat { from, times };
        for program in [
            [repeat(0, 2), send(1), send(1)],
            [send(1), repeat(0, 2), repeat(0, 2)],
            [send(1), repeat(0, 0), send(1)],
            [send(1), repeat(2, 1), send(1)],
        ] {
            assert!(matches!(check(&program, 1000), Err(ProgramError::Repeat(_))), "{program:?}");
        }
        check(&[send(1), repeat(0, 2), send(1), repeat(2, 2)], 1000).unwrap();
        for mean in [0, MAX_WAIT / LONGEST_PAUSE + 1] {
            let found = check(&[Step::Pause { mean }], 1);
            assert_eq!(found, Err(ProgramError::Pause { step: 1, mean }));
        }
        let wait = Step::Wait { least: 2, most: 1 };
        assert!(matches!(check(&[wait], 1), Err(ProgramError::Wait { step: 1, .. })));
        assert!(matches!(check(&[send(1); 1025], 1), Err(ProgramError::Long(1025))));
    }
}
