//! Cost of two bare loops over a frame that do no more than IPv4 forwarding has to, without an
//! engine, next to the router in the same rounds.

use std::hint::black_box;

use thalweg_bench_common::{Cell, Column, Series, Table};
use thalweg_bench_pg::Router;
use thalweg_bench_pg::paths::{self, Case};
use thalweg_bench_pg::turns::Plan;
use thalweg_buffer::FRAME_SIZE;
use thalweg_graph::clock;
use thalweg_tables::hash::mix64;

/// Offset of a packet in its buffer.
const OFFSET: usize = 256;
/// Packets live long enough to be written again only rarely.
const TTL: u8 = 255;
/// Adjacencies.
const HOPS: usize = 16;

/// Buffers with packets in them, used in turns.
struct Buffers {
    memory: Vec<u8>,
    stride: usize,
    next: usize,
    /// Times that each packet may be forwarded before it must be written again.
    left: u8,
    /// Writes each frame right before it is forwarded.
    fresh: bool,
    random: bool,
}

impl Buffers {
    fn new(bytes: usize, stride: usize, fresh: bool, random: bool) -> Buffers {
        let frames = (bytes / stride / FRAME_SIZE).max(1);
        let memory = vec![0; frames * FRAME_SIZE * stride];
        Buffers { memory, stride, next: 0, left: 0, fresh, random }
    }

    fn write(&mut self, from: usize, to: usize) {
        let stride = self.stride;
        let all = self.memory[from * stride..to * stride].chunks_exact_mut(stride);
        for (i, buffer) in (from..to).zip(all) {
            let dst = if self.random { mix64(i as u64) as u32 } else { 48 << 24 | 1 };
            let mut packet = paths::packet(dst);
            // The checksum knows the time to live: adding to one takes from the other.
            let check = u16::from_be_bytes([packet[24], packet[25]]);
            let sum = u32::from(check) + (0xffff - (u32::from(TTL - packet[22]) << 8));
            packet[24..26].copy_from_slice(&(((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
            packet[22] = TTL;
            buffer[OFFSET..OFFSET + 64].copy_from_slice(&packet);
        }
    }

    /// The next frame's buffers.
    fn frame(&mut self) -> &mut [u8] {
        let all = self.memory.len() / self.stride;
        if self.next == all {
            self.next = 0;
            self.left = self.left.saturating_sub(1);
        }
        if self.left == 0 && self.next == 0 {
            self.left = TTL - 2;
            self.write(0, all);
        }
        let at = self.next;
        self.next += FRAME_SIZE;
        if self.fresh {
            self.write(at, at + FRAME_SIZE);
        }
        &mut self.memory[at * self.stride..(at + FRAME_SIZE) * self.stride]
    }
}

/// Tables that both loops need.
struct Tables {
    /// An adjacency for each /24.
    routes: Vec<u32>,
    /// Ethernet headers.
    hops: [[u8; 14]; HOPS],
}

impl Tables {
    fn new() -> Tables {
        let routes = (0..1u64 << 24).map(|i| mix64(i) as u32 % HOPS as u32).collect();
        let hop = |n| [2, 0, 0, 0, 1, n as u8, 2, 0xfe, 0, 0, 0, 2, 8, 0];
        Tables { routes, hops: std::array::from_fn(hop) }
    }

    /// Checks headers and looks destinations up; packets with a fault.
    #[inline(never)]
    fn look_up(&self, frame: &[u8], stride: usize, to: &mut [u32; FRAME_SIZE]) -> usize {
        let mut bad = 0;
        for (buffer, to) in frame.chunks_exact(stride).zip(to) {
            let Some(h) = buffer.get(OFFSET + 14..).and_then(|h| h.first_chunk::<20>()) else {
                continue;
            };
            let word = |i: usize| u32::from_ne_bytes([h[i], h[i + 1], h[i + 2], h[i + 3]]);
            let sum = [0, 4, 8, 12, 16].iter().map(|i| u64::from(word(*i))).sum::<u64>();
            let sum = (sum & 0xffff_ffff) + (sum >> 32);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            let total = u16::from_be_bytes([h[2], h[3]]);
            let good = h[0] == 0x45
                && sum == 0xffff
                && (20..=50).contains(&total)
                && h[8] > 1
                && h[12].wrapping_sub(1) < 223
                && h[12] != 127;
            bad += usize::from(!good);
            *to = self.routes[(word(16).swap_bytes() >> 8) as usize];
        }
        bad
    }

    /// Writes Ethernet headers, times to live and checksums.
    #[inline(never)]
    fn rewrite(&self, frame: &mut [u8], stride: usize, to: &[u32; FRAME_SIZE]) {
        for (buffer, to) in frame.chunks_exact_mut(stride).zip(to) {
            let Some(p) = buffer.get_mut(OFFSET..).and_then(|p| p.first_chunk_mut::<26>()) else {
                continue;
            };
            p[..14].copy_from_slice(&self.hops[*to as usize % HOPS]);
            p[22] -= 1;
            let sum = u32::from(u16::from_be_bytes([p[24], p[25]])) + 0x100;
            p[24..26].copy_from_slice(&((sum + (sum >> 16)) as u16).to_be_bytes());
        }
    }

    /// Clocks per packet over at least this number of ticks.
    fn measure(&self, buffers: &mut Buffers, ticks: u64) -> f64 {
        let (mut clocks, mut packets, mut bad) = (0, 0, 0);
        let mut to = [0; FRAME_SIZE];
        let (stride, end) = (buffers.stride, clock::ticks() + ticks);
        while clock::ticks() < end {
            let frame = buffers.frame();
            let start = clock::ticks();
            bad += self.look_up(frame, stride, &mut to);
            self.rewrite(frame, stride, black_box(&to));
            clocks += clock::ticks() - start;
            packets += FRAME_SIZE;
        }
        assert_eq!(bad, 0, "packets with a fault");
        clocks as f64 / packets as f64
    }
}

struct Side {
    name: String,
    buffers: Buffers,
    clocks: Series,
}

fn sides(stride: usize) -> Vec<Side> {
    let mut all = Vec::new();
    for (random, where_to) in [(false, "1 destination"), (true, "random destinations")] {
        for (mib, fresh, what) in [
            (5, true, "5 MiB of buffers, just written"),
            (5, false, "5 MiB of buffers"),
            (150, false, "150 MiB of buffers"),
        ] {
            all.push(Side {
                name: format!("bare loops, {where_to}, {what}"),
                buffers: Buffers::new(mib << 20, stride, fresh, random),
                clocks: Series::default(),
            });
        }
    }
    all
}

/// The router's side: one path, on while it is measured.
fn ours(r: &mut Router, plan: Plan) -> f64 {
    r.cli("packet-generator enable-stream");
    r.wait(plan.warm_up);
    let w = r.measure(plan.window);
    r.settle();
    w.clocks_without_input()
}

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    let mut routers = [Case::OneFlow, Case::Internet].map(|case| {
        let mut r = Router::on_last_core();
        case.set_up(&mut r);
        (case, r, Series::default())
    });
    let stride = routers[0].1.control().pool().stride();
    let (tables, mut all) = (Tables::new(), sides(stride));
    let ticks = clock::ticks_in(plan.window);
    for round in 0..plan.rounds {
        eprintln!("limit: round {} of {}", round + 1, plan.rounds);
        for (_, r, clocks) in &mut routers {
            clocks.push(ours(r, plan));
        }
        for side in &mut all {
            side.clocks.push(tables.measure(&mut side.buffers, ticks));
        }
    }
    let mut table = Table::new(
        "The physical limit",
        vec![
            Column::text("what"),
            Column::values("clocks/packet", "clocks/packet"),
            Column::values("IPv4, 1 flow, over it", ""),
        ],
    );
    for (case, _, clocks) in &routers {
        table.row(vec![format!("Thalweg, {}", case.name()).into(), Cell::series(clocks, 2)]);
    }
    for side in &all {
        table.row(vec![
            side.name.as_str().into(),
            Cell::series(&side.clocks, 2),
            Cell::ratio(routers[0].2.over(&side.clocks)),
        ]);
    }
    table.note(
        "Two loops over a frame of 256: one checks the header, checksum and all, and looks the /24 of \
         the destination up in a table of 16 million words; one writes the Ethernet header, the time \
         to live and the checksum. Plain code, one packet at a time, no counters, nothing received or \
         sent. The router's buffers are just written, too, by its generator: few, and in the caches. Its \
         kernels work on sixteen packets at a time, the bare loops on one.",
    );
    for (_, r, _) in routers {
        r.stop();
    }
    vec![table]
}
