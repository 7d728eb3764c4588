//! Classifier tables: they choose packets for traces and captures.
//!
//! A table has a mask over the first bytes of a packet, in vectors of 16 bytes, and sessions: the
//! values of these bytes that it hits. A table may lead to another; a chain of tables is the filter
//! of `trace add … filter`, of `pcap trace … filter`, or of captures of one interface. Workers get
//! a chain as it was when the trace or capture began.

pub mod words;

use std::collections::BTreeMap;
use std::sync::Arc;
use thalweg_api::Retval;
use thalweg_buffer::SwIfIndex;
use thalweg_graph::control::Control;
use thalweg_graph::filter::{ByteFilter, BytePattern, MAX_BYTES};

/// Bytes of a vector.
pub const VECTOR: usize = 16;
/// Most vectors of a mask, and most that it may skip.
pub const MAX_VECTORS: u32 = 5;
/// Maximum number of tables.
pub const MAX_TABLES: usize = 64;
/// Maximum number of sessions of all tables.
pub const MAX_SESSIONS: usize = 4096;

/// "No table", in messages.
pub const NONE: u32 = u32::MAX;

const _: () = assert!(2 * MAX_VECTORS as usize * VECTOR == MAX_BYTES);

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Vectors before the mask.
    pub skip: u32,
    /// The bits that count: one to [`MAX_VECTORS`] vectors.
    pub mask: Vec<u8>,
    /// The table that packets try next if this has no session for them.
    pub next: Option<u32>,
    /// Number of hash buckets that its maker asked for; kept, and without effect.
    pub buckets: u32,
    /// Next node of packets without a session; kept, and without effect on traces.
    pub miss_next: u32,
    /// Sessions by the value of the masked bytes.
    pub sessions: BTreeMap<Vec<u8>, Session>,
}

/// A session's effect on the packets that it hits. Traces and captures take them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Next node of the packets.
    pub hit_next: u32,
    /// Any number.
    pub opaque: u32,
    /// Bytes that they would step over.
    pub advance: i32,
}

impl Default for Session {
    fn default() -> Session {
        Session { hit_next: NONE, opaque: NONE, advance: 0 }
    }
}

impl Table {
    /// Number of vectors of the mask.
    pub fn vectors(&self) -> u32 {
        (self.mask.len() / VECTOR) as u32
    }

    /// Returns the table of a mask over the first bytes of packets, without sessions.
    ///
    /// # Errors
    /// [`ClassifyError::Value`] if the bits that count are too far apart.
    pub fn of_mask(mask: &words::Bytes) -> Result<Table, ClassifyError> {
        let first = mask.iter().position(|b| *b != 0).map_or(0, |at| at / VECTOR);
        let last = mask.iter().rposition(|b| *b != 0).map_or(0, |at| at / VECTOR);
        if last - first >= MAX_VECTORS as usize {
            return Err(ClassifyError::Value(format!(
                "the bits of a mask are within {MAX_VECTORS} vectors of {VECTOR} bytes, not in \
                 vectors {first} to {last}"
            )));
        }
        Ok(Table {
            skip: first as u32,
            mask: mask[first * VECTOR..(last + 1) * VECTOR].to_vec(),
            next: None,
            buckets: 2,
            miss_next: NONE,
            sessions: BTreeMap::new(),
        })
    }

    /// Number of bytes of a packet that it looks at, or steps over.
    fn reach(&self) -> usize {
        self.skip as usize * VECTOR + self.mask.len()
    }

    /// The key of a session: what the mask leaves of a packet's first bytes.
    ///
    /// # Errors
    /// [`ClassifyError::Value`] if the bytes are not as many as the table looks at.
    fn key(&self, bytes: &[u8]) -> Result<Vec<u8>, ClassifyError> {
        let (skipped, expected) = (self.skip as usize * VECTOR, self.reach());
        match bytes.get(skipped..).filter(|_| bytes.len() == expected) {
            Some(rest) => Ok(rest.iter().zip(&self.mask).map(|(b, m)| b & m).collect()),
            None => {
                let text = format!("expected {expected} bytes to match, found {}", bytes.len());
                Err(ClassifyError::Value(text))
            }
        }
    }

    fn pattern(&self, key: &[u8]) -> BytePattern {
        let skipped = vec![0; self.skip as usize * VECTOR];
        BytePattern::new(&[&skipped[..], &self.mask].concat(), &[&skipped[..], key].concat())
    }

    fn is_like(&self, other: &Table) -> bool {
        (self.skip, &self.mask) == (other.skip, &other.mask)
    }
}

/// Reason why a table or session cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassifyError {
    /// The table does not exist.
    #[error("no classifier table {0}; `show classify tables' lists them")]
    NoTable(u32),
    /// The table has no such session.
    #[error("there is no such pattern")]
    NoSession,
    /// A parameter is out of range.
    #[error("{0}")]
    Value(String),
    /// The limit of tables is reached.
    #[error(
        "there are {MAX_TABLES} classifier tables, the most: `classify table table <n> del' \
             removes one"
    )]
    Tables,
    /// The limit of sessions is reached.
    #[error(
        "there are {MAX_SESSIONS} classifier sessions, the most: `classify filter ... del' \
             removes those of a filter"
    )]
    Sessions,
    /// The filter of a trace or capture has no table.
    #[error("no filter: `classify filter {0} mask ... match ...' sets one")]
    NoFilter(&'static str),
}

impl From<ClassifyError> for Retval {
    fn from(e: ClassifyError) -> Retval {
        let retval = match e {
            ClassifyError::NoTable(_) => Retval::NO_SUCH_TABLE,
            ClassifyError::NoSession | ClassifyError::NoFilter(_) => Retval::NO_SUCH_ENTRY,
            ClassifyError::Value(_) => Retval::INVALID_VALUE,
            ClassifyError::Tables | ClassifyError::Sessions => Retval::TABLE_TOO_BIG,
        };
        retval.because(e)
    }
}

impl From<ClassifyError> for thalweg_cli::CliError {
    fn from(e: ClassifyError) -> thalweg_cli::CliError {
        let Retval(code) = Retval::from(e.clone());
        thalweg_cli::CliError::with_code(e, code)
    }
}

/// Owner of the filter that a chain of tables is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum User {
    /// Traces.
    Trace,
    /// Captures of any interface.
    Pcap,
    /// Captures of one interface.
    PcapOf(SwIfIndex),
}

/// All tables, and the chains that are in use.
#[derive(Debug, Default)]
pub struct Classifier {
    tables: BTreeMap<u32, Table>,
    /// The first table of each chain.
    first: BTreeMap<User, u32>,
    /// The first table of the chain that chooses which traces are shown.
    shown: Option<u32>,
}

impl Classifier {
    pub(crate) fn init(c: &mut Control) {
        c.insert(Classifier::default());
    }

    /// All tables with their numbers, in order.
    pub fn tables(&self) -> impl Iterator<Item = (u32, &Table)> {
        self.tables.iter().map(|(index, table)| (*index, table))
    }

    /// A table.
    pub fn table(&self, index: u32) -> Option<&Table> {
        self.tables.get(&index)
    }

    /// The users of chains with their first tables, in order.
    pub fn users(&self) -> impl Iterator<Item = (User, u32)> {
        self.first.iter().map(|(user, first)| (*user, *first))
    }

    /// Lets a chain choose which traces are shown, or none, until it is removed.
    ///
    /// # Errors
    /// [`ClassifyError::NoTable`].
    pub(crate) fn show(&mut self, first: Option<u32>) -> Result<(), ClassifyError> {
        if let Some(gone) = first.filter(|first| !self.tables.contains_key(first)) {
            return Err(ClassifyError::NoTable(gone));
        }
        self.shown = first;
        Ok(())
    }

    /// The first table of the chain that chooses which traces are shown.
    pub(crate) fn shown(&self) -> Option<u32> {
        self.shown
    }

    /// The numbers of a chain's tables.
    pub fn chain(&self, first: u32) -> Vec<u32> {
        let next = |index: &u32| self.tables.get(index)?.next;
        let first = self.tables.contains_key(&first).then_some(first);
        // Chains have no loops; the bound is for a fault in that.
        std::iter::successors(first, next).take(MAX_TABLES).collect()
    }

    /// The numbers of the tables of a user's filter.
    pub fn of(&self, user: User) -> Vec<u32> {
        self.first.get(&user).map_or(Vec::new(), |first| self.chain(*first))
    }

    /// The filter that a chain of tables is.
    pub fn filter(&self, first: u32) -> ByteFilter {
        let tables = self.chain(first);
        let tables = tables.iter().filter_map(|index| self.tables.get(index));
        ByteFilter::new(tables.flat_map(|t| t.sessions.keys().map(|key| t.pattern(key))))
    }

    /// The filter of a user, to be given to workers; that of all captures for one interface that
    /// has none.
    ///
    /// # Errors
    /// [`ClassifyError::NoFilter`].
    pub fn filter_of(&self, user: User) -> Result<Arc<ByteFilter>, ClassifyError> {
        let word = if user == User::Trace { "trace" } else { "pcap" };
        let general = if user == User::Trace { user } else { User::Pcap };
        let first = self.first.get(&user).or_else(|| self.first.get(&general));
        let filter = first.map(|first| self.filter(*first)).filter(|f| !f.is_empty());
        filter.map(Arc::new).ok_or(ClassifyError::NoFilter(word))
    }

    /// Adds a table; returns its number, the lowest that is free.
    ///
    /// # Errors
    /// [`ClassifyError::Value`], [`ClassifyError::NoTable`], [`ClassifyError::Tables`].
    pub fn add(&mut self, table: Table) -> Result<u32, ClassifyError> {
        if !(1..=MAX_VECTORS).contains(&table.vectors()) || !table.mask.len().is_multiple_of(VECTOR)
        {
            let text = format!(
                "a mask has 1 to {MAX_VECTORS} vectors of {VECTOR} bytes, not {} bytes",
                table.mask.len()
            );
            return Err(ClassifyError::Value(text));
        }
        if table.skip > MAX_VECTORS {
            let text = format!("at most {MAX_VECTORS} vectors can be skipped");
            return Err(ClassifyError::Value(text));
        }
        if let Some(next) = table.next.filter(|next| !self.tables.contains_key(next)) {
            return Err(ClassifyError::NoTable(next));
        }
        if self.tables.len() >= MAX_TABLES {
            return Err(ClassifyError::Tables);
        }
        let index = (0..).zip(self.tables.keys()).find(|(i, key)| i != *key).map(|(i, _)| i);
        let index = index.unwrap_or(self.tables.len() as u32);
        self.tables.insert(index, table);
        Ok(index)
    }

    /// Makes a table lead to another, or to none.
    ///
    /// # Errors
    /// [`ClassifyError::NoTable`]; [`ClassifyError::Value`] if the chain would be a loop.
    pub fn set_next(&mut self, index: u32, next: Option<u32>) -> Result<(), ClassifyError> {
        if let Some(next) = next {
            if !self.tables.contains_key(&next) {
                return Err(ClassifyError::NoTable(next));
            }
            if self.chain(next).contains(&index) {
                let text = format!("table {next} leads to table {index}: chains have no loops");
                return Err(ClassifyError::Value(text));
            }
        }
        self.tables.get_mut(&index).ok_or(ClassifyError::NoTable(index))?.next = next;
        Ok(())
    }

    /// Removes a table, and with `chain` those that it leads to. Tables before it then lead to
    /// none, and a filter that begins with it ends, also that of the traces that are shown.
    ///
    /// # Errors
    /// [`ClassifyError::NoTable`].
    pub fn remove(&mut self, index: u32, chain: bool) -> Result<(), ClassifyError> {
        let mut gone = self.chain(index);
        if gone.is_empty() {
            return Err(ClassifyError::NoTable(index));
        }
        gone.truncate(if chain { gone.len() } else { 1 });
        for index in gone {
            self.tables.remove(&index);
            self.first.retain(|_, first| *first != index);
            self.shown = self.shown.filter(|shown| *shown != index);
            let before = self.tables.values_mut().filter(|t| t.next == Some(index));
            before.for_each(|t| t.next = None);
        }
        Ok(())
    }

    /// Adds a session to a table, or changes it; `bytes` are the first of a packet, as many as the
    /// table looks at.
    ///
    /// # Errors
    /// [`ClassifyError::NoTable`], [`ClassifyError::Value`], [`ClassifyError::Sessions`].
    pub fn add_session(
        &mut self,
        index: u32,
        bytes: &[u8],
        session: Session,
    ) -> Result<(), ClassifyError> {
        let all: usize = self.tables.values().map(|t| t.sessions.len()).sum();
        let table = self.tables.get_mut(&index).ok_or(ClassifyError::NoTable(index))?;
        let key = table.key(bytes)?;
        if all >= MAX_SESSIONS && !table.sessions.contains_key(&key) {
            return Err(ClassifyError::Sessions);
        }
        table.sessions.insert(key, session);
        Ok(())
    }

    /// Removes a session.
    ///
    /// # Errors
    /// [`ClassifyError::NoTable`], [`ClassifyError::Value`], [`ClassifyError::NoSession`].
    pub fn remove_session(&mut self, index: u32, bytes: &[u8]) -> Result<(), ClassifyError> {
        let table = self.tables.get_mut(&index).ok_or(ClassifyError::NoTable(index))?;
        let key = table.key(bytes)?;
        table.sessions.remove(&key).map(drop).ok_or(ClassifyError::NoSession)
    }

    /// Finds the table of a chain that has this mask.
    pub fn find(&self, user: User, skip: u32, mask: &[u8]) -> Option<u32> {
        let is_it = |t: &Table| t.skip == skip && t.mask == mask;
        self.of(user).into_iter().find(|index| self.tables.get(index).is_some_and(is_it))
    }

    /// Makes a chain a user's filter, or ends the filter; `sort` puts masks with more bits first.
    /// Returns the first table.
    ///
    /// # Errors
    /// [`ClassifyError::NoTable`].
    pub fn set(
        &mut self,
        user: User,
        first: Option<u32>,
        sort: bool,
    ) -> Result<Option<u32>, ClassifyError> {
        let Some(mut first) = first else {
            self.first.remove(&user);
            return Ok(None);
        };
        let mut chain = self.chain(first);
        if chain.is_empty() {
            return Err(ClassifyError::NoTable(first));
        }
        if sort {
            let bits = |index: &u32| {
                let mask = self.tables.get(index).map_or(&[][..], |t| &t.mask);
                std::cmp::Reverse(mask.iter().map(|b| b.count_ones()).sum::<u32>())
            };
            chain.sort_by_key(bits);
            for (at, index) in chain.iter().enumerate() {
                if let Some(table) = self.tables.get_mut(index) {
                    table.next = chain.get(at + 1).copied();
                }
            }
            // Others that lead to the chain still have all of it.
            let before = std::mem::replace(&mut first, chain[0]);
            let others = self.first.values_mut().chain(&mut self.shown);
            others.filter(|other| **other == before).for_each(|other| *other = first);
            let leads = |(i, t): &(&u32, &mut Table)| t.next == Some(before) && !chain.contains(i);
            self.tables.iter_mut().filter(leads).for_each(|(_, t)| t.next = Some(first));
        }
        self.first.insert(user, first);
        Ok(Some(first))
    }

    /// Adds a pattern to a user's filter: a session, in a table of its mask.
    ///
    /// # Errors
    /// [`ClassifyError::Tables`], [`ClassifyError::Sessions`], [`ClassifyError::Value`].
    pub fn add_pattern(
        &mut self,
        user: User,
        mask: &words::Bytes,
        value: &words::Bytes,
    ) -> Result<(), ClassifyError> {
        let table = Table::of_mask(mask)?;
        let bytes = &value[..table.reach()];
        let index = match self.find(user, table.skip, &table.mask) {
            Some(index) => index,
            None => {
                let next = self.first.get(&user).copied();
                let index = self.add(Table { next, ..table })?;
                self.first.insert(user, index);
                index
            }
        };
        let added = self.add_session(index, bytes, Session::default());
        if added.is_err() && self.tables.get(&index).is_some_and(|t| t.sessions.is_empty()) {
            self.unlink(index);
        }
        added
    }

    /// Removes a pattern from a user's filter, and the table that it leaves empty.
    ///
    /// # Errors
    /// [`ClassifyError::NoSession`], [`ClassifyError::Value`].
    pub fn remove_pattern(
        &mut self,
        user: User,
        mask: &words::Bytes,
        value: &words::Bytes,
    ) -> Result<(), ClassifyError> {
        let table = Table::of_mask(mask)?;
        let bytes = &value[..table.reach()];
        let found = self.find(user, table.skip, &table.mask);
        let index = found.ok_or(ClassifyError::NoSession)?;
        self.remove_session(index, bytes)?;
        if self.tables.get(&index).is_some_and(|t| t.sessions.is_empty()) {
            self.unlink(index);
        }
        Ok(())
    }

    /// Removes the tables of a mask from a user's filter, or all.
    ///
    /// # Errors
    /// [`ClassifyError::Value`] if no table can have the mask.
    pub fn clear(&mut self, user: User, mask: Option<&words::Bytes>) -> Result<(), ClassifyError> {
        let like = mask.map(Table::of_mask).transpose()?;
        for index in self.of(user) {
            let table = self.tables.get(&index);
            if table.is_some_and(|t| like.as_ref().is_none_or(|like| t.is_like(like))) {
                self.unlink(index);
            }
        }
        Ok(())
    }

    /// Takes a table out of its chain, whose rest stays, and removes it.
    fn unlink(&mut self, index: u32) {
        let Some(next) = self.tables.get(&index).map(|t| t.next) else { return };
        for before in self.tables.values_mut().filter(|t| t.next == Some(index)) {
            before.next = next;
        }
        // Filters that begin with it begin with the next.
        if let Some(next) = next {
            let leads = self.first.values_mut().chain(&mut self.shown);
            leads.filter(|first| **first == index).for_each(|first| *first = next);
        }
        // The table exists, and nothing leads to it.
        let _ = self.remove(index, false);
    }
}

/// The filter of a user, to be given to workers.
///
/// # Errors
/// [`ClassifyError::NoFilter`].
pub fn filter(c: &Control, user: User) -> Result<Arc<ByteFilter>, ClassifyError> {
    c.state::<Classifier>().borrow().filter_of(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(set: &[(usize, u8)]) -> words::Bytes {
        let mut bytes = [0; MAX_BYTES];
        set.iter().for_each(|(at, value)| bytes[*at] = *value);
        bytes
    }

    #[test]
    fn a_mask_becomes_as_few_vectors_as_hold_it() {
        let of = |set: &[usize]| {
            let set: Vec<_> = set.iter().map(|at| (*at, 0xff)).collect();
            let table = Table::of_mask(&bytes(&set)).unwrap();
            (table.skip, table.vectors())
        };
        assert_eq!(of(&[0]), (0, 1));
        assert_eq!(of(&[15, 16]), (0, 2));
        assert_eq!(of(&[26]), (1, 1));
        assert_eq!(of(&[14, 70]), (0, 5));
        assert_eq!(of(&[MAX_BYTES - 1]), (9, 1));
        assert!(Table::of_mask(&bytes(&[(0, 1), (80, 1)])).is_err());
    }

    #[test]
    fn patterns_are_sessions_of_one_table_for_each_mask() {
        let mut all = Classifier::default();
        let (a, b) = (bytes(&[(26, 0xff)]), bytes(&[(30, 0xff)]));
        for value in [1, 2, 2] {
            all.add_pattern(User::Trace, &a, &bytes(&[(26, value), (27, 9)])).unwrap();
        }
        all.add_pattern(User::Trace, &b, &bytes(&[(30, 7)])).unwrap();
        all.add_pattern(User::Pcap, &b, &bytes(&[(30, 8)])).unwrap();
        assert_eq!((all.of(User::Trace), all.of(User::Pcap)), (vec![1, 0], vec![2]));
        assert_eq!(all.table(0).unwrap().sessions.len(), 2);
        let takes = |all: &Classifier, user, set: &[(usize, u8)]| {
            all.filter_of(user).is_ok_and(|f| f.matches(&bytes(set)[..40]))
        };
        assert!(takes(&all, User::Trace, &[(26, 2)]) && takes(&all, User::Trace, &[(30, 7)]));
        assert!(!takes(&all, User::Trace, &[(26, 3), (30, 8)]));
        // An interface without tables of its own has those of all.
        let of_one = User::PcapOf(SwIfIndex(3));
        assert!(takes(&all, of_one, &[(30, 8)]) && !takes(&all, of_one, &[(30, 7)]));
        all.add_pattern(of_one, &b, &bytes(&[(30, 7)])).unwrap();
        assert!(!takes(&all, of_one, &[(30, 8)]) && takes(&all, of_one, &[(30, 7)]));

        let gone = all.remove_pattern(User::Trace, &b, &bytes(&[(30, 9)]));
        assert_eq!(gone, Err(ClassifyError::NoSession));
        all.remove_pattern(User::Trace, &b, &bytes(&[(30, 7)])).unwrap();
        assert_eq!(all.of(User::Trace), [0]);
        all.clear(User::Trace, Some(&b)).unwrap();
        assert_eq!(all.of(User::Trace), [0]);
        all.clear(User::Trace, Some(&a)).unwrap();
        assert_eq!(all.filter_of(User::Trace), Err(ClassifyError::NoFilter("trace")));
        all.clear(User::Pcap, None).unwrap();
        all.clear(of_one, None).unwrap();
        assert_eq!(all.tables().count(), 0);
    }

    /// A user's change of a chain leaves the others all that it does not remove.
    #[test]
    fn users_share_chains() {
        let mut all = Classifier::default();
        let (few, many) = (bytes(&[(26, 1)]), bytes(&[(26, 3)]));
        all.add_pattern(User::Trace, &many, &bytes(&[(26, 2)])).unwrap();
        all.add_pattern(User::Trace, &few, &bytes(&[(26, 1)])).unwrap();
        let first = all.of(User::Trace)[0];
        let before = all.add(Table { next: Some(first), ..Table::of_mask(&few).unwrap() }).unwrap();
        all.set(User::Pcap, Some(first), false).unwrap();
        assert_eq!(all.set(User::Trace, Some(first), true), Ok(Some(0)));
        assert_eq!((all.of(User::Trace), all.of(User::Pcap)), (vec![0, 1], vec![0, 1]));
        assert_eq!(all.chain(before), [before, 0, 1]);
        all.remove_pattern(User::Trace, &many, &bytes(&[(26, 2)])).unwrap();
        assert_eq!((all.of(User::Trace), all.of(User::Pcap)), (vec![1], vec![1]));
        assert_eq!(all.chain(before), [before, 1]);
        all.clear(User::Pcap, None).unwrap();
        assert_eq!((all.users().count(), all.chain(before)), (0, vec![before]));
    }

    #[test]
    fn chains_have_no_loops_and_no_loose_ends() {
        let mut all = Classifier::default();
        let table = |next, bits| Table {
            next,
            mask: vec![bits; VECTOR],
            ..Table::of_mask(&bytes(&[(0, 1)])).unwrap()
        };
        let a = all.add(table(None, 1)).unwrap();
        let b = all.add(table(Some(a), 3)).unwrap();
        let c = all.add(table(Some(b), 7)).unwrap();
        assert!(matches!(all.set_next(a, Some(c)), Err(ClassifyError::Value(_))));
        assert!(matches!(all.set_next(a, Some(a)), Err(ClassifyError::Value(_))));
        assert_eq!(all.set_next(a, Some(9)), Err(ClassifyError::NoTable(9)));
        assert_eq!(all.add(table(Some(9), 1)), Err(ClassifyError::NoTable(9)));
        // More bits first.
        all.set_next(c, None).unwrap();
        all.set_next(a, Some(c)).unwrap();
        assert_eq!(all.chain(b), [b, a, c]);
        assert_eq!(all.set(User::Trace, Some(b), true), Ok(Some(c)));
        assert_eq!(all.of(User::Trace), [c, b, a]);
        all.remove(b, false).unwrap();
        assert_eq!(all.of(User::Trace), [c]);
        // The lowest number that is free.
        assert_eq!(all.add(table(Some(a), 1)), Ok(b));
        all.remove(b, true).unwrap();
        assert_eq!(all.remove(a, false), Err(ClassifyError::NoTable(a)));
        all.remove(c, false).unwrap();
        assert_eq!(all.users().count(), 0);
    }

    #[test]
    fn tables_and_sessions_are_bounded() {
        let mut all = Classifier::default();
        let table = Table::of_mask(&bytes(&[(0, 0xff), (1, 0xff)])).unwrap();
        let index = all.add(table.clone()).unwrap();
        for i in 0..MAX_SESSIONS {
            let value = [&(i as u16).to_be_bytes()[..], &[0; 14]].concat();
            all.add_session(index, &value, Session::default()).unwrap();
        }
        let more = [&[0xff; 2][..], &[0; 14]].concat();
        let refused = all.add_session(index, &more, Session::default());
        assert_eq!(refused, Err(ClassifyError::Sessions));
        all.add_session(index, &[0; 16], Session { opaque: 7, ..Session::default() }).unwrap();
        assert!(matches!(
            all.add_session(index, &[0; 15], Session::default()),
            Err(ClassifyError::Value(_))
        ));
        // A pattern that finds no room leaves no table behind.
        let mask = bytes(&[(40, 0xff)]);
        assert_eq!(all.add_pattern(User::Trace, &mask, &mask), Err(ClassifyError::Sessions));
        assert_eq!((all.tables().count(), all.users().count()), (1, 0));
        for _ in 1..MAX_TABLES {
            all.add(table.clone()).unwrap();
        }
        assert_eq!(all.add(table.clone()), Err(ClassifyError::Tables));
        for mask in [vec![], vec![0; 15], vec![0; 96]] {
            assert!(matches!(
                all.add(Table { mask, ..table.clone() }),
                Err(ClassifyError::Value(_))
            ));
        }
        assert!(matches!(all.add(Table { skip: 6, ..table }), Err(ClassifyError::Value(_))));
    }
}
