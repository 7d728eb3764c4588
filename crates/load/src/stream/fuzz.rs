//! Streams over a link that does what bytes say.

use std::collections::VecDeque;

use super::{Books, Field, Layer, Load, Plan, Rate, Receiver, Senders, Side, Size, Stream};

/// Sends streams over a link that the bytes describe: it loses, repeats, delays, changes and
/// shortens packets, and delivers others.
///
/// # Panics
/// If the books do not balance.
pub fn fuzz_frames(data: &[u8]) {
    let Some(([size, label], steps)) = data.split_first_chunk::<2>() else { return };
    let (a, b) = (Field::count(1u8, 9u8), Field::one(2u8));
    let ports = || (Field::one(1u16), Field::one(2u16));
    let sizes = Size::Range { least: 68, most: 68 + u16::from(*size), random: true };
    let mut labelled = Stream::udp("labelled", a.clone(), b.clone(), ports());
    labelled.layers.insert(0, Layer::mpls(Field::one(*label)));
    let varied = Stream { size: sizes, ..Stream::udp("varied", a, b, ports()) };
    let mut plan = Plan::of(vec![labelled, varied]);
    plan.streams.iter_mut().for_each(|stream| stream.rate = Rate::Packets(1e6));
    let (Ok(mut senders), Ok(mut receiver)) =
        (Senders::new(&plan, Side::A, 1, 0), Receiver::new(&plan, Side::B, 1))
    else {
        return;
    };
    senders.set_load(Load::Times(1.0), 0);
    let mut way: VecDeque<Vec<u8>> = VecDeque::new();
    let mut now = 0;
    // A change that the checks do not find may make a packet another one.
    let mut changed = false;
    for [operation, value] in steps.as_chunks::<2>().0 {
        now += 500;
        let mut sent: Vec<Vec<u8>> = Vec::new();
        senders.poll(now, 4, &mut sent);
        way.extend(sent);
        way.truncate(1 << 12);
        let Some(mut frame) = way.pop_front() else { continue };
        match operation & 7 {
            0 => continue,
            1 => way.push_back(frame.clone()),
            2 => {
                way.push_back(frame);
                continue;
            }
            3 => now += u64::from(*value) << (operation >> 3),
            4 => {
                changed = true;
                let at = frame.len().saturating_sub(1 + usize::from(operation >> 3));
                if let Some(byte) = frame.get_mut(at) {
                    *byte ^= *value;
                }
            }
            5 => frame.truncate(usize::from(*value)),
            6 => frame.resize(frame.len() + usize::from(*value), 0),
            _ => senders.set_judging(value & 1 == 1, now),
        }
        receiver.receive(now, &frame);
    }
    for stream in 0..senders.len() {
        for judged in [false, true] {
            let books = Books::of(&senders, &receiver, stream, judged);
            assert!(changed || books.balances(), "{books:?}");
            assert!(changed || books.received.packets <= books.sent.sent, "{books:?}");
        }
    }
}
