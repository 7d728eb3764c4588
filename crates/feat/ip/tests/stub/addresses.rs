//! Addresses of both versions come and go in any order, in tables that come and go.

use crate::protocol::{Published, STUB_4, STUB_6, Sample, lab};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use thalweg_device::testing::Lab;
use thalweg_feat_ip::{IfAddress, Ip, Source, add_table, address, del_table};
use thalweg_fib::{Forwarding, TableId};
use thalweg_tables::Prefix;

#[derive(Clone, Copy, Debug)]
enum Op {
    AddTable(u32),
    DelTable(u32),
    Bind(u8, u32),
    /// Moves an interface to a table with its addresses.
    Move(u8, u32),
    /// Interface, subnet, host, bits that the prefix is shorter.
    Add(u8, u8, u8, u8),
    Remove(u8, u8, u8, u8),
    RemoveAll(u8),
    BeginReplacing,
    FinishReplacing,
}

const TABLES: [u32; 3] = [0, 7, u32::MAX];

fn any_op() -> impl Strategy<Value = Op> {
    let table = || prop::sample::select(TABLES.to_vec());
    let address = || (0u8..3, 0u8..3, 1u8..4, prop::sample::select(vec![0u8, 4, 8]));
    prop_oneof![
        2 => table().prop_map(Op::AddTable),
        2 => table().prop_map(Op::DelTable),
        3 => (0u8..3, table()).prop_map(|(n, t)| Op::Bind(n, t)),
        3 => (0u8..3, table()).prop_map(|(n, t)| Op::Move(n, t)),
        8 => address().prop_map(|(n, s, h, b)| Op::Add(n, s, h, b)),
        4 => address().prop_map(|(n, s, h, b)| Op::Remove(n, s, h, b)),
        1 => (0u8..3).prop_map(Op::RemoveAll),
        1 => Just(Op::BeginReplacing),
        1 => Just(Op::FinishReplacing),
    ]
}

/// The expected state.
#[derive(Default)]
struct Model<A> {
    tables: BTreeSet<TableId>,
    bound: BTreeMap<u8, TableId>,
    addresses: BTreeMap<u8, Vec<IfAddress<A>>>,
    stale: BTreeSet<(u8, IfAddress<A>)>,
}

impl<A: Sample> Model<A> {
    fn table(&self, n: u8) -> TableId {
        self.bound.get(&n).copied().unwrap_or(TableId(0))
    }

    fn fits(&self, n: u8, new: IfAddress<A>) -> bool {
        let subnet = new.subnet().unwrap();
        self.addresses.iter().filter(|(i, _)| self.table(**i) == self.table(n)).all(|(i, all)| {
            all.iter().all(|old| {
                let theirs = old.subnet().unwrap();
                let apart = !theirs.contains(subnet.addr()) && !subnet.contains(theirs.addr());
                apart || (*i == n && theirs == subnet && old.addr != new.addr)
            })
        })
    }

    /// Returns whether no interface of a table has a subnet that meets one of this interface.
    fn may_move(&self, n: u8, table: TableId) -> bool {
        let own = self.addresses.get(&n).into_iter().flatten();
        let there = self.addresses.iter().filter(|(i, _)| **i != n && self.table(**i) == table);
        let there: Vec<IfAddress<A>> = there.flat_map(|(_, all)| all.iter().copied()).collect();
        own.filter_map(|a| a.subnet().ok()).all(|own| {
            there
                .iter()
                .filter_map(|a| a.subnet().ok())
                .all(|theirs| !theirs.contains(own.addr()) && !own.contains(theirs.addr()))
        })
    }

    fn remove(&mut self, n: u8, address: IfAddress<A>) -> bool {
        let list = self.addresses.entry(n).or_default();
        let at = list.iter().position(|a| *a == address);
        at.map(|at| list.remove(at));
        self.stale.remove(&(n, address));
        at.is_some()
    }

    /// Does the same with the router; returns whether both agree on the outcome.
    fn change(&mut self, lab: &mut Lab, op: Op) -> bool {
        let c = &mut lab.c;
        let port = |c: &_, n: u8| thalweg_device::interface::find(c, &format!("test{n}")).unwrap();
        let address = |s: u8, h: u8, b: u8| IfAddress { addr: A::of(s, h), len: A::BITS - b };
        match op {
            Op::AddTable(t) => {
                self.tables.insert(TableId(t));
                add_table::<A>(c, TableId(t)).is_ok()
            }
            Op::DelTable(t) => {
                let free = t != 0 && !self.bound.values().any(|b| *b == TableId(t));
                let ok = free && self.tables.remove(&TableId(t));
                del_table::<A>(c, TableId(t)).is_ok() == ok
            }
            Op::Bind(n, t) => {
                let alone = self.addresses.get(&n).is_none_or(Vec::is_empty);
                let ok = alone && self.tables.contains(&TableId(t));
                if ok {
                    self.bound.insert(n, TableId(t));
                }
                let sw_if = port(c, n);
                address::set_table::<A>(c, sw_if, TableId(t)).is_ok() == ok
            }
            Op::Move(n, t) => {
                let ok = self.tables.contains(&TableId(t)) && self.may_move(n, TableId(t));
                if ok {
                    self.bound.insert(n, TableId(t));
                }
                let sw_if = port(c, n);
                address::move_to_table::<A>(c, sw_if, TableId(t)).is_ok() == ok
            }
            Op::Add(n, s, h, b) => {
                let new = address(s, h, b);
                let host = b == 0 || new.subnet().unwrap().addr() != new.addr;
                let ok = self.stale.remove(&(n, new)) || (host && self.fits(n, new));
                let list = self.addresses.entry(n).or_default();
                if ok && !list.contains(&new) {
                    list.push(new);
                }
                let sw_if = port(c, n);
                address::add(c, sw_if, new.addr, new.len).is_ok() == ok
            }
            Op::Remove(n, s, h, b) => {
                let old = address(s, h, b);
                let ok = self.remove(n, old);
                let sw_if = port(c, n);
                address::remove(c, sw_if, old.addr, old.len).is_ok() == ok
            }
            Op::RemoveAll(n) => {
                for old in self.addresses.get(&n).cloned().unwrap_or_default() {
                    self.remove(n, old);
                }
                let sw_if = port(c, n);
                address::remove_all(c, sw_if).is_ok()
            }
            Op::BeginReplacing => {
                let each = |(n, l): (&u8, &Vec<_>)| l.iter().map(|a| (*n, *a)).collect::<Vec<_>>();
                self.stale = self.addresses.iter().flat_map(each).collect();
                address::begin_replacing(c);
                true
            }
            Op::FinishReplacing => {
                for (n, old) in std::mem::take(&mut self.stale) {
                    self.remove(n, old);
                }
                address::finish_replacing(c).is_ok()
            }
        }
    }

    /// Routes that the addresses in a table add.
    fn routes(&self, table: TableId) -> BTreeSet<Prefix<A>> {
        let here = self.addresses.iter().filter(|(n, _)| self.table(**n) == table);
        let all = here.flat_map(|(_, all)| all);
        all.flat_map(|a| [a.subnet().unwrap(), Prefix::host(a.addr)]).collect()
    }

    fn check(&self, lab: &Lab) {
        let (ip, published) = (lab.c.state::<Ip<A>>(), lab.c.state::<Published<A>>());
        let (ip, published) = (ip.borrow(), published.borrow());
        assert_eq!(ip.table_ids(), self.tables.iter().copied().collect::<Vec<_>>());
        for n in 0..3 {
            let (sw_if, none) = (lab.sw_if(n), Vec::new());
            let list = self.addresses.get(&n).unwrap_or(&none);
            assert_eq!(ip.addresses(sw_if), list);
            assert_eq!(ip.table_of(sw_if), self.table(n));
            let (table, addresses) =
                published.interfaces.get(&sw_if).map_or((TableId(0), &none), |row| (row.0, &row.1));
            assert_eq!((table, addresses), (self.table(n), list), "published");
        }
        for table in &self.tables {
            let routes = ip.routes(*table);
            let own = routes.iter().filter(|r| r.source == Source::Interface);
            assert_eq!(own.map(|r| r.prefix).collect::<BTreeSet<_>>(), self.routes(*table));
            let leaves = published.tables[table].lock().unwrap();
            let known: BTreeSet<_> = leaves.keys().copied().collect();
            assert_eq!(routes.iter().map(|r| r.prefix).collect::<BTreeSet<_>>(), known);
        }
        assert_eq!(published.tables.len(), self.tables.len());
    }
}

fn agrees<A: Sample>() {
    let lab = RefCell::new(lab(&[&STUB_4, &STUB_6]));
    let objects = |lab: &Lab| lab.c.state::<Forwarding>().borrow().len();
    let config = Config { cases: 60, failure_persistence: None, ..Config::default() };
    let run = TestRunner::new(config).run(&prop::collection::vec(any_op(), 1..50), |ops| {
        let mut lab = lab.borrow_mut();
        let before = objects(&lab);
        let mut model = Model::<A> { tables: [TableId(0)].into(), ..Model::default() };
        for op in &ops {
            prop_assert!(model.change(&mut lab, *op), "{:?} of {:?}", op, ops);
            model.check(&lab);
        }
        model.change(&mut lab, Op::BeginReplacing);
        model.change(&mut lab, Op::FinishReplacing);
        (0..3).for_each(|n| assert!(model.change(&mut lab, Op::Bind(n, 0))));
        TABLES.iter().for_each(|t| assert!(model.change(&mut lab, Op::DelTable(*t))));
        prop_assert_eq!(objects(&lab), before);
        Ok(())
    });
    run.expect("agreement");
    lab.into_inner().close();
}

#[test]
fn addresses_agree_with_a_model_in_32_bits() {
    agrees::<u32>();
}

#[test]
fn addresses_agree_with_a_model_in_128_bits() {
    agrees::<u128>();
}

#[test]
fn a_deleted_interface_takes_addresses_of_both_versions_along() {
    let mut lab = lab(&[&STUB_4, &STUB_6]);
    lab.ok("ip6 table add 7\nset interface ip6 table test1 7\n\
         set interface ip address test1 2001:db8::1/64\n\
         set interface ip address test1 10.0.0.1/24\n\
         ip route add 2001:db8:9::/48 table 7 via 2001:db8::2");
    let sw_if = lab.sw_if(1);
    thalweg_device::interface::delete(&mut lab.c, sw_if).expect("delete");
    lab.interface(1);
    assert_eq!(lab.sw_if(1), sw_if);
    let shown = lab.cli("show interface address");
    assert!(!shown.contains("2001:db8") && !shown.contains("10.0.0.1"), "{shown}");
    assert!(lab.cli("show ip6 fib table 7 2001:db8:9::/48").contains("oper-flags:drop"));
    lab.ok("ip6 table del 7\nset interface ip address test1 2001:db8::1/64");
    lab.close();
}
