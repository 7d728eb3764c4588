//! Saves sessions to a file and restores them.
//!
//! A separate thread reads and writes the file. The thread sends requests to workers through the
//! main thread, a slice of sessions at a time, so that neither waits for the disk.

use crate::nodes::nat44_ed_ticker::Order;
use crate::restore::Restored;
use crate::saved::{self, FormatError, Header, RECORD, Saved};
use crate::state::Nat44;
use crate::time;
use crate::waiting;
use crate::worker::Nat;
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};
use thalweg_files::FileError;
use thalweg_files::client::{self, Kind, Lease};
use thalweg_graph::{Control, clock};
use thalweg_wire::nat::tuple::{Key, Tuple};

/// Maximum number of sessions per request to a worker.
const SLICE: u32 = 256;
/// Number of sessions that a worker restores in one loop: some tens of microseconds.
const BATCH: usize = 128;
/// Timeout of a request to a worker.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time that the main thread serves the file thread at a time, waits for its next request, and then
/// does other work.
const TURN: Duration = Duration::from_millis(1);
const SOON: Duration = Duration::from_micros(100);
const PAUSE: Duration = Duration::from_micros(500);
/// Buffer size for reads and writes, in bytes.
const BUFFER: usize = 1 << 18;

/// Files of sessions.
static SESSIONS: Kind =
    Kind { name: "a file of nat44 sessions", magic: &[&saved::MAGIC], is_foreign: false };

/// Errors of saving and restoring.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// File error.
    #[error("{}: {source}", .file.display())]
    File {
        /// Path of the file.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Invalid contents.
    #[error("{}: {source}", .file.display())]
    Format {
        /// Path of the file.
        file: PathBuf,
        /// The error.
        source: FormatError,
    },
    /// NAT44 is disabled.
    #[error("nat44 is disabled; `nat44 plugin enable` enables it")]
    Disabled,
    /// The main thread has ended, or a worker does not answer.
    #[error("the router did not answer")]
    NoAnswer,
}

/// Results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// Number of sessions saved.
    Saved(u64),
    /// Results of a restore.
    Restored(Restored),
    /// The optional file does not exist, or is empty.
    NoFile,
    /// The file became something else's while sessions were written.
    GivenAway,
}

/// A function to run on the main thread.
type Job = Box<dyn FnOnce(&mut Control) + Send>;

/// A save or restore in progress; it advances when polled.
#[derive(Debug)]
pub struct Work {
    jobs: mpsc::Receiver<Job>,
    answer: mpsc::Receiver<Result<Done, StoreError>>,
}

impl Work {
    /// Serves requests of the thread for a while. Returns the result once finished.
    pub fn poll(&mut self, c: &mut Control) -> Option<Result<Done, StoreError>> {
        let end = Instant::now() + TURN;
        while let Ok(job) = self.jobs.recv_timeout(SOON) {
            job(c);
            if Instant::now() > end {
                break;
            }
        }
        match self.answer.try_recv() {
            Ok(done) => Some(done),
            Err(mpsc::TryRecvError::Empty) => None,
            Err(mpsc::TryRecvError::Disconnected) => Some(Err(StoreError::NoAnswer)),
        }
    }
}

/// The file thread's connection to the main thread.
struct Main(mpsc::Sender<Job>);

impl Main {
    /// Runs a function on the main thread and waits for its result.
    fn ask<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Control) -> R + Send + 'static,
    ) -> Result<R, StoreError> {
        let (tx, rx) = mpsc::sync_channel(1);
        let job = move |c: &mut Control| drop(tx.send(job(c)));
        // If the main thread is gone, the receiver is dropped with the job.
        let _ = self.0.send(Box::new(job));
        rx.recv().map_err(|_| StoreError::NoAnswer)
    }
}

fn begin(
    file: &Path,
    job: impl FnOnce(Main) -> Result<Done, StoreError> + Send + 'static,
) -> Result<Work, StoreError> {
    let (tx, answer) = mpsc::sync_channel(1);
    let (main, jobs) = mpsc::channel();
    let run = move || drop(tx.send(job(Main(main))));
    let thread = std::thread::Builder::new().name("nat44-sessions".into()).spawn(run);
    match thread {
        Ok(_) => Ok(Work { jobs, answer }),
        Err(source) => Err(StoreError::File { file: file.to_owned(), source }),
    }
}

/// Starts saving all sessions to a file, which is replaced once it is complete.
///
/// # Errors
/// [`StoreError::Disabled`], or an error if the thread cannot be started.
pub fn save(c: &Control, file: &Path) -> Result<Work, StoreError> {
    if c.state::<Nat44>().borrow().sessions().is_none() {
        return Err(StoreError::Disabled);
    }
    let (to, reserved) = (file.to_owned(), client::reserve(file, &SESSIONS)?);
    begin(file, move |main| {
        let done = write_all(&main, &to, &reserved.lease());
        drop(reserved);
        done
    })
}

/// Starts saving all sessions to the file of the setting, unless that changes meanwhile.
fn save_as_set(c: &Control, file: &Path) -> Result<Work, StoreError> {
    let lease = c.state::<Nat44>().borrow().saving_lease().ok_or(StoreError::Disabled)?;
    let to = file.to_owned();
    begin(file, move |main| write_all(&main, &to, &lease))
}

/// Places sessions that wait, if what they need has come.
pub(crate) fn place(c: &Control, all: Vec<Saved>) -> Option<Work> {
    let (config, workers) = (c.state::<Nat44>().borrow().config().clone(), c.workers());
    let run = move |main: Main| {
        let mut batches = vec![Vec::new(); workers];
        for s in all {
            let (inside, outside) = (Tuple::of(&s.inside), Tuple::of(&s.outside));
            batches[config.owner_of_session((&inside, &outside), s.marks, workers)].push(s);
        }
        let (mut done, mut left) = (Restored::default(), Vec::new());
        for (worker, all) in batches.into_iter().enumerate() {
            for batch in all.chunks(BATCH) {
                let given = give(&main, worker, batch.to_vec(), 0).ok_or(StoreError::NoAnswer)?;
                done = done.and(given.0);
                left.extend(given.1);
            }
        }
        main.ask(|c| waiting::tried(c, left))?;
        Ok(Done::Restored(done))
    };
    begin(Path::new(""), run).ok()
}

/// Saves the sessions before the router ends, if they are saved at all and there is time.
pub(crate) fn save_at_end(c: &mut Control, until: Instant) {
    let to = c.state::<Nat44>().borrow().saving().map(|(file, _)| file.clone());
    let Some(Ok(mut work)) = to.map(|file| save(c, &file)) else { return };
    while Instant::now() < until {
        match work.poll(c) {
            None => {}
            Some(Ok(_)) => return,
            Some(Err(e)) => return tracing::warn!("nat44: cannot save sessions: {e}"),
        }
    }
    tracing::warn!("nat44: sessions are as they were saved last: there is no time for more");
}

/// Sessions as they are `elapsed` milliseconds later, without those that have expired.
pub(crate) fn later(all: Vec<Saved>, elapsed: u64) -> impl Iterator<Item = Saved> {
    all.into_iter().filter_map(move |s| {
        let left = u64::from(s.left).checked_sub(elapsed).filter(|left| *left > 0)?;
        let age = s.age.saturating_add(u32::try_from(elapsed).unwrap_or(u32::MAX));
        Some(Saved { left: left as u32, age, ..s })
    })
}

/// Milliseconds since 1970.
pub(crate) fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| d.as_millis() as u64)
}

/// A slice of a worker's sessions, and where to continue.
fn some(c: &mut Control, worker: usize, from: u32) -> (Vec<Saved>, Option<u32>) {
    let here = c.per_worker::<Nat>();
    let answers = c.ask(move |core| {
        (core.index() == worker).then(|| {
            core.with_local(here, |nat| {
                let mut next = from;
                let some = nat.save_some(&mut next, SLICE, time::millis(clock::ticks()));
                (some, (next < nat.table.used()).then_some(next))
            })
        })
    });
    answers.into_iter().flatten().flatten().flatten().next().unwrap_or_default()
}

impl From<FileError> for StoreError {
    fn from(e: FileError) -> StoreError {
        StoreError::File { file: e.path, source: e.source }
    }
}

fn write_all(main: &Main, file: &Path, lease: &Lease) -> Result<Done, StoreError> {
    let at = || |source| StoreError::File { file: file.to_owned(), source };
    let mut out = BufWriter::with_capacity(BUFFER, client::replacement(file, &SESSIONS)?);
    let mut header = Header { at: unix_millis(), ..Header::default() };
    out.write_all(&[0; RECORD]).map_err(at())?;
    let mut write = |header: &mut Header, s: &Saved| -> Result<(), StoreError> {
        let record = s.record();
        header.sum = saved::sum(header.sum, &record);
        header.count += 1;
        out.write_all(&record).map_err(at())
    };
    // Sessions that get their place meanwhile are among the workers' sessions, too.
    let waiting = main.ask(|c| waiting::all(c))?;
    let mut waiting: HashMap<(Key, Key), Saved> =
        waiting.into_iter().map(|s| ((s.inside, s.outside), s)).collect();
    let workers = main.ask(|c| c.workers())?;
    for worker in 0..workers {
        let mut next = Some(0);
        while let Some(from) = next {
            let (all, more) = main.ask(move |c| some(c, worker, from))?;
            for s in all {
                waiting.remove(&(s.inside, s.outside));
                write(&mut header, &s)?;
            }
            next = more;
        }
    }
    // Sessions without a place are not lost by the next start either.
    for s in waiting.values() {
        write(&mut header, s)?;
    }
    let mut out = out.into_inner().map_err(|e| at()(e.into_error()))?;
    let begin = out.file().seek(SeekFrom::Start(0));
    begin.and_then(|_| out.write_all(&header.bytes())).map_err(at())?;
    Ok(if out.commit_for(lease)? { Done::Saved(header.count) } else { Done::GivenAway })
}

/// Starts restoring sessions from a file. With `optional`, the file may be missing or empty.
///
/// # Errors
/// [`StoreError::Disabled`], or an error if the thread cannot be started.
pub fn restore(c: &Control, file: &Path, optional: bool) -> Result<Work, StoreError> {
    if c.state::<Nat44>().borrow().sessions().is_none() {
        return Err(StoreError::Disabled);
    }
    let (config, workers) = (c.state::<Nat44>().borrow().config().clone(), c.workers());
    let from = file.to_owned();
    begin(file, move |main| match thalweg_files::open(&from) {
        Err(e) if optional && e.is_missing() => Ok(Done::NoFile),
        Err(e) => Err(e.into()),
        // A log that was there, and got no line, leaves one.
        Ok(opened) if optional && opened.metadata().is_ok_and(|is| is.len() == 0) => {
            Ok(Done::NoFile)
        }
        Ok(opened) => {
            let owner = |s: &Saved| {
                let (inside, outside) = (Tuple::of(&s.inside), Tuple::of(&s.outside));
                config.owner_of_session((&inside, &outside), s.marks, workers)
            };
            let mut unplaced = Vec::new();
            let done = read_all(opened, (owner, workers), |worker, batch, elapsed| {
                let (sum, left) = give(&main, worker, batch, elapsed)?;
                unplaced.extend(later(left, elapsed));
                Some(sum)
            });
            match done {
                Ok(sum) => {
                    main.ask(|c| waiting::add(c, unplaced))?;
                    Ok(Done::Restored(sum))
                }
                Err(ReadError::File(source)) => Err(StoreError::File { file: from, source }),
                Err(ReadError::Format(source)) => Err(StoreError::Format { file: from, source }),
                Err(ReadError::NoAnswer) => Err(StoreError::NoAnswer),
            }
        }
    })
}

/// Makes a worker restore sessions, and waits for the result and those that have no place.
fn give(
    main: &Main,
    worker: usize,
    all: Vec<Saved>,
    elapsed: u64,
) -> Option<(Restored, Vec<Saved>)> {
    let (answer, rx) = mpsc::channel();
    let send = move |c: &mut Control| {
        if let Some(node) = c.node("nat44-ed-ticker") {
            c.message(worker, node, Box::new(Order::Restore { all, elapsed, answer }));
        }
    };
    main.ask(send).ok()?;
    rx.recv_timeout(PATIENCE).ok()
}

/// Errors of reading a session file.
#[derive(Debug)]
enum ReadError {
    File(io::Error),
    Format(FormatError),
    NoAnswer,
}

impl From<io::Error> for ReadError {
    fn from(e: io::Error) -> ReadError {
        ReadError::File(e)
    }
}

impl From<FormatError> for ReadError {
    fn from(e: FormatError) -> ReadError {
        ReadError::Format(e)
    }
}

/// Reads a session file and passes sessions in batches to `give`, with their owner of `workers` and
/// the time since the save. Nothing is passed on from a file that is invalid.
fn read_all(
    mut file: File,
    (owner, workers): (impl Fn(&Saved) -> usize, usize),
    mut give: impl FnMut(usize, Vec<Saved>, u64) -> Option<Restored>,
) -> Result<Restored, ReadError> {
    let length = file.metadata()?.len();
    let mut record = [0; RECORD];
    file.read_exact(&mut record).map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => ReadError::Format(FormatError::Foreign),
        _ => ReadError::File(e),
    })?;
    let header = Header::read(&record, length.saturating_sub(RECORD as u64))?;
    let mut each = |with: &mut dyn FnMut(&[u8; RECORD]) -> Result<(), ReadError>| {
        file.seek(SeekFrom::Start(RECORD as u64))?;
        let mut file = BufReader::with_capacity(BUFFER, &file);
        for _ in 0..header.count {
            file.read_exact(&mut record)?;
            with(&record)?;
        }
        Ok::<(), ReadError>(())
    };
    let mut sum = 0;
    each(&mut |record| {
        sum = saved::sum(sum, record);
        Ok(())
    })?;
    if sum != header.sum {
        return Err(FormatError::Damaged.into());
    }
    let elapsed = unix_millis().saturating_sub(header.at);
    let mut batches = vec![Vec::with_capacity(BATCH); workers];
    let mut done = Restored::default();
    each(&mut |record| {
        let Some(saved) = Saved::read(record) else {
            done.bad += 1;
            return Ok(());
        };
        let owner = owner(&saved);
        batches[owner].push(saved);
        if batches[owner].len() == BATCH {
            let full = std::mem::take(&mut batches[owner]);
            done = done.and(give(owner, full, elapsed).ok_or(ReadError::NoAnswer)?);
        }
        Ok(())
    })?;
    for (owner, rest) in batches.into_iter().enumerate().filter(|(_, rest)| !rest.is_empty()) {
        done = done.and(give(owner, rest, elapsed).ok_or(ReadError::NoAnswer)?);
    }
    Ok(done)
}

/// Checks that sessions can be saved to a file: a periodic save would find that out much later.
///
/// # Errors
/// If its directory does not exist or cannot be written to, another kind of file is there, or the
/// router writes something else to it.
pub fn check(file: &Path) -> Result<(), StoreError> {
    Ok(client::check_replaceable(file, &SESSIONS)?)
}

/// Saves sessions periodically, or stops doing so.
///
/// # Errors
/// [`StoreError::Disabled`], or if the router writes something else to the file.
pub fn save_every(c: &mut Control, what: Option<(PathBuf, u32)>) -> Result<(), StoreError> {
    let nat = c.state::<Nat44>();
    if what.is_some() && nat.borrow().sessions().is_none() {
        return Err(StoreError::Disabled);
    }
    let reserve = |file: &Path| match nat.borrow_mut().take_saving_to(file) {
        Some(kept) => Ok(kept),
        None => client::reserve(file, &SESSIONS),
    };
    let kept = what.as_ref().map(|(file, _)| reserve(file)).transpose()?;
    let turn = nat.borrow_mut().set_saving(what.clone(), kept);
    let Some((file, seconds)) = what else { return Ok(()) };
    let busy = Rc::new(Cell::new(false));
    c.every(Duration::from_secs(u64::from(seconds)), move |c| {
        if nat_turn(c) != turn {
            return false;
        }
        // On a slow disk the previous save may still be in progress.
        if !busy.get() {
            match save_as_set(c, &file) {
                Ok(work) => {
                    busy.set(true);
                    go_on(c, work, busy.clone());
                }
                Err(e) => tracing::warn!("nat44: cannot save sessions: {e}"),
            }
        }
        true
    });
    Ok(())
}

/// Polls until finished.
fn go_on(c: &mut Control, mut work: Work, busy: Rc<Cell<bool>>) {
    match work.poll(c) {
        None => drop(c.after(PAUSE, move |c| go_on(c, work, busy))),
        Some(done) => {
            busy.set(false);
            if let Err(e) = done {
                tracing::warn!("nat44: cannot save sessions: {e}");
            }
        }
    }
}

fn nat_turn(c: &Control) -> u64 {
    c.state::<Nat44>().borrow().saving_turn()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Class;

    fn saved(n: u32) -> Saved {
        let inside = Tuple {
            src: (0x0a00_0000 + n).into(),
            sport: 5000,
            dst: [192, 0, 2, 9].into(),
            dport: 53,
            protocol: 17,
            table: 0,
        };
        let outside = Tuple { dst: [203, 0, 113, 1].into(), dport: n as u16, ..inside.reversed() };
        Saved {
            inside: inside.key(),
            outside: outside.key(),
            packets: 1,
            bytes: 60,
            left: 300_000,
            age: 5,
            state: 0,
            class: Class::Udp,
            marks: 0,
            has_port: true,
            has_twice_port: false,
            grown: false,
        }
    }

    fn file(records: &[[u8; RECORD]], header: Header) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&header.bytes()).unwrap();
        records.iter().for_each(|r| file.write_all(r).unwrap());
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    #[test]
    fn each_owner_gets_its_sessions() {
        let mut records: Vec<_> = (0..1000).map(|n| saved(n).record()).collect();
        records.push([0xff; RECORD]);
        let sum = records.iter().fold(0, saved::sum);
        let header = Header { count: 1001, at: unix_millis(), sum };
        let mut got = Vec::new();
        let of = |s: &Saved| [0, 2, 5][crate::worker::owner(Tuple::of(&s.inside).src, 3)];
        let done = read_all(file(&records, header), (of, 6), |worker, all, elapsed| {
            assert!(all.len() <= BATCH && elapsed < 60_000);
            assert!(all.iter().all(|s| of(s) == worker));
            got.extend(all.iter().copied());
            Some(Restored { done: all.len() as u64, ..Restored::default() })
        });
        let done = done.unwrap();
        assert_eq!((done.done, done.bad, got.len()), (1000, 1, 1000));
    }

    #[test]
    fn truncated_files_are_rejected() {
        let records = [saved(1).record(), saved(2).record()];
        let sum = records.iter().fold(0, saved::sum);
        let good = Header { count: 2, at: 0, sum };
        let refused = |records: &[[u8; RECORD]], header| {
            let done =
                read_all(file(records, header), (|_: &Saved| 0, 1), |_, _, _| panic!("given"));
            format!("{:?}", done.unwrap_err())
        };
        assert!(refused(&records[..1], good).contains("Length"));
        assert!(refused(&records, Header { sum: 1, ..good }).contains("Damaged"));
        assert!(refused(&[records[1], records[0]], good).contains("Damaged"));
        let short =
            read_all(tempfile::tempfile().unwrap(), (|_: &Saved| 0, 1), |_, _, _| panic!("given"));
        assert!(format!("{short:?}").contains("Foreign"));
    }
}
