//! Pool addresses: those that are configured, and those of interfaces.

use super::publish::{Change, find, publish_change};
use super::{Address, MAX_ADDRESSES, Nat44, NatError, check_table, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use thalweg_device::{SwIfIndex, interface};
use thalweg_feat_ip::Ip4;
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Uses of an interface's addresses.
#[derive(Default, Debug)]
struct Lender {
    addresses: Vec<Ipv4Addr>,
    /// True if all are pool addresses, and true if all are for twice-NAT.
    pools: [bool; 2],
    /// Mappings of the first one, by number.
    mappings: BTreeSet<u64>,
}

impl Lender {
    fn lends(&self) -> impl Iterator<Item = (bool, Ipv4Addr)> + '_ {
        let used = |twice: &bool| self.pools[usize::from(*twice)];
        let kinds = [false, true].into_iter().filter(used);
        kinds.flat_map(|twice| self.addresses.iter().map(move |a| (twice, *a)))
    }
}

/// The addresses of interfaces that are used.
#[derive(Default, Debug)]
pub(super) struct Borrowed {
    lenders: BTreeMap<SwIfIndex, Lender>,
    /// Pool addresses of interfaces, with the number of interfaces.
    lent: BTreeMap<(bool, Ipv4Addr), usize>,
}

impl Borrowed {
    /// Returns whether an interface lends this pool address.
    pub(super) fn is_lent(&self, twice: bool, address: Ipv4Addr) -> bool {
        self.lent.contains_key(&(twice, address))
    }

    /// The first address of an interface that has mappings.
    pub(super) fn first(&self, sw_if: SwIfIndex) -> Option<Ipv4Addr> {
        self.lenders.get(&sw_if)?.addresses.first().copied()
    }

    /// Returns whether an interface's addresses are used.
    pub(super) fn uses(&self, sw_if: SwIfIndex) -> bool {
        self.lenders.contains_key(&sw_if)
    }

    /// Mappings of an interface's address, by number.
    pub(super) fn mappings(&self, sw_if: SwIfIndex) -> BTreeSet<u64> {
        self.lenders.get(&sw_if).map_or_else(BTreeSet::new, |lender| lender.mappings.clone())
    }

    /// Notes the addresses of an interface, or another use of them; returns what may be other than
    /// published.
    fn update(&mut self, sw_if: SwIfIndex, update: impl FnOnce(&mut Lender)) -> Change {
        let mut lender = self.lenders.remove(&sw_if).unwrap_or_default();
        let mut pools = BTreeSet::new();
        for key in lender.lends() {
            pools.insert(key);
            match self.lent.get_mut(&key) {
                Some(lenders) if *lenders > 1 => *lenders -= 1,
                _ => drop(self.lent.remove(&key)),
            }
        }
        let first = lender.addresses.first().copied();
        update(&mut lender);
        for key in lender.lends() {
            pools.insert(key);
            *self.lent.entry(key).or_default() += 1;
        }
        let is_same = lender.addresses.first().copied() == first;
        let mappings = if is_same { BTreeSet::new() } else { lender.mappings.clone() };
        if lender.pools != [false; 2] || !lender.mappings.is_empty() {
            self.lenders.insert(sw_if, lender);
        }
        Change { pools, mappings }
    }
}

impl Nat44 {
    /// Counts a pool for the hosts of a table, or of all tables, or one less.
    fn count_pool(&mut self, table: Option<TableId>, add: bool) {
        let pools = self.pool_tables.entry(table).or_default();
        *pools = if add { *pools + 1 } else { pools.saturating_sub(1) };
        if *pools == 0 {
            self.pool_tables.remove(&table);
        }
    }
}

/// Notes the addresses of an interface as they are now, and another use of them.
fn borrow(c: &Control, sw_if: SwIfIndex, update: impl FnOnce(&mut Lender)) -> Change {
    let ip4 = c.state::<Ip4>();
    let ip4 = ip4.borrow();
    let addresses = ip4.addresses(sw_if).iter().map(|a| Ipv4Addr::from_bits(a.addr)).collect();
    let nat = c.state::<Nat44>();
    let mut nat = nat.borrow_mut();
    nat.borrowed.update(sw_if, |lender| {
        lender.addresses = addresses;
        update(lender);
    })
}

/// Notes another mapping of an interface's address, or one less.
pub(super) fn borrow_for_mapping(c: &Control, sw_if: SwIfIndex, number: u64, add: bool) -> Change {
    borrow(c, sw_if, |lender| {
        _ = match add {
            true => lender.mappings.insert(number),
            false => lender.mappings.remove(&number),
        };
    })
}

/// Notes the addresses of an interface as they are now.
pub(super) fn borrow_again(c: &Control, sw_if: SwIfIndex) -> Change {
    borrow(c, sw_if, |_| {})
}

/// Stops using the addresses of a deleted interface as pool addresses.
pub(super) fn forget_lender(c: &Control, sw_if: SwIfIndex) -> Change {
    let nat = c.state::<Nat44>();
    let mut nat = nat.borrow_mut();
    for twice in [false, true] {
        if nat.address_interfaces.remove(&(sw_if, twice)) && !twice {
            nat.count_pool(None, false);
        }
    }
    nat.borrowed.update(sw_if, |lender| *lender = Lender::default())
}

/// Adds the pool addresses `first` to `last`, or deletes them with their sessions.
///
/// # Errors
/// [`NatError`]; nothing is changed then.
pub fn set_addresses(
    c: &mut Control,
    (first, last): (Ipv4Addr, Ipv4Addr),
    table: Option<TableId>,
    twice: bool,
    add: bool,
) -> Result<(), NatError> {
    check_table(table.unwrap_or(TableId(0)))?;
    if last < first {
        return Err(NatError::Invalid(format!("{last} is below {first}")));
    }
    if first.is_unspecified() || first.is_multicast() || last.is_multicast() || last.is_broadcast()
    {
        return Err(NatError::Invalid(format!("{first} - {last} are not unicast addresses")));
    }
    ensure(c)?;
    let nat = c.state::<Nat44>();
    let change = {
        let mut nat = nat.borrow_mut();
        nat.check_addresses((first, last), table, twice, add)?;
        let mut pools = BTreeSet::new();
        for address in (first.to_bits()..=last.to_bits()).map(Ipv4Addr::from) {
            let old = find(&nat.addresses, (twice, address));
            let table = old.map_or(table, |old| old.table);
            let entry = Address { twice, address, table };
            _ = if add { nat.addresses.insert(entry) } else { nat.addresses.remove(&entry) };
            if !twice {
                nat.count_pool(table, add);
            }
            pools.insert((twice, address));
        }
        Change { pools, ..Change::default() }
    };
    publish_change(c, &change);
    Ok(())
}

impl Nat44 {
    /// Checks that pool addresses can be added or deleted.
    fn check_addresses(
        &self,
        (first, last): (Ipv4Addr, Ipv4Addr),
        table: Option<TableId>,
        twice: bool,
        add: bool,
    ) -> Result<(), NatError> {
        let lent = &self.borrowed.lent;
        if add
            && table.is_some()
            && let Some(((_, wrong), _)) = lent.range((twice, first)..=(twice, last)).next()
        {
            return Err(NatError::Exists(format!("pool address {wrong} of an interface")));
        }
        let count = (last.to_bits() - first.to_bits()) as usize + 1;
        if add && self.addresses.len() + count > MAX_ADDRESSES {
            let text = format!(
                "the limit of {MAX_ADDRESSES} pool addresses is reached; `nat44 add address ... del` frees some"
            );
            return Err(NatError::Invalid(text));
        }
        let mut all = (first.to_bits()..=last.to_bits()).map(Ipv4Addr::from);
        match all.find(|a| find(&self.addresses, (twice, *a)).is_some() == add) {
            Some(wrong) if add => Err(NatError::Exists(format!("address {wrong}"))),
            Some(wrong) => Err(NatError::Missing(format!("address {wrong}"))),
            None => Ok(()),
        }
    }
}

/// Uses the addresses of an interface as pool addresses, or stops doing so.
///
/// # Errors
/// [`NatError`].
pub fn set_interface_address(
    c: &mut Control,
    sw_if: SwIfIndex,
    twice: bool,
    add: bool,
) -> Result<(), NatError> {
    let name = interface::view(c, sw_if)?.name;
    ensure(c)?;
    let nat = c.state::<Nat44>();
    {
        let mut nat = nat.borrow_mut();
        let words = if twice { " with twice-nat" } else { "" };
        let what = || format!("use of addresses of `{name}`{words}");
        match (nat.address_interfaces.contains(&(sw_if, twice)), add) {
            (true, true) => return Err(NatError::Exists(what())),
            (false, false) => return Err(NatError::Missing(what())),
            (false, true) => {
                let ip4 = c.state::<Ip4>();
                let ip4 = ip4.borrow();
                let lent = ip4.addresses(sw_if).iter().map(|a| Ipv4Addr::from_bits(a.addr));
                let kept = lent.filter_map(|a| find(&nat.addresses, (twice, a)));
                if let Some((address, table)) =
                    kept.filter_map(|a| Some((a.address, a.table?))).min()
                {
                    return Err(NatError::Exists(format!("address {address} tenant-vrf {table}")));
                }
                nat.address_interfaces.insert((sw_if, twice));
            }
            (true, false) => drop(nat.address_interfaces.remove(&(sw_if, twice))),
        }
        if !twice {
            nat.count_pool(None, add);
        }
    }
    let change = borrow(c, sw_if, |lender| lender.pools[usize::from(twice)] = add);
    publish_change(c, &change);
    Ok(())
}
