//! Duplicate address detection (RFC 4862 section 5.4): while it is on, addresses of interfaces are
//! tested before they are used. One that another host has is not used until it is set again.

use crate::link_local;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};
use thalweg_config::declare::{Doc, Draft, Dump, Item, Kind, Rule, Section, rank};
use thalweg_device::{InterfaceEvent, InterfaceView, SwIfIndex, interface};
use thalweg_feat_ip::{AddressesChanged, Ip6, Version, refresh_routes};
use thalweg_feat_nd::{self as nd, AddressUsed};
use thalweg_graph::control::TimerId;
use thalweg_graph::{Control, clock};

/// The state of an address (RFC 4862, section 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The address is being tested.
    Tentative,
    /// The address is used.
    Preferred,
    /// Another host has it.
    Duplicate,
}

impl State {
    /// Returns VPP's word for it.
    pub fn word(self) -> &'static str {
        match self {
            State::Tentative => "TENTATIVE",
            State::Preferred => "PREFERRED",
            State::Duplicate => "DUPLICATE",
        }
    }
}

/// Way in which addresses are tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Solicitations sent for each, 1 to 10.
    pub transmits: u8,
    /// Time between them, and after the last one.
    pub delay: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config { transmits: 1, delay: Duration::from_secs(1) }
    }
}

/// Shortest and longest time between solicitations.
pub const DELAYS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(10);
/// Most solicitations.
pub const MAX_TRANSMITS: u8 = 10;

/// The event that an address is in another state, or was asked for once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The interface.
    pub sw_if: SwIfIndex,
    /// The address.
    pub ip: Ipv6Addr,
    /// Its state.
    pub state: State,
    /// Solicitations sent so far, and in all.
    pub sent: (u8, u8),
}

/// An address.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its state.
    pub state: State,
    /// Solicitations sent.
    pub sent: u8,
    /// Time when the next one is due, or the test ends.
    pub next: Instant,
}

/// State on the main thread.
#[derive(Default)]
struct Dad {
    config: Option<Config>,
    /// Entries by interface and address, those of interfaces that are up.
    entries: BTreeMap<Key, Entry>,
    /// Addresses that are being tested, by the time of the next step.
    due: BTreeSet<(Instant, Key)>,
    timer: Option<TimerId>,
}

/// An interface and an address of it.
type Key = (SwIfIndex, Ipv6Addr);

impl Dad {
    /// Sets what is known of an address.
    fn set(&mut self, key: Key, entry: Entry) {
        self.remove(key);
        self.entries.insert(key, entry);
        if entry.state == State::Tentative {
            self.due.insert((entry.next, key));
        }
    }

    fn remove(&mut self, key: Key) {
        if let Some(old) = self.entries.remove(&key) {
            self.due.remove(&(old.next, key));
        }
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.due.clear();
    }

    /// Addresses of an interface.
    fn of(&self, sw_if: SwIfIndex) -> impl Iterator<Item = (Ipv6Addr, Entry)> + '_ {
        let all = (sw_if, Ipv6Addr::UNSPECIFIED)..=(sw_if, Ipv6Addr::from_bits(u128::MAX));
        self.entries.range(all).map(|((_, ip), entry)| (*ip, *entry))
    }

    /// Removes the addresses of an interface but for some.
    fn keep(&mut self, sw_if: SwIfIndex, which: impl Fn(&Ipv6Addr) -> bool) {
        let gone: Vec<Ipv6Addr> =
            self.of(sw_if).map(|(ip, _)| ip).filter(|ip| !which(ip)).collect();
        gone.into_iter().for_each(|ip| self.remove((sw_if, ip)));
    }

    /// Takes an address whose next step is due, with what is known of it.
    fn take_due(&mut self, now: Instant) -> Option<(Key, Entry)> {
        let (_, key) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        let entry = *self.entries.get(&key)?;
        self.remove(key);
        Some((key, entry))
    }
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Dad::default());
    c.subscribe(|c, change: &AddressesChanged| {
        if change.version == Version::V6 {
            follow(c, change.sw_if);
        }
    });
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::State(i) => follow(c, i),
        InterfaceEvent::Deleted(i) => {
            c.state::<Dad>().borrow_mut().keep(i, |_| false);
        }
        _ => {}
    });
    c.subscribe(|c, used: &AddressUsed| collided(c, *used));
}

/// Returns how addresses are tested; `None` if they are not.
pub fn config(c: &Control) -> Option<Config> {
    c.state::<Dad>().borrow().config
}

/// Returns all addresses that are being tested or that others have, in order.
pub fn list(c: &Control) -> Vec<((SwIfIndex, Ipv6Addr), Entry)> {
    let state = c.state::<Dad>();
    let state = state.borrow();
    let all = state.entries.iter().filter(|(_, e)| e.state != State::Preferred);
    all.map(|(key, e)| (*key, *e)).collect()
}

/// Returns whether an address of an interface may not be used.
pub(crate) fn holds(c: &Control, sw_if: SwIfIndex, ip: Ipv6Addr) -> bool {
    let state = c.state::<Dad>();
    let state = state.borrow();
    state.config.is_some()
        && match state.entries.get(&(sw_if, ip)) {
            Some(entry) => entry.state != State::Preferred,
            // Its test is about to begin.
            None => interface::view(c, sw_if).is_ok_and(|view| view.ethernet),
        }
}

/// Returns whether another host has an address of an interface.
pub(crate) fn is_duplicate(c: &Control, sw_if: SwIfIndex, ip: Ipv6Addr) -> bool {
    let state = c.state::<Dad>();
    let state = state.borrow();
    state.entries.get(&(sw_if, ip)).is_some_and(|entry| entry.state == State::Duplicate)
}

/// Tests addresses from now on, or no more. Addresses in use stay so.
pub fn set(c: &mut Control, config: Option<Config>) {
    let ports: Vec<SwIfIndex> = link_local::all(c).into_iter().map(|(i, _)| i).collect();
    let state = c.state::<Dad>();
    let was = std::mem::replace(&mut state.borrow_mut().config, config);
    match (was, config) {
        (None, Some(_)) => {
            for sw_if in ports {
                let (now, own) = (clock::now(), own(c, sw_if));
                let entry = Entry { state: State::Preferred, sent: 0, next: now };
                let mut state = state.borrow_mut();
                own.into_iter().for_each(|ip| state.set((sw_if, ip), entry));
            }
        }
        (Some(_), None) => {
            state.borrow_mut().clear();
            ports.into_iter().for_each(|sw_if| apply(c, sw_if));
        }
        _ => {}
    }
}

/// Returns the addresses of an interface that is up, on a link with groups.
fn own(c: &Control, sw_if: SwIfIndex) -> BTreeSet<Ipv6Addr> {
    let is_up = interface::view(c, sw_if).is_ok_and(|view| view.is_up() && view.ethernet);
    let Some(link) = link_local::of(c, sw_if).filter(|_| is_up) else { return BTreeSet::new() };
    let ip6 = c.state::<Ip6>();
    let ip6 = ip6.borrow();
    let all = ip6.addresses(sw_if).iter().map(|a| Ipv6Addr::from_bits(a.addr));
    all.chain([link]).collect()
}

/// Follows an interface's addresses and state.
pub(crate) fn follow(c: &mut Control, sw_if: SwIfIndex) {
    let Some(config) = config(c) else { return };
    let (now, own) = (clock::now(), own(c, sw_if));
    let new: Vec<Ipv6Addr> = {
        let state = c.state::<Dad>();
        let mut state = state.borrow_mut();
        state.keep(sw_if, |ip| own.contains(ip));
        let new = own.into_iter().filter(|ip| !state.entries.contains_key(&(sw_if, *ip)));
        let new: Vec<Ipv6Addr> = new.collect();
        for ip in &new {
            state.set((sw_if, *ip), Entry { state: State::Tentative, sent: 0, next: now });
        }
        new
    };
    publish(c, sw_if);
    for ip in &new {
        let sent = (0, config.transmits);
        c.publish(Changed { sw_if, ip: *ip, state: State::Tentative, sent });
    }
    if !new.is_empty() {
        // Workers know the addresses when the first solicitation is sent.
        arm(c, Duration::ZERO);
    }
}

/// Notifies workers of addresses that may not be used.
fn publish(c: &mut Control, sw_if: SwIfIndex) {
    let all = |which: State| -> Vec<Ipv6Addr> {
        let state = c.state::<Dad>();
        let state = state.borrow();
        state.of(sw_if).filter(|(_, e)| e.state == which).map(|(ip, _)| ip).collect()
    };
    let (tentative, duplicate) = (all(State::Tentative), all(State::Duplicate));
    nd::set_unusable(c, sw_if, &tentative, &duplicate);
}

/// Lets an interface use the addresses that it may use, and no others.
fn apply(c: &mut Control, sw_if: SwIfIndex) {
    publish(c, sw_if);
    link_local::update(c, sw_if);
    if let Err(e) = refresh_routes::<u128>(c, sw_if) {
        tracing::error!("{}: {e}", c.interface_name(sw_if));
    }
}

fn arm(c: &mut Control, delay: Duration) {
    let state = c.state::<Dad>();
    if let Some(timer) = state.borrow_mut().timer.take() {
        c.cancel(timer);
    }
    let timer = c.after(delay, |c| {
        c.state::<Dad>().borrow_mut().timer = None;
        tick(c);
    });
    state.borrow_mut().timer = Some(timer);
}

/// Asks once more for addresses for which it is due, and ends tests.
fn tick(c: &mut Control) {
    let Some(config) = config(c) else { return };
    let now = clock::now();
    let (mut asked, mut ended) = (Vec::new(), BTreeSet::new());
    let mut changes = Vec::new();
    let next = {
        let state = c.state::<Dad>();
        let mut state = state.borrow_mut();
        while let Some(((sw_if, ip), mut e)) = state.take_due(now) {
            if e.sent < config.transmits {
                asked.push((sw_if, ip));
                e.sent += 1;
                e.next = now + config.delay;
            } else {
                e.state = State::Preferred;
                ended.insert(sw_if);
            }
            state.set((sw_if, ip), e);
            let sent = (e.sent, config.transmits);
            changes.push(Changed { sw_if, ip, state: e.state, sent });
        }
        state.due.first().map(|(at, _)| *at)
    };
    for (sw_if, ip) in asked {
        if let Some(view) = interface::view(c, sw_if).ok().filter(InterfaceView::is_up) {
            nd::probe(c, &view, ip);
        }
    }
    ended.into_iter().for_each(|sw_if| apply(c, sw_if));
    changes.into_iter().for_each(|change| c.publish(change));
    if let Some(next) = next {
        arm(c, next.saturating_duration_since(now));
    }
}

/// Another host has an address, or tests it at the same time.
fn collided(c: &mut Control, used: AddressUsed) {
    let AddressUsed { sw_if, ip, mac } = used;
    let Some(config) = config(c) else { return };
    let sent = {
        let state = c.state::<Dad>();
        let mut state = state.borrow_mut();
        let entry = state.entries.get(&(sw_if, ip)).copied();
        let Some(entry) = entry.filter(|e| e.state == State::Tentative) else { return };
        state.set((sw_if, ip), Entry { state: State::Duplicate, ..entry });
        entry.sent
    };
    let name = c.interface_name(sw_if);
    tracing::warn!("{name}: {ip} is not used: {mac} has it");
    apply(c, sw_if);
    c.publish(Changed { sw_if, ip, state: State::Duplicate, sent: (sent, config.transmits) });
}

/// Section of duplicate address detection.
pub(crate) struct DadSettings;

pub(crate) static SETTINGS: DadSettings = DadSettings;

const RULES: &[Rule] = &[
    Rule::new("thalweg.ip6-dad", Kind::Keys),
    Rule::new("thalweg.ip6-dad.enabled", Kind::Bool),
    Rule::new("thalweg.ip6-dad.transmits", Kind::Int(1, MAX_TRANSMITS as i128)),
    Rule::new("thalweg.ip6-dad.delay-ms", Kind::Int(100, 10_000)),
];

impl Section<Control> for DadSettings {
    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let (Some(config), usual) = (config(c), Config::default()) else { return };
        let path = |key| ["thalweg", "ip6-dad", key];
        out.put(&path("enabled"), true);
        if config.transmits != usual.transmits {
            out.put(&path("transmits"), u32::from(config.transmits));
        }
        if config.delay != usual.delay {
            out.put(&path("delay-ms"), config.delay.as_millis() as u64);
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        let at = |key| doc.at(&["thalweg", "ip6-dad", key]);
        let Some(found) = at("enabled").filter(|f| f.node.bool() == Some(true)) else { return };
        let number =
            |key: &'static str, usual: u32| at(key).and_then(|f| f.node.u32()).unwrap_or(usual);
        let (transmits, ms) = (number("transmits", 1), number("delay-ms", 1000));
        let (whole, part) = (ms / 1000, ms % 1000);
        let set = format!("set ip6 dad enable transmits {transmits} delay {whole}.{part:03}");
        // The item comes before addresses.
        let item = Item::new(rank::BEFORE_CREATE, "ip6-dad", found.path, set);
        out.add(item.unset("set ip6 dad disable"));
    }
}
