//! Counters of one side.

/// Conversations given up, by what was missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The answer to SYN or to SYN and ACK.
    pub syn: u64,
    /// Acknowledgement of data sent.
    pub sent: u64,
    /// Data expected.
    pub expected: u64,
    /// The end of the connection.
    pub fin: u64,
}

impl Lost {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.syn + self.sent + self.expected + self.fin
    }
}

/// Conversations that began in the window of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Begun.
    pub begun: u64,
    /// Ended as their program says.
    pub completed: u64,
    /// Completed with nothing sent twice.
    pub clean: u64,
    /// Ended otherwise: lost, reset, or with a wrong answer.
    pub failed: u64,
}

/// Counters of one side. Sums over both sides of a trial balance: see [`Counts::balances`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Conversations begun: opened by a client, accepted by a server.
    pub begun: u64,
    /// Conversations not begun in time, because the tester was late.
    pub unsent: u64,
    /// Conversations not begun because their kind has reached its limit.
    pub held_back: u64,
    /// Conversations not begun because no pair of address and port was free, or no room left.
    pub no_tuple: u64,
    /// Connections established.
    pub established: u64,
    /// Conversations ended as their program says.
    pub completed: u64,
    /// Conversations completed with nothing sent twice.
    pub clean: u64,
    /// Conversations ended with something wrong: an answer with other bytes, or cut short.
    pub wrong: u64,
    /// Conversations reset by the other side.
    pub reset: u64,
    /// Conversations that the program ended with a reset.
    pub aborted: u64,
    /// Conversations given up.
    pub lost: Lost,
    /// Conversations ended by the tester.
    pub abandoned: u64,
    /// Conversations that began in the window of a trial.
    pub judged: Judged,
    /// SYN, or SYN and ACK, sent again.
    pub syn_retries: u64,
    /// Data and FIN sent again because a time was over.
    pub data_retries: u64,
    /// Data sent again after three duplicate acknowledgements.
    pub fast_retries: u64,
    /// Questions sent whether the other side is still there.
    pub keepalives: u64,
    /// Segments received twice.
    pub duplicates: u64,
    /// Segments received before one that precedes them.
    pub reordered: u64,
    /// Segments and datagrams for which there is no conversation.
    pub unknown: u64,
    /// Segments that do not fit their connection.
    pub unexpected: u64,
    /// Frames with a wrong checksum.
    pub bad_checksum: u64,
    /// Other frames.
    pub foreign: u64,
    /// RST sent.
    pub resets_sent: u64,
    /// Frames and bytes sent, without FCS.
    pub sent: u64,
    /// Bytes of the frames sent.
    pub sent_bytes: u64,
    /// Frames of conversations received.
    pub received: u64,
    /// Bytes of the frames received.
    pub received_bytes: u64,
    /// Bytes of messages sent, each once.
    pub said: u64,
    /// Bytes of messages received, each once.
    pub heard: u64,
    /// Frames not sent because the transport had no room.
    pub no_room: u64,
    /// Conversations that ended by themselves, TIME_WAIT not included, and how long they lived in
    /// all, in milliseconds. Only clients know.
    pub ended: u64,
    /// Their lives, in milliseconds.
    pub lived: u64,
    /// The number open, TIME_WAIT not included, summed up over time: in microseconds.
    pub held: u64,
}

impl Counts {
    /// Returns whether all conversations begun are accounted for, with this many still open
    /// (TIME_WAIT counts as completed).
    pub fn balances(&self, open: u64) -> bool {
        let ended = self.completed
            + self.wrong
            + self.reset
            + self.aborted
            + self.lost.all()
            + self.abandoned;
        self.begun == ended + open
    }

    /// Returns what was counted since an earlier reading.
    pub fn since(&self, earlier: &Counts) -> Counts {
        self.each(earlier, u64::saturating_sub)
    }

    /// Returns the sum of two sides.
    pub fn plus(&self, other: &Counts) -> Counts {
        self.each(other, u64::saturating_add)
    }

    fn each(&self, other: &Counts, f: impl Fn(u64, u64) -> u64) -> Counts {
        Counts {
            begun: f(self.begun, other.begun),
            unsent: f(self.unsent, other.unsent),
            held_back: f(self.held_back, other.held_back),
            no_tuple: f(self.no_tuple, other.no_tuple),
            established: f(self.established, other.established),
            completed: f(self.completed, other.completed),
            clean: f(self.clean, other.clean),
            wrong: f(self.wrong, other.wrong),
            reset: f(self.reset, other.reset),
            aborted: f(self.aborted, other.aborted),
            abandoned: f(self.abandoned, other.abandoned),
            syn_retries: f(self.syn_retries, other.syn_retries),
            data_retries: f(self.data_retries, other.data_retries),
            fast_retries: f(self.fast_retries, other.fast_retries),
            keepalives: f(self.keepalives, other.keepalives),
            duplicates: f(self.duplicates, other.duplicates),
            reordered: f(self.reordered, other.reordered),
            unknown: f(self.unknown, other.unknown),
            unexpected: f(self.unexpected, other.unexpected),
            bad_checksum: f(self.bad_checksum, other.bad_checksum),
            foreign: f(self.foreign, other.foreign),
            resets_sent: f(self.resets_sent, other.resets_sent),
            sent: f(self.sent, other.sent),
            sent_bytes: f(self.sent_bytes, other.sent_bytes),
            received: f(self.received, other.received),
            received_bytes: f(self.received_bytes, other.received_bytes),
            said: f(self.said, other.said),
            heard: f(self.heard, other.heard),
            no_room: f(self.no_room, other.no_room),
            ended: f(self.ended, other.ended),
            lived: f(self.lived, other.lived),
            held: f(self.held, other.held),
            lost: Lost {
                syn: f(self.lost.syn, other.lost.syn),
                sent: f(self.lost.sent, other.lost.sent),
                expected: f(self.lost.expected, other.lost.expected),
                fin: f(self.lost.fin, other.lost.fin),
            },
            judged: Judged {
                begun: f(self.judged.begun, other.judged.begun),
                completed: f(self.judged.completed, other.judged.completed),
                clean: f(self.judged.clean, other.judged.clean),
                failed: f(self.judged.failed, other.judged.failed),
            },
        }
    }
}
