use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

type Key = [u64; 2];
type Table = FlowTable<2, u64>;

fn key(n: u64) -> Key {
    [n, !n]
}

fn with_hash(table: &Table, key: Key) -> (Key, FlowHash) {
    (key, table.hash(&key))
}

#[test]
fn the_only_flow_is_guessed() {
    let mut table = Table::new(100, 2, 0).unwrap();
    let (key, hash) = with_hash(&table, key(7));
    let flow = table.add((key, hash), None, 1000, (5, ())).unwrap();
    let (mut hashes, mut guesses) = ([hash; 1], [Guess::default(); 1]);
    table.hash_all(&[key], &mut hashes, &mut guesses);
    assert_eq!(hashes, [hash]);
    let (found, end, value) = table.guessed(&key, guesses[0]).unwrap();
    assert_eq!((found.flow(), found.by_second(), *end, *value), (flow, false, 1000, 5));
    table.remove(flow);
    assert!(table.guessed(&key, guesses[0]).is_none());
}

/// Checks what holds at any time, and that an emptied table is as new.
fn empty(table: &mut Table) {
    let mut at = 0;
    let all: Vec<FlowId> = table.list(&mut at, u32::MAX).collect();
    assert_eq!((all.len() as u32, at), (table.len(), table.used()));
    for flow in all {
        table.remove(flow);
    }
    assert!(table.is_empty() && table.index.is_blank());
    assert!(table.young.oldest().is_none());
    assert!(!table.expire(table.wheel_now(), 1, |_, _| unreachable!()));
    let counts = table.counts();
    assert_eq!(counts.added, counts.expired + counts.recycled + counts.removed);
}

impl Table {
    /// Returns a moment a turn of the wheel after any that it has seen.
    fn wheel_now(&self) -> Millis {
        self.wheel.after_a_turn()
    }
}

/// A slow model of the table.
#[derive(Default)]
struct Model {
    by_key: HashMap<Key, (FlowId, bool)>,
    /// Flows in the order of their age.
    flows: BTreeMap<u64, (FlowId, Vec<Key>, Millis, u64, bool)>,
    serial: u64,
    /// Guesses of the keys that were looked for last.
    guesses: Vec<Guess>,
}

impl Model {
    fn nth(&self, n: usize) -> Option<(u64, FlowId)> {
        let n = n.checked_rem(self.flows.len())?;
        self.flows.iter().nth(n).map(|(serial, flow)| (*serial, flow.0))
    }
    fn forget(&mut self, serial: u64) {
        let (_, keys, ..) = self.flows.remove(&serial).unwrap();
        for key in &keys {
            self.by_key.remove(key).unwrap();
        }
    }
    fn serial_of(&self, flow: FlowId) -> u64 {
        *self.flows.iter().find(|(_, f)| f.0 == flow).unwrap().0
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add { key: u64, second: Option<u64>, timeout: Millis },
    Find { keys: Vec<u64> },
    Remove { nth: usize },
    End { nth: usize, timeout: Millis },
    PutOff { nth: usize, by: Millis },
    GrowUp { nth: usize },
    Recycle,
    Time { by: Millis, steps: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let timeout = || prop_oneof![0u32..3000, 0u32..1_000_000, Just(MAX_TIMEOUT)];
    prop_oneof![
        8 => (0u64..200, prop::option::of(200u64..400), timeout())
            .prop_map(|(key, second, timeout)| Step::Add { key, second, timeout }),
        4 => prop::collection::vec(0u64..400, 0..70).prop_map(|keys| Step::Find { keys }),
        2 => any::<usize>().prop_map(|nth| Step::Remove { nth }),
        2 => (any::<usize>(), timeout()).prop_map(|(nth, timeout)| Step::End { nth, timeout }),
        2 => (any::<usize>(), 0u32..100_000).prop_map(|(nth, by)| Step::PutOff { nth, by }),
        2 => any::<usize>().prop_map(|nth| Step::GrowUp { nth }),
        1 => Just(Step::Recycle),
        4 => (prop_oneof![0u32..1000, 0u32..700_000], 0usize..200)
            .prop_map(|(by, steps)| Step::Time { by, steps }),
        // The longest distance of distinguishable moments: nothing may be left that was due before.
        1 => Just(Step::Time { by: MAX_TIMEOUT, steps: usize::MAX }),
    ]
}

fn check_add(table: &mut Table, model: &mut Model, keys: &[Key], end: Millis) {
    let second = keys.get(1).map(|key| with_hash(table, *key));
    let added = table.add(with_hash(table, keys[0]), second, end, (model.serial, ()));
    let taken = keys.iter().find_map(|key| model.by_key.get(key));
    match (added, taken) {
        (Err(AddError::Taken(found)), Some((flow, second))) => {
            assert_eq!((found.flow(), found.by_second()), (*flow, *second));
        }
        (Err(AddError::Full), None) => assert_eq!(model.flows.len() as u32, table.capacity()),
        (Ok(flow), None) => {
            assert!((model.flows.len() as u32) < table.capacity());
            for (i, key) in keys.iter().enumerate() {
                model.by_key.insert(*key, (flow, i == 1));
            }
            model.flows.insert(model.serial, (flow, keys.to_vec(), end, model.serial, true));
            model.serial += 1;
        }
        (added, taken) => panic!("{added:?} where {taken:?} is"),
    }
}

fn check_find(table: &mut Table, model: &mut Model, keys: &[Key]) {
    let mut hashes = vec![FlowHash::default(); keys.len()];
    let mut found = vec![None; keys.len()];
    let mut guesses = vec![Guess::default(); keys.len()];
    table.hash_all(keys, &mut hashes, &mut guesses);
    (0..keys.len()).step_by(AHEAD).for_each(|at| table.fetch_ahead(&hashes, &mut guesses, at));
    for (i, key) in keys.iter().enumerate() {
        let expected = table.find(key, hashes[i]);
        // Guesses of other keys and stale ones as well.
        for guess in model.guesses.iter().chain(&guesses) {
            if let Some((found, end, value)) = table.guessed(key, *guess) {
                let (end, value) = (*end, *value);
                assert_eq!(Some(found), expected);
                assert_eq!((table.expiry(found.flow()), *table.get(found.flow())), (end, value));
            }
        }
    }
    model.guesses = guesses;
    table.find_batch(keys, &mut hashes, &mut found);
    for ((key, hash), found) in keys.iter().zip(hashes).zip(found) {
        assert_eq!(hash, table.hash(key));
        assert_eq!(found, table.find(key, hash));
        let expected = model.by_key.get(key);
        assert_eq!(found.map(|f| (f.flow(), f.by_second())).as_ref(), expected);
    }
}

fn check_time(table: &mut Table, model: &mut Model, now: Millis, steps: usize) {
    let mut ended = Vec::new();
    let more = table.expire(now, steps, |table, flow| {
        ended.push((flow, *table.get(flow)));
        match *table.get(flow) % 5 {
            0 => OnExpiry::Until(now.wrapping_add(50_000)),
            _ => OnExpiry::Remove,
        }
    });
    assert!(ended.len() <= steps);
    for (flow, serial) in ended {
        let known = model.flows.get_mut(&serial).unwrap();
        assert!(known.0 == flow && is_due(known.2, now), "ended too early: {known:?}");
        match serial % 5 {
            0 => known.2 = now.wrapping_add(50_000),
            _ => model.forget(serial),
        }
    }
    if !more {
        // A slot is checked once it is over.
        let late = now.wrapping_sub(2 << timer::SLOT);
        let left = model.flows.values().find(|flow| is_due(flow.2, late));
        assert!(left.is_none(), "{left:?} was passed over at {now}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn behaves_as_a_map_would(
        capacity in 1u32..100,
        start in prop_oneof![Just(0), any::<u32>(), u32::MAX - 100_000..],
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut now = start;
        let mut table = Table::new(capacity, 2, now).unwrap();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Add { key: n, second, timeout } => {
                    let keys: Vec<Key> = [n].into_iter().chain(second).map(key).collect();
                    check_add(&mut table, &mut model, &keys, now.wrapping_add(timeout));
                }
                Step::Find { keys } => {
                    let keys: Vec<Key> = keys.into_iter().map(key).collect();
                    check_find(&mut table, &mut model, &keys);
                }
                Step::Remove { nth } => if let Some((serial, flow)) = model.nth(nth) {
                    prop_assert_eq!(table.remove(flow), serial);
                    model.forget(serial);
                },
                Step::End { nth, timeout } => if let Some((serial, flow)) = model.nth(nth) {
                    let end = now.wrapping_add(timeout);
                    table.set_expiry(flow, end);
                    model.flows.get_mut(&serial).unwrap().2 = end;
                },
                Step::PutOff { nth, by } => if let Some((serial, flow)) = model.nth(nth) {
                    let end = &mut model.flows.get_mut(&serial).unwrap().2;
                    if end.wrapping_sub(now) < MAX_TIMEOUT - by {
                        *end = end.wrapping_add(by);
                        table.extend(flow, *end);
                    }
                },
                Step::GrowUp { nth } => if let Some((serial, flow)) = model.nth(nth) {
                    table.promote(flow);
                    model.flows.get_mut(&serial).unwrap().4 = false;
                },
                Step::Recycle => {
                    let oldest = model.flows.iter().find(|(_, flow)| flow.4).map(|(s, _)| *s);
                    let mut gone = None;
                    prop_assert_eq!(table.recycle(|t, f| gone = Some(*t.get(f))), oldest.is_some());
                    prop_assert_eq!(gone, oldest);
                    oldest.into_iter().for_each(|serial| model.forget(serial));
                }
                Step::Time { by, steps } => {
                    now = now.wrapping_add(by);
                    check_time(&mut table, &mut model, now, steps);
                }
            }
            prop_assert_eq!(table.len() as usize, model.flows.len());
        }
        for (flow, keys, end, serial, young) in model.flows.values() {
            prop_assert_eq!((table.expiry(*flow), table.is_young(*flow)), (*end, *young));
            prop_assert_eq!(table.get(*flow), serial);
            let (first, second) = table.keys(*flow);
            let found: Vec<Key> = [Some(first), second].into_iter().flatten().copied().collect();
            prop_assert_eq!(&found, keys);
            prop_assert_eq!(model.serial_of(*flow), *serial);
        }
        empty(&mut table);
    }
}

/// Millions of random operations on a table that is nearly always full.
#[test]
fn stays_right_when_full() {
    const FLOWS: u32 = 20_000;
    let mut table = Table::new(FLOWS, 2, 0).unwrap();
    let mut random = 1u64;
    let mut next = || {
        random = crate::hash::mix64(random.wrapping_add(0x9e37_79b9_7f4a_7c15));
        random
    };
    let mut known: HashMap<u64, FlowId> = HashMap::new();
    for round in 0..2_000_000u64 {
        let n = next() % 40_000;
        match known.get(&n) {
            Some(flow) => {
                let by_first = table.find(&key(n), table.hash(&key(n))).unwrap();
                let by_second = table.find(&key(!n), table.hash(&key(!n))).unwrap();
                assert!(by_first.flow() == *flow && by_second.flow() == *flow);
                assert!(!by_first.by_second() && by_second.by_second());
                if next() % 4 == 0 {
                    assert_eq!(table.remove(*flow), n);
                    known.remove(&n);
                }
            }
            None => {
                let second = Some(with_hash(&table, key(!n)));
                match table.add(with_hash(&table, key(n)), second, round as u32, (n, ())) {
                    Ok(flow) => _ = known.insert(n, flow),
                    Err(error) => {
                        assert_eq!((error, known.len()), (AddError::Full, FLOWS as usize));
                        assert!(table.recycle(|t, flow| _ = known.remove(t.get(flow))));
                    }
                }
            }
        }
        assert_eq!(table.len() as usize, known.len());
    }
    empty(&mut table);
}

/// Many flows expire at once: as many as allowed are taken, the rest later, and none early.
#[test]
fn many_ends_at_once() {
    const FLOWS: u64 = 300_000;
    let mut table = Table::new(FLOWS as u32, 1, 0).unwrap();
    for n in 0..FLOWS {
        table.add(with_hash(&table, key(n)), None, 60_000, (n, ())).unwrap();
    }
    assert!(!table.expire(59_999, 1000, |_, _| unreachable!()));
    let (mut ended, mut rounds) = (0, 0);
    while table.expire(60_200, 1000, |_, _| {
        ended += 1;
        OnExpiry::Remove
    }) {
        rounds += 1;
    }
    assert_eq!((ended, rounds, table.counts().expired), (FLOWS, FLOWS / 1000, FLOWS));
    empty(&mut table);
}

#[test]
fn hashes_spread_and_differ_between_tables() {
    let table = Table::new(1 << 16, 1, 0).unwrap();
    // Keys differ as tuples do: a few bits change, at either end.
    let keys: Vec<Key> = (0..1u64 << 16).map(|n| [n & 0xff | (n >> 8) << 32, 17 << 48]).collect();
    let mut cells = vec![0u32; 1 << 12];
    for key in &keys {
        cells[(table.hash(key).0 >> 52) as usize] += 1;
        assert_ne!(table.hash(key), Table::new(1, 1, 0).unwrap().hash(key));
        if key[0] > 64 {
            break;
        }
    }
    cells.fill(0);
    keys.iter().for_each(|key| cells[(table.hash(key).0 >> 52) as usize] += 1);
    // 16 in each on average; chi-squared of 4095 degrees within six deviations.
    let chi: f64 = cells.iter().map(|n| (f64::from(*n) - 16.0).powi(2) / 16.0).sum();
    assert!((chi - 4095.0).abs() < 6.0 * (2.0 * 4095.0f64).sqrt(), "{chi}");
}

#[test]
fn a_flow_takes_two_lines() {
    assert_eq!(size_of::<Entry<2, [u64; 9], ()>>(), 128);
    assert_eq!(size_of::<Entry<2, [u64; 8], ()>>(), 120);
    // Both keys and a short value are on the first of them.
    type Both = Entry<2, [u64; 3], [u64; 6]>;
    assert_eq!((size_of::<Both>(), std::mem::offset_of!(Both, rest)), (128, 64));
    let table = FlowTable::<2, [u64; 9]>::new(1_000_000, 2, 0).unwrap();
    assert!(table.bytes() <= 144 * 1_000_001, "{}", table.bytes());
    assert!(Table::new(u32::MAX, 1, 0).is_err());
    let table = FlowTable::<2, [u64; 8]>::new(1_000_000, 1, 0).unwrap();
    assert!(table.bytes() <= 128 * 1_000_001, "{}", table.bytes());
}

/// A table for flows of one key refuses flows before its index is too full to be searched.
#[test]
fn second_keys_take_room() {
    let mut table = FlowTable::<2, u64>::new(800, 1, 0).unwrap();
    let mut flows = Vec::new();
    let full = loop {
        let n = flows.len() as u64;
        let [first, second] = [[n, 1], [n, 2]].map(|key| (key, table.hash(&key)));
        match table.add(first, Some(second), 1, (n, ())) {
            Ok(flow) => flows.push(flow),
            Err(e) => break e,
        }
    };
    assert_eq!((full, flows.len()), (AddError::Full, 500));
    flows.into_iter().for_each(|flow| assert_eq!(table.remove(flow), u64::from(flow.index())));
    assert!((0..800).all(|n| table.add(([n, 1], table.hash(&[n, 1])), None, 1, (n, ())).is_ok()));
    assert_eq!(table.counts().refused, 1);
}

/// Waits until memory is ready; false if the kernel does not support it.
fn wait_for_memory(table: &Table) -> bool {
    let long = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        match table.is_all_ready() {
            None => return false,
            Some(true) => return true,
            Some(false) => {
                assert!(std::time::Instant::now() < long, "the thread does not progress")
            }
        }
        std::thread::yield_now();
    }
}

/// Memory is there before flows are, if the kernel supports it; nothing else differs.
#[test]
fn memory_is_ready_before_flows_come() {
    let capacity = 400_000;
    let mut tables = [0, 1].map(|_| Table::new(capacity, 1, 0).unwrap());
    tables[1].prepare("test-memory").unwrap();
    for n in 0..u64::from(capacity) {
        if n % 10_000 == 0 {
            wait_for_memory(&tables[1]);
        }
        for table in &mut tables {
            let flow = table.add(with_hash(table, key(n)), None, 1000, (n, ())).unwrap();
            assert_eq!((flow.index(), *table.get(flow)), (n as u32, n));
        }
    }
    let [plain, mut table] = tables;
    let more = with_hash(&table, key(capacity.into()));
    assert_eq!(table.add(more, None, 1, (0, ())), Err(AddError::Full));
    assert_eq!(FlowCounts { refused: 0, ..table.counts() }, plain.counts());
    empty(&mut table);
}

/// Minor page faults of this thread so far.
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let behind_name = stat.rsplit(')').next().unwrap();
    behind_name.split_whitespace().nth(7).unwrap().parse().unwrap()
}

/// A worker that adds flows as fast as possible is refused while there is no memory, and faults
/// none in itself: neither for flows nor for keys nor in the side table.
#[test]
fn adding_flows_faults_no_memory_in() {
    let capacity = 600_000;
    let mut side = PagedTable::<[u64; 2]>::with_pages(capacity as usize, Pages::Huge).unwrap();
    let mut table = Table::new(capacity, 1, 0).unwrap();
    table.prepare_with("test-memory", &side, false).unwrap();
    let add = |table: &mut Table, n| table.add(with_hash(table, key(n)), None, 1000, (n, ()));
    (0..1000).for_each(|n| _ = add(&mut table, n).unwrap());
    table.want_side_memory();
    if !wait_for_memory(&table) {
        return;
    }
    let (mut unready, before) = (0, faults());
    for n in 1000..u64::from(capacity) {
        let flow = loop {
            match add(&mut table, n) {
                Ok(flow) => break flow,
                Err(AddError::Unready) => unready += 1,
                Err(e) => panic!("{e}"),
            }
        };
        side.as_mut_slice()[flow.index() as usize] = [n, n];
    }
    let found = faults() - before;
    assert_eq!((table.len(), table.counts().unready), (capacity, unready));
    // The test itself allocates the text of two files, and the wheel has memory of its own.
    assert!(found < 20, "{found} page faults");
}

/// Flows are added while memory of the side table is prepared for existing ones.
#[test]
fn no_flow_waits_for_side_memory_of_others() {
    let capacity = 600_000;
    let mut side = PagedTable::<[u64; 2]>::with_pages(capacity as usize, Pages::Huge).unwrap();
    let mut table = Table::new(capacity, 1, 0).unwrap();
    assert!(table.has_side_memory(), "without a thread nothing waits for it");
    table.prepare_with("test-memory", &side, false).unwrap();
    let add = |table: &mut Table, n| table.add(with_hash(table, key(n)), None, 1000, (n, ()));
    for n in 0..300_000 {
        while let Err(e) = add(&mut table, n) {
            assert_eq!(e, AddError::Unready);
        }
    }
    if !wait_for_memory(&table) {
        return;
    }
    assert!(!table.has_side_memory());
    table.want_side_memory();
    for n in 300_000..301_000 {
        add(&mut table, n).expect("a flow without an entry in the side table");
    }
    wait_for_memory(&table);
    assert!(table.has_side_memory());
    let before = faults();
    side.as_mut_slice()[..table.used() as usize].fill([1, 1]);
    assert!(faults() - before < 20, "all of them have memory in the side table");
}

/// Returns how often a new table refused its first flow, or `None` if the kernel cannot tell what
/// has memory.
fn refusals_of_a_first_flow() -> Option<u64> {
    // An index that takes a thread some time.
    let mut table = Table::new(20_000_000, 1, 0).unwrap();
    table.prepare("test-memory").unwrap();
    let mut refused = 0;
    let long = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while let Err(e) = table.add(with_hash(&table, key(1)), None, 1000, (1, ())) {
        assert_eq!((e, table.len(), table.used()), (AddError::Unready, 0, 0));
        refused += 1;
        assert!(std::time::Instant::now() < long, "the thread does nothing");
        std::thread::yield_now();
    }
    assert_eq!((table.counts().unready, table.len()), (refused, 1));
    assert!(table.is_ready());
    let known = table.is_all_ready().map(|_| refused);
    empty(&mut table);
    known
}

/// A flow that is refused for lack of memory has changed nothing, and is refused until there is
/// some. A thread may be faster than the flow, so that several tables are tried.
#[test]
fn no_flow_comes_before_its_memory() {
    let refused = (0..20).map(|_| refusals_of_a_first_flow()).find(|found| *found != Some(0));
    assert!(refused.is_some(), "twenty threads were faster than their table's first flow");
}

/// A side table that is wanted from the beginning has memory from the beginning.
#[test]
fn side_memory_wanted_at_first_is_ready_at_once() {
    for wanted in [false, true] {
        let side = PagedTable::<[u64; 2]>::new(1 << 20).unwrap();
        let mut table = Table::new(1 << 20, 1, 0).unwrap();
        table.prepare_with("test-memory", &side, wanted).unwrap();
        let knows = table.is_all_ready().is_some();
        assert!(table.is_ready() || !knows);
        assert!(table.add(with_hash(&table, key(1)), None, 1000, (1, ())).is_ok() || !knows);
        empty(&mut table);
    }
}
