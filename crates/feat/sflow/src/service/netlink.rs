//! Export over netlink to an agent on this host: samples over PSAMPLE, counters over USERSOCK,
//! drops over NET_DM, in VPP's attributes.
//!
//! An interface has one number everywhere. Samples that were lost leave gaps in the numbers of
//! those that follow, on the interface that lost them: agents add a gap once, while they would add
//! a total again with every sample. A channel that cannot be opened is tried again now and then.

use crate::netlink::NetlinkSettings;
use std::time::{Duration, Instant};
use thalweg_graph::clock;
use thalweg_graph::stats::IfTotals;
use thalweg_sflow::DiscardReason;
use thalweg_sflow::header::HeaderProtocol;
use thalweg_sflow::value::Text;
use thalweg_sflow_agent::netlink::{
    Channel, Multicast, OpenError, PacketDrop, PacketSample, PortCounters, SendStats, dropmon,
    usersock,
};

use super::PortSetup;

/// Time until a channel is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// Full duplex.
const FULL_DUPLEX: u32 = 1;

/// A channel to send by.
struct Line {
    channel: Channel,
    sender: Result<Multicast, Closed>,
    /// Messages of senders before this one.
    before: SendStats,
}

/// Reason why a channel is closed.
enum Closed {
    /// The channel was not needed.
    Unused,
    /// The channel could not be opened.
    Failed(String),
}

/// Fates of a channel's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineStatus {
    /// Messages sent and failed.
    pub stats: SendStats,
    /// Reason why nothing can be sent.
    pub closed: Option<String>,
}

/// A sampled packet to report.
pub(super) struct Sampled<'a> {
    /// True if it was sampled as it left, not as it came.
    pub tx: bool,
    pub input: u32,
    pub output: u32,
    pub rate: u32,
    pub frame_length: u32,
    pub header: &'a [u8],
    /// Protocol that the header begins with.
    pub protocol: HeaderProtocol,
    /// The interface whose sampler took it.
    pub source: u32,
    /// Generation of the interface of that number.
    pub generation: u32,
    /// Samples that the interface has lost since it is there.
    pub drops: u64,
}

/// A dropped packet to report.
pub(super) struct Dropped<'a> {
    pub input: u32,
    pub input_name: &'a str,
    pub frame_length: u32,
    pub header: &'a [u8],
    /// True if the packet begins with its IP header.
    pub bare: bool,
    /// The node that dropped it, as a group of traps.
    pub group: &'a str,
    /// The node's reason, as a trap.
    pub trap: &'a str,
    /// The reason in sFlow.
    pub code: DiscardReason,
}

/// Losses of an interface that were reported.
#[derive(Clone, Copy, Default)]
struct Reported {
    generation: u32,
    drops: u64,
}

/// Sends over netlink while it is wanted.
pub(super) struct Netlink {
    settings: NetlinkSettings,
    wanted: bool,
    /// Samples reported per direction: received, sent.
    numbers: [u32; 2],
    reported: Vec<Reported>,
    samples: Line,
    counters: Line,
    drops: Line,
    /// Time of the last begin of sending.
    since: Instant,
    /// The second since then whose status was sent.
    second: Option<u64>,
    retry: Instant,
    /// A packet that needs an Ethernet header in front.
    scratch: Vec<u8>,
}

impl Line {
    fn new(channel: Channel) -> Line {
        Line { channel, sender: Err(Closed::Unused), before: SendStats::default() }
    }

    /// Tries to open it, and says if that changed something.
    fn open(&mut self) {
        let error = match Multicast::open(self.channel) {
            Ok(sender) => {
                tracing::info!("sflow: sending to netlink channel {}", self.channel);
                self.sender = Ok(sender);
                return;
            }
            Err(error) => error,
        };
        let said = error.to_string();
        if !matches!(&self.sender, Err(Closed::Failed(known)) if *known == said) {
            let channel = self.channel;
            match error {
                OpenError::Missing(_) => tracing::info!("sflow: netlink channel {channel}: {said}"),
                _ => tracing::warn!("sflow: netlink channel {channel}: {said}"),
            }
        }
        self.sender = Err(Closed::Failed(said));
    }

    fn close(&mut self) {
        if let Ok(mut sender) = std::mem::replace(&mut self.sender, Err(Closed::Unused)) {
            sender.flush();
            add(&mut self.before, sender.stats());
        }
    }

    fn flush(&mut self) {
        if let Ok(sender) = &mut self.sender {
            sender.flush();
        }
    }

    fn describe(&self, status: &mut LineStatus) {
        status.stats.clone_from(&self.before);
        status.closed = None;
        match &self.sender {
            Ok(sender) => add(&mut status.stats, sender.stats()),
            Err(Closed::Unused) => {}
            Err(Closed::Failed(why)) => status.closed = Some(why.clone()),
        }
    }
}

fn add(to: &mut SendStats, more: &SendStats) {
    to.sent += more.sent;
    to.failed += more.failed;
    to.datagrams += more.datagrams;
    if more.last_error.is_some() {
        to.last_error.clone_from(&more.last_error);
    }
}

impl Netlink {
    pub(super) fn new() -> Netlink {
        let now = clock::now();
        Netlink {
            settings: NetlinkSettings::default(),
            wanted: false,
            numbers: [0; 2],
            reported: Vec::new(),
            samples: Line::new(Channel::Psample),
            counters: Line::new(Channel::Usersock),
            drops: Line::new(Channel::Dropmon),
            since: now,
            second: None,
            retry: now,
            scratch: Vec::new(),
        }
    }

    fn lines(&mut self) -> [&mut Line; 3] {
        [&mut self.samples, &mut self.counters, &mut self.drops]
    }

    /// Applies settings; `wanted` activates the export. True if it begins to be sent with this,
    /// so that all interfaces must be reported.
    pub(super) fn configure(
        &mut self,
        settings: NetlinkSettings,
        wanted: bool,
        now: Instant,
    ) -> bool {
        let begins = wanted && !self.wanted;
        if (settings.rx_group, settings.tx_group)
            != (self.settings.rx_group, self.settings.tx_group)
        {
            self.flush();
            self.numbers = [0; 2];
        }
        (self.settings, self.wanted) = (settings, wanted);
        if begins {
            (self.since, self.second) = (now, None);
            self.open(now);
        } else if !wanted {
            self.lines().into_iter().for_each(Line::close);
        }
        begins
    }

    fn open(&mut self, now: Instant) {
        self.retry = now + RETRY;
        for line in self.lines() {
            if line.sender.as_ref().is_ok_and(|sender| !sender.is_current(line.channel)) {
                tracing::info!("sflow: netlink channel {} was reset", line.channel);
                line.close();
            }
            if line.sender.is_err() {
                line.open();
            }
        }
    }

    /// Reports a sampled packet; returns false if nothing listens.
    #[inline]
    pub(super) fn sample(&mut self, s: &Sampled<'_>) -> bool {
        let Ok(sender) = &mut self.samples.sender else { return false };
        let lost = self.reported.get_mut(s.source as usize).map_or(0, |reported| {
            let before = if reported.generation == s.generation { reported.drops } else { s.drops };
            *reported = Reported { generation: s.generation, drops: s.drops };
            s.drops.saturating_sub(before)
        });
        let number = &mut self.numbers[usize::from(s.tx)];
        *number = number.wrapping_add(lost as u32).wrapping_add(1);
        let sample = PacketSample {
            input: s.input,
            output: s.output,
            original_length: s.frame_length,
            group: if s.tx { self.settings.tx_group } else { self.settings.rx_group },
            group_sequence: *number,
            rate: s.rate,
            data: s.header,
            protocol: Some(s.protocol.0 as u16),
            ..PacketSample::default()
        };
        sender.push(|out, header| sample.encode(out, header));
        true
    }

    /// Starts to report losses of interfaces below `ports`.
    pub(super) fn set_ports(&mut self, ports: usize) {
        self.reported.resize(ports, Reported::default());
    }

    /// Reports the counters of an interface; `speed` is in bits per second. Returns false if
    /// nothing listens.
    pub(super) fn counters(
        &mut self,
        port: &PortSetup,
        t: &IfTotals,
        if_type: u32,
        speed: u64,
    ) -> bool {
        let Ok(sender) = &mut self.counters.sender else { return false };
        let (view, mib) = (&port.view, t.mib());
        let counters = PortCounters {
            name: Text::from(view.name.as_str()),
            index: view.sw_if.get(),
            os_index: port.os_index,
            if_type,
            speed,
            direction: FULL_DUPLEX,
            oper_up: view.is_up(),
            admin_up: view.admin_up,
            rx_octets: mib.in_octets,
            tx_octets: mib.out_octets,
            rx_packets: t.rx_packets,
            tx_packets: t.tx_packets,
            rx_broadcasts: mib.in_broadcast,
            tx_broadcasts: mib.out_broadcast,
            rx_multicasts: mib.in_multicast,
            tx_multicasts: mib.out_multicast,
            rx_discards: mib.in_discards,
            tx_discards: 0,
            rx_errors: mib.in_errors,
            tx_errors: mib.out_errors,
            hw_address: Some(view.mac.0),
            sequence: Some(sender.next_sequence()),
            unknown: 0,
        };
        sender.push(|out, header| counters.encode(out, header));
        true
    }

    /// Reports a dropped packet; returns false if nothing listens.
    pub(super) fn drop(&mut self, d: &Dropped<'_>) -> bool {
        let Ok(sender) = &mut self.drops.sender else { return false };
        let data = match d.header {
            [first, ..] if d.bare => {
                // Agents take all for Ethernet; the kernel has no addresses for such packets
                // either.
                let ether_type = if first >> 4 == 6 { [0x86, 0xdd] } else { [0x08, 0x00] };
                self.scratch.clear();
                self.scratch.extend([0; 12]);
                self.scratch.extend(ether_type);
                self.scratch.extend(d.header);
                &self.scratch
            }
            header => header,
        };
        let added = data.len() - d.header.len();
        let ether_type = data.get(12..14).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
        let drop = PacketDrop {
            input: d.input,
            input_name: Some(Text::from(d.input_name)).filter(|name| !name.0.is_empty()),
            // Agents pass over drops without one.
            protocol: ether_type.max(1),
            data,
            truncated_length: Some(data.len() as u32),
            original_length: Some(d.frame_length + added as u32),
            origin: Some(0),
            trap_group: Some(Text::from(d.group)),
            trap: Some(Text::from(d.trap)),
            // All traps of routers are of unknown reason to hsflowd, which looks here first.
            reason: dropmon::reason_word(d.code).map(Text::from),
            ..PacketDrop::default()
        };
        sender.push(|out, header| drop.encode(out, header));
        true
    }

    /// Sends what waits, the status if a second has passed, and tries again what could not be
    /// opened. True if a channel was opened, so that all interfaces must be reported.
    pub(super) fn tick(&mut self, now: Instant) -> bool {
        if !self.wanted {
            return false;
        }
        let mut opened = false;
        if now >= self.retry {
            let closed = self.counters.sender.is_err() || self.samples.sender.is_err();
            self.open(now);
            opened = closed && self.counters.sender.is_ok() && self.samples.sender.is_ok();
        }
        let second = now.saturating_duration_since(self.since).as_secs();
        if self.second != Some(second) {
            self.second = Some(second);
            if let Ok(sender) = &mut self.counters.sender {
                let sequence = Some(sender.next_sequence());
                // No drops here: gaps in the sequence report them.
                let status =
                    usersock::Status { uptime_s: second as u32, sequence, ..Default::default() };
                sender.push(|out, header| status.encode(out, header));
            }
        }
        self.flush();
        opened
    }

    /// Sends what waits.
    pub(super) fn flush(&mut self) {
        self.lines().into_iter().for_each(Line::flush);
    }

    /// True if anything listens for counters.
    pub(super) fn takes_counters(&self) -> bool {
        self.counters.sender.is_ok()
    }

    /// Describes what happened to the messages: samples, counters and status, drops.
    pub(super) fn describe(&self, status: &mut [LineStatus; 3]) {
        for (line, status) in [&self.samples, &self.counters, &self.drops].into_iter().zip(status) {
            line.describe(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_netlink::Family;
    use thalweg_netlink::wire::Messages;
    use thalweg_sflow_agent::netlink::Message;

    /// One that is wanted, with the controller's group in place of those that need modules. Nothing
    /// is flushed: what waits is looked at.
    fn netlink() -> Netlink {
        let mut netlink = Netlink::new();
        netlink.set_ports(4);
        let controller = Family::resolve("nlctrl").unwrap().unwrap();
        for line in netlink.lines() {
            let sender = Multicast::generic(&controller, "nlctrl", "notify").unwrap();
            line.sender = Ok(sender);
        }
        netlink.wanted = true;
        netlink
    }

    fn waiting<T>(line: &Line, mut each: impl FnMut(Message<'_>) -> T) -> Vec<T> {
        let Ok(sender) = &line.sender else { panic!("closed") };
        let read = |raw| Message::decode(line.channel, 16, &raw).unwrap().unwrap();
        Messages::new(sender.waiting()).map(|raw| each(read(raw.unwrap()))).collect()
    }

    fn sampled(tx: bool, source: u32, drops: u64) -> Sampled<'static> {
        Sampled {
            tx,
            input: 1,
            output: if tx { source } else { 0 },
            rate: 100,
            frame_length: 1500,
            header: &[7; 64],
            protocol: HeaderProtocol::ETHERNET,
            source,
            generation: 1,
            drops,
        }
    }

    #[test]
    fn losses_are_gaps_told_once_where_they_happened() {
        let mut netlink = netlink();
        let turns = [
            // Samples lost before the first one are not reported.
            (false, 1, 5),
            (false, 1, 5),
            (false, 1, 8),
            (true, 2, 0),
            (false, 1, 8),
            (true, 2, 1),
        ];
        for (tx, source, drops) in turns {
            assert!(netlink.sample(&sampled(tx, source, drops)));
        }
        // Another interface with that index starts over.
        assert!(netlink.sample(&Sampled { generation: 2, ..sampled(false, 1, 0) }));
        let numbers = waiting(&netlink.samples, |message| match message {
            Message::Sample(s) => (s.group, s.group_sequence, s.input, s.output, s.data.len()),
            other => panic!("{other:?}"),
        });
        let rx = |number| (3, number, 1, 0, 64);
        let tx = |number| (4, number, 1, 2, 64);
        assert_eq!(numbers, [rx(1), rx(2), rx(6), tx(1), rx(7), tx(3), rx(8)]);
    }

    #[test]
    fn drops_name_node_and_reason() {
        let mut netlink = netlink();
        let header = [&[1; 12][..], &[0x08, 0x00, 0x45]].concat();
        let dropped = Dropped {
            input: 3,
            input_name: "host-a",
            frame_length: 98,
            header: &header,
            bare: false,
            group: "vpp_ip4-input",
            trap: "vpp_ip4_ttl_<=_1",
            code: DiscardReason::TTL_EXCEEDED,
        };
        assert!(netlink.drop(&dropped));
        // Without an Ethernet header it gets one.
        let ip = [&[0x60][..], &[0; 39]].concat();
        let bare = Dropped {
            header: &ip,
            bare: true,
            frame_length: 40,
            code: DiscardReason::PKT_TOO_BIG,
            ..dropped
        };
        assert!(netlink.drop(&bare));
        let seen = waiting(&netlink.drops, |message| match message {
            Message::Drop(d) => {
                assert_eq!((d.input, d.input_name), (3, Some(Text(b"host-a"))));
                assert_eq!(d.trap_group, Some(Text(b"vpp_ip4-input")));
                assert_eq!(d.trap, Some(Text(b"vpp_ip4_ttl_<=_1")));
                let reason: &[u8] =
                    if d.protocol == 0x800 { b"ttl_exceeded" } else { b"PKT_TOO_BIG" };
                assert_eq!(d.reason, Some(Text(reason)));
                (d.protocol, d.original_length, d.data.len())
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(seen, [(0x800, Some(98), 15), (0x86dd, Some(54), 54)]);
    }

    /// Loading a module again gives its family another number, or none.
    #[test]
    fn a_family_that_has_gone_is_noticed() {
        let mut netlink = netlink();
        assert!(netlink.samples.sender.is_ok());
        netlink.open(Instant::now());
        let known = Family::resolve("psample").unwrap().is_some();
        assert_eq!(netlink.samples.sender.is_ok(), known);
        assert!(
            netlink.samples.sender.as_ref().is_ok_and(|s| s.is_current(Channel::Psample)) == known
        );
        assert!(netlink.counters.sender.is_ok(), "this one is the kernel's own");
    }

    #[test]
    fn what_is_not_wanted_is_not_sent() {
        let mut netlink = Netlink::new();
        let now = Instant::now();
        let settings = NetlinkSettings::default();
        assert!(!netlink.sample(&sampled(false, 1, 0)) && !netlink.takes_counters());
        assert!(!netlink.configure(settings, false, now) && !netlink.tick(now));
        // The counters' channel is there on every kernel.
        assert!(netlink.configure(settings, true, now));
        assert!(netlink.takes_counters());
        netlink.tick(now);
        netlink.tick(now);
        netlink.tick(now + Duration::from_secs(1));
        assert!(!netlink.configure(settings, true, now), "it goes on");
        netlink.configure(settings, false, now);
        let mut status: [LineStatus; 3] = Default::default();
        netlink.describe(&mut status);
        assert_eq!(status[1].stats.sent, 2, "a status each second: {status:?}");
        assert_eq!(status[0].closed, None);
    }
}
