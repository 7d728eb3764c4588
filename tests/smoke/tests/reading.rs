//! The kernel reads packets of IPv4 as [`PacketView`] does: it answers a segment for which there
//! is no socket with a reset, whose ports say what it has read, and nothing else.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use anyhow::ensure;
use thalweg_smoke::{RawLink, hex};
use thalweg_testkit::{LinkOptions, Netns, WAIT_LIMIT, lab_test, veth};
use thalweg_wire::ip::protocol;
use thalweg_wire::packet::{PacketView, Part};
use thalweg_wire::{checksum, tcp};

/// Segments sent, some of which are answered.
const SEGMENTS: u16 = 3000;
/// Segments sent before their answers are read.
const AT_ONCE: u16 = 40;

const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 9, 1], [2, 0, 0, 0, 9, 2]];

/// The same numbers in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    /// True once in `n` times.
    fn rarely(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// An acknowledgement from this port to one that follows from it, with options and data.
fn segment(numbers: &mut Numbers, sport: u16) -> Vec<u8> {
    let words = numbers.below(4);
    let mut l4 = [sport.to_be_bytes(), (sport ^ 0x2bad).to_be_bytes()].concat();
    // Sequence and acknowledgement number, header length, flags, window, checksum, urgent pointer.
    l4.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50 + 0x10 * words as u8, 0x10, 1, 0, 0, 0, 0, 0]);
    if numbers.rarely(8) {
        l4[12] = (numbers.below(16) << 4) as u8;
    }
    // Padding for options, and data.
    l4.resize(20 + 4 * words, 1);
    l4.resize(20 + 4 * words + numbers.below(12), 7);
    l4
}

/// Returns a length field for `right` bytes behind the fixed header.
fn said(numbers: &mut Numbers, right: usize) -> usize {
    if numbers.rarely(3) { numbers.below(right + 12) } else { right }
}

/// Adds bytes that may follow the packet in its frame.
fn trail(numbers: &mut Numbers, l4: &mut Vec<u8>) {
    if numbers.rarely(3) {
        l4.resize(l4.len() + numbers.below(24), 0x50);
    }
}

/// Completes the checksum of what a header says is the segment.
fn complete(l4: &mut [u8], length: usize, pseudo: impl Fn(u32) -> checksum::Checksum) {
    let end = length.min(l4.len());
    // The kernel does not read a segment that is cut in its header.
    let _ = tcp::fill_checksum(pseudo(length as u32), &mut l4[..end]);
}

fn ipv4(numbers: &mut Numbers, sport: u16) -> Vec<u8> {
    let options = vec![1; 4 * [0, 0, 0, 1, 3][numbers.below(5)]];
    let header = 20 + options.len();
    let mut l4 = segment(numbers, sport);
    let length = said(numbers, l4.len());
    trail(numbers, &mut l4);
    complete(&mut l4, length, |n| checksum::pseudo_v4(HERE, THERE, protocol::TCP, n));
    let part = [0, 0, 0, 0, 0, 0, 0x4000, 0x2000, 1, 0x2001][numbers.below(10)];
    let mut l3 = vec![0x40 | (header / 4) as u8, 0];
    l3.extend(((header + length) as u16).to_be_bytes());
    l3.extend(sport.to_be_bytes());
    l3.extend(u16::to_be_bytes(part));
    l3.extend([64, protocol::TCP, 0, 0]);
    l3.extend(HERE.octets());
    l3.extend(THERE.octets());
    l3.extend(options);
    let sum = checksum::checksum(&l3);
    l3[10..12].copy_from_slice(&sum.to_be_bytes());
    l3.extend(l4);
    l3
}

/// A frame to the other end, sometimes truncated.
fn frame(numbers: &mut Numbers, sport: u16) -> Vec<u8> {
    let l3 = ipv4(numbers, sport);
    let mut frame = [&MACS[1][..], &MACS[0], &[8, 0], &l3].concat();
    if numbers.rarely(5) {
        frame.truncate(14 + numbers.below(frame.len() - 13));
    }
    frame
}

/// The ports of a segment that is whole.
fn ports(frame: &[u8]) -> Option<(u16, u16)> {
    let l3 = frame.get(14..)?;
    let view = PacketView::read(l3, l3.len())?;
    let whole = view.part() == Part::Whole && view.protocol() == protocol::TCP;
    view.ports().filter(|_| whole)
}

lab_test! {
    fn the_kernel_reads_the_same() {
        let [here, there] = [Netns::new("here")?, Netns::new("there")?];
        let mac = |n: usize| MACS[n].map(|byte| format!("{byte:02x}")).join(":");
        let ends = [0, 1].map(|n| LinkOptions::default().mac(mac(n)));
        veth((&here, "eth0", &ends[0]), (&there, "eth0", &ends[1]))?;
        there.ip_batch(&[
            format!("address add {THERE}/24 dev eth0"),
            format!("neigh replace {HERE} lladdr {} dev eth0 nud permanent", mac(0)),
        ])?;
        let link = RawLink::open(&here, "eth0")?;
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        let mut answered = 0;
        for first in (1024..1024 + SEGMENTS).step_by(AT_ONCE.into()) {
            let mut frames: Vec<Vec<u8>> =
                (first..first + AT_ONCE).map(|sport| frame(&mut numbers, sport)).collect();
            // One that is surely answered ends them.
            let last = 60_000 + first / AT_ONCE;
            frames.push(plain(last));
            for frame in &frames {
                link.send(frame)?;
            }
            let expected: BTreeSet<(u16, u16)> = frames.iter().filter_map(|f| ports(f)).collect();
            let mut seen = BTreeSet::new();
            link.receive(WAIT_LIMIT, "the last reset", |frame| {
                let reset = reset(frame)?;
                seen.insert(reset);
                (reset.0 == last).then_some(())
            })?;
            answered += seen.len();
            if seen != expected {
                let differ: Vec<_> = seen.symmetric_difference(&expected).collect();
                let of = |f: &&Vec<u8>| differ.iter().any(|d| f[14..].windows(2).any(|w| w == d.0.to_be_bytes()));
                let text: Vec<String> = frames.iter().filter(of).map(|f| hex(f)).collect();
                ensure!(false, "the kernel read {seen:?}\nand not {expected:?}:\n{}", text.join("\n"));
            }
        }
        let sent = usize::from(SEGMENTS);
        ensure!(answered > sent / 4 && answered < sent * 3 / 4, "{answered} of {sent} answered");
        Ok(())
    }
}

/// A segment of IPv4 with nothing special.
fn plain(sport: u16) -> Vec<u8> {
    let packet = thalweg_wire::build::Packet::new();
    let packet = packet.ether(thalweg_wire::MacAddr(MACS[0]), thalweg_wire::MacAddr(MACS[1]));
    packet.ipv4(HERE, THERE).tcp(sport, sport ^ 0x2bad).flags(tcp::flag::ACK).build()
}

/// The ports of a segment that the other end answers with this frame.
fn reset(frame: &[u8]) -> Option<(u16, u16)> {
    let from_there = frame.get(6..12)? == MACS[1];
    let view = PacketView::read_prefix(frame.get(14..)?)?;
    let resets = view.tcp_flags()? & tcp::flag::RST != 0;
    let (dport, sport) = view.ports()?;
    (from_there && resets).then_some((sport, dport))
}
