//! Static mappings, including load-balancing ones.

use super::{
    MAX_ADDRESSES, Nat44, NatError, Order, StaticMapping, check_table, ensure, order, publish,
};
use crate::mapping::{Backend, Hosts, Mapping, TwiceNat};
use crate::worker::Sweep;
use std::net::Ipv4Addr;
use thalweg_device::{SwIfIndex, interface};
use thalweg_graph::Control;
use thalweg_wire::ip::protocol;

/// Maximum number of static mappings.
pub const MAX_MAPPINGS: usize = 1 << 20;

impl Nat44 {
    /// Records the hosts now assigned to workers by port; returns those that were formerly.
    pub(super) fn note_hosts_by_port(&mut self, by_port: Hosts) -> Hosts {
        let gone = self.by_port.difference(&by_port).copied().collect::<Vec<_>>();
        // Each address has at most one such host, so there are few.
        let room = MAX_ADDRESSES.saturating_sub(self.formerly_by_port.len());
        self.formerly_by_port.extend(gone.into_iter().take(room));
        self.by_port = by_port;
        self.formerly_by_port.clone()
    }
}

/// An external endpoint: the address or the interface that has it, port and protocol.
pub(super) type External = (Option<Ipv4Addr>, Option<SwIfIndex>, u16, u8);

fn external(m: &StaticMapping) -> External {
    let address = if m.external_if.is_some() { None } else { Some(m.mapping.external) };
    (address, m.external_if, m.mapping.external_port, m.mapping.protocol)
}

impl Nat44 {
    /// The number of the mapping with the external endpoint of another one. An identity mapping may
    /// exist in several tables.
    fn same_external(&self, other: &StaticMapping) -> Option<u64> {
        let same = |number: &&u64| {
            let one = self.mappings.get(number);
            one.is_some_and(|m| {
                !m.identity || !other.identity || m.mapping.table == other.mapping.table
            })
        };
        self.by_external.get(&external(other))?.iter().find(same).copied()
    }

    /// Returns whether a change of a mapping concerns its own keys alone.
    fn is_simple(&self, m: &StaticMapping) -> bool {
        let is_pooled = self.is_pooled(&m.mapping);
        // An address of a twice-NAT pool is answered for elsewhere so far.
        let is_twice = self.config().twice.contains(&m.mapping.external.to_bits());
        m.external_if.is_none()
            && self.sessions.is_some()
            && !is_twice
            && !(m.mapping.is_address_only() && is_pooled)
    }

    fn is_pooled(&self, m: &Mapping) -> bool {
        self.config().pooled.contains(&m.external.to_bits())
    }
}

/// Publishes a mapping that was added, replaced or removed, with nothing but what it changes: that
/// takes the same time however many there are.
fn publish_one(c: &mut Control, number: u64, old: Option<&StaticMapping>) {
    let nat = c.state::<Nat44>();
    let new = nat.borrow().mappings.get(&number).cloned();
    if ![old, new.as_ref()].into_iter().flatten().all(|m| nat.borrow().is_simple(m)) {
        return publish(c);
    }
    let mut orders = Vec::new();
    let (mut come, mut gone) = (None, None);
    let config = {
        let mut nat = nat.borrow_mut();
        let mut config = nat.config().clone();
        if let Some(StaticMapping { mapping: m, .. }) = old {
            let is_pooled = nat.is_pooled(m);
            let is_shared = nat.index.remove(number, m, is_pooled);
            if let Some(key) = m.port_key().filter(|_| !is_shared) {
                nat.reserved.remove(&key);
                orders.push((key, false));
            }
            if config.addresses.unmap(m) {
                gone = Some(m.external);
            }
        }
        if let Some(StaticMapping { mapping: m, .. }) = new {
            if let Some(key) = m.port_key()
                && nat.reserved.insert(key)
            {
                orders.push((key, true));
            }
            if config.addresses.map(&m) {
                come = Some(m.external);
            }
            let is_pooled = nat.is_pooled(&m);
            nat.index.add(number, m, is_pooled);
        }
        config.mappings = nat.index.all().clone();
        config
    };
    for ((address, protocol, port), keep) in orders {
        order(c, |_| Order::Reserve { address, protocol, port, keep });
    }
    nat.borrow_mut().writer.publish(c.domain(), config);
    if gone != come {
        gone.into_iter().for_each(|address| thalweg_feat_arp::answer_for_one(c, address, false));
        come.into_iter().for_each(|address| thalweg_feat_arp::answer_for_one(c, address, true));
    }
}

/// Longest affinity of a load-balancing mapping, in seconds: one day.
pub const MAX_AFFINITY: u32 = 86_400;

/// Checks that a mapping is one that the commands can express, and therefore a document.
fn check(new: &StaticMapping) -> Result<(), NatError> {
    let invalid = |text: String| Err(NatError::Invalid(text));
    let m = &new.mapping;
    let has_ports = m.protocol != 0 && m.protocol != protocol::ICMP;
    let plain = m.twice == TwiceNat::Never && !m.out2in_only && m.exact.is_none();
    if new.identity && !plain {
        return invalid("an identity mapping takes no flags: nothing of it is translated".into());
    }
    if m.protocol == 0 && m.twice != TwiceNat::Never {
        return invalid("twice-nat requires a protocol and ports".into());
    }
    if m.exact.is_some() && m.twice == TwiceNat::Never {
        return invalid("`exact` requires twice-nat or self-twice-nat".into());
    }
    if m.affinity > MAX_AFFINITY || (m.affinity != 0 && m.backends.is_empty()) {
        let text = format!("the affinity must be up to {MAX_AFFINITY} s, not {}", m.affinity);
        return invalid(text);
    }
    check_tag(&new.tag)?;
    let has_local = m.backends.is_empty() && !new.identity;
    if has_ports && (m.external_port == 0 || has_local && m.local_port == 0) {
        return invalid("ports must be between 1 and 65535, not 0".into());
    }
    if !m.backends.is_empty() && !has_ports {
        return invalid("load balancing requires TCP or UDP and a port".into());
    }
    m.backends.iter().try_for_each(check_backend)
}

/// Checks that a command line and a document can say a tag.
fn check_tag(tag: &str) -> Result<(), NatError> {
    let odd = |c: char| c.is_control() || ['\'', '"'].contains(&c);
    match tag.len() < 64 && !tag.contains(odd) {
        true => Ok(()),
        false => {
            let text = "a tag has up to 63 bytes, without quotes and control characters";
            Err(NatError::Invalid(text.into()))
        }
    }
}

fn check_backend(b: &Backend) -> Result<(), NatError> {
    check_table(b.table)?;
    match (b.port, b.share) {
        (0, _) => Err(NatError::Invalid("ports must be between 1 and 65535, not 0".into())),
        (_, 0) => Err(NatError::Invalid("the share must be between 1 and 255, not 0".into())),
        _ => Ok(()),
    }
}

/// Adds a static mapping.
///
/// # Errors
/// [`NatError`].
pub fn add_mapping(c: &mut Control, new: StaticMapping) -> Result<(), NatError> {
    check(&new)?;
    ensure(c)?;
    check_table(new.mapping.table)?;
    if let Some(sw_if) = new.external_if {
        interface::view(c, sw_if)?;
    }
    let nat = c.state::<Nat44>();
    let number = {
        let mut nat = nat.borrow_mut();
        if nat.same_external(&new).is_some() {
            return Err(NatError::Exists("a mapping of this address and port".into()));
        }
        if nat.mappings.len() >= MAX_MAPPINGS {
            let text = format!("the limit of {MAX_MAPPINGS} static mappings is reached");
            return Err(NatError::Invalid(text));
        }
        let number = nat.mappings.last_key_value().map_or(0, |(last, _)| last + 1);
        nat.by_external.entry(external(&new)).or_default().push(number);
        nat.mappings.insert(number, new);
        number
    };
    publish_one(c, number, None);
    Ok(())
}

/// Deletes the static mapping with the external endpoint of `gone`, and its sessions.
///
/// # Errors
/// [`NatError::Missing`].
pub fn del_mapping(c: &mut Control, gone: &StaticMapping) -> Result<(), NatError> {
    let nat = c.state::<Nat44>();
    let (number, old) = {
        let mut nat = nat.borrow_mut();
        let missing = || NatError::Missing("mapping of this address and port".into());
        let number = nat.same_external(gone).ok_or_else(missing)?;
        let old = nat.mappings.remove(&number).ok_or_else(missing)?;
        let key = external(&old);
        if let Some(all) = nat.by_external.get_mut(&key) {
            all.retain(|n| *n != number);
            if all.is_empty() {
                nat.by_external.remove(&key);
            }
        }
        (number, old)
    };
    publish_one(c, number, Some(&old));
    order(c, |_| Order::Sweep(Sweep::Mappings));
    Ok(())
}

/// Adds a back end to a load-balancing mapping, or deletes it with its sessions.
///
/// # Errors
/// [`NatError`].
pub fn set_backend(
    c: &mut Control,
    (external, port, protocol): (Ipv4Addr, u16, u8),
    backend: Backend,
    add: bool,
) -> Result<(), NatError> {
    if add {
        check_backend(&backend)?;
    }
    let nat = c.state::<Nat44>();
    let (number, old) = {
        let mut nat = nat.borrow_mut();
        let numbers = nat.by_external.get(&(Some(external), None, port, protocol)).cloned();
        let has_backends =
            |number: &u64| nat.mappings.get(number).is_some_and(|m| !m.mapping.backends.is_empty());
        let number = numbers.unwrap_or_default().into_iter().find(has_backends);
        let missing = || NatError::Missing(format!("load-balancing mapping of {external}:{port}"));
        let number = number.ok_or_else(missing)?;
        let mapping = nat.mappings.get_mut(&number).ok_or_else(missing)?;
        let old = mapping.clone();
        let all = &mut mapping.mapping.backends;
        let key = |b: &Backend| (b.address, b.port, b.table);
        let what = || format!("back end {}:{}", backend.address, backend.port);
        match (all.iter().position(|b| key(b) == key(&backend)), add) {
            (Some(_), true) => return Err(NatError::Exists(what())),
            (None, false) => return Err(NatError::Missing(what())),
            (None, true) => all.push(backend),
            (Some(_), false) if all.len() == 1 => {
                return Err(NatError::Invalid(format!(
                    "{} is the last one; delete the mapping instead",
                    what()
                )));
            }
            (Some(at), false) => drop(all.remove(at)),
        }
        (number, old)
    };
    publish_one(c, number, Some(&old));
    if !add {
        order(c, |_| Order::Sweep(Sweep::Mappings));
    }
    Ok(())
}
