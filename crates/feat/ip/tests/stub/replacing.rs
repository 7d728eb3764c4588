//! Routes of tables are replaced and flushed in any order, of one version or the other.

use crate::protocol::{STUB_4, STUB_6, Sample, lab};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use thalweg_device::testing::Lab;
use thalweg_feat_ip::replace::{self, Done};
use thalweg_feat_ip::{Ip, Path, PathKind, Source, add_route, add_table, del_route, del_table};
use thalweg_fib::TableId;
use thalweg_tables::Prefix;

#[derive(Clone, Copy, Debug)]
enum Op {
    AddTable(u32),
    DelTable(u32),
    Add(u32, u8),
    Delete(u32, u8),
    Begin(u32),
    Finish(u32),
    Flush(u32),
}

const TABLES: [u32; 2] = [7, u32::MAX];

fn any_op() -> impl Strategy<Value = Op> {
    let table = || prop::sample::select(TABLES.to_vec());
    prop_oneof![
        2 => table().prop_map(Op::AddTable),
        1 => table().prop_map(Op::DelTable),
        8 => (table(), 0u8..4).prop_map(|(t, n)| Op::Add(t, n)),
        3 => (table(), 0u8..4).prop_map(|(t, n)| Op::Delete(t, n)),
        2 => table().prop_map(Op::Begin),
        2 => table().prop_map(Op::Finish),
        1 => table().prop_map(Op::Flush),
    ]
}

/// Routes of each table, and those added since a begin.
#[derive(Default)]
struct Model(BTreeMap<u32, (BTreeSet<u8>, Option<BTreeSet<u8>>)>);

fn prefix<A: Sample>(n: u8) -> Prefix<A> {
    Prefix::host(A::of(9, n))
}

impl Model {
    /// Does the same with the router; returns whether both agree on the outcome.
    fn change<A: Sample>(&mut self, lab: &mut Lab, op: Op) -> bool {
        let done = Rc::new(Cell::new(false));
        let flag = done.clone();
        let when_done: Done = Box::new(move || flag.set(true));
        let c = &mut lab.c;
        let (ok, agreed) = match op {
            Op::AddTable(t) => {
                self.0.entry(t).or_default();
                (true, add_table::<A>(c, TableId(t)).is_ok())
            }
            Op::DelTable(t) => (self.0.remove(&t).is_some(), del_table::<A>(c, TableId(t)).is_ok()),
            Op::Add(t, n) => {
                let table = self.0.get_mut(&t).map(|(routes, added)| {
                    routes.insert(n);
                    added.as_mut().map(|added| added.insert(n));
                });
                let paths = vec![Path::special(PathKind::Drop)];
                (table.is_some(), add_route(c, TableId(t), prefix::<A>(n), paths, true).is_ok())
            }
            Op::Delete(t, n) => {
                let had = self.0.get_mut(&t).is_some_and(|(routes, _)| routes.remove(&n));
                (had, del_route(c, TableId(t), prefix::<A>(n), &[]).is_ok())
            }
            Op::Begin(t) => {
                let table = self.0.get_mut(&t).map(|(_, added)| *added = Some(BTreeSet::new()));
                (table.is_some(), replace::begin::<A>(c, TableId(t)).is_ok())
            }
            Op::Finish(t) => {
                let table = self.0.get_mut(&t).map(|(routes, added)| {
                    if let Some(added) = added.take() {
                        routes.retain(|n| added.contains(n));
                    }
                });
                let begun = replace::finish::<A>(c, TableId(t), when_done).is_ok();
                (table.is_some(), begun && Model::ends(lab, &done))
            }
            Op::Flush(t) => {
                let table = self.0.get_mut(&t).map(|(routes, _)| routes.clear());
                let begun = replace::flush::<A>(c, TableId(t), when_done).is_ok();
                (table.is_some(), begun && Model::ends(lab, &done))
            }
        };
        ok == agreed
    }

    /// Waits until what is done in slices, if it takes longer than one, has ended.
    fn ends(lab: &mut Lab, done: &Cell<bool>) -> bool {
        lab.until("the end", |_| done.get());
        true
    }

    fn check<A: Sample>(&self, lab: &Lab) {
        let ip = lab.c.state::<Ip<A>>();
        let ip = ip.borrow();
        let all = [0].into_iter().chain(self.0.keys().copied());
        let ids: Vec<TableId> = all.map(TableId).collect();
        assert_eq!(ip.table_ids(), ids);
        for (table, (routes, _)) in &self.0 {
            let found =
                ip.routes(TableId(*table)).into_iter().filter(|r| r.source == Source::Static);
            let found: Vec<Prefix<A>> = found.map(|r| r.prefix).collect();
            assert_eq!(found, routes.iter().map(|n| prefix(*n)).collect::<Vec<_>>());
        }
    }
}

/// A version changes, and the other does not notice.
fn agrees<A: Sample, B: Sample>() {
    let lab = RefCell::new(lab(&[&STUB_4, &STUB_6]));
    let mut other = Model::default();
    for op in [Op::AddTable(7), Op::Add(7, 1), Op::Begin(7), Op::Add(7, 2)] {
        assert!(other.change::<B>(&mut lab.borrow_mut(), op));
    }
    let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
    let run = TestRunner::new(config).run(&prop::collection::vec(any_op(), 1..40), |ops| {
        let (mut lab, mut model) = (lab.borrow_mut(), Model::default());
        for op in &ops {
            prop_assert!(model.change::<A>(&mut lab, *op), "{:?} of {:?}", op, ops);
            model.check::<A>(&lab);
        }
        other.check::<B>(&lab);
        TABLES.iter().for_each(|t| assert!(model.change::<A>(&mut lab, Op::DelTable(*t))));
        Ok(())
    });
    run.expect("agreement");
    assert!(other.change::<B>(&mut lab.borrow_mut(), Op::Finish(7)));
    other.check::<B>(&lab.borrow());
    lab.into_inner().close();
}

#[test]
fn replacements_agree_with_a_model_in_32_bits() {
    agrees::<u32, u128>();
}

#[test]
fn replacements_agree_with_a_model_in_128_bits() {
    agrees::<u128, u32>();
}
