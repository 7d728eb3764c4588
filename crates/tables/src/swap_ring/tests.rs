use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    Receive(bool),
}

proptest! {
    /// The ring behaves like a queue whose slots remember what was left in them, whatever the two
    /// ends do in turn.
    #[test]
    fn as_a_queue_would(
        room in 1usize..9,
        steps in prop::collection::vec(
            prop_oneof![Just(Step::Send), any::<bool>().prop_map(Step::Receive)], 0..300,
        ),
    ) {
        let (mut to, mut from) = channel::<u32>(room);
        let gauge = to.gauge();
        let room = room.next_power_of_two();
        prop_assert_eq!(gauge.room(), room);
        let mut queue = VecDeque::new();
        let mut places: VecDeque<Option<u32>> = vec![None; room].into();
        for (i, step) in steps.into_iter().enumerate() {
            let i = i as u32;
            match step {
                Step::Send if queue.len() == room => prop_assert_eq!(to.send(i), Err(i)),
                Step::Send => {
                    queue.push_back(i);
                    prop_assert_eq!(to.send(i), Ok(places.pop_front().unwrap()));
                }
                Step::Receive(leave) => {
                    let left = leave.then_some(1000 + i);
                    let expected = queue.pop_front();
                    if expected.is_some() {
                        places.push_back(left);
                    }
                    prop_assert_eq!(from.is_empty(), expected.is_none());
                    prop_assert_eq!(from.receive(|| left), expected);
                }
            }
            prop_assert_eq!((gauge.depth(), to.is_full()), (queue.len(), queue.len() == room));
        }
    }
}

#[test]
fn two_threads_lose_nothing() {
    const ITEMS: u64 = if cfg!(miri) { 300 } else { 300_000 };
    let (mut to, mut from) = channel::<Box<u64>>(8);
    let receiver = std::thread::spawn(move || {
        let mut next = 0;
        while next < ITEMS {
            match from.receive(|| (next % 3 != 0).then(|| Box::new(u64::MAX - next))) {
                Some(item) => {
                    assert_eq!(*item, next);
                    next += 1;
                }
                None => std::thread::yield_now(),
            }
        }
    });
    let (mut sent, mut back) = (0, 0);
    while sent < ITEMS {
        match to.send(Box::new(sent)) {
            Ok(left) => {
                let expected = sent.checked_sub(8).filter(|n| n % 3 != 0).map(|n| u64::MAX - n);
                assert_eq!(left.map(|b| *b), expected);
                back += u64::from(expected.is_some());
                sent += 1;
            }
            Err(same) => {
                assert_eq!(*same, sent);
                assert!(!receiver.is_finished(), "the receiver has failed");
                std::thread::yield_now();
            }
        }
    }
    receiver.join().unwrap();
    assert!(back > ITEMS / 2);
}

/// Items in flight when both ends are dropped are dropped too.
#[test]
fn items_in_flight_are_dropped_with_the_ring() {
    let item = Arc::new(());
    let (mut to, mut from) = channel(4);
    for _ in 0..4 {
        to.send(item.clone()).unwrap();
    }
    from.receive(|| Some(item.clone()));
    assert_eq!(Arc::strong_count(&item), 5);
    let gauge = to.gauge();
    drop((to, from));
    assert_eq!(gauge.depth(), 3);
    drop(gauge);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[test]
fn positions_have_lines_of_their_own() {
    let (to, _from) = channel::<u8>(2);
    let [a, b] = to.gauge().positions();
    assert!(a.is_multiple_of(128) && b.is_multiple_of(128) && a != b);
}
