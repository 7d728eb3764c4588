//! Bridge domains on the main thread: ports, settings and MAC addresses.

use crate::error::{L2Error, MAX_BRIDGE_ID};
use crate::flush::{FlushFilter, Pass};
use crate::learning::Learning;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_graph::clock;
use thalweg_tables::mac::{MacError, MacKey, MacKind, MacTable, MacValue};
use thalweg_tables::qsbr::Domain as Readers;

/// Maximum number of MAC addresses of all bridge domains together.
pub const MAX_ADDRESSES: u32 = 1 << 20;
/// Default learn limit of a bridge domain.
pub const LEARN_LIMIT: u32 = 1 << 24;
/// Maximum number of bridge domains.
const MAX_DOMAINS: u16 = 4096;

/// Origin of a MAC address entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Learned from a frame.
    Learned,
    /// Configured; neither moves nor ages.
    Static,
    /// Configured; frames to it are dropped.
    Filter,
    /// Configured, but treated as learned.
    Added,
    /// The router's own: the address of the BVI.
    Bvi,
}

/// A port's role in its bridge domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// A port that frames are flooded to.
    #[default]
    Member,
    /// A port that frames are flooded to, which leads to the router itself.
    Bvi,
    /// Gets unknown unicast frames instead of all members, and nothing that is flooded.
    UnknownForward,
}

/// Steps that a port takes with frames that it receives, if its bridge domain takes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortFlags(u8);

impl PortFlags {
    /// Learns source MAC addresses.
    pub const LEARN: PortFlags = PortFlags(1);
    /// Forwards known unicast frames.
    pub const FORWARD: PortFlags = PortFlags(2);
    /// Floods broadcast and multicast frames.
    pub const FLOOD: PortFlags = PortFlags(4);
    /// Floods unknown unicast frames.
    pub const FLOOD_UNKNOWN: PortFlags = PortFlags(8);
    /// Answers ARP requests and neighbour solicitations.
    pub const ARP_TERM: PortFlags = PortFlags(16);
    /// All of these.
    pub const ALL: PortFlags = PortFlags(31);

    /// Reads API flags; bits that are none of them are ignored.
    pub(crate) fn of_bits(bits: u32) -> PortFlags {
        PortFlags((bits & u32::from(Self::ALL.0)) as u8)
    }

    /// Returns these as API flags.
    pub(crate) fn bits(self) -> u32 {
        self.0.into()
    }

    /// Returns whether these include a flag.
    #[inline(always)]
    #[must_use]
    pub fn has(self, flag: PortFlags) -> bool {
        self.0 & flag.0 != 0
    }

    /// Returns these with flags set or cleared.
    #[must_use]
    pub fn with(self, flags: PortFlags, on: bool) -> PortFlags {
        PortFlags(if on { self.0 | flags.0 } else { self.0 & !flags.0 })
    }
}

/// A port of a bridge domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PortOf {
    pub(crate) role: Role,
    /// Split horizon group.
    pub(crate) group: u8,
    pub(crate) flags: PortFlags,
}

/// Settings of a bridge domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Learns source MAC addresses.
    pub learn: bool,
    /// Forwards known unicast frames.
    pub forward: bool,
    /// Floods broadcast and multicast frames.
    pub flood: bool,
    /// Floods unknown unicast frames.
    pub flood_unknown: bool,
    /// Answers ARP requests and neighbour solicitations for addresses that are configured.
    pub arp_term: bool,
    /// Passes ARP requests that it does not answer to the port for unknown unicast frames, if it
    /// has one.
    pub arp_ufwd: bool,
    /// MAC aging time in minutes; 0 disables aging.
    pub mac_age: u8,
    /// Maximum number of learned addresses.
    pub learn_limit: u32,
}

/// A bridge domain.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Number by which workers know it, from 1.
    pub number: u16,
    pub(crate) settings: Settings,
    /// User tag.
    pub tag: String,
    pub(crate) ports: BTreeMap<SwIfIndex, PortOf>,
    /// Its only ports of their role.
    bvi: Option<SwIfIndex>,
    unknown_forward: Option<SwIfIndex>,
    /// Addresses that it answers for.
    pub(crate) arp: BTreeMap<IpAddr, MacAddr>,
    learned: u32,
    /// Address of its BVI in the table.
    bvi_mac: Option<MacAddr>,
}

impl std::ops::Deref for Domain {
    type Target = Settings;
    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Domain {
    /// Ports that frames are flooded to, each with its split horizon group.
    pub fn ports(&self) -> impl Iterator<Item = (SwIfIndex, u8)> + '_ {
        let all = self.ports.iter().filter(|(_, port)| port.role != Role::UnknownForward);
        all.map(|(p, port)| (*p, port.group))
    }
    /// Returns whether frames are flooded to a port.
    pub fn has_port(&self, sw_if: SwIfIndex) -> bool {
        self.ports.get(&sw_if).is_some_and(|port| port.role != Role::UnknownForward)
    }
    /// Sets what an interface is, or that it is no port; returns what it was.
    fn set_port(&mut self, sw_if: SwIfIndex, now: Option<PortOf>) -> Option<PortOf> {
        let is = |role| now.is_some_and(|now| now.role == role);
        for (only, role) in
            [(&mut self.bvi, Role::Bvi), (&mut self.unknown_forward, Role::UnknownForward)]
        {
            let others = only.filter(|port| *port != sw_if);
            *only = if is(role) { Some(sw_if) } else { others };
        }
        match now {
            Some(now) => self.ports.insert(sw_if, now),
            None => self.ports.remove(&sw_if),
        }
    }
    /// The router's own port.
    pub fn bvi(&self) -> Option<SwIfIndex> {
        self.bvi
    }
    /// The port that gets unknown unicast frames, instead of all members.
    pub fn unknown_forward(&self) -> Option<SwIfIndex> {
        self.unknown_forward
    }
    /// Addresses that it answers for.
    pub fn arp_entries(&self) -> impl Iterator<Item = (IpAddr, MacAddr)> + '_ {
        self.arp.iter().map(|(ip, mac)| (*ip, *mac))
    }
    /// Number of learned addresses in the table.
    pub fn learned(&self) -> u32 {
        self.learned
    }
    /// Split horizon group of a port.
    pub(crate) fn group(&self, sw_if: SwIfIndex) -> u8 {
        self.ports.get(&sw_if).map_or(0, |port| port.group)
    }
    /// Returns the flags of a port; all for an interface that is no port.
    pub fn flags(&self, sw_if: SwIfIndex) -> PortFlags {
        self.ports.get(&sw_if).map_or(PortFlags::ALL, |port| port.flags)
    }
    /// Role of a port.
    pub(crate) fn role(&self, sw_if: SwIfIndex) -> Role {
        self.ports.get(&sw_if).map_or(Role::Member, |port| port.role)
    }
    pub(crate) fn has_room(&self) -> bool {
        self.learned < self.settings.learn_limit
    }
}

/// A MAC address entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// Id of the bridge domain.
    pub bridge: u32,
    /// MAC address.
    pub mac: MacAddr,
    /// Port of the address.
    pub port: SwIfIndex,
    /// Origin of the entry.
    pub origin: Origin,
    /// Time since it was last seen, as of the last scan.
    pub age: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) origin: Origin,
    /// Serial of the last flush begun before the entry was made or moved.
    pub(crate) serial: u32,
    seen: Instant,
}

/// Result of a report that an address was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Learned {
    /// No change of the table, or a move.
    Nothing,
    /// The address was learned.
    New,
    /// The address was learned and the learn limit reached.
    Last,
}

/// Counters of MAC learning.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Addresses learned.
    pub learned: u64,
    /// Addresses moved to another port.
    pub moved: u64,
    /// Addresses aged out.
    pub aged: u64,
    /// Addresses not learned, as the table or the learn limit was full.
    pub refused: u64,
    /// Changes that clients are not notified of, as too many wait to be sent.
    pub untold: u64,
}

/// Change of a learned address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MacChange {
    /// Learned.
    Learned,
    /// Aged out or flushed.
    Forgotten,
    /// Moved to another port.
    Moved,
}

/// Maximum number of changes kept for subscribed clients; more are lost, and counted.
const MAX_CHANGES: usize = 1 << 20;

/// Part of the table that learning leaves free: one entry in N.
const SPARE: u32 = 256;
/// Entries looked at to make room, at once and in all.
const ROOM_SCAN: u32 = 64;
const ROOM_SCANS: u32 = 256;

/// Id of numbers whose bridge domain is deleted. No bridge domain has it.
const DELETED: u32 = 0;

/// All bridge domains.
pub struct Bridges {
    domains: BTreeMap<u32, Domain>,
    /// Ids by number; [`DELETED`] while the addresses of a deleted bridge domain are being flushed.
    ids: Vec<Option<u32>>,
    ports: BTreeMap<SwIfIndex, u32>,
    macs: MacTable,
    /// Entry state, indexed like the table's entries.
    known: Vec<Known>,
    learning: Arc<Learning>,
    default_limit: u32,
    counts: Counts,
    /// Number of learned addresses of all bridge domains.
    learned: u32,
    /// Number of learned entries of each port, those that wait for a flush included.
    learned_on: BTreeMap<SwIfIndex, u32>,
    /// Position of the scan for entries that make room.
    room_at: u32,
    /// Maximum number of learned addresses of all bridge domains, as a subscribed client has set
    /// it.
    watch_limit: Option<u32>,
    /// Changes not yet sent, while a client is subscribed.
    changes: Option<VecDeque<(MacAddr, SwIfIndex, MacChange)>>,
    /// Flushes in progress, those that wait, and the serial of the last one.
    pub(crate) pass: Pass,
    pub(crate) waiting: Pass,
    pub(crate) serial: u32,
    /// Ports that are gone, of which entries may be left.
    pub(crate) leaving: Vec<SwIfIndex>,
    /// True if a flush slice is scheduled.
    pub(crate) flush_running: bool,
    /// Position of the aging scan.
    at: u32,
    last_scan: Duration,
    scan: Duration,
}

impl Bridges {
    pub(crate) fn new(macs: MacTable, learning: Arc<Learning>) -> Bridges {
        Bridges {
            domains: BTreeMap::new(),
            ids: vec![None],
            ports: BTreeMap::new(),
            macs,
            known: Vec::new(),
            learning,
            default_limit: LEARN_LIMIT,
            counts: Counts::default(),
            learned: 0,
            learned_on: BTreeMap::new(),
            room_at: 0,
            watch_limit: None,
            changes: None,
            pass: Pass::default(),
            waiting: Pass::default(),
            serial: 0,
            leaving: Vec::new(),
            flush_running: false,
            at: 0,
            last_scan: Duration::ZERO,
            scan: Duration::ZERO,
        }
    }

    /// All bridge domains.
    pub(crate) fn domains(&self) -> impl Iterator<Item = &Domain> {
        self.domains.values()
    }
    /// All bridge domains, by id.
    pub fn list(&self) -> impl Iterator<Item = (u32, &Domain)> {
        self.domains.iter().map(|(id, d)| (*id, d))
    }
    /// Returns a bridge domain by id.
    pub fn get(&self, id: u32) -> Option<&Domain> {
        self.domains.get(&id)
    }
    /// Returns the id of an interface's bridge domain.
    pub fn of(&self, sw_if: SwIfIndex) -> Option<u32> {
        self.ports.get(&sw_if).copied()
    }
    /// Number of addresses in the table, and of learned ones among them.
    pub fn count(&self) -> (u32, u32) {
        (self.macs.len(), self.learned)
    }
    /// Counters since start.
    pub fn counts(&self) -> Counts {
        self.counts
    }
    /// Limits learned addresses of all bridge domains for subscribed clients, or no longer.
    pub(crate) fn set_watch_limit(&mut self, limit: Option<u32>) {
        self.watch_limit = limit;
    }
    /// Starts or stops recording changes.
    pub(crate) fn watch(&mut self, on: bool) {
        match on {
            true => drop(self.changes.get_or_insert_default()),
            false => self.changes = None,
        }
    }
    /// Takes up to `some` changes, oldest first.
    pub(crate) fn take_changes(&mut self, some: usize) -> Vec<(MacAddr, SwIfIndex, MacChange)> {
        let Some(changes) = &mut self.changes else { return Vec::new() };
        let end = some.min(changes.len());
        changes.drain(..end).collect()
    }
    fn note(&mut self, key: MacKey, port: SwIfIndex, change: MacChange) {
        match self.changes.as_mut() {
            Some(changes) if changes.len() < MAX_CHANGES => {
                changes.push_back((MacAddr(key.mac()), port, change));
            }
            Some(_) => self.counts.untold += 1,
            None => {}
        }
    }
    /// Maximum number of addresses.
    pub fn limit(&self) -> u32 {
        self.macs.limit()
    }
    /// Learn limit of new bridge domains.
    pub fn default_learn_limit(&self) -> u32 {
        self.default_limit
    }
    pub(crate) fn set_default_learn_limit(&mut self, limit: u32) {
        self.default_limit = limit;
    }
    /// Duration of the last aging scan.
    pub fn last_scan(&self) -> Duration {
        self.last_scan
    }

    pub(crate) fn find(&mut self, id: u32) -> Result<&mut Domain, L2Error> {
        self.domains.get_mut(&id).ok_or(L2Error::NoBridge(id))
    }

    pub(crate) fn create(&mut self, id: u32) -> Result<&mut Domain, L2Error> {
        if id == 0 || id > MAX_BRIDGE_ID {
            return Err(L2Error::Id(id));
        }
        if self.domains.contains_key(&id) {
            return Err(L2Error::Exists(id));
        }
        let free = self.ids.iter().skip(1).position(Option::is_none).map(|at| at + 1);
        let number = free.unwrap_or(self.ids.len());
        if number > usize::from(MAX_DOMAINS) {
            return Err(L2Error::Full(MAX_DOMAINS));
        }
        if number == self.ids.len() {
            self.ids.push(None);
        }
        self.ids[number] = Some(id);
        let settings = Settings {
            learn: true,
            forward: true,
            flood: true,
            flood_unknown: true,
            arp_term: false,
            arp_ufwd: false,
            mac_age: 0,
            learn_limit: self.default_limit,
        };
        let number = number as u16;
        let (tag, ports, arp) = (String::new(), BTreeMap::new(), BTreeMap::new());
        let (bvi, unknown_forward, bvi_mac) = (None, None, None);
        let domain =
            Domain { number, settings, tag, ports, bvi, unknown_forward, arp, learned: 0, bvi_mac };
        Ok(self.domains.entry(id).or_insert(domain))
    }

    /// Deletes a bridge domain. Its addresses are flushed in slices. Returns its
    /// number.
    pub(crate) fn delete(&mut self, id: u32) -> Result<u16, L2Error> {
        let domain = self.find(id)?;
        if !domain.ports.is_empty() {
            return Err(L2Error::InUse(id));
        }
        let (number, learned) = (domain.number, domain.learned);
        self.domains.remove(&id);
        self.learned = self.learned.saturating_sub(learned);
        self.ids[usize::from(number)] = Some(DELETED);
        self.flush_deleted(number);
        Ok(number)
    }

    /// Frees the number of a deleted bridge domain once its addresses are flushed.
    pub(crate) fn release(&mut self, number: u16) {
        if let Some(id) = self.ids.get_mut(usize::from(number)) {
            *id = id.filter(|id| *id != DELETED);
        }
    }

    /// Number of entry slots in use; entries are numbered below it.
    pub(crate) fn numbers(&self) -> u32 {
        self.macs.numbers()
    }

    pub(crate) fn join(
        &mut self,
        id: u32,
        sw_if: SwIfIndex,
        role: Role,
        group: u8,
    ) -> Result<(), L2Error> {
        let flags = PortFlags::ALL;
        self.find(id)?.set_port(sw_if, Some(PortOf { role, group, flags }));
        self.ports.insert(sw_if, id);
        Ok(())
    }

    /// Takes an interface out of its bridge domain and flushes the port's addresses.
    pub(crate) fn leave(&mut self, sw_if: SwIfIndex) -> bool {
        let Some(id) = self.ports.remove(&sw_if) else { return false };
        if let Some(domain) = self.domains.get_mut(&id)
            && let Some(PortOf { role: Role::Bvi, .. }) = domain.set_port(sw_if, None)
        {
            domain.bvi_mac = None;
        }
        self.flush(FlushFilter { port: Some(sw_if), ..FlushFilter::ALL }, None);
        true
    }

    /// Handles a worker's report of an address that it did not find on that port.
    pub(crate) fn learn(&mut self, readers: &Readers, key: MacKey, sw_if: SwIfIndex) -> Learned {
        let id = self.ids.get(usize::from(key.bridge())).copied().flatten();
        let Some(domain) = id.and_then(|id| self.domains.get_mut(&id)) else {
            return Learned::Nothing;
        };
        // The report may be older than the configuration.
        let port = domain.ports.get(&sw_if);
        let learns = port.is_some_and(|port| port.flags.has(PortFlags::LEARN));
        if !domain.settings.learn || !learns || key.mac() == [0; 6] {
            return Learned::Nothing;
        }
        let (now, has_room) = (clock::now(), domain.has_room());
        if let Some(value) = self.macs.get(key) {
            let entry = value.entry();
            let known = self.known[entry as usize];
            let stays = matches!(known.origin, Origin::Static | Origin::Filter | Origin::Bvi);
            if value.port() != sw_if.get()
                && !stays
                && self.macs.set(readers, key, sw_if.get(), MacKind::Moves).is_ok()
            {
                self.counts.moved += 1;
                // One that was configured is now known by what was seen.
                let was = (known.origin, SwIfIndex(value.port()));
                self.count_learned(key, Some(was), Some((Origin::Learned, sw_if)));
                self.known[entry as usize] =
                    Known { origin: Origin::Learned, serial: self.serial, seen: now };
                self.note(key, sw_if, MacChange::Moved);
            }
            return Learned::Nothing;
        }
        let in_all = |limit: u32| self.count().1 >= limit;
        if !has_room || self.watch_limit.is_some_and(in_all) {
            self.counts.refused += 1;
            return Learned::Nothing;
        }
        if !self.make_room(readers, sw_if)
            || self.put(readers, key, sw_if, Origin::Learned).is_err()
        {
            self.counts.refused += 1;
            return Learned::Nothing;
        }
        self.counts.learned += 1;
        self.note(key, sw_if, MacChange::Learned);
        match id.and_then(|id| self.get(id)).is_some_and(Domain::has_room) {
            true => Learned::New,
            false => Learned::Last,
        }
    }

    fn put(
        &mut self,
        readers: &Readers,
        key: MacKey,
        port: SwIfIndex,
        origin: Origin,
    ) -> Result<(), MacError> {
        self.learning.make_ready(self.macs.numbers() + 1);
        let was = self.macs.get(key).map(|value| self.owner(value));
        let kind = match origin {
            Origin::Filter => MacKind::Filter,
            Origin::Static | Origin::Bvi => MacKind::Stays,
            Origin::Learned | Origin::Added => MacKind::Moves,
        };
        let entry = self.macs.set(readers, key, port.get(), kind)? as usize;
        let known = Known { origin, serial: self.serial, seen: clock::now() };
        if self.known.len() <= entry {
            self.known.resize(entry + 1, known);
        }
        self.known[entry] = known;
        self.count_learned(key, was, Some((origin, port)));
        Ok(())
    }

    /// Origin and port of an entry.
    fn owner(&self, value: MacValue) -> (Origin, SwIfIndex) {
        (self.known[value.entry() as usize].origin, SwIfIndex(value.port()))
    }

    /// Makes room for an address that a port has learned, if learning has filled the table: those
    /// of the port that has learned most go, unless that is this one. A flood of invented addresses
    /// leaves the other ports what they need. Some entries are left for configured ones, and until
    /// workers no longer read those that go.
    fn make_room(&mut self, readers: &Readers, sw_if: SwIfIndex) -> bool {
        let limit = self.macs.limit();
        if self.macs.len() < limit - limit / SPARE {
            return true;
        }
        let own = self.learned_on.get(&sw_if).copied().unwrap_or_default();
        let most = self.learned_on.iter().max_by_key(|(_, n)| **n);
        let Some((port, _)) = most.filter(|(_, n)| **n > own).map(|(i, n)| (*i, *n)) else {
            return false;
        };
        for _ in 0..ROOM_SCANS {
            let from = self.room_at;
            let end = self.macs.numbers().min(from.saturating_add(ROOM_SCAN));
            self.room_at = if end == self.macs.numbers() { 0 } else { end };
            let meant = |_: MacKey, of: SwIfIndex, known: &mut Known, _: u32| {
                of == port && known.origin == Origin::Learned
            };
            if self.remove_matching(readers, from..end, meant) > 0 {
                return true;
            }
        }
        false
    }

    fn count_learned(
        &mut self,
        key: MacKey,
        was: Option<(Origin, SwIfIndex)>,
        is: Option<(Origin, SwIfIndex)>,
    ) {
        let learned = |of: Option<(Origin, SwIfIndex)>| of.filter(|of| of.0 == Origin::Learned);
        let (was, is) = (learned(was), learned(is));
        if let Some((_, port)) = was {
            let n = self.learned_on.entry(port).or_default();
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.learned_on.remove(&port);
            }
        }
        if let Some((_, port)) = is {
            *self.learned_on.entry(port).or_default() += 1;
        }
        let id = self.ids.get(usize::from(key.bridge())).copied().flatten();
        if let Some(domain) = id.and_then(|id| self.domains.get_mut(&id)) {
            let (came, went) = (u32::from(is.is_some()), u32::from(was.is_some()));
            for learned in [&mut domain.learned, &mut self.learned] {
                *learned = (*learned + came).saturating_sub(went);
            }
        }
    }

    /// Adds an address to the table.
    pub(crate) fn add(
        &mut self,
        readers: &Readers,
        id: u32,
        mac: MacAddr,
        port: Option<(SwIfIndex, &str)>,
        origin: Origin,
    ) -> Result<(), L2Error> {
        let domain = self.find(id)?;
        let number = domain.number;
        if !mac.is_unicast() {
            return Err(L2Error::NotUnicast);
        }
        let port = match port {
            Some((sw_if, _)) if domain.ports.contains_key(&sw_if) => sw_if,
            Some((_, name)) => return Err(L2Error::NotAPort { name: name.into(), id }),
            None => SwIfIndex::MAX,
        };
        if origin != Origin::Bvi && self.is_bvi(id, mac) {
            return Err(L2Error::OfBvi(mac.to_string()));
        }
        self.put(readers, MacKey::new(number, mac.0), port, origin)?;
        if origin == Origin::Bvi {
            self.find(id)?.bvi_mac = Some(mac);
        }
        Ok(())
    }

    fn is_bvi(&self, id: u32, mac: MacAddr) -> bool {
        self.address(id, mac).is_some_and(|a| a.origin == Origin::Bvi)
    }

    /// Deletes an address that is configured or learned from the table.
    pub(crate) fn remove_other(
        &mut self,
        readers: &Readers,
        id: u32,
        mac: MacAddr,
    ) -> Result<(), L2Error> {
        match self.is_bvi(id, mac) {
            true => Err(L2Error::OfBvi(mac.to_string())),
            false => self.remove(readers, id, mac),
        }
    }

    /// Deletes an address from the table.
    pub(crate) fn remove(
        &mut self,
        readers: &Readers,
        id: u32,
        mac: MacAddr,
    ) -> Result<(), L2Error> {
        let key = MacKey::new(self.find(id)?.number, mac.0);
        let value = self.macs.get(key);
        let was = value.map(|value| self.owner(value));
        if !self.macs.remove(readers, key) {
            return Err(L2Error::NoAddress { id, mac: mac.to_string() });
        }
        self.count_learned(key, was, None);
        if let Some(value) = value.filter(|_| was.is_some_and(|was| was.0 == Origin::Learned)) {
            self.note(key, SwIfIndex(value.port()), MacChange::Forgotten);
        }
        Ok(())
    }

    /// Removes the entries in a range for which `meant` returns true; returns their number.
    pub(crate) fn remove_matching(
        &mut self,
        readers: &Readers,
        numbers: std::ops::Range<u32>,
        mut meant: impl FnMut(MacKey, SwIfIndex, &mut Known, u32) -> bool,
    ) -> u32 {
        let mut gone = 0;
        for entry in numbers {
            let Some(key) = self.macs.key(entry) else { continue };
            let Some(value) = self.macs.get(key) else { continue };
            let was = self.owner(value);
            let (known, origin) = (&mut self.known[entry as usize], was.0);
            if meant(key, SwIfIndex(value.port()), known, entry) && self.macs.remove(readers, key) {
                self.count_learned(key, Some(was), None);
                if origin == Origin::Learned {
                    self.note(key, SwIfIndex(value.port()), MacChange::Forgotten);
                }
                gone += 1;
            }
        }
        gone
    }

    /// Ages out learned addresses among the next `some` entries. Returns whether the scan is
    /// complete, and the number of addresses removed.
    pub(crate) fn age(&mut self, readers: &Readers, minute: Duration, some: u32) -> (bool, u32) {
        let (start, now) = (Instant::now(), clock::now());
        let end = self.macs.numbers().min(self.at.saturating_add(some));
        let learning = Arc::clone(&self.learning);
        let seen = learning.all();
        let ages: Vec<Duration> = self
            .ids
            .iter()
            .map(|id| id.and_then(|id| self.domains.get(&id)).map_or(0, |d| d.settings.mac_age))
            .map(|age| minute * u32::from(age))
            .collect();
        let gone = self.remove_matching(readers, self.at..end, |key, _, known, entry| {
            // Every worker's mark is read, since reading clears it.
            if seen.iter().fold(false, |any, s| s.take(entry) | any) {
                known.seen = now;
            }
            let age = ages.get(usize::from(key.bridge())).copied().unwrap_or_default();
            let may_go = matches!(known.origin, Origin::Learned | Origin::Added);
            may_go && !age.is_zero() && now.duration_since(known.seen) >= age
        });
        self.counts.aged += u64::from(gone);
        self.scan += start.elapsed();
        let round = end == self.macs.numbers();
        self.at = if round { 0 } else { end };
        if round {
            self.last_scan = std::mem::take(&mut self.scan);
        }
        (round, gone)
    }

    /// Returns the addresses among `some` entries from `from` on, and where to continue.
    pub fn addresses(&self, from: u32, some: u32) -> (Vec<Address>, Option<u32>) {
        let all = self.macs.numbers();
        let end = all.min(from.saturating_add(some));
        let found = (from..end).filter_map(|entry| self.by_key(self.macs.key(entry)?)).collect();
        (found, (end < all).then_some(end))
    }

    /// Returns up to `some` entries from number `from` on as the table holds them, the number, key
    /// and value of each, and the number to continue from.
    pub(crate) fn words(&self, from: u32, some: u32) -> (Vec<(u32, MacKey, u64)>, Option<u32>) {
        let all = self.macs.numbers();
        let end = all.min(from.saturating_add(some));
        let words = |entry| {
            let key = self.macs.key(entry)?;
            Some((entry, key, self.macs.get(key)?.word()))
        };
        ((from..end).filter_map(words).collect(), (end < all).then_some(end))
    }

    /// Looks up the entry of an address in a bridge domain.
    pub fn address(&self, bridge: u32, mac: MacAddr) -> Option<Address> {
        self.by_key(MacKey::new(self.get(bridge)?.number, mac.0))
    }

    /// Returns the address of a bridge domain's BVI in the table.
    pub(crate) fn bvi_address(&self, id: u32) -> Option<MacAddr> {
        self.get(id)?.bvi_mac
    }

    fn by_key(&self, key: MacKey) -> Option<Address> {
        let value = self.macs.get(key)?;
        let bridge = self.ids.get(usize::from(key.bridge())).copied().flatten()?;
        let known = self.known.get(value.entry() as usize)?;
        if self.is_being_flushed(key, SwIfIndex(value.port()), known.origin, known.serial) {
            return None;
        }
        let (origin, age) = (known.origin, clock::now().saturating_duration_since(known.seen));
        Some(Address {
            bridge,
            mac: MacAddr(key.mac()),
            port: SwIfIndex(value.port()),
            origin,
            age,
        })
    }
}
