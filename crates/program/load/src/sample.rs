//! Counts of both sides in a sample.

use thalweg_load::talk::Counts;

use super::device::{Books, OfGroup};

/// Counts and rates of a sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Rate asked for, in connections per second.
    pub(super) rate: f64,
    /// Its length in seconds.
    pub(super) seconds: f64,
    /// Connections open at its end, TIME_WAIT included.
    pub(super) active: u64,
    /// Open ones that are not in TIME_WAIT.
    pub(super) open: u64,
    /// Counters of both sides in its window.
    pub(super) clients: Counts,
    /// Counters of the servers.
    pub(super) servers: Counts,
    /// Counters of the clients in its window, of groups whose number is not held.
    pub(super) flowing: Counts,
    /// Counters of both sides from its beginning to the end of its last connection.
    pub(super) all_clients: Counts,
    /// Counters of the servers.
    pub(super) all_servers: Counts,
}

/// Counts of clients in groups that have a rate: the number of others is held, and is no measure of
/// their lives, which may be longer than any window.
fn flowing(before: &Books, after: &Books) -> Counts {
    let groups = before.groups.iter().zip(&after.groups).filter(|(_, is)| !is.held);
    let of = |(was, is): (&OfGroup, &OfGroup)| is.clients.counts.since(&was.clients.counts);
    groups.map(of).fold(Counts::default(), |sum, of| sum.plus(&of))
}

/// Bytes that a frame has on the wire beyond those counted: the FCS.
const FCS: u64 = 4;
/// Bytes of preamble and gap.
const GAP: u64 = 20;

impl Sample {
    /// `after` is the end of the window, `end` that of its last connection.
    pub(super) fn of(rate: f64, before: &Books, after: &Books, end: &Books) -> Sample {
        let clients = &after.clients;
        Sample {
            rate,
            seconds: (clients.at.saturating_sub(before.clients.at) as f64 / 1e6).max(1e-6),
            active: u64::from(clients.open) + u64::from(clients.time_wait),
            open: clients.open.into(),
            clients: clients.counts.since(&before.clients.counts),
            servers: after.servers.counts.since(&before.servers.counts),
            flowing: flowing(before, after),
            all_clients: end.clients.counts.since(&before.clients.counts),
            all_servers: end.servers.counts.since(&before.servers.counts),
        }
    }

    /// The sample of a trial from quiet to quiet: `base` and `end` are its first and its last
    /// reading, in between is the window.
    pub(super) fn whole(
        rate: f64,
        base: &Books,
        (before, after): (&Books, &Books),
        end: &Books,
    ) -> Sample {
        Sample {
            all_clients: end.clients.counts.since(&base.clients.counts),
            all_servers: end.servers.counts.since(&base.servers.counts),
            ..Sample::of(rate, before, after, end)
        }
    }

    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    /// Packets and bits of layer 2 that both sides sent in the window.
    pub(super) fn sent(&self) -> (u64, u64) {
        let packets = self.clients.sent + self.servers.sent;
        let bytes = self.clients.sent_bytes + self.servers.sent_bytes;
        (packets, 8 * (bytes + FCS * packets))
    }

    /// Packets and bits of layer 2 that both sides received in the window.
    pub(super) fn received(&self) -> (u64, u64) {
        let packets = self.clients.received + self.servers.received;
        let bytes = self.clients.received_bytes + self.servers.received_bytes;
        (packets, 8 * (bytes + FCS * packets))
    }

    /// Bits that both sides received in the window, with FCS, preamble and gap.
    pub(super) fn l1_received(&self) -> u64 {
        let (packets, bits) = self.received();
        bits + 8 * GAP * packets
    }

    /// Packets lost, of those sent until the last connection of the window had ended.
    pub(super) fn lost(&self) -> (u64, u64) {
        let sent = self.all_clients.sent + self.all_servers.sent;
        (self.lost_ways().iter().sum(), sent)
    }

    /// Packets lost on the way to servers, and back.
    pub(super) fn lost_ways(&self) -> [u64; 2] {
        let (clients, servers) = (&self.all_clients, &self.all_servers);
        let lost = |sent: &Counts, received: &Counts| sent.sent.saturating_sub(received.received);
        [lost(clients, servers), lost(servers, clients)]
    }

    /// Packets lost on each way, and of those, the ones that have arrived with other bytes.
    pub(super) fn missing_ways(&self) -> [[u64; 2]; 2] {
        let (clients, servers) = (&self.all_clients, &self.all_servers);
        [self.lost_ways(), [servers.bad_checksum, clients.bad_checksum]]
    }

    /// Packets that have arrived with other bytes; they count as lost.
    pub(super) fn damaged(&self) -> u64 {
        self.all_clients.bad_checksum + self.all_servers.bad_checksum
    }

    /// Packets that have arrived beyond those sent, on either way: the device repeats some.
    pub(super) fn surplus(&self) -> u64 {
        let (clients, servers) = (&self.all_clients, &self.all_servers);
        let more = |received: &Counts, sent: &Counts| received.received.saturating_sub(sent.sent);
        more(servers, clients) + more(clients, servers)
    }

    /// Share of packets lost, in percent.
    pub(super) fn lost_percent(&self) -> f64 {
        let (lost, sent) = self.lost();
        100.0 * lost as f64 / sent.max(1) as f64
    }

    /// Average bytes of messages per packet that the clients counted.
    pub(super) fn size(&self) -> f64 {
        let packets = self.clients.sent + self.clients.received;
        (self.clients.said + self.clients.heard) as f64 / packets.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_device_load::Report;

    #[test]
    fn held_connections_say_nothing_of_lives() {
        let of = |held, n: u64| {
            let counts = Counts { begun: n, held: 10 * n, ..Counts::default() };
            let clients = Report { counts, ..Report::default() };
            OfGroup { held, clients, servers: Report::default() }
        };
        let books = |n| Books { groups: vec![of(false, n), of(true, 100 * n)], ..Books::default() };
        let flowing = flowing(&books(1), &books(3));
        assert_eq!((flowing.begun, flowing.held), (2, 20));
    }
}
