//! Static mappings, including load-balancing ones.

use super::{
    MAX_ADDRESSES, Nat44, NatError, Order, StaticMapping, check_table, ensure, order, publish,
};
use crate::mapping::{Backend, Hosts, TwiceNat};
use crate::worker::Sweep;
use std::net::Ipv4Addr;
use thalweg_device::interface;
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

/// Returns whether two mappings have the same external endpoint.
fn same_external(a: &StaticMapping, b: &StaticMapping) -> bool {
    let key = |m: &StaticMapping| {
        let address = if m.external_if.is_some() { None } else { Some(m.mapping.external) };
        (address, m.external_if, m.mapping.external_port, m.mapping.protocol)
    };
    // An identity mapping may exist in several tables.
    key(a) == key(b) && (!a.identity || !b.identity || a.mapping.table == b.mapping.table)
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
    {
        let mut nat = nat.borrow_mut();
        if nat.mappings.iter().any(|m| same_external(m, &new)) {
            return Err(NatError::Exists("a mapping of this address and port".into()));
        }
        if nat.mappings.len() >= MAX_MAPPINGS {
            let text = format!("the limit of {MAX_MAPPINGS} static mappings is reached");
            return Err(NatError::Invalid(text));
        }
        nat.mappings.push(new);
    }
    publish(c);
    Ok(())
}

/// Deletes the static mapping with the external endpoint of `gone`, and its sessions.
///
/// # Errors
/// [`NatError::Missing`].
pub fn del_mapping(c: &mut Control, gone: &StaticMapping) -> Result<(), NatError> {
    let nat = c.state::<Nat44>();
    {
        let mut nat = nat.borrow_mut();
        let at = nat.mappings.iter().position(|m| same_external(m, gone));
        let at = at.ok_or_else(|| NatError::Missing("mapping of this address and port".into()))?;
        nat.mappings.remove(at);
    }
    publish(c);
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
        let matches = |m: &&mut StaticMapping| {
            let key = (m.mapping.external, m.mapping.external_port, m.mapping.protocol);
            key == (external, port, protocol) && !m.mapping.backends.is_empty()
        };
        let mapping = nat.mappings.iter_mut().find(matches);
        let missing = || format!("load-balancing mapping of {external}:{port}");
        let all = &mut mapping.ok_or_else(|| NatError::Missing(missing()))?.mapping.backends;
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
    }
    publish(c);
    if !add {
        order(c, |_| Order::Sweep(Sweep::Mappings));
    }
    Ok(())
}
