//! Tables and interfaces of a protocol as workers read them, which the main thread republishes when
//! an interface's address or table changes; routes change in place.

use crate::Ip;
use crate::places::Places;
use std::collections::BTreeMap;
use std::sync::Arc;
use thalweg_device::SwIfIndex;
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::snapshot::Writer;
use thalweg_tables::{Address, CowTable};

/// A table as workers read it.
pub trait PublishedTable: Clone {
    /// Its id.
    fn id(&self) -> TableId;

    /// The number that distinguishes it from an earlier table with the same id.
    fn serial(&self) -> u32;

    /// Sets whether ICMP errors answer packets without a route.
    fn set_unreachables(&mut self, on: bool);
}

/// All that workers read of a protocol.
pub trait Rows: Clone + Send + Sync + 'static {
    /// Its addresses.
    type Address: Address;
    /// A table.
    type Table: PublishedTable;
    /// The first interface with an address in a table, with what workers read of it.
    type Member: Copy + PartialEq + Send + Sync + 'static;

    /// Tables by place.
    fn tables(&mut self) -> &mut Arc<[Self::Table]>;

    /// A member of each table, by its place.
    fn members(&mut self) -> &mut CowTable<Option<Self::Member>>;

    /// Sets the row of an interface, whose table is at `place`.
    fn set_interface(&mut self, ip: &Ip<Self::Address>, sw_if: SwIfIndex, place: u16);

    /// Returns the member of a table.
    fn member(ip: &Ip<Self::Address>, table: TableId) -> Option<Self::Member>;

    /// Returns the interface of a member.
    fn interface(member: Self::Member) -> SwIfIndex;
}

/// State published to workers.
pub struct Published<R: Rows> {
    writer: Writer<R>,
    /// Tables that were created, until they are published.
    new: Vec<R::Table>,
    places: Places,
    /// Tables of which an interface is the first with an address.
    members: BTreeMap<SwIfIndex, TableId>,
}

impl<R: Rows> Published<R> {
    /// Begins without tables.
    pub fn new(writer: Writer<R>) -> Published<R> {
        let (new, places, members) = (Vec::new(), Places::default(), BTreeMap::new());
        Published { writer, new, places, members }
    }

    /// Keeps a table that was created until it is published.
    pub fn keep(&mut self, table: R::Table) {
        self.new.push(table);
    }

    /// Publishes a table that has come, changed or gone.
    pub fn publish(&mut self, c: &Control, ip: &Ip<R::Address>, id: TableId) {
        let mut rows = self.writer.get().clone();
        let unreachables = ip.answers_unreachable(id);
        match (self.places.of(id), ip.serial(id)) {
            (Some(_), None) => self.remove(&mut rows, ip, id),
            (Some(_), Some(_)) => {
                let mut tables = rows.tables().to_vec();
                let this = tables.iter_mut().filter(|table| table.id() == id);
                this.for_each(|table| table.set_unreachables(unreachables));
                *rows.tables() = tables.into();
            }
            (None, serial) => {
                // Others were created for tables that could not be added.
                let mut new = std::mem::take(&mut self.new).into_iter();
                let Some(mut new) = new.find(|table| Some(table.serial()) == serial) else {
                    return;
                };
                self.places.add(id);
                new.set_unreachables(unreachables);
                // Workers take the first for interfaces that they do not know: table 0.
                let all = rows.tables().iter().cloned().chain([new]).collect();
                *rows.tables() = all;
                self.note_member(&mut rows, ip, id);
            }
        }
        self.writer.publish(c.domain(), rows);
    }

    /// Publishes an interface whose table or addresses have changed.
    pub fn publish_interface(&mut self, c: &Control, ip: &Ip<R::Address>, sw_if: SwIfIndex) {
        let mut rows = self.writer.get().clone();
        rows.set_interface(ip, sw_if, self.place(ip, sw_if));
        // Its table, and the one in which it was.
        let before = self.members.get(&sw_if).copied();
        for id in [Some(ip.table_of(sw_if)), before].into_iter().flatten() {
            self.note_member(&mut rows, ip, id);
        }
        self.writer.publish(c.domain(), rows);
    }

    /// Returns the place of an interface's table.
    fn place(&self, ip: &Ip<R::Address>, sw_if: SwIfIndex) -> u16 {
        self.places.of(ip.table_of(sw_if)).unwrap_or(0)
    }

    /// Notes which interface is the first with an address of a table.
    fn note_member(&mut self, rows: &mut R, ip: &Ip<R::Address>, id: TableId) {
        let Some(at) = self.places.of(id) else { return };
        let before = rows.members().get(at).copied().flatten();
        let now = R::member(ip, id);
        if before == now {
            return;
        }
        rows.members().set(at, now);
        self.forget_member(before, id);
        self.members.extend(now.map(|now| (R::interface(now), id)));
    }

    /// Forgets that an interface is the first of a table.
    fn forget_member(&mut self, member: Option<R::Member>, id: TableId) {
        let sw_if = member.map(R::interface);
        if let Some(sw_if) = sw_if.filter(|sw_if| self.members.get(sw_if) == Some(&id)) {
            self.members.remove(&sw_if);
        }
    }

    /// Takes out a table that has gone. The last one moves to its place.
    fn remove(&mut self, rows: &mut R, ip: &Ip<R::Address>, id: TableId) {
        let Some((at, moved)) = self.places.remove(id) else { return };
        let mut tables = rows.tables().to_vec();
        tables.swap_remove(at.into());
        let last = tables.len() as u32;
        *rows.tables() = tables.into();
        let members = [u32::from(at), last].map(|at| rows.members().get(at).copied());
        let [gone, of_last] = members.map(Option::flatten);
        self.forget_member(gone, id);
        rows.members().set(last, None);
        if let Some(moved) = moved {
            rows.members().set(at, of_last);
            for sw_if in ip.bound_to(moved) {
                rows.set_interface(ip, sw_if, self.place(ip, sw_if));
            }
        }
    }
}
