//! Forgetting many stations, in slices: a million of them are a tenth of a second, for which nobody
//! else shall wait.
//!
//! What is to go is not shown any more from the beginning, and what is learned or configured meanwhile
//! stays: each address knows which of these sweeps it came after.

use crate::bridges::{Bridges, Origin};
use crate::{L2, table};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;
use thalweg_tables::mac::MacKey;
use thalweg_tables::qsbr::Domain as Readers;

/// How long it keeps the main thread at a stretch.
const SLICE: Duration = Duration::from_millis(1);
/// Addresses that are looked at between two looks at the clock.
pub(crate) const SOME: u32 = 512;

/// Which addresses are to go.
#[derive(Clone, Copy)]
pub(crate) struct Which {
    /// Of one port only.
    pub(crate) port: Option<SwIfIndex>,
    /// Of the bridge domain of this number only.
    pub(crate) bridge: Option<u16>,
    /// Those that came into the table in such a way.
    pub(crate) origins: fn(Origin) -> bool,
}

impl Which {
    /// All of them.
    pub(crate) const ALL: Which = Which { port: None, bridge: None, origins: |_| true };

    fn is(&self, key: MacKey, port: SwIfIndex, origin: Origin) -> bool {
        self.port.is_none_or(|p| p == port)
            && self.bridge.is_none_or(|b| b == key.bridge())
            && (self.origins)(origin)
    }
}

/// Is told how many were forgotten.
pub(crate) type Done = Box<dyn FnOnce(u32)>;

/// Addresses being forgotten.
pub(crate) struct Sweep {
    which: Which,
    /// Addresses of this number, and later ones, came after it began.
    serial: u32,
    at: u32,
    gone: u32,
    done: Option<Done>,
}

impl Bridges {
    /// Begins to forget some addresses; [`Bridges::sweep`] does it.
    pub(crate) fn forget(&mut self, which: Which, done: Option<Done>) {
        self.serial += 1;
        let serial = self.serial;
        self.sweeps.push_back(Sweep { which, serial, at: 0, gone: 0, done });
    }

    /// Whether an address is about to be forgotten.
    pub(crate) fn is_going(
        &self,
        key: MacKey,
        port: SwIfIndex,
        origin: Origin,
        serial: u32,
    ) -> bool {
        self.sweeps.iter().any(|s| serial < s.serial && s.which.is(key, port, origin))
    }

    /// Looks at some more addresses. `Some`: that was the last of a sweep, which is over.
    pub(crate) fn sweep(&mut self, readers: &Readers, some: u32) -> Option<impl FnOnce() + use<>> {
        let mut sweep = self.sweeps.pop_front()?;
        let end = self.numbers().min(sweep.at.saturating_add(some));
        let (which, serial) = (sweep.which, sweep.serial);
        sweep.gone += self.forget_some(readers, sweep.at..end, |key, port, known, _| {
            known.serial < serial && which.is(key, port, known.origin)
        });
        sweep.at = end;
        if end < self.numbers() {
            self.sweeps.push_front(sweep);
            return None;
        }
        if let Some(number) = which.bridge {
            self.release(number);
        }
        let (done, gone) = (sweep.done, sweep.gone);
        Some(move || done.into_iter().for_each(|done| done(gone)))
    }

    /// Whether there are addresses that are to be forgotten.
    pub(crate) fn is_sweeping(&self) -> bool {
        !self.sweeps.is_empty()
    }
}

/// Begins with what is to be forgotten, and goes on as long as it takes. Little is done at once.
pub(crate) fn start(c: &mut Control) {
    let state = c.state::<L2>();
    if !std::mem::replace(&mut state.borrow_mut().bridges.swept, true) {
        go_on(c);
    }
}

fn go_on(c: &mut Control) {
    let (began, readers, state) = (Instant::now(), Arc::clone(c.domain()), c.state::<L2>());
    let (mut over, mut more) = (false, true);
    while more {
        let done = state.borrow_mut().bridges.sweep(&readers, SOME);
        if let Some(done) = done {
            over = true;
            done();
        }
        more = state.borrow().bridges.is_sweeping();
        if began.elapsed() >= SLICE {
            break;
        }
    }
    state.borrow_mut().bridges.swept = more;
    if over {
        // There may be room again.
        table::publish(c);
    }
    if more {
        c.after(Duration::ZERO, go_on);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learning::Learning;
    use std::sync::Mutex;
    use thalweg_graph::Topic;
    use thalweg_tables::mac::MacTable;

    const STATIONS: u32 = 5000;

    fn mac(n: u32) -> [u8; 6] {
        let [a, b, c, d] = n.to_be_bytes();
        [2, 0, a, b, c, d]
    }

    /// A bridge domain 10 with ports 1 and 2, and many stations behind each in turn.
    fn bridges(readers: &Readers) -> Bridges {
        let learning = Arc::new(Learning { seen: Mutex::new(Vec::new()), topic: Topic(0) });
        let mut all = Bridges::new(MacTable::new(1 << 14).unwrap(), learning);
        all.create(10).unwrap();
        (1..=2).for_each(|port| all.join(10, port, 0).unwrap());
        for n in 0..STATIONS {
            all.add(readers, 10, mac(n), Some((1 + n % 2, "")), Origin::Added).unwrap();
        }
        all
    }

    fn shown(all: &Bridges) -> usize {
        all.addresses(0, u32::MAX).0.len()
    }

    #[test]
    fn a_step_is_bounded_and_what_goes_is_gone_at_once() {
        let readers = Readers::new();
        let mut all = bridges(&readers);
        all.leave(1);
        assert_eq!((shown(&all), all.count().0), (STATIONS as usize / 2, STATIONS));
        assert_eq!(all.address(10, mac(0)), None);
        let (mut steps, mut before) = (0, STATIONS);
        while all.is_sweeping() {
            let _ = all.sweep(&readers, 100);
            let now = all.count().0;
            assert!(before - now <= 100, "{before} {now}");
            (steps, before) = (steps + 1, now);
        }
        assert_eq!((steps, all.count().0), (STATIONS.div_ceil(100), STATIONS / 2));
        assert!(all.address(10, mac(1)).is_some());
    }

    #[test]
    fn what_comes_meanwhile_stays() {
        let readers = Readers::new();
        let mut all = bridges(&readers);
        let told = std::rc::Rc::new(std::cell::Cell::new(0));
        let gone = told.clone();
        all.forget(Which::ALL, Some(Box::new(move |n| gone.set(n))));
        let _ = all.sweep(&readers, 100);
        // One that would have come later, one that has gone already, one that is new.
        for n in [4000, 50, 70_000] {
            all.add(&readers, 10, mac(n), Some((2, "")), Origin::Static).unwrap();
        }
        assert_eq!(shown(&all), 3);
        while all.is_sweeping() {
            if let Some(done) = all.sweep(&readers, 100) {
                done();
            }
        }
        assert_eq!((shown(&all), all.count().0, told.get()), (3, 3, STATIONS - 1));
    }

    #[test]
    fn a_number_rests_until_its_stations_are_gone() {
        let readers = Readers::new();
        let mut all = bridges(&readers);
        let number = all.get(10).unwrap().number;
        assert!(all.leave(1) && all.leave(2));
        all.delete(10).unwrap();
        assert_ne!(all.create(10).unwrap().number, number);
        assert_eq!(shown(&all), 0);
        while all.is_sweeping() {
            let _ = all.sweep(&readers, 1000);
        }
        assert_eq!(all.count().0, 0);
        assert_eq!(all.create(11).unwrap().number, number);
    }
}
