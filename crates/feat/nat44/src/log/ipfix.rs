//! The session log as IPFIX messages (RFC 7011), with the events of RFC 8158.

use super::{Notice, Record};
use std::io;
use std::net::UdpSocket;
use std::time::{Duration, Instant, SystemTime};

/// Information elements and lengths of a session record, in order.
const ELEMENTS: [(u16, u16); 12] = [
    (323, 8), // observationTimeMilliseconds
    (230, 1), // natEvent
    (4, 1),   // protocolIdentifier
    (234, 4), // ingressVRFID
    (8, 4),   // sourceIPv4Address
    (225, 4), // postNATSourceIPv4Address
    (7, 2),   // sourceTransportPort
    (227, 2), // postNAPTSourceTransportPort
    (12, 4),  // destinationIPv4Address
    (226, 4), // postNATDestinationIPv4Address
    (11, 2),  // destinationTransportPort
    (228, 2), // postNAPTDestinationTransportPort
];
/// Further elements of a deleted session: octetTotalCount, packetTotalCount.
const AT_END: [(u16, u16); 2] = [(85, 8), (86, 8)];

/// Elements for addresses exhausted: natPoolId.
const NO_ADDRESS: [(u16, u16); 3] = [(323, 8), (230, 1), (283, 4)];
/// Elements for a session limit: natQuotaExceededEvent, maxSessionEntries.
const SESSIONS: [(u16, u16); 4] = [(323, 8), (230, 1), (466, 4), (471, 4)];
/// Elements for a limit per host: maxEntriesPerUser, sourceIPv4Address, ingressVRFID.
const PER_HOST: [(u16, u16); 6] = [(323, 8), (230, 1), (466, 4), (473, 4), (8, 4), (234, 4)];

/// Template ids for created and deleted sessions.
const TEMPLATES: [u16; 2] = [256, 257];
/// Template ids for notices, in the order above.
const NOTICES: [u16; 3] = [258, 259, 260];
/// Set id of template sets (RFC 7011 section 3.3.2).
const TEMPLATE_SET: u16 = 2;
/// natEvent for NAT44 session create and delete (RFC 8158 section 4.4).
const EVENTS: [u8; 2] = [4, 5];
/// natEvent for addresses exhausted and quota exceeded.
const EXHAUSTED: u8 = 3;
const QUOTA: u8 = 13;
/// natQuotaExceededEvent: maximum session entries, maximum entries per user.
const MOST_SESSIONS: u32 = 1;
const MOST_PER_HOST: u32 = 3;
/// Default observation domain id.
pub(super) const DOMAIN: u32 = 1;
const VERSION: u16 = 10;
/// Lengths of a message header and a set header.
const HEADER: usize = 16;
const SET: usize = 4;
/// Maximum message length, to avoid fragmentation.
const LONGEST: usize = 1400;
/// Interval at which templates are repeated, since datagrams may be lost (RFC 7011 section 8.4).
const AGAIN: Duration = Duration::from_secs(60);

/// Exports messages over UDP.
#[derive(Debug)]
pub(super) struct Exporter {
    socket: UdpSocket,
    domain: u32,
    /// The current message with its header; empty without records.
    message: Vec<u8>,
    /// Start of the current set, and its template id.
    set: (usize, u16),
    /// Number of records in the message.
    records: u32,
    /// Number of records sent before (RFC 7011 section 3.1).
    sequence: u32,
    templates_sent: Option<Instant>,
}

impl Exporter {
    pub(super) fn new(socket: UdpSocket, domain: u32) -> Exporter {
        let message = Vec::with_capacity(LONGEST);
        Exporter {
            socket,
            domain,
            message,
            set: (0, 0),
            records: 0,
            sequence: 0,
            templates_sent: None,
        }
    }

    /// Adds a record. A full message is sent first.
    pub(super) fn add(&mut self, record: &Record) -> io::Result<()> {
        let ends = usize::from(record.end.is_some());
        self.make_room(TEMPLATES[ends], length(ends))?;
        let m = &mut self.message;
        let (inside, outside) = (&record.inside, &record.outside);
        m.extend((record.unix.as_millis() as u64).to_be_bytes());
        m.extend([EVENTS[ends], inside.protocol]);
        m.extend(inside.table.to_be_bytes());
        m.extend(inside.src.octets());
        m.extend(outside.dst.octets());
        m.extend(inside.sport.to_be_bytes());
        m.extend(outside.dport.to_be_bytes());
        m.extend(inside.dst.octets());
        m.extend(outside.src.octets());
        m.extend(inside.dport.to_be_bytes());
        m.extend(outside.sport.to_be_bytes());
        if let Some(end) = &record.end {
            m.extend(end.bytes.to_be_bytes());
            m.extend(end.packets.to_be_bytes());
        }
        self.records += 1;
        self.close_set();
        Ok(())
    }

    pub(super) fn add_notice(&mut self, notice: Notice, unix: Duration) -> io::Result<()> {
        let (kind, fields) = match notice {
            Notice::NoAddress => (0, &NO_ADDRESS[..]),
            Notice::Sessions(_) => (1, &SESSIONS[..]),
            Notice::PerHost { .. } => (2, &PER_HOST[..]),
        };
        let length = fields.iter().map(|(_, length)| usize::from(*length)).sum();
        self.make_room(NOTICES[kind], length)?;
        let m = &mut self.message;
        m.extend((unix.as_millis() as u64).to_be_bytes());
        let mut words = |event: u8, words: &[u32]| {
            m.push(event);
            words.iter().for_each(|w| m.extend(w.to_be_bytes()));
        };
        match notice {
            // All addresses belong to one pool.
            Notice::NoAddress => words(EXHAUSTED, &[0]),
            Notice::Sessions(most) => words(QUOTA, &[MOST_SESSIONS, most]),
            Notice::PerHost { most, host, table } => {
                words(QUOTA, &[MOST_PER_HOST, most, host.to_bits(), table.get()]);
            }
        }
        self.records += 1;
        self.close_set();
        Ok(())
    }

    /// Makes room for a record of `length` bytes with this template; sends the message first if it
    /// is full.
    fn make_room(&mut self, template: u16, length: usize) -> io::Result<()> {
        if self.message.len() + SET + length > LONGEST {
            self.flush()?;
        }
        if self.message.is_empty() {
            self.begin();
        }
        if self.set.1 != template {
            self.open_set(template);
        }
        Ok(())
    }

    /// Sends the current message.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.message.is_empty() {
            return Ok(());
        }
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let length = self.message.len() as u16;
        let header = &mut self.message[..HEADER];
        header[..2].copy_from_slice(&VERSION.to_be_bytes());
        header[2..4].copy_from_slice(&length.to_be_bytes());
        header[4..8].copy_from_slice(&(seconds.as_secs() as u32).to_be_bytes());
        header[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        header[12..].copy_from_slice(&self.domain.to_be_bytes());
        let sent = self.socket.send(&self.message).map(drop);
        // Records lost here count in the sequence number, so that the collector notices.
        self.sequence = self.sequence.wrapping_add(self.records);
        self.records = 0;
        self.message.clear();
        if sent.is_err() {
            self.templates_sent = None;
        }
        sent
    }

    /// Starts a message, with templates if they are due.
    fn begin(&mut self) {
        self.message.resize(HEADER, 0);
        self.set = (0, 0);
        if self.templates_sent.is_some_and(|at| at.elapsed() < AGAIN) {
            return;
        }
        self.templates_sent = Some(Instant::now());
        self.open_set(TEMPLATE_SET);
        let with_end = [&ELEMENTS[..], &AT_END].concat();
        let sessions = TEMPLATES.into_iter().zip([&ELEMENTS[..], &with_end]);
        let notices = NOTICES.into_iter().zip([&NO_ADDRESS[..], &SESSIONS, &PER_HOST]);
        for (number, fields) in sessions.chain(notices) {
            self.message.extend(number.to_be_bytes());
            self.message.extend((fields.len() as u16).to_be_bytes());
            for (element, length) in fields {
                self.message.extend(element.to_be_bytes());
                self.message.extend(length.to_be_bytes());
            }
        }
        self.close_set();
    }

    fn open_set(&mut self, number: u16) {
        self.set = (self.message.len(), number);
        self.message.extend(number.to_be_bytes());
        self.message.extend([0; 2]);
    }

    /// Writes the length of the current set.
    fn close_set(&mut self) {
        let length = (self.message.len() - self.set.0) as u16;
        let at = self.set.0 + 2;
        self.message[at..at + 2].copy_from_slice(&length.to_be_bytes());
    }
}

/// Length of a session record.
fn length(ends: usize) -> usize {
    let more = if ends == 1 { &AT_END[..] } else { &[] };
    ELEMENTS.iter().chain(more).map(|(_, length)| usize::from(*length)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::End;
    use super::*;
    use std::collections::BTreeMap;
    use thalweg_fib::TableId;
    use thalweg_wire::nat::tuple::Tuple;

    fn word(b: &[u8], at: usize) -> u16 {
        u16::from_be_bytes([b[at], b[at + 1]])
    }

    type Templates = BTreeMap<u16, Vec<(u16, u16)>>;

    /// Sequence number and records of a message, decoded with the templates seen so far.
    fn decode(m: &[u8], known: &mut Templates) -> (u32, Vec<BTreeMap<u16, u64>>) {
        assert_eq!((word(m, 0), usize::from(word(m, 2)), word(m, 14)), (10, m.len(), 1));
        let (mut at, mut records) = (HEADER, Vec::new());
        while at < m.len() {
            let (id, end) = (word(m, at), at + usize::from(word(m, at + 2)));
            at += SET;
            while at < end {
                if id == TEMPLATE_SET {
                    let (number, count) = (word(m, at), usize::from(word(m, at + 2)));
                    let fields = (0..count).map(|i| at + 4 + 4 * i);
                    known.insert(number, fields.map(|f| (word(m, f), word(m, f + 2))).collect());
                    at += 4 + 4 * count;
                    continue;
                }
                let mut record = BTreeMap::new();
                for (element, length) in &known[&id] {
                    let bytes = &m[at..at + usize::from(*length)];
                    record.insert(*element, bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)));
                    at += bytes.len();
                }
                records.push(record);
            }
            assert_eq!(at, end);
        }
        (u32::from_be_bytes([m[8], m[9], m[10], m[11]]), records)
    }

    fn record(sport: u16, end: Option<End>) -> Record {
        let inside = Tuple {
            src: [10, 0, 0, 2].into(),
            sport,
            dst: [198, 51, 100, 7].into(),
            dport: 53,
            protocol: 17,
            table: 7,
        };
        let outside = Tuple { dst: [192, 0, 2, 1].into(), dport: 1024, ..inside.reversed() };
        Record { unix: Duration::from_millis(1_234_567), worker: 0, marks: 0, inside, outside, end }
    }

    #[test]
    fn messages_are_read_by_their_templates() {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        collector.set_read_timeout(Some(thalweg_testkit::WAIT_LIMIT)).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(collector.local_addr().unwrap()).unwrap();
        let mut exporter = Exporter::new(socket, DOMAIN);
        exporter.flush().unwrap();
        for n in 0..100 {
            let end = End { packets: 3, bytes: 180, seconds: 1.0 };
            exporter.add(&record(n, (n % 10 == 9).then_some(end))).unwrap();
        }
        exporter.flush().unwrap();
        let (mut all, mut known, mut messages) = (Vec::new(), Templates::new(), 0);
        while all.len() < 100 {
            let mut buffer = [0; 2000];
            let n = collector.recv(&mut buffer).unwrap();
            assert!(n <= LONGEST);
            let (sequence, records) = decode(&buffer[..n], &mut known);
            assert_eq!(sequence as usize, all.len());
            all.extend(records);
            messages += 1;
        }
        assert!(messages > 2);
        for (n, r) in all.iter().enumerate() {
            let ends = n % 10 == 9;
            assert_eq!((r[&7], r[&230]), (n as u64, if ends { 5 } else { 4 }));
            assert_eq!((r[&323], r[&4], r[&234]), (1_234_567, 17, 7));
            assert_eq!((r[&8], r[&225]), (0x0a00_0002, 0xc000_0201));
            assert_eq!((r[&227], r[&11], r[&228]), (1024, 53, 53));
            assert_eq!((r[&12], r[&226]), (0xc633_6407, 0xc633_6407));
            assert_eq!((r.get(&86), r.get(&85)), (ends.then_some(&3), ends.then_some(&180)));
        }
    }

    #[test]
    fn notices_are_events_of_their_own() {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        collector.set_read_timeout(Some(thalweg_testkit::WAIT_LIMIT)).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(collector.local_addr().unwrap()).unwrap();
        let mut exporter = Exporter::new(socket, DOMAIN);
        exporter.add(&record(7, None)).unwrap();
        let all = [
            Notice::NoAddress,
            Notice::Sessions(1000),
            Notice::PerHost { most: 5, host: [10, 0, 0, 2].into(), table: TableId(7) },
        ];
        all.iter().for_each(|n| exporter.add_notice(*n, Duration::from_millis(4242)).unwrap());
        exporter.flush().unwrap();
        let mut buffer = [0; 2000];
        let n = collector.recv(&mut buffer).unwrap();
        let (_, records) = decode(&buffer[..n], &mut Templates::new());
        let events: Vec<u64> = records.iter().map(|r| r[&230]).collect();
        assert_eq!(events, [4, 3, 13, 13]);
        assert_eq!((records[1][&323], records[1][&283]), (4242, 0));
        assert_eq!((records[2][&466], records[2][&471]), (1, 1000));
        assert_eq!((records[3][&466], records[3][&473]), (3, 5));
        assert_eq!((records[3][&8], records[3][&234]), (0x0a00_0002, 7));
    }
}
