//! Static mappings, including load-balancing ones.

use super::pools::borrow_for_mapping;
use super::publish::{Change, publish_change};
use super::{MAX_ADDRESSES, Nat44, NatError, Order, StaticMapping, check_table, ensure, order};
use crate::config::Config;
use crate::mapping::{Backend, TwiceNat};
use crate::worker::Sweep;
use std::net::Ipv4Addr;
use thalweg_device::{SwIfIndex, interface};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_wire::ip::protocol;

/// Maximum number of static mappings.
pub const MAX_MAPPINGS: usize = 1 << 20;

/// An external endpoint: the address or the interface that has it, port and protocol.
type External = (Option<Ipv4Addr>, Option<SwIfIndex>, u16, u8);

/// An external endpoint, with the table of an identity mapping: there may be one for each table.
pub(super) type Claim = (External, Option<TableId>);

fn claim(m: &StaticMapping) -> Claim {
    let address = if m.external_if.is_some() { None } else { Some(m.mapping.external) };
    let external = (address, m.external_if, m.mapping.external_port, m.mapping.protocol);
    (external, m.identity.then_some(m.mapping.table))
}

impl Nat44 {
    /// Notes hosts that were assigned to workers by port and no longer are.
    pub(super) fn note_hosts_by_port(&mut self, before: &[(u32, u32)]) {
        for host in before {
            // Each address has at most one such host, so there are few.
            if !self.index.is_by_port(*host) && self.formerly_by_port.len() < MAX_ADDRESSES {
                self.formerly_by_port.insert(*host);
            }
        }
    }

    /// The number of the mapping with the external endpoint of another one. An identity mapping may
    /// exist in several tables.
    fn same_external(&self, other: &StaticMapping) -> Option<u64> {
        let (external, table) = claim(other);
        if table.is_some() {
            let all = [None, table].map(|table| self.by_external.get(&(external, table)));
            return all.into_iter().flatten().copied().next();
        }
        let all = (external, None)..=(external, Some(TableId(u32::MAX)));
        self.by_external.range(all).map(|(_, number)| *number).min()
    }

    /// Removes a mapping that has this number.
    pub(super) fn take_mapping(&mut self, number: u64) -> Option<StaticMapping> {
        let old = self.mappings.remove(&number)?;
        self.by_external.remove(&claim(&old));
        Some(old)
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

/// Publishes a mapping that was added or removed.
fn publish_one(c: &mut Control, external_if: Option<SwIfIndex>, number: u64, add: bool) {
    let mut change = match external_if {
        Some(sw_if) => borrow_for_mapping(c, sw_if, number, add),
        None => Change::default(),
    };
    change.mappings.insert(number);
    publish_change(c, &change);
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
    let external_if = new.external_if;
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
        nat.by_external.insert(claim(&new), number);
        nat.mappings.insert(number, new);
        number
    };
    publish_one(c, external_if, number, true);
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
        (number, nat.take_mapping(number).ok_or_else(missing)?)
    };
    publish_one(c, old.external_if, number, false);
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
    {
        let mut nat = nat.borrow_mut();
        let Nat44 { by_external, mappings, index, writer, .. } = &mut *nat;
        let number = by_external.get(&((Some(external), None, port, protocol), None)).copied();
        let missing = || NatError::Missing(format!("load-balancing mapping of {external}:{port}"));
        let number = number.ok_or_else(missing)?;
        let mapping = &mut mappings.get_mut(&number).ok_or_else(missing)?.mapping;
        let all = &mut mapping.backends;
        if all.is_empty() {
            return Err(missing());
        }
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
        index.set_backend(number, mapping.clone(), &backend, add);
        let config = Config { mappings: index.all().clone(), ..writer.get().clone() };
        writer.publish(c.domain(), config);
    }
    if !add {
        order(c, |_| Order::Sweep(Sweep::Mappings));
    }
    Ok(())
}
