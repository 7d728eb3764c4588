//! Contents of the router's advertisements, by interface.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};
use thalweg_api::Retval;
use thalweg_cli::CliError;
use thalweg_device::{DeviceError, InterfaceEvent, InterfaceView, SwIfIndex, interface};
use thalweg_feat_ip::Ip6;
use thalweg_feat_nd as nd;
use thalweg_graph::{Control, clock};

/// Most prefixes of an interface.
pub const MAX_PREFIXES: usize = 16;
/// Most routes, servers and search domains of an interface.
pub const MAX_OTHERS: usize = 8;
/// Longest lifetime of a default router in seconds (RFC 4861 section 6.2.1).
pub const MAX_LIFETIME: u16 = 9000;
/// Longest interval between advertisements in seconds, which VPP does not exceed either.
pub const MAX_INTERVAL: u16 = 1800;
/// Most advertisements at first, and the longest time between them in seconds.
pub const MAX_INITIAL: (u8, u8) = (3, 16);

/// Lifetime of what is advertised, in seconds; all ones: for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetimes {
    /// Seconds for which the prefix is valid.
    pub valid: u32,
    /// Addresses from it are preferred, no longer than it is valid.
    pub preferred: u32,
}

impl Default for Lifetimes {
    /// 30 days and 7 days (RFC 4861 section 6.2.1).
    fn default() -> Self {
        Lifetimes { valid: 2_592_000, preferred: 604_800 }
    }
}

/// A prefix that is advertised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// The prefix as it was given; bits beyond the length are sent as they are.
    pub ip: Ipv6Addr,
    /// Its length, 0 to 128.
    pub len: u8,
    /// Its lifetimes.
    pub lifetimes: Lifetimes,
    /// Hosts may make addresses from it.
    pub autonomous: bool,
    /// Its addresses are on the link.
    pub on_link: bool,
    /// True if advertisements contain the prefix.
    pub advertised: bool,
    /// The lifetimes end at this time, rather than counting from each advertisement on.
    pub since: Option<Instant>,
}

impl Prefix {
    /// A prefix with default settings.
    pub fn new(ip: Ipv6Addr, len: u8) -> Prefix {
        Prefix {
            ip,
            len,
            lifetimes: Lifetimes::default(),
            autonomous: true,
            on_link: true,
            advertised: true,
            since: None,
        }
    }

    /// Returns what is left of the lifetimes.
    pub fn left(&self, now: Instant) -> Lifetimes {
        let gone = self.since.map_or(0, |since| (now - since).as_secs());
        let left = |all: u32| match all {
            u32::MAX => u32::MAX,
            all => u32::try_from(u64::from(all).saturating_sub(gone)).unwrap_or(0),
        };
        Lifetimes { valid: left(self.lifetimes.valid), preferred: left(self.lifetimes.preferred) }
    }
}

/// Preference among default routers and routes (RFC 4191 section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Preference {
    /// Preference below others.
    Low,
    /// Equal to others.
    #[default]
    Medium,
    /// Preference above others.
    High,
}

impl Preference {
    /// All words for it.
    pub const WORDS: &'static [&'static str] = &["low", "medium", "high"];

    /// Returns the preference with a word.
    pub fn from_word(word: &str) -> Option<Preference> {
        [Preference::Low, Preference::Medium, Preference::High]
            .into_iter()
            .find(|p| p.word() == word)
    }

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Returns its two bits, where they are in the flags of an advertisement and of a route.
    pub fn bits(self) -> u8 {
        match self {
            Preference::Low => 0x18,
            Preference::Medium => 0,
            Preference::High => 0x08,
        }
    }

    /// Returns the preference that a received byte has; the reserved value is as medium.
    pub fn of(bits: u8) -> Preference {
        match bits & 0x18 {
            0x18 => Preference::Low,
            0x08 => Preference::High,
            _ => Preference::Medium,
        }
    }
}

/// A route that hosts may use through the router (RFC 4191 section 2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Destination.
    pub ip: Ipv6Addr,
    /// Its length, 0 to 128.
    pub len: u8,
    /// Lifetime in seconds; all ones: for ever.
    pub lifetime: u32,
    /// Preference among routers.
    pub preference: Preference,
}

/// Advertisements of an interface, with the defaults of VPP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Advertisements are sent.
    pub send: bool,
    /// Hosts get addresses by DHCPv6.
    pub managed: bool,
    /// Hosts get other settings by DHCPv6.
    pub other: bool,
    /// The router's MAC address is included.
    pub link_layer: bool,
    /// Solicitations of hosts with an address are answered to them alone.
    pub unicast: bool,
    /// Advertisements say that the router stops: their lifetime is 0.
    pub cease: bool,
    /// Lifetime as a default router in seconds, 0 for none.
    pub lifetime: u16,
    /// Longest and shortest time between advertisements in seconds.
    pub interval: (u16, u16),
    /// Number of advertisements at first, and the longest time between them in seconds.
    pub initial: (u8, u8),
    /// Hop limit for hosts, 0 for unspecified.
    pub hop_limit: u8,
    /// Milliseconds that hosts take a neighbour to be reachable, 0 for unspecified.
    pub reachable_ms: u32,
    /// Milliseconds between hosts' solicitations, 0 for unspecified.
    pub retransmit_ms: u32,
    /// Preference among default routers.
    pub preference: Preference,
    /// Prefixes in the order in which they were given.
    pub prefixes: Vec<Prefix>,
    /// Routes in the order in which they were given.
    pub routes: Vec<Route>,
    /// Addresses of DNS servers, with a lifetime in seconds for all of them (RFC 8106).
    pub servers: Vec<Ipv6Addr>,
    /// DNS search domains.
    pub domains: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            send: false,
            managed: false,
            other: false,
            link_layer: true,
            unicast: false,
            cease: false,
            lifetime: 600,
            interval: (200, 150),
            initial: (3, 16),
            hop_limit: 64,
            reachable_ms: 0,
            retransmit_ms: 0,
            preference: Preference::Medium,
            prefixes: Vec::new(),
            routes: Vec::new(),
            servers: Vec::new(),
            domains: Vec::new(),
        }
    }
}

/// Reason why a setting is refused.
#[derive(Debug, thiserror::Error)]
pub enum RaError {
    /// The interface does not speak IPv6.
    #[error("IPv6 is not enabled on `{0}`; an address or `enable ip6 interface {0}' enables it")]
    NotEnabled(String),
    /// The link has no groups to advertise to. VPP's words.
    #[error("Interface must be of ethernet type")]
    NotEthernet,
    /// A number is out of its range.
    #[error("{0}")]
    Range(&'static str),
    /// The prefix does not exist.
    #[error("`{interface}` does not advertise {what}")]
    Unknown {
        /// Name of the interface.
        interface: String,
        /// Name of the missing part.
        what: String,
        /// The prefix is there with another length.
        other_length: bool,
    },
    /// The list is full.
    #[error("no room for another {0}: the limit is {1}")]
    Full(&'static str, usize),
    /// Hosts cannot use the value.
    #[error("{0} cannot be advertised: {1}")]
    Unusable(String, &'static str),
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl RaError {
    fn code(&self) -> i32 {
        match self {
            RaError::NotEnabled(_) => -62,
            RaError::NotEthernet => -126,
            RaError::Unknown { other_length: true, .. } => -8,
            RaError::Range(_) | RaError::Unusable(..) | RaError::Unknown { .. } => -7,
            RaError::Full(..) => -162,
            RaError::Device(e) => e.code(),
        }
    }
}

impl From<RaError> for CliError {
    fn from(e: RaError) -> CliError {
        let code = e.code();
        CliError::with_code(e, code)
    }
}

impl From<RaError> for Retval {
    fn from(e: RaError) -> Retval {
        Retval(e.code()).because(e)
    }
}

/// Times when an interface advertises, and what it has counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Time when the next advertisement to all is due; `None` while none is sent.
    pub(crate) next: Option<Instant>,
    /// Advertisements to all since the last change.
    pub(crate) initial_sent: u8,
    /// The last one, and the last one to all.
    pub(crate) last: Option<Instant>,
    pub(crate) last_to_all: Option<Instant>,
    /// Solicitations are answered by the next advertisement.
    pub(crate) asked: bool,
    /// Hosts know the router, and have to learn that it stops.
    pub(crate) known: bool,
    pub(crate) sent: u32,
    pub(crate) solicited: u32,
    pub(crate) dropped: u32,
    /// Time since which IPv6 is off on the interface.
    pub(crate) off_since: Option<Instant>,
}

/// An interface with settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Port {
    pub(crate) config: Config,
    pub(crate) progress: Progress,
}

/// State on the main thread.
#[derive(Default)]
pub(crate) struct Ports(pub(crate) BTreeMap<SwIfIndex, Port>);

pub(crate) fn init(c: &mut Control) {
    c.insert(Ports::default());
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::Deleted(i) => _ = c.state::<Ports>().borrow_mut().0.remove(&i),
        InterfaceEvent::State(i) => crate::advertise::restart(c, i),
        _ => {}
    });
}

/// Time to keep the settings of an interface while IPv6 is off: an address is often replaced by
/// another one.
const KEPT: Duration = Duration::from_secs(2);

/// Forgets the settings of interfaces that do not speak IPv6 any more.
pub(crate) fn forget_silent(c: &mut Control) {
    let now = clock::now();
    let gone: Vec<SwIfIndex> = {
        let (ip6, ports) = (c.state::<Ip6>(), c.state::<Ports>());
        let (ip6, mut ports) = (ip6.borrow(), ports.borrow_mut());
        for (sw_if, port) in &mut ports.0 {
            let since = &mut port.progress.off_since;
            *since = (!ip6.is_enabled(*sw_if)).then(|| since.unwrap_or(now));
        }
        let is_gone = |port: &Port| port.progress.off_since.is_some_and(|at| now - at >= KEPT);
        ports.0.iter().filter(|(_, port)| is_gone(port)).map(|(i, _)| *i).collect()
    };
    for sw_if in gone {
        c.state::<Ports>().borrow_mut().0.remove(&sw_if);
        nd::set_router(c, sw_if, false);
    }
}

/// Returns an interface that can have settings.
pub(crate) fn usable(c: &Control, sw_if: SwIfIndex) -> Result<InterfaceView, RaError> {
    let view = interface::view(c, sw_if)?;
    if !c.state::<Ip6>().borrow().is_enabled(sw_if) {
        return Err(RaError::NotEnabled(view.name));
    }
    if !view.ethernet {
        return Err(RaError::NotEthernet);
    }
    Ok(view)
}

/// Returns the settings of an interface.
pub fn get(c: &Control, sw_if: SwIfIndex) -> Config {
    let ports = c.state::<Ports>();
    let ports = ports.borrow();
    ports.0.get(&sw_if).map(|port| port.config.clone()).unwrap_or_default()
}

/// Returns the interfaces that speak IPv6 and have other settings than the defaults.
pub fn all(c: &Control) -> Vec<(SwIfIndex, Config)> {
    let (ip6, ports) = (c.state::<Ip6>(), c.state::<Ports>());
    let (ip6, ports) = (ip6.borrow(), ports.borrow());
    let set =
        ports.0.iter().filter(|(i, port)| ip6.is_enabled(**i) && port.config != Config::default());
    set.map(|(i, port)| (*i, port.config.clone())).collect()
}

fn check(config: &Config) -> Result<(), RaError> {
    let ((longest, shortest), (count, apart)) = (config.interval, config.initial);
    if !(4..=MAX_INTERVAL).contains(&longest) {
        return Err(RaError::Range("the longest interval is 4 to 1800 seconds"));
    }
    if shortest < 3 || u32::from(shortest) * 4 > u32::from(longest) * 3 {
        let text = "the shortest interval is at least 3 seconds, and at most 3/4 of the longest";
        return Err(RaError::Range(text));
    }
    if config.lifetime > MAX_LIFETIME {
        return Err(RaError::Range("the lifetime is at most 9000 seconds"));
    }
    if config.lifetime != 0 && config.lifetime < longest {
        let text = "the lifetime is at least the longest interval, or 0 for no default router";
        return Err(RaError::Range(text));
    }
    if count > MAX_INITIAL.0 || !(1..=MAX_INITIAL.1).contains(&apart) {
        return Err(RaError::Range("at first up to 3 advertisements, 1 to 16 seconds apart"));
    }
    if config.reachable_ms > 3_600_000 {
        return Err(RaError::Range("the reachable time is at most 3600000 milliseconds"));
    }
    Ok(())
}

/// Changes the settings of an interface, and begins again to advertise them.
///
/// # Errors
/// [`RaError`]; nothing has changed then.
pub fn change(
    c: &mut Control,
    sw_if: SwIfIndex,
    change: impl FnOnce(&mut Config) -> Result<(), RaError>,
) -> Result<(), RaError> {
    usable(c, sw_if)?;
    let mut config = get(c, sw_if);
    change(&mut config)?;
    check(&config)?;
    c.state::<Ports>().borrow_mut().0.entry(sw_if).or_default().config = config;
    crate::advertise::restart(c, sw_if);
    Ok(())
}

/// Adds a prefix, or changes it.
///
/// # Errors
/// [`RaError`]; nothing has changed then.
pub fn add_prefix(c: &mut Control, sw_if: SwIfIndex, prefix: Prefix) -> Result<(), RaError> {
    let text = format!("{}/{}", prefix.ip, prefix.len);
    if prefix.ip.is_unicast_link_local() || prefix.ip.is_multicast() {
        return Err(RaError::Unusable(text, "it is a link-local or multicast prefix"));
    }
    if prefix.lifetimes.preferred > prefix.lifetimes.valid {
        return Err(RaError::Range("the preferred lifetime is at most the valid lifetime"));
    }
    change(c, sw_if, |config| {
        let is_full = config.prefixes.len() >= MAX_PREFIXES;
        match config.prefixes.iter_mut().find(|p| p.ip == prefix.ip) {
            // One address has one length.
            Some(old) if old.len != prefix.len => {
                let text = "another length of the same prefix is advertised; remove it first";
                return Err(RaError::Range(text));
            }
            Some(old) => *old = prefix,
            None if is_full => return Err(RaError::Full("prefix", MAX_PREFIXES)),
            None => config.prefixes.push(prefix),
        }
        Ok(())
    })
}

/// Removes a prefix.
///
/// # Errors
/// [`RaError::Unknown`].
pub fn remove_prefix(
    c: &mut Control,
    sw_if: SwIfIndex,
    ip: Ipv6Addr,
    len: u8,
) -> Result<(), RaError> {
    let interface = c.interface_name(sw_if);
    change(c, sw_if, |config| {
        let before = config.prefixes.len();
        config.prefixes.retain(|p| (p.ip, p.len) != (ip, len));
        if config.prefixes.len() < before {
            return Ok(());
        }
        let other_length = config.prefixes.iter().any(|p| p.ip == ip);
        Err(RaError::Unknown { interface, what: format!("{ip}/{len}"), other_length })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_sound() {
        assert!(check(&Config::default()).is_ok());
        for (interval, lifetime, sound) in [
            ((200, 150), 200, true),
            ((200, 151), 200, false),
            ((200, 150), 199, false),
            ((200, 150), 0, true),
            ((4, 3), 9000, true),
            ((4, 3), 9001, false),
            ((3, 3), 9000, false),
        ] {
            let config = Config { interval, lifetime, ..Config::default() };
            assert_eq!(check(&config).is_ok(), sound, "{interval:?} {lifetime}");
        }
    }

    #[test]
    fn lifetimes_end_when_they_are_to() {
        let now = clock::now();
        let mut prefix = Prefix::new(Ipv6Addr::LOCALHOST, 64);
        assert_eq!(prefix.left(now), Lifetimes::default());
        prefix.since = Some(now);
        prefix.lifetimes = Lifetimes { valid: u32::MAX, preferred: 100 };
        let left = |secs| prefix.left(now + Duration::from_secs(secs));
        assert_eq!(left(30), Lifetimes { valid: u32::MAX, preferred: 70 });
        assert_eq!(left(300).preferred, 0);
    }

    #[test]
    fn preferences_are_read_as_they_are_written() {
        for word in Preference::WORDS {
            let p = Preference::from_word(word).unwrap();
            assert_eq!((p.word(), Preference::of(p.bits())), (*word, p));
        }
        assert_eq!(Preference::of(0x10), Preference::Medium);
    }
}
