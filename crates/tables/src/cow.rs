//! Tables of rows in pages that copies of the table share, for snapshots of which one row changes.

use std::sync::Arc;

/// Rows of a page.
const ROWS: usize = 256;
/// Pages of a table.
const PAGES: usize = 256;

/// Table of up to 65,536 rows. A copy shares all pages, and a change of a row copies one page:
/// publishing a change takes the same time however many rows there are.
#[derive(Clone, Debug)]
pub struct CowTable<T> {
    pages: [Option<Arc<[T; ROWS]>>; PAGES],
}

impl<T> Default for CowTable<T> {
    fn default() -> Self {
        CowTable::new()
    }
}

impl<T> CowTable<T> {
    /// An empty table.
    pub const fn new() -> Self {
        CowTable { pages: [const { None }; PAGES] }
    }

    /// Returns a row; `None` if no row of its page was ever set.
    #[inline(always)]
    pub fn get(&self, index: impl Into<u32>) -> Option<&T> {
        let index = index.into() as usize;
        let page = self.pages.get(index / ROWS)?.as_ref()?;
        Some(&page[index % ROWS])
    }

    /// Sets a row; those of its page that were not set are default. Indices beyond the table are
    /// ignored.
    pub fn set(&mut self, index: impl Into<u32>, row: T)
    where
        T: Clone + Default,
    {
        let index = index.into() as usize;
        if let Some(page) = self.pages.get_mut(index / ROWS) {
            let new = || Arc::new(std::array::from_fn(|_| T::default()));
            Arc::make_mut(page.get_or_insert_with(new))[index % ROWS] = row;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_change_copies_one_page() {
        let mut table = CowTable::default();
        (0..65_536).for_each(|i| table.set(i, i));
        let old = table.clone();
        table.set(700_u32, 9);
        let same = |at: usize| {
            let page = |t: &CowTable<u32>| t.pages[at].as_ref().map(Arc::as_ptr);
            page(&old) == page(&table)
        };
        assert_eq!((0..PAGES).filter(|at| !same(*at)).collect::<Vec<_>>(), [2]);
        assert_eq!(
            (old.get(700_u32), table.get(700_u32), table.get(65_536_u32)),
            (Some(&700), Some(&9), None)
        );
    }

    proptest! {
        #[test]
        fn rows_are_those_last_set(rows in prop::collection::vec((0u32..70_000, 1u8..), 1..60)) {
            let (mut table, mut model) = (CowTable::default(), BTreeMap::new());
            for (index, row) in rows {
                table.set(index, row);
                model.insert(index, row);
                let expected = Some(row).filter(|_| index < 65_536);
                prop_assert_eq!(table.clone().get(index).copied(), expected);
            }
            for (index, row) in model.range(..65_536) {
                prop_assert_eq!(table.get(*index), Some(row));
            }
        }
    }
}
